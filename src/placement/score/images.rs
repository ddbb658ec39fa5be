//! Nodes that have the pod's images already (ImageLocality).

use super::{super::filter::Filters, MOST};

/// Less than this is not worth a point, in bytes.
const LEAST_BYTES: i64 = 23 << 20;
/// More than this for each container is worth no more, in bytes.
const ENOUGH_BYTES: i64 = 1000 << 20;

/// How many bytes need not be pulled, those of images that many nodes have counting more.
pub(super) fn points(filters: &Filters<'_>, feasible: &[u32]) -> Vec<i64> {
    let snapshot = filters.snapshot;
    let spec = &filters.request.spec;
    let init = if snapshot.rules().init_images_count { &*spec.init_images } else { &[] };
    let mut bytes = vec![0_i64; snapshot.node_resources().len()];
    for image in init.iter().chain(&spec.images) {
        let holders = snapshot.holders(image);
        #[expect(clippy::cast_precision_loss, reason = "upstream reckons in floats too")]
        #[expect(clippy::cast_possible_truncation, reason = "upstream cuts the fraction off")]
        let worth = |having: usize| {
            (holders.size_bytes as f64 * (having as f64 / snapshot.node_count() as f64)) as i64
        };
        for (place, node) in holders.nodes.iter().enumerate() {
            let having =
                if snapshot.rules().image_counts_are_stale { place + 1 } else { holders.nodes.len() };
            bytes[*node as usize] += worth(having);
        }
    }
    let containers = i64::try_from(init.len() + spec.images.len()).expect("fewer containers than bytes");
    let most = (ENOUGH_BYTES * containers).max(LEAST_BYTES + 1);
    let points = |node: &u32| {
        let bytes = bytes[*node as usize].clamp(LEAST_BYTES, most);
        MOST * (bytes - LEAST_BYTES) / (most - LEAST_BYTES)
    };
    feasible.iter().map(points).collect()
}
