//! Which examples of a part are looked at, where it has many.

/// Examples that are looked at.
const MOST: usize = 128;
/// Neighbors that are read together: a part is read again for what nobody remembers.
pub(super) const BLOCK: usize = 8;
/// Blocks that are read at once.
pub(super) const AT_ONCE: usize = 4;

/// The places of at most [`MOST`] examples of so many, in blocks that lie evenly.
pub(super) fn places(count: usize) -> Vec<usize> {
    if count <= MOST {
        return (0..count).collect();
    }
    let blocks = MOST / BLOCK;
    let start = |block: usize| block * (count - BLOCK) / (blocks - 1);
    (0..blocks).flat_map(|block| start(block)..start(block) + BLOCK).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_each_there_once_and_reach_to_the_end() {
        for count in [0, 1, 7, 127, 128, 129, 500, 100_000] {
            let all = places(count);
            assert_eq!(all.len(), count.min(MOST));
            assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "{count}");
            assert_eq!(all.last().copied(), count.checked_sub(1));
        }
    }
}
