//! The maintenance sheet: the progress of maintenances, and the options and waves of a maintenance of the marked nodes.

mod request;
mod running;

use tui_input::{Input, InputRequest};

use super::App;
use kordon_core::{
    cluster::{Cluster, KnownAutoscalers},
    maintenance::{MaintenancePlan, knows_enough},
    operation::Guards,
    plan::EvictionRules,
};
use kordon_time::Timestamp;

pub use request::{MaintenanceOption, MaintenanceRequest};
pub use running::{
    GoneOn, MaintenanceEntry, MaintenanceEvent, MaintenanceProposal, MaintenanceStart, MaintenanceState,
    StartSubject, StoppedProposal, StoppedWay,
};

/// The open maintenance sheet.
#[derive(Clone, Debug)]
pub struct MaintenanceSheet {
    /// The proposed maintenance. Its nodes are those that were marked or selected when the sheet was opened.
    pub request: MaintenanceRequest,
    pub scrolled: usize,
    /// The line in which the value of an option is typed.
    pub line: Option<OptionLine>,
    /// The waves that were computed last, which may belong to an earlier request.
    worked_out: Option<MaintenanceResult>,
}

/// The value of an option while it is typed.
#[derive(Clone, Debug)]
pub struct OptionLine {
    pub option: MaintenanceOption,
    pub input: Input,
    /// Why the typed text is not a valid value; `None` until the user tries to keep it.
    pub fault: Option<String>,
}

/// A job that computes the waves of a maintenance sheet.
#[derive(Debug)]
pub struct MaintenanceJob {
    cluster: Cluster,
    request: MaintenanceRequest,
    rules: EvictionRules,
    now: Timestamp,
}

/// The waves of a maintenance sheet, with the inputs from which they were computed.
#[derive(Clone, Debug)]
pub struct MaintenanceResult {
    request: MaintenanceRequest,
    /// Autoscalers that the waves were computed with; [`KnownAutoscalers::NotRead`] if no Deployment may be scaled up.
    autoscalers: KnownAutoscalers,
    plan: MaintenancePlan,
}

impl MaintenanceSheet {
    pub const fn new(request: MaintenanceRequest) -> Self {
        Self { request, scrolled: 0, line: None, worked_out: None }
    }

    /// The waves of the maintenance; `None` until they are computed.
    pub fn plan(&self) -> Option<&MaintenancePlan> {
        self.result().map(|result| &result.plan)
    }

    /// The waves for the present request, with their inputs; `None` until they are computed.
    fn result(&self) -> Option<&MaintenanceResult> {
        let wanted = self.request.of_waves();
        self.worked_out.as_ref().filter(|result| result.request == wanted)
    }

    /// Switches an option, or opens the line in which its value is typed.
    pub(super) fn change(&mut self, option: MaintenanceOption) {
        if option.is_switch() {
            self.request.switch(option);
        } else {
            let input = Input::new(self.request.value(option));
            self.line = Some(OptionLine { option, input, fault: None });
        }
    }

    /// Edits the line in which the value of an option is typed.
    pub(super) fn edit(&mut self, request: InputRequest) {
        if let Some(line) = &mut self.line {
            line.input.handle(request);
            line.fault = None;
        }
    }

    /// Closes the input line and sets the option to the typed value. If the value is not valid, the line stays open and
    /// shows the reason.
    pub(super) fn keep_line(&mut self) {
        let Some(line) = &mut self.line else { return };
        match self.request.set(line.option, line.input.value()) {
            Ok(()) => self.line = None,
            Err(fault) => line.fault = Some(fault),
        }
    }

    /// Closes the input line without a change of the option. Returns whether the line was open.
    pub(super) fn leave_line(&mut self) -> bool {
        self.line.take().is_some()
    }
}

impl MaintenanceRequest {
    /// Copy of the request that has only the fields on which the waves depend.
    fn of_waves(&self) -> Self {
        let Self { gate_timeout, work_timeout, .. } = Self::new(Vec::new());
        Self {
            exec: String::new(),
            wait_for: None,
            gate: String::new(),
            without_gates: Vec::new(),
            gate_timeout,
            work_timeout,
            rolls_back: false,
            ..self.clone()
        }
    }

    /// Known autoscalers if the maintenance may scale up Deployments; otherwise [`KnownAutoscalers::NotRead`], because
    /// the waves do not depend on autoscalers.
    fn autoscalers(&self, cluster: &Cluster) -> KnownAutoscalers {
        if self.surge { cluster.autoscalers().clone() } else { KnownAutoscalers::NotRead }
    }
}

impl MaintenanceJob {
    /// The fields of the request on which the waves depend.
    pub const fn request(&self) -> &MaintenanceRequest {
        &self.request
    }

    /// Computes the waves within the guard rails.
    pub fn work(self, guards: Guards) -> MaintenanceResult {
        let Self { cluster, request, rules, now } = self;
        let options = request.options(guards, cluster.nodes().len(), now);
        let plan = MaintenancePlan::new(&cluster, &options, rules, now);
        MaintenanceResult { autoscalers: request.autoscalers(&cluster), request, plan }
    }
}

impl App {
    /// Returns the job that computes the waves of the open sheet; `None` if the waves are up to date, or if not all of
    /// their inputs are known.
    pub fn next_maintenance_job(&self, now: Timestamp) -> Option<MaintenanceJob> {
        let sheet = self.screen.overlays.maintenance()?;
        let shown = self.shown();
        if sheet.request.nodes.is_empty() || !knows_enough(&shown.cluster) {
            return None;
        }
        let autoscalers = sheet.request.autoscalers(&shown.cluster);
        // The waves are not computed while the autoscalers are still being read. During a playback autoscalers are
        // never read.
        let is_early = self.plans_surges() && autoscalers == KnownAutoscalers::NotRead;
        if is_early || sheet.result().is_some_and(|result| result.autoscalers == autoscalers) {
            return None;
        }
        Some(MaintenanceJob {
            cluster: shown.cluster.clone(),
            request: sheet.request.of_waves(),
            rules: EvictionRules::from(&self.model.settings),
            now: self.shown_at(now),
        })
    }

    /// Shows the computed waves of a maintenance, if the maintenance sheet is still open.
    pub fn on_maintenance(&mut self, result: MaintenanceResult) {
        if let Some(sheet) = self.screen.overlays.maintenance_mut() {
            sheet.worked_out = Some(result);
        }
    }
}
