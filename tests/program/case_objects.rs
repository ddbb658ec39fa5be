//! The objects of a case as a cluster, and the answers of commands about this cluster.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::common::program::Shell;

/// Exit codes, as in `docs/reference/cli.md`.
pub const DONE: i32 = 0;
pub const FAILED: i32 = 1;
pub const USAGE: i32 = 2;
pub const BLOCKED: i32 = 6;
pub const STALLS: i32 = 7;
pub const LOSES: i32 = 18;

/// Returns the path of the file of a case.
pub fn file(case: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(format!("{case}.json"))
}

/// The objects of a cluster.
pub struct Objects(pub Vec<Value>);

impl Objects {
    /// Reads the objects of a case.
    pub fn of(case: &str) -> Self {
        let list: Value = serde_json::from_slice(&std::fs::read(file(case)).expect("a file")).expect("JSON");
        Self(list["items"].as_array().expect("objects").clone())
    }

    /// Returns the first object of this kind whose name starts with `name`.
    pub fn named(&mut self, kind: &str, name: &str) -> &mut Value {
        self.0.iter_mut().find(|object| is_named(object, kind, name)).expect("an object of this name")
    }

    /// Removes the objects of this kind whose names start with `name`.
    pub fn without(&mut self, kind: &str, name: &str) {
        self.0.retain(|object| !is_named(object, kind, name));
    }

    /// Returns the objects as the text of a file.
    pub fn list(&self) -> String {
        json!({"apiVersion": "v1", "kind": "List", "items": self.0}).to_string()
    }

    /// Returns the exit code and the JSON of a command on the objects. The cluster has no other objects.
    pub async fn run(&self, command: &str) -> (i32, Value) {
        let shell = Shell::new();
        let file = shell.file("objects.json", &self.list());
        let words = command.split(' ').chain(["--from", &file, "--complete", "-o", "json"]);
        let output = shell.run(&words.collect::<Vec<_>>()).await;
        let answer = serde_json::from_str(&output.out)
            .unwrap_or_else(|error| panic!("{command}: {error}\n{}\n{}", output.out, output.err));
        (output.code, answer)
    }

    /// Returns the JSON of a command on the objects. The cluster may have other objects too.
    pub async fn partial(&self, command: &[&str]) -> Value {
        let shell = Shell::new();
        let file = shell.file("objects.json", &self.list());
        let output = shell.run(&[command, &["--from", &file]].concat()).await;
        output.json()
    }

    /// Returns the table of a command.
    pub async fn table(&self, command: &str) -> String {
        let shell = Shell::new();
        let file = shell.file("objects.json", &self.list());
        let words = command.split(' ').chain(["--from", &file, "--complete"]);
        shell.run(&words.collect::<Vec<_>>()).await.out
    }

    /// Returns the JSON of a command that ends with this exit code.
    pub async fn answer(&self, command: &str, code: i32) -> Value {
        let (ended, answer) = self.run(command).await;
        assert_eq!(ended, code, "{command}\n{answer:#}");
        answer
    }
}

/// Returns the text of the verdict of a status.
pub fn verdict(status: &Value) -> &str {
    status["verdict"]["text"].as_str().expect("a text")
}

fn is_named(object: &Value, kind: &str, start: &str) -> bool {
    object["kind"] == kind && object["metadata"]["name"].as_str().is_some_and(|name| name.starts_with(start))
}
