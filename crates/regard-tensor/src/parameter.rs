//! What training changes: named tensors, each with a place where gradients end.

#[cfg(feature = "files")]
use crate::file;
use crate::tape::Node;
use crate::{DType, Device, Init, LoadReport, Random, Result, Tensor, ensure};
use std::collections::{BTreeMap, BTreeSet};
#[cfg(feature = "files")]
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock, RwLockWriteGuard};

/// What a renaming came to, before any number is read.
#[derive(Default)]
struct Renamed {
    report: LoadReport,
    /// By the parameters' names, those of the tensors.
    given: BTreeMap<String, String>,
}

/// A tensor that training changes. Clones are the same parameter: that is how weights are tied.
///
/// ```
/// use regard_tensor::{Parameter, Tensor};
/// let w = Parameter::new("w", Tensor::from_vec(vec![1f32, 2.0], &[2])?)?;
/// let loss = w.tensor().square()?.sum_all()?;
/// assert_eq!(loss.backward()?.get(&w).unwrap().to_vec::<f32>()?, [2.0, 4.0]);
/// # Ok::<(), regard_tensor::Error>(())
/// ```
#[derive(Clone)]
pub struct Parameter {
    inner: Arc<Inner>,
}

struct Inner {
    name: String,
    leaf: Arc<Node>,
    value: RwLock<Tensor>,
}

impl Parameter {
    /// A parameter with its first value: f32, f64, bf16 or f16. Refuses whole numbers and bools.
    /// An [`Optimizer`](crate::Optimizer) keeps one of 16 bits in f32 beside it.
    ///
    /// ```
    /// use regard_tensor::{Parameter, Tensor};
    /// let error = Parameter::new("w", Tensor::scalar(1i64)?).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "parameter \"w\" is i64; a parameter is f32, f64, bf16 or f16"
    /// );
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn new(name: impl Into<String>, value: Tensor) -> Result<Self> {
        let name = name.into();
        ensure!(
            value.dtype().is_differentiable(),
            "parameter {name:?} is {}; a parameter is f32, f64, bf16 or f16",
            value.dtype()
        );
        Self::of(name, aligned(&value)?)
    }

    fn of(name: String, mut value: Tensor) -> Result<Self> {
        let leaf = Node::leaf("parameter", Some(&name), &value);
        value.node = Some(leaf.clone());
        Ok(Self { inner: Arc::new(Inner { name, leaf, value: RwLock::new(value) }) })
    }

    /// Its full name, with dots between the parts.
    ///
    /// ```
    /// use regard_tensor::{DType, Init, Parameters};
    /// let layer = Parameters::new(DType::F32, 1).at("encoder").at(0);
    /// assert_eq!(layer.parameter("weight", &[2], Init::Zeros)?.name(), "encoder.0.weight");
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Its value now, on the tape.
    ///
    /// ```
    /// use regard_tensor::{Parameter, Tensor};
    /// let w = Parameter::new("w", Tensor::scalar(2f32)?)?;
    /// assert_eq!(w.tensor().item()?, 2.0);
    /// assert!(w.tensor().has_gradient());
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn tensor(&self) -> Tensor {
        self.inner.value.read().unwrap_or_else(|e| e.into_inner()).clone()
    }

    /// Another value of the same shape and type; it goes where the parameter lies.
    /// Refuses another shape or type.
    ///
    /// ```
    /// use regard_tensor::{Parameter, Tensor};
    /// let w = Parameter::new("w", Tensor::scalar(1f32)?)?;
    /// w.set(&Tensor::scalar(5f32)?)?;
    /// assert_eq!(w.tensor().item()?, 5.0);
    /// assert!(w.set(&Tensor::from_vec(vec![1f32], &[1])?).is_err());
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn set(&self, value: &Tensor) -> Result<()> {
        let mut now = self.lock();
        ensure!(
            value.dims() == now.dims() && value.dtype() == now.dtype(),
            "parameter {:?} is {} {:?}, the new value {} {:?}",
            self.name(),
            now.dtype(),
            now.shape(),
            value.dtype(),
            value.shape()
        );
        let device = now.device();
        self.place(&mut now, value, device)
    }

    /// Puts a value in the place of the one there is, on a device.
    fn place(&self, now: &mut Tensor, value: &Tensor, device: Device) -> Result<()> {
        let mut value = aligned(&value.detach().to_device(device)?)?;
        value.node = Some(self.inner.leaf.on(device));
        *now = value;
        Ok(())
    }

    /// A tensor as this parameter's value: where it lies and of its type. Refuses another shape, whole numbers, and
    /// a number beyond its type.
    fn fitting(&self, value: &Tensor) -> Result<Tensor> {
        let now = self.tensor();
        ensure!(
            now.shape() == value.shape(),
            "parameter {:?} has shape {:?}, the one given {:?}",
            self.name(),
            now.shape(),
            value.shape()
        );
        ensure!(
            value.dtype().is_differentiable(),
            "parameter {:?} is {}, the tensor given {}; whole numbers are not converted",
            self.name(),
            now.dtype(),
            value.dtype()
        );
        let value = value.detach();
        let beyond =
            |error: crate::Error| error.within(format_args!("parameter {:?}", self.name()));
        value.check_range(now.dtype()).map_err(beyond)?;
        value.to_device(now.device())?.to_dtype(now.dtype())
    }

    pub(crate) fn key(&self) -> u64 {
        self.inner.leaf.id()
    }

    /// The value, locked, to be changed in place.
    pub(crate) fn lock(&self) -> RwLockWriteGuard<'_, Tensor> {
        self.inner.value.write().unwrap_or_else(|e| e.into_inner())
    }
}

/// A value off the tape, contiguous, and from a cache line on, as no vector promises: a parameter
/// is read at every step.
fn aligned(value: &Tensor) -> Result<Tensor> {
    let value = value.detach();
    if value.is_aligned() {
        return value.contiguous();
    }
    value.backend().copy(&value)
}

impl std::fmt::Debug for Parameter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Parameter {:?} {:?}", self.name(), self.tensor().shape())
    }
}

/// All parameters of a model, by name; modules take theirs from it as they are built.
///
/// A `Parameters` stands at a place in the tree of names; [`Parameters::at`] goes down into it,
/// and all of them share what they hold.
///
/// ```
/// use regard_tensor::{DType, Init, Parameters};
/// let parameters = Parameters::new(DType::F32, 1);
/// let encoder = parameters.at("encoder");
/// let w = encoder.parameter("weight", &[3, 2], Init::Glorot)?;
/// assert_eq!(w.name(), "encoder.weight");
/// assert_eq!(parameters.all().len(), 1);
/// assert!(encoder.parameter("weight", &[3, 2], Init::Zeros).is_err());
/// # Ok::<(), regard_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Parameters {
    all: Arc<Mutex<BTreeMap<String, Parameter>>>,
    /// How many numbers they hold together.
    numel: Arc<AtomicUsize>,
    /// Whether they are only counted, and take no memory.
    counting: bool,
    place: String,
    dtype: DType,
    seed: u64,
}

/// How many numbers the parameters of a model may hold.
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// From now on no [`Parameters`] of this process hold more numbers than this: a model that would
/// take more memory than there is, is refused while it is built.
///
/// ```
/// use regard_tensor::{DType, Init, Parameters, limit_parameters};
/// limit_parameters(1000);
/// let error = Parameters::new(DType::F32, 1).parameter("w", &[40, 30], Init::Zeros).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "with \"w\" [40, 30] the model has 1200 parameters, more than the 1000 that fit"
/// );
/// ```
pub fn limit_parameters(numel: usize) {
    LIMIT.store(numel, Ordering::Relaxed);
}

impl Parameters {
    /// None yet; values will be of this type and drawn from this seed.
    ///
    /// ```
    /// use regard_tensor::{DType, Init, Parameters};
    /// let draw = |seed| Parameters::new(DType::F64, seed).parameter("w", &[], Init::Normal(1.0));
    /// assert_eq!(draw(1)?.tensor().item()?, draw(1)?.tensor().item()?);
    /// assert_ne!(draw(1)?.tensor().item()?, draw(2)?.tensor().item()?);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn new(dtype: DType, seed: u64) -> Self {
        let (all, numel, place) = (Arc::default(), Arc::default(), String::new());
        Self { all, numel, counting: false, place, dtype, seed }
    }

    /// Refuses a model with more parameters than [`limit_parameters`] allows, before any memory is
    /// asked for: builds it with parameters that are only counted.
    ///
    /// ```
    /// use regard_tensor::{DType, Init, Parameters, limit_parameters};
    /// limit_parameters(1_000_000);
    /// let layers = |n: usize| {
    ///     Parameters::check_fit(DType::F32, |parameters| {
    ///         for layer in 0..n {
    ///             parameters.at(layer).parameter("w", &[100, 100], Init::Glorot)?;
    ///         }
    ///         Ok(())
    ///     })
    /// };
    /// assert!(layers(90).is_ok());
    /// assert!(layers(1_000_000_000).unwrap_err().to_string().contains("more than the 1000000"));
    /// ```
    pub fn check_fit<M>(dtype: DType, build: impl FnOnce(&Self) -> Result<M>) -> Result<()> {
        if LIMIT.load(Ordering::Relaxed) == usize::MAX {
            return Ok(());
        }
        build(&Self { counting: true, ..Self::new(dtype, 0) }).map(drop)
    }

    /// The same parameters, one name further down.
    ///
    /// ```
    /// use regard_tensor::{DType, Init, Parameters};
    /// let parameters = Parameters::new(DType::F32, 1);
    /// parameters.at("encoder").parameter("bias", &[2], Init::Zeros)?;
    /// parameters.at("decoder").parameter("bias", &[3], Init::Zeros)?;
    /// assert_eq!((parameters.numel(), parameters.at("decoder").numel()), (5, 3));
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn at(&self, name: impl std::fmt::Display) -> Self {
        let place = self.full(&name.to_string());
        Self { place, ..self.clone() }
    }

    /// The type of the values.
    ///
    /// ```
    /// use regard_tensor::{DType, Parameters};
    /// assert_eq!(Parameters::new(DType::F64, 1).at("encoder").dtype(), DType::F64);
    /// ```
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    fn full(&self, name: &str) -> String {
        match (&*self.place, name) {
            ("", name) => name.to_string(),
            (place, "") => place.to_string(),
            (place, name) => format!("{place}.{name}"),
        }
    }

    /// A new parameter; refuses a name that is taken or empty. Its first value depends on the seed and its
    /// own name alone, so that adding another changes nothing.
    ///
    /// ```
    /// use regard_tensor::{DType, Init, Parameters};
    /// let parameters = Parameters::new(DType::F32, 1);
    /// assert_eq!(parameters.parameter("w", &[3, 2], Init::Glorot)?.tensor().shape(), [3, 2]);
    /// let error = parameters.parameter("w", &[3, 2], Init::Glorot).unwrap_err();
    /// assert_eq!(error.to_string(), "there is a parameter \"w\" already");
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn parameter(&self, name: &str, shape: &[usize], init: Init) -> Result<Parameter> {
        ensure!(!name.is_empty(), "a parameter of shape {shape:?} without a name");
        let name = self.full(name);
        self.check_limit(&name, shape)?;
        if self.counting {
            let value = Tensor::zeros(&[], self.dtype)?.broadcast_to(shape)?;
            return Parameter::of(name, value);
        }
        let value = init.draw(shape, self.dtype, &Random::named(self.seed, &name))?;
        let parameter = Parameter::new(name.clone(), value)?;
        let mut all = self.all.lock().unwrap_or_else(|e| e.into_inner());
        ensure!(!all.contains_key(&name), "there is a parameter {name:?} already");
        all.insert(name, parameter.clone());
        Ok(parameter)
    }

    /// Counts another one; refuses it before its memory is asked for.
    fn check_limit(&self, name: &str, shape: &[usize]) -> Result<()> {
        // A parameter of a few numbers takes memory too.
        const LEAST: usize = 64;
        let own = shape.iter().fold(1usize, |numel, &size| numel.saturating_mul(size));
        let own = if self.counting { own.max(LEAST) } else { own };
        let all = self.numel.fetch_add(own, Ordering::Relaxed).saturating_add(own);
        let limit = LIMIT.load(Ordering::Relaxed);
        ensure!(
            all <= limit,
            "with {name:?} {shape:?} the model has {all} parameters, more than the {limit} that fit"
        );
        Ok(())
    }

    /// All of them under this place, by name.
    ///
    /// ```
    /// use regard_tensor::{DType, Init, Parameters};
    /// let parameters = Parameters::new(DType::F32, 1);
    /// for name in ["w", "b"] {
    ///     parameters.at("linear").parameter(name, &[2], Init::Zeros)?;
    /// }
    /// let names: Vec<_> = parameters.all().iter().map(|p| p.name().to_string()).collect();
    /// assert_eq!(names, ["linear.b", "linear.w"]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn all(&self) -> Vec<Parameter> {
        let all = self.all.lock().unwrap_or_else(|e| e.into_inner());
        let here = |name: &str| {
            self.place.is_empty()
                || name.strip_prefix(&self.place).is_some_and(|rest| rest.starts_with('.'))
        };
        all.values().filter(|p| here(p.name())).cloned().collect()
    }

    /// How many numbers they hold together.
    ///
    /// ```
    /// use regard_tensor::{DType, Init, Parameters};
    /// let parameters = Parameters::new(DType::F32, 1);
    /// parameters.parameter("w", &[3, 2], Init::Zeros)?;
    /// assert_eq!(parameters.numel(), 6);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn numel(&self) -> usize {
        self.all().iter().map(|p| p.tensor().numel()).sum()
    }

    /// Their values by name, as they are now, and as they stay for whoever holds them: the first change of a
    /// parameter after this copies its numbers, once, and the changes after that one do not. Who asks again
    /// at every step, and holds what it got, pays for a copy at every step.
    ///
    /// ```
    /// use regard_tensor::{DType, Init, Parameters};
    /// let parameters = Parameters::new(DType::F32, 1);
    /// parameters.parameter("w", &[2], Init::Ones)?;
    /// let tensors = parameters.tensors();
    /// assert_eq!(tensors["w"].to_vec::<f32>()?, [1.0, 1.0]);
    /// assert!(!tensors["w"].has_gradient());
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn tensors(&self) -> BTreeMap<String, Tensor> {
        self.all().into_iter().map(|p| (p.name().to_string(), p.tensor().detach())).collect()
    }

    /// Sets all of them from tensors by name. Refuses a missing name, an unknown one and another
    /// shape, each by name, and then changes nothing; a float type is converted.
    ///
    /// ```
    /// use regard_tensor::{DType, Init, Parameters, Tensor};
    /// let parameters = Parameters::new(DType::F32, 1);
    /// let w = parameters.parameter("w", &[2], Init::Zeros)?;
    /// parameters.set(&[("w".to_string(), Tensor::from_vec(vec![1f64, 2.0], &[2])?)].into())?;
    /// assert_eq!(w.tensor().to_vec::<f32>()?, [1.0, 2.0]);
    /// let error = parameters.set(&Default::default()).unwrap_err();
    /// assert_eq!(error.to_string(), "parameter \"w\" is missing");
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn set(&self, tensors: &BTreeMap<String, Tensor>) -> Result<()> {
        let all = self.all();
        for name in tensors.keys() {
            ensure!(all.iter().any(|p| p.name() == name), "the model has no parameter {name:?}");
        }
        let mut new = Vec::new();
        for parameter in &all {
            let Some(value) = tensors.get(parameter.name()) else {
                ensure!(false, "parameter {:?} is missing", parameter.name());
                continue;
            };
            new.push(parameter.fitting(value)?);
        }
        for (parameter, value) in all.iter().zip(&new) {
            parameter.set(value)?;
        }
        Ok(())
    }

    /// Moves every parameter to a device, where what is computed from them then lies too: inputs and other constants
    /// follow what they meet. Make optimizers after this.
    /// Refuses a device that is not there.
    ///
    /// ```
    /// use regard_tensor::{DType, Device, Init, Parameters};
    /// let parameters = Parameters::new(DType::F32, 1);
    /// let w = parameters.parameter("w", &[2], Init::Ones)?;
    /// parameters.to_device(Device::Cpu)?;
    /// assert_eq!(w.tensor().device(), Device::Cpu);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn to_device(&self, device: Device) -> Result<()> {
        for parameter in self.all() {
            let mut now = parameter.lock();
            let value = now.detach();
            parameter.place(&mut now, &value, device)?;
        }
        Ok(())
    }

    /// Writes them to a safetensors file, whole or not at all.
    /// Refuses a place that cannot be written to.
    ///
    /// ```
    /// use regard_tensor::{DType, Init, Parameters, load};
    /// let folder = tempfile::tempdir().unwrap();
    /// let file = folder.path().join("model.safetensors");
    /// let parameters = Parameters::new(DType::F32, 1);
    /// parameters.parameter("w", &[2], Init::Ones)?;
    /// parameters.save(&file)?;
    /// assert_eq!(load(&file)?.0["w"].to_vec::<f32>()?, [1.0, 1.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    #[cfg(feature = "files")]
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        file::save(path, &self.tensors(), &BTreeMap::new())
    }

    /// Reads them from a safetensors file; see [`Parameters::set`] for what is refused.
    ///
    /// ```
    /// use regard_tensor::{DType, Init, Parameters};
    /// let folder = tempfile::tempdir().unwrap();
    /// let file = folder.path().join("model.safetensors");
    /// let a = Parameters::new(DType::F32, 1);
    /// let w = a.parameter("w", &[2], Init::Normal(1.0))?;
    /// a.save(&file)?;
    /// let b = Parameters::new(DType::F32, 2);
    /// let v = b.parameter("w", &[2], Init::Normal(1.0))?;
    /// b.load(&file)?;
    /// assert_eq!(w.tensor().to_vec::<f32>()?, v.tensor().to_vec::<f32>()?);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    #[cfg(feature = "files")]
    pub fn load(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let (tensors, _) = file::load(path)?;
        self.set(&tensors).map_err(|error| error.within(path.display()))
    }

    /// Sets what there is of them from tensors under other names, and says what came of it. `rename` is
    /// given each name and answers with the parameter's, below this place, or with `None` for a tensor that
    /// is left out on purpose. What has no parameter, and parameters that no tensor was for, are in the
    /// report; [`LoadReport::complete`] refuses both. Refuses another shape and two tensors for one
    /// parameter, each by name, and then changes nothing; a float type is converted.
    ///
    /// ```
    /// use regard_tensor::{DType, Init, Parameters, Tensor};
    /// let parameters = Parameters::new(DType::F32, 1);
    /// let encoder = parameters.at("encoder");
    /// let w = encoder.parameter("weight", &[2], Init::Zeros)?;
    /// encoder.parameter("bias", &[2], Init::Zeros)?;
    /// let tensors = ["bert.gamma", "bert.pooler", "step"].map(|name| (name.to_string(), Tensor::from([1f32, 2.0])));
    /// let report = encoder.set_renamed(&tensors.into(), |name| match name {
    ///     "step" => None,
    ///     _ => name.strip_prefix("bert.").map(|name| name.replace("gamma", "weight")),
    /// })?;
    /// assert_eq!(w.tensor().to_vec::<f32>()?, [1.0, 2.0]);
    /// assert_eq!((&report.loaded[..], &report.left_out[..]), (&["encoder.weight".to_string()][..], &["step".to_string()][..]));
    /// assert_eq!(
    ///     report.complete().unwrap_err().to_string(),
    ///     "nothing was given for parameter \"encoder.bias\"; the model has no place for \"bert.pooler\""
    /// );
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn set_renamed(
        &self,
        tensors: &BTreeMap<String, Tensor>,
        mut rename: impl FnMut(&str) -> Option<String>,
    ) -> Result<LoadReport> {
        let renamed = self.renamed(tensors.keys().cloned(), &mut rename)?;
        self.set_given(renamed, tensors)
    }

    /// Which tensor is for which parameter.
    fn renamed(
        &self,
        names: impl IntoIterator<Item = String>,
        rename: &mut dyn FnMut(&str) -> Option<String>,
    ) -> Result<Renamed> {
        let known: BTreeSet<String> =
            self.all().iter().map(|parameter| parameter.name().to_string()).collect();
        let mut renamed = Renamed::default();
        for name in names {
            let Some(own) = rename(&name) else {
                renamed.report.left_out.push(name);
                continue;
            };
            let own = self.full(&own);
            if !known.contains(&own) {
                renamed.report.unknown.push(name);
                continue;
            }
            if let Some(other) = renamed.given.get(&own) {
                ensure!(false, "{other:?} and {name:?} are both for parameter {own:?}");
            }
            renamed.given.insert(own, name);
        }
        Ok(renamed)
    }

    fn set_given(
        &self,
        renamed: Renamed,
        tensors: &BTreeMap<String, Tensor>,
    ) -> Result<LoadReport> {
        let Renamed { mut report, given } = renamed;
        let all = self.all();
        let mut new = Vec::new();
        for parameter in &all {
            let own = parameter.name().to_string();
            let name = given.get(&own);
            match name.and_then(|name| Some((name, tensors.get(name)?))) {
                Some((name, value)) => {
                    let value = parameter
                        .fitting(value)
                        .map_err(|error| if *name == own { error } else { error.within(name) })?;
                    new.push((parameter, value));
                    report.loaded.push(own);
                }
                None => report.missing.push(own),
            }
        }
        for (parameter, value) in new {
            parameter.set(&value)?;
        }
        Ok(report)
    }

    /// As [`Parameters::set_renamed`], from a safetensors file, of which nothing is read but what is for a
    /// parameter: a tensor that the renaming leaves out may have a type that no tensor stores.
    /// Refuses a file that cannot be read, and what [`Parameters::set_renamed`] refuses.
    ///
    /// ```
    /// use regard_tensor::{DType, Init, Parameters};
    /// let folder = tempfile::tempdir().unwrap();
    /// let file = folder.path().join("model.safetensors");
    /// let a = Parameters::new(DType::F32, 1);
    /// let w = a.at("model").parameter("w", &[2], Init::Normal(1.0))?;
    /// a.save(&file)?;
    /// let b = Parameters::new(DType::F32, 2);
    /// let v = b.parameter("w", &[2], Init::Normal(1.0))?;
    /// b.load_renamed(&file, |name| name.strip_prefix("model.").map(String::from))?.complete()?;
    /// assert_eq!(w.tensor().to_vec::<f32>()?, v.tensor().to_vec::<f32>()?);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    #[cfg(feature = "files")]
    pub fn load_renamed(
        &self,
        path: impl AsRef<Path>,
        mut rename: impl FnMut(&str) -> Option<String>,
    ) -> Result<LoadReport> {
        let path = path.as_ref();
        let mut renamed = Renamed::default();
        let tensors = file::load_chosen(path, |names| {
            renamed = self.renamed(names, &mut rename)?;
            Ok(renamed.given.values().cloned().collect())
        });
        tensors
            .and_then(|tensors| self.set_given(renamed, &tensors))
            .map_err(|error| error.within(path.display()))
    }
}
