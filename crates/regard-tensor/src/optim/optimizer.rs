//! One step along the gradients, for all parameters at once.

use crate::backend::{Clip, Move, Moved};
use crate::{DType, Gradients, Parameter, Parameters, Result, Tensor, ensure};
use std::collections::{BTreeMap, HashSet};

/// How parameters follow their gradients.
///
/// ```
/// use regard_tensor::{DType, Optimizer, Parameters, UpdateRule};
/// let rule = UpdateRule::Sgd { momentum: 0.0, nesterov: true, weight_decay: 0.0 };
/// // a step cannot look ahead along a momentum that there is not
/// assert!(Optimizer::new(&Parameters::new(DType::F32, 1), rule).is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
#[non_exhaustive]
pub enum UpdateRule {
    /// Adam; the decay joins the gradient (Kingma and Ba 2015).
    Adam {
        /// How much of the mean of the gradients is kept, and of the mean of their squares.
        betas: (f64, f64),
        /// Added to the root of the mean of the squares.
        eps: f64,
        /// How strongly parameters are drawn to 0.
        weight_decay: f64,
    },
    /// AdamW; the decay acts on the parameters themselves (Loshchilov and Hutter 2019).
    AdamW {
        /// How much of the mean of the gradients is kept, and of the mean of their squares.
        betas: (f64, f64),
        /// Added to the root of the mean of the squares.
        eps: f64,
        /// How strongly parameters are drawn to 0.
        weight_decay: f64,
    },
    /// Plain descent, with momentum or without.
    Sgd {
        /// How much of the last direction is kept.
        momentum: f64,
        /// Whether the step looks ahead.
        nesterov: bool,
        /// How strongly parameters are drawn to 0.
        weight_decay: f64,
    },
}

impl UpdateRule {
    /// Adam with its authors' numbers and no decay.
    ///
    /// ```
    /// use regard_tensor::UpdateRule;
    /// assert_eq!(UpdateRule::adam(), UpdateRule::Adam { betas: (0.9, 0.999), eps: 1e-8, weight_decay: 0.0 });
    /// ```
    pub fn adam() -> Self {
        Self::Adam { betas: (0.9, 0.999), eps: 1e-8, weight_decay: 0.0 }
    }

    /// AdamW with a decay of 0.01.
    ///
    /// ```
    /// use regard_tensor::UpdateRule;
    /// assert_eq!(UpdateRule::adam_w(), UpdateRule::AdamW { betas: (0.9, 0.999), eps: 1e-8, weight_decay: 0.01 });
    /// ```
    pub fn adam_w() -> Self {
        Self::AdamW { betas: (0.9, 0.999), eps: 1e-8, weight_decay: 0.01 }
    }

    /// Descent with a momentum.
    ///
    /// ```
    /// use regard_tensor::UpdateRule;
    /// assert_eq!(UpdateRule::sgd(0.9), UpdateRule::Sgd { momentum: 0.9, nesterov: false, weight_decay: 0.0 });
    /// ```
    pub fn sgd(momentum: f64) -> Self {
        Self::Sgd { momentum, nesterov: false, weight_decay: 0.0 }
    }

    fn check(&self) -> Result<()> {
        let within = |x: f64| (0.0..1.0).contains(&x);
        let (decay, fine) = match *self {
            Self::Adam { betas, eps, weight_decay } | Self::AdamW { betas, eps, weight_decay } => {
                (weight_decay, within(betas.0) && within(betas.1) && eps >= 0.0)
            }
            Self::Sgd { momentum, nesterov, weight_decay } => {
                (weight_decay, within(momentum) && (momentum > 0.0 || !nesterov))
            }
        };
        ensure!(fine && decay >= 0.0, "the optimizer's numbers do not make sense: {self:?}");
        Ok(())
    }

    /// How many arrays it keeps for each parameter.
    fn moments(&self) -> &'static [&'static str] {
        match self {
            Self::Adam { .. } | Self::AdamW { .. } => &["m", "v"],
            Self::Sgd { momentum, .. } if *momentum > 0.0 => &["momentum"],
            Self::Sgd { .. } => &[],
        }
    }
}

/// By which name a checkpoint has what is moved in a parameter's place.
const MASTER: &str = "master";

/// A gradient as it is moved along.
fn wide(gradient: &Tensor) -> Result<Tensor> {
    if gradient.dtype().is_half() { gradient.to_dtype(DType::F32) } else { Ok(gradient.clone()) }
}

/// Whether numbers have a value once they are rounded; a NaN is as good as another.
fn is_rounded_to(numbers: &Tensor, value: &Tensor) -> Result<bool> {
    let rounded = numbers.to_dtype(value.dtype())?.to_dtype(DType::F32)?.to_vec::<f32>()?;
    let value = value.to_dtype(DType::F32)?.to_vec::<f32>()?;
    Ok(rounded.iter().zip(&value).all(|(a, b)| a == b || a.is_nan() && b.is_nan()))
}

/// The numbers of a parameter of 16 bits, in f32.
#[derive(Debug)]
struct Master {
    numbers: Tensor,
    /// The parameter's value that was rounded from them: another one has been set since.
    rounded: Tensor,
}

impl Master {
    fn of(parameter: &Parameter) -> Result<Option<Self>> {
        let rounded = parameter.tensor().detach();
        if !rounded.dtype().is_half() {
            return Ok(None);
        }
        Ok(Some(Self { numbers: rounded.to_dtype(DType::F32)?, rounded }))
    }

    /// What a checkpoint has; refuses numbers that the parameter was not rounded from.
    fn given(name: &str, numbers: &Tensor, parameter: &Parameter) -> Result<Self> {
        let rounded = parameter.tensor().detach();
        let fits = numbers.shape() == rounded.shape() && numbers.dtype() == DType::F32;
        let numbers = numbers.detach().to_device(rounded.device())?;
        ensure!(
            fits && is_rounded_to(&numbers, &rounded)?,
            "the optimizer's {name:?} is {} {:?}, which its parameter, {} {:?}, is not rounded from; load the \
             parameters of the same checkpoint first",
            numbers.dtype(),
            numbers.shape(),
            rounded.dtype(),
            rounded.shape()
        );
        Ok(Self { numbers, rounded })
    }

    /// Begins anew where the parameter was set to another value.
    fn follow(&mut self, parameter: &Parameter) -> Result<()> {
        let now = parameter.tensor().detach();
        if !now.is_same(&self.rounded) {
            (self.numbers, self.rounded) = (now.to_dtype(DType::F32)?, now);
        }
        Ok(())
    }

    fn round_into(&mut self, parameter: &Parameter) -> Result<()> {
        parameter.set(&self.numbers.to_dtype(self.rounded.dtype())?)?;
        self.rounded = parameter.tensor().detach();
        Ok(())
    }
}

/// Moves parameters along their gradients, and keeps what that needs from step to step.
///
/// ```
/// use regard_tensor::{DType, Init, Optimizer, Parameters, UpdateRule};
/// let parameters = Parameters::new(DType::F32, 1);
/// let w = parameters.parameter("w", &[2], Init::Ones)?;
/// let mut optimizer = Optimizer::new(&parameters, UpdateRule::adam_w())?;
/// for _ in 0..200 {
///     let loss = w.tensor().square()?.sum_all()?;
///     optimizer.step(&loss.backward()?, 0.05)?;
/// }
/// assert!(w.tensor().to_vec::<f32>()?.iter().all(|w| w.abs() < 1e-2));
/// # Ok::<(), regard_tensor::Error>(())
/// ```
#[derive(Debug)]
pub struct Optimizer {
    rule: UpdateRule,
    clip: Option<f64>,
    steps: u64,
    parameters: Vec<Parameter>,
    /// For each parameter, the arrays its rule keeps.
    moments: Vec<Vec<Tensor>>,
    /// For each parameter of 16 bits, what is moved in its place: a step is often smaller than its last bit.
    masters: Vec<Option<Master>>,
    /// The parameters whose gradients it may be given: its own, and those left out by name.
    known: HashSet<u64>,
    /// Whether other parameters' gradients are none of its business.
    partial: bool,
}

impl Optimizer {
    /// For these parameters, from the first step on. Those made later are not among them: make the
    /// model first. Beside a parameter of bf16 or f16 it keeps one of f32, which the steps move and the
    /// parameter is rounded from.
    /// Refuses a rule whose numbers are out of range.
    ///
    /// ```
    /// use regard_tensor::{DType, Optimizer, Parameters, UpdateRule};
    /// let parameters = Parameters::new(DType::F32, 1);
    /// assert_eq!(Optimizer::new(&parameters, UpdateRule::adam())?.steps(), 0);
    /// let error = Optimizer::new(&parameters, UpdateRule::sgd(1.0)).unwrap_err();
    /// assert!(error.to_string().starts_with("the optimizer's numbers do not make sense: Sgd"));
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn new(parameters: &Parameters, rule: UpdateRule) -> Result<Self> {
        rule.check()?;
        let parameters = parameters.all();
        let masters = parameters.iter().map(Master::of).collect::<Result<Vec<_>>>()?;
        let moments = parameters.iter().zip(&masters).map(|(p, master)| {
            let moved = master.as_ref().map_or_else(|| p.tensor().detach(), |m| m.numbers.clone());
            rule.moments().iter().map(|_| moved.zeros_like()).collect()
        });
        let moments = moments.collect::<Result<_>>()?;
        let known = parameters.iter().map(Parameter::key).collect();
        let (clip, steps, partial) = (None, 0, false);
        Ok(Self { rule, clip, steps, parameters, moments, masters, known, partial })
    }

    /// The same without the parameters of some names: these stay as they are, and their gradients
    /// count for no norm.
    ///
    /// ```
    /// use regard_tensor::{DType, Init, Optimizer, Parameters, UpdateRule};
    /// let parameters = Parameters::new(DType::F64, 1);
    /// let [a, b] = ["a", "b"].map(|name| parameters.parameter(name, &[1], Init::Zeros).unwrap());
    /// let mut optimizer = Optimizer::new(&parameters, UpdateRule::sgd(0.0))?.without(&|name| name == "a");
    /// optimizer.step(&a.tensor().add(&b.tensor())?.sum_all()?.backward()?, 1.0)?;
    /// assert_eq!([a, b].map(|x| x.tensor().to_vec::<f64>().unwrap()[0]), [0.0, -1.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn without(mut self, is_left_out: &dyn Fn(&str) -> bool) -> Self {
        let keep: Vec<bool> = self.parameters.iter().map(|p| !is_left_out(p.name())).collect();
        let mut at = keep.iter();
        self.parameters.retain(|_| *at.next().unwrap_or(&true));
        let mut at = keep.iter();
        self.moments.retain(|_| *at.next().unwrap_or(&true));
        let mut at = keep.iter();
        self.masters.retain(|_| *at.next().unwrap_or(&true));
        self
    }

    /// The same for a part of a model: gradients of parameters that it does not hold are ignored,
    /// which [`Optimizer::step`] refuses otherwise. For several optimizers that share one loss.
    ///
    /// ```
    /// use regard_tensor::{DType, Init, Optimizer, Parameters, UpdateRule};
    /// let parameters = Parameters::new(DType::F64, 1);
    /// let (a, b) = (parameters.at("a").parameter("w", &[], Init::Zeros)?, parameters.at("b"));
    /// let b = b.parameter("w", &[], Init::Zeros)?;
    /// let mut optimizer = Optimizer::new(&parameters.at("a"), UpdateRule::sgd(0.0))?;
    /// let gradients = a.tensor().add(&b.tensor())?.backward()?;
    /// assert_eq!(
    ///     optimizer.step(&gradients, 1.0).unwrap_err().to_string(),
    ///     "the gradients hold one of parameter \"b.w\", which this optimizer does not: make the \
    ///      optimizer after all parameters, or call partial() where another one moves it"
    /// );
    /// optimizer.partial().step(&gradients, 1.0)?;
    /// assert_eq!((a.tensor().item()?, b.tensor().item()?), (-1.0, 0.0));
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn partial(mut self) -> Self {
        self.partial = true;
        self
    }

    /// Gradients whose norm, all taken together, is larger than this are scaled down to it.
    /// Refuses a norm that is not above 0.
    ///
    /// ```
    /// use regard_tensor::{DType, Init, Optimizer, Parameters, UpdateRule};
    /// let parameters = Parameters::new(DType::F64, 1);
    /// let w = parameters.parameter("w", &[4], Init::Zeros)?;
    /// let mut optimizer = Optimizer::new(&parameters, UpdateRule::sgd(0.0))?.clipped(1.0)?;
    /// optimizer.step(&w.tensor().sum_all()?.backward()?, 1.0)?;
    /// // the gradient, four times 1, has norm 2
    /// assert!(w.tensor().to_vec::<f64>()?.iter().all(|w| (w + 0.5).abs() < 1e-5));
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn clipped(mut self, norm: f64) -> Result<Self> {
        ensure!(norm > 0.0, "gradients cannot be clipped to a norm of {norm}");
        self.clip = Some(norm);
        Ok(self)
    }

    /// How many steps were made.
    ///
    /// ```
    /// use regard_tensor::{DType, Gradients, Optimizer, Parameters, UpdateRule};
    /// let mut optimizer = Optimizer::new(&Parameters::new(DType::F32, 1), UpdateRule::adam())?;
    /// optimizer.step(&Gradients::default(), 0.1)?;
    /// assert_eq!(optimizer.steps(), 1);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// One step at a rate. A parameter without a gradient stays as it is. Gives the norm of the
    /// gradients before clipping, an f64 where the gradients lie: reading it from a GPU waits for
    /// the step. Refuses the gradient of a parameter that it does not hold, unless
    /// it was left out by name ([`Optimizer::without`]) or the optimizer is [`Optimizer::partial`].
    ///
    /// ```
    /// use regard_tensor::{DType, Init, Optimizer, Parameters, UpdateRule};
    /// let parameters = Parameters::new(DType::F64, 1);
    /// let w = parameters.parameter("w", &[], Init::Constant(3.0))?;
    /// let mut optimizer = Optimizer::new(&parameters, UpdateRule::sgd(0.0))?;
    /// let norm = optimizer.step(&w.tensor().square()?.backward()?, 0.5)?;
    /// assert_eq!((norm.item()?, w.tensor().item()?), (6.0, 0.0));
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn step(&mut self, gradients: &Gradients, rate: f64) -> Result<Tensor> {
        ensure!(rate.is_finite() && rate >= 0.0, "a learning rate of {rate}");
        if let Some(name) = gradients.other_than(&self.known).filter(|_| !self.partial) {
            ensure!(
                false,
                "the gradients hold one of parameter {name:?}, which this optimizer does not: make \
                 the optimizer after all parameters, or call partial() where another one moves it"
            );
        }
        let norm = self.norm_of(gradients)?;
        self.steps += 1;
        let clip = self.clip.map(|most| Clip { most, norm: &norm });
        let by = Move { rule: self.rule, learning_rate: rate, step: self.steps, clip };
        self.step_of(DType::F32, gradients, &by)?;
        self.step_of(DType::F64, gradients, &by)?;
        self.step_of_halves(gradients, &by)?;
        Ok(norm)
    }

    /// The norm of all gradients of these parameters, taken together.
    /// Refuses only where there is no memory for it.
    ///
    /// ```
    /// use regard_tensor::{DType, Init, Optimizer, Parameters, UpdateRule};
    /// let parameters = Parameters::new(DType::F32, 1);
    /// let w = parameters.parameter("w", &[4], Init::Ones)?;
    /// let optimizer = Optimizer::new(&parameters, UpdateRule::adam())?;
    /// assert_eq!(optimizer.norm(&w.tensor().sum_all()?.backward()?)?, 2.0);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn norm(&self, gradients: &Gradients) -> Result<f64> {
        self.norm_of(gradients)?.item()
    }

    fn norm_of(&self, gradients: &Gradients) -> Result<Tensor> {
        let all = self.parameters.iter().filter_map(|p| gradients.get(p)).map(wide);
        let all = all.collect::<Result<Vec<_>>>()?;
        let all: Vec<&Tensor> = all.iter().collect();
        match all.first() {
            Some(first) => first.backend().norm(&all),
            None => Tensor::scalar(0.0),
        }
    }

    /// One step of the parameters of a type that have a gradient.
    fn step_of(&mut self, dtype: DType, gradients: &Gradients, by: &Move) -> Result<()> {
        let mut values = Vec::new();
        let mut parts = Vec::new();
        for (parameter, moments) in self.parameters.iter().zip(&mut self.moments) {
            let Some(gradient) = gradients.get(parameter) else { continue };
            if gradient.dtype() != dtype {
                continue;
            }
            let mut value = parameter.lock();
            crate::ops::own(&mut value)?;
            for moment in moments.iter_mut() {
                crate::ops::own(moment)?;
            }
            values.push(value);
            parts.push((gradient, moments));
        }
        let mut all: Vec<Moved> = values
            .iter_mut()
            .zip(parts)
            .map(|(value, (gradient, moments))| Moved { value, gradient, moments })
            .collect();
        match all.first() {
            Some(first) => first.value.backend().step(&mut all, by),
            None => Ok(()),
        }
    }

    /// One step of the parameters of 16 bits that have a gradient, in f32.
    fn step_of_halves(&mut self, gradients: &Gradients, by: &Move) -> Result<()> {
        let mut parts = Vec::new();
        for ((parameter, master), moments) in
            self.parameters.iter().zip(&mut self.masters).zip(&mut self.moments)
        {
            let (Some(master), Some(gradient)) = (master, gradients.get(parameter)) else {
                continue;
            };
            master.follow(parameter)?;
            crate::ops::own(&mut master.numbers)?;
            moments.iter_mut().try_for_each(crate::ops::own)?;
            parts.push((parameter, master, wide(gradient)?.contiguous()?, moments));
        }
        let moved = parts.iter_mut().map(|(_, master, gradient, moments)| Moved {
            value: &mut master.numbers,
            gradient,
            moments,
        });
        let mut all: Vec<Moved> = moved.collect();
        let Some(first) = all.first() else { return Ok(()) };
        first.value.backend().step(&mut all, by)?;
        parts.iter_mut().try_for_each(|(parameter, master, ..)| master.round_into(parameter))
    }

    /// All it keeps, by name, for a checkpoint: with it and the parameters a run goes on as if it
    /// had never stopped.
    /// Refuses only where there is no memory for it.
    ///
    /// ```
    /// use regard_tensor::{DType, Init, Optimizer, Parameters, UpdateRule};
    /// let parameters = Parameters::new(DType::F32, 1);
    /// parameters.parameter("w", &[2], Init::Ones)?;
    /// let a = Optimizer::new(&parameters, UpdateRule::adam())?;
    /// let mut b = Optimizer::new(&parameters, UpdateRule::adam())?;
    /// b.set_state(&a.state()?)?;
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn state(&self) -> Result<BTreeMap<String, Tensor>> {
        let mut state = BTreeMap::from([("steps".into(), Tensor::scalar(self.steps as i64)?)]);
        for (parameter, moments) in self.parameters.iter().zip(&self.moments) {
            for (name, moment) in self.rule.moments().iter().zip(moments) {
                state.insert(format!("{name}/{}", parameter.name()), moment.clone());
            }
        }
        for (parameter, master) in self.parameters.iter().zip(&self.masters) {
            if let Some(master) = master {
                state.insert(format!("{MASTER}/{}", parameter.name()), master.numbers.clone());
            }
        }
        Ok(state)
    }

    /// What [`Optimizer::state`] gave, of the same rule and parameters; refuses what is missing, is of
    /// no parameter here, or has another shape, by name.
    ///
    /// ```
    /// use regard_tensor::{DType, Init, Optimizer, Parameters, UpdateRule};
    /// let parameters = Parameters::new(DType::F32, 1);
    /// parameters.parameter("w", &[2], Init::Ones)?;
    /// let plain = Optimizer::new(&parameters, UpdateRule::sgd(0.0))?.state()?;
    /// let error = Optimizer::new(&parameters, UpdateRule::adam())?.set_state(&plain).unwrap_err();
    /// assert_eq!(error.to_string(), "the optimizer's \"m/w\" is missing");
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn set_state(&mut self, state: &BTreeMap<String, Tensor>) -> Result<()> {
        let find = |name: &str| {
            let found = state.get(name);
            found.ok_or_else(|| crate::Error::new(format!("the optimizer's {name:?} is missing")))
        };
        let steps = find("steps")?;
        ensure!(steps.dtype() == DType::I64, "the optimizer's steps are {}", steps.dtype());
        let count = steps.item()?;
        ensure!(count >= 0.0, "the optimizer's steps are {count}");
        let mut all = Vec::with_capacity(self.moments.len());
        for (parameter, moments) in self.parameters.iter().zip(&self.moments) {
            let mut new = Vec::with_capacity(moments.len());
            for (name, now) in self.rule.moments().iter().zip(moments) {
                let name = format!("{name}/{}", parameter.name());
                let given = find(&name)?;
                ensure!(
                    given.shape() == now.shape() && given.dtype() == now.dtype(),
                    "the optimizer's {name:?} is {} {:?}, its parameter {} {:?}",
                    given.dtype(),
                    given.shape(),
                    now.dtype(),
                    now.shape()
                );
                new.push(given.detach().to_device(now.device())?);
            }
            all.push(new);
        }
        let mut masters = Vec::with_capacity(self.masters.len());
        for (parameter, now) in self.parameters.iter().zip(&self.masters) {
            let name = format!("{MASTER}/{}", parameter.name());
            let master = now.as_ref().map(|_| Master::given(&name, find(&name)?, parameter));
            masters.push(master.transpose()?);
        }
        let wanted = self.state()?;
        if let Some(name) = state.keys().find(|name| !wanted.contains_key(*name)) {
            ensure!(false, "the state has {name:?}, which this optimizer does not keep");
        }
        self.steps = count as u64;
        (self.moments, self.masters) = (all, masters);
        Ok(())
    }
}
