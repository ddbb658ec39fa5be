//! The machines of a wave: the work on each, until its node is healthy again and back in service.

use futures::future::select_all;

use super::{
    MaintenanceRun,
    machine::{MachineWork, RunningHook, WorkStage},
    stop::Stop,
};
use kordon_core::{
    cluster::{MaintenanceStage, NodeName, Uid},
    engine::Severity,
    maintenance::{NodeResult, WaitFor, not_back},
    operation::MaintenanceWrite,
};

const WORK_IS_DONE: &str = "its work is done";

impl MaintenanceRun<'_> {
    /// Waits until all machines are done or have failed, and brings their nodes back into service.
    pub(super) async fn watch_machines(&mut self, mut machines: Vec<MachineWork>) -> Result<(), Stop> {
        while !machines.iter().all(MachineWork::is_over) {
            match self.look_at(&mut machines).await {
                Ok(()) => {}
                Err(stop @ (Stop::Cancelled | Stop::Failed(_))) => {
                    return self.finish_commands(machines, stop).await;
                }
                Err(stop @ (Stop::Killed | Stop::TakenOver(_))) => return Err(stop),
            }
        }
        self.rest_while_paused().await
    }

    /// Advances the work on the machines, and then waits until it may go on. While the maintenance is paused, only the
    /// ends of commands are recorded, so that no command runs again.
    async fn look_at(&mut self, machines: &mut [MachineWork]) -> Result<(), Stop> {
        let mut writes = Vec::new();
        for machine in machines.iter_mut() {
            if !self.is_paused || matches!(machine.stage, WorkStage::Command(Some(_))) {
                writes.extend(self.advance(machine).await);
            }
        }
        self.write_while_paused(writes).await?;
        self.look().await
    }

    /// Waits for the commands that run although the maintenance stops, and records the end of each. The work on a machine
    /// is not interrupted halfway, and a resume does not repeat it. Returns why the maintenance stops.
    async fn finish_commands(&mut self, machines: Vec<MachineWork>, stop: Stop) -> Result<(), Stop> {
        let mut running: Vec<(NodeName, String, RunningHook)> = machines
            .into_iter()
            .filter_map(|machine| match machine.stage {
                WorkStage::Command(Some(running)) => Some((machine.name, machine.before, running)),
                _ => None,
            })
            .collect();
        if running.is_empty() {
            return Err(stop);
        }
        running.sort_by(|(one, ..), (other, ..)| one.cmp(other));
        let names: Vec<&str> = running.iter().map(|(name, ..)| &**name).collect();
        let interrupt = match stop {
            Stop::Cancelled => "interrupt again",
            Stop::Failed(_) | Stop::TakenOver(_) | Stop::Killed => "interrupt twice",
        };
        let text =
            format!("waits for the commands that run for {}; {interrupt} to leave them", names.join(", "));
        self.tell(Severity::Warning, "", text).await;
        let mut stop = stop;
        while !running.is_empty() {
            let ends = running.iter_mut().map(|(_, _, running)| Box::pin(running.end()));
            let (ended, place) = tokio::select! {
                (ended, place, _) = select_all(ends) => (ended, place),
                _ = &mut self.operator.stop => return Err(Stop::Killed),
            };
            let (name, before, _) = running.remove(place);
            self.tell_lines().await;
            let (now, subject) = (self.now(), format!("node/{name}"));
            match ended {
                Ok(()) => {
                    let write = self.staged(&name, MaintenanceStage::Awaited, &before);
                    match self.write_while_paused(vec![write]).await {
                        Ok(()) | Err(Stop::Cancelled) => {}
                        Err(Stop::Killed) => return Err(Stop::Killed),
                        Err(failed @ (Stop::Failed(_) | Stop::TakenOver(_))) => stop = failed,
                    }
                    if self.terms.wait_for.is_none() {
                        self.record(&name, NodeResult::Worked, now);
                        self.tell(Severity::Info, &subject, WORK_IS_DONE.into()).await;
                    }
                }
                Err(why) => {
                    self.tell(Severity::Error, &subject, why.clone()).await;
                    self.record(&name, NodeResult::Failed(why), now);
                }
            }
        }
        Err(stop)
    }

    /// Advances the work on a machine as far as possible. Returns the write to the machine's node, if one is needed.
    async fn advance(&mut self, machine: &mut MachineWork) -> Option<(NodeName, MaintenanceWrite)> {
        let now = self.now();
        let awaits = match &mut machine.stage {
            WorkStage::Over => return None,
            WorkStage::Command(_) => match self.run_command(machine) {
                Ok(true) => {
                    machine.stage = WorkStage::Awaited;
                    // The stage on the node records that the command has ended, so that it does not run again after an
                    // interruption.
                    let is_awaited = self.terms.exec.is_some() && self.awaits(machine).is_some();
                    if is_awaited {
                        return Some(self.staged(&machine.name, MaintenanceStage::Awaited, &machine.before));
                    }
                    self.awaits(machine)
                }
                Ok(false) => Some("its command to end".into()),
                Err(why) => {
                    self.fail(machine, why).await;
                    return None;
                }
            },
            WorkStage::Awaited => self.awaits(machine),
            WorkStage::Returning { .. } => return self.bring_back(machine).await,
        };
        if let Some(what) = awaits {
            self.give_up_late(machine, &what).await;
            return None;
        }
        self.record(&machine.name, NodeResult::Worked, now);
        self.tell(Severity::Info, &format!("node/{}", machine.name), WORK_IS_DONE.into()).await;
        machine.stage = WorkStage::Returning { since: None };
        Some(self.staged(&machine.name, MaintenanceStage::Returning, &machine.before))
    }

    /// Starts the command of a machine, or checks whether it has ended. Returns true if the command has ended or there
    /// is none.
    fn run_command(&self, machine: &mut MachineWork) -> Result<bool, String> {
        let Some(hook) = self.terms.exec.clone() else { return Ok(true) };
        let WorkStage::Command(running) = &mut machine.stage else { return Ok(true) };
        match running {
            None => {
                *running = Some(self.start_hook(hook, Some(machine.name.clone()))?);
                Ok(false)
            }
            Some(running) => running.result().map_or(Ok(false), |result| result.map(|()| true)),
        }
    }

    /// Describes the condition of `--wait-for` that the machine's node does not meet yet; `None` if the work is done or
    /// there is no such condition.
    fn awaits(&self, machine: &MachineWork) -> Option<String> {
        let node = self.watched.cluster().node(&machine.name);
        self.terms.wait_for.as_ref()?.awaits(node.map(|node| &**node), &machine.before)
    }

    /// Checks whether the node of a machine has been healthy for long enough. If so, returns the write that releases
    /// the node.
    async fn bring_back(&mut self, machine: &mut MachineWork) -> Option<(NodeName, MaintenanceWrite)> {
        let now = self.now();
        let old =
            (self.terms.wait_for == Some(WaitFor::Replaced)).then(|| Uid::from(machine.before.as_str()));
        let waits = not_back(self.watched.cluster(), &machine.name, old.as_ref());
        let WorkStage::Returning { since } = &mut machine.stage else { return None };
        match (waits, *since) {
            (Some(why), _) => {
                *since = None;
                self.give_up_late(machine, &why).await;
                None
            }
            (None, None) => {
                *since = Some(now);
                None
            }
            (None, Some(well)) if now.since(well) < self.options.settle => None,
            (None, Some(_)) => {
                machine.stage = WorkStage::Over;
                self.record(&machine.name, NodeResult::Done, now);
                self.tell(Severity::Info, &format!("node/{}", machine.name), "is well and back".into()).await;
                Some((machine.name.clone(), MaintenanceWrite::Release))
            }
        }
    }

    async fn give_up_late(&mut self, machine: &mut MachineWork, awaited: &str) {
        if !self.is_paused && self.now().since(machine.begun) > self.terms.work_timeout {
            let why = format!("not done after {}: waits for {awaited}", self.terms.work_timeout);
            self.fail(machine, why).await;
        }
    }

    async fn fail(&mut self, machine: &mut MachineWork, why: String) {
        let now = self.now();
        machine.stage = WorkStage::Over;
        self.tell(Severity::Error, &format!("node/{}", machine.name), why.clone()).await;
        self.record(&machine.name, NodeResult::Failed(why), now);
    }
}
