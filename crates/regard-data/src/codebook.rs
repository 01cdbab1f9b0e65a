//! A codebook: pictures as numbers of patches, each the nearest of those that were learned.

use crate::{Error, Result};
use rayon::prelude::*;
use regard::tensor::Random;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// Patches that codes are learned from, at most.
const LEARNED_FROM: usize = 20_000;
/// How often k-means moves its codes.
const ROUNDS: usize = 10;

/// Patches that pictures are put together from.
///
/// ```
/// use regard_data::Codebook;
/// let pictures = [vec![0, 0, 9, 9, 0, 0, 9, 9], vec![5; 8]];
/// let codebook = Codebook::learn(&pictures, [1, 2, 4], 2, 8)?;
/// let codes = codebook.encode(&pictures[0])?;
/// assert_eq!((codebook.len(), codes.len()), (3, 2));
/// assert_eq!(codebook.decode(&codes)?, pictures[0]);
/// # Ok::<(), regard_data::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Codebook {
    /// Channels, height and width of the pictures.
    size: [usize; 3],
    /// Pixels across and down of a patch.
    patch: usize,
    /// Each channels × patch × patch.
    codes: Vec<Vec<u8>>,
}

impl Codebook {
    /// Learns at most so many codes from pictures of `[channels, height, width]`: the patches themselves
    /// where there are no more, else those that k-means finds. Refuses pictures of another size, and a
    /// patch that does not divide it.
    pub fn learn(
        pictures: &[Vec<u8>],
        size: [usize; 3],
        patch: usize,
        most: usize,
    ) -> Result<Self> {
        let [_, height, width] = size;
        if patch == 0 || !height.is_multiple_of(patch) || !width.is_multiple_of(patch) {
            return Err(Error::invalid(format!(
                "patches of {patch} pixels do not fill {height}×{width}"
            )));
        }
        let mut book = Self { size, patch, codes: Vec::new() };
        let mut counts: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
        for picture in pictures {
            for one in book.patches(picture)? {
                *counts.entry(one).or_default() += 1;
            }
        }
        book.codes = match counts.len() <= most {
            true => counts.into_keys().collect(),
            false => k_means(counts, most),
        };
        Ok(book)
    }

    /// How many codes there are.
    pub fn len(&self) -> usize {
        self.codes.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    /// A name for each code: its values.
    pub fn names(&self) -> Vec<String> {
        self.codes.iter().map(|code| format!("{code:?}")).collect()
    }

    /// Patches across and down.
    pub fn grid(&self) -> [usize; 2] {
        let [_, height, width] = self.size;
        [width / self.patch, height / self.patch]
    }

    /// A picture as the code of each patch, row by row. Refuses a picture of another size.
    pub fn encode(&self, picture: &[u8]) -> Result<Vec<usize>> {
        Ok(self.encode_all(std::slice::from_ref(&picture))?.remove(0))
    }

    /// As [`encode`](Self::encode), of many.
    pub fn encode_all<P: AsRef<[u8]> + Sync>(&self, pictures: &[P]) -> Result<Vec<Vec<usize>>> {
        let known: HashMap<&[u8], usize> =
            self.codes.iter().enumerate().map(|(at, code)| (&code[..], at)).collect();
        let code = |patch: Vec<u8>| match known.get(&patch[..]) {
            Some(&at) => at,
            None => nearest(&self.codes, &patch),
        };
        let encode = |picture: &P| {
            let patches = self.patches(picture.as_ref())?;
            Ok(patches.into_iter().map(code).collect())
        };
        pictures.par_iter().map(encode).collect()
    }

    /// The picture of these codes. Refuses a code that there is not, and too few or too many.
    pub fn decode(&self, codes: &[usize]) -> Result<Vec<u8>> {
        let [across, down] = self.grid();
        let wrong = codes.iter().any(|&code| code >= self.len());
        if codes.len() != across * down || wrong {
            return Err(Error::invalid(format!(
                "{} codes, the largest {:?}, for {} patches out of {} codes",
                codes.len(),
                codes.iter().max(),
                across * down,
                self.len()
            )));
        }
        let mut picture = vec![0; self.size.iter().product()];
        for (at, &code) in codes.iter().enumerate() {
            for (place, &value) in self.places(at).zip(&self.codes[code]) {
                picture[place] = value;
            }
        }
        Ok(picture)
    }

    fn patches(&self, picture: &[u8]) -> Result<Vec<Vec<u8>>> {
        let [across, down] = self.grid();
        if picture.len() != self.size.iter().product::<usize>() {
            return Err(Error::invalid(format!(
                "a picture of {} values, not of {:?}",
                picture.len(),
                self.size
            )));
        }
        let patch = |at: usize| self.places(at).map(|place| picture[place]).collect();
        Ok((0..across * down).map(patch).collect())
    }

    /// Where the values of a patch lie in a picture.
    fn places(&self, at: usize) -> impl Iterator<Item = usize> + use<> {
        let ([channels, height, width], patch) = (self.size, self.patch);
        let across = width / patch;
        let (left, top) = (at % across * patch, at / across * patch);
        (0..channels).flat_map(move |channel| {
            (0..patch * patch).map(move |within| {
                let (x, y) = (left + within % patch, top + within / patch);
                (channel * height + y) * width + x
            })
        })
    }
}

/// The code with the least squared difference; among equals the first.
fn nearest(codes: &[Vec<u8>], patch: &[u8]) -> usize {
    let distance = |code: &Vec<u8>| -> u64 {
        code.iter().zip(patch).map(|(a, b)| u64::from(a.abs_diff(*b)).pow(2)).sum()
    };
    let all = codes.iter().map(distance).enumerate();
    all.min_by_key(|&(at, distance)| (distance, at)).map_or(0, |(at, _)| at)
}

/// Codes by k-means over patches with how often each occurs (Lloyd's algorithm), rounded.
fn k_means(counts: BTreeMap<Vec<u8>, usize>, most: usize) -> Vec<Vec<u8>> {
    let random = Random::named(1, "codebook");
    let all: Vec<(Vec<u8>, usize)> = counts.into_iter().collect();
    let order = random.order(all.len());
    let some: Vec<&(Vec<u8>, usize)> =
        order.iter().take(LEARNED_FROM.max(most)).map(|&at| &all[at]).collect();
    let mut codes: Vec<Vec<u8>> = some.iter().take(most).map(|(patch, _)| patch.clone()).collect();
    for _ in 0..ROUNDS {
        let belongs: Vec<usize> =
            some.par_iter().map(|(patch, _)| nearest(&codes, patch)).collect();
        let mut sums = vec![(vec![0.0; codes[0].len()], 0.0); codes.len()];
        for ((patch, count), &at) in some.iter().zip(&belongs) {
            let (sum, weight) = &mut sums[at];
            let count = *count as f64;
            sum.iter_mut().zip(patch).for_each(|(sum, &value)| *sum += count * f64::from(value));
            *weight += count;
        }
        for (code, (sum, weight)) in codes.iter_mut().zip(sums) {
            if weight > 0.0 {
                *code = sum.iter().map(|sum| (sum / weight).round() as u8).collect();
            }
        }
    }
    codes.sort_unstable();
    codes.dedup();
    codes
}
