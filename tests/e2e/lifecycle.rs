//! `kordon controller --enforce` in place of the real controllers, with the rights of `deploy/`. Recorded scenarios are
//! played on a real API server. The effects of kordon have to be those of the real controllers.
//!
//! Upstream handles the waiting nodes of a zone in random order, kordon by name. So the test gives the nodes names
//! whose order is the recorded order.
//!
//! Several scenarios with the same flags are played at once, each in zones of its own. Those of the pod garbage
//! collector, whose quarantine is long, have a control plane of their own, beside the others. `KORDON_LIFECYCLE` selects
//! scenarios by a part of their names; `all` selects all of them. Without `KORDON_LIFECYCLE`, only the scenarios of the
//! API server's own release and of the pod garbage collector are played.

mod observed;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use k8s_openapi::api::coordination::v1::Lease;
use kordon_clock::Clock;
use kordon_time::Span;
use kube::{Api, api::DeleteParams};

use self::observed::Watching;
use crate::{
    common::{
        lifecycle::{LifecycleRecording, RecordedEffect, Slack, TOLERANCE},
        recordings::{recordings, root},
        stage::Stage,
    },
    controller::{CONTROLLER, apply_role, leader},
    harness::{
        eventually::eventually,
        plane::{self, Options, Plane},
        proxy::{Faults, Proxy},
        say,
    },
};

/// The tolerationSeconds that admission added in the recordings.
const TOLERATION: u32 = 6;
/// Two effects at least this far apart, in seconds, have to be in the recorded order.
const APART: f64 = 2.0;
/// Delay from a monitor pass to the start of the timeline. Nodes and pods change at whole seconds. With this delay,
/// each pass is 0.3 s after a whole second, as in the recordings. A pass in the middle of several changes could see any
/// part of them.
const BEFORE_PASS: Span = Span::from_millis(700);
/// Maximum number of nodes that are played at once.
const NODES: usize = 45;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kordon_does_what_was_recorded_of_the_real_controllers() {
    let Some(binary) = plane::binary("e2e_lifecycle").unwrap() else { return };
    let (mut plane, mut beside) = (start(&binary).await.unwrap(), start(&binary).await.unwrap());
    let (collecting, others): (Vec<_>, Vec<_>) =
        groups(selected().unwrap()).into_iter().partition(|group| group[0].1.collects());
    let (mut differing, more) = tokio::join!(play_all(&mut plane, others), play_all(&mut beside, collecting));
    differing.extend(more);
    for (name, differences) in &differing {
        say(&format!("e2e_lifecycle: {name}\n    {}", differences.join("\n    ")));
    }
    assert!(differing.is_empty(), "{} recordings differ", differing.len());
}

async fn start(binary: &Path) -> Result<Plane> {
    // The recordings were made without the admission plugin that taints new nodes.
    let no_admission = vec!["ServiceAccount", "TaintNodesByCondition"];
    let options = Options {
        toleration_seconds: TOLERATION,
        audit: true,
        users: vec![CONTROLLER],
        no_admission,
        ..Options::default()
    };
    let plane = Plane::start(binary, options).await?;
    apply_role(&plane, "controller").await?;
    Ok(plane)
}

/// Plays groups of recordings one after the other. Returns the recordings that differ.
async fn play_all(
    plane: &mut Plane,
    groups: Vec<Vec<(String, LifecycleRecording)>>,
) -> BTreeMap<String, Vec<String>> {
    let mut differing = BTreeMap::new();
    for group in groups {
        let differences = play(plane, group).await.unwrap();
        differing.extend(differences.into_iter().filter(|(_, differences)| !differences.is_empty()));
    }
    differing
}

/// Returns the selected recordings by file name.
fn selected() -> Result<BTreeMap<String, LifecycleRecording>> {
    let which = std::env::var("KORDON_LIFECYCLE").unwrap_or_default();
    let is_selected = |name: &str, recording: &LifecycleRecording| match which.as_str() {
        "" => recording.version() == plane::VERSION || recording.collects(),
        "all" => true,
        part => name.contains(part),
    };
    let mut all = recordings(&root(), "lifecycle").map_err(anyhow::Error::msg)?;
    all.retain(|name, recording| is_selected(name, recording));
    ensure!(!all.is_empty(), "no recording is named {which:?} (KORDON_LIFECYCLE)");
    let toleration = |recording: &LifecycleRecording| recording.default_toleration_seconds;
    ensure!(
        all.values().all(|recording| toleration(recording) == i64::from(TOLERATION)),
        "other tolerations"
    );
    Ok(all)
}

/// Divides the recordings into groups that can be played at once.
fn groups(recordings: BTreeMap<String, LifecycleRecording>) -> Vec<Vec<(String, LifecycleRecording)>> {
    let mut groups: Vec<Vec<(String, LifecycleRecording)>> = Vec::new();
    for (name, recording) in recordings {
        let has_room = |group: &&mut Vec<(String, LifecycleRecording)>| {
            let nodes: usize = group.iter().map(|(_, other)| other.nodes.len()).sum();
            let (_, other) = &group[0];
            let same = (&other.flags, other.controllers(), other.version())
                == (&recording.flags, recording.controllers(), recording.version());
            same && nodes + recording.nodes.len() <= NODES
                && [other, &recording].iter().all(|recording| keeps_a_node(recording))
        };
        match groups.iter_mut().find(has_room) {
            Some(group) => group.push((name, recording)),
            None => groups.push(vec![(name, recording)]),
        }
    }
    groups
}

/// Whether the recording has a healthy node that its timeline never touches. With such a node, there is no moment at
/// which all zones are disrupted. Only a disruption of all zones could let scenarios in other zones influence this one.
fn keeps_a_node(recording: &LifecycleRecording) -> bool {
    let touched: BTreeSet<&str> = recording.timeline.iter().filter_map(|step| step.what.node()).collect();
    let is_healthy = |beat: &Option<String>| beat.as_deref() == Some("both");
    recording.nodes.iter().any(|node| is_healthy(&node.beat) && !touched.contains(&*node.name))
}

/// Plays several scenarios at once under one controller. Returns the differences between the controller's effects and
/// the recorded effects.
async fn play(
    plane: &mut Plane,
    group: Vec<(String, LifecycleRecording)>,
) -> Result<BTreeMap<String, Vec<String>>> {
    let client = plane.client();
    let (_, first) = group.first().context("an empty group")?;
    let (version, controllers) = (first.version(), first.controllers().to_owned());
    let flags: Vec<String> = first.flags.iter().map(|(flag, value)| format!("--{flag}={value}")).collect();
    let (names, recordings): (Vec<_>, Vec<_>) = group.into_iter().unzip();
    let until = recordings.iter().map(|recording| recording.until).fold(0.0, f64::max) + TOLERANCE;

    let leases = Api::<Lease>::namespaced(client.clone(), "kube-system");
    if !leader(&client).await?.is_empty() {
        leases.delete("kordon-controller", &DeleteParams::default()).await?;
    }
    let numbered = (0..).zip(recordings);
    let mut stages: Vec<Stage> = numbered
        .map(|(number, recording)| {
            Stage::new(client.clone(), Clock::system(), format!("case-{number}"), recording)
        })
        .collect();
    try_join_all(stages.iter_mut().map(Stage::set_up)).await?;
    let watching = Watching::start(client.clone());
    // The proxy reports the recorded release, so that the controller behaves like that release.
    let proxy = Proxy::start(plane.client_of(CONTROLLER).await?).await?;
    proxy.set(Faults { version: Some(version), ..Faults::default() });
    let kubeconfig = plane.kubeconfig_of(&proxy.url)?;
    let mut kordon = plane.start_kordon_with("kordon", &kubeconfig, &controllers, flags)?;
    eventually("kordon's first pass", Span::from_secs(20), async || {
        kordon.check()?;
        let seen = observed::events(&client).await?;
        Ok(seen.iter().any(|(_, effect)| effect.reason == "RegisteredNode").then_some(()))
    })
    .await?;
    let start = Clock::system().now() + BEFORE_PASS;
    let stages = try_join_all(stages.into_iter().map(|stage| stage.play(start, until))).await?;
    let mut seen = observed::events(&client).await?;
    seen.extend(watching.finish().await?);
    kordon.stop().await?;
    plane.wipe().await?;

    let differences: BTreeMap<String, Vec<String>> = names
        .into_iter()
        .zip(&stages)
        .map(|(name, stage)| (name, differences(&stage.recording, observed::of_stage(&seen, stage, start))))
        .collect();
    let agree = differences.values().filter(|differences| differences.is_empty()).count();
    say(&format!(
        "e2e_lifecycle: {agree} of {} recordings agree ({version}, {controllers}), played for {until} s",
        differences.len()
    ));
    Ok(differences)
}

/// Describes the differences between the effects and the recording: missing or additional effects, and their order.
fn differences(recording: &LifecycleRecording, mut ours: Vec<RecordedEffect>) -> Vec<String> {
    ours.retain(|seen| seen.t <= recording.until + TOLERANCE);
    // A recorded time may be later than ours by the tolerance, and so after the end of the recording.
    let slack = Slack { ours_until: recording.until - TOLERANCE, ..Slack::default() };
    let mut differences = recording.compare(&ours, &slack);
    differences.extend(out_of_order(&recording.recorded.effects, &ours));
    differences
}

/// Describes effects whose order differs from the recorded order. Compares effects of different kinds on one object,
/// such as a condition and its taint. Also compares any two effects that are at least [`APART`] seconds apart.
fn out_of_order(theirs: &[RecordedEffect], ours: &[RecordedEffect]) -> Vec<String> {
    let object = |seen: &RecordedEffect| format!("{}{}", seen.node, seen.pod);
    let timed = |effects: &[RecordedEffect]| -> BTreeMap<(String, usize), RecordedEffect> {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let changes = effects.iter().filter(|seen| seen.effect != "event");
        changes
            .map(|seen| {
                let count = counts.entry(seen.to_string()).or_default();
                *count += 1;
                ((seen.to_string(), *count), seen.clone())
            })
            .collect()
    };
    let (theirs, ours) = (timed(theirs), timed(ours));
    let mut wrong = Vec::new();
    for (first, a) in &theirs {
        for (second, b) in &theirs {
            let is_caused = object(a) == object(b) && a.effect != b.effect && a.t < b.t;
            let (Some(our_a), Some(our_b)) = (ours.get(first), ours.get(second)) else { continue };
            if (is_caused || b.t - a.t >= APART) && our_b.t < our_a.t {
                wrong.push(format!(
                    "{} ({:.2} s) comes before {} ({:.2} s)",
                    second.0, our_b.t, first.0, our_a.t
                ));
            }
        }
    }
    wrong
}
