//! Detects whether kube-controller-manager runs the same controllers as kordon. If it does, kordon waits, because two
//! instances of a controller must not write at the same time.

use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{Api, Client};
use tokio::sync::watch;

use crate::k8s::{
    error::words,
    leadership::MANAGER_LEASE,
    settings::{ControllerFlags, controller_flags},
};
use kordon_clock::Clock;
use kordon_core::engine::Controllers;
use kordon_time::{Span, Timestamp};

/// Whether this process may hold the Lease of its own leader election, with the reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MayLead {
    pub is_allowed: bool,
    /// The reason in words. If the process may not hold the Lease, the text also says what the operator can do.
    pub text: String,
}

/// The controllers that kube-controller-manager runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ManagerControllers {
    /// The controllers are known. `origin` says whether the operator stated them or they were read from the command
    /// line of kube-controller-manager.
    Known {
        controllers: Controllers,
        elects: Elects,
        origin: String,
    },
    Unknown {
        why: String,
    },
}

/// Whether a controller manager uses leader election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elects {
    Yes,
    /// Leader election is disabled (`--leader-elect=false`): the controllers run even if another process holds the
    /// Lease.
    No,
}

/// State of the controller managers' Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ManagerActivity {
    /// The Lease is held. As far as this process knows, it was renewed within its duration.
    Active {
        holder: String,
    },
    /// The Lease has expired according to its renewTime. This is not certain: the clocks may differ, and this process
    /// has not watched the Lease for a whole duration yet.
    Expired {
        holder: String,
        renewed: Timestamp,
        duration: Span,
    },
    /// The Lease has no holder, or was not renewed while this process watched it for a whole duration.
    Quiet,
    NoLease,
    /// This process has no permission to read the Lease.
    Unreadable {
        why: String,
    },
}

/// Decides whether kordon may run the controllers `ours`.
pub fn may_lead(ours: Controllers, theirs: &ManagerControllers, activity: &ManagerActivity) -> MayLead {
    let both = match theirs {
        ManagerControllers::Known { controllers, .. } => ours.and(*controllers),
        ManagerControllers::Unknown { .. } => ours,
    };
    let origin = match theirs {
        ManagerControllers::Known { origin, .. } => origin,
        ManagerControllers::Unknown { why } => why,
    };
    let refused = |who: String| MayLead {
        is_allowed: false,
        text: format!(
            "{who} and may run {} ({origin}): disable them there with --controllers={}, state with --manager-controllers \
             what it runs, or replace it with --take-over",
            both.names().join(", "),
            ours.exclusion(),
        ),
    };
    let allowed = |text: String| MayLead { is_allowed: true, text };
    if both.names().is_empty() {
        return allowed(format!("kube-controller-manager runs none of these controllers ({origin})"));
    }
    let elects_not = matches!(theirs, ManagerControllers::Known { elects: Elects::No, .. });
    match activity {
        _ if elects_not => refused("kube-controller-manager runs without leader election".into()),
        ManagerActivity::Active { holder } => {
            refused(format!("kube-controller-manager ({holder}) is active"))
        }
        ManagerActivity::Expired { holder, renewed, duration } => MayLead {
            is_allowed: false,
            text: format!(
                "kube-controller-manager ({holder}) last renewed its Lease at {}: waits {duration} to see whether it is renewed",
                renewed.to_time()
            ),
        },
        ManagerActivity::Unreadable { why } => refused(format!(
            "whether kube-controller-manager is active cannot be read ({why}): it may be active"
        )),
        ManagerActivity::Quiet => allowed("no kube-controller-manager has renewed its Lease".into()),
        ManagerActivity::NoLease => allowed("there is no Lease of a kube-controller-manager".into()),
    }
}

/// Follows the Lease of the controller managers and their command line.
pub struct ManagerWatch {
    pub client: Client,
    pub clock: Clock,
    /// Interval between two reads of the Lease.
    pub every: Span,
    /// Controllers that kordon runs.
    pub ours: Controllers,
    /// Controllers that kube-controller-manager runs, as the operator has stated them; `None` if the operator has not
    /// stated them.
    pub stated: Option<Controllers>,
}

/// Interval at which the command line of kube-controller-manager is read again, because the manifest of its static pod
/// may change.
const FLAGS_EVERY: Span = Span::from_secs(30);

/// Timeout of a read of the Lease.
const PATIENCE: Span = Span::from_secs(5);

/// Duration of a Lease that has no duration in its spec.
const LEASE_DURATION: Span = Span::from_secs(15);

impl ManagerWatch {
    /// Reports whether this process may lead: at the start and after each change. Does not return.
    pub async fn run(self, reported: watch::Sender<MayLead>, allowed: watch::Sender<bool>) {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), MANAGER_LEASE.0);
        let mut seen: Option<(LeaseSpec, Timestamp)> = None;
        let mut theirs = self.controllers().await;
        let mut read = self.clock.now();
        loop {
            let answer = tokio::select! {
                answer = leases.get_opt(MANAGER_LEASE.1) => Some(answer),
                () = self.clock.sleep(PATIENCE) => None,
            };
            let activity = match answer {
                Some(Ok(lease)) => {
                    Some(activity(lease.and_then(|lease| lease.spec), &mut seen, self.clock.now()))
                }
                Some(Err(kube::Error::Api(status))) if status.is_forbidden() => {
                    Some(ManagerActivity::Unreadable { why: status.message })
                }
                // The last result is kept until the API server answers again. Until then, this process cannot renew
                // its own Lease either.
                Some(Err(error)) => {
                    tracing::warn!(error = words(&error), "cannot read the lease of kube-controller-manager");
                    None
                }
                None => None,
            };
            if let Some(activity) = activity {
                let may = may_lead(self.ours, &theirs, &activity);
                allowed
                    .send_if_modified(|before| std::mem::replace(before, may.is_allowed) != may.is_allowed);
                reported.send_if_modified(|before| {
                    let is_new = *before != may;
                    *before = may;
                    is_new
                });
            }
            self.clock.sleep(self.every).await;
            if self.clock.now().since(read) >= FLAGS_EVERY {
                (theirs, read) = (self.controllers().await, self.clock.now());
            }
        }
    }

    async fn controllers(&self) -> ManagerControllers {
        match self.stated {
            Some(controllers) => ManagerControllers::Known {
                controllers,
                elects: Elects::Yes,
                origin: "as --manager-controllers states".into(),
            },
            None => of_flags(controller_flags(&self.client).await),
        }
    }
}

/// Reads the controllers and the use of leader election from a command line.
fn of_flags(found: ControllerFlags) -> ManagerControllers {
    if found.flags.is_empty() {
        return ManagerControllers::Unknown { why: found.note };
    }
    let flag =
        |name: &str| found.flags.iter().rev().find(|(flag, _)| flag == name).map(|(_, value)| value.as_str());
    ManagerControllers::Known {
        controllers: flag("controllers").map_or(Controllers::ALL, Controllers::parse),
        elects: if flag("leader-elect") == Some("false") { Elects::No } else { Elects::Yes },
        origin: found.note,
    }
}

/// Returns the state of the Lease. The duration of the Lease counts from the time at which this process first saw this
/// version of the Lease.
fn activity(
    spec: Option<LeaseSpec>,
    seen: &mut Option<(LeaseSpec, Timestamp)>,
    now: Timestamp,
) -> ManagerActivity {
    let Some(spec) = spec else { return ManagerActivity::NoLease };
    let holder = spec.holder_identity.clone().unwrap_or_default();
    let renewed = spec.renew_time.as_ref().and_then(|MicroTime(at)| Timestamp::parse(&at.to_string()));
    let duration = spec.lease_duration_seconds.map_or(LEASE_DURATION, |secs| Span::from_secs(secs.into()));
    let since = match seen {
        Some((known, since)) if *known == spec => *since,
        _ => seen.insert((spec, now)).1,
    };
    match renewed.filter(|renewed| now.since(*renewed) > duration) {
        _ if holder.is_empty() || now.since(since) > duration => ManagerActivity::Quiet,
        Some(renewed) => ManagerActivity::Expired { holder, renewed, duration },
        None => ManagerActivity::Active { holder },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(controllers: &str) -> ManagerControllers {
        ManagerControllers::Known {
            controllers: Controllers::parse(controllers),
            elects: Elects::Yes,
            origin: "command line of pod m".into(),
        }
    }

    fn active() -> ManagerActivity {
        ManagerActivity::Active { holder: "m_1".into() }
    }

    fn expired() -> ManagerActivity {
        let renewed = Timestamp::from_secs(1_800_000_000);
        ManagerActivity::Expired { holder: "m_1".into(), renewed, duration: Span::from_secs(15) }
    }

    #[test]
    fn a_lease_that_has_expired_by_its_own_account_is_waited_for_and_not_called_active() {
        let waits = may_lead(Controllers::OWN, &known("*"), &expired());
        assert!(!waits.is_allowed && !waits.text.contains("active"), "{}", waits.text);
        assert!(
            waits.text.contains("2027-01-15T08:00:00Z") && waits.text.contains("waits 15s"),
            "{}",
            waits.text
        );
        let start = Timestamp::from_secs(1_800_003_600);
        let renew_time = k8s_openapi::jiff::Timestamp::from_second(1_800_000_000).ok().map(MicroTime);
        let holder_identity = Some("m_1".into());
        let spec = LeaseSpec { holder_identity, renew_time, ..LeaseSpec::default() };
        let mut seen = None;
        assert_eq!(activity(Some(spec.clone()), &mut seen, start), expired(), "an hour after its renewal");
        let later = start + Span::from_secs(16);
        assert_eq!(activity(Some(spec), &mut seen, later), ManagerActivity::Quiet, "then it is certain");
    }

    #[test]
    fn a_manager_that_runs_the_same_controllers_is_not_fought() {
        let may = |ours: &str, theirs: &str| {
            may_lead(Controllers::parse(ours), &known(theirs), &active()).is_allowed
        };
        let lifecycle = "node-lifecycle-controller,taint-eviction-controller";
        assert!(!may(lifecycle, "*"));
        assert!(!may(lifecycle, "*,-node-lifecycle-controller"), "one of two");
        assert!(may(lifecycle, "*,-node-lifecycle-controller,-taint-eviction-controller"));
        assert!(
            !may("*", "*,-node-lifecycle-controller,-taint-eviction-controller"),
            "pod garbage collection"
        );
        let refusal = may_lead(Controllers::OWN, &known("*"), &active()).text;
        for part in ["m_1", "taint-eviction-controller", "command line of pod m", "--take-over"] {
            assert!(refusal.contains(part), "{refusal}");
        }
    }

    #[test]
    fn what_cannot_be_known_counts_as_active() {
        let unknown = ManagerControllers::Unknown { why: "forbidden".into() };
        let may = |activity: ManagerActivity| may_lead(Controllers::OWN, &unknown, &activity).is_allowed;
        assert!(!may(active()) && !may(ManagerActivity::Unreadable { why: "no".into() }));
        assert!(!may(expired()));
        assert!(may(ManagerActivity::Quiet) && may(ManagerActivity::NoLease));
        let ManagerControllers::Known { controllers, origin, .. } = known("*") else { panic!("known") };
        let alone = ManagerControllers::Known { controllers, elects: Elects::No, origin };
        assert!(!may_lead(Controllers::OWN, &alone, &ManagerActivity::NoLease).is_allowed);
    }

    #[test]
    fn a_lease_is_quiet_when_it_was_not_seen_to_change_for_its_duration() {
        let start = Timestamp::from_secs(1_800_000_000);
        let spec = |transitions| LeaseSpec {
            holder_identity: Some("m".into()),
            lease_duration_seconds: Some(15),
            lease_transitions: Some(transitions),
            ..LeaseSpec::default()
        };
        let mut seen = None;
        let mut at =
            |secs, transitions| activity(Some(spec(transitions)), &mut seen, start + Span::from_secs(secs));
        assert_eq!(at(0, 1), ManagerActivity::Active { holder: "m".into() }, "however old it is");
        assert_eq!(at(15, 1), ManagerActivity::Active { holder: "m".into() });
        assert_eq!(at(16, 1), ManagerActivity::Quiet);
        assert_eq!(at(17, 2), ManagerActivity::Active { holder: "m".into() }, "it is back");
        let released = LeaseSpec { holder_identity: Some(String::new()), ..spec(3) };
        assert_eq!(activity(Some(released), &mut seen, start), ManagerActivity::Quiet);
    }
}
