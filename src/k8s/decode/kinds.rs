//! The decoders of the watched kinds.

use super::{
    Decoder, Encoding, ListPurpose, PageEnd, StreamEvent, WatchEvent,
    budget::BudgetDecoder,
    cron_job::CronJobDecoder,
    device::{
        DeviceClassDecoder, DeviceTaintRuleDecoder, ResourceClaimDecoder, ResourceClaimTemplateDecoder,
        ResourceSliceDecoder,
    },
    lease::{LeaderDecoder, LeaseDecoder},
    namespace::NamespaceDecoder,
    node::NodeDecoder,
    pod::PodDecoder,
    priority_class::PriorityClassDecoder,
    protobuf::ProtobufPage,
    quota::QuotaDecoder,
    service::ServiceDecoder,
    storage::{
        ClaimDecoder, CsiDriverDecoder, CsiNodeDecoder, StorageCapacityDecoder, StorageClassDecoder,
        VolumeDecoder,
    },
    workload::WorkloadDecoder,
};
use kordon_core::cluster::{Change, FeedKind};

/// Returns a new decoder for a kind.
pub fn decoder_of(kind: FeedKind) -> Box<dyn AnyDecoder> {
    match kind {
        FeedKind::Nodes => Box::new(NodeDecoder::default()),
        FeedKind::Leases => Box::new(LeaseDecoder::default()),
        FeedKind::Pods => Box::new(PodDecoder::default()),
        FeedKind::Budgets => Box::new(BudgetDecoder::default()),
        FeedKind::Workloads(workload) => Box::new(WorkloadDecoder::new(workload)),
        FeedKind::PriorityClasses => Box::new(PriorityClassDecoder::default()),
        FeedKind::Namespaces => Box::new(NamespaceDecoder::default()),
        FeedKind::Services => Box::new(ServiceDecoder::default()),
        FeedKind::Claims => Box::new(ClaimDecoder::default()),
        FeedKind::Volumes => Box::new(VolumeDecoder::default()),
        FeedKind::StorageClasses => Box::new(StorageClassDecoder::default()),
        FeedKind::CsiNodes => Box::new(CsiNodeDecoder::default()),
        FeedKind::CsiDrivers => Box::new(CsiDriverDecoder::default()),
        FeedKind::StorageCapacities => Box::new(StorageCapacityDecoder::default()),
        FeedKind::Leader => Box::new(LeaderDecoder::default()),
        FeedKind::Quotas => Box::new(QuotaDecoder::default()),
        FeedKind::DeviceClasses => Box::new(DeviceClassDecoder::default()),
        FeedKind::ResourceClaims => Box::new(ResourceClaimDecoder::default()),
        FeedKind::ResourceSlices => Box::new(ResourceSliceDecoder::default()),
        FeedKind::DeviceTaintRules => Box::new(DeviceTaintRuleDecoder::default()),
        FeedKind::ClaimTemplates => Box::new(ResourceClaimTemplateDecoder::default()),
        FeedKind::CronJobs => Box::new(CronJobDecoder::default()),
    }
}

/// Returns a new decoder for a kind, without the images of nodes: see [`NodeDecoder::without_images`].
pub fn decoder_without_images(kind: FeedKind) -> Box<dyn AnyDecoder> {
    match kind {
        FeedKind::Nodes => Box::new(NodeDecoder::without_images()),
        other => decoder_of(other),
    }
}

/// A [`Decoder`] of any kind as a trait object, so that the code of watches and lists is compiled once for all kinds.
pub trait AnyDecoder: Send {
    /// Reads one event of a watch. See [`Encoding::event`].
    fn event(&mut self, encoding: Encoding, bytes: &[u8], listing: bool) -> StreamEvent;

    /// Reads a page of a list into `changes`. See [`Encoding::page`].
    ///
    /// # Errors
    /// The bytes are not a list in this encoding; the reason in words.
    fn page(
        &mut self,
        encoding: Encoding,
        bytes: &[u8],
        purpose: ListPurpose,
        changes: &mut Vec<Change>,
    ) -> Result<PageEnd, String>;

    /// Reads the next piece of a protobuf page into `changes`. See [`ProtobufPage::read`].
    ///
    /// # Errors
    /// The bytes are not part of a list; the reason in words.
    fn page_piece(
        &mut self,
        page: &mut ProtobufPage,
        piece: &[u8],
        changes: &mut Vec<Change>,
    ) -> Result<(), String>;

    /// Returns the change that the start of a list causes; `None` if the start causes no change.
    fn on_list_started(&mut self) -> Option<Change>;

    /// Returns the change that the end of a list causes; `None` if the end causes no change.
    fn on_list_done(&mut self) -> Option<Change>;

    /// Drops shared parts that no object uses any more.
    fn tidy(&mut self);
}

impl<D: Decoder> AnyDecoder for D {
    fn event(&mut self, encoding: Encoding, bytes: &[u8], listing: bool) -> StreamEvent {
        encoding.event(self, bytes, listing)
    }

    fn page(
        &mut self,
        encoding: Encoding,
        bytes: &[u8],
        purpose: ListPurpose,
        changes: &mut Vec<Change>,
    ) -> Result<PageEnd, String> {
        encoding.page(self, bytes, purpose, changes)
    }

    fn page_piece(
        &mut self,
        page: &mut ProtobufPage,
        piece: &[u8],
        changes: &mut Vec<Change>,
    ) -> Result<(), String> {
        page.read(self, piece, changes).map_err(|error| error.to_string())
    }

    fn on_list_started(&mut self) -> Option<Change> {
        self.change(WatchEvent::ListStarted)
    }

    fn on_list_done(&mut self) -> Option<Change> {
        self.change(WatchEvent::ListDone)
    }

    fn tidy(&mut self) {
        Decoder::tidy(self);
    }
}

/// A page of a list, read while it arrives. Protobuf objects are read one by one, and JSON objects at the end of the
/// page.
#[derive(Debug)]
pub enum PageReader {
    /// The bytes of the page received so far, and the purpose of the list.
    Json(Vec<u8>, ListPurpose),
    Protobuf(ProtobufPage),
}

impl PageReader {
    pub fn new(encoding: Encoding, purpose: ListPurpose) -> Self {
        match encoding {
            Encoding::Json => Self::Json(Vec::new(), purpose),
            Encoding::Protobuf => Self::Protobuf(ProtobufPage::new(purpose)),
        }
    }

    /// Reads the next piece into `changes`.
    ///
    /// # Errors
    /// The bytes are not part of a list in this encoding; the reason in words.
    pub fn read(
        &mut self,
        decoder: &mut dyn AnyDecoder,
        piece: &[u8],
        changes: &mut Vec<Change>,
    ) -> Result<(), String> {
        match self {
            Self::Json(received, _) => {
                received.extend_from_slice(piece);
                Ok(())
            }
            Self::Protobuf(page) => decoder.page_piece(page, piece, changes),
        }
    }

    /// Reads the rest of the page into `changes`, after its last piece has arrived.
    ///
    /// # Errors
    /// The page is not a list in this encoding; the text gives the reason.
    pub fn end(self, decoder: &mut dyn AnyDecoder, changes: &mut Vec<Change>) -> Result<PageEnd, String> {
        match self {
            Self::Json(received, purpose) => decoder.page(Encoding::Json, &received, purpose, changes),
            Self::Protobuf(page) => page.end().map_err(|error| error.to_string()),
        }
    }
}
