//! The log of kube-scheduler, which tells in which order it saw what and decided what, and every score it gave.

use std::collections::BTreeMap;

use kordon::{cluster::Key, time::Timestamp};

/// Flags with which the log tells all that is read here.
pub const FLAGS: [&str; 4] =
    ["--v=4", "--vmodule=schedule_one=10", "--kube-api-qps=500", "--kube-api-burst=1000"];

/// A line that matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub at: Timestamp,
    pub entry: Entry,
}

/// What a line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// It begins to look for a node for the pod.
    Attempt(Key),
    /// What a plugin gives a node, by its weight.
    Scored {
        pod: Key,
        plugin: String,
        node: String,
        points: i64,
    },
    Bound {
        pod: Key,
        node: String,
    },
    /// No node would do; upstream's own words.
    Unfit {
        pod: Key,
        why: String,
    },
    /// It took in a pod without a node, or a change of it.
    Waiting(Key),
    /// It took in a pod on a node.
    Placed(Key),
    /// It took in a change of a pod on a node.
    Changed(Key),
    /// It took in that a pod has gone from its node.
    Gone(Key),
    NodeAdded(String),
    NodeChanged(String),
}

/// Reads the lines that matter. Times are those of the year of `around`.
pub fn read(log: &str, around: Timestamp) -> Vec<Line> {
    let year = &around.to_time()[..4];
    log.lines().filter_map(|line| read_line(line, year)).collect()
}

/// `I1121 10:27:02.123456   12345 schedule_one.go:123] "Attempting to schedule pod" pod="default/x"`
fn read_line(line: &str, year: &str) -> Option<Line> {
    let (head, text) = line.split_once("] \"")?;
    let (message, rest) = text.split_once('"')?;
    let mut values = fields(rest);
    let mut text = |name: &str| values.remove(name);
    let key = |text: String| text.split_once('/').map(|(namespace, name)| Key::new(namespace, name));
    let entry = match message {
        "Attempting to schedule pod" => Entry::Attempt(key(text("pod")?)?),
        "Plugin scored node for pod" => Entry::Scored {
            pod: key(text("pod")?)?,
            plugin: text("plugin")?,
            node: text("node")?,
            points: text("score")?.parse().ok()?,
        },
        "Successfully bound pod to node" => Entry::Bound { pod: key(text("pod")?)?, node: text("node")? },
        "Unable to schedule pod; no fit; waiting" => {
            Entry::Unfit { pod: key(text("pod")?)?, why: text("err")? }
        }
        "Add event for unscheduled pod" | "Update event for unscheduled pod" => {
            Entry::Waiting(key(text("pod")?)?)
        }
        "Add event for scheduled pod" => Entry::Placed(key(text("pod")?)?),
        "Update event for scheduled pod" => Entry::Changed(key(text("pod")?)?),
        "Delete event for scheduled pod" => Entry::Gone(key(text("pod")?)?),
        "Add event for node" => Entry::NodeAdded(text("node")?),
        "Update event for node" => Entry::NodeChanged(text("node")?),
        _ => return None,
    };
    let (date, time) = head.get(1..)?.split_once(' ')?;
    let time = time.split_once(' ')?.0;
    let (month, day) = date.split_at_checked(2)?;
    Some(Line { at: Timestamp::parse(&format!("{year}-{month}-{day}T{time}Z"))?, entry })
}

/// `a="text" b=5`; the last of equal names counts.
fn fields(mut text: &str) -> BTreeMap<String, String> {
    let mut fields = BTreeMap::new();
    while let Some((name, rest)) = text.split_once('=') {
        let (value, after) = match rest.strip_prefix('"') {
            Some(quoted) => unquoted(quoted),
            None => {
                let (value, after) = rest.split_once(' ').unwrap_or((rest, ""));
                (value.to_owned(), after)
            }
        };
        fields.insert(name.trim().to_owned(), value);
        text = after;
    }
    fields
}

/// The text up to the closing quote, and what comes after that.
fn unquoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((place, character)) = characters.next() {
        match character {
            '"' => return (value, &text[place + 1..]),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            other => value.push(other),
        }
    }
    (value, "")
}
