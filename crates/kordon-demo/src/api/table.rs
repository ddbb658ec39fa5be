//! Tables for `kubectl get`.

use serde_json::{Value, json};

use kordon_time::Timestamp;

use super::{kinds::Kind, request::Query};

/// A meta.k8s.io/v1 Table of objects, without list metadata.
pub fn table(kind: &Kind, objects: impl Iterator<Item = Value>, query: &Query, now: Timestamp) -> Value {
    let columns: Vec<Value> = kind
        .columns
        .iter()
        .map(|column| {
            let format = if column.name == "Name" { "name" } else { "" };
            json!({"name": column.name, "type": column.kind, "format": format,
                "priority": i32::from(column.wide), "description": ""})
        })
        .collect();
    let rows: Vec<Value> =
        objects.map(|object| row(kind, object, query.text("includeObject"), now)).collect();
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {}, "columnDefinitions": columns, "rows": rows})
}

fn row(kind: &Kind, object: Value, include: &str, now: Timestamp) -> Value {
    let cells: Vec<Value> = kind.columns.iter().map(|column| (column.cell)(&object, now)).collect();
    let included = match include {
        "None" => Value::Null,
        "Object" => object,
        _ => {
            json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
        }
    };
    json!({"cells": cells, "object": included})
}
