//! Checks that a screen which is not redrawn shows nothing outdated: a change for which the app does not request a
//! frame affects no cell.

use kordon::{k8s::feed::FeedEvent, run::Surface, ui::snapshot};
use kordon_core::cluster::{
    Change, ConditionStatus, Lease, Node, NodeName, ObjectEvent, Phase, Pod, Termination, Version,
};
use kordon_time::{ClusterTime, Span};
use proptest::{collection::vec, prelude::*};
use ratatui::{Terminal, backend::TestBackend};

use crate::{
    dashboard_fixture::{DashboardFixture, set_condition},
    screens::drawn,
};

/// Size of the screen, with room for about a quarter of the nodes.
const SIZE: (u16, u16) = (140, 24);

/// Keys that bring the screen into the tested states.
const LOOKS: [&str; 9] = ["", "2", "2j<Enter>", "2zG", "z1z", "1", "2d", "i", "2GGF"];

/// A change of one of many objects.
#[derive(Clone, Copy, Debug)]
enum News {
    Renewal,
    StatusOfNode,
    Cordon,
    /// A new annotation. kordon's model does not keep it, so only the version of the pod changes.
    VersionOfPod,
    NotReady,
    Finished,
    Termination,
    Deletion,
    NewPod,
    WaitingPod,
}

fn news() -> impl Strategy<Value = (News, prop::sample::Index)> {
    let kinds = [
        News::Renewal,
        News::Renewal,
        News::StatusOfNode,
        News::Cordon,
        News::VersionOfPod,
        News::NotReady,
        News::Finished,
        News::Termination,
        News::Deletion,
        News::NewPod,
        News::WaitingPod,
    ];
    (prop::sample::select(kinds.to_vec()), any::<prop::sample::Index>())
}

/// Counter from which all objects get their resource versions.
struct Versions(u64);

impl Versions {
    fn next(&mut self) -> Version {
        self.0 += 1;
        Version(self.0)
    }
}

fn change(
    fixture: &DashboardFixture,
    news: News,
    which: &prop::sample::Index,
    versions: &mut Versions,
) -> Change {
    let (cluster, now, version) = (&fixture.app.model.cluster, fixture.now, versions.next());
    let nodes: Vec<&Node> = cluster.nodes().iter().map(|node| &**node).collect();
    let pods: Vec<&Pod> = cluster.pods().iter().map(|pod| &**pod).collect();
    let node = || Node { version, ..(*which.get(&nodes)).clone() };
    let pod = || Pod { version, ..(*which.get(&pods)).clone() };
    let pod = |change: &dyn Fn(&mut Pod)| {
        let mut pod = pod();
        change(&mut pod);
        Change::Pod(ObjectEvent::Applied(pod))
    };
    match news {
        News::Renewal => Change::Lease(ObjectEvent::Applied(Lease {
            node: node().name,
            version,
            renewed: Some(ClusterTime::new(now)),
            duration: Some(Span::from_secs(40)),
            written: None,
        })),
        News::StatusOfNode => {
            let mut node = node();
            let mut conditions = node.conditions.to_vec();
            conditions
                .iter_mut()
                .for_each(|condition| condition.last_heartbeat = Some(ClusterTime::new(now)));
            node.conditions = conditions.into();
            Change::Node(ObjectEvent::Applied(node))
        }
        News::Cordon => {
            let mut node = node();
            node.unschedulable = !node.unschedulable;
            set_condition(&mut node, "DiskPressure", ConditionStatus::False, now);
            Change::Node(ObjectEvent::Applied(node))
        }
        News::VersionOfPod => pod(&|_| {}),
        News::NotReady => pod(&|pod| pod.ready = None),
        News::Finished => pod(&|pod| pod.phase = Phase::Succeeded),
        News::Termination => pod(&|pod| {
            let grace = Span::from_secs(30);
            pod.termination = Some(Termination { deadline: ClusterTime::new(now) + grace, grace }.into());
        }),
        News::Deletion => Change::Pod(ObjectEvent::Deleted(which.get(&pods).key.clone())),
        News::NewPod | News::WaitingPod => pod(&|pod| {
            pod.key.name = format!("new-{}", version.0).as_str().into();
            pod.uid = format!("new-{}", version.0).as_str().into();
            pod.termination = None;
            if matches!(news, News::WaitingPod) {
                (pod.node, pod.phase) = (None, Phase::Pending);
            } else {
                pod.node = Some(NodeName::clone(&node().name));
            }
        }),
    }
}

/// Draws the current screen.
fn shown(fixture: &mut DashboardFixture) -> String {
    let mut terminal = Terminal::new(TestBackend::new(SIZE.0, SIZE.1)).expect("a buffer");
    let drawn = terminal.draw_app(&fixture.app, fixture.now).expect("a buffer");
    fixture.app.screen.drawn(&drawn.rows);
    snapshot::plain(terminal.backend().buffer())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_frame_that_is_not_drawn_would_have_been_the_one_before(
        look in 0..LOOKS.len(),
        news in vec((news(), any::<bool>()), 1..24),
    ) {
        let mut fixture = DashboardFixture::well();
        fixture.press(LOOKS[look]);
        let mut versions = Versions(1_000_000);
        drawn(&mut fixture, SIZE);
        let mut before = shown(&mut fixture);
        for ((news, which), refreshes) in news {
            let now = fixture.now;
            let change = change(&fixture, news, &which, &mut versions);
            let is_shown = fixture.app.on_watch_event(FeedEvent::Changes(vec![change.clone()]), now).is_shown;
            let after = shown(&mut fixture);
            prop_assert!(is_shown || before == after, "{news:?} {change:?}\n{before}\n{after}");
            before = after;
            if refreshes {
                let is_shown = fixture.app.refresh(now);
                let after = shown(&mut fixture);
                prop_assert!(is_shown || before == after, "after {news:?}\n{before}\n{after}");
                before = after;
            }
        }
    }
}

#[test]
fn on_a_calm_screen_few_news_ask_for_a_frame() {
    let mut fixture = DashboardFixture::well();
    fixture.press("2");
    drawn(&mut fixture, SIZE);
    let nodes: Vec<NodeName> =
        fixture.app.model.cluster.nodes().iter().map(|node| node.name.clone()).collect();
    let mut versions = Versions(1_000_000);
    let renewed = Some(ClusterTime::new(fixture.now));
    let mut frames = 0;
    for node in &nodes {
        let lease = Lease { node: node.clone(), version: versions.next(), renewed, ..Lease::default() };
        let changes = vec![Change::Lease(ObjectEvent::Applied(lease))];
        frames += usize::from(fixture.app.on_watch_event(FeedEvent::Changes(changes), fixture.now).is_shown);
    }
    assert!((1..20).contains(&frames), "{frames} of {} renewals are on screen", nodes.len());
    assert!(!fixture.app.refresh(fixture.now), "no list has changed");
    let pods: Vec<Pod> = fixture.app.model.cluster.pods().iter().map(|pod| (**pod).clone()).collect();
    for pod in pods {
        let pod = Pod { version: versions.next(), ..pod };
        let event = FeedEvent::Changes(vec![Change::Pod(ObjectEvent::Applied(pod))]);
        assert!(
            !fixture.app.on_watch_event(event, fixture.now).is_shown,
            "nothing that is shown has changed"
        );
    }
    assert!(!fixture.app.refresh(fixture.now));
}
