//! A graph of ONNX operators under way: values by their names.

use crate::run::protobuf::Message;
use regard::{DType, Tensor};
use regard_data::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};

/// The version of the operators, and of the file's format.
const OPERATORS: i64 = 17;
const FORMAT: i64 = 8;

/// The kinds of numbers, by ONNX's ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Float = 1,
    Int32 = 6,
    Int64 = 7,
    Double = 11,
}

/// An operator's option.
pub(super) enum Attribute<'a> {
    Int(i64),
    Ints(&'a [i64]),
    Float(f32),
    Text(&'a str),
    Texts(&'a [&'a str]),
}

impl Attribute<'_> {
    fn message(&self, name: &str) -> Message {
        let message = Message::default().text(1, name);
        match self {
            Self::Int(value) => message.int(3, *value).int(20, 2),
            Self::Ints(values) => message.ints(8, values).int(20, 7),
            Self::Float(value) => message.float(2, *value).int(20, 1),
            Self::Text(text) => message.text(4, text).int(20, 3),
            Self::Texts(texts) => {
                texts.iter().fold(message, |message, text| message.text(9, text)).int(20, 8)
            }
        }
    }
}

/// A size of an input or output: a number, or a name for any.
pub(super) enum Size {
    Any(&'static str),
    Fixed(usize),
}

/// A graph under way.
pub(super) struct Graph<'a> {
    weights: &'a BTreeMap<String, Tensor>,
    used: BTreeSet<String>,
    body: Message,
    constants: Message,
    ends: Message,
    count: usize,
}

impl<'a> Graph<'a> {
    /// Over these weights.
    pub(super) fn new(weights: &'a BTreeMap<String, Tensor>) -> Self {
        let (body, constants, ends) = Default::default();
        Self { weights, used: BTreeSet::new(), body, constants, ends, count: 0 }
    }

    /// What an operator gives.
    pub(super) fn op(
        &mut self,
        operator: &str,
        inputs: &[&str],
        attributes: &[(&str, Attribute)],
    ) -> String {
        self.ops(operator, inputs, attributes, 1).swap_remove(0)
    }

    /// The same for an operator that gives several.
    pub(super) fn ops(
        &mut self,
        operator: &str,
        inputs: &[&str],
        attributes: &[(&str, Attribute)],
        outputs: usize,
    ) -> Vec<String> {
        self.count += 1;
        let names: Vec<String> = (0..outputs)
            .map(|at| format!("{}_{}_{at}", operator.to_lowercase(), self.count))
            .collect();
        let mut node = Message::default();
        for input in inputs {
            node = node.text(1, input);
        }
        for name in &names {
            node = node.text(2, name);
        }
        node = node.text(3, &format!("{operator}_{}", self.count)).text(4, operator);
        for (name, attribute) in attributes {
            node = node.message(5, &attribute.message(name));
        }
        self.body = std::mem::take(&mut self.body).message(1, &node);
        names
    }

    /// A weight of the model, by its name.
    pub(super) fn weight(&mut self, name: &str) -> Result<String> {
        let missing = || Error::invalid(format!("the model has no weight {name}"));
        let tensor = self.weights.get(name).ok_or_else(missing)?;
        if self.used.insert(name.to_owned()) {
            let values = tensor.to_dtype(DType::F32)?.contiguous()?.to_vec::<f32>()?;
            self.put(
                name,
                Kind::Float,
                tensor.shape(),
                values.iter().flat_map(|v| v.to_le_bytes()),
            );
        }
        Ok(name.to_owned())
    }

    /// A weight's values and shape, to be written in another order.
    pub(super) fn values(&self, name: &str) -> Result<(Vec<f32>, Vec<usize>)> {
        let missing = || Error::invalid(format!("the model has no weight {name}"));
        let tensor = self.weights.get(name).ok_or_else(missing)?;
        Ok((tensor.to_dtype(DType::F32)?.contiguous()?.to_vec::<f32>()?, tensor.shape().to_vec()))
    }

    /// Numbers of a shape.
    pub(super) fn floats(&mut self, values: &[f32], shape: &[usize]) -> String {
        self.constant(Kind::Float, shape, values.iter().flat_map(|v| v.to_le_bytes()))
    }

    pub(super) fn doubles(&mut self, values: &[f64], shape: &[usize]) -> String {
        self.constant(Kind::Double, shape, values.iter().flat_map(|v| v.to_le_bytes()))
    }

    pub(super) fn ints(&mut self, values: &[i64]) -> String {
        self.constant(Kind::Int64, &[values.len()], values.iter().flat_map(|v| v.to_le_bytes()))
    }

    pub(super) fn float(&mut self, value: f32) -> String {
        self.floats(&[value], &[])
    }

    pub(super) fn int(&mut self, value: i64) -> String {
        self.constant(Kind::Int64, &[], value.to_le_bytes())
    }

    fn constant(
        &mut self,
        kind: Kind,
        shape: &[usize],
        bytes: impl IntoIterator<Item = u8>,
    ) -> String {
        self.count += 1;
        let name = format!("constant_{}", self.count);
        self.put(&name, kind, shape, bytes);
        name
    }

    fn put(
        &mut self,
        name: &str,
        kind: Kind,
        shape: &[usize],
        bytes: impl IntoIterator<Item = u8>,
    ) {
        let sizes: Vec<i64> = shape.iter().map(|&size| size as i64).collect();
        let bytes: Vec<u8> = bytes.into_iter().collect();
        let tensor = Message::default().ints(1, &sizes).int(2, kind as i64);
        let tensor = tensor.text(8, name).bytes(9, &bytes);
        self.constants = std::mem::take(&mut self.constants).message(5, &tensor);
    }

    pub(super) fn input(&mut self, name: &str, kind: Kind, sizes: &[Size]) -> String {
        self.end(11, name, kind, sizes);
        name.to_owned()
    }

    /// Names a value as what the graph gives.
    pub(super) fn output(&mut self, value: &str, name: &str, sizes: &[Size]) {
        let node = Message::default().text(1, value).text(2, name).text(4, "Identity");
        self.body = std::mem::take(&mut self.body).message(1, &node);
        self.end(12, name, Kind::Float, sizes);
    }

    fn end(&mut self, field: u64, name: &str, kind: Kind, sizes: &[Size]) {
        let mut shape = Message::default();
        for size in sizes {
            let size = match size {
                Size::Any(name) => Message::default().text(2, name),
                Size::Fixed(size) => Message::default().int(1, *size as i64),
            };
            shape = shape.message(1, &size);
        }
        let tensor = Message::default().int(1, kind as i64).message(2, &shape);
        let kind = Message::default().message(1, &tensor);
        let value = Message::default().text(1, name).message(2, &kind);
        self.ends = std::mem::take(&mut self.ends).message(field, &value);
    }

    /// The file.
    pub(super) fn finish(self, name: &str) -> Vec<u8> {
        let mut graph = self.body.text(2, name).finish();
        graph.extend(self.constants.finish());
        graph.extend(self.ends.finish());
        let operators = Message::default().text(1, "").int(2, OPERATORS);
        Message::default()
            .int(1, FORMAT)
            .text(2, "regard")
            .text(3, env!("CARGO_PKG_VERSION"))
            .bytes(7, &graph)
            .message(8, &operators)
            .finish()
    }
}

/// What is written often.
impl Graph<'_> {
    pub(super) fn add(&mut self, a: &str, b: &str) -> String {
        self.op("Add", &[a, b], &[])
    }

    pub(super) fn mul(&mut self, a: &str, b: &str) -> String {
        self.op("Mul", &[a, b], &[])
    }

    pub(super) fn scale(&mut self, x: &str, by: f32) -> String {
        let by = self.float(by);
        self.mul(x, &by)
    }

    pub(super) fn matmul(&mut self, a: &str, b: &str) -> String {
        self.op("MatMul", &[a, b], &[])
    }

    pub(super) fn transpose(&mut self, x: &str, order: &[i64]) -> String {
        self.op("Transpose", &[x], &[("perm", Attribute::Ints(order))])
    }

    /// A size of 0 stays as it is, one of −1 takes the rest.
    pub(super) fn reshape(&mut self, x: &str, sizes: &[i64]) -> String {
        let sizes = self.ints(sizes);
        self.op("Reshape", &[x, &sizes], &[])
    }

    pub(super) fn unsqueeze(&mut self, x: &str, axes: &[i64]) -> String {
        let axes = self.ints(axes);
        self.op("Unsqueeze", &[x, &axes], &[])
    }

    pub(super) fn concat(&mut self, parts: &[&str], axis: i64) -> String {
        self.op("Concat", parts, &[("axis", Attribute::Int(axis))])
    }

    pub(super) fn cast(&mut self, x: &str, kind: Kind) -> String {
        self.op("Cast", &[x], &[("to", Attribute::Int(kind as i64))])
    }

    pub(super) fn sum(&mut self, x: &str, axis: i64) -> String {
        let axis = self.ints(&[axis]);
        self.op("ReduceSum", &[x, &axis], &[("keepdims", Attribute::Int(0))])
    }

    pub(super) fn max(&mut self, x: &str, axis: i64) -> String {
        let axis = [("axes", Attribute::Ints(&[axis])), ("keepdims", Attribute::Int(0))];
        self.op("ReduceMax", &[x], &axis)
    }

    /// A size of a value, as a number.
    pub(super) fn size(&mut self, x: &str, axis: i64) -> String {
        let (shape, axis) = (self.op("Shape", &[x], &[]), self.int(axis));
        self.op("Gather", &[&shape, &axis], &[])
    }

    /// 0, 1, … below a number.
    pub(super) fn range(&mut self, end: &str) -> String {
        let (start, step) = (self.int(0), self.int(1));
        self.op("Range", &[&start, end, &step], &[])
    }

    /// x Wᵀ + b, by the names of a linear layer.
    pub(super) fn linear(&mut self, x: &str, name: &str, bias: bool) -> Result<String> {
        let weight = self.weight(&format!("{name}weight"))?;
        let bias = bias.then(|| self.weight(&format!("{name}bias"))).transpose()?;
        Ok(self.product(x, &weight, bias.as_deref()))
    }

    /// x Wᵀ + b.
    pub(super) fn product(&mut self, x: &str, weight: &str, bias: Option<&str>) -> String {
        let weight = self.transpose(weight, &[1, 0]);
        let y = self.matmul(x, &weight);
        bias.map_or_else(|| y.clone(), |bias| self.add(&y, bias))
    }

    /// What is kept where a condition holds, else a number.
    pub(super) fn keep(&mut self, condition: &str, x: &str, otherwise: f32) -> String {
        let otherwise = self.float(otherwise);
        self.op("Where", &[condition, x, &otherwise], &[])
    }
}
