//! Amounts of the resources that nodes offer and pods request.

use std::ops::{AddAssign, SubAssign};

use minicbor::{Decode, Encode};

use super::encoding::EncodingContext;

/// Amounts of resources: CPU in thousandths of a core, memory in bytes, and the number of pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(context_bound = "EncodingContext")]
pub struct Resources {
    #[n(0)]
    pub cpu_milli: i64,
    #[n(1)]
    pub memory_bytes: i64,
    #[n(2)]
    pub pods: i64,
}

impl AddAssign for Resources {
    fn add_assign(&mut self, other: Self) {
        self.cpu_milli = self.cpu_milli.saturating_add(other.cpu_milli);
        self.memory_bytes = self.memory_bytes.saturating_add(other.memory_bytes);
        self.pods = self.pods.saturating_add(other.pods);
    }
}

impl SubAssign for Resources {
    fn sub_assign(&mut self, other: Self) {
        self.cpu_milli = self.cpu_milli.saturating_sub(other.cpu_milli);
        self.memory_bytes = self.memory_bytes.saturating_sub(other.memory_bytes);
        self.pods = self.pods.saturating_sub(other.pods);
    }
}
