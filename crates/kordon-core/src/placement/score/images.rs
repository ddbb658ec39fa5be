//! Score for nodes that already have the pod's images (ImageLocality).

use super::{
    super::{filter::Filters, rules::ImageVolumes},
    MOST, Points,
};

/// Total size in bytes of a pod's images up to which a node gets no points.
const MIN_BYTES: i64 = 23 << 20;
/// Average size in bytes per image at or above which a node gets full points.
const MAX_BYTES: i64 = 1000 << 20;

/// Scores the bytes of images that a node already has. The bytes of an image are weighted by the share of nodes that
/// have it.
pub(super) fn points(filters: &Filters<'_>, feasible: &[u32]) -> Points {
    let snapshot = filters.snapshot;
    let spec = &filters.request.spec;
    let init = if snapshot.rules().init_images_count { &*spec.init_images } else { &[] };
    let (volumes, counted_volumes) = match snapshot.rules().image_volumes {
        ImageVolumes::Ignored => (&[][..], 0),
        ImageVolumes::Added => (&*spec.volume_images, 0),
        ImageVolumes::Counted => (&*spec.volume_images, spec.volume_images.len()),
    };
    let mut bytes: Vec<i64> = Vec::new();
    for image in init.iter().chain(&spec.images).chain(volumes) {
        let holders = snapshot.holders(image);
        if bytes.is_empty() && !holders.nodes.is_empty() {
            bytes = vec![0; snapshot.node_resources().len()];
        }
        #[expect(clippy::cast_precision_loss, reason = "upstream computes in floats too")]
        #[expect(clippy::cast_possible_truncation, reason = "upstream truncates")]
        let bytes_with = |having: usize| {
            (holders.size_bytes as f64 * (having as f64 / snapshot.node_count() as f64)) as i64
        };
        let by_all = bytes_with(holders.nodes.len());
        let is_stale = snapshot.rules().image_counts_are_stale;
        for (place, node) in holders.nodes.iter().enumerate() {
            bytes[*node as usize] += if is_stale { bytes_with(place + 1) } else { by_all };
        }
    }
    if bytes.is_empty() {
        return Points::Equal(0);
    }
    let images = init.len() + spec.images.len() + counted_volumes;
    let images = i64::try_from(images).expect("fewer images than bytes");
    let most = (MAX_BYTES * images).max(MIN_BYTES + 1);
    let points = |node: &u32| match bytes[*node as usize].clamp(MIN_BYTES, most) {
        MIN_BYTES => 0,
        bytes => MOST * (bytes - MIN_BYTES) / (most - MIN_BYTES),
    };
    Points::Each(feasible.iter().map(points).collect())
}
