//! One line of the journal.

use serde_json::{Value, json};

use crate::k8s;
use kordon_core::{
    cluster::{Key, NodeName, OperationId, Taint, TaintEffect, Uid},
    engine::{Effect, EffectId, Outcome, Severity},
    operation::{Confirmation, PriorPod, Request, RequestId, RequestOutcome},
    plan::{
        DrainOptions, MetadataField,
        undo::{NodeUndo, ScaleUndo, UndoStep, WriteUndo},
    },
    visible,
};
use kordon_time::{ClusterTime, Span, Timestamp};

/// Something that happened in an operation.
#[derive(Clone, Debug, PartialEq)]
pub struct JournalLine {
    pub at: Timestamp,
    pub operation: OperationId,
    pub kind: LineKind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum LineKind {
    Started(Box<OperationStart>),
    /// The operation was resumed after an interruption.
    Resumed {
        by: String,
    },
    /// A write. The line is recorded before the write is sent.
    Request {
        id: u64,
        object: String,
        request: String,
        why: String,
        method: String,
        path: String,
        body: Value,
        undo: Option<WriteUndo>,
    },
    /// The outcome of the request with this id.
    Outcome {
        id: u64,
        outcome: String,
        text: String,
    },
    Notice {
        level: Severity,
        subject: String,
        text: String,
    },
    /// The operation ended; `end` is the kind of end, and `text` is a summary.
    Ended {
        end: String,
        text: String,
    },
    /// Another operation undid the changes of this one.
    Undone {
        by: OperationId,
    },
}

/// Parameters of an operation at its start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperationStart {
    pub by: String,
    /// The operator's reason; may be empty.
    pub reason: String,
    pub until: Option<Timestamp>,
    pub context: String,
    pub server: String,
    /// The kind of operation: `drain`, `cordon`, …
    pub action: String,
    /// The command line that starts the same operation.
    pub command: String,
    /// The options of a drain; none for other actions.
    pub drain: Option<DrainOptions>,
    pub nodes: Vec<(NodeName, Uid)>,
    /// The pods to evict or delete.
    pub pods: Vec<(Key, PriorPod)>,
    /// The guard rails and checks that were overridden.
    pub overrides: Vec<String>,
    /// The confirmation that the operation required; none in journals of older versions.
    pub confirmation: Option<Confirmation>,
}

impl LineKind {
    pub fn request(request: &Request) -> Self {
        let call = request.task.call();
        let (method, path, body) =
            call.map(|call| (call.method.to_owned(), call.path, call.body)).unwrap_or_default();
        Self::Request {
            id: request.id.0,
            object: request.task.object(),
            request: request.task.to_string(),
            why: request.why.clone(),
            method,
            path,
            body,
            undo: request.undo.clone(),
        }
    }

    /// Returns the line for a write of the node lifecycle controller. The line has no undo, because the controller
    /// reverses its own writes as nodes recover.
    pub fn effect(effect: &Effect) -> Self {
        let (method, path) = k8s::write::call(&effect.write);
        Self::Request {
            id: effect.id.0,
            object: effect.write.object(),
            request: effect.write.summary(),
            why: effect.why.to_string(),
            method: method.into(),
            path,
            body: Value::Null,
            undo: None,
        }
    }

    pub fn effect_outcome(id: EffectId, outcome: &Outcome) -> Self {
        let text = match outcome {
            Outcome::Failed(error) => error.clone(),
            Outcome::Done | Outcome::Recorded | Outcome::Conflict | Outcome::Gone => outcome.word().into(),
        };
        Self::Outcome { id: id.0, outcome: outcome.word().into(), text }
    }

    pub fn outcome(id: RequestId, outcome: &RequestOutcome) -> Self {
        Self::Outcome { id: id.0, outcome: outcome.word().into(), text: outcome.to_string() }
    }
}

impl JournalLine {
    /// The line as JSON, with a newline.
    pub fn to_text(&self) -> String {
        let mut value = self.kind.to_value();
        value["at"] = json!(self.at);
        value["operation"] = json!(self.operation);
        format!("{}\n", visible::json(&value.to_string()))
    }

    /// Parses a line of a journal. Returns `None` for any other text.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(text).ok()?;
        let at = Timestamp::parse(value["at"].as_str()?)?;
        let operation = value["operation"].as_str()?.parse().ok()?;
        Some(Self { at, operation, kind: LineKind::parse(&value)? })
    }
}

impl LineKind {
    fn to_value(&self) -> Value {
        match self {
            Self::Started(start) => start.to_value(),
            Self::Resumed { by } => json!({"kind": "resumed", "by": by}),
            Self::Request { id, object, request, why, method, path, body, undo } => json!({
                "kind": "request", "id": id, "object": object, "request": request, "why": why,
                "method": method, "path": path, "body": body, "undo": undo.as_ref().map(write_undo_value),
            }),
            Self::Outcome { id, outcome, text } => {
                json!({"kind": "outcome", "id": id, "outcome": outcome, "text": text})
            }
            Self::Notice { level, subject, text } => {
                json!({"kind": "notice", "level": level_word(*level), "subject": subject, "text": text})
            }
            Self::Ended { end, text } => json!({"kind": "ended", "end": end, "text": text}),
            Self::Undone { by } => json!({"kind": "undone", "by": by}),
        }
    }

    fn parse(value: &Value) -> Option<Self> {
        Some(match value["kind"].as_str()? {
            "started" => Self::Started(Box::new(OperationStart::parse(value)?)),
            "resumed" => Self::Resumed { by: text_of(value, "by")? },
            "request" => Self::Request {
                id: value["id"].as_u64()?,
                object: text_of(value, "object")?,
                request: text_of(value, "request")?,
                why: text_of(value, "why")?,
                method: text_of(value, "method")?,
                path: text_of(value, "path")?,
                body: value["body"].clone(),
                undo: parse_write_undo(&value["undo"]),
            },
            "outcome" => Self::Outcome {
                id: value["id"].as_u64()?,
                outcome: text_of(value, "outcome")?,
                text: text_of(value, "text")?,
            },
            "notice" => Self::Notice {
                level: [Severity::Info, Severity::Warning, Severity::Error]
                    .into_iter()
                    .find(|level| value["level"] == level_word(*level))?,
                subject: text_of(value, "subject")?,
                text: text_of(value, "text")?,
            },
            "ended" => Self::Ended { end: text_of(value, "end")?, text: text_of(value, "text")? },
            "undone" => Self::Undone { by: value["by"].as_str()?.parse().ok()? },
            _ => return None,
        })
    }
}

impl OperationStart {
    fn to_value(&self) -> Value {
        let nodes: Vec<Value> =
            self.nodes.iter().map(|(name, uid)| json!({"name": name, "uid": uid})).collect();
        let pod = |(key, pod): &(Key, PriorPod)| json!({"pod": key, "uid": pod.uid, "node": pod.node});
        let pods: Vec<Value> = self.pods.iter().map(pod).collect();
        json!({
            "kind": "started", "by": self.by, "why": self.reason, "until": self.until, "context": self.context,
            "server": self.server, "action": self.action, "command": self.command,
            "drain": self.drain.as_ref().map(drain_value), "nodes": nodes, "pods": pods,
            "overrides": self.overrides, "confirmation": self.confirmation.map(Confirmation::as_str),
        })
    }

    fn parse(value: &Value) -> Option<Self> {
        let list = |field: &str| value[field].as_array().cloned().unwrap_or_default();
        let node = |node: &Value| Some((node["name"].as_str()?.into(), node["uid"].as_str()?.into()));
        let pod = |pod: &Value| {
            let (namespace, name) = pod["pod"].as_str()?.split_once('/')?;
            let (uid, node) = (Uid::from(pod["uid"].as_str()?), pod["node"].as_str().map(NodeName::from));
            Some((Key::new(namespace, name), PriorPod { uid, node }))
        };
        Some(Self {
            by: text_of(value, "by")?,
            reason: text_of(value, "why")?,
            until: value["until"].as_str().and_then(Timestamp::parse),
            context: text_of(value, "context")?,
            server: text_of(value, "server")?,
            action: text_of(value, "action")?,
            command: text_of(value, "command")?,
            drain: if value["drain"].is_null() { None } else { Some(parse_drain(&value["drain"])?) },
            nodes: list("nodes").iter().map(node).collect::<Option<_>>()?,
            pods: list("pods").iter().map(pod).collect::<Option<_>>()?,
            overrides: list("overrides").iter().filter_map(|text| text.as_str().map(str::to_owned)).collect(),
            confirmation: value["confirmation"].as_str().and_then(Confirmation::parse),
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
        "podSelector": options.pod_selector.as_ref().map(ToString::to_string), "surge": options.surge,
    })
}

/// Parses the options of a drain. Returns `None` if a required option is missing, because a drain is resumed only with
/// the options that it started with.
fn parse_drain(value: &Value) -> Option<DrainOptions> {
    let given = |field: &str| value[field].as_bool();
    let span = |field: &str| value[field].as_i64().map(Span::from_nanos);
    let pod_selector = match value["podSelector"].as_str() {
        Some(text) => Some(kordon_core::cluster::Selector::parse(text).ok()?),
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
        // Journals of older versions do not record `surge`.
        surge: given("surge").unwrap_or(false),
        ..DrainOptions::default()
    })
}

fn write_undo_value(undo: &WriteUndo) -> Value {
    match undo {
        WriteUndo::Node(undo) => undo_value(undo),
        WriteUndo::Scale(ScaleUndo { deployment, uid, before, after }) => {
            json!({"deployment": deployment, "uid": uid, "before": before, "after": after})
        }
    }
}

fn parse_write_undo(value: &Value) -> Option<WriteUndo> {
    let Some((namespace, name)) = value["deployment"].as_str().and_then(|key| key.split_once('/')) else {
        return parse_undo(value).map(WriteUndo::Node);
    };
    let replicas = |field: &str| value[field].as_i64().and_then(|count| i32::try_from(count).ok());
    Some(WriteUndo::Scale(ScaleUndo {
        deployment: Key::new(namespace, name),
        uid: value["uid"].as_str()?.into(),
        before: replicas("before")?,
        after: replicas("after")?,
    }))
}

fn undo_value(undo: &NodeUndo) -> Value {
    let step = |step: &UndoStep| match step {
        UndoStep::Uncordon => json!({"step": "uncordon"}),
        UndoStep::Cordon => json!({"step": "cordon"}),
        UndoStep::Taint { key, effect, before, after } => json!({
            "step": "taint", "key": key, "effect": effect.as_str(),
            "before": before.as_ref().map(taint_value), "after": after.as_ref().map(taint_value),
        }),
        UndoStep::Metadata { field, key, before, after } => {
            json!({"step": field.one(), "key": key, "before": before, "after": after})
        }
    };
    let steps: Vec<Value> = undo.steps.iter().map(step).collect();
    json!({"node": undo.node, "uid": undo.uid, "steps": steps})
}

fn parse_undo(value: &Value) -> Option<NodeUndo> {
    let step = |value: &Value| {
        let key = || value["key"].as_str().map(Into::into);
        Some(match value["step"].as_str()? {
            "uncordon" => UndoStep::Uncordon,
            "cordon" => UndoStep::Cordon,
            "taint" => UndoStep::Taint {
                key: key()?,
                effect: TaintEffect::parse(value["effect"].as_str()?),
                before: parse_taint(&value["before"]),
                after: parse_taint(&value["after"]),
            },
            field => UndoStep::Metadata {
                field: MetadataField::parse(field)?,
                key: key()?,
                before: value["before"].as_str().map(Into::into),
                after: value["after"].as_str().map(Into::into),
            },
        })
    };
    Some(NodeUndo {
        node: value["node"].as_str()?.into(),
        uid: value["uid"].as_str()?.into(),
        steps: value["steps"].as_array()?.iter().map(step).collect::<Option<_>>()?,
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
        time_added: value["timeAdded"].as_str().and_then(ClusterTime::parse),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kordon_core::cluster::Selector;

    #[test]
    fn starts_and_requests_read_back_as_they_were_written() {
        let selector = Selector::parse("app in (a,b),tier!=x").expect("a selector");
        let drain = DrainOptions {
            ignore_daemonsets: true,
            grace: Some(Span::from_secs(5)),
            pod_selector: Some(selector),
            surge: true,
            parallel: 3,
            ..DrainOptions::default()
        };
        let start = OperationStart {
            by: "alice@desk".into(),
            action: "drain".into(),
            drain: Some(drain),
            nodes: vec![("n1".into(), "u1".into())],
            pods: vec![(Key::new("web", "p"), PriorPod { uid: "u2".into(), node: Some("n1".into()) })],
            overrides: vec!["max-nodes".into()],
            confirmation: Some(Confirmation::Grave),
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
                    before: None,
                    after: Some(taint),
                },
                UndoStep::Metadata {
                    field: MetadataField::Labels,
                    key: "l".into(),
                    before: Some("v".into()),
                    after: None,
                },
                UndoStep::Metadata {
                    field: MetadataField::Annotations,
                    key: "example.com/note".into(),
                    before: None,
                    after: Some("disk 3 = \"slow\"\n".into()),
                },
            ],
        };
        let request = LineKind::Request {
            id: 7,
            object: "node/n1".into(),
            request: "cordon".into(),
            why: "because".into(),
            method: "PATCH".into(),
            path: "/api".into(),
            body: json!({"a": 1}),
            undo: Some(WriteUndo::Node(undo)),
        };
        let scale = LineKind::Request {
            id: 8,
            object: "deployment/web/front".into(),
            request: "scale".into(),
            why: String::new(),
            method: "PATCH".into(),
            path: "/apis".into(),
            body: Value::Null,
            undo: Some(WriteUndo::Scale(ScaleUndo {
                deployment: Key::new("web", "front"),
                uid: "u3".into(),
                before: 1,
                after: 2,
            })),
        };
        for kind in [LineKind::Started(Box::new(start)), request, scale] {
            let operation = "p".parse().expect("an id");
            let line = JournalLine { at: Timestamp::from_secs(1_800_000_000), operation, kind };
            let text = line.to_text();
            assert!(text.ends_with('\n') && text.trim_end().lines().count() == 1);
            assert_eq!(JournalLine::parse(text.as_bytes()), Some(line));
        }
        assert_eq!(JournalLine::parse(b"{\"at\":\"2026-"), None);
    }
}
