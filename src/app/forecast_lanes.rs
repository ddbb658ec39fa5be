//! The forecast's pane: its lanes, and the lane that the user selected.

use super::{filter::Filter, listing::Listing};
use crate::model::{Horizon, pressure::KubeletEviction};
use kordon_core::{cluster::NodeName, forecast::Lane};
use kordon_time::Timestamp;

/// The forecast as a list of lanes: rows with the past and predicted events of one node or of several.
#[derive(Clone, Debug)]
pub struct ForecastLanes {
    /// Lanes of nodes, folded together until they fit the pane.
    pub lanes: Vec<Lane>,
    /// The first node of each lane, which identifies the lane.
    pub list: Listing<NodeName>,
    pub horizon: Horizon,
    /// Number of lanes that fit the pane when it was last drawn.
    pub(super) room: usize,
    /// The node whose lane was selected last.
    chosen: Option<NodeName>,
    /// Inputs from which the present lanes were computed.
    pub(super) arranged: Option<LanesBasis>,
}

/// Inputs from which the lanes of the forecast are computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LanesBasis {
    /// Time at which the forecast was made, and its end.
    pub forecast: Option<(Timestamp, Timestamp)>,
    /// Number of changes of nodes' states. Such a change can alter a forecast without a new one being made: once a node
    /// is no longer silent, the predictions that follow from its silence are removed.
    pub states: u64,
    /// The evictions by kubelets that the chart shows.
    pub kubelets: Vec<(NodeName, KubeletEviction)>,
    /// Time at which the outcomes of leaving pods were computed.
    pub outcomes: Option<Timestamp>,
    pub filter: Filter,
    pub horizon: Horizon,
    pub room: usize,
}

impl Default for ForecastLanes {
    fn default() -> Self {
        Self {
            lanes: Vec::new(),
            list: Listing::default(),
            horizon: Horizon::default(),
            // Assumed number of lanes that fit the forecast's pane, until it is drawn for the first time.
            room: 8,
            chosen: None,
            arranged: None,
        }
    }
}

impl ForecastLanes {
    /// Records the number of lanes that fit the forecast's pane. If the pane was a single line (0 rows), the previous
    /// number remains.
    pub(super) fn set_drawn(&mut self, rows: usize) {
        self.list.set_drawn(rows);
        self.room = if rows > 0 { rows } else { self.room };
    }

    /// Replaces the lanes of the forecast. The selection stays with the lane of the chosen node, however lanes are
    /// folded together.
    pub(super) fn replace(&mut self, lanes: Vec<Lane>) {
        self.chosen = self.node().cloned().or_else(|| self.chosen.take());
        let chosen = self.chosen.as_ref();
        let of_chosen = |lane: &&Lane| chosen.is_some_and(|chosen| lane.nodes.binary_search(chosen).is_ok());
        let first = lanes.iter().find(of_chosen).map(|lane| &lane.nodes[0]);
        let keys = lanes.iter().map(|lane| lane.nodes[0].clone()).collect();
        self.list.replace_where(keys, |key| Some(key) == first);
        self.lanes = lanes;
    }

    /// The selected lane.
    pub fn selected(&self) -> Option<&Lane> {
        self.lanes.get(self.list.cursor()?)
    }

    /// The node of the selected lane. If several nodes share the lane, the node whose lane was selected last, or else
    /// the first node.
    pub fn node(&self) -> Option<&NodeName> {
        let nodes = &self.selected()?.nodes;
        let chosen = self.chosen.as_ref().filter(|chosen| nodes.binary_search(chosen).is_ok());
        chosen.or(nodes.first())
    }
}
