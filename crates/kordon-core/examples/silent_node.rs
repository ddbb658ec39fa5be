//! Runs the node lifecycle controller over two nodes and a pod, on a clock of the program's own. The kubelet of one
//! node is silent from the start.
//!
//! `cargo run -p kordon-core --example silent_node` prints each write that the controller wants, with its time.

use kordon_core::{
    cluster::{Change, Cluster, Condition, ConditionStatus, Key, Node, ObjectEvent, Pod},
    engine::{Engine, Outcome, ServerVersion, Settings},
    forecast::apply_write,
};
use kordon_time::{ClusterTime, Span, Timestamp};

fn main() {
    let start = Timestamp::from_secs(1_767_225_600);
    let (mut cluster, mut changes) = (Cluster::default(), Vec::new());
    for name in ["n1", "n2"] {
        cluster.apply(Change::Node(ObjectEvent::Applied(ready_node(name, start))), &mut changes);
    }
    let pod = Pod { key: Key::new("shop", "cart"), node: Some("n1".into()), ..Pod::default() };
    cluster.apply(Change::Pod(ObjectEvent::Applied(pod)), &mut changes);

    let mut engine = Engine::start(Settings::defaults(ServerVersion::new(1, 36)), &cluster, start, start);
    engine.assume_alive(&cluster, |node| node.name == "n2".into());
    let mut now = start;
    while now.since(start) < Span::from_secs(600) {
        while let Some(effect) = engine.poll_effect() {
            let write = &effect.write;
            println!(
                "{:>4} s  {} {} {}",
                now.since(start).as_secs(),
                write.verb(),
                write.object(),
                write.rest()
            );
            // In this example, each write succeeds at once, and the watch reports it at once.
            changes.clear();
            apply_write(&mut cluster, write, now, &mut changes);
            changes.iter().for_each(|change| engine.handle_change(&cluster, change, now));
            engine.handle_outcome(&cluster, effect.id, Outcome::Done, now);
        }
        let Some(next) = engine.poll_timeout() else { break };
        now = now.max(next.at);
        engine.handle_timeout(&cluster, now);
    }
}

fn ready_node(name: &str, at: Timestamp) -> Node {
    let at = ClusterTime::new(at);
    let ready = Condition {
        kind: "Ready".into(),
        status: ConditionStatus::True,
        last_heartbeat: Some(at),
        last_transition: Some(at),
        ..Condition::default()
    };
    Node { name: name.into(), uid: name.into(), created: at, conditions: [ready].into(), ..Node::default() }
}
