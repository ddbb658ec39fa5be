//! The table of messages: the names, numbers and types of their fields, as in the published API definitions
//! (`generated.proto` of Kubernetes 1.37).

use std::{collections::HashMap, sync::LazyLock};

/// The table of messages, one message in each line: `Name: number field type, …`. Before a type, `[]` means a list,
/// `{}` means a map with string keys, and `+` means a message whose fields are inlined into the object in JSON.
const TABLE: &str = include_str!("messages.txt");

static MESSAGES: LazyLock<Messages> = LazyLock::new(|| Messages::parse(TABLE));

/// All messages, by name.
#[derive(Debug)]
pub struct Messages(HashMap<&'static str, MessageType>);

/// The fields of a message, sorted by number.
#[derive(Debug)]
pub struct MessageType {
    pub fields: Vec<Field>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    pub number: u64,
    /// The name of the field in JSON.
    pub name: &'static str,
    pub form: Form,
    pub value: ValueType,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Single,
    List,
    /// A map with string keys.
    Map,
    /// A message whose fields are inlined into the object in JSON.
    Inline,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    Text,
    Int,
    Bool,
    /// Bytes; base64 in JSON.
    Bytes,
    /// A time in whole seconds.
    Time,
    /// A time in microseconds.
    MicroTime,
    Quantity,
    IntOrText,
    /// Any JSON, kept unchanged.
    Json,
    Message(&'static str),
}

impl Messages {
    pub fn all() -> &'static Self {
        &MESSAGES
    }

    pub fn named(&self, name: &str) -> Option<&MessageType> {
        self.0.get(name)
    }

    fn parse(table: &'static str) -> Self {
        let message = |line: &'static str| {
            let (name, fields) = line.split_once(':').expect("a name stands before its fields");
            let fields = fields.split(',').map(str::trim).filter(|field| !field.is_empty());
            (name, MessageType { fields: fields.map(Field::parse).collect() })
        };
        Self(table.lines().map(message).collect())
    }
}

impl Field {
    fn parse(text: &'static str) -> Self {
        let mut words = text.split(' ');
        let mut word = || words.next().expect("a field has a number, a name and a type");
        let number = word().parse().expect("a number stands first");
        let (name, value) = (word(), word());
        let forms = [("[]", Form::List), ("{}", Form::Map), ("+", Form::Inline)];
        let (value, form) = forms
            .into_iter()
            .find_map(|(prefix, form)| Some((value.strip_prefix(prefix)?, form)))
            .unwrap_or((value, Form::Single));
        Self { number, name, form, value: ValueType::parse(value) }
    }
}

impl ValueType {
    fn parse(name: &'static str) -> Self {
        match name {
            "text" => Self::Text,
            "int" => Self::Int,
            "bool" => Self::Bool,
            "bytes" => Self::Bytes,
            "time" => Self::Time,
            "micros" => Self::MicroTime,
            "quantity" => Self::Quantity,
            "intOrText" => Self::IntOrText,
            "json" => Self::Json,
            message => Self::Message(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_of_the_table_is_known_and_numbers_ascend() {
        for (name, message) in {
            let mut all: Vec<_> = Messages::all().0.iter().collect();
            all.sort_by_key(|(name, _)| **name);
            all
        } {
            assert!(message.fields.is_sorted_by(|one, next| one.number < next.number), "{name}");
            for field in &message.fields {
                if let ValueType::Message(of) = field.value {
                    assert!(Messages::all().named(of).is_some(), "{name}.{}: {of}", field.name);
                }
            }
        }
    }
}
