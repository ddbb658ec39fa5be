//! The request of the maintenance sheet: the nodes, how they are maintained, and the work on their machines.

use std::time::Duration;

use crate::{
    app::{
        daily_window::{self, DailyWindow},
        preview::PlanOption,
        typed_span::span,
    },
    executor::hook::Hook,
};
use kordon_core::{
    cluster::NodeName,
    maintenance::{Gate, HEADROOM_UP_TO, MaintenanceOptions, WaitFor},
    operation::Guards,
    plan::{DrainOptions, Retry},
};
use kordon_time::{Span, Timestamp};

/// A maintenance as it is configured on screen. The defaults are those of `kordon maintenance`.
#[derive(Clone, Debug, PartialEq)]
pub struct MaintenanceRequest {
    pub nodes: Vec<NodeName>,
    /// Maximum number of nodes maintained at the same time; `None` for as many as possible.
    pub parallel: Option<usize>,
    pub max_per_zone: Option<usize>,
    /// Assumed duration of the work on an empty node.
    pub work_takes: Span,
    /// How long a node has to be healthy before it counts as done.
    pub settle: Span,
    /// Times of day at which waves may run; `None` for any time.
    pub window: Option<DailyWindow>,
    /// Maximum time from the start of the first wave to the end of the last; `None` for no limit.
    pub max_duration: Option<Span>,
    /// Whether control plane nodes may be in a wave together.
    pub control_planes_together: bool,
    /// Whether the loss of a node or zone may be worse between waves than before the start.
    pub allow_worse_loss: bool,
    pub force: bool,
    pub delete_emptydir_data: bool,
    /// Whether the maintenance scales up Deployments whose budgets can never allow an eviction.
    pub surge: bool,
    /// Whether pods may leave although no other node takes them.
    pub allow_pending: bool,
    /// Command line of the work on an empty node; empty if kordon runs no command.
    pub exec: String,
    /// Sign that somebody else has done the work on a machine; `None` if kordon waits for no sign.
    pub wait_for: Option<WaitFor>,
    /// Command line of a further gate between waves; empty without one.
    pub gate: String,
    /// Gates between waves that are left out.
    pub without_gates: Vec<Gate>,
    pub gate_timeout: Span,
    pub drain_timeout: Span,
    pub work_timeout: Span,
    /// Whether nodes that are not drained are uncordoned when something fails, instead of staying cordoned.
    pub rolls_back: bool,
}

/// An option of a maintenance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaintenanceOption {
    Parallel,
    MaxPerZone,
    WorkTakes,
    Settle,
    Window,
    Force,
    DeleteEmptydirData,
    Surge,
    AllowPending,
    Exec,
    WaitFor,
    MaxDuration,
    ControlPlanesTogether,
    AllowWorseLoss,
    Gate,
    WithoutGate,
    GateTimeout,
    DrainTimeout,
    WorkTimeout,
    OnFailure,
}

/// Default of the maximum time to wait until a gate (check between waves) passes.
const GATE_TIMEOUT: Span = Span::from_secs(30 * 60);

/// Default of the maximum time for the drain of a node.
const DRAIN_TIMEOUT: Span = Span::from_secs(2 * 60 * 60);

/// Default of the maximum time for the work on a node, until the node is healthy again.
const WORK_TIMEOUT: Span = Span::from_secs(60 * 60);

/// Values of the option [`MaintenanceOption::OnFailure`].
const PAUSE: &str = "pause";
const ROLLBACK: &str = "rollback";

impl MaintenanceOption {
    /// All options of a maintenance, in the order of the maintenance sheet.
    pub const ALL: [Self; 20] = [
        Self::Exec,
        Self::WaitFor,
        Self::Parallel,
        Self::MaxPerZone,
        Self::WorkTakes,
        Self::Settle,
        Self::Window,
        Self::Force,
        Self::DeleteEmptydirData,
        Self::Surge,
        Self::AllowPending,
        Self::AllowWorseLoss,
        Self::ControlPlanesTogether,
        Self::MaxDuration,
        Self::Gate,
        Self::WithoutGate,
        Self::GateTimeout,
        Self::DrainTimeout,
        Self::WorkTimeout,
        Self::OnFailure,
    ];

    /// The maintenance option that corresponds to an option of plans; `None` if maintenances have no such option.
    pub const fn from_plan(option: PlanOption) -> Option<Self> {
        match option {
            PlanOption::Parallel => Some(Self::Parallel),
            PlanOption::Force => Some(Self::Force),
            PlanOption::DeleteEmptydirData => Some(Self::DeleteEmptydirData),
            PlanOption::Surge => Some(Self::Surge),
            PlanOption::IgnoreDaemonsets
            | PlanOption::DisableEviction
            | PlanOption::Grace
            | PlanOption::Timeout
            | PlanOption::PodSelector
            | PlanOption::SkipWaitForDelete
            | PlanOption::Overwrite
            | PlanOption::WholeZones => None,
        }
    }

    /// The flag of `kordon maintenance` for this option, without dashes.
    pub const fn flag(self) -> &'static str {
        match self {
            Self::Parallel => "parallel",
            Self::MaxPerZone => "max-per-zone",
            Self::WorkTakes => "work-takes",
            Self::Settle => "settle",
            Self::Window => "window",
            Self::Force => "force",
            Self::DeleteEmptydirData => "delete-emptydir-data",
            Self::Surge => "surge",
            Self::AllowPending => "allow-pending",
            Self::Exec => "exec",
            Self::WaitFor => "wait-for",
            Self::MaxDuration => "max-duration",
            Self::ControlPlanesTogether => "control-planes-together",
            Self::AllowWorseLoss => "allow-worse-loss",
            Self::Gate => "gate",
            Self::WithoutGate => "without-gate",
            Self::GateTimeout => "gate-timeout",
            Self::DrainTimeout => "drain-timeout",
            Self::WorkTimeout => "work-timeout",
            Self::OnFailure => "on-failure",
        }
    }

    /// Whether the option is a switch: its key turns it on or off, and no value is typed.
    pub const fn is_switch(self) -> bool {
        matches!(
            self,
            Self::Force
                | Self::DeleteEmptydirData
                | Self::Surge
                | Self::AllowPending
                | Self::ControlPlanesTogether
                | Self::AllowWorseLoss
        )
    }

    /// An example of a value, for the line in which it is typed.
    pub const fn example(self) -> &'static str {
        match self {
            Self::Parallel => "auto, or a number of nodes",
            Self::MaxPerZone => "a number of nodes; empty for no limit",
            Self::WorkTakes | Self::Settle | Self::GateTimeout | Self::DrainTimeout | Self::WorkTimeout => {
                "a time such as 90s or 8m"
            }
            Self::MaxDuration => "a time such as 90m or 8h; empty for no limit",
            Self::Gate => "a command that has to succeed between waves; no shell reads it",
            Self::WithoutGate => "verdict, pending, ready, budgets, or several of them with commas",
            Self::OnFailure => "pause or rollback",
            Self::Window => "22:00-06:00 Europe/Berlin; empty for any time",
            Self::Exec => "ssh {node} sudo reboot; {node} is the name of the node, no shell reads it",
            Self::WaitFor => {
                "boot, kubelet, kernel, replaced, no-taint=KEY, annotation=KEY or no-annotation=KEY"
            }
            Self::Force
            | Self::DeleteEmptydirData
            | Self::Surge
            | Self::AllowPending
            | Self::ControlPlanesTogether
            | Self::AllowWorseLoss => "",
        }
    }
}

impl MaintenanceRequest {
    pub fn new(nodes: Vec<NodeName>) -> Self {
        Self {
            nodes,
            parallel: None,
            max_per_zone: None,
            work_takes: Span::from_secs(300),
            settle: Span::from_secs(60),
            window: None,
            force: false,
            delete_emptydir_data: false,
            surge: false,
            allow_pending: false,
            exec: String::new(),
            wait_for: None,
            max_duration: None,
            control_planes_together: false,
            allow_worse_loss: false,
            gate: String::new(),
            without_gates: Vec::new(),
            gate_timeout: GATE_TIMEOUT,
            drain_timeout: DRAIN_TIMEOUT,
            work_timeout: WORK_TIMEOUT,
            rolls_back: false,
        }
    }

    /// Whether the request says how the work on the machines is done.
    pub fn has_work(&self) -> bool {
        !self.exec.is_empty() || self.wait_for.is_some()
    }

    /// Value of an option as it is typed; empty for an option without a value and for a switch that is off.
    pub fn value(&self, option: MaintenanceOption) -> String {
        let on = |is_on: bool| if is_on { "on".into() } else { String::new() };
        match option {
            MaintenanceOption::Parallel => {
                self.parallel.map_or_else(|| "auto".into(), |most| most.to_string())
            }
            MaintenanceOption::MaxPerZone => {
                self.max_per_zone.map_or_else(String::new, |most| most.to_string())
            }
            MaintenanceOption::WorkTakes => exact(self.work_takes),
            MaintenanceOption::Settle => exact(self.settle),
            MaintenanceOption::Window => self.window.map_or_else(String::new, |window| window.to_string()),
            MaintenanceOption::Force => on(self.force),
            MaintenanceOption::DeleteEmptydirData => on(self.delete_emptydir_data),
            MaintenanceOption::Surge => on(self.surge),
            MaintenanceOption::AllowPending => on(self.allow_pending),
            MaintenanceOption::Exec => self.exec.clone(),
            MaintenanceOption::WaitFor => self.wait_for.as_ref().map_or_else(String::new, WaitFor::flag),
            MaintenanceOption::MaxDuration => self.max_duration.map_or_else(String::new, exact),
            MaintenanceOption::ControlPlanesTogether => on(self.control_planes_together),
            MaintenanceOption::AllowWorseLoss => on(self.allow_worse_loss),
            MaintenanceOption::Gate => self.gate.clone(),
            MaintenanceOption::WithoutGate => {
                let names: Vec<String> = self.without_gates.iter().map(ToString::to_string).collect();
                names.join(",")
            }
            MaintenanceOption::GateTimeout => exact(self.gate_timeout),
            MaintenanceOption::DrainTimeout => exact(self.drain_timeout),
            MaintenanceOption::WorkTimeout => exact(self.work_timeout),
            MaintenanceOption::OnFailure => (if self.rolls_back { ROLLBACK } else { PAUSE }).into(),
        }
    }

    /// Switches an option that has no value.
    pub(super) fn switch(&mut self, option: MaintenanceOption) {
        match option {
            MaintenanceOption::Force => self.force = !self.force,
            MaintenanceOption::DeleteEmptydirData => self.delete_emptydir_data = !self.delete_emptydir_data,
            MaintenanceOption::Surge => self.surge = !self.surge,
            MaintenanceOption::AllowPending => self.allow_pending = !self.allow_pending,
            MaintenanceOption::ControlPlanesTogether => {
                self.control_planes_together = !self.control_planes_together;
            }
            MaintenanceOption::AllowWorseLoss => self.allow_worse_loss = !self.allow_worse_loss,
            MaintenanceOption::Parallel
            | MaintenanceOption::MaxPerZone
            | MaintenanceOption::WorkTakes
            | MaintenanceOption::Settle
            | MaintenanceOption::Window
            | MaintenanceOption::Exec
            | MaintenanceOption::WaitFor
            | MaintenanceOption::MaxDuration
            | MaintenanceOption::Gate
            | MaintenanceOption::WithoutGate
            | MaintenanceOption::GateTimeout
            | MaintenanceOption::DrainTimeout
            | MaintenanceOption::WorkTimeout
            | MaintenanceOption::OnFailure => {}
        }
    }

    /// Sets an option to a typed value. An empty text stands for the default.
    ///
    /// # Errors
    /// The text is not a value of the option, or the option takes no value.
    pub(in crate::app) fn set(&mut self, option: MaintenanceOption, text: &str) -> Result<(), String> {
        let text = text.trim();
        let default = || Self::new(Vec::new());
        match option {
            MaintenanceOption::Parallel => {
                self.parallel = if text == "auto" { None } else { nodes(text)? };
            }
            MaintenanceOption::MaxPerZone => self.max_per_zone = nodes(text)?,
            MaintenanceOption::WorkTakes => {
                self.work_takes = span(text)?.unwrap_or_else(|| default().work_takes);
            }
            MaintenanceOption::Settle => self.settle = span(text)?.unwrap_or_else(|| default().settle),
            MaintenanceOption::Window => {
                let window = (!text.is_empty()).then(|| daily_window::window(text));
                self.window = window.transpose()?;
            }
            MaintenanceOption::Exec => {
                if !text.is_empty() {
                    Hook::parse(text)?;
                }
                self.exec = text.into();
            }
            MaintenanceOption::WaitFor => {
                self.wait_for = (!text.is_empty()).then(|| text.parse()).transpose()?;
            }
            MaintenanceOption::MaxDuration => self.max_duration = span(text)?,
            MaintenanceOption::Gate => {
                if !text.is_empty() {
                    Hook::parse(text)?;
                }
                self.gate = text.into();
            }
            MaintenanceOption::WithoutGate => self.without_gates = gates(text)?,
            MaintenanceOption::GateTimeout => self.gate_timeout = span(text)?.unwrap_or(GATE_TIMEOUT),
            MaintenanceOption::DrainTimeout => self.drain_timeout = span(text)?.unwrap_or(DRAIN_TIMEOUT),
            MaintenanceOption::WorkTimeout => self.work_timeout = span(text)?.unwrap_or(WORK_TIMEOUT),
            MaintenanceOption::OnFailure => {
                self.rolls_back = match text {
                    "" | PAUSE => false,
                    ROLLBACK => true,
                    _ => return Err(format!("{text} is neither {PAUSE} nor {ROLLBACK}")),
                };
            }
            MaintenanceOption::Force
            | MaintenanceOption::DeleteEmptydirData
            | MaintenanceOption::Surge
            | MaintenanceOption::AllowPending
            | MaintenanceOption::ControlPlanesTogether
            | MaintenanceOption::AllowWorseLoss => {
                return Err("this option takes no value".into());
            }
        }
        Ok(())
    }

    /// The options of the maintenance. `count` is the number of nodes of the cluster.
    pub fn options(&self, guards: Guards, count: usize, now: Timestamp) -> MaintenanceOptions {
        MaintenanceOptions {
            nodes: self.nodes.clone(),
            drain: DrainOptions {
                ignore_daemonsets: true,
                force: self.force,
                delete_emptydir_data: self.delete_emptydir_data,
                timeout: Some(self.drain_timeout),
                surge: self.surge,
                retry: Retry::OnRecovery,
                ..DrainOptions::default()
            },
            parallel: self.parallel,
            max_per_zone: self.max_per_zone,
            control_planes_together: self.control_planes_together,
            allows_pending: self.allow_pending,
            work: self.work_takes,
            settle: self.settle,
            keeps_headroom: !self.allow_worse_loss && count <= HEADROOM_UP_TO,
            before: None,
            guards,
            windows: self.window.map_or_else(Vec::new, |window| window.upcoming(now)),
            longest: self.max_duration,
            began: None,
        }
    }

    /// Reads a request back from its command line, without the order of its options.
    ///
    /// # Errors
    /// The command line has a word that no request has.
    pub fn parse(command: &str) -> Result<Self, String> {
        let unknown = |word: &str| format!("it was started with {word}, which this dashboard does not know");
        let words = shell_words::split(command).map_err(|error| error.to_string())?;
        let mut words = words.into_iter().skip(1);
        let mut request = Self::new(Vec::new());
        match words.next() {
            Some(word) if word == "maintenance" => {}
            other => return Err(unknown(&other.unwrap_or_default())),
        }
        while let Some(word) = words.next() {
            match word.strip_prefix("--") {
                Some("enforce" | "yes") => {}
                Some(flag) => {
                    let (flag, value) =
                        flag.split_once('=').map_or((flag, None), |(flag, value)| (flag, Some(value)));
                    let option = MaintenanceOption::ALL.into_iter().find(|option| option.flag() == flag);
                    let option = option.ok_or_else(|| unknown(&word))?;
                    if option.is_switch() {
                        request.switch(option);
                    } else {
                        let value = value.map(str::to_owned).or_else(|| words.next()).unwrap_or_default();
                        let value = match request.value(option) {
                            // This flag may be repeated.
                            others if option == MaintenanceOption::WithoutGate && !others.is_empty() => {
                                format!("{others},{value}")
                            }
                            _ => value,
                        };
                        request.set(option, &value)?;
                    }
                }
                None if word == "-y" => {}
                None if word.starts_with('-') => return Err(unknown(&word)),
                None => request.nodes.push(word.as_str().into()),
            }
        }
        Ok(request)
    }

    /// The command that carries out the maintenance. Options with their default value are left out. If no work is
    /// given, the command has a placeholder for it.
    pub fn command(&self) -> String {
        let mut words = vec!["kordon".to_owned(), "maintenance".into()];
        words.extend(self.nodes.iter().map(ToString::to_string));
        let default = Self::new(Vec::new());
        for option in MaintenanceOption::ALL {
            let value = self.value(option);
            if value == default.value(option) {
                continue;
            }
            words.push(format!("--{}", option.flag()));
            if !option.is_switch() {
                words.push(value);
            }
        }
        if !self.has_work() {
            words.extend(["--exec".into(), "COMMAND {node}".into()]);
        }
        words.push("--enforce".into());
        shell_words::join(words)
    }
}

/// Parses the names of gates, separated by commas.
fn gates(text: &str) -> Result<Vec<Gate>, String> {
    let gate = |name: &str| {
        let found = Gate::CHECKS.into_iter().find(|gate| gate.to_string() == name);
        found.ok_or_else(|| format!("{name} is not verdict, pending, ready or budgets"))
    };
    text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(gate).collect()
}

/// Parses a number of nodes; `None` for an empty text.
fn nodes(text: &str) -> Result<Option<usize>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let count = text.parse::<u16>().ok().filter(|nodes| *nodes > 0);
    count.map(|nodes| Some(nodes.into())).ok_or_else(|| format!("{text} is not a number of nodes"))
}

/// Formats a duration with all its parts, as in `1h5m`.
fn exact(span: Span) -> String {
    let duration = Duration::from_nanos(span.as_nanos().unsigned_abs());
    humantime::format_duration(duration).to_string().replace(' ', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_has_what_differs_from_the_defaults() {
        let mut request = MaintenanceRequest::new(vec!["n1".into(), "n2".into()]);
        assert_eq!(request.command(), "kordon maintenance n1 n2 --exec 'COMMAND {node}' --enforce");
        let values = [
            (MaintenanceOption::Exec, "ssh {node} 'sudo reboot'"),
            (MaintenanceOption::WaitFor, "boot"),
            (MaintenanceOption::Parallel, "3"),
            (MaintenanceOption::MaxPerZone, "1"),
            (MaintenanceOption::WorkTakes, "1h5m"),
            (MaintenanceOption::Settle, "90s"),
            (MaintenanceOption::Window, "22:00-06:00 Europe/Berlin"),
            (MaintenanceOption::MaxDuration, "8h"),
            (MaintenanceOption::Gate, "check all"),
            (MaintenanceOption::WithoutGate, "pending,ready"),
            (MaintenanceOption::GateTimeout, "1m"),
            (MaintenanceOption::DrainTimeout, "2m"),
            (MaintenanceOption::WorkTimeout, "3m"),
            (MaintenanceOption::OnFailure, "rollback"),
        ];
        for (option, value) in values {
            request.set(option, value).expect("a value");
        }
        request.switch(MaintenanceOption::Force);
        request.switch(MaintenanceOption::Surge);
        request.switch(MaintenanceOption::AllowWorseLoss);
        assert_eq!(MaintenanceRequest::parse(&request.command()), Ok(request.clone()));
        let words = shell_words::split(&request.command()).expect("words");
        let flags: Vec<&str> = words.iter().skip(4).map(String::as_str).collect();
        let expected = [
            "--exec",
            "ssh {node} 'sudo reboot'",
            "--wait-for",
            "boot",
            "--parallel",
            "3",
            "--max-per-zone",
            "1",
            "--work-takes",
            "1h5m",
            "--settle",
            "1m30s",
            "--window",
            "22:00-06:00 Europe/Berlin",
            "--force",
            "--surge",
            "--allow-worse-loss",
            "--max-duration",
            "8h",
            "--gate",
            "check all",
            "--without-gate",
            "pending,ready",
            "--gate-timeout",
            "1m",
            "--drain-timeout",
            "2m",
            "--work-timeout",
            "3m",
            "--on-failure",
            "rollback",
            "--enforce",
        ];
        assert_eq!(flags, expected);
        for (option, _) in values {
            let text = if option == MaintenanceOption::Parallel { "auto" } else { "" };
            request.set(option, text).expect("the default");
            assert_eq!(request.value(option), MaintenanceRequest::new(Vec::new()).value(option));
        }
    }

    #[test]
    fn a_command_line_with_other_flags_is_not_read_as_a_request() {
        let parse = |words: &str| MaintenanceRequest::parse(&format!("/usr/bin/kordon {words}"));
        let request = parse("maintenance n1 --settle=90s -y --enforce").expect("a request");
        assert_eq!((request.nodes, request.settle), (vec!["n1".into()], Span::from_secs(90)));
        let request = parse("maintenance n1 --without-gate ready --without-gate=budgets").expect("a request");
        assert_eq!(request.without_gates, [Gate::Ready, Gate::Budgets]);
        for (words, unknown) in
            [("--context a maintenance n1", "--context"), ("maintenance --pool a", "--pool")]
        {
            let fault = parse(words).expect_err("another flag");
            assert_eq!(fault, format!("it was started with {unknown}, which this dashboard does not know"));
        }
        assert!(parse("maintenance n1 --settle soon").is_err() && parse("").is_err());
    }

    #[test]
    fn what_is_no_value_is_refused_with_a_reason() {
        let mut request = MaintenanceRequest::new(Vec::new());
        let mut fault = |option, text| request.set(option, text).expect_err("no value");
        assert_eq!(fault(MaintenanceOption::Parallel, "0"), "0 is not a number of nodes");
        assert!(fault(MaintenanceOption::Settle, "soon").contains("not a duration"));
        assert!(fault(MaintenanceOption::Window, "22:00").contains("22:00-06:00 Europe/Berlin"));
        assert!(fault(MaintenanceOption::WaitFor, "reboot").contains("annotation=KEY"));
        assert!(fault(MaintenanceOption::Exec, "'a").contains("quote"));
        assert!(fault(MaintenanceOption::WithoutGate, "pending,x").starts_with("x is not verdict"));
        assert_eq!(fault(MaintenanceOption::OnFailure, "stop"), "stop is neither pause nor rollback");
        assert_eq!(request, MaintenanceRequest::new(Vec::new()));
    }
}
