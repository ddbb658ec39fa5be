//! The journal: events of nodes and pods, actions of kordon, and errors.

use ratatui::{buffer::Buffer, layout::Rect};

use super::{Nothing, draw_full_text, open, say_nothing, table_of};
use crate::{
    app::Pane,
    model::JournalEntry,
    ui::{
        Scene, text,
        theme::Role,
        widgets::{Cell, Column, Width, segments::Runs},
    },
};
use kordon_core::{engine::Severity, forecast::accuracy::Judgement, visible};

/// Minimum number of cells of an object's name. Fewer would not tell the nodes of a zone apart.
const NAME: usize = 12;

/// ```text
/// ─ 5 Journal  21 ─────────────────────────────────────────
/// 03:12:45  • evicted pod shop/web-1: from node a-03, by its taint · predicted 6s before
/// 03:12:40  ▲ nodes a-03 and 3 more became Unknown: no heartbeat for 50s
/// 03:10:02  ▲ watch/pods broken: connection reset  ×3
/// ```
/// Draws the entries, newest first. Returns the number of rows that fit.
pub fn draw(scene: &Scene, area: Rect, buf: &mut Buffer) -> usize {
    let list = &scene.screen.journal;
    let journal = &scene.shown.journal;
    let facts = Runs::new(&text::count(journal.len()), scene.style(Role::Dim));
    let inner = open(scene, Pane::Journal, area, facts, buf);
    let selected = list.selected().and_then(|number| journal.entry(*number));
    let inner = draw_full_text(scene, Pane::Journal, selected.map(full_text), inner, buf);
    let page = usize::from(inner.height);
    if list.is_empty() {
        say_nothing(scene, Pane::Journal, nothing(scene), inner, buf);
        return page;
    }
    let first = list.first_shown(page);
    let shown = || list.keys().iter().skip(first).take(page).filter_map(|number| journal.entry(*number));
    let times = shown().map(|entry| text::width(&text::moment(entry.last, scene.now))).max().unwrap_or(0);
    // Width of the text: the inner width without the times, the gap between columns, and the scroll thumb.
    let room = usize::from(inner.width).saturating_sub(times + 4);
    let columns = vec![
        Column::plain("", Width::Fixed(u16::try_from(times).unwrap_or(8))).named("time"),
        Column::plain("", Width::Grow(20, 1)).named("entry"),
    ];
    let table = table_of(scene, Pane::Journal, list, columns, inner);
    let cells_of = |row| {
        let entry = list.keys().get(row).and_then(|number| journal.entry(*number));
        entry.map(|entry| cells(scene, entry, room)).unwrap_or_default()
    };
    scene.record(Pane::Journal, &table, cells_of);
    table.render_bare(inner, buf, cells_of);
    page
}

/// Reason why the journal is empty.
pub(super) fn nothing(scene: &Scene) -> Nothing {
    if !scene.screen.filter(Pane::Journal).is_empty() {
        return super::no_match(scene, Pane::Journal);
    }
    ("○", "no entries yet".into(), Role::Dim)
}

fn cells(scene: &Scene, entry: &JournalEntry, room: usize) -> Vec<Cell> {
    let (glyph, role) = sign(entry.level);
    let (dim, base, strong) = (scene.style(Role::Dim), scene.style(Role::Base), scene.style(Role::Strong));
    let phrase = Phrase::new(entry, room.saturating_sub(2));
    let what = Cell::new(glyph, scene.style(role))
        .and(" ", dim)
        .and(&phrase.before, base)
        .and(&phrase.name, scene.style(Role::Accent))
        .and(&phrase.others, strong)
        .and(&phrase.after, base)
        .and(&phrase.detail, dim)
        .and(&phrase.judgement, scene.style(if phrase.is_miss { Role::LevelWarning } else { Role::Dim }))
        .and(&phrase.times, strong);
    vec![Cell::new(&text::moment(entry.last, scene.now), dim), what]
}

/// Glyph and theme role of a severity.
pub(super) const fn sign(level: Severity) -> (&'static str, Role) {
    match level {
        Severity::Info => ("•", Role::LevelInfo),
        Severity::Warning => ("▲", Role::LevelWarning),
        Severity::Error => ("✗", Role::LevelError),
    }
}

/// The whole text of a journal entry.
pub(super) fn words(entry: &JournalEntry) -> String {
    Phrase::whole(entry).parts().concat()
}

/// Parts of an entry in their order. If space is short, the prediction's accuracy and the detail are dropped, then the
/// text after the name is cut if a verb before the name says what happened, then the middle of the name. The text that
/// says what happened always stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Phrase {
    before: String,
    name: String,
    others: String,
    after: String,
    detail: String,
    judgement: String,
    is_miss: bool,
    times: String,
}

impl Phrase {
    fn new(entry: &JournalEntry, room: usize) -> Self {
        let mut phrase = Self::whole(entry);
        if phrase.width() > room && !phrase.is_miss {
            phrase.judgement.clear();
        }
        if phrase.width() > room {
            phrase.detail.clear();
        }
        if phrase.width() > room {
            phrase.judgement.clear();
        }
        if phrase.width() > room && !entry.verb.is_empty() {
            let cells = room.saturating_sub(phrase.width() - text::width(&phrase.after));
            // A single `…` right after the name would look like a cut name.
            phrase.after =
                if cells > 1 { text::cut(&phrase.after, cells).into_owned() } else { String::new() };
        }
        let name = text::width(&phrase.name);
        let fixed = phrase.width() - name;
        let kept = room.saturating_sub(fixed).max(NAME);
        phrase.name = text::cut_middle(&phrase.name, kept).into_owned();
        phrase
    }

    fn whole(entry: &JournalEntry) -> Self {
        let subject = entry.subject();
        let word = subject.and_then(|subject| subject.word(entry.subjects.len()));
        let before: Vec<&str> =
            [entry.verb.as_str()].into_iter().filter(|verb| !verb.is_empty()).chain(word).collect();
        let spaced = |words: &str| if words.is_empty() { String::new() } else { format!(" {words}") };
        let others = match entry.others() {
            0 => String::new(),
            others => format!(" and {} more", text::count(others)),
        };
        let words = text::brief(&entry.predicate());
        let mut before = before.join(" ");
        if !before.is_empty() && subject.is_some() {
            before.push(' ');
        }
        Self {
            before,
            name: subject.map(|subject| visible::text(&subject.to_string()).into_owned()).unwrap_or_default(),
            others,
            after: if subject.is_some() { spaced(&words) } else { words },
            detail: if entry.detail.is_empty() { String::new() } else { format!(": {}", entry.detail) },
            judgement: entry.prediction().map_or_else(String::new, |words| format!(" · {words}")),
            is_miss: matches!(entry.judgement, Some(Judgement::Off(_) | Judgement::NotPredicted)),
            times: if entry.times > 1 { format!("  ×{}", text::count(entry.times)) } else { String::new() },
        }
    }

    fn parts(&self) -> [&str; 7] {
        let Self { before, name, others, after, detail, judgement, is_miss: _, times } = self;
        [before, name, others, after, detail, judgement, times]
    }

    fn width(&self) -> usize {
        self.parts().into_iter().map(text::width).sum()
    }
}

/// The whole text of a journal entry, and its cause.
pub(super) fn full_text(entry: &JournalEntry) -> String {
    let why = entry.why.to_string();
    let why = if why.is_empty() { String::new() } else { format!(" ← {why}") };
    format!("{}{why}", words(entry))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::JournalSubject;
    use kordon_core::{cluster::Key, engine::Why};
    use kordon_time::{Span, Timestamp};

    fn entry(verb: &str, subject: JournalSubject, text: &str) -> JournalEntry {
        let entry = JournalEntry::new(Timestamp::EPOCH, Severity::Info, "", text, Why::default());
        JournalEntry { detail: "from node a-03".into(), ..entry.with_verb(verb).about(subject) }
    }

    fn shown(entry: &JournalEntry, room: usize) -> String {
        Phrase::new(entry, room).parts().concat()
    }

    #[test]
    fn the_verb_is_never_cut_and_the_name_gives_way_last() {
        let pod = JournalSubject::Pod(Key::new("shop", "web-7d9f-x2k"), None);
        let mut evicted = entry("evicted", pod, "");
        evicted.judgement = Some(Judgement::Predicted { before: Span::from_millis(5_400) });
        let whole = "evicted pod shop/web-7d9f-x2k: from node a-03 · predicted 5s before";
        assert_eq!(shown(&evicted, 80), whole);
        assert_eq!(shown(&evicted, 60), "evicted pod shop/web-7d9f-x2k: from node a-03");
        assert_eq!(shown(&evicted, 40), "evicted pod shop/web-7d9f-x2k");
        assert_eq!(shown(&evicted, 26), "evicted pod shop/we…9f-x2k");
        assert_eq!(shown(&evicted, 3), "evicted pod shop/w…f-x2k");
        evicted.judgement = Some(Judgement::NotPredicted);
        assert_eq!(
            shown(&evicted, 50),
            "evicted pod shop/web-7d9f-x2k · not predicted",
            "a miss outlives the detail"
        );
    }

    #[test]
    fn the_text_after_a_name_is_cut_before_the_name() {
        let node = JournalSubject::Node("general-1b-01".into());
        let tainted = entry("tainted", node, "node.kubernetes.io/unreachable:NoExecute");
        assert_eq!(shown(&tainted, 42), "tainted node general-1b-01 unreachable:No…");
        assert_eq!(shown(&tainted, 27), "tainted node general-1b-01");
        assert_eq!(shown(&tainted, 25), "tainted node genera…1b-01");
    }

    #[test]
    fn entries_read_as_sentences() {
        let mut unknown = entry("", JournalSubject::Node("a-03".into()), "became Unknown");
        assert_eq!(shown(&unknown, 80), "node a-03 became Unknown: from node a-03");
        unknown.subjects.push(JournalSubject::Node("a-04".into()));
        unknown.times = 2;
        assert_eq!(shown(&unknown, 40), "nodes a-03 and 1 more became Unknown  ×2");
        let tainted =
            entry("tainted", JournalSubject::Node("a-03".into()), "node.kubernetes.io/unreachable:NoExecute");
        assert_eq!(shown(&tainted, 40), "tainted node a-03 unreachable:NoExecute");
        let plain = JournalEntry::new(Timestamp::EPOCH, Severity::Info, "", "no evictions", Why::default());
        assert_eq!(shown(&plain, 40), "no evictions");
    }
}
