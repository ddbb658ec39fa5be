//! Settings to try in place of the recorded ones.

use std::collections::BTreeMap;

use crate::{
    cluster::{SharedList, TaintEffect, Toleration, TolerationOperator},
    engine::{BadSetting, NOT_READY, Origin, ServerVersion, Settings, UNREACHABLE},
};
use kordon_time::Span;

/// Default toleration time that the API server gives to pods without a toleration of their own: 300 s.
pub const DEFAULT_TOLERATION: Span = Span::from_secs(300);

/// Settings of a controller, and the default tolerations of the API server.
#[derive(Clone, Debug, PartialEq)]
pub struct Alternative {
    pub settings: Settings,
    pub tolerations: DefaultTolerations,
    /// The shortest grace period of all compared settings. A longer silence of a node counts as an outage under all
    /// compared settings, even if some of them do not react to it.
    pub least_silence: Span,
}

/// How long pods tolerate the taints of a node that is not ready or unreachable. Applies to pods whose toleration was
/// set by the admission plugin DefaultTolerationSeconds. `None` keeps the recorded toleration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DefaultTolerations {
    /// `--default-not-ready-toleration-seconds`
    pub not_ready: Option<i64>,
    /// `--default-unreachable-toleration-seconds`
    pub unreachable: Option<i64>,
}

/// Error of a setting that cannot be replaced.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BadAlternative {
    #[error("{0} is not KEY=VALUE, as node-monitor-grace-period=20s")]
    NoValue(String),
    #[error(
        "{0} is no flag of the node lifecycle controller, nor default-not-ready-toleration-seconds or \
         default-unreachable-toleration-seconds"
    )]
    UnknownFlag(String),
    #[error("--{flag} is no flag of Kubernetes {version}, which is recorded: it was removed in 1.27")]
    RemovedFlag { flag: String, version: ServerVersion },
    #[error(transparent)]
    Setting(#[from] BadSetting),
}

const NOT_READY_FLAG: &str = "default-not-ready-toleration-seconds";
const UNREACHABLE_FLAG: &str = "default-unreachable-toleration-seconds";

impl Alternative {
    /// Creates an alternative with the given settings, in which nothing is replaced yet.
    pub fn new(settings: Settings) -> Self {
        let least_silence = settings.node_monitor_grace_period.value;
        Self { settings, tolerations: DefaultTolerations::default(), least_silence }
    }

    /// Replaces a setting, for example `node-monitor-grace-period=20s`. Leading dashes are ignored.
    ///
    /// # Errors
    /// The setting does not exist at all or in this release, or the value is not valid.
    pub fn set(&mut self, text: &str) -> Result<(), BadAlternative> {
        let bare = text.trim_start_matches('-');
        let (flag, value) = bare.split_once('=').ok_or_else(|| BadAlternative::NoValue(text.into()))?;
        let seconds = || {
            let parsed =
                value.strip_suffix('s').unwrap_or(value).parse().ok().filter(|seconds| *seconds >= 0);
            let wanted = "a whole number of seconds";
            parsed.ok_or_else(|| BadSetting { flag: flag.into(), text: value.into(), wanted })
        };
        match flag {
            NOT_READY_FLAG => self.tolerations.not_ready = Some(seconds()?),
            UNREACHABLE_FLAG => self.tolerations.unreachable = Some(seconds()?),
            _ if self.settings.set(flag, value, Origin::Override)? => {
                if !self.settings.has_flag(flag) {
                    let version = self.settings.version;
                    return Err(BadAlternative::RemovedFlag { flag: flag.into(), version });
                }
            }
            _ => return Err(BadAlternative::UnknownFlag(flag.into())),
        }
        Ok(())
    }

    /// Sets the default toleration of both taints: not-ready and unreachable.
    #[must_use]
    pub fn with_toleration(mut self, toleration: Span) -> Self {
        let seconds = Some(toleration.as_secs());
        self.tolerations = DefaultTolerations { not_ready: seconds, unreachable: seconds };
        self
    }

    /// Sets the grace period.
    #[must_use]
    pub fn with_grace(mut self, grace: Span) -> Self {
        self.settings.node_monitor_grace_period.value = grace;
        self
    }

    /// The time for which pods with the default toleration tolerate an unreachable node.
    pub fn toleration(&self) -> Span {
        self.tolerations.unreachable.map_or(DEFAULT_TOLERATION, Span::from_secs)
    }

    /// The settings whose values differ from those in `from`, for example `node-monitor-grace-period=20s`; empty if no
    /// values differ.
    pub fn differences(&self, from: &Self) -> Vec<String> {
        // Compare by name, because `flags` may leave out a flag that has its default value.
        let before: BTreeMap<_, _> =
            from.settings.flags().into_iter().map(|(flag, value, _)| (flag, value)).collect();
        let flags = self.settings.flags().into_iter();
        let changed = flags.filter(|(flag, value, _)| before.get(flag) != Some(value));
        let tolerations = [
            (NOT_READY_FLAG, self.tolerations.not_ready, from.tolerations.not_ready),
            (UNREACHABLE_FLAG, self.tolerations.unreachable, from.tolerations.unreachable),
        ];
        let default = DEFAULT_TOLERATION.as_secs();
        let tolerations = tolerations.into_iter().filter_map(|(flag, seconds, before)| {
            let seconds = seconds.unwrap_or(default);
            (seconds != before.unwrap_or(default)).then(|| format!("{flag}={seconds}"))
        });
        // Remove spaces, so that the value can be typed again: `1m30s`.
        let changed = changed.map(|(flag, value, _)| format!("{flag}={}", value.replace(' ', "")));
        changed.chain(tolerations).collect()
    }
}

impl DefaultTolerations {
    /// Replaces the default tolerations among a pod's tolerations. Returns the same shared list if nothing changes.
    pub fn replace(self, tolerations: &SharedList<Toleration>) -> SharedList<Toleration> {
        let is_replaced = |toleration: &Toleration| {
            self.seconds_for(toleration).is_some_and(|seconds| toleration.seconds != Some(seconds))
        };
        if !tolerations.iter().any(is_replaced) {
            return tolerations.clone();
        }
        let replaced = |toleration: &Toleration| match self.seconds_for(toleration) {
            Some(seconds) => Toleration { seconds: Some(seconds), ..toleration.clone() },
            None => toleration.clone(),
        };
        tolerations.iter().map(replaced).collect()
    }

    /// The new duration in seconds of a toleration that the admission plugin has set. `None` for other tolerations, and
    /// if the recorded duration is kept.
    fn seconds_for(self, toleration: &Toleration) -> Option<i64> {
        let is_default = toleration.operator == TolerationOperator::Exists
            && toleration.effect == Some(TaintEffect::NoExecute)
            && toleration.seconds == Some(DEFAULT_TOLERATION.as_secs());
        match toleration.key.as_str() {
            NOT_READY if is_default => self.not_ready,
            UNREACHABLE if is_default => self.unreachable,
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toleration(key: &str, seconds: Option<i64>) -> Toleration {
        let (operator, effect) = (TolerationOperator::Exists, Some(TaintEffect::NoExecute));
        Toleration { key: key.into(), operator, effect, seconds, ..Toleration::default() }
    }

    #[test]
    fn only_the_tolerations_of_the_admission_plugin_are_replaced() {
        let own =
            [toleration(NOT_READY, Some(60)), toleration(UNREACHABLE, None), toleration("gpu", Some(300))];
        let replaced = DefaultTolerations { not_ready: Some(30), unreachable: Some(20) };
        let kept: SharedList<Toleration> = own.into();
        assert!(replaced.replace(&kept).is_same_list(&kept));
        let default: SharedList<Toleration> =
            [toleration(NOT_READY, Some(300)), toleration(UNREACHABLE, Some(300))].into();
        let seconds: Vec<_> = replaced.replace(&default).iter().map(|own| own.seconds).collect();
        assert_eq!(seconds, [Some(30), Some(20)]);
        assert!(DefaultTolerations::default().replace(&default).is_same_list(&default));
    }

    #[test]
    fn a_setting_is_replaced_by_its_flag_and_named_as_a_difference() {
        let present = Alternative::new(Settings::defaults(ServerVersion::new(1, 36)));
        let mut other = present.clone();
        other.set("--node-monitor-grace-period=90s").expect("a flag");
        other.set("default-unreachable-toleration-seconds=60").expect("a flag of the API server");
        other.set("default-not-ready-toleration-seconds=300").expect("as it is");
        let differences = ["node-monitor-grace-period=1m30s", "default-unreachable-toleration-seconds=60"];
        assert_eq!(other.differences(&present), differences);
        assert_eq!(
            present.set_all(&["node-monitor-grace-period"]),
            Err(BadAlternative::NoValue("node-monitor-grace-period".into()))
        );
        assert_eq!(present.set_all(&["v=4"]), Err(BadAlternative::UnknownFlag("v".into())));
        assert!(matches!(present.set_all(&["node-eviction-rate=fast"]), Err(BadAlternative::Setting(_))));
        assert!(present.set_all(&["default-not-ready-toleration-seconds=-1"]).is_err());
    }

    /// The releases in which each flag exists are listed in docs/upstream/node-lifecycle.md#1.1.
    #[test]
    fn a_flag_that_the_release_does_not_have_is_refused() {
        for (minor, exists) in [(19, true), (26, true), (27, false), (36, false), (38, false)] {
            let version = ServerVersion::new(1, minor);
            let present = Alternative::new(Settings::defaults(version));
            for (flag, value) in [("pod-eviction-timeout", "1m"), ("enable-taint-manager", "false")] {
                let result = present.set_all(&[&format!("--{flag}={value}")]);
                let refused = BadAlternative::RemovedFlag { flag: flag.into(), version };
                assert_eq!(result, if exists { Ok(()) } else { Err(refused) }, "{version}");
            }
            let others = [
                "node-monitor-period=1s",
                "node-monitor-grace-period=20s",
                "node-startup-grace-period=20s",
                "node-eviction-rate=1",
                "secondary-node-eviction-rate=1",
                "large-cluster-size-threshold=1",
                "unhealthy-zone-threshold=0.5",
                "default-not-ready-toleration-seconds=1",
                "default-unreachable-toleration-seconds=1",
            ];
            assert_eq!(present.set_all(&others), Ok(()), "{version}");
        }
    }

    impl Alternative {
        fn set_all(&self, texts: &[&str]) -> Result<(), BadAlternative> {
            let mut other = self.clone();
            texts.iter().try_for_each(|text| other.set(text))
        }
    }
}
