//! Checks of the cluster: version, clock, API groups, watches, size, controller and its settings.

use std::{collections::BTreeSet, time::Duration};

use super::{
    super::{
        confidence,
        config::Config,
        dashboard::settings_of,
        exit::CliError,
        once::{OneShot, Patience, Watched},
        settings::SettingsArgs,
        show::connection_info,
    },
    check::DoctorCheck,
};
use crate::{
    k8s::{
        connect::{Connection, FIRST_ANSWER},
        feed::{FeedKind, FeedState},
        served,
        server_clock::ClockDifferenceRange,
        settings::{ControllerFlags, controller_flags},
        watch::count_pods,
    },
    model::{ControllerRole, Leadership, Model, ModelOptions},
};
use kordon_core::engine::{Confidence, Origin, ServerVersion, Settings};
use kordon_time::{Span, Timestamp};

/// The checks that need a connection, in order.
pub const CHECKS: [&str; 7] = [
    "cluster.version",
    "cluster.clock",
    "cluster.apis",
    "cluster.watches",
    "cluster.size",
    "controller.lease",
    "controller.settings",
];

/// The oldest Kubernetes release whose rules kordon follows.
const OLDEST: ServerVersion = ServerVersion::new(1, 19);

/// Maximum difference between the server's clock and this machine's clock that causes no warning.
const SMALL: Span = Span::from_secs(2);

/// Number of pods above which `--no-pods` is proposed.
const MANY_PODS: usize = 50_000;

/// Kinds that are watched for the checks: those that the controller's engine needs to start.
const WATCHED: [FeedKind; 3] = [FeedKind::Nodes, FeedKind::Leases, FeedKind::Leader];

/// Checks the cluster. `--request-timeout` limits each request, and all watches together.
pub async fn checks(connection: &Connection, config: &Config) -> Vec<DoctorCheck> {
    let limit = connection.request_timeout.unwrap_or(FIRST_ANSWER);
    let patience = Patience::start(limit.into(), "--request-timeout");
    let (clock, groups, flags, pods) = tokio::join!(
        patience.wait(ClockDifferenceRange::measure(&connection.client, connection.clock)),
        served::group_versions(&connection.client, limit),
        patience.wait(controller_flags(&connection.client)),
        patience.wait(count_pods(connection)),
    );
    let (settings, of_settings) = of_settings(connection, config, flags, limit);
    let mut checks = vec![
        of_version(connection.version, &connection.release),
        of_clock(clock.flatten()),
        of_groups(groups, connection.version),
    ];
    let patience = Patience::start(limit.into(), "--request-timeout");
    checks.extend(watched(connection, settings, patience, pods.flatten()).await);
    checks.push(of_settings);
    checks
}

fn of_version(version: ServerVersion, release: &str) -> DoctorCheck {
    let id = "cluster.version";
    let tested = ServerVersion::NEWEST_TESTED;
    if version < OLDEST {
        let found =
            format!("{release} is older than {OLDEST}, the oldest release whose rules kordon follows");
        return DoctorCheck::warning(id, found, "do not rely on predictions; upgrade the cluster");
    }
    if version > tested {
        let found =
            format!("{release} is newer than {tested}, the newest release whose rules kordon follows");
        return DoctorCheck::warning(id, found, "predictions follow the older rules; upgrade kordon");
    }
    DoctorCheck::ok(id, format!("{release}; kordon follows the rules of {OLDEST} to {tested}"))
}

fn of_clock(range: Option<ClockDifferenceRange>) -> DoctorCheck {
    let id = "cluster.clock";
    let Some(range) = range else {
        return DoctorCheck::unknown(id, "the server sent no time (the Date header of its answers)");
    };
    let difference = range.difference(None);
    let (size, way) = match difference < Span::ZERO {
        true => (Span::ZERO - difference, "behind"),
        false => (difference, "ahead of"),
    };
    let accuracy = Span::from_nanos((range.most - range.least).as_nanos() / 2);
    if size <= accuracy {
        return DoctorCheck::ok(
            id,
            format!("the clocks of the server and of this machine agree within {accuracy}"),
        );
    }
    let found = format!("the server's clock is {size} {way} this machine's (\u{b1}{accuracy})");
    if size - accuracy > SMALL {
        let fix = "kordon converts times, but tokens and certificates may fail: synchronize the clocks (NTP)";
        return DoctorCheck::warning(id, found, fix);
    }
    DoctorCheck::ok(id, found)
}

/// The features that are lost without an API group.
fn lost_without(group: &str) -> &'static str {
    match group {
        "coordination.k8s.io" => "heartbeats",
        "policy" => "PodDisruptionBudgets",
        "metrics.k8s.io" => "usage of nodes and pods (install metrics-server)",
        "authorization.k8s.io" => "checks of permissions",
        _ => "claimed devices",
    }
}

fn of_groups(served: Result<BTreeSet<String>, String>, version: ServerVersion) -> DoctorCheck {
    let id = "cluster.apis";
    let served = match served {
        Ok(served) => served,
        Err(why) => return DoctorCheck::unknown(id, format!("the API groups cannot be listed: {why}")),
    };
    let devices = (version >= ServerVersion::new(1, 34)).then_some("resource.k8s.io/v1");
    let budgets = if version < ServerVersion::new(1, 21) { "policy/v1beta1" } else { "policy/v1" };
    let wanted = ["coordination.k8s.io/v1", budgets, "authorization.k8s.io/v1", "metrics.k8s.io/v1beta1"];
    let (is_served, missing): (Vec<&str>, Vec<&str>) =
        wanted.into_iter().chain(devices).partition(|group| served.contains(*group));
    if missing.is_empty() {
        return DoctorCheck::ok(id, format!("served: {}", is_served.join(", ")));
    }
    let lost = missing.iter().map(|group| lost_without(group.split('/').next().unwrap_or_default()));
    let lost: Vec<&str> = lost.collect();
    let fix = format!("without them kordon does not know: {}", lost.join(", "));
    DoctorCheck::warning(id, format!("not served: {}", missing.join(", ")), fix)
}

/// The controller's settings, and the check of where they come from.
fn of_settings(
    connection: &Connection,
    config: &Config,
    flags: Option<ControllerFlags>,
    limit: Duration,
) -> (Settings, DoctorCheck) {
    let id = "controller.settings";
    let flags = flags.unwrap_or_else(|| ControllerFlags {
        note: format!("no response within {} s: using upstream's defaults", limit.as_secs_f64()),
        ..ControllerFlags::default()
    });
    let (settings, notes) = settings_of(connection, config, flags, &SettingsArgs::default());
    let count = |origin| settings.rows().iter().filter(|(_, _, of)| *of == origin).count();
    let (cluster, configured) = (count(Origin::Cluster), count(Origin::Configuration));
    let found = format!(
        "{cluster} from the cluster, {configured} configured, {} defaults of {}; {}",
        count(Origin::Default),
        connection.version,
        notes.join("; ")
    );
    let check = match cluster + configured {
        0 => {
            let fix = "if the cluster has other settings, configure them in [controller] of config.toml; \
                       kordon status lists each with its origin";
            DoctorCheck::warning(id, found, fix)
        }
        _ => DoctorCheck::ok(id, found),
    };
    (settings, check)
}

/// Watches nodes, Leases and the controller's Lease, as the dashboard does.
async fn watched(
    connection: &Connection,
    settings: Settings,
    patience: Patience,
    pods: Option<usize>,
) -> Vec<DoctorCheck> {
    let kinds = Watched { kinds: &WATCHED, wanted: &WATCHED, no_pods: true };
    let options =
        ModelOptions { connection: connection_info(connection), settings, role: ControllerRole::Shadow };
    match OneShot::watch(connection.clone(), options, kinds, patience).await {
        Ok(mut shot) => {
            shot.read_kordon_lease().await;
            vec![of_watches(&shot.model), of_size(&shot.model, pods), of_controller(&shot.model, shot.at)]
        }
        Err(error) => unwatched(&error),
    }
}

fn unwatched(error: &CliError) -> Vec<DoctorCheck> {
    let fix = "bind the ClusterRole kordon-viewer of deploy/viewer to the user";
    let unknown = |id| DoctorCheck::unknown(id, "not checked, because cluster.watches failed");
    let watches = DoctorCheck::problem("cluster.watches", error.to_string(), fix);
    vec![watches, unknown("cluster.size"), unknown("controller.lease")]
}

fn of_watches(model: &Model) -> DoctorCheck {
    let id = "cluster.watches";
    let state = |kind: FeedKind| match model.feeds.state(kind) {
        Some(FeedState::Live) => None,
        Some(FeedState::Broken { error, .. } | FeedState::Forbidden { error }) => {
            Some(format!("{kind}: {error}"))
        }
        Some(state @ (FeedState::Off | FeedState::Connecting | FeedState::Listing { .. })) => {
            Some(format!("{kind}: {}", state.as_str()))
        }
        None => Some(format!("{kind}: no answer")),
    };
    let broken: Vec<String> = WATCHED.into_iter().filter_map(state).collect();
    if broken.is_empty() {
        return DoctorCheck::ok(id, "nodes, leases and the controller's lease are live");
    }
    let fix = "a proxy that holds back answers breaks watches; otherwise grant the permission, or allow more time with \
               --request-timeout";
    let found = broken.join("; ");
    match model.feeds.state(FeedKind::Nodes) {
        Some(FeedState::Live) => DoctorCheck::warning(id, found, fix),
        _ => DoctorCheck::problem(id, found, fix),
    }
}

fn of_size(model: &Model, pods: Option<usize>) -> DoctorCheck {
    let (id, nodes) = ("cluster.size", model.cluster.nodes().len());
    if model.feeds.state(FeedKind::Nodes) != Some(&FeedState::Live) {
        return DoctorCheck::unknown(id, "the nodes are not listed");
    }
    match pods {
        None => DoctorCheck::unknown(id, format!("{nodes} nodes; the pods cannot be counted")),
        Some(pods) if pods > MANY_PODS => {
            let fix = "--no-pods loads faster and takes less memory; evictions are not shown then";
            DoctorCheck::warning(id, format!("{nodes} nodes, {pods} pods: the lists take long"), fix)
        }
        Some(pods) => DoctorCheck::ok(id, format!("{nodes} nodes, {pods} pods")),
    }
}

fn of_controller(model: &Model, now: Timestamp) -> DoctorCheck {
    let id = "controller.lease";
    let confidence = model.engine.as_ref().map(|engine| engine.confidence(now));
    let fix =
        "predictions assume that a controller runs; permit get, list and watch of leases in kube-system";
    match (model.leadership(now), confidence) {
        (Leadership::Kordon(_) | Leadership::Held(_), Some(Confidence::NoController { since })) => {
            no_controller(now.since(since))
        }
        (Leadership::Kordon(lease), _) => {
            let since = lease.acquired.map(|acquired| now.since(model.cluster.local(acquired)));
            let since = since.map(|span| format!(" for {}", Span::from_secs(span.as_secs())));
            let found = format!("kordon controller runs as {}{}", lease.holder, since.unwrap_or_default());
            DoctorCheck::ok(id, found)
        }
        (Leadership::Released, _) => no_controller(Span::ZERO),
        (Leadership::Held(lease), Some(_)) => {
            DoctorCheck::ok(id, format!("kube-controller-manager runs as {}", lease.holder))
        }
        (Leadership::Held(lease), None) => {
            DoctorCheck::unknown(id, format!("{} holds the lease; the nodes are not listed", lease.holder))
        }
        (Leadership::NoLease | Leadership::Absent, _) => {
            let found = "there is no lease kube-system/kube-controller-manager: nothing shows whether a controller runs";
            let fix = "managed control planes may hide it; predictions assume that a controller runs";
            DoctorCheck::warning(id, found, fix)
        }
        (Leadership::Forbidden, _) => {
            DoctorCheck::warning(id, "the lease kube-system/kube-controller-manager may not be read", fix)
        }
        (Leadership::Unknown, _) => DoctorCheck::unknown(id, "the controller's lease was not read in time"),
    }
}

fn no_controller(lasting: Span) -> DoctorCheck {
    let lasting = Some(lasting).filter(|span| *span > Span::ZERO);
    let fix = "check the control plane: nothing is tainted or evicted until a controller runs";
    DoctorCheck::problem("controller.lease", confidence::text("noController", lasting), fix)
}

#[cfg(test)]
mod tests {
    use super::{super::check::CheckResult, *};

    #[test]
    fn a_release_without_rules_of_its_own_is_named() {
        let result = |minor| of_version(ServerVersion::new(1, minor), "v1").result;
        let newest = ServerVersion::NEWEST_TESTED.minor;
        assert_eq!((result(18), result(19)), (CheckResult::Warning, CheckResult::Ok));
        assert_eq!((result(newest), result(newest + 1)), (CheckResult::Ok, CheckResult::Warning));
    }

    #[test]
    fn clocks_differ_only_by_more_than_the_measurement_can_be_wrong() {
        let check = |least, most| {
            let (least, most) = (Span::from_millis(least), Span::from_millis(most));
            of_clock(Some(ClockDifferenceRange { least, most }))
        };
        assert_eq!(check(-500, 500).result, CheckResult::Ok);
        assert_eq!(check(-5_000, 6_000).result, CheckResult::Ok, "a slow answer says little");
        let behind = check(-61_000, -60_000);
        assert_eq!(behind.result, CheckResult::Warning);
        assert!(behind.found.contains("behind this machine's"), "{}", behind.found);
        assert!(check(60_000, 61_000).found.contains("ahead of"));
        assert_eq!(of_clock(None).result, CheckResult::Unknown);
    }

    #[test]
    fn groups_are_missed_only_where_the_release_has_them() {
        let all =
            ["coordination.k8s.io/v1", "policy/v1", "authorization.k8s.io/v1", "metrics.k8s.io/v1beta1"];
        let served = |groups: &[&str]| Ok(groups.iter().map(ToString::to_string).collect());
        let check = |groups: &[&str], minor| of_groups(served(groups), ServerVersion::new(1, minor));
        assert_eq!(check(&all, 33).result, CheckResult::Ok, "{:?}", check(&all, 33));
        let devices = check(&all, 36);
        assert_eq!(devices.found, "not served: resource.k8s.io/v1");
        let without = check(&all[..3], 30);
        assert!(without.fix.is_some_and(|fix| fix.contains("metrics-server")), "{}", without.found);
        assert_eq!(of_groups(Err("no".into()), ServerVersion::new(1, 30)).result, CheckResult::Unknown);
    }
}
