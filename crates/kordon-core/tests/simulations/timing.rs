//! Times, writes and risks of timing profiles, compared with the tables of the specification.

use kordon_core::{
    engine::{Origin, ServerVersion},
    timing::{
        ApiLoad, BlipRisk, BlipScope, ClusterSize, DeathPhase, DeathTimes, Harmless, HeartbeatKind,
        Milestones, PassDuration, STATUS_TRIES, TimingProfile, TimingRange, milestones,
    },
};
use kordon_time::Span;

/// Allowed delay of a simulated event, because the tainting loop runs every 100 ms and a pass takes a millisecond.
const LATE: Span = Span::from_millis(200);

const SIZE: ClusterSize = ClusterSize { nodes: 30, pods_per_node: 10, zones: 3 };

/// A controller of release `OLD` requests the taint in a later pass than the one that marks the node; a controller of
/// release `NEW` requests it in the same pass.
const OLD: ServerVersion = ServerVersion::new(1, 26);
const NEW: ServerVersion = ServerVersion::new(1, 34);

#[test]
fn marking_and_evicting_take_as_long_as_the_table_of_the_profiles_says() {
    let rows = table("11.2", "| profile | H |");
    assert_eq!(rows.len(), 4);
    for row in rows {
        let [name, h, p, g, t, mark, mark_from_death, due, due_from_death, _] = &row[..] else {
            panic!("{row:?}")
        };
        let mut profile = preset(name, OLD);
        let given = [
            profile.kubelet.interval(),
            profile.settings.node_monitor_period.value,
            profile.settings.node_monitor_grace_period.value,
            profile.settings.pod_eviction_timeout.value,
        ];
        assert_eq!(given, [h, p, g, t].map(|text| seconds(text)), "{name}");

        for (times, noticed) in on_the_grid(&profile) {
            expect(times.unknown, noticed + seconds(mark), &format!("{name}: Unknown"));
        }
        let [best, worst] = range(mark_from_death);
        let death = DeathTimes::new(&profile, SIZE);
        expect_range(&death, |death| death.unknown, [best, worst], &format!("{name}: Unknown"));

        profile.settings.set("enable-taint-manager", "false", Origin::Override).expect("a flag");
        for (times, noticed) in on_the_grid(&profile) {
            expect(times.deleted, noticed + seconds(due), &format!("{name}: due in legacy mode"));
            assert_eq!(times.tainted, None, "legacy mode does not taint");
        }
        let death = DeathTimes::new(&profile, SIZE);
        expect_range(&death, |death| death.deleted, range(due_from_death), &format!("{name}: legacy mode"));
    }
}

#[test]
fn deletion_after_the_default_toleration_is_as_the_specification_works_it_out() {
    for (name, seconds, period) in
        [("default", 350, 5), ("fast", 324, 2), ("medium", 430, 5), ("low", 610, 5)]
    {
        for (version, deleted) in [(OLD, seconds), (NEW, seconds - period)] {
            let mut profile = preset(name, version);
            if name == "default" {
                profile.settings.set("node-monitor-grace-period", "40s", Origin::Override).expect("a flag");
            }
            for (times, noticed) in on_the_grid(&profile) {
                expect(times.deleted, noticed + Span::from_secs(deleted), &format!("{name} on {version}"));
            }
        }
    }
}

#[test]
fn heartbeats_and_writes_are_as_many_as_the_tables_say() {
    let heartbeats = ["default", "fast", "medium", "low"].map(|name| preset(name, OLD).heartbeats_in_grace());
    assert_eq!(heartbeats, [4, 5, 6, 5]);
    assert_eq!(heartbeats.map(|heartbeats| heartbeats * STATUS_TRIES), [20, 25, 30, 25]);
    let rows = table("11.2", "| profile | formula |");
    assert_eq!(rows.len(), 4);
    for row in rows {
        for (nodes, writes) in [100, 1000, 5000].into_iter().zip(&row[2..]) {
            let load = ApiLoad::new(&preset(&row[0], OLD), nodes);
            let expected: f64 = writes.parse().expect("a number");
            assert!((load.status_writes_per_minute - expected).abs() < 0.01, "{row:?}: {load:?}");
            assert!(load.lease_writes_per_minute[1].abs() < 0.01, "no Leases");
        }
    }
    // docs/upstream/node-lifecycle.md#11.3: for N nodes 5.77 N to 6 N renewals and N / 5 status writes per minute.
    let load = ApiLoad::new(&leases("default", NEW), 1000);
    let [least, most] = load.lease_writes_per_minute;
    assert!((least - 5769.2).abs() < 0.1 && (most - 6000.0).abs() < 0.1, "{load:?}");
    assert!((load.status_writes_per_minute - 200.0).abs() < 0.1, "{load:?}");
    assert_eq!(leases("fast", NEW).heartbeats_in_grace(), 2, "a shorter status frequency renews no Lease");
}

#[test]
fn with_leases_every_release_takes_as_long_as_the_table_says() {
    let rows = table("11.3", "| release |");
    let releases: [&[u32]; 3] = [&[19, 26, 27, 31], &[32, 33], &[34, 36, 37]];
    assert_eq!(rows.len(), releases.len());
    for (row, minors) in rows.iter().zip(releases) {
        let [_, grace, mark, from_death, taint, deleted] = &row[..] else { panic!("{row:?}") };
        for minor in minors {
            let profile = leases("default", ServerVersion::new(1, *minor));
            assert_eq!(profile.settings.node_monitor_grace_period.value, seconds(grace), "1.{minor}");
            let what = |what| format!("1.{minor}: {what}");
            for (times, noticed) in on_the_grid(&profile) {
                let marked = noticed + seconds(mark);
                expect(times.unknown, marked, &what("Unknown"));
                expect(times.tainted, marked + seconds(taint.trim_start_matches('+')), &what("taint"));
                expect(times.deleted, noticed + seconds(deleted), &what("deletion"));
            }
            let death = DeathTimes::new(&profile, SIZE);
            expect_range(&death, |death| death.unknown, range(from_death), &what("Unknown"));
        }
    }
}

#[test]
fn a_grace_period_between_two_passes_ends_with_the_next_pass() {
    for (period, grace) in [(5, 42), (3, 7), (2, 21), (7, 50)] {
        for heartbeats in [HeartbeatKind::Status, HeartbeatKind::Lease] {
            let mut profile = TimingProfile::defaults(NEW, heartbeats);
            for (flag, value) in [("node-monitor-period", period), ("node-monitor-grace-period", grace)] {
                profile.settings.set(flag, &format!("{value}s"), Origin::Override).expect("a flag");
            }
            let mark = Span::from_secs(period * (grace / period + 1));
            for passes in [PassDuration::WithinPeriod, PassDuration::AfterPeriod] {
                for noticed_after in noticed(&profile) {
                    let times = milestones(&profile, SIZE, DeathPhase { noticed_after, passes });
                    expect(times.unknown, noticed_after + mark, &format!("{grace}s in passes of {period}s"));
                }
            }
        }
    }
}

#[test]
fn the_passes_of_a_real_controller_find_the_grace_period_over_at_its_end() {
    let profile = leases("default", NEW);
    for noticed_after in noticed(&profile) {
        let times =
            milestones(&profile, SIZE, DeathPhase { noticed_after, passes: PassDuration::AfterPeriod });
        expect(times.unknown, noticed_after + Span::from_secs(50), "Unknown");
    }
    let death = DeathTimes::new(&profile, SIZE);
    let typical = death.unknown.expect("it becomes Unknown").typical;
    // The typical time until Unknown is the grace period of 50 s, minus half a heartbeat interval, plus half a monitor
    // period.
    assert!((typical - Span::from_millis(47_500)).as_secs_f64().abs() < 0.7, "{typical:?}");
    let replaced = death.replaced.expect("replaced").worst;
    assert_eq!(replaced, death.deleted.expect("deleted").worst + profile.pod_startup);
}

#[test]
fn a_blip_evicts_only_the_pods_of_nodes_that_stay_away_longer_than_harmless() {
    for (version, heartbeats) in [(OLD, HeartbeatKind::Status), (NEW, HeartbeatKind::Lease)] {
        let profile = TimingProfile::defaults(version, heartbeats);
        let harmless = Harmless::new(&profile, SIZE);
        let (quiet, safe) =
            (harmless.without_unknown.expect("some"), harmless.without_eviction.expect("some"));
        let second = Span::from_secs(1);
        let lengths = [quiet, quiet + second, safe, safe + second];
        let risks = BlipRisk::all(&profile, SIZE, &lengths);
        let most = |place: usize| {
            let (_, blip) = risks[place].blips[0];
            (blip.unknown.most, blip.not_ready.most, blip.evicted.most)
        };
        assert_eq!([0, 1, 2, 3].map(most), [(0, 0, 0), (1, 10, 0), (1, 10, 0), (1, 10, 10)], "{harmless:?}");
        // The longest blip (network outage) without an eviction ends before the earliest deletion of a pod, by at most
        // one heartbeat interval, one monitor period and two seconds.
        let death = DeathTimes::new(&profile, SIZE).deleted.expect("deleted");
        let margin = profile.kubelet.interval() + profile.settings.node_monitor_period.value + second * 2;
        assert!(death.best - margin <= safe && safe <= death.best, "{death:?}, {safe:?}");
    }
}

#[test]
fn a_zone_without_network_loses_pods_and_a_whole_cluster_pauses_evictions() {
    let minutes = |minutes: i64| Span::from_secs(60 * minutes);
    for profile in [leases("default", NEW), preset("fast", OLD)] {
        let risks = BlipRisk::all(&profile, SIZE, &[minutes(15), minutes(1), minutes(6)]);
        assert_eq!(risks.iter().map(|risk| risk.lasts).collect::<Vec<_>>(), [1, 6, 15].map(minutes));
        let evicted = |place: usize| {
            risks[place].blips.iter().map(|(scope, blip)| (*scope, blip.evicted)).collect::<Vec<_>>()
        };
        assert!(evicted(0).iter().all(|(_, evicted)| evicted.most == 0), "{:?}", evicted(0));
        let [(BlipScope::Node, node), (BlipScope::Zone, zone), (BlipScope::AllNodes, all)] = evicted(2)[..]
        else {
            panic!("{:?}", evicted(2));
        };
        assert_eq!((node.least, zone.least, zone.most, all.most), (10, 100, 100, 0), "{}", profile.name);
        // One node of the zone is tainted every ten seconds, so some nodes still have their pods after six minutes.
        let (_, zone) = evicted(1)[1];
        assert!(zone.least > 0 && zone.most < 100, "{zone:?}");
    }
}

#[test]
fn the_only_node_is_never_evicted_and_nothing_to_run_on_is_no_panic() {
    let profile = leases("default", NEW);
    let one = ClusterSize { nodes: 1, pods_per_node: 1, zones: 3 };
    let death = DeathTimes::new(&profile, one);
    assert!(death.unknown.is_some() && death.tainted.is_none() && death.deleted.is_none(), "{death:?}");
    assert_eq!(Harmless::new(&profile, one).without_eviction, None);
    let none = ClusterSize { nodes: 0, pods_per_node: 0, zones: 0 };
    assert_eq!(DeathTimes::new(&profile, none), DeathTimes::default());
    assert_eq!(BlipRisk::all(&profile, none, &[Span::from_secs(600)])[0].blips[2].1.evicted.most, 0);
}

/// Returns a profile whose nodes write their status as heartbeats.
fn preset(name: &str, version: ServerVersion) -> TimingProfile {
    named(name, version, HeartbeatKind::Status)
}

fn leases(name: &str, version: ServerVersion) -> TimingProfile {
    named(name, version, HeartbeatKind::Lease)
}

fn named(name: &str, version: ServerVersion, heartbeat: HeartbeatKind) -> TimingProfile {
    let all = TimingProfile::presets(&TimingProfile::defaults(version, heartbeat));
    all.into_iter().find(|profile| profile.name == name).expect("a profile of that name")
}

/// Returns the times of a node's death if passes are exactly one period apart: one item for each delay after which the
/// first pass may notice the last heartbeat, together with this delay.
fn on_the_grid(profile: &TimingProfile) -> Vec<(Milestones, Span)> {
    let passes = PassDuration::WithinPeriod;
    let run =
        |noticed_after| (milestones(profile, SIZE, DeathPhase { noticed_after, passes }), noticed_after);
    noticed(profile).map(run).collect()
}

/// Some delays after which a pass can notice a heartbeat.
fn noticed(profile: &TimingProfile) -> impl Iterator<Item = Span> + use<> {
    let period = profile.settings.node_monitor_period.value.as_nanos();
    [1, 330, 1000].into_iter().map(move |thousandths| Span::from_nanos(period / 1000 * thousandths))
}

fn expect(time: Option<Span>, expected: Span, what: &str) {
    let time = time.unwrap_or_else(|| panic!("{what}: never"));
    assert!(expected <= time && time < expected + LATE, "{what} after {time:?} instead of {expected:?}");
}

fn expect_range(
    death: &DeathTimes,
    time: fn(&DeathTimes) -> Option<TimingRange>,
    [best, worst]: [Span; 2],
    what: &str,
) {
    let range = time(death).unwrap_or_else(|| panic!("{what}: never"));
    expect(Some(range.best), best, &format!("{what} at best"));
    expect(Some(range.worst), worst, &format!("{what} at worst"));
    assert!(range.best < range.typical && range.typical < range.worst, "{what}: {range:?}");
}

fn seconds(text: &str) -> Span {
    Span::from_secs(text.parse().unwrap_or_else(|_| panic!("not a number: {text}")))
}

/// Parses `30 to 50` in seconds.
fn range(text: &str) -> [Span; 2] {
    let (least, most) = text.split_once(" to ").unwrap_or_else(|| panic!("no range: {text}"));
    [least, most].map(seconds)
}

/// Returns the rows of a table in a section of docs/upstream/node-lifecycle.md. `head` is the start of the table's
/// header line.
fn table(section: &str, head: &str) -> Vec<Vec<String>> {
    const TEXT: &str = include_str!("../../../../docs/upstream/node-lifecycle.md");
    let (_, text) = TEXT.split_once(&format!("<a id=\"{section}\">")).expect("the section");
    let lines = text.lines().skip_while(|line| !line.starts_with(head)).skip(2);
    let rows = lines.take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
}
