//! The scheduler's settings on the command line, with upstream's names.

use clap::Args;

use kordon_core::{
    engine::ServerVersion,
    placement::{PercentageOfNodesToScore, SchedulerOptions},
};

#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct SchedulerArgs {
    /// The scheduler's percentageOfNodesToScore: in clusters of 100 nodes and more, the scheduler stops its search once
    /// it has found this percentage of all nodes to fit, and scores only these. 0 adapts to the number of nodes, 100 is
    /// all nodes; by default all nodes are scored, with a caveat where the scheduler may score some of them only
    #[arg(long, value_name = "PERCENT")]
    percentage_of_nodes_to_score: Option<PercentageOfNodesToScore>,
}

impl SchedulerArgs {
    /// Options of the scheduler, for a cluster of this release.
    pub fn options(&self, version: ServerVersion) -> SchedulerOptions {
        SchedulerOptions { percentage_of_nodes_to_score: self.percentage_of_nodes_to_score, ..version.into() }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        scheduler: SchedulerArgs,
    }

    #[test]
    fn the_percentage_of_nodes_to_score_is_a_whole_number_up_to_100() {
        let parse = |text: &str| Line::try_parse_from(["kordon", "--percentage-of-nodes-to-score", text]);
        let percentage = |text: &str| {
            let line = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            line.scheduler.options(ServerVersion::new(1, 36)).percentage_of_nodes_to_score
        };
        assert_eq!(percentage("0"), Some(PercentageOfNodesToScore::ADAPTIVE));
        assert_eq!(percentage("100"), Some(PercentageOfNodesToScore::ALL));
        let error = parse("101").err().expect("more than all").to_string();
        let why = "not a whole number from 0 (adapts to the number of nodes) to 100 (all nodes)";
        assert!(error.contains("--percentage-of-nodes-to-score") && error.contains(why), "{error}");
        let unknown = Line::parse_from(["kordon"]).scheduler.options(ServerVersion::new(1, 36));
        assert_eq!(unknown, ServerVersion::new(1, 36).into());
    }
}
