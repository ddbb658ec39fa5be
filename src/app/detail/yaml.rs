//! The whole object of a detail as YAML: its blocks (a key or list item with the lines below it), which of them are
//! folded, and the search.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::app::filter::{Filter, Filterable};

/// The YAML lines of an object, with folds and a search that survive when the object is read again.
#[derive(Clone, Debug, Default)]
pub(super) struct YamlView {
    lines: Vec<Line>,
    /// Paths of the folded YAML blocks.
    folded: BTreeSet<Arc<str>>,
    search: Search,
}

/// A search over all YAML lines of an object, those of folded blocks included.
#[derive(Clone, Debug, Default)]
struct Search {
    filter: Filter,
    /// Indices of the lines that match the search.
    matches: Vec<usize>,
    /// The line that was selected before the search was typed; `None` once the search is kept.
    from: Option<Arc<str>>,
}

/// A YAML line of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    text: Arc<str>,
    /// Keys and list indices that lead to the line, as in `/status/conditions/0`. The path stays the same when other
    /// values of the object change.
    path: Arc<str>,
    depth: usize,
    /// Number of lines below this one in the YAML block that it begins; 0 if it begins no block.
    block: usize,
}

/// A YAML line that is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlRow {
    pub text: Arc<str>,
    pub(super) path: Arc<str>,
    pub fold: Fold,
    /// Whether the line matches the search.
    pub is_match: bool,
}

/// Whether a YAML line begins a block, and whether the block is folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// The line begins no YAML block.
    Leaf,
    /// The line begins a YAML block that is shown.
    Open,
    /// The line begins a YAML block of which this many lines are hidden.
    Folded(usize),
}

impl YamlView {
    /// Replaces the YAML lines after the object was read again.
    pub fn replace(&mut self, lines: &[Arc<str>]) {
        self.lines = parse(lines);
        self.search.find(&self.lines);
    }

    /// The YAML lines that are shown.
    pub fn rows(&self) -> Vec<YamlRow> {
        let (mut rows, mut next) = (Vec::new(), 0);
        while let Some(line) = self.lines.get(next) {
            let is_folded = line.block > 0 && self.folded.contains(&line.path);
            rows.push(YamlRow {
                text: line.text.clone(),
                path: line.path.clone(),
                fold: match line.block {
                    0 => Fold::Leaf,
                    hidden if is_folded => Fold::Folded(hidden),
                    _ => Fold::Open,
                },
                is_match: self.search.matches.binary_search(&next).is_ok(),
            });
            next += if is_folded { line.block + 1 } else { 1 };
        }
        rows
    }

    /// Folds or unfolds the YAML block that a line begins or belongs to. Returns the path of the block's first line.
    pub fn toggle(&mut self, path: &str) -> Option<Arc<str>> {
        let path = self.block_of(path)?.path.clone();
        if !self.folded.remove(&path) {
            self.folded.insert(path.clone());
        }
        Some(path)
    }

    /// The first line of the YAML block that a line begins or belongs to.
    fn block_of(&self, path: &str) -> Option<&Line> {
        let place = self.place(path)?;
        let begins = |line: &&Line| line.block > 0;
        Some(&self.lines[place]).filter(begins).or_else(|| self.parents(place).next())
    }

    /// Whether a line begins a YAML block or belongs to one.
    pub fn is_in_block(&self, path: &str) -> bool {
        self.block_of(path).is_some()
    }

    pub fn has_blocks(&self) -> bool {
        self.lines.iter().any(|line| line.block > 0)
    }

    /// Folds all YAML blocks; unfolds them if all are folded.
    pub fn toggle_all(&mut self) {
        let blocks = self.lines.iter().filter(|line| line.block > 0);
        let blocks: BTreeSet<Arc<str>> = blocks.map(|line| line.path.clone()).collect();
        self.folded = if blocks.is_subset(&self.folded) { BTreeSet::new() } else { blocks };
    }

    /// Searches the YAML lines with a filter. Returns the path of the line to select; `None` if the selection stays.
    pub fn search(&mut self, filter: &Filter, selected: Option<&Arc<str>>) -> Option<Arc<str>> {
        if self.search.filter == *filter {
            return None;
        }
        let was_empty = self.search.filter.is_empty();
        self.search.filter = filter.clone();
        self.search.find(&self.lines);
        if filter.is_empty() {
            return self.search.from.take();
        }
        if was_empty {
            self.search.from = selected.cloned();
        }
        let start = self.search.from.as_ref().or(selected).and_then(|path| self.place(path)).unwrap_or(0);
        let from_start = self.search.matches.iter().copied().find(|place| *place >= start);
        match from_start.or(self.search.matches.first().copied()) {
            Some(place) => Some(self.show(place)),
            None => self.search.from.clone(),
        }
    }

    /// Keeps the search: once it is kept, clearing it no longer moves the selection back to where it was before.
    pub fn keep_search(&mut self) {
        self.search.from = None;
    }

    /// Goes to the next or previous line that matches the search, and wraps around at the ends. Returns the path of
    /// this line.
    pub fn next_match(&mut self, selected: Option<&str>, goes_back: bool) -> Option<Arc<str>> {
        let matches = &self.search.matches;
        let place = selected.and_then(|path| self.place(path));
        let next = match (place, goes_back) {
            (None, _) => None,
            (Some(place), false) => matches.iter().find(|other| **other > place),
            (Some(place), true) => matches.iter().rfind(|other| **other < place),
        };
        let around = if goes_back { matches.last() } else { matches.first() };
        let place = *next.or(around)?;
        Some(self.show(place))
    }

    /// Number of lines that match the search; `None` without a search.
    pub fn match_count(&self) -> Option<usize> {
        (!self.search.filter.is_empty()).then_some(self.search.matches.len())
    }

    /// Number of a line among the matching lines, from 1; `None` if the line does not match.
    pub fn match_number(&self, path: &str) -> Option<usize> {
        let place = self.place(path)?;
        self.search.matches.binary_search(&place).ok().map(|number| number + 1)
    }

    /// Unfolds the YAML blocks around a line. Returns the path of the line.
    fn show(&mut self, place: usize) -> Arc<str> {
        let blocks: Vec<Arc<str>> = self.parents(place).map(|block| block.path.clone()).collect();
        blocks.iter().for_each(|block| {
            self.folded.remove(block);
        });
        self.lines[place].path.clone()
    }

    fn place(&self, path: &str) -> Option<usize> {
        self.lines.iter().position(|line| *line.path == *path)
    }

    /// The first lines of the YAML blocks around a line, the innermost block first.
    fn parents(&self, place: usize) -> impl Iterator<Item = &Line> {
        let before = self.lines[..place].iter().enumerate().rev();
        before.filter(move |(first, line)| first + line.block >= place).map(|(_, line)| line)
    }
}

impl Search {
    fn find(&mut self, lines: &[Line]) {
        let is_match = |line: &Line| !self.filter.is_empty() && self.filter.matches(line);
        self.matches = (0..lines.len()).filter(|place| is_match(&lines[*place])).collect();
    }
}

impl Filterable for Line {
    fn field(&self, _key: &str) -> Option<String> {
        None
    }

    fn texts(&self, found: &mut dyn FnMut(&str)) {
        found(&self.text);
    }
}

/// Finds the paths and blocks of lines of YAML in block style. The lines of a multi-line text count as a block of the
/// text's key.
fn parse(texts: &[Arc<str>]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    // The YAML blocks around the present line: for each its depth, its path, and the number of list items so far.
    let mut around: Vec<(usize, String, usize)> = vec![(0, String::new(), 0)];
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for text in texts {
        let content = text.trim_start_matches(' ');
        let is_item = content.starts_with("- ") || content == "-";
        // An item of a list may stand in the same column as the key of the list.
        let depth = match content.is_empty() {
            true => usize::MAX,
            false => 1 + 2 * (text.len() - content.len()) + usize::from(is_item),
        };
        while around.len() > 1 && around.last().is_some_and(|(other, ..)| *other >= depth) {
            around.pop();
        }
        let (_, parent, items) = around.last_mut().expect("the first one is never removed");
        let name = match content.find(": ").or(content.strip_suffix(':').map(str::len)) {
            _ if is_item => {
                *items += 1;
                (*items - 1).to_string()
            }
            Some(end) => content[..end].to_owned(),
            None => String::new(),
        };
        let mut path = format!("{parent}/{name}");
        let others = seen.entry(path.clone()).or_default();
        *others += 1;
        if *others > 1 {
            path = format!("{path}~{others}");
        }
        lines.push(Line { text: text.clone(), path: path.as_str().into(), depth, block: 0 });
        if depth < usize::MAX {
            around.push((depth, path, 0));
        }
    }
    for first in 0..lines.len() {
        let is_below = |line: &&Line| line.depth > lines[first].depth;
        lines[first].block = lines[first + 1..].iter().take_while(is_below).count();
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: &str = "\
apiVersion: v1
metadata:
  labels:
    zone: a
  name: n1
status:
  conditions:
  - message: |-
      first

      - second
    type: Ready
  - message: ok
    type: DiskPressure
";

    fn view(text: &str) -> YamlView {
        let mut view = YamlView::default();
        view.replace(&lines(text));
        view
    }

    fn lines(text: &str) -> Vec<Arc<str>> {
        text.lines().map(Into::into).collect()
    }

    fn shown(view: &YamlView) -> Vec<String> {
        let line = |row: YamlRow| match row.fold {
            Fold::Folded(hidden) => format!("{} +{hidden}", row.text.trim()),
            Fold::Leaf | Fold::Open => row.text.trim().to_owned(),
        };
        view.rows().into_iter().map(line).collect()
    }

    #[test]
    fn each_line_has_a_path_of_its_own_that_values_do_not_change() {
        let paths: Vec<String> = view(NODE).lines.iter().map(|line| line.path.to_string()).collect();
        let expected = [
            "/apiVersion",
            "/metadata",
            "/metadata/labels",
            "/metadata/labels/zone",
            "/metadata/name",
            "/status",
            "/status/conditions",
            "/status/conditions/0",
            "/status/conditions/0/",
            "/status/conditions/0//",
            "/status/conditions/0//0",
            "/status/conditions/0/type",
            "/status/conditions/1",
            "/status/conditions/1/type",
        ];
        assert_eq!(paths, expected);
        assert_eq!(paths.iter().collect::<BTreeSet<_>>().len(), paths.len());
    }

    #[test]
    fn a_block_is_folded_from_any_of_its_lines_and_stays_so_when_the_object_is_read_again() {
        let mut view = view(NODE);
        assert_eq!(view.toggle("/metadata/labels/zone").as_deref(), Some("/metadata/labels"));
        assert_eq!(view.toggle("/status/conditions/0").as_deref(), Some("/status/conditions/0"));
        let folded = [
            "apiVersion: v1",
            "metadata:",
            "labels: +1",
            "name: n1",
            "status:",
            "conditions:",
            "- message: |- +4",
            "- message: ok",
            "type: DiskPressure",
        ];
        assert_eq!(shown(&view), folded);
        view.replace(&lines(&NODE.replace("zone: a", "zone: b")));
        assert_eq!(shown(&view), folded);
        assert_eq!(view.toggle("/metadata/labels").as_deref(), Some("/metadata/labels"));
        assert!(shown(&view).contains(&"zone: b".to_owned()));
        assert_eq!(view.toggle("/apiVersion"), None, "it is in no block");
    }

    #[test]
    fn all_blocks_are_folded_and_unfolded() {
        let mut view = view(NODE);
        view.toggle("/metadata");
        view.toggle_all();
        assert_eq!(shown(&view), ["apiVersion: v1", "metadata: +3", "status: +8"]);
        view.toggle("/status");
        assert_eq!(shown(&view)[2..], ["status:", "conditions: +7"], "inner blocks stay folded");
        view.toggle_all();
        view.toggle_all();
        assert_eq!(shown(&view).len(), NODE.lines().count());
    }

    #[test]
    fn a_search_goes_from_match_to_match_through_folded_blocks_and_back_to_where_it_began() {
        let mut view = view(NODE);
        view.toggle_all();
        let start: Arc<str> = "/metadata".into();
        let found = view.search(&Filter::parse("message"), Some(&start));
        assert_eq!(found.as_deref(), Some("/status/conditions/0"));
        assert!(shown(&view).contains(&"- message: |- +4".to_owned()), "{:?}", shown(&view));
        assert_eq!(view.match_count(), Some(2));
        let second = view.next_match(Some("/status/conditions/0"), false);
        assert_eq!(second.as_deref(), Some("/status/conditions/1"));
        assert_eq!(view.match_number("/status/conditions/1"), Some(2));
        let around = view.next_match(Some("/status/conditions/1"), false);
        assert_eq!(around.as_deref(), Some("/status/conditions/0"));
        let back = view.next_match(Some("/status/conditions/0"), true);
        assert_eq!(back.as_deref(), Some("/status/conditions/1"));
        assert_eq!(view.search(&Filter::parse("nowhere"), back.as_ref()), Some(start.clone()));
        assert_eq!((view.match_count(), view.next_match(Some("/status"), false)), (Some(0), None));
        assert_eq!(view.search(&Filter::NONE, back.as_ref()), Some(start), "it was not kept");
        view.search(&Filter::parse("name"), None);
        view.keep_search();
        assert_eq!(view.search(&Filter::NONE, back.as_ref()), None);
        assert_eq!(view.match_count(), None);
    }
}
