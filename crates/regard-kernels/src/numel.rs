//! How many numbers sizes stand for, where a caller may say any size.

/// The product of sizes; `usize::MAX`, which no slice has, where an address cannot count it.
pub(crate) fn numel(sizes: &[usize]) -> usize {
    sizes.iter().fold(1, |n, &size| n.saturating_mul(size))
}

/// What the kernels multiply sizes for (bytes, parts, whole blocks) stays countable below this.
pub(crate) const MOST: usize = isize::MAX as usize >> 10;
