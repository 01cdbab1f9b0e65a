//! Data augmentation: changes that leave an image what it is, so that more is learned from it.

use regard::tensor::Random;

/// Shifts and mirrors images at random.
#[derive(Clone, Copy, Debug)]
pub(super) struct Augmentation {
    /// Pixels it is shifted by at most, each way.
    pub(super) shift: usize,
    /// Whether half of the images are seen in a mirror.
    pub(super) flip: bool,
}

impl Augmentation {
    /// Changes an image `[C, height, width]`, by chance; what comes in from outside is black.
    pub(super) fn apply(self, image: &mut [f32], [height, width]: [usize; 2], random: &Random) {
        let far = || random.below(2 * self.shift + 1) as isize - self.shift as isize;
        let (down, right) = if self.shift > 0 { (far(), far()) } else { (0, 0) };
        let mirrored = self.flip && random.below(2) == 1;
        if (down, right, mirrored) == (0, 0, false) {
            return;
        }
        for plane in image.chunks_mut(height * width) {
            let before = plane.to_vec();
            for (at, pixel) in plane.iter_mut().enumerate() {
                let (row, column) = (at / width, at % width);
                let column = if mirrored { width - 1 - column } else { column };
                let from = row.checked_add_signed(-down).zip(column.checked_add_signed(-right));
                let inside = from.filter(|&(row, column)| row < height && column < width);
                *pixel = inside.map_or(0.0, |(row, column)| before[row * width + column]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_shifted_and_mirrored_and_nothing_else() {
        // One bright pixel in the middle of 5 × 5.
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..200 {
            let mut image = vec![0.0; 25];
            image[12] = 1.0;
            let random = Random::new(seed);
            Augmentation { shift: 1, flip: true }.apply(&mut image, [5, 5], &random);
            let bright: Vec<usize> = (0..25).filter(|&at| image[at] == 1.0).collect();
            assert_eq!((bright.len(), image.iter().sum::<f32>()), (1, 1.0));
            seen.insert(bright[0]);
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [6, 7, 8, 11, 12, 13, 16, 17, 18]);
    }

    #[test]
    fn without_changes_an_image_stays_and_no_chance_is_used() {
        let random = Random::new(1);
        let mut image = [0.1, 0.2, 0.3, 0.4];
        Augmentation { shift: 0, flip: false }.apply(&mut image, [2, 2], &random);
        assert_eq!((image, random.state()), ([0.1, 0.2, 0.3, 0.4], (1, 0)));
    }

    #[test]
    fn a_mirror_swaps_left_and_right() {
        let flipped = (0..20).map(|seed| {
            let mut image = [1.0, 2.0];
            Augmentation { shift: 0, flip: true }.apply(&mut image, [1, 2], &Random::new(seed));
            image == [2.0, 1.0]
        });
        let flipped = flipped.filter(|&flipped| flipped).count();
        assert!((5..=15).contains(&flipped), "{flipped}");
    }
}
