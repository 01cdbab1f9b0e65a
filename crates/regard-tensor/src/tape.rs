//! The tape: which tensor came from which, and how a gradient goes back.
//!
//! Every operation leaves a [`Node`] that knows its parents and how to turn the gradient of its
//! result into theirs. Nodes are numbered as they are made, so walking back from the highest
//! number meets every node after all of its users: no recursion, and each node once. A node's
//! saved tensors are dropped as soon as it has run.

use crate::backend;
use crate::layout::{Dims, Layout};
use crate::ops;
use crate::{DType, Device, Parameter, Result, Tensor, ensure};
use std::cell::{Cell, RefCell};
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// How gradients `G` of results become those of inputs.
type BackwardOf<G> = Box<dyn FnOnce(G, &mut Parents) -> Result<()> + Send>;

/// An operation's backward.
enum Back {
    One(BackwardOf<Tensor>),
    /// Of an operation with several results: none where nothing depends on one.
    All(BackwardOf<Vec<Option<Tensor>>>),
}

/// A place on the tape.
pub(crate) struct Node {
    id: u64,
    op: &'static str,
    /// A parameter's.
    name: Option<Arc<str>>,
    shape: Dims,
    dtype: DType,
    device: Device,
    parents: Vec<Option<Arc<Node>>>,
    /// Whether the gradient that arrives here is kept.
    retained: bool,
    /// None for a leaf and a result; taken when a gradient has gone through.
    back: Option<Mutex<Option<Back>>>,
    part: Part,
}

/// What a node is of an operation with several results, whose one node is the parent of theirs.
#[derive(Clone, Copy)]
enum Part {
    /// All there is: the node of an operation with one result, or a leaf.
    Alone,
    /// The operation, with as many results.
    Whole(usize),
    /// One of the results, by its place.
    Result(usize),
}

fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Node {
    /// The place of a parameter, which has a name, or of a variable: where gradients end.
    pub(crate) fn leaf(op: &'static str, name: Option<&str>, value: &Tensor) -> Arc<Self> {
        Arc::new(Self {
            id: next_id(),
            op,
            name: name.map(Arc::from),
            retained: true,
            shape: *value.dims(),
            dtype: value.dtype(),
            device: value.device(),
            parents: Vec::new(),
            back: None,
            part: Part::Alone,
        })
    }

    /// The same leaf, of a value that lies on another device.
    pub(crate) fn on(self: &Arc<Self>, device: Device) -> Arc<Self> {
        if self.device == device {
            return self.clone();
        }
        Arc::new(Self {
            id: self.id,
            op: self.op,
            name: self.name.clone(),
            retained: self.retained,
            shape: self.shape,
            dtype: self.dtype,
            device,
            parents: Vec::new(),
            back: None,
            part: Part::Alone,
        })
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// How many results the operation has.
    fn results(&self) -> usize {
        match self.part {
            Part::Whole(count) => count,
            Part::Alone | Part::Result(_) => 1,
        }
    }

    /// What it does with a gradient, which uses up the tape here: none for a leaf. Refuses a second time.
    fn take_back(&self) -> Result<Option<Back>> {
        let Some(back) = &self.back else { return Ok(None) };
        let back = back.lock().unwrap_or_else(|e| e.into_inner()).take();
        back.map(Some).ok_or_else(|| {
            crate::Error::new(format!(
                "backward: a gradient has gone through this {} before; the tape is used up",
                self.op
            ))
        })
    }

    /// What it is, for a refusal.
    fn named(&self) -> String {
        match &self.name {
            Some(name) => format!("{} {name:?}", self.op),
            None => self.op.to_string(),
        }
    }
}

/// What a node holds on to.
type Parts = (Vec<Option<Arc<Node>>>, Option<Back>);

thread_local! {
    /// What is being dropped, while something is.
    static DROPPING: RefCell<Option<Vec<Parts>>> = const { RefCell::new(None) };
    static OFF: Cell<bool> = const { Cell::new(false) };
}

impl Drop for Node {
    /// A long chain is dropped in a loop: node by node would recurse once per operation.
    fn drop(&mut self) {
        let back = self.back.take().and_then(|b| b.into_inner().unwrap_or_else(|e| e.into_inner()));
        let parts = (std::mem::take(&mut self.parents), back);
        if parts.0.is_empty() && parts.1.is_none() {
            return;
        }
        let mut parts = Some(parts);
        let first = DROPPING.try_with(|queue| {
            let mut queue = queue.borrow_mut();
            let first = queue.is_none();
            queue.get_or_insert_default().extend(parts.take());
            first
        });
        if first != Ok(true) {
            return;
        }
        while let Ok(Some(next)) = DROPPING.try_with(|queue| {
            let mut queue = queue.borrow_mut();
            let next = queue.as_mut().and_then(Vec::pop);
            if next.is_none() {
                *queue = None;
            }
            next
        }) {
            drop(next);
        }
    }
}

/// Runs `f` without a tape: its results carry no gradient. This thread alone: what `f` computes on
/// another, which it starts or gives work to, is recorded there unless that says so too.
///
/// ```
/// use regard_tensor::{Parameter, Tensor, without_gradients};
/// let w = Parameter::new("w", Tensor::scalar(3f32)?)?;
/// let y = without_gradients(|| w.tensor().mul(&w.tensor()))?;
/// assert!(!y.has_gradient());
/// let square = || w.tensor().square();
/// let elsewhere = |f: &(dyn Fn() -> regard_tensor::Result<Tensor> + Sync)| {
///     std::thread::scope(|scope| scope.spawn(f).join().unwrap())
/// };
/// assert!(without_gradients(|| elsewhere(&square))?.has_gradient());
/// assert!(!elsewhere(&|| without_gradients(square))?.has_gradient());
/// # Ok::<(), regard_tensor::Error>(())
/// ```
pub fn without_gradients<R>(f: impl FnOnce() -> R) -> R {
    with_tape(true, f)
}

/// Runs `f` with a tape, also within [`without_gradients`] and the backward of an operation: a
/// backward that is itself made of a forward and its gradient.
///
/// ```
/// use regard_tensor::{Parameter, Tensor, with_gradients, without_gradients};
/// let w = Parameter::new("w", Tensor::scalar(3f32)?)?;
/// let y = without_gradients(|| with_gradients(|| w.tensor().square()))?;
/// assert!(y.has_gradient());
/// # Ok::<(), regard_tensor::Error>(())
/// ```
pub fn with_gradients<R>(f: impl FnOnce() -> R) -> R {
    with_tape(false, f)
}

/// Whether what this thread computes now is written to the tape: not within [`without_gradients`], nor in the
/// backward of an operation.
///
/// ```
/// use regard_tensor::{is_recording, with_gradients, without_gradients};
/// assert!(is_recording());
/// assert!(!without_gradients(is_recording));
/// assert!(without_gradients(|| with_gradients(is_recording)));
/// ```
pub fn is_recording() -> bool {
    !OFF.get()
}

fn with_tape<R>(off: bool, f: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            OFF.set(self.0);
        }
    }
    let _restore = Restore(OFF.replace(off));
    f()
}

/// Where an operation's backward sends the gradients of its inputs; see [`Tensor::record`].
///
/// ```
/// use regard_tensor::{Parameter, Parents, Tensor};
/// // the backward of 3 · x + 5 · y, for any x and y
/// fn back(g: Tensor, to: &mut Parents) -> regard_tensor::Result<()> {
///     to.add(0, g.scale(3.0)?)?;
///     to.add(1, g.scale(5.0)?)
/// }
/// let w = Parameter::new("w", Tensor::scalar(2f64)?)?;
/// let sum = Tensor::scalar(16f64)?.record("sum", &[&w.tensor(), &w.tensor()], back);
/// assert_eq!(sum.backward()?.get(&w).unwrap().item()?, 8.0);
/// # Ok::<(), regard_tensor::Error>(())
/// ```
#[allow(missing_debug_implementations)]
pub struct Parents<'a> {
    nodes: &'a [Option<Arc<Node>>],
    gradients: &'a mut HashMap<u64, Tensor>,
    ready: &'a mut BinaryHeap<Ready>,
}

impl Parents<'_> {
    /// Whether the gradient of an input is wanted at all; not where there is no such input.
    ///
    /// ```
    /// use regard_tensor::{Parameter, Tensor};
    /// let (w, x) = (Parameter::new("w", Tensor::scalar(2f64)?)?, Tensor::scalar(3f64)?);
    /// let product = Tensor::scalar(6f64)?.record("product", &[&w.tensor(), &x], |g, to| {
    ///     assert!(to.want(0) && !to.want(1));
    ///     to.add(0, g.scale(3.0)?)
    /// });
    /// assert_eq!(product.backward()?.get(&w).unwrap().item()?, 3.0);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn want(&self, input: usize) -> bool {
        self.nodes.get(input).is_some_and(Option::is_some)
    }

    /// The place of an input, where its gradient is wanted; refuses an input that there is not.
    fn node(&self, input: usize) -> Result<Option<&Arc<Node>>> {
        let count = self.nodes.len();
        ensure!(input < count, "input {input} was named, of an operation recorded with {count}");
        Ok(self.nodes[input].as_ref())
    }

    /// Sends the gradient of an input, where it is wanted. Refuses another shape or type than the
    /// input's, and an input that the operation was not recorded with.
    ///
    /// ```
    /// use regard_tensor::{Parameter, Tensor};
    /// let w = Parameter::new("w", Tensor::scalar(2f64)?)?;
    /// // a gradient of another shape is refused when it is sent
    /// let wrong = Tensor::scalar(2f64)?
    ///     .record("wrong", &[&w.tensor()], |g, to| to.add(0, g.reshape(&[1])?));
    /// let error = wrong.backward().unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "backward of wrong: the gradient of parameter \"w\" is f64 [1], its tensor f64 []"
    /// );
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn add(&mut self, input: usize, gradient: Tensor) -> Result<()> {
        let Some(node) = self.node(input)?.cloned() else { return Ok(()) };
        ensure!(
            gradient.dims() == &node.shape && gradient.dtype() == node.dtype,
            "the gradient of {} is {} {:?}, its tensor {} {:?}",
            node.named(),
            gradient.dtype(),
            gradient.shape(),
            node.dtype,
            node.shape
        );
        ensure!(
            gradient.device() == node.device,
            "the gradient of {} lies on {}, its tensor on {}",
            node.named(),
            gradient.device(),
            node.device
        );
        let sum = match self.gradients.remove(&node.id) {
            None => {
                self.ready.push(Ready(node.clone()));
                gradient
            }
            Some(before) => ops::add_into(before, &gradient)?,
        };
        self.gradients.insert(node.id, sum);
        Ok(())
    }

    /// An uninitialized tensor for the gradient of an input, in its shape and type, where it is
    /// wanted: see [`Tensor::uninit`]. Refuses an input that there is not.
    ///
    /// ```
    /// use regard_tensor::{Parameter, Tensor};
    /// let w = Parameter::new("w", Tensor::from_vec(vec![1f64, 2.0], &[2])?)?;
    /// let sum = Tensor::scalar(3f64)?.record("sum", &[&w.tensor()], |_, to| {
    ///     let Some(mut room) = to.uninit(0)? else { return Ok(()) };
    ///     room.as_mut_slice::<f64>()?.fill(1.0);
    ///     to.add(0, room)
    /// });
    /// assert_eq!(sum.backward()?.get(&w).unwrap().to_vec::<f64>()?, [1.0, 1.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn uninit(&self, input: usize) -> Result<Option<Tensor>> {
        let of = |node: &Arc<Node>| backend::of(node.device)?.uninit(&node.shape, node.dtype);
        self.node(input)?.map(of).transpose()
    }

    /// Sends the gradients of the inputs in their order, those that there are.
    /// Refuses a gradient of another shape or type than its input.
    ///
    /// ```
    /// use regard_tensor::{Parameter, Tensor};
    /// let (w, x) = (Parameter::new("w", Tensor::scalar(2f64)?)?, Tensor::scalar(3f64)?);
    /// let product = Tensor::scalar(6f64)?
    ///     .record("product", &[&x, &w.tensor()], |g, to| to.add_all([None, Some(g.scale(3.0)?)]));
    /// assert_eq!(product.backward()?.get(&w).unwrap().item()?, 3.0);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn add_all(&mut self, gradients: impl IntoIterator<Item = Option<Tensor>>) -> Result<()> {
        for (input, gradient) in gradients.into_iter().enumerate() {
            if let Some(gradient) = gradient {
                self.add(input, gradient)?;
            }
        }
        Ok(())
    }

    /// Sends the gradient of a part of an input: added to that part of one array, so that many
    /// parts of one tensor cost no more than the tensor.
    pub(crate) fn add_part(
        &mut self,
        input: usize,
        gradient: &Tensor,
        part: impl Fn(&Layout) -> Layout,
    ) -> Result<()> {
        let Some(node) = self.node(input)?.cloned() else { return Ok(()) };
        let mut whole = match self.gradients.remove(&node.id) {
            None => {
                self.ready.push(Ready(node.clone()));
                backend::of(node.device)?.full(&node.shape, 0.0, node.dtype)?
            }
            Some(before) => before,
        };
        ops::own(&mut whole)?;
        ops::add_to_part(&mut whole, gradient, part)?;
        self.gradients.insert(node.id, whole);
        Ok(())
    }
}

struct Ready(Arc<Node>);

impl PartialEq for Ready {
    fn eq(&self, other: &Self) -> bool {
        self.0.id == other.0.id
    }
}
impl Eq for Ready {}
impl PartialOrd for Ready {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Ready {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.id.cmp(&other.0.id)
    }
}

impl Tensor {
    /// Puts the result of an operation on the tape: `back` is given the gradient of the result
    /// and sends those of the inputs. What the inputs' numbers became without this has no
    /// gradient, and says so when one is asked for.
    ///
    /// ```
    /// use regard_tensor::{Parameter, Tensor};
    /// fn cube(x: &Tensor) -> regard_tensor::Result<Tensor> {
    ///     let x = x.contiguous()?;
    ///     let numbers = x.as_slice::<f64>("cube")?;
    ///     let y = Tensor::from_vec(numbers.iter().map(|x| x * x * x).collect(), x.shape())?;
    ///     let saved = x.detach();
    ///     Ok(y.record("cube", &[&x], move |gradient, inputs| {
    ///         inputs.add(0, gradient.mul(&saved.square()?.scale(3.0)?)?)
    ///     }))
    /// }
    /// let w = Parameter::new("w", Tensor::scalar(2f64)?)?;
    /// assert_eq!(cube(&w.tensor())?.backward()?.get(&w).unwrap().item()?, 12.0);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn record(
        mut self,
        op: &'static str,
        inputs: &[&Tensor],
        back: impl FnOnce(Tensor, &mut Parents) -> Result<()> + Send + 'static,
    ) -> Tensor {
        self.node = None;
        if self.is_recorded(inputs) {
            let place = Place { op, parents: parents(inputs), retained: false, part: Part::Alone };
            self.node = Some(self.after(place, Some(Back::One(Box::new(back)))));
        }
        self
    }

    /// Whether the result of an operation belongs on the tape: whole numbers and bools carry no gradient.
    fn is_recorded(&self, inputs: &[&Tensor]) -> bool {
        is_recording()
            && self.dtype().is_differentiable()
            && inputs.iter().any(|input| input.node.is_some())
    }

    fn after(&self, place: Place, back: Option<Back>) -> Arc<Node> {
        let Place { op, parents, retained, part } = place;
        Arc::new(Node {
            id: next_id(),
            op,
            name: None,
            shape: *self.dims(),
            dtype: self.dtype(),
            device: self.device(),
            parents,
            retained,
            back: back.map(|back| Mutex::new(Some(back))),
            part,
        })
    }

    /// The same numbers as a variable: a leaf of the tape, with a gradient of its own in what
    /// [`Tensor::backward`] gives. What lay behind the tensor before is not behind the variable.
    /// Refuses whole numbers and bools.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let x = Tensor::from([1f32, 2.0, 3.0]).requires_grad()?;
    /// let loss = x.square()?.sum_all()?;
    /// assert_eq!(loss.backward()?.get(&x).unwrap().to_vec::<f32>()?, [2.0, 4.0, 6.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn requires_grad(&self) -> Result<Tensor> {
        ensure!(
            self.dtype().is_differentiable(),
            "requires_grad: {} carries no gradient; convert the tensor of shape {:?} with to_dtype",
            self.dtype(),
            self.shape()
        );
        let mut variable = self.detach();
        variable.node = Some(Node::leaf("variable", None, &variable));
        Ok(variable)
    }

    /// The same tensor, whose gradient [`Tensor::backward`] keeps on its way to the leaves. What is
    /// computed from the tensor this gives counts; off the tape nothing is kept.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let x = Tensor::from([1f32, 2.0]).requires_grad()?;
    /// let h = x.scale(3.0)?.retain_grad();
    /// let gradients = h.square()?.sum_all()?.backward()?;
    /// assert_eq!(gradients.get(&h).unwrap().to_vec::<f32>()?, [6.0, 12.0]);
    /// assert_eq!(gradients.get(&x).unwrap().to_vec::<f32>()?, [18.0, 36.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn retain_grad(&self) -> Tensor {
        let mut same = self.detach();
        if same.is_recorded(&[self]) {
            let (op, parents) = ("retain_grad", parents(&[self]));
            let back = Back::One(Box::new(|gradient, to| to.add(0, gradient)));
            let place = Place { op, parents, retained: true, part: Part::Alone };
            same.node = Some(same.after(place, Some(back)));
        }
        same
    }

    /// As [`Tensor::record`], for an operation with several results: `back` is called once, with
    /// the gradient of each result, or none where nothing depends on it. A result of whole numbers
    /// or bools is not on the tape.
    ///
    /// ```
    /// use regard_tensor::{Parameter, Tensor};
    /// let w = Parameter::new("w", Tensor::scalar(2f64)?)?;
    /// let (x, plain) = (w.tensor(), w.tensor().detach());
    /// let results = vec![plain.scale(3.0)?, plain.scale(5.0)?];
    /// let results = Tensor::record_all("both", results, &[&x], |gradients, inputs| {
    ///     for (gradient, factor) in gradients.into_iter().zip([3.0, 5.0]) {
    ///         if let Some(gradient) = gradient {
    ///             inputs.add(0, gradient.scale(factor)?)?;
    ///         }
    ///     }
    ///     Ok(())
    /// });
    /// assert_eq!(results[0].mul(&results[1])?.backward()?.get(&w).unwrap().item()?, 60.0);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn record_all(
        op: &'static str,
        results: Vec<Tensor>,
        inputs: &[&Tensor],
        back: impl FnOnce(Vec<Option<Tensor>>, &mut Parents) -> Result<()> + Send + 'static,
    ) -> Vec<Tensor> {
        let mut results = results;
        results.iter_mut().for_each(|result| result.node = None);
        let recorded: Vec<bool> = results.iter().map(|result| result.is_recorded(inputs)).collect();
        let Some(first) = recorded.iter().position(|&is_recorded| is_recorded) else {
            return results;
        };
        // One node for the operation, older than those of its results: it runs after the last of them.
        let part = Part::Whole(results.len());
        let place = Place { op, parents: parents(inputs), retained: false, part };
        let whole = results[first].after(place, Some(Back::All(Box::new(back))));
        for (at, result) in results.iter_mut().enumerate().filter(|(at, _)| recorded[*at]) {
            let parents = vec![Some(whole.clone())];
            let place = Place { op, parents, retained: false, part: Part::Result(at) };
            result.node = Some(result.after(place, None));
        }
        results
    }

    /// The gradients of a single number with respect to every parameter and variable it came of.
    /// The tape behind it is used up: a second call is refused.
    ///
    /// ```
    /// use regard_tensor::{Parameter, Tensor};
    /// let w = Parameter::new("w", Tensor::scalar(3f32)?)?;
    /// let loss = w.tensor().mul(&w.tensor())?;
    /// assert_eq!(loss.backward()?.get(&w).unwrap().item()?, 6.0);
    /// assert!(loss.backward().is_err());
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn backward(&self) -> Result<Gradients> {
        ensure!(
            self.numel() == 1,
            "backward: starts from one number, was called on shape {:?}",
            self.shape()
        );
        self.backward_with(&self.detach().ones_like()?)
    }

    /// As [`Tensor::backward`], from a tensor of any shape and its gradient.
    /// Refuses a gradient of another shape or type, and a tensor that came of no parameter.
    ///
    /// ```
    /// use regard_tensor::{Parameter, Tensor};
    /// let w = Parameter::new("w", Tensor::from_vec(vec![1f32, 2.0], &[2])?)?;
    /// let y = w.tensor().scale(3.0)?;
    /// let gradients = y.backward_with(&Tensor::from_vec(vec![1f32, 10.0], &[2])?)?;
    /// assert_eq!(gradients.get(&w).unwrap().to_vec::<f32>()?, [3.0, 30.0]);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn backward_with(&self, gradient: &Tensor) -> Result<Gradients> {
        ensure!(
            gradient.shape() == self.shape() && gradient.dtype() == self.dtype(),
            "backward: the gradient is {} {:?}, the tensor {} {:?}",
            gradient.dtype(),
            gradient.shape(),
            self.dtype(),
            self.shape()
        );
        let Some(node) = &self.node else {
            return Err(crate::Error::new(
                "backward: no parameter and no variable lies behind this tensor, so there is no gradient",
            ));
        };
        without_gradients(|| run(node, gradient.detach()))
    }
}

/// Where a result lies on the tape.
struct Place {
    op: &'static str,
    parents: Vec<Option<Arc<Node>>>,
    retained: bool,
    part: Part,
}

fn parents(inputs: &[&Tensor]) -> Vec<Option<Arc<Node>>> {
    inputs.iter().map(|input| input.node.clone()).collect()
}

fn run(from: &Arc<Node>, gradient: Tensor) -> Result<Gradients> {
    let mut gradients = HashMap::from([(from.id, gradient)]);
    let mut ready = BinaryHeap::from([Ready(from.clone())]);
    // By the operation, what has arrived at its several results.
    let mut arrived: HashMap<u64, Vec<Option<Tensor>>> = HashMap::new();
    let (mut kept, mut parameters) = (HashMap::new(), HashMap::new());
    let mut visited = 0;
    while let Some(Ready(node)) = ready.pop() {
        visited += 1;
        let gradient = gradients.remove(&node.id);
        if let (Part::Result(at), Some(Some(whole))) = (node.part, node.parents.first()) {
            let all = arrived.entry(whole.id).or_insert_with(|| {
                ready.push(Ready(whole.clone()));
                vec![None; whole.results()]
            });
            all[at] = gradient;
            continue;
        }
        if let (true, Some(gradient)) = (node.retained, &gradient) {
            kept.insert(node.id, gradient.contiguous()?);
            parameters.extend(node.name.iter().map(|name| (node.id, name.clone())));
        }
        let Some(back) = node.take_back()? else { continue };
        let (nodes, gradients) = (&node.parents[..], &mut gradients);
        let to = &mut Parents { nodes, gradients, ready: &mut ready };
        let sent = match (back, gradient) {
            (Back::One(back), Some(gradient)) => back(gradient, to),
            (Back::One(_), None) => Ok(()),
            (Back::All(back), _) => back(arrived.remove(&node.id).unwrap_or_default(), to),
        };
        sent.map_err(|error| error.within(format!("backward of {}", node.op)))?;
    }
    Ok(Gradients { kept, parameters, visited })
}

/// What has a gradient of its own: a [`Parameter`], and a [`Tensor`] that
/// [`Tensor::requires_grad`] or [`Tensor::retain_grad`] gave.
///
/// ```
/// use regard_tensor::{Gradients, Parameter, Tensor, Variable};
/// fn mean(gradients: &Gradients, of: &impl Variable) -> regard_tensor::Result<f64> {
///     gradients.get(of).map_or(Ok(0.0), |gradient| gradient.mean_all()?.item())
/// }
/// let w = Parameter::new("w", Tensor::from([1f32, 2.0]))?;
/// let x = Tensor::from([3f32, 4.0]).requires_grad()?;
/// let gradients = w.tensor().mul(&x)?.sum_all()?.backward()?;
/// assert_eq!((mean(&gradients, &w)?, mean(&gradients, &x)?), (3.5, 1.5));
/// # Ok::<(), regard_tensor::Error>(())
/// ```
pub trait Variable: sealed::Sealed {}

impl Variable for Parameter {}
impl Variable for Tensor {}
impl<V: Variable> Variable for &V {}

mod sealed {
    use crate::{Parameter, Tensor};

    /// The place on the tape.
    pub trait Sealed {
        fn id(&self) -> Option<u64>;
    }
    impl Sealed for Parameter {
        fn id(&self) -> Option<u64> {
            Some(self.key())
        }
    }
    impl Sealed for Tensor {
        fn id(&self) -> Option<u64> {
            self.node.as_ref().map(|node| node.id())
        }
    }
    impl<V: Sealed> Sealed for &V {
        fn id(&self) -> Option<u64> {
            (*self).id()
        }
    }
}

/// The gradients that one backward pass gave, by parameter and by variable.
///
/// ```
/// use regard_tensor::{Parameter, Tensor};
/// let w = Parameter::new("w", Tensor::from_vec(vec![1f32, 2.0], &[2])?)?;
/// let gradients = w.tensor().square()?.sum_all()?.backward()?;
/// assert_eq!(gradients.get(&w).unwrap().to_vec::<f32>()?, [2.0, 4.0]);
/// # Ok::<(), regard_tensor::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Gradients {
    kept: HashMap<u64, Tensor>,
    /// The names of those that are parameters'.
    parameters: HashMap<u64, Arc<str>>,
    visited: usize,
}

impl Gradients {
    /// The gradient of a parameter, of a variable ([`Tensor::requires_grad`]) or of a tensor that
    /// [`Tensor::retain_grad`] marked; none where the loss does not depend on it.
    ///
    /// ```
    /// use regard_tensor::{Parameter, Tensor};
    /// let v = Parameter::new("v", Tensor::scalar(2f32)?)?;
    /// let w = Parameter::new("w", Tensor::scalar(3f32)?)?;
    /// let gradients = w.tensor().scale(5.0)?.backward()?;
    /// assert_eq!(gradients.get(&w).unwrap().item()?, 5.0);
    /// assert!(gradients.get(&v).is_none());
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn get(&self, of: &impl Variable) -> Option<&Tensor> {
        self.kept.get(&of.id()?)
    }

    /// Takes a gradient out.
    ///
    /// ```
    /// use regard_tensor::{Parameter, Tensor};
    /// let w = Parameter::new("w", Tensor::scalar(3f32)?)?;
    /// let mut gradients = w.tensor().scale(5.0)?.backward()?;
    /// assert_eq!(gradients.take(&w).unwrap().item()?, 5.0);
    /// assert!(gradients.get(&w).is_none());
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn take(&mut self, of: &impl Variable) -> Option<Tensor> {
        let id = of.id()?;
        self.parameters.remove(&id);
        self.kept.remove(&id)
    }

    /// How many places of the tape the pass went through, each once.
    ///
    /// ```
    /// use regard_tensor::Tensor;
    /// let x = Tensor::from([1f32, 2.0]).requires_grad()?;
    /// // the sum, the product, and x itself, which was used twice
    /// let gradients = x.mul(&x)?.sum(0)?.backward()?;
    /// assert_eq!(gradients.visited(), 3);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn visited(&self) -> usize {
        self.visited
    }

    /// Puts a parameter's gradient in, in place of the one there was.
    /// Refuses a gradient of another shape or type.
    ///
    /// ```
    /// use regard_tensor::{Gradients, Parameter, Tensor};
    /// let w = Parameter::new("w", Tensor::scalar(3f32)?)?;
    /// let mut gradients = Gradients::default();
    /// gradients.set(&w, Tensor::scalar(0.5f32)?)?;
    /// assert_eq!(gradients.get(&w).unwrap().item()?, 0.5);
    /// assert!(gradients.set(&w, Tensor::from_vec(vec![1f32; 2], &[2])?).is_err());
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn set(&mut self, parameter: &Parameter, gradient: Tensor) -> Result<()> {
        let value = parameter.tensor();
        ensure!(
            gradient.dims() == value.dims() && gradient.dtype() == value.dtype(),
            "the gradient of {:?} is {} {:?}, the parameter {} {:?}",
            parameter.name(),
            gradient.dtype(),
            gradient.shape(),
            value.dtype(),
            value.shape()
        );
        self.kept.insert(parameter.key(), gradient.detach());
        self.parameters.insert(parameter.key(), parameter.name().into());
        Ok(())
    }

    /// The first, by name, of the parameters that have a gradient here and are none of these.
    pub(crate) fn other_than(&self, known: &HashSet<u64>) -> Option<&str> {
        let others = self.parameters.iter().filter(|(id, _)| !known.contains(id));
        others.map(|(_, name)| &**name).min()
    }

    /// Adds another pass's gradients: how a large batch is made of small ones.
    /// Refuses two gradients of one parameter that lie on two devices.
    ///
    /// ```
    /// use regard_tensor::{Parameter, Tensor};
    /// let w = Parameter::new("w", Tensor::scalar(3f32)?)?;
    /// let mut sum = w.tensor().scale(2.0)?.backward()?;
    /// sum.add(w.tensor().scale(5.0)?.backward()?)?;
    /// assert_eq!(sum.get(&w).unwrap().item()?, 7.0);
    /// # Ok::<(), regard_tensor::Error>(())
    /// ```
    pub fn add(&mut self, other: Gradients) -> Result<()> {
        for (id, gradient) in other.kept {
            let sum = match self.kept.remove(&id) {
                None => gradient,
                Some(before) => ops::add_into(before, &gradient)?,
            };
            self.kept.insert(id, sum);
        }
        self.parameters.extend(other.parameters);
        self.visited += other.visited;
        Ok(())
    }
}
