//! Inputs of a plan on the command line: the objects that the action needs, or the whole cluster if placements are
//! computed.

use super::{
    args::{PlacementMode, PrintArgs},
    targets::PlanTarget,
};
use crate::{
    cli::{
        config::Config,
        connection::ConnectionArgs,
        exit::CliError,
        once::{OneShot, Patience, Watched},
    },
    k8s::{connect::Connection, feed::FeedKind, watch::count_pods},
    model::Model,
};
use kordon_core::{engine::Settings, plan::EvictionRules};
use kordon_time::Span;

/// Number of pods above which `auto` skips placements, since the lists would take too long.
const MANY_PODS: usize = 20_000;

/// Time limit for the lists, after which `auto` skips placements.
const AUTO_PATIENCE: Span = Span::from_secs(2);

/// The state of the cluster that a plan is made from.
pub struct PlanSource {
    pub shot: OneShot,
    pub landings: Landings,
}

/// Whether placements can be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Landings {
    Known,
    /// Placements are not needed, because the action moves no pods.
    None,
    /// Placements are left out. The text is the flag and the reason.
    LeftOut(&'static str),
}

impl PlanSource {
    /// Connects, and reads the objects that the plan needs.
    pub async fn read(
        target: &PlanTarget,
        print: &PrintArgs,
        default: PlacementMode,
        connection: ConnectionArgs,
    ) -> Result<Self, CliError> {
        let (patience, config) = (print.patience(), connection.config.clone());
        let connection = patience.connect(connection, &print.source).await?;
        let settings = settings(target, print, &connection, &config).await?;
        let landings = if target.moves_pods() {
            match whole(&connection, print.placement.unwrap_or(default), patience).await? {
                Ok(mut shot) => {
                    shot.model.settings = settings;
                    return Ok(Self { shot, landings: Landings::Known });
                }
                Err(why) => Landings::LeftOut(why),
            }
        } else {
            Landings::None
        };
        let rules = EvictionRules::from(&settings);
        let mut shot = OneShot::unread(connection);
        shot.model.settings = settings;
        if let Landings::LeftOut(flag) = landings {
            leave_out_placement(&mut shot, flag);
        }
        let now = shot.at;
        let needs = |model: &Model, namespace: &str| target.needs(&model.cluster, namespace, &rules, now);
        shot.read(patience, needs).await?;
        shot.read_near(target.near(&shot.model.cluster, &shot.namespace)).await;
        Ok(Self { shot, landings })
    }
}

/// Settings of the cluster's controllers, if the plan depends on them; otherwise upstream's defaults.
pub async fn settings(
    target: &PlanTarget,
    print: &PrintArgs,
    connection: &Connection,
    config: &Config,
) -> Result<Settings, CliError> {
    if target.depends_on_settings() {
        print.patience().settings(connection, config, &print.settings).await
    } else {
        Ok(Settings::defaults(connection.version))
    }
}

/// Records that the kinds that placements need are not listed, because `flag` tells kordon not to read them.
pub fn leave_out_placement(shot: &mut OneShot, flag: &'static str) {
    shot.leave_out(flag, FeedKind::PLACEMENT.into_iter().chain([FeedKind::Pods, FeedKind::Namespaces]));
}

/// Lists the whole cluster for placements, or returns why placements are left out.
pub async fn whole(
    connection: &Connection,
    placement: PlacementMode,
    patience: Patience,
) -> Result<Result<OneShot, &'static str>, CliError> {
    match placement {
        PlacementMode::Skip => Ok(Err("--placement=skip")),
        PlacementMode::Wait => {
            let mut shot = OneShot::list(connection.clone(), ALL, patience).await?;
            shot.in_time()?;
            Ok(Ok(shot))
        }
        PlacementMode::Auto => {
            let patience = patience.at_most(AUTO_PATIENCE);
            let count = patience.wait(count_pods(connection)).await.flatten();
            if count.is_some_and(|count| count > MANY_PODS) {
                return Ok(Err("--placement=auto: more than 20,000 pods"));
            }
            let mut shot = OneShot::list(connection.clone(), ALL, patience).await?;
            let in_time = shot.in_time();
            Ok(in_time.map(|()| shot).map_err(|_| "--placement=auto: the lists took longer than 2 s"))
        }
    }
}

/// Kinds that plans with placements need.
const ALL: Watched<'static> =
    Watched { kinds: &FeedKind::ALL, wanted: &FeedKind::PREDICTION, no_pods: false };
