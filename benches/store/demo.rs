//! The API server: `kordon demo` in a process of its own.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, ChildStdout, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::process::Process;

pub struct Demo {
    child: Child,
    /// Where it is served.
    pub server: String,
    /// Held, so that it may write to it.
    _output: BufReader<ChildStdout>,
}

impl Demo {
    /// Starts it and waits until everything is in it.
    pub fn start(nodes: usize, pods: usize, pod_changes_a_second: &str) -> Self {
        let begun = Instant::now();
        let mut child = Command::new(env!("CARGO_BIN_EXE_kordon"))
            .args(["demo", "--serve-only", "--no-controller", "--listen", "127.0.0.1:0"])
            .args(["--scenario", "healthy", "--pod-changes", pod_changes_a_second])
            .args(["--nodes", &nodes.to_string(), "--pods", &pods.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut line = String::new();
        output.read_line(&mut line).expect("it prints its address");
        let server = line.split(' ').find(|word| word.starts_with("http://"));
        let server = server.expect("it prints its address").to_owned();
        println!("demo with {pod_changes_a_second} pod changes a second made in {:.1?}", begun.elapsed());
        Self { child, server, _output: output }
    }

    pub fn process(&self) -> Process {
        Process(self.child.id())
    }

    /// Waits until its own agents have taken in what there is, and only live.
    pub fn settle(&self) {
        let mut calm = 0;
        let begun = Instant::now();
        while calm < 3 && begun.elapsed() < Duration::from_secs(90) {
            let before = self.process().cpu();
            sleep(Duration::from_secs(1));
            calm = if self.process().cpu() - before < Duration::from_millis(500) { calm + 1 } else { 0 };
        }
        println!("demo settled after {:.1?}", begun.elapsed());
    }

    /// The revision of its latest write: each write is one more.
    pub fn revision(&self) -> u64 {
        let answer = self.get("/apis/policy/v1/namespaces/none/poddisruptionbudgets");
        let (_, rest) = answer.split_once("\"resourceVersion\":\"").expect("a list has a version");
        let digits = rest.split('"').next().unwrap_or_default();
        digits.parse().expect("a version is a number")
    }

    /// The name of the first node.
    pub fn first_node(&self) -> String {
        let list = self.list("/api/v1/nodes?limit=1");
        list["items"][0]["metadata"]["name"].as_str().expect("there are nodes").to_owned()
    }

    /// The namespace and name of the first pod of a node.
    pub fn first_pod_of(&self, node: &str) -> (String, String) {
        let list = self.list(&format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{node}"));
        let metadata = &list["items"][0]["metadata"];
        let text = |field: &str| metadata[field].as_str().expect("the node has pods").to_owned();
        (text("namespace"), text("name"))
    }

    fn list(&self, path: &str) -> Value {
        let answer = self.get(path);
        // The body may come in chunks; no chunk's head has a brace.
        let (_, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        let start = body.find('{').expect("an object");
        let mut objects = serde_json::Deserializer::from_str(&body[start..]).into_iter::<Value>();
        objects.next().expect("an object").expect("JSON")
    }

    fn get(&self, path: &str) -> String {
        let address = self.server.trim_start_matches("http://");
        let mut stream = TcpStream::connect(address).expect("it listens");
        let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    }

    /// Stops it where it is: its connections stay open, and nothing comes over them.
    pub fn hold(&self) {
        self.signal(Signal::STOP);
    }

    pub fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("it is a process"), signal).expect("it lives");
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
