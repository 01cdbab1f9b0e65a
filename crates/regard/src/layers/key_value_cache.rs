//! The keys and values of what was decoded so far.

use regard_tensor::{Result, Tensor, ensure};

/// Keys and values `[B, Hk, N, D]` that grow as a sequence is decoded. Room is doubled when it
/// runs out, so a step writes only what is new.
///
/// ```
/// use regard::prelude::*;
/// let mut cache = KeyValueCache::default();
/// let new = Tensor::full(&[1, 2, 3, 4], 1.0, DType::F32)?;
/// cache.extend(&new, &new)?;
/// assert_eq!(cache.extend(&new, &new)?.k.shape(), [1, 2, 6, 4]);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct KeyValueCache {
    room: Option<KeyValue>,
    length: usize,
}

/// Keys and their values.
///
/// ```
/// use regard::prelude::*;
/// let (k, v) = (Tensor::zeros(&[1, 2, 3, 4], DType::F32)?, Tensor::zeros(&[1, 2, 3, 5], DType::F32)?);
/// let all = KeyValueCache::default().extend(&k, &v)?;
/// assert_eq!((all.k.shape(), all.v.shape()), (k.shape(), v.shape()));
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct KeyValue {
    /// `[B, Hk, N, Dk]`
    pub k: Tensor,
    /// `[B, Hk, N, Dv]`
    pub v: Tensor,
}

impl KeyValueCache {
    /// How many keys it holds.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let mut cache = KeyValueCache::default();
    /// let three = Tensor::zeros(&[1, 2, 3, 4], DType::F32)?;
    /// cache.extend(&three, &three)?;
    /// assert_eq!(cache.len(), 3);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether it holds none.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let mut cache = KeyValueCache::default();
    /// assert!(cache.is_empty());
    /// let one = Tensor::zeros(&[1, 2, 1, 4], DType::F32)?;
    /// cache.extend(&one, &one)?;
    /// assert!(!cache.is_empty());
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Adds keys and values, and gives all there are. They are taken off the tape: a cache is for
    /// decoding, not for learning.
    ///
    /// What it gives are views of the cache. While one is held, or a clone of the cache, the next call
    /// copies all that the cache has, since the view keeps its numbers; a step then costs as much as
    /// the sequence is long. So drop it before the next step: take what a step needs in a block of its
    /// own, and do not write `all = cache.extend(…)?` in a loop.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let mut cache = KeyValueCache::default();
    /// for step in [1f32, 2.0] {
    ///     let new = Tensor::from_vec(vec![step], &[1, 1, 1, 1])?;
    ///     cache.extend(&new, &new)?;
    /// }
    /// let third = Tensor::from_vec(vec![3f32], &[1, 1, 1, 1])?;
    /// assert_eq!(cache.extend(&third, &third)?.k.to_vec::<f32>()?, [1.0, 2.0, 3.0]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn extend(&mut self, k: &Tensor, v: &Tensor) -> Result<KeyValue> {
        ensure!(
            k.rank() == 4 && v.rank() == 4 && k.shape()[..3] == v.shape()[..3],
            "a cache of [B, H, N, D]: keys {:?} and values {:?}",
            k.shape(),
            v.shape()
        );
        let n = k.shape()[2];
        let needed = self.length.saturating_add(n);
        let capacity = self.room.as_ref().map_or(0, |room| room.k.shape()[2]);
        if needed > capacity {
            let capacity = needed.max(2 * capacity).max(16);
            let grown = |now: Option<&Tensor>, new: &Tensor| -> Result<Tensor> {
                let s = new.shape();
                let grown = Tensor::zeros(&[s[0], s[1], capacity, s[3]], new.dtype())?;
                let mut grown = grown.to_device(new.device())?;
                if let Some(now) = now {
                    grown.write(2, 0, &now.narrow(2, 0, self.length)?)?;
                }
                Ok(grown)
            };
            let now = self.room.as_ref();
            let (k, v) = (grown(now.map(|room| &room.k), k)?, grown(now.map(|room| &room.v), v)?);
            self.room = Some(KeyValue { k, v });
        }
        let Some(room) = &mut self.room else {
            return Ok(KeyValue { k: k.clone(), v: v.clone() });
        };
        room.k.write(2, self.length, &k.detach())?;
        room.v.write(2, self.length, &v.detach())?;
        self.length = needed;
        Ok(KeyValue { k: room.k.narrow(2, 0, needed)?, v: room.v.narrow(2, 0, needed)? })
    }

    /// Keeps and repeats batch items: what a beam does when its hypotheses change places.
    ///
    /// ```
    /// use regard::prelude::*;
    /// let mut cache = KeyValueCache::default();
    /// let new = Tensor::full(&[2, 1, 3, 4], 1.0, DType::F32)?;
    /// cache.extend(&new, &new)?;
    /// cache.reorder(&[1, 1, 0])?;
    /// let more = Tensor::full(&[3, 1, 1, 4], 1.0, DType::F32)?;
    /// assert_eq!(cache.extend(&more, &more)?.k.shape(), [3, 1, 4, 4]);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn reorder(&mut self, items: &[usize]) -> Result<()> {
        if let Some(room) = &mut self.room {
            *room = KeyValue { k: room.k.pick(items)?, v: room.v.pick(items)? };
        }
        Ok(())
    }
}
