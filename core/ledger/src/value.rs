use std::hash::{BuildHasher, RandomState};

/// Stands for a parameter's or a column's value: equal values have equal hashes within one trace.
///
/// Zero means "no value to compare" (NULL, too long, or of a type that is never a key).
pub type ValueHash = u64;

/// Hashes values with a secret key of this process, so that a trace tells that two values are equal and not what
/// they are. The key (SipHash-1-3, 128 bits) is never written anywhere.
#[derive(Debug, Clone, Default)]
pub struct ValueHasher {
    keys: RandomState,
}

impl ValueHasher {
    /// A hasher with a fresh key.
    pub fn new() -> Self {
        Self::default()
    }

    /// The hash of a value in its canonical text form; never zero.
    pub fn hash(&self, canonical: &[u8]) -> ValueHash {
        self.keys.hash_one(canonical).max(1)
    }
}
