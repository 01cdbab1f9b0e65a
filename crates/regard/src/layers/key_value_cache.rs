//! The keys and values of what was decoded so far.

use regard_tensor::{Result, Tensor, ensure};

/// Keys and values `[B, Hk, N, D]` that grow as a sequence is decoded. Room is doubled when it
/// runs out, so a step writes only what is new, also while what the step before gave is held.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::KeyValueCache;
/// let mut cache = KeyValueCache::default();
/// let new = Tensor::full(&[1, 2, 3, 4], 1.0, DType::F32)?;
/// cache.extend(&new, &new)?;
/// assert_eq!(cache.extend(&new, &new)?.k.shape(), [1, 2, 6, 4]);
/// # Ok::<(), regard::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct KeyValueCache {
    /// What holds all.
    room: Option<Room>,
    /// What held all before, to be written next where somebody holds views of the room.
    spare: Option<Room>,
}

/// Keys and values, and how many of them were written.
#[derive(Clone, Debug)]
struct Room {
    k: Tensor,
    v: Tensor,
    length: usize,
}

impl Room {
    /// Zeros, in the shape of keys and values but for how many there is room for.
    fn new(k: &Tensor, v: &Tensor, capacity: usize) -> Result<Self> {
        let zeros = |like: &Tensor| {
            let s = like.shape();
            let zeros = Tensor::zeros(&[s[0], s[1], capacity, s[3]], like.dtype())?;
            zeros.to_device(like.device())
        };
        Ok(Self { k: zeros(k)?, v: zeros(v)?, length: 0 })
    }

    /// Refuses what does not stand beside what it holds.
    fn check(&self, k: &Tensor, v: &Tensor) -> Result<()> {
        for (name, own, new) in [("keys", &self.k, k), ("values", &self.v, v)] {
            let [b, h, _, d] = [0, 1, 2, 3].map(|axis| own.shape()[axis]);
            let fits = [0, 1, 3].iter().all(|&axis| own.shape()[axis] == new.shape()[axis]);
            ensure!(
                fits && own.dtype() == new.dtype(),
                "a cache of {name} {} [{b}, {h}, N, {d}] was given {} {:?}",
                own.dtype(),
                new.dtype(),
                new.shape()
            );
        }
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.k.shape()[2]
    }

    /// Whether it can be written without a copy of it.
    fn is_free(&self) -> bool {
        !self.k.is_shared() && !self.v.is_shared()
    }

    fn push(&mut self, k: &Tensor, v: &Tensor) -> Result<()> {
        self.k.write(2, self.length, &k.detach())?;
        self.v.write(2, self.length, &v.detach())?;
        self.length += k.shape()[2];
        Ok(())
    }

    /// Those from a place on.
    fn from(&self, start: usize) -> Result<KeyValue> {
        let part = |x: &Tensor| x.narrow(2, start, self.length - start);
        Ok(KeyValue { k: part(&self.k)?, v: part(&self.v)? })
    }

    /// Writes what another has more.
    fn catch_up(&mut self, other: &Self) -> Result<()> {
        let rest = other.from(self.length)?;
        self.push(&rest.k, &rest.v)
    }
}

/// Keys and their values.
///
/// ```
/// use regard::prelude::*;
/// use regard::layers::KeyValueCache;
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
    /// use regard::layers::KeyValueCache;
    /// let mut cache = KeyValueCache::default();
    /// let three = Tensor::zeros(&[1, 2, 3, 4], DType::F32)?;
    /// cache.extend(&three, &three)?;
    /// assert_eq!(cache.len(), 3);
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        self.room.as_ref().map_or(0, |room| room.length)
    }

    /// Whether it holds none.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::KeyValueCache;
    /// let mut cache = KeyValueCache::default();
    /// assert!(cache.is_empty());
    /// let one = Tensor::zeros(&[1, 2, 1, 4], DType::F32)?;
    /// cache.extend(&one, &one)?;
    /// assert!(!cache.is_empty());
    /// # Ok::<(), regard::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds keys and values, and gives all there are. They are taken off the tape: a cache is for
    /// decoding, not for learning.
    ///
    /// What it gives are views of the cache, and stay as they are. While one is held the next call writes
    /// elsewhere: into the place of the step before that, where nobody holds it any more, so a loop may say
    /// `all = cache.extend(…)?` and a step still writes only what is new, in twice the memory. Where the last
    /// two are held, or a clone of the cache, the call copies all there is.
    ///
    /// Refuses keys and values that are not `[B, Hk, N, D]`, or differ in B, Hk or N, or do not fit the ones
    /// it holds.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::KeyValueCache;
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
        if let Some(room) = &self.room {
            room.check(k, v)?;
        }
        let needed = self.len().saturating_add(k.shape()[2]);
        if needed == 0 {
            return Ok(KeyValue { k: k.clone(), v: v.clone() });
        }
        if !self.room.as_ref().is_some_and(|room| needed <= room.capacity() && room.is_free()) {
            self.change_room(k, v, needed)?;
        }
        let Some(room) = &mut self.room else { unreachable!("change_room() leaves one") };
        room.push(k, v)?;
        room.from(0)
    }

    /// Goes on in a room that is written without a copy of it: the one before, where that is free.
    fn change_room(&mut self, k: &Tensor, v: &Tensor, needed: usize) -> Result<()> {
        let capacity = self.room.as_ref().map_or(0, Room::capacity);
        let spare = self.spare.take().filter(|spare| needed <= spare.capacity() && spare.is_free());
        let mut next = match spare {
            Some(spare) => spare,
            None if needed <= capacity => Room::new(k, v, capacity)?,
            None => Room::new(k, v, needed.max(2 * capacity).max(16))?,
        };
        if let Some(room) = &self.room {
            next.catch_up(room)?;
        }
        let capacity = next.capacity();
        self.spare = self.room.replace(next).filter(|room| room.capacity() == capacity);
        Ok(())
    }

    /// Keeps and repeats batch items: what a beam does when its hypotheses change places. Refuses an item
    /// that is not there.
    ///
    /// ```
    /// use regard::prelude::*;
    /// use regard::layers::KeyValueCache;
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
            (room.k, room.v) = (room.k.pick(items)?, room.v.pick(items)?);
            self.spare = None;
        }
        Ok(())
    }
}
