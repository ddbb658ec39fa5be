//! Reads kube-scheduler's log: the order in which it saw changes and made decisions, and all scores.

use std::collections::BTreeMap;

use kordon_core::cluster::Key;
use kordon_time::Timestamp;

/// Flags of kube-scheduler. With them, its log has all lines that this module reads.
pub const FLAGS: [&str; 4] =
    ["--v=4", "--vmodule=schedule_one=10", "--kube-api-qps=500", "--kube-api-burst=1000"];

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    pub at: Timestamp,
    pub entry: LogEntry,
}

/// The content of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogEntry {
    /// An attempt to schedule the pod starts.
    Attempt(Key),
    /// A plugin's weighted score of a node.
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
    /// No node is feasible, with upstream's message.
    Unschedulable {
        pod: Key,
        why: String,
    },
    /// A pod without a node was added or changed.
    Waiting(Key),
    /// A pod on a node was added.
    Assigned(Key),
    /// A pod on a node was changed.
    Changed(Key),
    /// A pod on a node was deleted.
    Deleted(Key),
    NodeAdded(String),
    NodeChanged(String),
}

/// Reads the lines of a log. Their times, which have no year, are in the year of `around`.
pub fn read(log: &str, around: Timestamp) -> Vec<LogLine> {
    let year = &around.to_time()[..4];
    log.lines().filter_map(|line| read_line(line, year)).collect()
}

/// Reads a line such as `I1121 10:27:02.123456   12345 schedule_one.go:123] "Attempting to schedule pod"
/// pod="default/x"`.
fn read_line(line: &str, year: &str) -> Option<LogLine> {
    let (head, text) = line.split_once("] \"")?;
    let (message, rest) = text.split_once('"')?;
    let mut values = fields(rest);
    let mut text = |name: &str| values.remove(name);
    let key = |text: String| text.split_once('/').map(|(namespace, name)| Key::new(namespace, name));
    let entry = match message {
        "Attempting to schedule pod" => LogEntry::Attempt(key(text("pod")?)?),
        "Plugin scored node for pod" => LogEntry::Scored {
            pod: key(text("pod")?)?,
            plugin: text("plugin")?,
            node: text("node")?,
            points: text("score")?.parse().ok()?,
        },
        "Successfully bound pod to node" => LogEntry::Bound { pod: key(text("pod")?)?, node: text("node")? },
        "Unable to schedule pod; no fit; waiting" => {
            LogEntry::Unschedulable { pod: key(text("pod")?)?, why: text("err")? }
        }
        "Add event for unscheduled pod" | "Update event for unscheduled pod" => {
            LogEntry::Waiting(key(text("pod")?)?)
        }
        "Add event for scheduled pod" => LogEntry::Assigned(key(text("pod")?)?),
        "Update event for scheduled pod" => LogEntry::Changed(key(text("pod")?)?),
        "Delete event for scheduled pod" => LogEntry::Deleted(key(text("pod")?)?),
        "Add event for node" => LogEntry::NodeAdded(text("node")?),
        "Update event for node" => LogEntry::NodeChanged(text("node")?),
        _ => return None,
    };
    let (date, time) = head.get(1..)?.split_once(' ')?;
    let time = time.split_once(' ')?.0;
    let (month, day) = date.split_at_checked(2)?;
    Some(LogLine { at: Timestamp::parse(&format!("{year}-{month}-{day}T{time}Z"))?, entry })
}

/// Parses `a="text" b=5`. If a name occurs twice, the last value counts.
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

/// Returns the text up to the closing quote, and the rest.
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
