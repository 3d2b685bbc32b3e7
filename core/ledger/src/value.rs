use std::hash::{BuildHasher, Hasher, RandomState};

/// Stands for a parameter's or a column's value: equal values have equal hashes within one trace.
///
/// Zero means "no value to compare" (NULL, too long, or of a type that is never a key).
pub type ValueHash = u64;

/// Hashes values with a secret key of this process, so that equal values are known by their hashes.
///
/// All values that are compared need one hasher, or clones of it.
#[derive(Debug, Clone)]
pub struct ValueHasher {
    keys: Keys,
}

#[derive(Debug, Clone)]
enum Keys {
    /// SipHash-1-3, 128 bits.
    Secret(RandomState),
    /// foldhash: whoever sees its hashes may find out the key.
    Local(foldhash::quality::RandomState),
}

impl Default for ValueHasher {
    fn default() -> Self {
        Self::new()
    }
}

impl ValueHasher {
    /// A hasher with a fresh key, for hashes that a trace holds: it tells that two values are equal and not what they are. The
    /// key (SipHash-1-3, 128 bits) is never written anywhere.
    pub fn new() -> Self {
        Self { keys: Keys::Secret(RandomState::new()) }
    }

    /// A hasher with a fresh key, for hashes that stay in this process: a fifth of the work for short values. Where others may
    /// see a hash, [`Self::new`] is the one.
    pub fn of_process() -> Self {
        Self { keys: Keys::Local(foldhash::quality::RandomState::default()) }
    }

    /// The hash of a value in its canonical text form; never zero.
    #[inline]
    pub fn hash(&self, canonical: &[u8]) -> ValueHash {
        match &self.keys {
            Keys::Secret(keys) => keys.hash_one(canonical).max(1),
            Keys::Local(keys) => {
                let mut hasher = keys.build_hasher();
                hasher.write(canonical);
                hasher.finish().max(1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_hash_alike_and_two_hashers_do_not() {
        for make in [ValueHasher::new, ValueHasher::of_process] {
            let (one, other) = (make(), make());
            let values: [&[u8]; 5] = [b"", b"7", b"10001", b"a text of more than sixteen bytes", b"\0"];
            for value in values {
                assert_eq!(one.hash(value), one.clone().hash(value));
                assert_ne!(one.hash(value), 0);
                assert_ne!(one.hash(value), other.hash(value));
            }
            // Results are kept in the low half: it tells values apart, too.
            let mut low: Vec<u32> =
                (0..2_000).map(|number: u32| one.hash(number.to_string().as_bytes()) as u32).collect();
            low.sort_unstable();
            low.dedup();
            assert!(low.len() > 1_990, "{}", low.len());
        }
    }
}
