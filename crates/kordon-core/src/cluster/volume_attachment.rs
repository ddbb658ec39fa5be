//! VolumeAttachments, which show to which nodes volumes are attached.

use super::{
    fetched_list::FetchedList,
    names::{Name, NodeName},
};
use kordon_time::ClusterTime;

/// A VolumeAttachment: a volume that the attach-detach controller attaches to a node, or detaches from it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeAttachment {
    /// Name of the PersistentVolume (`spec.source.persistentVolumeName`); empty for a volume in the pod's own spec.
    pub volume: Name,
    pub node: NodeName,
    /// When the detachment began; `None` if the volume is not being detached.
    pub deleted: Option<ClusterTime>,
    /// Why the last attempt to detach the volume failed (`status.detachError`); empty if it did not fail.
    pub detach_error: Name,
}

/// The VolumeAttachments of a cluster. They are read only when somebody looks at a pod that may wait for a volume.
pub type KnownVolumeAttachments = FetchedList<VolumeAttachment>;

impl KnownVolumeAttachments {
    /// Returns the attachments of a volume; none if the attachments are not known.
    pub fn of_volume(&self, volume: &Name) -> impl Iterator<Item = &VolumeAttachment> {
        let attachments = match self {
            Self::Read(attachments) => attachments.as_slice(),
            Self::NotRead | Self::NotServed | Self::Unreadable(_) => &[],
        };
        attachments.iter().filter(move |attachment| attachment.volume == *volume)
    }
}
