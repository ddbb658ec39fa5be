//! One line of the journal, and how it is read back.

use serde_json::{Value, json};

use crate::{
    cluster::{Key, NodeName, OperationId, Taint, TaintEffect, Uid},
    engine::Severity,
    operation::{Request, RequestId, RequestOutcome},
    plan::{
        DrainOptions, kubectl,
        undo::{NodeUndo, UndoStep},
    },
    time::{Span, Timestamp},
};

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub struct JournalLine {
    pub at: Timestamp,
    /// The undertaking that it belongs to.
    pub operation: OperationId,
    pub what: LineKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum LineKind {
    Began(Box<OperationStart>),
    /// It was cut off, and somebody goes on with it.
    Resumed {
        by: String,
    },
    /// A write that is about to be sent.
    Asked {
        id: u64,
        object: String,
        task: String,
        why: String,
        method: String,
        path: String,
        body: Value,
        undo: Option<NodeUndo>,
    },
    /// What came of it.
    Came {
        id: u64,
        outcome: String,
        text: String,
    },
    Said {
        level: Severity,
        subject: String,
        text: String,
    },
    /// It is over; how, and in short.
    Ended {
        end: String,
        text: String,
    },
    /// What it changed was put back, by the undertaking of that name.
    Undone {
        by: String,
    },
}

/// An undertaking as it began.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperationStart {
    pub by: String,
    pub why: String,
    pub until: Option<Timestamp>,
    pub context: String,
    pub server: String,
    /// `drain`, `cordon`, …
    pub action: String,
    /// The same in words.
    pub command: String,
    /// Of a drain: how.
    pub drain: Option<DrainOptions>,
    pub nodes: Vec<(NodeName, Uid)>,
    /// The pods that are to go.
    pub pods: Vec<(Key, Uid)>,
    /// Guard rails that were overridden, and other cautions that were waived.
    pub overrides: Vec<String>,
}

impl LineKind {
    pub fn asked(errand: &Request) -> Self {
        let call = errand.task.call();
        let (method, path, body) =
            call.map(|call| (call.method.to_owned(), call.path, call.body)).unwrap_or_default();
        Self::Asked {
            id: errand.id.0,
            object: errand.task.object(),
            task: errand.task.to_string(),
            why: errand.why.clone(),
            method,
            path,
            body,
            undo: errand.undo.clone(),
        }
    }

    pub fn came(id: RequestId, outcome: &RequestOutcome) -> Self {
        Self::Came { id: id.0, outcome: outcome.word().into(), text: outcome.to_string() }
    }
}

impl JournalLine {
    /// The line, with its end.
    pub fn to_text(&self) -> String {
        let mut value = self.what.to_value();
        value["at"] = json!(self.at);
        value["operation"] = json!(self.operation);
        format!("{value}\n")
    }

    /// Reads a line; none where it is none of ours.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(text).ok()?;
        let at = Timestamp::parse(value["at"].as_str()?)?;
        Some(Self { at, operation: value["operation"].as_str()?.into(), what: LineKind::parse(&value)? })
    }
}

impl LineKind {
    fn to_value(&self) -> Value {
        match self {
            Self::Began(beginning) => beginning.to_value(),
            Self::Resumed { by } => json!({"what": "resumed", "by": by}),
            Self::Asked { id, object, task, why, method, path, body, undo } => json!({
                "what": "asked", "id": id, "object": object, "task": task, "why": why, "method": method,
                "path": path, "body": body, "undo": undo.as_ref().map(undo_value),
            }),
            Self::Came { id, outcome, text } => {
                json!({"what": "came", "id": id, "outcome": outcome, "text": text})
            }
            Self::Said { level, subject, text } => {
                json!({"what": "said", "level": level_word(*level), "subject": subject, "text": text})
            }
            Self::Ended { end, text } => json!({"what": "ended", "end": end, "text": text}),
            Self::Undone { by } => json!({"what": "undone", "by": by}),
        }
    }

    fn parse(value: &Value) -> Option<Self> {
        Some(match value["what"].as_str()? {
            "began" => Self::Began(Box::new(OperationStart::parse(value)?)),
            "resumed" => Self::Resumed { by: text_of(value, "by")? },
            "asked" => Self::Asked {
                id: value["id"].as_u64()?,
                object: text_of(value, "object")?,
                task: text_of(value, "task")?,
                why: text_of(value, "why")?,
                method: text_of(value, "method")?,
                path: text_of(value, "path")?,
                body: value["body"].clone(),
                undo: parse_undo(&value["undo"]),
            },
            "came" => Self::Came {
                id: value["id"].as_u64()?,
                outcome: text_of(value, "outcome")?,
                text: text_of(value, "text")?,
            },
            "said" => Self::Said {
                level: [Severity::Info, Severity::Warning, Severity::Error]
                    .into_iter()
                    .find(|level| value["level"] == level_word(*level))?,
                subject: text_of(value, "subject")?,
                text: text_of(value, "text")?,
            },
            "ended" => Self::Ended { end: text_of(value, "end")?, text: text_of(value, "text")? },
            "undone" => Self::Undone { by: text_of(value, "by")? },
            _ => return None,
        })
    }
}

impl OperationStart {
    fn to_value(&self) -> Value {
        let nodes: Vec<Value> =
            self.nodes.iter().map(|(name, uid)| json!({"name": name, "uid": uid})).collect();
        let pods: Vec<Value> = self.pods.iter().map(|(pod, uid)| json!({"pod": pod, "uid": uid})).collect();
        json!({
            "what": "began", "by": self.by, "why": self.why, "until": self.until, "context": self.context,
            "server": self.server, "action": self.action, "command": self.command,
            "drain": self.drain.as_ref().map(drain_value), "nodes": nodes, "pods": pods,
            "overrides": self.overrides,
        })
    }

    fn parse(value: &Value) -> Option<Self> {
        let list = |field: &str| value[field].as_array().cloned().unwrap_or_default();
        let node = |node: &Value| Some((node["name"].as_str()?.into(), node["uid"].as_str()?.into()));
        let pod = |pod: &Value| {
            let (namespace, name) = pod["pod"].as_str()?.split_once('/')?;
            Some((Key::new(namespace, name), Uid::from(pod["uid"].as_str()?)))
        };
        Some(Self {
            by: text_of(value, "by")?,
            why: text_of(value, "why")?,
            until: value["until"].as_str().and_then(Timestamp::parse),
            context: text_of(value, "context")?,
            server: text_of(value, "server")?,
            action: text_of(value, "action")?,
            command: text_of(value, "command")?,
            drain: if value["drain"].is_null() { None } else { Some(parse_drain(&value["drain"])?) },
            nodes: list("nodes").iter().map(node).collect::<Option<_>>()?,
            pods: list("pods").iter().map(pod).collect::<Option<_>>()?,
            overrides: list("overrides").iter().filter_map(|text| text.as_str().map(str::to_owned)).collect(),
        })
    }
}

fn text_of(value: &Value, field: &str) -> Option<String> {
    value[field].as_str().map(str::to_owned)
}

const fn level_word(level: Severity) -> &'static str {
    match level {
        Severity::Info => "info",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

fn drain_value(options: &DrainOptions) -> Value {
    let nanos = |span: Option<Span>| span.map(Span::as_nanos);
    json!({
        "force": options.force, "ignoreDaemonsets": options.ignore_daemonsets,
        "deleteEmptydirData": options.delete_emptydir_data, "disableEviction": options.disable_eviction,
        "graceNanos": nanos(options.grace), "timeoutNanos": nanos(options.timeout),
        "skipWaitForDeleteNanos": nanos(options.skip_wait_for_delete), "parallel": options.parallel,
        "podSelector": options.pod_selector.as_ref().map(kubectl::shown),
    })
}

/// None where it cannot be read whole: a drain is not resumed with other options than it began with.
fn parse_drain(value: &Value) -> Option<DrainOptions> {
    let given = |field: &str| value[field].as_bool();
    let span = |field: &str| value[field].as_i64().map(Span::from_nanos);
    let pod_selector = match value["podSelector"].as_str() {
        Some(text) => Some(crate::cluster::Selector::parse(text).ok()?),
        None => None,
    };
    Some(DrainOptions {
        force: given("force")?,
        ignore_daemonsets: given("ignoreDaemonsets")?,
        delete_emptydir_data: given("deleteEmptydirData")?,
        disable_eviction: given("disableEviction")?,
        grace: span("graceNanos"),
        timeout: span("timeoutNanos"),
        skip_wait_for_delete: span("skipWaitForDeleteNanos"),
        parallel: usize::try_from(value["parallel"].as_u64()?).ok()?,
        pod_selector,
        ..DrainOptions::default()
    })
}

fn undo_value(undo: &NodeUndo) -> Value {
    let back = |back: &UndoStep| match back {
        UndoStep::Uncordon => json!({"back": "uncordon"}),
        UndoStep::Cordon => json!({"back": "cordon"}),
        UndoStep::Taint { key, effect, was, left } => json!({
            "back": "taint", "key": key, "effect": effect.as_str(),
            "was": was.as_ref().map(taint_value), "left": left.as_ref().map(taint_value),
        }),
        UndoStep::Label { key, was, left } => json!({"back": "label", "key": key, "was": was, "left": left}),
    };
    let steps: Vec<Value> = undo.steps.iter().map(back).collect();
    json!({"node": undo.node, "uid": undo.uid, "backs": steps})
}

fn parse_undo(value: &Value) -> Option<NodeUndo> {
    let back = |value: &Value| {
        let key = || value["key"].as_str().map(Into::into);
        Some(match value["back"].as_str()? {
            "uncordon" => UndoStep::Uncordon,
            "cordon" => UndoStep::Cordon,
            "taint" => UndoStep::Taint {
                key: key()?,
                effect: TaintEffect::parse(value["effect"].as_str()?),
                was: parse_taint(&value["was"]),
                left: parse_taint(&value["left"]),
            },
            "label" => UndoStep::Label {
                key: key()?,
                was: value["was"].as_str().map(Into::into),
                left: value["left"].as_str().map(Into::into),
            },
            _ => return None,
        })
    };
    Some(NodeUndo {
        node: value["node"].as_str()?.into(),
        uid: value["uid"].as_str()?.into(),
        steps: value["backs"].as_array()?.iter().map(back).collect::<Option<_>>()?,
    })
}

fn taint_value(taint: &Taint) -> Value {
    json!({"key": taint.key, "value": taint.value, "effect": taint.effect.as_str(), "timeAdded": taint.time_added})
}

fn parse_taint(value: &Value) -> Option<Taint> {
    Some(Taint {
        key: value["key"].as_str()?.into(),
        value: value["value"].as_str()?.into(),
        effect: TaintEffect::parse(value["effect"].as_str()?),
        time_added: value["timeAdded"].as_str().and_then(Timestamp::parse),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Selector;

    #[test]
    fn what_is_needed_to_resume_and_to_undo_reads_back_as_it_was() {
        let selector = Selector::parse("app in (a,b),tier!=x").expect("a selector");
        let drain = DrainOptions {
            ignore_daemonsets: true,
            grace: Some(Span::from_secs(5)),
            pod_selector: Some(selector),
            parallel: 3,
            ..DrainOptions::default()
        };
        let beginning = OperationStart {
            by: "alice@desk".into(),
            action: "drain".into(),
            drain: Some(drain),
            nodes: vec![("n1".into(), "u1".into())],
            pods: vec![(Key::new("web", "p"), "u2".into())],
            overrides: vec!["max-nodes".into()],
            ..OperationStart::default()
        };
        let taint =
            Taint { key: "a".into(), value: "1".into(), effect: TaintEffect::NoExecute, time_added: None };
        let undo = NodeUndo {
            node: "n1".into(),
            uid: "u1".into(),
            steps: vec![
                UndoStep::Uncordon,
                UndoStep::Taint {
                    key: "a".into(),
                    effect: TaintEffect::NoExecute,
                    was: None,
                    left: Some(taint),
                },
                UndoStep::Label { key: "l".into(), was: Some("v".into()), left: None },
            ],
        };
        let asked = LineKind::Asked {
            id: 7,
            object: "node/n1".into(),
            task: "cordon".into(),
            why: "because".into(),
            method: "PATCH".into(),
            path: "/api".into(),
            body: json!({"a": 1}),
            undo: Some(undo),
        };
        for what in [LineKind::Began(Box::new(beginning)), asked] {
            let line = JournalLine { at: Timestamp::from_secs(1_800_000_000), operation: "p".into(), what };
            let text = line.to_text();
            assert!(text.ends_with('\n') && text.trim_end().lines().count() == 1);
            assert_eq!(JournalLine::parse(text.as_bytes()), Some(line));
        }
        assert_eq!(JournalLine::parse(b"{\"at\":\"2026-"), None);
    }
}
