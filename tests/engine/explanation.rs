//! The explanation of a node or pod before, during and after a failure, on a simulated cluster: past steps, future steps,
//! and steps that will not happen.

use kordon::{
    cluster::{Key, NodeName},
    engine::{Origin, ServerVersion, Settings},
    forecast::Forecast,
    time::Span,
    why::{Explainer, Step, StepTime, Topic},
};

use crate::sim::Sim;

/// Two zones of six nodes with a pod each that stays for five minutes, and one on the first node that stays for ever.
fn peaceful(settings: &Settings) -> Sim {
    let mut sim = Sim::new();
    for number in 0..12 {
        let node = format!("n{number:02}");
        sim.add_node(&node, ["a", "b"][number % 2], Span::from_millis(700));
        sim.add_pod(&format!("p{number:02}"), &node, Some(300));
    }
    sim.add_pod("stays", "n00", None);
    sim.start_controller(settings.clone(), Span::from_millis(300));
    sim.attach_shadow(settings.clone());
    sim.run(Span::from_secs(60));
    sim
}

fn modern() -> Settings {
    Settings::defaults(ServerVersion::new(1, 36))
}

fn tell(sim: &Sim, of: impl Fn(&Explainer<'_>) -> Vec<Step>) -> Vec<Step> {
    let engine = sim.shadow.as_ref().expect("attached");
    let forecast = Forecast::run(engine, &sim.cluster, sim.now, Span::from_secs(1800));
    let (cluster, forecast) = (&sim.cluster, Some(&forecast));
    of(&Explainer { engine, cluster, forecast, now: sim.now })
}

fn of_node(sim: &Sim, node: &str) -> Vec<Step> {
    tell(sim, |teller| teller.node(sim.cluster.node(&NodeName::from(node)).expect("a node")))
}

fn of_pod(sim: &Sim, pod: &Key) -> Vec<Step> {
    tell(sim, |teller| teller.pod(sim.cluster.pod(pod).expect("a pod")))
}

fn tense(story: &[Step], topic: Topic) -> Option<StepTime> {
    story.iter().find(|link| link.topic == topic).map(|link| link.tense)
}

/// The key of the pod with this name, wherever the simulation puts it.
fn key(sim: &Sim, name: &str) -> Key {
    sim.cluster.pods().iter().find(|pod| pod.key.name == *name).expect("a pod").key.clone()
}

#[test]
fn a_node_that_lives_has_nothing_ahead() {
    let story = of_node(&peaceful(&modern()), "n00");
    assert_eq!(tense(&story, Topic::Grace), Some(StepTime::Not), "its grace does not run out: {story:?}");
    assert!(story.iter().all(|link| link.tense != StepTime::Ahead), "{story:?}");
}

#[test]
fn predicted_steps_happen_in_their_order_and_at_their_time() {
    let mut sim = peaceful(&modern());
    sim.fail("n00");
    sim.run(Span::from_secs(26));
    let told = of_node(&sim, "n00");
    let order = [
        Topic::Grace,
        Topic::Ready,
        Topic::Endpoints,
        Topic::NoSchedule,
        Topic::Queue,
        Topic::NoExecute,
        Topic::Eviction,
    ];
    let ahead: Vec<Topic> =
        told.iter().filter(|link| link.tense == StepTime::Ahead).map(|link| link.topic).collect();
    assert_eq!(ahead, order, "{told:?}");
    let at = |story: &[Step], topic: Topic, tense: StepTime| {
        let link = story.iter().find(|link| (link.topic, link.tense) == (topic, tense));
        link.and_then(|link| link.at).unwrap_or_else(|| panic!("no {topic:?} {tense:?} in {story:?}"))
    };
    sim.run(Span::from_secs(60));
    let happened = of_node(&sim, "n00");
    for topic in [Topic::Grace, Topic::NoSchedule, Topic::NoExecute] {
        let (told, happened) = (at(&told, topic, StepTime::Ahead), at(&happened, topic, StepTime::Past));
        let off = happened.since(told).as_secs_f64().abs();
        assert!(off <= 6.0, "{topic:?} told for {told}, was {happened}");
    }
    let pod = of_pod(&sim, &key(&sim, "p00"));
    assert_eq!(tense(&pod, Topic::Toleration), Some(StepTime::Holds), "{pod:?}");
    assert_eq!(tense(&pod, Topic::Eviction), Some(StepTime::Ahead), "{pod:?}");
    let stays = of_pod(&sim, &key(&sim, "stays"));
    assert_eq!(tense(&stays, Topic::Eviction), Some(StepTime::Not), "{stays:?}");
    assert!(stays.iter().any(|link| link.text.contains("never evicted")), "{stays:?}");
}

#[test]
fn a_paused_zone_is_given_as_the_reason_why_nothing_happens() {
    let mut sim = peaceful(&modern());
    for node in ["n00", "n02", "n04", "n06"] {
        sim.fail(node);
    }
    sim.run(Span::from_secs(70));
    let story = of_node(&sim, "n06");
    let queue = story.iter().find(|link| link.topic == Topic::Queue).expect("it waits");
    assert_eq!(queue.tense, StepTime::Not, "{story:?}");
    assert!(queue.text.contains("PartialDisruption (4 of 6 not ready)"), "{}", queue.text);
    for number in 0..12 {
        sim.fail(&format!("n{number:02}"));
    }
    sim.run(Span::from_secs(70));
    let story = of_node(&sim, "n06");
    let queue = story.iter().find(|link| link.topic == Topic::Queue).expect("it waits");
    assert!(queue.tense == StepTime::Not && queue.text.contains("all zones down"), "{story:?}");
}

#[test]
fn in_legacy_mode_a_node_eviction_takes_the_place_of_the_taint() {
    let mut legacy = Settings::defaults(ServerVersion::new(1, 23));
    legacy.set("enable-taint-manager", "false", Origin::Override).expect("a flag of 1.23");
    let mut sim = peaceful(&legacy);
    sim.fail("n00");
    sim.run(Span::from_secs(70));
    let story = of_node(&sim, "n00");
    assert_eq!(tense(&story, Topic::NodeEviction), Some(StepTime::Ahead), "{story:?}");
    assert_eq!(tense(&story, Topic::NoExecute), None, "{story:?}");
    assert_eq!(tense(&story, Topic::Eviction), Some(StepTime::Ahead), "{story:?}");
    sim.run(Span::from_secs(330));
    let story = of_node(&sim, "n00");
    assert_eq!(tense(&story, Topic::NodeEviction), Some(StepTime::Past), "{story:?}");
}

#[test]
fn pending_events_of_a_node_are_those_of_it_among_all() {
    let mut legacy = Settings::defaults(ServerVersion::new(1, 23));
    legacy.set("enable-taint-manager", "false", Origin::Override).expect("a flag of 1.23");
    for settings in [modern(), legacy] {
        let mut sim = peaceful(&settings);
        for node in ["n00", "n01"] {
            sim.fail(node);
        }
        sim.run(Span::from_secs(90));
        let engine = sim.shadow.as_ref().expect("attached");
        let all = engine.evictions(&sim.cluster);
        assert!(!all.is_empty());
        for node in sim.cluster.nodes().iter() {
            let mut among: Vec<_> =
                all.iter().filter(|eviction| eviction.node == node.name).cloned().collect();
            among.sort_by(|a, b| a.pod.cmp(&b.pod));
            let mut on = engine.evictions_on(&sim.cluster, node);
            on.sort_by(|a, b| a.pod.cmp(&b.pod));
            assert_eq!(on, among, "{}", node.name);
        }
    }
}
