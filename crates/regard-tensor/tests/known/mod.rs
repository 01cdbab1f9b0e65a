//! Known tensors: the cases of `fixtures/*.safetensors`, which bench/fixtures/write.py made.
//!
//! A case hands out its inputs and weights as parameters, compares what came out, sends back what
//! PyTorch sent back, and compares every gradient. A tensor that nobody looked at is a failure.

use regard_tensor::{DType, Gradients, Parameter, Parameters, Result, Tensor, load};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Runs `f` with every case of a file, in f64 and in f32; there must be this many cases.
#[track_caller]
pub(crate) fn each(noun: &str, count: usize, f: impl Fn(&Case) -> Result<()>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let (tensors, texts) = load(folder.join(format!("{noun}.safetensors"))).unwrap();
    let names: Vec<&String> = texts.keys().filter(|name| *name != "made_with").collect();
    assert_eq!(names.len(), count, "the cases of {noun} are {names:?}");
    for (dtype, tolerance) in [(DType::F64, 1e-10), (DType::F32, 2e-5)] {
        for name in &names {
            let prefix = format!("{name}/");
            let own = tensors.iter().filter_map(|(key, x)| {
                Some((key.strip_prefix(&prefix)?.to_string(), as_type(x, dtype)))
            });
            let case = Case {
                name: format!("{noun}/{name} in {dtype}"),
                options: serde_json::from_str(&texts[*name]).unwrap(),
                tensors: own.collect(),
                dtype,
                tolerance,
                leaves: RefCell::default(),
                seen: RefCell::default(),
            };
            f(&case).unwrap_or_else(|error| panic!("{}: {error}", case.name));
            let seen = case.seen.borrow();
            let unseen: Vec<_> = case.tensors.keys().filter(|key| !seen.contains(*key)).collect();
            assert!(unseen.is_empty(), "{}: nothing was held against {unseen:?}", case.name);
        }
    }
}

fn as_type(x: &Tensor, dtype: DType) -> Tensor {
    if x.dtype().is_float() { x.to_dtype(dtype).unwrap() } else { x.clone() }
}

/// One case in one precision.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) dtype: DType,
    options: Value,
    /// By kind and name: "input/x".
    tensors: BTreeMap<String, Tensor>,
    /// Of a tensor's largest number.
    tolerance: f64,
    leaves: RefCell<BTreeMap<String, Parameter>>,
    seen: RefCell<BTreeSet<String>>,
}

#[allow(dead_code)] // each file of tests uses its own part
impl Case {
    /// One of PyTorch's arguments, if it was given.
    pub(crate) fn option(&self, name: &str) -> Option<&Value> {
        self.options.get(name)
    }

    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        self.option(name).map(|x| x.as_f64().unwrap())
    }

    pub(crate) fn size(&self, name: &str) -> Option<usize> {
        self.option(name).map(|x| x.as_u64().unwrap() as usize)
    }

    /// A number for both axes, or one for each.
    pub(crate) fn pair(&self, name: &str) -> Option<[usize; 2]> {
        let one = |x: &Value| x.as_u64().unwrap() as usize;
        self.option(name).map(|x| match x.as_array() {
            Some(two) => [one(&two[0]), one(&two[1])],
            None => [one(x); 2],
        })
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.option(name).map(|x| x.as_str().unwrap())
    }

    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        self.option(name).map(|x| x.as_bool().unwrap())
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.tensors.contains_key(key)
    }

    /// A tensor as it lies in the file.
    #[track_caller]
    pub(crate) fn tensor(&self, key: &str) -> Tensor {
        self.seen.borrow_mut().insert(key.to_string());
        self.tensors.get(key).unwrap_or_else(|| panic!("{}: no {key}", self.name)).clone()
    }

    /// An input; a real one is on the tape, its gradient is compared later.
    #[track_caller]
    pub(crate) fn input(&self, name: &str) -> Tensor {
        self.leaf("input", name)
    }

    /// A weight, on the tape.
    #[track_caller]
    pub(crate) fn weight(&self, name: &str) -> Tensor {
        self.leaf("weight", name)
    }

    #[track_caller]
    fn leaf(&self, kind: &str, name: &str) -> Tensor {
        let value = self.tensor(&format!("{kind}/{name}"));
        if !value.dtype().is_float() {
            return value;
        }
        let leaf = Parameter::new(name, value).unwrap();
        let tensor = leaf.tensor();
        self.leaves.borrow_mut().insert(name.to_string(), leaf);
        tensor
    }

    /// Loads all weights into a module's parameters, under PyTorch's names.
    pub(crate) fn fill(&self, parameters: &Parameters) -> Result<()> {
        let weights = self.tensors.keys().filter_map(|key| key.strip_prefix("weight/"));
        let weights =
            weights.map(|name| (name.to_string(), self.tensor(&format!("weight/{name}"))));
        parameters.set(&weights.collect())?;
        let all = parameters.all().into_iter().map(|p| (p.name().to_string(), p));
        self.leaves.borrow_mut().extend(all);
        Ok(())
    }

    /// Holds a tensor against one of the file: no number further off than the tolerance times the
    /// largest number of the tensor.
    #[track_caller]
    pub(crate) fn compare(&self, key: &str, x: &Tensor) {
        let known = self.tensor(key);
        assert_eq!(x.shape(), known.shape(), "{}: the shape of {key}", self.name);
        let numbers =
            |x: &Tensor| x.detach().to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
        let (ours, theirs) = (numbers(x), numbers(&known));
        let largest = theirs.iter().fold(0f64, |most, x| most.max(x.abs()));
        for (at, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            assert!(
                (ours - theirs).abs() <= self.tolerance * largest,
                "{}: {key} has {ours} at {at}, PyTorch {theirs}",
                self.name
            );
        }
    }

    /// Holds an output against the file's, then every gradient that its gradient gives.
    #[track_caller]
    pub(crate) fn check(&self, name: &str, output: &Tensor) -> Result<()> {
        self.compare(&format!("output/{name}"), output);
        let gradients = output.backward_with(&self.tensor(&format!("grad_out/{name}")))?;
        self.compare_gradients(&gradients);
        Ok(())
    }

    #[track_caller]
    fn compare_gradients(&self, gradients: &Gradients) {
        let leaves = self.leaves.borrow();
        for key in self.tensors.keys() {
            let Some(name) = key.strip_prefix("grad/") else { continue };
            let leaf = leaves.get(name).unwrap_or_else(|| panic!("{}: no {name}", self.name));
            let gradient = gradients.get(leaf);
            let gradient =
                gradient.unwrap_or_else(|| panic!("{}: no gradient of {name}", self.name));
            self.compare(key, gradient);
        }
    }
}
