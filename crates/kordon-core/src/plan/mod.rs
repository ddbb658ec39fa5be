//! Plans: the effects of an operator's action on a cluster. Actions are cordon, uncordon, drain, taint, label,
//! annotate, evict and delete.
//!
//! [`Plan::new`] turns an [`Action`] and a [`crate::cluster::Cluster`] into a verdict per pod, steps, a timeline,
//! totals, warnings, missing flags, the permissions needed, the equivalent kubectl command, and the undo. A plan
//! depends only on the arguments of this function.
//!
//! A drain is computed in this order: [`filter`] screens the pods of the nodes, [`simulation`] runs the evictions
//! against [`budget`]s and an [`Environment`], `prediction` turns the runs into rows, and `drain` assembles the plan.
//! With
//! `--surge`, [`surge`] says which Deployments are scaled up, and the runs are made again.

mod action;
mod blocked_drain;
pub mod budget;
mod cancellation;
mod claim_protection;
mod context;
mod cordon;
mod cordon_wait;
mod departure;
mod drain;
mod drain_start;
pub mod environment;
pub mod eviction;
mod eviction_loop;
pub mod eviction_note;
mod eviction_order;
pub mod failover;
pub mod filter;
pub mod forced_removal;
mod foreign_drain;
mod gaps;
pub mod headroom;
mod job;
mod job_failure;
mod job_failures;
pub mod job_owner;
pub mod kubectl;
mod kubectl_difference;
mod landing;
mod leaving_pod;
mod loss;
pub mod metadata;
pub mod metadata_edits;
pub mod needs;
mod node_deletion;
mod node_plan;
mod not_modelled;
mod not_needed;
mod obstacle;
pub mod outcome;
mod outcome_kind;
mod outlook;
pub mod operator_budgets;
pub mod owner;
mod owner_kinds;
pub mod permission;
pub mod placement_trace;
pub mod placing_environment;
#[expect(clippy::module_inception, reason = "the plan itself, beside what it consists of")]
mod plan;
mod planned_workload;
mod planning;
mod pod_group;
mod pod_plan;
mod prediction;
mod pressure_plan;
mod quota;
pub mod quota_delay;
mod removal;
pub mod replacement;
pub mod rules;
mod silence;
pub mod simulation;
mod starting;
pub mod successor;
pub mod step;
pub mod surge;
pub mod switchover;
pub mod syntax;
mod taint;
pub mod taint_edits;
mod targets;
mod terminating;
mod time_left;
mod timeline;
mod totals;
pub mod undo;
mod unknown;
pub mod verdict;
pub mod warning;
mod warning_text;
pub mod words;

pub use action::{Action, DrainOptions, RemovalMode, RemovalOptions, Retry};
pub use blocked_drain::BlockedDrain;
pub use cancellation::Cancellation;
pub use cordon_wait::CordonWait;
pub use departure::Departure;
pub use drain_start::{cordoned_at, drain_began};
pub use environment::{Bound, Environment, Estimate, Quality, Stragglers, TypicalEnvironment};
pub use eviction::{EvictionAnswer, EvictionBlock, FreeEviction};
pub use eviction_loop::{
    LONGEST_DAEMON_SET_BACKOFF, evicted_again_after, per_hour, rate, recreated_after, rejected_again_after,
};
pub use eviction_note::EvictionNote;
pub use failover::{Failover, FailoverPod, FailoverRun, LostNodes, failover};
pub use filter::{DrainFlag, DrainRefusal, Skip};
pub use foreign_drain::{foreign_drain, foreign_time_left, may_have_unmarked_drain, unmarked_drain};
pub use gaps::{PlanGap, PlanPart, budget_gap, can_place, failover_gaps, succession_gaps};
pub use headroom::{Headroom, HeadroomClause, HeadroomLoss, HeadroomLosses, HeadroomWork, headroom};
pub use job::{PlanJob, PlanResult};
pub use job_failure::JobFailure;
pub use job_failures::{JobConsequences, MAX_BACK_OFF};
pub use job_owner::{JobOwner, NextJob};
pub use kubectl_difference::KubectlDifference;
pub use landing::Landing;
pub use leaving_pod::LeavingPod;
pub use loss::Loss;
pub use metadata_edits::{MetadataEdits, MetadataField};
pub use node_plan::{NodeChange, NodeDrain, NodePlan};
pub use not_modelled::{NotModelled, NotModelledKind};
pub use not_needed::NotNeeded;
pub use obstacle::RemovalObstacle;
pub use outcome::{Departing, PlacedReplacement, PodOutcome, StuckReason};
pub use outcome_kind::{OutcomeCounts, OutcomeKind};
pub use outlook::{never_allows, refusal};
pub use owner::{NotRecreated, Recreation};
pub use permission::Permission;
pub use placement_trace::{PlacementTrace, PreemptedFor, PreemptedPod, Receiver, RunTrace};
pub use placing_environment::{PlacingEnvironment, PlacingState};
pub use plan::{Arrival, BudgetPlan, Plan, Prospect};
pub use planned_workload::{PlannedWorkload, by_workload};
pub use pod_plan::{PodPlan, Window};
pub use pressure_plan::pressure_failover;
pub use quota::QuotaRefusal;
pub use replacement::{PlacedReplacements, Replacement, replacements};
pub use rules::EvictionRules;
pub(crate) use starting::likely_ready;
pub use step::{Call, PlanStep, autoscalers_path, node_path, scale_path};
pub use surge::{Surge, SurgeFate, SurgePlan, SurgeRefusal, SurgeRun};
pub use switchover::{Switchover, switchover};
pub use taint_edits::TaintEdits;
pub use targets::PlanError;
pub use terminating::TerminatingPods;
pub use time_left::{TimeLeft, time_left};
pub use timeline::{GiveUpReason, PlanEvent, PlanMoment};
pub use totals::{PlanTotals, PodCount, parts};
pub use undo::Undo;
pub use verdict::{BlockPattern, LeaveReason, OperatorAct, Verdict};
pub use warning::{CordonAct, PodWarning, Warning};
