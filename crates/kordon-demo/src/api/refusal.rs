//! Errors of the API, with the texts and codes of a Kubernetes API server.

use serde_json::{Map, Value, json};

use super::{kinds::Kind, object::ObjectKey};

/// The reason why a request is refused: the content of the `Status` object.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The HTTP status code.
    pub code: u16,
    /// The machine-readable reason, for example `Conflict`; empty where a real server gives no reason.
    pub reason: &'static str,
    pub message: String,
    /// Delay in seconds for the Retry-After header and for `details.retryAfterSeconds`.
    pub retry_after: Option<u32>,
    details: Map<String, Value>,
}

/// An error in one field of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldCause {
    /// The reason, for example `FieldValueInvalid`.
    pub reason: &'static str,
    pub message: String,
    /// The path of the field; empty if the cause is not a field.
    pub field: String,
}

impl Refusal {
    /// Returns a refusal without details.
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), retry_after: None, details: Map::new() }
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// Refuses a request for a path that does not exist.
    pub fn no_such_path() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource")
    }

    /// Refuses a method that the resource does not support.
    pub fn no_such_method() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", message)
    }

    pub fn not_found(kind: &Kind, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{} \"{name}\" not found", kind.resource())).about(kind, name)
    }

    pub fn already_exists(kind: &Kind, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", kind.resource());
        Self::new(409, "AlreadyExists", message).about(kind, name)
    }

    pub fn conflict(kind: &Kind, key: &ObjectKey, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{}\": {why}", kind.resource(), key.name);
        Self::new(409, "Conflict", message).about(kind, &key.name)
    }

    /// Refuses a write to an object that has changed since the client read it.
    pub fn stale(kind: &Kind, key: &ObjectKey) -> Self {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(kind, key, why)
    }

    /// Refuses an invalid object. `causes` must have at least one cause.
    pub fn invalid(kind: &Kind, name: &str, causes: Vec<FieldCause>) -> Self {
        let found: Vec<String> = causes.iter().map(|c| format!("{}: {}", c.field, c.message)).collect();
        let found =
            if let [one] = found.as_slice() { one.clone() } else { format!("[{}]", found.join(", ")) };
        let full_kind = if kind.group.is_empty() {
            kind.name.to_owned()
        } else {
            format!("{}.{}", kind.name, kind.group)
        };
        let mut refusal = Self::new(422, "Invalid", format!("{full_kind} \"{name}\" is invalid: {found}"))
            .about(kind, name)
            .because(causes);
        refusal.details.insert("kind".into(), kind.name.into());
        refusal
    }

    pub fn forbidden(kind: &Kind, name: &str, why: &str) -> Self {
        let name_quoted = if name.is_empty() { String::new() } else { format!(" \"{name}\"") };
        let message = format!("{}{name_quoted} is forbidden: {why}", kind.resource());
        Self::new(403, "Forbidden", message).about(kind, name)
    }

    /// Refuses a list or watch of a version that is no longer in the history.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// Adds kind and name of the object to the details.
    pub fn about(mut self, kind: &Kind, name: &str) -> Self {
        if !name.is_empty() {
            self.details.insert("name".into(), name.into());
        }
        if !kind.group.is_empty() {
            self.details.insert("group".into(), kind.group.into());
        }
        self.details.insert("kind".into(), kind.plural.into());
        self
    }

    pub fn because(mut self, causes: Vec<FieldCause>) -> Self {
        self.details.insert("causes".into(), causes.iter().map(FieldCause::to_value).collect());
        self
    }

    pub fn retry_after(mut self, secs: u32) -> Self {
        self.retry_after = Some(secs);
        self.details.insert("retryAfterSeconds".into(), secs.into());
        self
    }

    /// The `Status` object.
    pub fn to_value(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if !self.details.is_empty() {
            status["details"] = Value::Object(self.details.clone());
        }
        status
    }
}

impl FieldCause {
    pub fn invalid(field: impl Into<String>, value: &Value, why: &str) -> Self {
        let message = format!("Invalid value: {value}: {why}");
        Self { reason: "FieldValueInvalid", message, field: field.into() }
    }

    pub fn required(field: impl Into<String>) -> Self {
        Self { reason: "FieldValueRequired", message: "Required value".into(), field: field.into() }
    }

    pub fn duplicate(field: impl Into<String>, value: &Value, why: &str) -> Self {
        let message = format!("Duplicate value: {value}: {why}");
        Self { reason: "FieldValueDuplicate", message, field: field.into() }
    }

    pub fn forbidden(field: impl Into<String>, why: &str) -> Self {
        Self { reason: "FieldValueForbidden", message: format!("Forbidden: {why}"), field: field.into() }
    }

    pub fn unsupported(field: impl Into<String>, value: &Value, supported: &[&str]) -> Self {
        let supported: Vec<String> = supported.iter().map(|s| format!("\"{s}\"")).collect();
        let message = format!("Unsupported value: {value}: supported values: {}", supported.join(", "));
        Self { reason: "FieldValueNotSupported", message, field: field.into() }
    }

    fn to_value(&self) -> Value {
        let mut cause = json!({"reason": self.reason, "message": self.message});
        if !self.field.is_empty() {
            cause["field"] = self.field.as_str().into();
        }
        cause
    }
}
