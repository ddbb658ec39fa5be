//! Tables: what a server sends to `kubectl get`.

use serde_json::{Value, json};

use crate::time::Timestamp;

use super::{kinds::Kind, request::Query};

/// A meta.k8s.io/v1 Table of some objects; the list's metadata is the caller's.
pub fn table(kind: &Kind, objects: impl Iterator<Item = Value>, query: &Query, now: Timestamp) -> Value {
    let name = json!({"name": "Name", "type": "string", "format": "name", "priority": 0,
        "description": "Name must be unique within a namespace."});
    let columns = kind.columns.iter().map(|column| {
        json!({"name": column.name, "type": column.kind, "format": "",
            "priority": i32::from(column.wide), "description": ""})
    });
    let columns: Vec<Value> = std::iter::once(name).chain(columns).collect();
    let rows: Vec<Value> =
        objects.map(|object| row(kind, object, query.text("includeObject"), now)).collect();
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {}, "columnDefinitions": columns, "rows": rows})
}

fn row(kind: &Kind, object: Value, include: &str, now: Timestamp) -> Value {
    let name = object["metadata"]["name"].clone();
    let cells: Vec<Value> =
        std::iter::once(name).chain(kind.columns.iter().map(|column| (column.cell)(&object, now))).collect();
    let included = match include {
        "None" => Value::Null,
        "Object" => object,
        _ => {
            json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
        }
    };
    json!({"cells": cells, "object": included})
}
