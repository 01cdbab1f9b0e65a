//! One GPU: its context, its stream, the kernels that were loaded onto it.

use super::attention::source::Variant;
use super::cache::Cache;
use super::compiler::Compiled;
use super::module::Module;
use super::step::StepText;
use super::step::product;
use super::{compiler, library, refused};
use crate::error::Error;
use cudarc::driver::{result, sys};
use std::ffi::c_void;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The oldest architecture with everything the kernels use: Ampere.
const OLDEST: (i32, i32) = (8, 0);

/// The operator on one GPU.
///
/// ```no_run
/// use regard_kernels::{Cuda, Forward, Spec, View, ViewMut};
///
/// let cuda = Cuda::new(0)?;
/// let (q, k, v) = (vec![0.1f32; 5 * 8], vec![0.2f32; 7 * 8], vec![0.3f32; 7 * 4]);
/// let mut out = vec![0f32; 5 * 4];
/// cuda.forward(
///     &Spec::scaled_dot(8),
///     View::new(&q, [1, 1, 5, 8])?,
///     View::new(&k, [1, 1, 7, 8])?,
///     View::new(&v, [1, 1, 7, 4])?,
///     Forward::new(ViewMut::new(&mut out, [1, 1, 5, 4])?),
/// )?;
/// # Ok::<(), regard_kernels::Error>(())
/// ```
#[derive(Clone)]
pub struct Cuda {
    pub(super) device: Arc<Device>,
}

/// What is known of a GPU.
///
/// ```no_run
/// let info = regard_kernels::Cuda::new(0)?.info()?;
/// println!("{} with {} multiprocessors", info.name, info.multiprocessors);
/// # Ok::<(), regard_kernels::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CudaInfo {
    /// As its maker calls it.
    pub name: String,
    /// Its compute capability.
    pub capability: (i32, i32),
    /// How many multiprocessors it has.
    pub multiprocessors: usize,
    /// Bytes of its memory.
    pub memory: usize,
    /// The newest CUDA the driver knows, as 1000 · major + 10 · minor.
    pub driver: i32,
    /// The version of NVRTC, or what is missing and how to get it.
    pub nvrtc: Result<(i32, i32), Error>,
}

/// A GPU, and the stream that work goes to.
pub(super) struct Device {
    gpu: Arc<Gpu>,
    pub(super) stream: sys::CUstream,
    /// Whether the stream is this device's, and lives as long.
    pub(super) is_own: bool,
    /// Whose stream it is, where it is neither its own nor a caller's.
    _lender: Option<Arc<Device>>,
    pub(super) capability: (i32, i32),
    /// The capability by which kernels are chosen.
    pub(super) form_capability: (i32, i32),
    pub(super) multiprocessors: usize,
    /// Bytes that a block may have of it, where it asks.
    pub(super) shared_memory: usize,
}

type Slot = Mutex<Option<Arc<Module>>>;

/// What a module is compiled from.
#[derive(PartialEq)]
enum Text {
    Operator(Variant),
    Step(StepText),
}

impl Text {
    fn text(&self) -> String {
        match self {
            Self::Operator(variant) => variant.text(),
            Self::Step(step) => step.text(),
        }
    }
}

/// A context that is the calling thread's until this is dropped; then it is again the one before, which
/// belongs to a framework that computes in this thread too.
pub(super) struct Entered {
    before: sys::CUcontext,
    is_other: bool,
}

impl Entered {
    /// A thread that has no context keeps this one where `is_only`: there is no other GPU that it could mean, and
    /// PyTorch warns of a thread of its own that has none.
    fn of(context: sys::CUcontext, is_only: bool) -> Result<Self, Error> {
        let before = result::ctx::get_current().map_err(|e| refused("its context", e))?;
        let stays = before.is_none() && is_only;
        let before = before.unwrap_or(std::ptr::null_mut());
        if before != context {
            // SAFETY: the context lives as long as whoever asks.
            unsafe { result::ctx::set_current(context) }.map_err(|e| refused("its context", e))?;
        }
        Ok(Self { before, is_other: before != context && !stays })
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if self.is_other {
            // SAFETY: the driver named it; null leaves the thread without one, as it was.
            let _ = unsafe { result::ctx::set_current(self.before) };
        }
    }
}

/// What all streams of a GPU share.
struct Gpu {
    ordinal: i32,
    handle: sys::CUdevice,
    context: sys::CUcontext,
    /// Whether the machine has no other.
    is_only: bool,
    cache: Cache,
    /// Each variant once: some tens, and comparing them takes less than writing one down to look it up. A slot is
    /// locked by whoever fills it, so that one variant is compiled once while calls of the others go on.
    modules: Mutex<Vec<(Arc<Text>, Arc<Slot>)>>,
    /// Opened by the first product; none where the machine lacks it.
    products: OnceLock<Result<Option<product::Library>, Error>>,
}

// SAFETY: contexts, streams and modules may be used from any thread; the driver locks them.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}
// SAFETY: as above.
unsafe impl Send for Gpu {}
// SAFETY: as above.
unsafe impl Sync for Gpu {}

impl Cuda {
    /// The GPU with this number; refuses with what is missing and how to get it.
    ///
    /// ```no_run
    /// use regard_kernels::Cuda;
    /// let gpu = Cuda::new(0)?;
    /// println!("{}", gpu.info()?.name);
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn new(ordinal: usize) -> Result<Self, Error> {
        library::driver()?;
        let count = result::device::get_count().map_err(|e| refused("to be counted", e))?;
        if count <= 0 {
            return Err(Error::device("the NVIDIA driver is there, but it sees no GPU"));
        }
        if ordinal >= count as usize {
            return Err(Error::device(format!(
                "there is no GPU {ordinal}: the driver sees {count}, counted from 0"
            )));
        }
        let handle = result::device::get(ordinal as i32).map_err(|e| refused("to be opened", e))?;
        let capability = capability(handle)?;
        if capability < OLDEST {
            return Err(Error::device(format!(
                "GPU {ordinal} has compute capability {}.{}; the kernels need {}.{} or newer",
                capability.0, capability.1, OLDEST.0, OLDEST.1
            )));
        }
        // SAFETY: the handle is the driver's own; `Device` gives the context back.
        let context =
            unsafe { result::primary_ctx::retain(handle) }.map_err(|e| refused("a context", e))?;
        let entered = Entered::of(context, count == 1)?;
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking)
            .map_err(|e| refused("a stream", e))?;
        let multiprocessors =
            attribute(handle, sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        let shared_memory = attribute(
            handle,
            sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
        )?;
        keep_freed_memory(handle)?;
        drop(entered);
        Ok(Self {
            device: Arc::new(Device {
                gpu: Arc::new(Gpu {
                    ordinal: ordinal as i32,
                    handle,
                    context,
                    is_only: count == 1,
                    cache: Cache::of_user(),
                    modules: Mutex::default(),
                    products: OnceLock::new(),
                }),
                stream,
                is_own: true,
                _lender: None,
                capability,
                form_capability: capability,
                multiprocessors: multiprocessors as usize,
                shared_memory: shared_memory as usize,
            }),
        })
    }

    /// The same GPU, its work asked of a stream of the caller's: a `CUstream`, or null for the default
    /// one.
    ///
    /// ```no_run
    /// let gpu = regard_kernels::Cuda::new(0)?;
    /// // SAFETY: the default stream is always there.
    /// let same = unsafe { gpu.on_stream(std::ptr::null_mut()) };
    /// # let _ = same;
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    ///
    /// # Safety
    /// The stream is one of this GPU's primary context (as PyTorch's are), and outlives what is returned
    /// here and all clones of it.
    pub unsafe fn on_stream(&self, stream: *mut c_void) -> Self {
        self.with(stream.cast(), self.device.form_capability, None)
    }

    /// The same GPU and stream, by the kernels that every GPU since Ampere has: what other GPUs would run can be
    /// tested and measured on this one.
    ///
    /// ```no_run
    /// let everywhere = regard_kernels::Cuda::new(0)?.general();
    /// # let _ = everywhere;
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn general(&self) -> Self {
        self.with(self.device.stream, OLDEST, Some(self.device.clone()))
    }

    fn with(
        &self,
        stream: sys::CUstream,
        form_capability: (i32, i32),
        lender: Option<Arc<Device>>,
    ) -> Self {
        let device = Device {
            gpu: self.device.gpu.clone(),
            stream,
            is_own: false,
            _lender: lender,
            capability: self.device.capability,
            form_capability,
            multiprocessors: self.device.multiprocessors,
            shared_memory: self.device.shared_memory,
        };
        Self { device: Arc::new(device) }
    }

    /// What is known of this GPU.
    /// Refuses where the driver does not answer.
    ///
    /// ```no_run
    /// assert!(regard_kernels::Cuda::new(0)?.info()?.capability >= (8, 0));
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn info(&self) -> Result<CudaInfo, Error> {
        let device = &self.device;
        let name = result::device::get_name(device.gpu.handle)
            .map_err(|e| refused("to say its name", e))?;
        // SAFETY: the handle is the driver's own.
        let memory = unsafe { result::device::total_mem(device.gpu.handle) }
            .map_err(|e| refused("to say its memory", e))?;
        let mut driver = 0;
        // SAFETY: the number outlives the call.
        unsafe { sys::cuDriverGetVersion(&mut driver) }
            .result()
            .map_err(|e| refused("to say its driver's version", e))?;
        Ok(CudaInfo {
            name,
            capability: device.capability,
            multiprocessors: device.multiprocessors,
            memory,
            driver,
            nvrtc: compiler::version(),
        })
    }
}

impl Cuda {
    /// The folder in which compiled kernels are kept, or why they are not.
    /// Refuses where none can be written to.
    ///
    /// ```no_run
    /// println!("kept in {:?}", regard_kernels::Cuda::new(0)?.cache_folder());
    /// # Ok::<(), regard_kernels::Error>(())
    /// ```
    pub fn cache_folder(&self) -> Result<PathBuf, Error> {
        self.device.gpu.cache.folder().map(PathBuf::from)
    }

    /// The most bytes of the GPU's memory that the operator had in use at once, since this was asked
    /// last.
    #[doc(hidden)]
    pub fn peak_bytes(&self) -> Result<usize, Error> {
        let highest = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH;
        let (mut bytes, mut zero) = (0u64, 0u64);
        // SAFETY: the pool is the device's own, and the numbers outlive the calls.
        unsafe {
            let pool = result::device::get_default_mem_pool(self.device.gpu.handle)
                .map_err(|e| refused("its memory pool", e))?;
            result::mem_pool::get_attribute(pool, highest, (&raw mut bytes).cast())
                .and_then(|()| {
                    result::mem_pool::set_attribute(pool, highest, (&raw mut zero).cast())
                })
                .map_err(|e| refused("to say how much memory was used", e))?;
        }
        Ok(bytes as usize)
    }
}

impl std::fmt::Debug for Cuda {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "Cuda({})", self.device.gpu.ordinal)
    }
}

impl Device {
    /// Whether work goes to the same stream of the same GPU.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.gpu, &other.gpu) && self.stream == other.stream
    }

    /// Makes this GPU the calling thread's, as long as what is returned lives: longer than all memory
    /// that is taken meanwhile.
    #[must_use = "the thread has its former context again when this is dropped"]
    pub(super) fn enter(&self) -> Result<Entered, Error> {
        Entered::of(self.gpu.context, self.gpu.is_only)
    }

    /// Whether what is asked of the stream is written down, to be done later and more than once.
    pub(super) fn is_capturing(&self) -> Result<bool, Error> {
        // SAFETY: the stream lives as long as this.
        let status = unsafe { result::stream::is_capturing(self.stream) }
            .map_err(|e| refused("to say whether it is capturing", e))?;
        Ok(status != sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
    }

    /// Waits for everything that was asked of the stream.
    pub(super) fn wait(&self) -> Result<(), Error> {
        // SAFETY: the stream lives as long as this.
        unsafe { result::stream::synchronize(self.stream) }
            .map_err(|e| refused("to finish a kernel", e))
    }

    /// How many milliseconds the stream takes for each of some rounds, after a few that warm up.
    pub(super) fn time(
        &self,
        rounds: usize,
        launch: impl Fn() -> Result<(), Error>,
    ) -> Result<Vec<f32>, Error> {
        let event = || {
            result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT)
                .map_err(|e| refused("an event", e))
        };
        let [before, after] = [event()?, event()?];
        for _ in 0..3 {
            launch()?;
        }
        let mut times = Vec::with_capacity(rounds);
        for _ in 0..rounds {
            // SAFETY: events and stream live until the end of this function.
            unsafe {
                result::event::record(before, self.stream).map_err(|e| refused("an event", e))?;
                launch()?;
                result::event::record(after, self.stream).map_err(|e| refused("an event", e))?;
                self.wait()?;
                let time = result::event::elapsed(before, after);
                times.push(time.map_err(|e| refused("to say a time", e))?);
            }
        }
        for event in [before, after] {
            // SAFETY: nobody uses it any more.
            let _ = unsafe { result::event::destroy(event) };
        }
        Ok(times)
    }

    /// What multiplies matrices, where the machine has it. The GPU is the thread's.
    pub(super) fn products(&self) -> Result<Option<&product::Library>, Error> {
        let opened = self.gpu.products.get_or_init(product::Library::open);
        opened.as_ref().map(Option::as_ref).map_err(Clone::clone)
    }

    /// `sm_90a`, `sm_80`, …: Hopper's and later own instructions included.
    pub(super) fn architecture(&self) -> String {
        let (major, minor) = self.capability;
        format!("sm_{major}{minor}{}", if major >= 9 { "a" } else { "" })
    }

    /// The kernels of a variant: loaded before, kept on disk by the compiler there is, or compiled now.
    /// Where there is no compiler, what any has compiled before will do.
    pub(super) fn module(&self, variant: &Variant) -> Result<Arc<Module>, Error> {
        self.module_of(
            |known| matches!(known, Text::Operator(known) if known == variant),
            || Text::Operator(variant.clone()),
        )
    }

    /// As [`Self::module`], of a training step's kernels.
    pub(super) fn step_module(&self, text: StepText) -> Result<Arc<Module>, Error> {
        self.module_of(|known| *known == Text::Step(text), || Text::Step(text))
    }

    fn module_of(
        &self,
        is_it: impl Fn(&Text) -> bool,
        new: impl FnOnce() -> Text,
    ) -> Result<Arc<Module>, Error> {
        let (text, slot) = {
            let mut modules = self.gpu.modules.lock().unwrap_or_else(PoisonError::into_inner);
            match modules.iter().find(|(known, _)| is_it(known)) {
                Some((known, slot)) => (known.clone(), slot.clone()),
                None => {
                    let (text, slot) = (Arc::new(new()), Arc::<Slot>::default());
                    modules.push((text.clone(), slot.clone()));
                    (text, slot)
                }
            }
        };
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(module) = &*slot {
            return Ok(module.clone());
        }
        let _relaxed = self.is_capturing()?.then(Relaxed::begin);
        let load = |cubin: &[u8]| Module::load(cubin);
        let compile = |text: &str| compiler::compile_for(&self.architecture(), text);
        let version = compiler::version().ok();
        let maker = Maker { architecture: &self.architecture(), version };
        let module = kept_or_made(&self.gpu.cache, maker, &text.text(), load, compile)?;
        Ok(slot.insert(Arc::new(module)).clone())
    }
}

/// Lets a thread load machine code while a stream is captured: loading is no work of the stream's.
struct Relaxed {
    before: sys::CUstreamCaptureMode,
}

impl Relaxed {
    fn begin() -> Self {
        let mut mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the mode outlives the call, which puts the former one in its place. Where it fails, so
        // does loading, in words.
        let _ = unsafe { sys::cuThreadExchangeStreamCaptureMode(&mut mode) };
        Self { before: mode }
    }
}

impl Drop for Relaxed {
    fn drop(&mut self) {
        // SAFETY: as above.
        let _ = unsafe { sys::cuThreadExchangeStreamCaptureMode(&mut self.before) };
    }
}

/// What compiles a text, and for what.
pub(super) struct Maker<'a> {
    pub(super) architecture: &'a str,
    /// The compiler's, where there is one.
    pub(super) version: Option<(i32, i32)>,
}

/// What `load` makes of a text's machine code: as it is kept, or compiled and kept now. A kept entry that
/// does not load is compiled again.
pub(super) fn kept_or_made<M>(
    cache: &Cache,
    Maker { architecture, version }: Maker,
    text: &str,
    load: impl Fn(&[u8]) -> Result<M, Error>,
    compile: impl Fn(&str) -> Result<Compiled, Error>,
) -> Result<M, Error> {
    let options = compiler::options(architecture).join(" ");
    let key = [text, &options];
    if let Some(module) = cache.get(&key, version).and_then(|cubin| load(&cubin).ok()) {
        return Ok(module);
    }
    let compiled = compile(text)?;
    if let Some(version) = version {
        cache.put(&key, version, &compiled.cubin);
    }
    load(&compiled.cubin)
}

impl Drop for Device {
    fn drop(&mut self) {
        if self.is_own {
            let _entered = self.enter();
            // SAFETY: nobody uses the stream any more; the context lives as long as this.
            let _ = unsafe { result::stream::destroy(self.stream) };
        }
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        let entered = Entered::of(self.context, self.is_only);
        self.modules.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
        self.products.take();
        drop(entered);
        // SAFETY: nobody uses, through this, the context any more.
        let _ = unsafe { result::primary_ctx::release(self.handle) };
    }
}

fn attribute(handle: sys::CUdevice, which: sys::CUdevice_attribute) -> Result<i32, Error> {
    // SAFETY: the handle is the driver's own.
    unsafe { result::device::get_attribute(handle, which) }
        .map_err(|e| refused("to say what it has", e))
}

fn capability(handle: sys::CUdevice) -> Result<(i32, i32), Error> {
    use sys::CUdevice_attribute as Of;
    Ok((
        attribute(handle, Of::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        attribute(handle, Of::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
    ))
}

/// Lets the driver keep what was freed for what is asked next, rather than give it back at every
/// synchronization.
fn keep_freed_memory(handle: sys::CUdevice) -> Result<(), Error> {
    let mut all = u64::MAX;
    // SAFETY: the pool is the device's own, and the number outlives the call.
    unsafe {
        let pool = result::device::get_default_mem_pool(handle)
            .map_err(|e| refused("its memory pool", e))?;
        result::mem_pool::set_attribute(
            pool,
            sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
            (&raw mut all).cast(),
        )
        .map_err(|e| refused("to set up its memory pool", e))
    }
}
