//! One GPU: its context, its stream, the kernels that were loaded onto it.

use super::cache::Cache;
use super::compiler::Compiled;
use super::module::Module;
use super::source::Variant;
use super::{compiler, library, refused};
use crate::error::{Error, ensure};
use cudarc::driver::{result, sys};
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

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
#[derive(Clone, Debug, PartialEq, Eq)]
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
    is_own: bool,
    pub(super) capability: (i32, i32),
    pub(super) multiprocessors: usize,
}

/// What all streams of a GPU share.
struct Gpu {
    ordinal: i32,
    handle: sys::CUdevice,
    context: sys::CUcontext,
    cache: Cache,
    modules: Mutex<HashMap<String, Arc<Module>>>,
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
    pub fn new(ordinal: usize) -> Result<Self, Error> {
        library::driver()?;
        let count = result::device::get_count().map_err(|e| refused("to be counted", e))?;
        ensure!(count > 0, "the NVIDIA driver is there, but it sees no GPU");
        ensure!(
            ordinal < count as usize,
            "there is no GPU {ordinal}: the driver sees {count}, counted from 0"
        );
        let handle = result::device::get(ordinal as i32).map_err(|e| refused("to be opened", e))?;
        let capability = capability(handle)?;
        ensure!(
            capability >= OLDEST,
            "GPU {ordinal} has compute capability {}.{}; the kernels need {}.{} or newer",
            capability.0,
            capability.1,
            OLDEST.0,
            OLDEST.1
        );
        // SAFETY: the handle is the driver's own; `Device` gives the context back.
        let context =
            unsafe { result::primary_ctx::retain(handle) }.map_err(|e| refused("a context", e))?;
        // SAFETY: the context was just made.
        unsafe { result::ctx::set_current(context) }.map_err(|e| refused("its context", e))?;
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking)
            .map_err(|e| refused("a stream", e))?;
        let multiprocessors =
            attribute(handle, sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        keep_freed_memory(handle)?;
        Ok(Self {
            device: Arc::new(Device {
                gpu: Arc::new(Gpu {
                    ordinal: ordinal as i32,
                    handle,
                    context,
                    cache: Cache::of_user(),
                    modules: Mutex::new(HashMap::new()),
                }),
                stream,
                is_own: true,
                capability,
                multiprocessors: multiprocessors as usize,
            }),
        })
    }

    /// The same GPU, its work asked of a stream of the caller's: a `CUstream`, or null for the default
    /// one.
    ///
    /// # Safety
    /// The stream is one of this GPU's primary context (as PyTorch's are), and outlives what is returned
    /// here and all clones of it.
    pub unsafe fn on_stream(&self, stream: *mut c_void) -> Self {
        let device = Device {
            gpu: self.device.gpu.clone(),
            stream: stream.cast(),
            is_own: false,
            capability: self.device.capability,
            multiprocessors: self.device.multiprocessors,
        };
        Self { device: Arc::new(device) }
    }

    /// What is known of this GPU.
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
    /// Makes this GPU the calling thread's.
    pub(super) fn enter(&self) -> Result<(), Error> {
        // SAFETY: the context lives as long as this.
        unsafe { result::ctx::set_current(self.gpu.context) }.map_err(|e| refused("its context", e))
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

    /// `sm_90a`, `sm_80`, …: Hopper's and later own instructions included.
    pub(super) fn architecture(&self) -> String {
        let (major, minor) = self.capability;
        format!("sm_{major}{minor}{}", if major >= 9 { "a" } else { "" })
    }

    /// The kernels of a variant: loaded before, kept on disk, or compiled now. Where they are kept, the
    /// compiler is not even opened.
    pub(super) fn module(&self, variant: &Variant) -> Result<Arc<Module>, Error> {
        let text = variant.text();
        let mut modules = self.gpu.modules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(module) = modules.get(&text) {
            return Ok(module.clone());
        }
        let load = |cubin: &[u8]| Module::load(cubin);
        let compile = |text: &str| compiler::compile_for(&self.architecture(), text);
        let module = kept_or_made(&self.gpu.cache, &self.architecture(), &text, load, compile)?;
        let module = Arc::new(module);
        modules.insert(text, module.clone());
        Ok(module)
    }
}

/// What `load` makes of a text's machine code: as it is kept, or compiled and kept now. A kept entry that
/// does not load is compiled again.
pub(super) fn kept_or_made<M>(
    cache: &Cache,
    architecture: &str,
    text: &str,
    load: impl Fn(&[u8]) -> Result<M, Error>,
    compile: impl Fn(&str) -> Result<Compiled, Error>,
) -> Result<M, Error> {
    let options = compiler::options(architecture).join(" ");
    let key = [text, &options];
    if let Some(module) = cache.get(&key).and_then(|cubin| load(&cubin).ok()) {
        return Ok(module);
    }
    let compiled = compile(text)?;
    cache.put(&key, &compiled.cubin);
    load(&compiled.cubin)
}

impl Drop for Device {
    fn drop(&mut self) {
        if self.is_own {
            // SAFETY: nobody uses the stream any more; the context lives as long as this.
            unsafe {
                let _ = result::ctx::set_current(self.gpu.context);
                let _ = result::stream::destroy(self.stream);
            }
        }
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        // SAFETY: nobody uses the modules, nor, through this, the context any more.
        unsafe {
            let _ = result::ctx::set_current(self.context);
            self.modules.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
            let _ = result::primary_ctx::release(self.handle);
        }
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
