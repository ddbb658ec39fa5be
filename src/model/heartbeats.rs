//! The last renewals of each node's lease, for the heartbeat strip.

use std::collections::BTreeMap;

use crate::{
    cluster::{Delta, Lease, NodeName},
    time::Span,
};

/// Renewals remembered for each node.
pub const KEPT: usize = 12;

/// The gaps between the last renewals of each node's lease.
#[derive(Clone, Debug, Default)]
pub struct Heartbeats {
    by_node: BTreeMap<NodeName, Gaps>,
}

/// The last gaps of one node, oldest first; in tenths of a second, so that 5,000 nodes take little.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Gaps {
    tenths: [u16; KEPT],
    len: u8,
}

impl Heartbeats {
    /// Follows a change of a lease.
    pub fn on_lease(&mut self, delta: &Delta<Lease>) {
        let Some(new) = &delta.new else {
            if let Some(old) = &delta.old {
                self.by_node.remove(&old.node);
            }
            return;
        };
        let renewals = delta.old.as_ref().and_then(|old| Some((old.renewed?, new.renewed?)));
        if let Some((before, after)) = renewals.filter(|(before, after)| after > before) {
            self.push(&new.node, after.since(before));
        }
    }

    pub fn push(&mut self, node: &NodeName, gap: Span) {
        let tenths = u16::try_from(gap.as_nanos() / 100_000_000).unwrap_or(u16::MAX);
        self.by_node.entry(node.clone()).or_default().push(tenths);
    }

    /// The gaps between the node's last renewals, oldest first.
    pub fn gaps(&self, node: &NodeName) -> impl ExactSizeIterator<Item = Span> + DoubleEndedIterator {
        let gaps = self.by_node.get(node).copied().unwrap_or_default();
        (0..usize::from(gaps.len)).map(move |place| Span::from_millis(i64::from(gaps.tenths[place]) * 100))
    }
}

impl Gaps {
    fn push(&mut self, tenths: u16) {
        if usize::from(self.len) == KEPT {
            self.tenths.rotate_left(1);
            self.tenths[KEPT - 1] = tenths;
        } else {
            self.tenths[usize::from(self.len)] = tenths;
            self.len += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::time::{ClusterTime, Timestamp};

    fn lease(renewed: i64) -> Option<Arc<Lease>> {
        let renewed = Some(ClusterTime::new(Timestamp::from_secs(renewed)));
        Some(Arc::new(Lease { node: "n".into(), renewed, ..Lease::default() }))
    }

    #[test]
    fn the_last_gaps_are_kept_and_only_renewals_make_one() {
        let mut beats = Heartbeats::default();
        beats.on_lease(&Delta { old: None, new: lease(0) });
        assert_eq!(beats.gaps(&"n".into()).len(), 0, "a first sight is no gap");
        beats.on_lease(&Delta { old: lease(5), new: lease(5) });
        assert_eq!(beats.gaps(&"n".into()).len(), 0, "not renewed");
        for n in 0..20 {
            beats.on_lease(&Delta { old: lease(n * 100), new: lease(n * 100 + n) });
        }
        let gaps: Vec<i64> = beats.gaps(&"n".into()).map(Span::as_secs).collect();
        assert_eq!(gaps, (8..20).collect::<Vec<_>>());
        beats.on_lease(&Delta { old: lease(5), new: None });
        assert_eq!(beats.gaps(&"n".into()).len(), 0, "the lease is gone");
    }
}
