//! Words about plans that the screen and the command line have in common.

use super::{
    Action, NodeChange, Plan, PlanEvent, PlanTotals, PodPlan, Prospect, Verdict, environment::Landing,
    kubectl,
};
use crate::{cluster::Key, time::Span};

/// What the numbers of [`PlanTotals::counted`] are of.
pub const COUNTED: [&str; 11] = [
    "leave now",
    "leave later",
    "leaving already",
    "stay",
    "wait",
    "blocked",
    "refused",
    "lost for good",
    "lose data",
    "replacements stay Pending",
    "displaced",
];

/// When something that takes so long likely, and at most, is over.
pub fn ends(likely: Option<Span>, latest: Option<Span>) -> String {
    match (likely, latest) {
        (None, _) => "(never ends by itself)".into(),
        (Some(Span::ZERO), Some(Span::ZERO)) => "at once".into(),
        (Some(likely), Some(latest)) => format!("in ~{likely} (at the latest {latest})"),
        (Some(likely), None) => format!("in ~{likely} (or never)"),
    }
}

/// The count with the words that go with it.
pub fn several(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

impl Action {
    /// A word for it, the same for ever.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Cordon { .. } => "cordon",
            Self::Uncordon { .. } => "uncordon",
            Self::Taint { .. } => "taint",
            Self::Label { .. } => "label",
            Self::Drain { .. } => "drain",
            Self::Evict { .. } => "evict",
            Self::Delete { .. } => "delete",
        }
    }

    /// The command that has kordon print the plan of it, and with `--enforce` carry it out.
    pub fn kordon(&self) -> Option<String> {
        let command = match self {
            // Said as a deletion is, for kubectl has no words for it.
            Self::Evict { pods, options } => {
                let alike = Self::Delete { pods: pods.clone(), options: *options };
                kubectl::command(&alike)?.replace("delete pod", "evict pod")
            }
            Self::Cordon { .. }
            | Self::Uncordon { .. }
            | Self::Taint { .. }
            | Self::Label { .. }
            | Self::Drain { .. }
            | Self::Delete { .. } => kubectl::command(self)?,
        };
        let parallel = match self {
            Self::Drain { options, .. } if options.parallel > 1 => {
                format!(" --parallel={}", options.parallel)
            }
            _ => String::new(),
        };
        let command = command.replace("kubectl ", "kordon ").replace("--grace-period=0 --force", "--force");
        Some(command + &parallel)
    }
}

impl Prospect {
    /// A word for it, the same for ever.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Completes => "completes",
            Self::Stalls => "stalls",
            Self::Blocked => "blocked",
            Self::Refused => "refused",
        }
    }
}

impl Plan {
    /// When it is over, in words.
    pub fn ends(&self) -> String {
        let window = self.totals.ends;
        let after = |at: Option<crate::time::Timestamp>| at.map(|at| at.since(self.made));
        ends(after(window.likely), after(window.latest))
    }

    /// Why it does not come to its end, in one line.
    pub fn in_short(&self) -> String {
        let totals = &self.totals;
        match self.prospect() {
            Prospect::Refused if self.needs.is_empty() => {
                format!("{} it", several(totals.refused_nodes, "node refuses", "nodes refuse"))
            }
            Prospect::Refused => {
                let needs: Vec<String> = self.needs.iter().map(ToString::to_string).collect();
                let pods = several(totals.refused_pods, "pod is", "pods are");
                format!("{pods} refused without {}", needs.join(" "))
            }
            Prospect::Blocked => format!("{} blocked", several(totals.blocked, "pod is", "pods are")),
            Prospect::Stalls if self.times_out() => "the time allowed is too short".into(),
            Prospect::Stalls if totals.wait > 0 => {
                format!("{} for what may not come", several(totals.wait, "pod waits", "pods wait"))
            }
            Prospect::Stalls => "pods that are deleted never end".into(),
            Prospect::Completes => "it does".into(),
        }
    }
}

impl PlanEvent {
    /// Whom it happens to, a word for it that reads well in a column, and the rest.
    pub fn told(&self) -> (String, &'static str, String) {
        let (word, rest) = match self {
            Self::NodeStarts { .. } => ("begins", String::new()),
            Self::NodeEnds { .. } => ("ends", String::new()),
            Self::Leaves { .. } => ("leaves", String::new()),
            Self::Refused { budget: Some(budget), .. } => {
                ("refused", format!("by {budget}; it is tried again"))
            }
            Self::Refused { budget: None, .. } => ("refused", "it is tried again".into()),
            Self::Gone { .. } => ("gone", String::new()),
            Self::Replaced { landing, .. } => ("replaced", landing.words()),
            Self::Ready { .. } => ("ready", "its replacement".into()),
            Self::GaveUp { .. } => ("given up", "the time allowed is over".into()),
        };
        let subject = match self {
            Self::NodeStarts { node } | Self::NodeEnds { node } => node.to_string(),
            _ => self.pod().map(ToString::to_string).unwrap_or_default(),
        };
        (subject, word, rest)
    }

    /// The pod that it happens to, or that is replaced.
    pub const fn pod(&self) -> Option<&Key> {
        match self {
            Self::Leaves { pod } | Self::Refused { pod, .. } | Self::Gone { pod } | Self::GaveUp { pod } => {
                Some(pod)
            }
            Self::Replaced { of, .. } | Self::Ready { of } => Some(of),
            Self::NodeStarts { .. } | Self::NodeEnds { .. } => None,
        }
    }
}

impl PlanTotals {
    /// The pods by what becomes of them, in the order of [`COUNTED`].
    pub const fn counted(&self) -> [usize; 11] {
        [
            self.leave_now,
            self.leave_later,
            self.leaving_already,
            self.stay,
            self.wait,
            self.blocked,
            self.refused_pods,
            self.lost,
            self.data_lost,
            self.pending,
            self.displaced,
        ]
    }
}

impl Verdict {
    /// One word for it that reads well in a column.
    pub const fn told(&self) -> &'static str {
        match self {
            Self::Skipped(_) | Self::Tolerates | Self::Spared => "stays",
            Self::Refused { .. } => "refused",
            Self::Leaving => "leaving",
            Self::Leaves(_) => "leaves",
            Self::LeavesAfter { .. } => "later",
            Self::Waits { .. } | Self::WaitsForController { .. } | Self::WaitsForNamespace => "waits",
            Self::Blocked { .. } => "blocked",
            Self::TwoBudgets { .. } => "fails",
            Self::Unknown { .. } => "unknown",
            Self::Deleted { .. } => "deleted",
        }
    }

    /// What there is to say beside that word.
    pub fn because(&self) -> String {
        let text = self.to_string();
        let rest = text.strip_prefix(self.told()).map(|rest| rest.trim_start_matches([':', ' ']));
        rest.unwrap_or(&text).to_owned()
    }
}

impl PodPlan {
    /// What would help its replacement, where that stays Pending.
    pub fn help(&self) -> Vec<String> {
        let pending = matches!(self.landing, Some(Landing::Nowhere { .. }));
        let help = self.judgement.as_ref().filter(|_| pending).and_then(|judgement| judgement.help.as_ref());
        help.map(|help| help.words()).unwrap_or_default()
    }

    /// What to mind about it.
    pub fn minds(&self) -> Vec<String> {
        let mut minds: Vec<String> = self.warnings.iter().map(ToString::to_string).collect();
        if self.lost.is_some() {
            minds.insert(0, "lost for good".into());
        }
        if self.times_out.is_some() {
            minds.insert(0, "times out".into());
        }
        if let Some(Landing::Nowhere { why }) = &self.landing {
            minds.push(format!("its replacement stays Pending ({why})"));
        }
        minds
    }
}

impl NodeChange {
    /// What is written, or why nothing is.
    pub fn told(&self) -> String {
        match self {
            Self::Cordon => "is marked unschedulable".into(),
            Self::Uncordon => "is marked schedulable again".into(),
            Self::None => "is so already".into(),
            Self::Refused { text } => format!("refused: {text}"),
            Self::Taints { before, after } => {
                let is_in = |list: &[crate::cluster::Taint], taint: &crate::cluster::Taint| {
                    list.iter().any(|other| other.to_string() == taint.to_string())
                };
                let gone =
                    before.iter().filter(|taint| !is_in(after, taint)).map(|taint| format!("-{taint}"));
                let new = after.iter().filter(|taint| !is_in(before, taint)).map(|taint| format!("+{taint}"));
                gone.chain(new).collect::<Vec<_>>().join("  ")
            }
            Self::Labels { before, after } => {
                let gone = before.iter().filter(|(key, value)| after.get(*key) != Some(value));
                let new = after.iter().filter(|(key, value)| before.get(*key) != Some(value));
                let gone = gone.map(|(key, value)| format!("-{key}={value}"));
                gone.chain(new.map(|(key, value)| format!("+{key}={value}"))).collect::<Vec<_>>().join("  ")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cluster::Key,
        plan::{BlockPattern, DrainOptions, RemovalOptions, Skip, budget::BudgetNumbers},
    };

    #[test]
    fn the_word_of_a_verdict_is_not_said_twice() {
        let budget = Key::new("shop", "cart");
        let numbers = BudgetNumbers::default();
        let blocked =
            Verdict::Blocked { budget: budget.clone(), numbers, pattern: BlockPattern::NothingGiven };
        assert!(blocked.because().starts_with("by shop/cart ("));
        assert_eq!(Verdict::Skipped(Skip::Mirror).because(), "a static pod");
        assert_eq!(Verdict::Spared.because(), "its deletion is cancelled");
        let later = Verdict::LeavesAfter { budget, recoveries: 1, behind: Vec::new() };
        assert_eq!((later.told(), &*later.because()), ("later", "leaves after 1 recovery of shop/cart"));
    }

    #[test]
    fn kordons_command_says_what_kubectl_cannot() {
        let options = DrainOptions { parallel: 3, force: true, ..DrainOptions::default() };
        let drain = Action::Drain { nodes: vec!["a".into(), "b".into()], options };
        assert_eq!(drain.kordon().as_deref(), Some("kordon drain a b --force --parallel=3"));
        let options = RemovalOptions { grace: Some(Span::ZERO), ..RemovalOptions::default() };
        let evict = Action::Evict { pods: vec![Key::new("d", "p"), Key::new("d", "q")], options };
        assert_eq!(evict.kordon().as_deref(), Some("kordon evict pod p q -n d --force"));
    }
}
