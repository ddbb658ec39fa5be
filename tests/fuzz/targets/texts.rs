//! Fuzz targets: short texts that a user types or that are in fields of objects.

use std::str;

use kordon::{
    app::filter::{Filter, Filterable},
    k8s::error,
    ui::{Role, Theme, text},
};
use kordon_core::{
    cluster::{CordonNote, DrainClaim, Labels, Name, Node, OperationId, Selector, Version, quantity},
    engine::{Origin, ServerVersion, Settings},
    plan::{MetadataEdits, MetadataField, TaintEdits, syntax, taint_edits},
    visible,
};
use kordon_time::{ClusterTime, Span, Timestamp};

use super::assert_harmless;

/// Input: a selector. After it is printed and parsed again, it selects the same objects.
pub fn selector(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let Ok(selector) = Selector::parse(text) else { return };
    assert_eq!(Selector::parse(&selector.to_string()).as_ref(), Ok(&selector), "of {selector}");
    let labels = Labels::from([("app".into(), "web".into()), ("a".into(), "".into())]);
    let parts =
        selector.requirements.iter().all(|one| Selector { requirements: vec![one.clone()] }.matches(&labels));
    assert_eq!(selector.matches(&labels), parts, "all of {selector} must hold");
}

/// Input: a quantity. The amount in whole units is the amount in thousandths, divided by 1000 and rounded away from
/// zero. A sign in front changes only the sign of the amount. Every amount can be shown.
pub fn quantity(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let (milli, units) = (quantity::parse_milli(text), quantity::parse_units(text));
    assert_eq!(milli.is_some(), units.is_some(), "{text:?}");
    let (Some(milli), Some(units)) = (milli, units) else { return };
    if milli.abs() < i64::MAX {
        let rounded = milli.unsigned_abs().div_ceil(1000);
        assert_eq!(units.unsigned_abs(), rounded, "{text:?}: {milli} thousandths, {units} units");
    }
    if !text.starts_with(['+', '-']) {
        let signed = |sign: &str| quantity::parse_milli(&format!("{sign}{text}"));
        assert_eq!((signed("-"), signed("+")), (Some(-milli), Some(milli)), "{text:?}");
    }
    for resource in ["cpu", "memory", "hugepages-2Mi", "example.com/gpu"] {
        assert!(
            !quantity::amount(resource, units).is_empty() && !quantity::amount(resource, milli).is_empty()
        );
    }
    assert!(!text::memory(units).is_empty() && !text::cores(milli).is_empty());
}

/// Input: taints or labels to change. Accepted changes are valid for the API server, can be applied to a node, and can
/// be read again.
pub fn edits(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let words: Vec<&str> = text.split('\n').collect();
    let overwrite = data.len().is_multiple_of(2);
    match TaintEdits::parse(words.iter().copied(), overwrite) {
        Ok(edits) => {
            assert_eq!(taint_edits::validate(&edits.add), [], "{edits:?}");
            assert!(words.iter().all(|word| TaintEdits::is_word(word)), "{words:?}");
            let mut node = Node { taints: edits.add.clone().into(), ..Node::default() };
            let _ = edits.over(&node);
            node.taints = Vec::new().into();
            let only = TaintEdits { remove: Vec::new(), ..edits };
            assert_eq!(only.over(&node).as_ref(), Ok(&only.add));
            let printed: Vec<String> = only.add.iter().map(ToString::to_string).collect();
            if !printed.is_empty() {
                let again = TaintEdits::parse(printed.iter().map(String::as_str), overwrite);
                assert_eq!(again, Ok(only), "{printed:?}");
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    let node = Node { annotations: Some(Labels::default()), ..Node::default() };
    for field in MetadataField::ALL {
        match MetadataEdits::parse(field, words.iter().copied(), overwrite) {
            Ok(edits) => {
                assert!(words.iter().all(|word| MetadataEdits::is_word(word)), "{words:?}");
                assert!(edits.set.keys().all(|key| syntax::key(&key.to_lowercase()).is_ok()), "{edits:?}");
                let is_value =
                    |value: &Name| field == MetadataField::Annotations || syntax::value(value).is_ok();
                assert!(edits.set.values().all(is_value), "{edits:?}");
                let entries = edits.over(&node).expect("nothing is overwritten");
                assert!(edits.set.iter().all(|(key, value)| entries.get(key) == Some(value)), "{edits:?}");
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

/// Input: a field of an object, a flag as `flag=value`, or a text in one of kordon's own formats.
pub fn fields(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let now = Timestamp::from_secs(1_800_000_000);
    if let Some(time) = Timestamp::parse(text) {
        let seconds = Timestamp::parse(&time.to_time()).expect("what is written can be read");
        assert!(time.since(seconds) < Span::from_secs(1) && seconds <= time, "{text}");
        assert!(Timestamp::parse(&time.to_micro_time()).is_some());
        let _ = (text::age(now, time), text::left(time, now), text::clock(time), time.to_string());
        assert_eq!(ClusterTime::parse(text), Some(ClusterTime::new(time)));
    }
    if let Some(note) = CordonNote::parse(text) {
        // Times are written with millisecond precision, so the text is compared after one round trip.
        let written = CordonNote::parse(&note.to_text()).expect("what is written can be read");
        assert_eq!(CordonNote::parse(&written.to_text()), Some(written));
        let _ = note.text(now);
    }
    if let Some(claim) = DrainClaim::parse(text) {
        let written = DrainClaim::parse(&claim.to_text()).expect("what is written can be read");
        assert_eq!(DrainClaim::parse(&written.to_text()), Some(written));
        let _ = claim.text(now);
    }
    if let Ok(id) = text.parse::<OperationId>() {
        assert_eq!(id.to_string(), text);
        assert_harmless(text);
    }
    let _ = Version::parse(text);
    let version = ServerVersion::parse(text);
    if let Some(version) = version {
        assert_eq!(ServerVersion::parse(&version.to_string()), Some(version));
    }
    let mut settings = Settings::defaults(version.unwrap_or(ServerVersion::new(1, 25)));
    for line in text.lines() {
        let Some((flag, value)) = line.split_once('=') else { continue };
        if settings.set(flag, value, Origin::Cluster) == Ok(true) {
            let _ = (settings.rows(), settings.rules(), settings.clone().as_controller());
        }
    }
}

struct Row<'a>(&'a str);

impl Filterable for Row<'_> {
    fn field(&self, key: &str) -> Option<String> {
        ["zone", "ready", "größe"].contains(&key).then(|| self.0.to_owned())
    }
    fn texts(&self, found: &mut dyn FnMut(&str)) {
        self.0.split('/').for_each(found);
    }
}

/// Input: a filter and a row. The filter gives the same result after it was shown and typed again.
pub fn filter(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let (text, row) = text.split_once('\n').unwrap_or((text, "Node-17/größe"));
    let (filter, row) = (Filter::parse(text), Row(row));
    let again = Filter::parse(filter.text());
    assert_eq!(again, filter);
    let each = text.split_whitespace().all(|word| Filter::parse(word).matches(&row));
    assert_eq!(filter.matches(&row), each, "every term of {text:?} must hold");
    assert!(!filter.is_empty() || filter.matches(&row), "nothing asked");
}

/// Input: any text. Cleaned, it is harmless on a terminal; truncated, it fits the given width.
pub fn text(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let cleaned = visible::text(&text);
    assert_harmless(&cleaned);
    assert!(!cleaned.contains('\n'), "{cleaned:?}");
    assert_eq!(visible::text(&cleaned), cleaned, "once is enough");
    let plain = error::plain(&text);
    assert_harmless(&plain);
    assert!(!plain.contains('\n') && plain.chars().count() < 5000, "{plain:?}");
    for cells in [0, 1, 2, 7, 40] {
        let cut = text::cut(&cleaned, cells);
        assert!(text::width(&cut) <= cells, "{cut:?} in {cells} cells");
        for lines in [0, 1, 3] {
            let wrapped = text::wrap(&cleaned, cells, lines);
            assert!(wrapped.len() <= lines, "{wrapped:?}");
            assert!(wrapped.iter().all(|line| text::width(line) <= cells), "{wrapped:?} in {cells} cells");
        }
    }
    let _ = text::brief(&cleaned);
}

/// Input: a theme. It either has every role or is an error.
pub fn theme(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    match Theme::parse(text) {
        Ok(theme) => Role::ALL.iter().for_each(|role| _ = theme.style(*role)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
