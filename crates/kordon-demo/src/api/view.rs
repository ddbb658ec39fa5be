//! The forms in which an object is sent: complete, as JSON or protobuf, or only its metadata.

use bytes::Bytes;
use serde_json::json;

use super::{events, kinds::Kind, object::Stored, protobuf, request::View};

/// Returns the body of an object in the requested form. A complete object has its body already, so it is not encoded
/// again.
pub fn shown(kind: &Kind, object: &Stored, form: View) -> Bytes {
    match form {
        View::Object | View::Table if kind.group == events::GROUP => {
            let event = events::from_core(object.value());
            serde_json::to_vec(&event).expect("a Value has string keys only").into()
        }
        View::Object | View::Table => object.body.clone(),
        View::Protobuf if kind.group == events::GROUP => {
            protobuf::object(&events::from_core(object.value())).expect("Events have a message")
        }
        View::Protobuf => object.protobuf(),
        View::Metadata => {
            let metadata = object.value()["metadata"].take();
            let partial = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata});
            serde_json::to_vec(&partial).expect("a Value has string keys only").into()
        }
    }
}
