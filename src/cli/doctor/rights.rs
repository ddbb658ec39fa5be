//! Checks of permissions: what kordon reads, and what each operation writes.

use std::collections::BTreeSet;

use futures::{StreamExt, stream};

use super::{super::once::Patience, check::DoctorCheck};
use crate::{
    app::{preview::PlanKind, rights::rights_for},
    k8s::{
        access,
        connect::{Connection, FIRST_ANSWER},
        feed::FeedKind,
    },
};
use kordon_core::{cluster::Namespace, plan::Permission};

/// The checks of permissions, in order.
pub const CHECKS: [&str; 7] = [
    "rights.nodes",
    "rights.controller",
    "rights.pods",
    "rights.kubelets",
    "rights.nodeChanges",
    "rights.eviction",
    "rights.deletion",
];

/// Number of access reviews that are sent at the same time.
const AT_ONCE: usize = 8;

const VIEWER: &str = "bind the ClusterRole kordon-viewer of deploy/viewer to the user";
const OPERATOR: &str = "bind the ClusterRole kordon-operator of deploy/operator to the user";

/// The permissions that a check asks for.
struct Need {
    id: &'static str,
    permissions: Vec<Permission>,
    /// The features that the permissions allow.
    allows: &'static str,
    /// Advice if the permissions are missing, and who grants them.
    without: String,
    is_vital: bool,
}

/// Asks the server which permissions the user has. Checks without an answer within `--request-timeout` are unknown.
pub async fn checks(connection: &Connection) -> Vec<DoctorCheck> {
    let limit = connection.request_timeout.unwrap_or(FIRST_ANSWER);
    let patience = Patience::start(limit.into(), "--request-timeout");
    let mut checks = Vec::new();
    for need in needs() {
        let missing = patience.wait(missing(connection, &need.permissions)).await;
        checks.push(match missing {
            Some(Ok(missing)) => of_missing(&need, &missing),
            Some(Err(why)) => DoctorCheck::unknown(need.id, format!("the server reviews no access: {why}")),
            None => {
                let why = format!("no response within {} s", limit.as_secs_f64());
                DoctorCheck::unknown(need.id, format!("the server reviews no access: {why}"))
            }
        });
    }
    checks
}

/// Returns the permissions that the user lacks. Asks the server for several at the same time.
async fn missing(connection: &Connection, wanted: &[Permission]) -> Result<Vec<Permission>, String> {
    let asked = stream::iter(wanted)
        .map(|permission| access::missing(&connection.client, std::slice::from_ref(permission)));
    let answers: Vec<Result<Vec<Permission>, String>> = asked.buffered(AT_ONCE).collect().await;
    Ok(answers.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

fn of_missing(need: &Need, missing: &[Permission]) -> DoctorCheck {
    if missing.is_empty() {
        return DoctorCheck::ok(need.id, format!("you may {}", need.allows));
    }
    let names: Vec<String> = missing.iter().map(ToString::to_string).collect();
    let found = format!("you may not {}: missing {}", need.allows, names.join(", "));
    match need.is_vital {
        true => DoctorCheck::problem(need.id, found, &*need.without),
        false => DoctorCheck::warning(need.id, found, &*need.without),
    }
}

fn needs() -> [Need; 7] {
    let is_pods = |kind: &FeedKind| !matches!(kind, FeedKind::Nodes | FeedKind::Leases | FeedKind::Leader);
    let others = FeedKind::ALWAYS.into_iter().filter(is_pods).flat_map(read);
    let everywhere = BTreeSet::from([Namespace::default()]);
    let to = |kind| rights_for(kind, false, &everywhere);
    [
        Need {
            id: "rights.nodes",
            permissions: read(FeedKind::Nodes).into(),
            allows: "read nodes, without which kordon shows nothing",
            without: VIEWER.into(),
            is_vital: true,
        },
        Need {
            id: "rights.controller",
            permissions: [read(FeedKind::Leases), read(FeedKind::Leader)].concat(),
            allows: "read the heartbeats of nodes and the controller's lease",
            without: format!("kordon status works without, by the status of nodes; {VIEWER}"),
            is_vital: false,
        },
        Need {
            id: "rights.pods",
            permissions: others.collect(),
            allows: "read pods, their owners and what placement depends on",
            without: format!("kordon --no-pods works without pods; {VIEWER}"),
            is_vital: false,
        },
        Need {
            id: "rights.kubelets",
            permissions: vec![Permission { subresource: "proxy", ..Permission::on_node("get", &"".into()) }],
            allows: "read the measurements of kubelets",
            without: "kordon plan pressure works without, with metrics.k8s.io or the requests; nodes/proxy reaches \
                      every endpoint of a kubelet, so grant it with care"
                .into(),
            is_vital: false,
        },
        Need {
            id: "rights.nodeChanges",
            permissions: to(PlanKind::Cordon),
            allows: "cordon, uncordon, taint, label and annotate nodes",
            without: format!("kordon plan cordon (taint, label, annotate) works without; {OPERATOR}"),
            is_vital: false,
        },
        Need {
            id: "rights.eviction",
            permissions: to(PlanKind::Drain),
            allows: "drain nodes and evict pods",
            without: format!("kordon plan drain works without; {OPERATOR}"),
            is_vital: false,
        },
        Need {
            id: "rights.deletion",
            permissions: to(PlanKind::Delete),
            allows: "delete pods, as drain --disable-eviction does",
            without: format!("kordon plan delete works without; {OPERATOR}"),
            is_vital: false,
        },
    ]
}

/// Permissions to list and watch a kind.
fn read(kind: FeedKind) -> [Permission; 2] {
    let (resource, group) = kind.resource().split_once('.').unwrap_or((kind.resource(), ""));
    let (namespace, name) = match kind {
        FeedKind::Leases => ("kube-node-lease", ""),
        FeedKind::Leader => ("kube-system", "kube-controller-manager"),
        _ => ("", ""),
    };
    ["list", "watch"].map(|verb| Permission {
        verb,
        group,
        resource,
        subresource: "",
        namespace: namespace.into(),
        name: name.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::{super::check::CheckResult, *};

    #[test]
    fn every_kind_that_is_read_is_asked_for_by_group_and_resource() {
        let needs = needs();
        let wanted: Vec<&Permission> = needs.iter().flat_map(|need| &need.permissions).collect();
        for kind in FeedKind::ALWAYS {
            let of_kind = wanted.iter().filter(|permission| {
                let Permission { resource, group, .. } = permission;
                kind.resource()
                    == if group.is_empty() { (*resource).to_owned() } else { format!("{resource}.{group}") }
            });
            let verbs: Vec<&str> = of_kind.map(|permission| permission.verb).collect();
            assert!(verbs.contains(&"list") && verbs.contains(&"watch"), "{kind}: {verbs:?}");
        }
        assert_eq!(needs.map(|need| need.id), CHECKS);
    }

    #[test]
    fn what_is_missing_is_named_and_only_nodes_are_vital() {
        let missing = |need: &Need| of_missing(need, &need.permissions);
        let needs = needs();
        assert!(missing(&needs[0]).found.ends_with("missing list nodes, watch nodes"));
        let drain = missing(&needs[5]);
        assert!(drain.found.ends_with("missing patch nodes, create pods/eviction"), "{}", drain.found);
        assert!(drain.fix.is_some_and(|fix| fix.contains("kordon plan drain")));
        let vital = needs.iter().filter(|need| missing(need).result == CheckResult::Problem);
        assert_eq!(vital.count(), 1);
        assert!(needs.iter().all(|need| of_missing(need, &[]).result == CheckResult::Ok));
    }
}
