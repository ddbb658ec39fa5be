//! Values of node labels, stored as numbers.

use std::{collections::BTreeMap, sync::Arc};

use crate::cluster::{Name, Node};

/// Number that stands for "the node does not have the label" in a column of label values.
pub(super) const ABSENT: u32 = u32::MAX;

/// Columns of node labels: one column for each label that a placement has needed so far.
#[derive(Clone, Debug, Default)]
pub(super) struct LabelColumns {
    by_key: BTreeMap<Name, Arc<LabelColumn>>,
}

/// A column: the values of one label on all nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct LabelColumn {
    /// For each node, the number of its value of the label, or [`ABSENT`].
    pub of_node: Vec<u32>,
    /// The values of the label, indexed by their numbers.
    pub values: Vec<Name>,
    numbers: BTreeMap<Name, u32>,
}

impl LabelColumns {
    /// Creates the column of a label, unless the column exists.
    pub fn ensure(&mut self, key: &Name, nodes: &[Option<Arc<Node>>]) {
        if self.by_key.contains_key(key) {
            return;
        }
        let mut column = LabelColumn::default();
        for (number, node) in nodes.iter().enumerate() {
            column.put(number, node.as_ref().and_then(|node| node.label(key)));
        }
        self.by_key.insert(key.clone(), Arc::new(column));
    }

    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Returns the column of a label. The column must exist.
    pub fn column(&self, key: &Name) -> &Arc<LabelColumn> {
        self.by_key.get(key).expect("columns are made before they are used")
    }

    /// Updates all columns after the labels of a node changed.
    pub fn put(&mut self, number: usize, node: Option<&Node>) {
        for (key, column) in &mut self.by_key {
            let value = node.and_then(|node| node.label(key));
            if column.value_of(number) != value {
                Arc::make_mut(column).put(number, value);
            }
        }
    }
}

impl LabelColumn {
    /// Returns the number of a value; `None` if no node has had this value.
    pub fn number(&self, value: &Name) -> Option<u32> {
        self.numbers.get(value).copied()
    }

    fn value_of(&self, node: usize) -> Option<&Name> {
        self.values.get(usize::try_from(*self.of_node.get(node)?).ok()?)
    }

    fn put(&mut self, node: usize, value: Option<&Name>) {
        let number = value.map_or(ABSENT, |value| self.number(value).unwrap_or_else(|| self.name(value)));
        if node >= self.of_node.len() {
            self.of_node.resize(node + 1, ABSENT);
        }
        self.of_node[node] = number;
    }

    fn name(&mut self, value: &Name) -> u32 {
        let number = u32::try_from(self.values.len()).expect("fewer values than nodes");
        self.values.push(value.clone());
        self.numbers.insert(value.clone(), number);
        number
    }
}
