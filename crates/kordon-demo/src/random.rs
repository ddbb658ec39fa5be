//! Random numbers that do not depend on the order of requests.

use fastrand::Rng;

/// The source of all randomness in the embedded cluster.
///
/// Agents are tasks, and the order in which they handle events differs between runs. Each decision therefore has its
/// own generator, which depends on the seed and on names that identify the decision. The same seed then gives the same
/// cluster and the same incidents, whatever the order of events.
#[derive(Clone, Copy, Debug)]
pub struct RandomSource {
    seed: u64,
}

impl RandomSource {
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Returns the generator of the decision that `words` identify.
    pub fn rng(&self, words: &[&str]) -> Rng {
        let mut hash = Hash::new(self.seed);
        for word in words {
            hash.feed(word.as_bytes());
            hash.feed(&[0]);
        }
        Rng::with_seed(hash.value())
    }
}

/// A suffix of `length` characters from Kubernetes' alphabet for names: no vowels, no similar characters.
pub fn suffix(rng: &mut Rng, length: usize) -> String {
    (0..length).map(|_| char::from(ALPHABET[rng.usize(..ALPHABET.len())])).collect()
}

/// The `pod-template-hash` of a template.
pub fn template_hash(template: &serde_json::Value) -> String {
    let mut hash = Hash::new(0);
    hash.feed(template.to_string().as_bytes());
    suffix(&mut Rng::with_seed(hash.value()), 10)
}

/// A random version 4 UUID, as the API server assigns.
pub fn uid(rng: &mut Rng) -> String {
    let bits = rng.u128(..) & !(0xf << 76) | (4 << 76);
    let bits = bits & !(0b11 << 62) | (0b10 << 62);
    let hex = format!("{bits:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// FNV-1a hash. Unlike the standard library's hash, it is guaranteed to be the same on all machines and in all
/// releases.
struct Hash(u64);

impl Hash {
    fn new(seed: u64) -> Self {
        let mut hash = Self(0xcbf2_9ce4_8422_2325);
        hash.feed(&seed.to_le_bytes());
        hash
    }

    fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn value(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_does_not_depend_on_earlier_ones() {
        let random = RandomSource::new(7);
        let alone = random.rng(&["pod", "a"]).u64(..);
        let _other = random.rng(&["pod", "b"]).u64(..);
        assert_eq!(random.rng(&["pod", "a"]).u64(..), alone);
        assert_ne!(random.rng(&["pod", "b"]).u64(..), alone);
        assert_ne!(random.rng(&["poda", ""]).u64(..), alone);
        assert_ne!(RandomSource::new(8).rng(&["pod", "a"]).u64(..), alone);
    }

    #[test]
    fn a_uid_is_of_version_4() {
        let uid = uid(&mut Rng::with_seed(1));
        let parts: Vec<&str> = uid.split('-').collect();
        assert_eq!(parts.iter().map(|p| p.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
        assert!(parts[2].starts_with('4'));
        assert!(matches!(parts[3].as_bytes()[0], b'8' | b'9' | b'a' | b'b'));
    }
}
