//! The tensor: shared storage, a layout, and its place on the tape.

#[cfg(feature = "cuda")]
use crate::backend::cuda;
use crate::backend::{self, Backend};
use crate::buffer::Buffer;
use crate::dtype::scalars;
use crate::layout::{Dims, Layout};
use crate::storage::{Memory, Storage};
use crate::tape::Node;
use crate::{DType, Device, Error, Result, Scalar, ensure};
use std::sync::Arc;

/// Numbers of one type in a shape. Cloning and viewing share the storage; nothing changes it
/// once it is shared.
///
/// ```
/// use regard_tensor::Tensor;
/// let x = Tensor::from_vec(vec![1f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3])?;
/// let y = x.transpose(0, 1)?.matmul(&x)?;
/// assert_eq!(y.shape(), [3, 3]);
/// assert_eq!(y.to_vec::<f32>()?[..3], [17.0, 22.0, 27.0]);
/// # Ok::<(), regard_tensor::Error>(())
/// ```
#[derive(Clone)]
pub struct Tensor {
    storage: Arc<Storage>,
    pub(crate) layout: Layout,
    pub(crate) node: Option<Arc<Node>>,
}

impl Tensor {
    /// From numbers, row by row, which become the tensor's own without a copy; refuses another
    /// count than the shape's. A `u8` is a bool here: other bytes than 0 and 1 are refused, and
    /// [`Tensor::from_ids`] takes them as whole numbers.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// assert_eq!(Tensor::from_vec(vec![1i64, 2, 3, 4], &[2, 2])?.shape(), [2, 2]);
    /// let error = Tensor::from_vec(vec![1i64, 2, 3], &[2, 2]).unwrap_err();
    /// assert_eq!(error.to_string(), "3 numbers do not fill shape [2, 2], which has 4");
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn from_vec<T: Scalar>(data: Vec<T>, shape: &[usize]) -> Result<Self> {
        let layout = filled(data.len(), shape)?;
        check_bools(&data)?;
        Ok(Self::with_buffer(Buffer::given(data), T::DTYPE, layout))
    }

    /// From a copy of numbers, row by row; refuses another count than the shape's.
    ///
    /// ```
    /// let x = regard_tensor::Tensor::from_slice(&[1f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// assert_eq!(x.transpose(0, 1)?.to_vec::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn from_slice<T: Scalar>(data: &[T], shape: &[usize]) -> Result<Self> {
        filled(data.len(), shape)?;
        Self::build(shape, |to: &mut [T]| to.copy_from_slice(data))
    }

    /// Indices, from whole numbers of any type (token ids, classes): `i64`, whichever type they had. Refuses
    /// another count than the shape's, and a number that no `i64` holds.
    ///
    /// ```
    /// use regard_tensor::{DType, Tensor};
    /// let ids = Tensor::from_ids(&[3i32, 1, -100, 2], &[2, 2])?;
    /// assert_eq!((ids.dtype(), ids.to_vec::<i64>()?), (DType::I64, vec![3, 1, -100, 2]));
    /// assert_eq!(Tensor::from_ids(&[7usize], &[1])?.to_vec::<i64>()?, [7]);
    /// let error = Tensor::from_ids(&[1u64, u64::MAX], &[2]).unwrap_err();
    /// assert_eq!(error.to_string(), "from_ids: 18446744073709551615 at place 1 is too large for an i64");
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn from_ids<I>(ids: &[I], shape: &[usize]) -> Result<Self>
    where
        I: Copy + TryInto<i64> + std::fmt::Display,
    {
        let wide = |(at, &id): (usize, &I)| {
            id.try_into().map_err(|_| {
                Error::new(format!("from_ids: {id} at place {at} is too large for an i64"))
            })
        };
        Self::from_vec(ids.iter().enumerate().map(wide).collect::<Result<_>>()?, shape)
    }

    /// From bools, which are stored as the bytes 0 and 1.
    /// Refuses a shape of another number of elements.
    ///
    /// ```
    /// let mask = regard_tensor::Tensor::from_bools(&[true, false], &[2])?;
    /// assert_eq!(mask.to_vec::<u8>()?, [1, 0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn from_bools(data: &[bool], shape: &[usize]) -> Result<Self> {
        Self::from_vec(data.iter().map(|&x| u8::from(x)).collect(), shape)
    }

    /// A tensor without axes.
    /// Refuses only where there is no memory for it.
    ///
    /// ```
    /// assert_eq!(regard_tensor::Tensor::scalar(2f32)?.item()?, 2.0);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn scalar<T: Scalar>(x: T) -> Result<Self> {
        Self::from_slice(&[x], &[])
    }

    /// All 0.
    /// Refuses a shape of more axes or numbers than a tensor has.
    ///
    /// ```
    /// use regard_tensor::{DType, Tensor};
    /// assert_eq!(Tensor::zeros(&[3], DType::I64)?.to_vec::<i64>()?, [0, 0, 0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn zeros(shape: &[usize], dtype: DType) -> Result<Self> {
        let layout = Layout::contiguous(shape)?;
        let buffer = Buffer::zeros(layout.numel(), dtype.size())?;
        Ok(Self::with_buffer(buffer, dtype, layout))
    }

    /// An uninitialized tensor, for a kernel to write by [`Tensor::as_mut_slice`].
    ///
    /// Uninitialized as `torch.empty` is: the memory is valid, but it comes from a pool, and the
    /// numbers are what some other tensor left there. Write all of them before anybody reads one,
    /// and drop the tensor where the kernel that should have written it fails; [`Tensor::try_build`]
    /// does both.
    /// Refuses a shape of more axes or numbers than a tensor has.
    ///
    /// ```
    /// use regard_tensor::{DType, Tensor};
    /// let mut x = Tensor::uninit(&[2], DType::F32)?;
    /// x.as_mut_slice::<f32>()?.fill(3.0);
    /// assert_eq!(x.to_vec::<f32>()?, [3.0, 3.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn uninit(shape: &[usize], dtype: DType) -> Result<Self> {
        let layout = Layout::contiguous(shape)?;
        let buffer = Buffer::uninit(layout.numel(), dtype.size())?;
        Ok(Self::with_buffer(buffer, dtype, layout))
    }

    fn with_buffer(buffer: Buffer, dtype: DType, layout: Layout) -> Self {
        let memory = Memory::Host(buffer);
        Self { storage: Arc::new(Storage { dtype, memory }), layout, node: None }
    }

    /// Row by row in memory that was written for it.
    #[cfg(feature = "cuda")]
    pub(crate) fn of_memory(memory: Memory, dtype: DType, shape: &[usize]) -> Result<Self> {
        let layout = Layout::contiguous(shape)?;
        Ok(Self { storage: Arc::new(Storage { dtype, memory }), layout, node: None })
    }

    /// All the same.
    /// Refuses a number that the type does not hold, and a shape of more axes or numbers than a tensor has.
    ///
    /// ```
    /// use regard_tensor::{DType, Tensor};
    /// assert_eq!(Tensor::full(&[2], 1.5, DType::F32)?.to_vec::<f32>()?, [1.5, 1.5]);
    /// let error = Tensor::full(&[2], 1.5, DType::I64).unwrap_err();
    /// assert_eq!(error.to_string(), "full: i64 does not hold 1.5");
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn full(shape: &[usize], x: f64, dtype: DType) -> Result<Self> {
        check_held("full", x, dtype)?;
        backend::of(Device::Cpu)?.full(&Dims::new(shape)?, x, dtype)
    }

    /// Ones.
    /// Refuses a shape of more axes or numbers than a tensor has.
    ///
    /// ```
    /// use regard_tensor::{DType, Tensor};
    /// assert_eq!(Tensor::ones(&[2], DType::F32)?.to_vec::<f32>()?, [1.0, 1.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn ones(shape: &[usize], dtype: DType) -> Result<Self> {
        Self::full(shape, 1.0, dtype)
    }

    /// Zeros in another tensor's shape and type, where that one lies.
    /// Refuses only where there is no memory for it.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// assert_eq!(Tensor::from([3f32, 4.0]).zeros_like()?.to_vec::<f32>()?, [0.0, 0.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn zeros_like(&self) -> Result<Self> {
        self.full_like(0.0)
    }

    /// Ones in another tensor's shape and type, where that one lies.
    /// Refuses only where there is no memory for it.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// assert_eq!(Tensor::from([3i64, 4]).ones_like()?.to_vec::<i64>()?, [1, 1]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn ones_like(&self) -> Result<Self> {
        self.full_like(1.0)
    }

    /// One number everywhere, in another tensor's shape and type, where that one lies.
    /// Refuses a number that the type does not hold.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// assert_eq!(Tensor::from([3f32, 4.0]).full_like(0.5)?.to_vec::<f32>()?, [0.5, 0.5]);
    /// let error = Tensor::from([3i64, 4]).full_like(0.5).unwrap_err();
    /// assert_eq!(error.to_string(), "full_like: i64 does not hold 0.5");
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn full_like(&self, x: f64) -> Result<Self> {
        check_held("full_like", x, self.dtype())?;
        self.backend().full(self.dims(), x, self.dtype())
    }

    /// The whole numbers from `start` up to and without `end`; none where `end` is not larger. Refuses
    /// a type that does not hold them all exactly.
    ///
    /// ```
    /// use regard_tensor::{DType, Tensor};
    /// assert_eq!(Tensor::arange(2, 5, DType::I64)?.to_vec::<i64>()?, [2, 3, 4]);
    /// let error = Tensor::arange(0, 1000, DType::BF16).unwrap_err();
    /// assert_eq!(error.to_string(), "arange: bf16 does not hold every whole number of 0..1000");
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn arange(start: i64, end: i64, dtype: DType) -> Result<Self> {
        let most: i64 = match dtype {
            DType::BF16 => 1 << 8,
            DType::F16 => 1 << 11,
            DType::F32 => 1 << 24,
            DType::U32 => i64::from(u32::MAX),
            DType::Bool => 1,
            DType::F64 | DType::I64 => 1 << 53,
        };
        let least = if matches!(dtype, DType::U32 | DType::Bool) { 0 } else { -most };
        ensure!(
            start >= end || least <= start && end - 1 <= most,
            "arange: {dtype} does not hold every whole number of {start}..{end}"
        );
        let length = if start < end { end.abs_diff(start) as usize } else { 0 };
        scalars!(dtype, T => Tensor::build(&[length], |to: &mut [T]| {
            for (at, to) in to.iter_mut().enumerate() {
                *to = <T as Scalar>::from_f64((start + at as i64) as f64);
            }
        }))
    }

    /// A new tensor whose numbers are written by `write`, all of them: they are uninitialized
    /// before, see [`Tensor::uninit`]. It is off the tape: an operation puts its result there with [`Tensor::record`].
    /// Refuses a shape of more axes or numbers than a tensor has.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let x = Tensor::build(&[3], |to: &mut [f32]| to.copy_from_slice(&[1.0, 2.0, 3.0]))?;
    /// assert_eq!(x.sum_all()?.item()?, 6.0);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn build<T: Scalar>(shape: &[usize], write: impl FnOnce(&mut [T])) -> Result<Self> {
        Self::try_build(shape, |to| {
            write(to);
            Ok(())
        })
    }

    /// As [`Tensor::build`], with a write that may fail; then there is no tensor.
    ///
    /// ```
    /// use regard_tensor::{Error, Tensor};
    /// let refused = Tensor::try_build(&[3], |_: &mut [f32]| Err(Error::new("there is no sound here")));
    /// assert_eq!(refused.unwrap_err().to_string(), "there is no sound here");
    /// ```
    pub fn try_build<T: Scalar>(
        shape: &[usize],
        write: impl FnOnce(&mut [T]) -> Result<()>,
    ) -> Result<Self> {
        let layout = Layout::contiguous(shape)?;
        let mut buffer = Buffer::uninit(layout.numel(), T::DTYPE.size())?;
        write(&mut buffer.slice_mut()[..layout.numel()])?;
        check_bools(&buffer.slice::<T>()[..layout.numel()])?;
        Ok(Self::with_buffer(buffer, T::DTYPE, layout))
    }

    /// Sizes of the axes.
    ///
    /// ```
    /// let x = regard_tensor::Tensor::from_vec(vec![0f32; 6], &[2, 3])?;
    /// assert_eq!(x.transpose(0, 1)?.shape(), [3, 2]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn shape(&self) -> &[usize] {
        &self.layout.shape
    }

    pub(crate) fn dims(&self) -> &Dims {
        &self.layout.shape
    }

    /// How many axes.
    ///
    /// ```
    /// use regard_tensor::{DType, Tensor};
    /// assert_eq!(Tensor::scalar(1f32)?.rank(), 0);
    /// assert_eq!(Tensor::zeros(&[2, 3, 4], DType::F32)?.rank(), 3);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn rank(&self) -> usize {
        self.layout.shape.len()
    }

    /// The size of an axis, counted from the back where negative.
    /// Refuses an axis that is not there.
    ///
    /// ```
    /// let x = regard_tensor::Tensor::from_vec(vec![0f32; 6], &[2, 3])?;
    /// assert_eq!(x.size(-1)?, 3);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn size(&self, axis: isize) -> Result<usize> {
        Ok(self.shape()[crate::layout::axis("size", axis, self.shape())?])
    }

    /// How many numbers.
    ///
    /// ```
    /// use regard_tensor::{DType, Tensor};
    /// assert_eq!(Tensor::scalar(1f32)?.numel(), 1);
    /// assert_eq!(Tensor::zeros(&[2, 3, 4], DType::F32)?.numel(), 24);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn numel(&self) -> usize {
        self.layout.numel()
    }

    /// The type of the numbers.
    ///
    /// ```
    /// use regard_tensor::{DType, Tensor};
    /// assert_eq!(Tensor::from_vec(vec![1i64], &[1])?.dtype(), DType::I64);
    /// assert_eq!(Tensor::from_bools(&[true], &[1])?.dtype(), DType::Bool);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn dtype(&self) -> DType {
        self.storage.dtype
    }

    /// Where the numbers lie.
    ///
    /// ```
    /// use regard_tensor::{Device, Tensor};
    /// assert_eq!(Tensor::scalar(1f32)?.device(), Device::Cpu);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn device(&self) -> Device {
        self.storage.device()
    }

    /// What computes where this tensor lies.
    pub(crate) fn backend(&self) -> &'static dyn Backend {
        self.storage.backend()
    }

    /// The same numbers on another device; the tensor itself where it lies there already. Refuses a GPU that
    /// is not there, with what is missing.
    ///
    /// ```
    /// use regard_tensor::{Device, Tensor};
    /// let x = Tensor::from([1f32, 2.0]);
    /// assert!(x.to_device(Device::Cpu)?.is_same(&x));
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn to_device(&self, device: Device) -> Result<Tensor> {
        let before = self.device();
        if before == device {
            return Ok(self.clone());
        }
        let here = self.to_host()?.contiguous()?;
        let there = match device {
            #[cfg(feature = "cuda")]
            Device::Cuda(ordinal) => cuda::open(ordinal)?.upload(&here)?,
            #[cfg(not(feature = "cuda"))]
            Device::Cuda(_) => return Err(backend::without_cuda()),
            Device::Cpu => here,
        };
        Ok(there.record("to_device", &[self], move |g, to| to.add(0, g.to_device(before)?)))
    }

    /// A constant in main memory that meets tensors on a GPU is copied there. Any other tensor stays where it is.
    #[doc(hidden)]
    pub fn constant_on(&self, device: Device) -> Result<Tensor> {
        match self.device() == Device::Cpu && !self.has_gradient() {
            true => self.to_device(device),
            false => Ok(self.clone()),
        }
    }

    /// The numbers in main memory, with the strides they have, off the tape.
    pub(crate) fn to_host(&self) -> Result<Tensor> {
        match &self.storage.memory {
            Memory::Host(_) => Ok(self.detach()),
            #[cfg(feature = "cuda")]
            Memory::Cuda(buffer, there) => {
                let (size, offset) = (self.dtype().size(), self.layout.offset);
                let count = self.layout.end() - offset;
                let mut host = Buffer::uninit(count, size)?;
                there.download(buffer, offset * size, &mut host.slice_mut()[..count * size])?;
                Ok(Self::with_buffer(host, self.dtype(), Layout { offset: 0, ..self.layout }))
            }
        }
    }

    /// The storage that the layout points into; refuses another type, by the operation's name.
    pub(crate) fn data<T: Scalar>(&self, op: &str) -> Result<&[T]> {
        ensure!(
            self.dtype() == T::DTYPE,
            "{op}: wants {} numbers, was given {}",
            T::DTYPE,
            self.dtype()
        );
        match &self.storage.memory {
            Memory::Host(buffer) => Ok(buffer.slice()),
            #[cfg(feature = "cuda")]
            Memory::Cuda(..) => Err(cuda::elsewhere(op, self.device())),
        }
    }

    /// The numbers of a contiguous tensor, in order; refuses another type and a tensor that is
    /// not contiguous, with the name of the operation that asked.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let x = Tensor::from_vec(vec![1f32, 2.0], &[2])?;
    /// assert_eq!(x.as_slice::<f32>("example")?, [1.0, 2.0]);
    /// assert!(x.as_slice::<f64>("example").is_err());
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn as_slice<T: Scalar>(&self, op: &str) -> Result<&[T]> {
        ensure!(
            self.layout.is_contiguous(),
            "{op}: the tensor of shape {:?} is not contiguous",
            self.shape()
        );
        Ok(&self.data(op)?[self.layout.offset..][..self.numel()])
    }

    /// The numbers of a contiguous tensor, in order, to be changed in place; refuses another type,
    /// a tensor that is not contiguous, and one whose storage another tensor shares.
    ///
    /// ```
    /// use regard_tensor::{DType, Tensor};
    /// let mut x = Tensor::zeros(&[2], DType::F32)?;
    /// x.as_mut_slice::<f32>()?[1] = 3.0;
    /// assert_eq!(x.to_vec::<f32>()?, [0.0, 3.0]);
    /// let clone = x.clone();
    /// let error = x.as_mut_slice::<f32>().unwrap_err();
    /// assert_eq!(error.to_string(), "as_mut_slice: another tensor shares the storage of f32 [2]");
    /// # drop(clone);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn as_mut_slice<T: Scalar>(&mut self) -> Result<&mut [T]> {
        ensure!(
            self.layout.is_contiguous(),
            "as_mut_slice: the tensor of shape {:?} is not contiguous",
            self.shape()
        );
        ensure!(
            !self.has_gradient(),
            "as_mut_slice: a tensor on the tape cannot be overwritten; detach() it first"
        );
        self.own_slice_mut()
    }

    /// The numbers of a contiguous tensor, whether or not it is on the tape: a parameter's value is.
    pub(crate) fn own_slice_mut<T: Scalar>(&mut self) -> Result<&mut [T]> {
        let (offset, count) = (self.layout.offset, self.numel());
        Ok(&mut self.data_mut("as_mut_slice")?[offset..][..count])
    }

    /// All of the storage, to be changed in place; refuses another type, and storage that another
    /// tensor shares.
    pub(crate) fn data_mut<T: Scalar>(&mut self, op: &str) -> Result<&mut [T]> {
        ensure!(
            self.dtype() == T::DTYPE,
            "{op}: wants {} numbers, was given {}",
            T::DTYPE,
            self.dtype()
        );
        let (dtype, shape) = (self.dtype(), *self.dims());
        #[cfg(feature = "cuda")]
        let device = self.device();
        match Arc::get_mut(&mut self.storage) {
            Some(Storage { memory: Memory::Host(buffer), .. }) => Ok(buffer.slice_mut()),
            #[cfg(feature = "cuda")]
            Some(_) => Err(cuda::elsewhere(op, device)),
            None => Err(Error::new(format!(
                "{op}: another tensor shares the storage of {dtype} {shape:?}"
            ))),
        }
    }

    /// Whether another tensor, a view or a clone, has the same storage: [`Tensor::write`] then copies it first.
    ///
    /// ```
    /// use regard_tensor::{DType, Tensor};
    /// let x = Tensor::zeros(&[4], DType::F32)?;
    /// assert!(!x.is_shared());
    /// let part = x.narrow(0, 1, 2)?;
    /// assert!(x.is_shared() && part.is_shared());
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.storage) > 1
    }

    /// Whether the tensor is contiguous and no other shares its storage, so that it may be written.
    pub(crate) fn is_own(&mut self) -> bool {
        self.layout.is_contiguous() && Arc::get_mut(&mut self.storage).is_some()
    }

    /// A zero without axes, of this type and in this place: what a part without a gradient has.
    pub(crate) fn zero(&self) -> Result<Tensor> {
        self.backend().full(&Dims::new(&[])?, 0.0, self.dtype())
    }

    /// The numbers, row by row; refuses another type.
    ///
    /// ```
    /// let x = regard_tensor::Tensor::from_vec(vec![1f32, 2.0], &[2])?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0]);
    /// let error = x.to_vec::<i64>().unwrap_err();
    /// assert_eq!(error.to_string(), "to_vec: wants i64 numbers, was given f32");
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn to_vec<T: Scalar>(&self) -> Result<Vec<T>> {
        Ok(self.to_host()?.contiguous()?.as_slice("to_vec")?.to_vec())
    }

    /// The bytes of a contiguous tensor in main memory.
    #[cfg(any(feature = "cuda", feature = "files"))]
    pub(crate) fn bytes(&self) -> Result<&[u8]> {
        let buffer = match &self.storage.memory {
            Memory::Host(buffer) => buffer,
            #[cfg(feature = "cuda")]
            Memory::Cuda(..) => return Err(cuda::elsewhere("bytes", self.device())),
        };
        let size = self.dtype().size();
        Ok(&buffer.slice()[self.layout.offset * size..][..self.numel() * size])
    }

    /// From bytes in the machine's order, as a file has them.
    #[cfg(feature = "files")]
    pub(crate) fn from_bytes(bytes: &[u8], shape: &[usize], dtype: DType) -> Result<Self> {
        let layout = Layout::contiguous(shape)?;
        let count = layout.numel() * dtype.size();
        ensure!(bytes.len() == count, "{} bytes do not fill {dtype} {shape:?}", bytes.len());
        let mut buffer = Buffer::uninit(layout.numel(), dtype.size())?;
        buffer.slice_mut()[..count].copy_from_slice(bytes);
        if dtype == DType::Bool {
            check_bools(bytes)?;
        }
        Ok(Self::with_buffer(buffer, dtype, layout))
    }

    /// The GPU that a tensor lies on; none in main memory. With [`Tensor::device_address`], what a kernel of one's
    /// own needs.
    #[doc(hidden)]
    #[cfg(feature = "cuda")]
    pub fn cuda(&self) -> Option<&'static regard_kernels::Cuda> {
        match &self.storage.memory {
            Memory::Cuda(_, there) => Some(&there.cuda),
            Memory::Host(_) => None,
        }
    }

    /// As [`Tensor::uninit`], where this tensor lies.
    #[doc(hidden)]
    pub fn uninit_beside(&self, shape: &[usize], dtype: DType) -> Result<Tensor> {
        self.backend().uninit(&Dims::new(shape)?, dtype)
    }

    /// Where a GPU's tensor begins, as its kernels take it.
    #[doc(hidden)]
    #[cfg(feature = "cuda")]
    pub fn device_address(&self) -> Result<u64> {
        Ok(self.storage_address()? + (self.layout.offset * self.dtype().size()) as u64)
    }

    /// Where the storage of a GPU's tensor begins.
    #[cfg(feature = "cuda")]
    pub(crate) fn storage_address(&self) -> Result<u64> {
        match &self.storage.memory {
            Memory::Cuda(buffer, _) => Ok(buffer.address()),
            Memory::Host(_) => Err(Error::new("the tensor lies in main memory, not on a GPU")),
        }
    }

    /// Whether the storage starts at a cache line: one that came as a vector may not.
    pub(crate) fn is_aligned(&self) -> bool {
        match &self.storage.memory {
            Memory::Host(buffer) => buffer.is_aligned(),
            #[cfg(feature = "cuda")]
            Memory::Cuda(..) => true,
        }
    }

    /// The only number of a tensor that has one.
    /// Refuses a tensor of more or fewer numbers than one.
    ///
    /// ```
    /// use regard_tensor::{DType, Tensor};
    /// assert_eq!(Tensor::full(&[1, 1], 2.5, DType::F32)?.item()?, 2.5);
    /// let error = Tensor::zeros(&[2], DType::F32)?.item().unwrap_err();
    /// assert_eq!(error.to_string(), "item: the tensor of shape [2] is not one number");
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn item(&self) -> Result<f64> {
        ensure!(
            self.numel() == 1,
            "item: the tensor of shape {:?} is not one number",
            self.shape()
        );
        let x = self.to_host()?;
        scalars!(x.dtype(), T => {
            let number = x.data::<T>("item")?[x.layout.offset];
            let (wide, whole) = (number.to_f64(), x.dtype() == DType::I64);
            ensure!(
                !whole || wide < 2f64.powi(63) && number == <T as Scalar>::from_f64(wide),
                "item: an f64 does not hold {number:?}; read it with to_vec"
            );
            Ok(wide)
        })
    }

    /// The same numbers with another layout, and no place on the tape yet.
    pub(crate) fn with_layout(&self, layout: Layout) -> Self {
        debug_assert!(layout.end() * self.dtype().size() <= self.storage.len());
        Self { storage: self.storage.clone(), layout, node: None }
    }

    /// The same numbers off the tape: no gradient flows through.
    ///
    /// ```
    /// let w = regard_tensor::Parameter::new("w", regard_tensor::Tensor::scalar(3f32)?)?;
    /// assert!(w.tensor().has_gradient() && !w.tensor().detach().has_gradient());
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn detach(&self) -> Self {
        self.with_layout(self.layout)
    }

    /// Whether two tensors are one: the same numbers in the same layout at the same place of the
    /// tape. Equal numbers elsewhere do not count.
    ///
    /// ```
    /// let x = regard_tensor::Tensor::scalar(1f32)?;
    /// assert!(x.is_same(&x.clone()) && !x.is_same(&regard_tensor::Tensor::scalar(1f32)?));
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn is_same(&self, other: &Tensor) -> bool {
        let nodes = match (&self.node, &other.node) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, None) => true,
            _ => false,
        };
        nodes && self.layout == other.layout && Arc::ptr_eq(&self.storage, &other.storage)
    }

    /// Whether a gradient flows through it to a parameter.
    ///
    /// ```
    /// use regard_tensor::{Parameter, Tensor};
    /// let (w, x) = (Parameter::new("w", Tensor::scalar(2f32)?)?, Tensor::scalar(3f32)?);
    /// assert!(w.tensor().mul(&x)?.has_gradient() && !x.square()?.has_gradient());
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn has_gradient(&self) -> bool {
        self.node.is_some()
    }

    /// How far apart in memory neighbors along each axis lie, in numbers.
    ///
    /// ```
    /// let x = regard_tensor::Tensor::from_vec(vec![0f32; 6], &[2, 3])?;
    /// assert_eq!(x.transpose(0, 1)?.strides(), [1, 3]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn strides(&self) -> &[usize] {
        &self.layout.strides
    }

    /// The storage from the tensor's first number on, and the stride of each axis in it: how a
    /// kernel reads a view without a copy.
    /// Refuses another type, and a tensor that does not lie in main memory.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let x = Tensor::from_vec(vec![1f32, 2.0, 3.0, 4.0], &[2, 2])?.transpose(0, 1)?;
    /// let (numbers, strides) = x.strided::<f32>()?;
    /// assert_eq!((numbers[0], strides), (1.0, &[1, 2][..]));
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn strided<T: Scalar>(&self) -> Result<(&[T], &[usize])> {
        self.strided_for("strided")
    }

    /// As [`Tensor::strided`], by the name of who asked.
    pub(crate) fn strided_for<T: Scalar>(&self, op: &str) -> Result<(&[T], &[usize])> {
        let (start, end) = (self.layout.offset, self.layout.end());
        Ok((&self.data(op)?[start..end], &self.layout.strides))
    }
}

/// Refuses a number that a type does not hold. A fraction is rounded, as every number that is written into a
/// tensor; none becomes infinite.
pub(crate) fn check_held(op: &str, x: f64, dtype: DType) -> Result<()> {
    let held = scalars!(dtype, T => <T as Scalar>::from_f64(x).to_f64());
    // 2⁶³ itself is no i64, and becomes the largest one.
    let held_whole = held == x && (dtype != DType::I64 || x < 2f64.powi(63));
    ensure!(
        held_whole || dtype.is_differentiable() && (x.is_nan() || held.is_finite()),
        "{op}: {dtype} does not hold {x}"
    );
    Ok(())
}

/// The layout of a shape that so many numbers fill.
/// Refuses bytes that are no bools.
fn check_bools<T: Scalar>(data: &[T]) -> Result<()> {
    if T::DTYPE != DType::Bool {
        return Ok(());
    }
    let bytes: &[u8] = bytemuck::cast_slice(data);
    // All at once is several times as fast as a search for the first, which there seldom is.
    if bytes.iter().fold(0, |all, &x| all | x) > 1 {
        let at = bytes.iter().position(|&x| x > 1).unwrap_or(0);
        ensure!(
            false,
            "the byte {} at place {at} is no bool, which is 0 or 1; from_ids takes whole numbers",
            bytes[at]
        );
    }
    Ok(())
}

fn filled(count: usize, shape: &[usize]) -> Result<Layout> {
    let layout = Layout::contiguous(shape)?;
    ensure!(
        count == layout.numel(),
        "{count} numbers do not fill shape {shape:?}, which has {}",
        layout.numel()
    );
    Ok(layout)
}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tensor {} {:?}", self.dtype(), self.shape())?;
        if self.numel() <= 16 && self.dtype().is_float() {
            let wide = self.detach().to_dtype(DType::F64).and_then(|x| x.to_vec::<f64>());
            if let Ok(numbers) = wide {
                write!(f, " {numbers:?}")?;
            }
        }
        Ok(())
    }
}
