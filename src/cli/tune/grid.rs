//! The settings to compare.

use crate::cli::CliError;
use kordon_core::counterfactual::Alternative;
use kordon_time::Span;

/// Maximum number of compared settings. The recording is played for each of them.
const MOST: usize = 200;

/// Default grace periods and tolerations to compare, in seconds.
const GRACES: [i64; 7] = [20, 30, 40, 50, 60, 90, 120];
const TOLERATIONS: [i64; 5] = [30, 60, 120, 300, 600];

/// A setting with the values to compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GridAxis {
    key: String,
    values: Vec<String>,
}

pub fn grid_axis(text: &str) -> Result<GridAxis, String> {
    let parsed = text.split_once('=').map(|(key, values)| GridAxis {
        key: key.into(),
        values: values.split(',').map(str::trim).filter(|value| !value.is_empty()).map(Into::into).collect(),
    });
    parsed
        .filter(|axis| !axis.values.is_empty())
        .ok_or_else(|| "not KEY=VALUE,VALUE as node-monitor-grace-period=20s,40s".into())
}

/// The settings to compare: the requested settings, or else a series of grace periods and a series of tolerations. The
/// settings in force are always included.
pub fn alternatives(
    present: &Alternative,
    with: &[String],
    grid: &[GridAxis],
) -> Result<Vec<Alternative>, CliError> {
    let mut base = present.clone();
    for text in with {
        set(&mut base, text)?;
    }
    if grid.is_empty() && with.is_empty() {
        return Ok(series(present));
    }
    let mut compared = vec![base];
    for axis in grid {
        let count = compared.len() * axis.values.len();
        if count > MOST {
            let text = format!("--grid has {count} combinations, and {MOST} are compared at most");
            return Err(CliError::Usage(text));
        }
        let mut combined = Vec::with_capacity(count);
        for one in &compared {
            for value in &axis.values {
                let mut other = one.clone();
                set(&mut other, &format!("{}={value}", axis.key))?;
                combined.push(other);
            }
        }
        compared = combined;
    }
    if !compared.iter().any(|one| one.differences(present).is_empty()) {
        compared.insert(0, present.clone());
    }
    Ok(compared)
}

fn set(alternative: &mut Alternative, text: &str) -> Result<(), CliError> {
    alternative.set(text).map_err(|error| CliError::Usage(error.to_string()))
}

/// The default series: grace periods including the one in force, tolerations, and a pause while a zone is wholly down.
fn series(present: &Alternative) -> Vec<Alternative> {
    let in_force = present.settings.node_monitor_grace_period.value;
    let mut graces: Vec<Span> = GRACES.map(Span::from_secs).into();
    graces.push(in_force);
    graces.sort_unstable();
    graces.dedup();
    let graces = graces.into_iter().map(|grace| present.clone().with_grace(grace));
    let others = TOLERATIONS.map(Span::from_secs).into_iter().filter(|span| *span != present.toleration());
    let tolerations = others.map(|toleration| present.clone().with_toleration(toleration));
    graces.chain(tolerations).chain(pausing(present)).collect()
}

/// The settings in force, but with evictions paused in zones without a ready node; `None` if the settings in force
/// already do this.
fn pausing(present: &Alternative) -> Option<Alternative> {
    let mut pausing = present.clone();
    pausing.set("full-disruption=pause").ok()?;
    (!pausing.differences(present).is_empty()).then_some(pausing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kordon_core::engine::{ServerVersion, Settings};

    fn compared(with: &[&str], grid: &[&str]) -> Result<Vec<Vec<String>>, CliError> {
        let present = Alternative::new(Settings::defaults(ServerVersion::new(1, 36)));
        let with: Vec<String> = with.iter().map(|text| (*text).into()).collect();
        let grid: Vec<GridAxis> = grid.iter().map(|text| grid_axis(text).expect("an axis")).collect();
        let compared = alternatives(&present, &with, &grid)?;
        Ok(compared.iter().map(|one| one.differences(&present)).collect())
    }

    #[test]
    fn without_a_wish_both_series_are_compared_with_what_is_in_force_once() {
        let compared = compared(&[], &[]).expect("nothing can be wrong");
        assert_eq!(compared.len(), GRACES.len() + TOLERATIONS.len() - 1 + 1, "the pause is one more");
        assert_eq!(compared.last().expect("a row"), &["full-disruption=pause"]);
        assert_eq!(compared.iter().filter(|differences| differences.is_empty()).count(), 1);
    }

    #[test]
    fn a_grid_has_every_combination_and_what_is_in_force() {
        let grace = "node-monitor-grace-period=20s,50s";
        let toleration = "default-unreachable-toleration-seconds=60,300";
        assert_eq!(compared(&[], &[grace, toleration]).expect("a grid").len(), 4);
        let faster = compared(&["node-eviction-rate=1"], &[grace]).expect("a grid");
        assert_eq!(faster[0], [""; 0], "added");
        assert_eq!(faster[2], ["node-eviction-rate=1"], "50s is in force");
        assert!(matches!(compared(&["grace=20s"], &[]), Err(CliError::Usage(_))));
        assert!(matches!(
            compared(&[], &[&format!("{grace}{}", ",9s".repeat(300))]),
            Err(CliError::Usage(_))
        ));
        assert!(grid_axis("node-monitor-grace-period").is_err() && grid_axis("a=").is_err());
    }
}
