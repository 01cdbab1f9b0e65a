//! Where what a specification names lies on the GPU already.

use crate::Real;
use crate::error::{Error, ensure};
use crate::spec::Spec;

/// Addresses on the GPU of what a specification names. Where there is one, the specification's own slice says how many
/// numbers there are, and is not read; it can be anything of that length.
///
/// Nothing on the GPU is looked at beforehand: a length of more keys than there are counts as all of them, and a
/// negative one as none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OptionsAt {
    /// Of the keys' bias.
    pub key_bias: Option<u64>,
    /// Of the full bias.
    pub bias: Option<u64>,
    /// Of ALiBi's slopes.
    pub alibi: Option<u64>,
    /// Of the bias by distance.
    pub relative: Option<u64>,
    /// Of the keys' lengths: `i64`.
    pub key_lengths: Option<u64>,
    /// Of the segments of queries: `i64`.
    pub q_segments: Option<u64>,
    /// Of the segments of keys: `i64`.
    pub k_segments: Option<u64>,
    /// Of the dense mask: bytes, 0 where a query does not see a key.
    pub dense: Option<u64>,
}

impl OptionsAt {
    /// Refuses an address of what the specification does not name, and one at which no such number stands.
    pub(super) fn check<T: Real>(&self, spec: &Spec<T>) -> Result<(), Error> {
        let (mask, bias, real) = (&spec.mask, &spec.bias, size_of::<T>() as u64);
        let all = [
            ("key_bias", self.key_bias, bias.key.is_some(), real),
            ("bias", self.bias, bias.full.is_some(), real),
            ("alibi_slopes", self.alibi, bias.alibi.is_some(), real),
            ("relative_bias", self.relative, bias.relative.is_some(), real),
            ("key_lengths", self.key_lengths, mask.key_lengths.is_some(), 8),
            ("q_segments", self.q_segments, mask.segments.is_some(), 8),
            ("k_segments", self.k_segments, mask.segments.is_some(), 8),
            ("mask", self.dense, mask.dense.is_some(), 1),
        ];
        for (name, at, is_named, size) in all {
            let Some(at) = at else { continue };
            ensure!(is_named, "{name} has an address on the GPU, but the specification has none");
            ensure!(
                at != 0 && at.is_multiple_of(size),
                "the address of {name}, {at:#x}, is 0 or not a multiple of {size}, the size of a number"
            );
        }
        Ok(())
    }
}
