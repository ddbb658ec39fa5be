//! Short names of zones.

use kordon_core::cluster::ZoneKey;

/// Common prefix of all zone names, which short names leave out: the short name of `eu-central-1b` is `b`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZoneNames {
    prefix: String,
}

impl ZoneNames {
    pub fn for_zones<'a>(zones: impl IntoIterator<Item = &'a ZoneKey>) -> Self {
        let names: Vec<String> = zones.into_iter().map(ZoneKey::short).collect();
        Self { prefix: common_prefix(&names).to_owned() }
    }

    /// Returns the name of a zone without the common prefix.
    pub fn short(&self, zone: &ZoneKey) -> String {
        let name = zone.short();
        match name.strip_prefix(&self.prefix) {
            Some("") | None => name,
            Some(rest) => rest.to_owned(),
        }
    }
}

/// Returns the common prefix of all names. It ends at a boundary of a word or number, and leaves a part of each name.
fn common_prefix(names: &[String]) -> &str {
    let [first, rest @ ..] = names else { return "" };
    if rest.is_empty() {
        return "";
    }
    let is_common = |end: &usize| {
        names
            .iter()
            .all(|name| name.len() > *end && name.is_char_boundary(*end) && name[..*end] == first[..*end])
    };
    let is_end = |end: &usize| names.iter().all(|name| is_end_of_word(name, *end));
    let end = (0..first.len()).rev().filter(is_common).find(is_end).unwrap_or(0);
    &first[..end]
}

fn is_end_of_word(name: &str, end: usize) -> bool {
    let (before, after) = (name[..end].chars().next_back(), name[end..].chars().next());
    match (before, after) {
        (Some(before), Some(after)) if before.is_ascii_digit() => !after.is_ascii_digit(),
        (Some(before), Some(after)) => !(before.is_alphabetic() && after.is_alphabetic()),
        (None, _) | (_, None) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_named_by_what_tells_them_apart() {
        let short = |names: &[&str]| {
            let zones: Vec<ZoneKey> = names
                .iter()
                .map(|name| ZoneKey { region: Default::default(), zone: (*name).into() })
                .collect();
            let names = ZoneNames::for_zones(&zones);
            zones.iter().map(|zone| names.short(zone)).collect::<Vec<_>>()
        };
        assert_eq!(short(&["eu-central-1a", "eu-central-1b"]), ["a", "b"]);
        assert_eq!(short(&["eu-1/a", "eu-1/b"]), ["a", "b"]);
        assert_eq!(short(&["us-east-1a", "us-west-2b"]), ["east-1a", "west-2b"]);
        assert_eq!(short(&["zone-10", "zone-11"]), ["10", "11"], "no number is cut");
        assert_eq!(short(&["alpha", "apple"]), ["alpha", "apple"], "no word is cut");
        assert_eq!(short(&["eu-1a", "eu-1"]), ["1a", "1"]);
        assert_eq!(short(&["zone"]), ["zone"]);
        assert_eq!(short(&["ä", "ö"]), ["ä", "ö"]);
        assert_eq!(short(&[]), Vec::<String>::new());
        let names = ZoneNames::for_zones(&[
            ZoneKey { region: "eu".into(), zone: "eu-a".into() },
            ZoneKey { region: "eu".into(), zone: "eu-b".into() },
        ]);
        let elsewhere = ZoneKey { region: "us".into(), zone: "us-a".into() };
        assert_eq!(names.short(&elsewhere), "us-a", "a zone that was not among them keeps its name");
    }
}
