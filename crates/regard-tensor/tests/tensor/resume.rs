//! A run that is interrupted and one that is not end with the same bits, on any number of threads.

use regard_tensor::{
    Activation, Cell, CrossEntropy, DType, Init, Optimizer, Parameter, Parameters, Random,
    RecurrentStart, Result, SlidingWindow, Tensor, UpdateRule, load, save,
};
use std::collections::BTreeMap;
use std::path::Path;

/// A small model with an embedding, a layer norm, dropout and two linear layers, in training.
struct Run {
    parameters: Parameters,
    table: Parameter,
    gain: Parameter,
    shift: Parameter,
    layers: [(Parameter, Parameter); 2],
    optimizer: Optimizer,
    random: Random,
}

const TOKENS: usize = 50;
const WIDTH: usize = 64;
const CLASSES: usize = 10;

impl Run {
    fn new(seed: u64, rule: UpdateRule) -> Result<Self> {
        let parameters = Parameters::new(DType::F32, seed);
        let linear = |name: &str, output: usize| -> Result<(Parameter, Parameter)> {
            let at = parameters.at(name);
            let weight = at.parameter("weight", &[output, WIDTH], Init::Glorot)?;
            Ok((weight, at.parameter("bias", &[output], Init::Zeros)?))
        };
        let layers = [linear("first", WIDTH)?, linear("second", CLASSES)?];
        let table = parameters.parameter("table", &[TOKENS, WIDTH], Init::Normal(1.0))?;
        let gain = parameters.parameter("gain", &[WIDTH], Init::Ones)?;
        let shift = parameters.parameter("shift", &[WIDTH], Init::Zeros)?;
        let optimizer = Optimizer::new(&parameters, rule)?.clipped(1.0)?;
        Ok(Self { table, gain, shift, layers, optimizer, random: Random::new(seed), parameters })
    }

    fn step(&mut self) -> Result<f64> {
        let count = 300;
        let draw = |n: usize| (0..count).map(|_| self.random.below(n) as i64).collect::<Vec<_>>();
        let ids = Tensor::from_vec(draw(TOKENS), &[count])?;
        let targets = Tensor::from_vec(draw(CLASSES), &[count])?;
        let x = self.table.tensor().embed(&ids, Some(0))?;
        let x = x.dropout(0.3, self.random.key())?;
        let x = x.layer_norm(&self.gain.tensor(), &self.shift.tensor(), 1e-5)?;
        let [(w1, b1), (w2, b2)] = &self.layers;
        let x = x.linear(&w1.tensor(), None)?.activate_with(&b1.tensor(), Activation::Gelu)?;
        let x = x.dropout(0.3, self.random.key())?;
        let logits = x.linear(&w2.tensor(), Some(&b2.tensor()))?;
        let loss = logits.cross_entropy(&targets, CrossEntropy::default())?;
        self.optimizer.step(&loss.backward()?, 0.01)?;
        loss.item()
    }

    fn save(&self, path: &Path) -> Result<()> {
        let mut all = BTreeMap::new();
        let named = |kind: &str, tensors: BTreeMap<String, Tensor>| {
            let kind = format!("{kind}/");
            tensors.into_iter().map(move |(name, x)| (format!("{kind}{name}"), x))
        };
        all.extend(named("model", self.parameters.tensors()));
        all.extend(named("optimizer", self.optimizer.state()?));
        let (seed, drawn) = self.random.state();
        let texts = [("seed", seed), ("drawn", drawn)];
        save(path, &all, &texts.map(|(name, x)| (name.to_string(), x.to_string())).into())
    }

    fn load(&mut self, path: &Path) -> Result<()> {
        let (tensors, texts) = load(path)?;
        let part = |kind: &str| {
            let all = tensors.iter();
            all.filter_map(|(name, x)| Some((name.strip_prefix(kind)?.to_string(), x.clone())))
                .collect::<BTreeMap<_, _>>()
        };
        self.parameters.set(&part("model/"))?;
        self.optimizer.set_state(&part("optimizer/"))?;
        self.random =
            Random::resume(texts["seed"].parse().unwrap(), texts["drawn"].parse().unwrap());
        Ok(())
    }

    /// Every parameter and everything the optimizer keeps, as bits.
    fn bits(&self) -> Result<Vec<(String, Vec<u32>)>> {
        let mut all = self.parameters.tensors();
        let state = self.optimizer.state()?.into_iter();
        all.extend(
            state.filter(|(_, x)| x.dtype() == DType::F32).map(|(n, x)| (format!("o/{n}"), x)),
        );
        all.into_iter().map(|(name, x)| Ok((name, bits(&x)?))).collect()
    }
}

fn bits(x: &Tensor) -> Result<Vec<u32>> {
    Ok(x.to_vec::<f32>()?.into_iter().map(f32::to_bits).collect())
}

#[test]
fn an_interrupted_run_ends_with_the_bits_of_a_straight_one() {
    let folder = tempfile::tempdir().unwrap();
    let rules = [
        UpdateRule::adam(),
        UpdateRule::adam_w(),
        UpdateRule::Sgd { momentum: 0.9, nesterov: true, weight_decay: 0.01 },
        UpdateRule::sgd(0.0),
    ];
    for rule in rules {
        let mut straight = Run::new(7, rule).unwrap();
        let losses: Vec<f64> = (0..12).map(|_| straight.step().unwrap()).collect();
        assert!(losses[11].is_finite());
        let file = folder.path().join("checkpoint.safetensors");
        let mut first = Run::new(7, rule).unwrap();
        (0..5).for_each(|_| _ = first.step().unwrap());
        first.save(&file).unwrap();
        drop(first);
        // Fresh objects of another seed: nothing but the file connects the two halves.
        let mut second = Run::new(1234, rule).unwrap();
        second.load(&file).unwrap();
        assert_eq!(second.optimizer.steps(), 5);
        let rest: Vec<f64> = (5..12).map(|_| second.step().unwrap()).collect();
        assert_eq!(rest, losses[5..], "{rule:?}");
        assert_eq!(second.bits().unwrap(), straight.bits().unwrap(), "{rule:?}");
    }
}

#[test]
fn an_optimizer_refuses_the_state_of_another_by_name() {
    let adam = Run::new(1, UpdateRule::adam()).unwrap();
    let mut sgd = Run::new(1, UpdateRule::sgd(0.9)).unwrap();
    let error = sgd.optimizer.set_state(&adam.optimizer.state().unwrap()).unwrap_err().to_string();
    assert!(error.contains("\"momentum/first.bias\" is missing"), "{error}");
    let mut state = adam.optimizer.state().unwrap();
    state.insert("v/table".into(), Tensor::zeros(&[2, 2], DType::F32).unwrap());
    let mut other = Run::new(2, UpdateRule::adam()).unwrap();
    let error = other.optimizer.set_state(&state).unwrap_err().to_string();
    assert!(error.contains("\"v/table\"") && error.contains("[2, 2]"), "{error}");
}

/// What `f` gives on a pool of so many threads.
fn on<R: Send>(threads: usize, f: impl Fn() -> R + Send + Sync) -> R {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(f)
}

#[test]
fn random_numbers_are_the_same_on_any_number_of_threads() {
    let draw = || {
        let random = Random::new(3);
        let uniform = random.uniform(&[100_003], -1.0, 1.0, DType::F32).unwrap();
        let normal = random.normal(&[100_003], 0.0, 1.0, DType::F32).unwrap();
        let dropped = uniform.dropout(0.4, random.key()).unwrap();
        [uniform, normal, dropped].map(|x| bits(&x).unwrap())
    };
    let one = on(1, draw);
    for threads in [2, 3] {
        assert_eq!(on(threads, draw), one, "{threads} threads");
    }
}

#[test]
fn a_training_run_has_the_same_bits_on_any_number_of_threads() {
    let train = || {
        let mut run = Run::new(7, UpdateRule::adam_w()).unwrap();
        (0..3).for_each(|_| _ = run.step().unwrap());
        run.bits().unwrap()
    };
    let one = on(1, train);
    for threads in [2, 3] {
        assert_eq!(on(threads, train), one, "{threads} threads");
    }
}

/// An operation's result and the gradient of each input, as bits, from inputs of these shapes.
fn all_bits(shapes: &[&[usize]], f: impl Fn(&[Tensor]) -> Result<Tensor>) -> Result<Vec<Vec<u32>>> {
    let random = Random::new(5);
    let inputs =
        shapes.iter().map(|shape| Parameter::new("x", random.normal(shape, 0.0, 1.0, DType::F32)?));
    let inputs = inputs.collect::<Result<Vec<_>>>()?;
    let y = f(&inputs.iter().map(Parameter::tensor).collect::<Vec<_>>())?;
    let gradients = y.backward_with(&random.normal(y.shape(), 0.0, 1.0, DType::F32)?)?;
    let mut all = vec![bits(&y)?];
    for input in &inputs {
        all.push(bits(gradients.get(input).unwrap())?);
    }
    Ok(all)
}

#[test]
fn every_operation_gives_the_same_bits_on_any_number_of_threads() {
    type Operation = Box<dyn Fn(&[Tensor]) -> Result<Tensor> + Send + Sync>;
    let operations: Vec<(&str, Vec<&[usize]>, Operation)> = vec![
        ("add", vec![&[300, 211], &[211]], Box::new(|x| x[0].add(&x[1]))),
        ("mul", vec![&[300, 211], &[300, 1]], Box::new(|x| x[0].mul(&x[1]))),
        ("exp", vec![&[300, 211]], Box::new(|x| x[0].exp())),
        ("sum 0", vec![&[1999, 67]], Box::new(|x| x[0].sum(0))),
        ("sum 1", vec![&[67, 1999]], Box::new(|x| x[0].sum(1))),
        ("sum all", vec![&[500_003]], Box::new(|x| x[0].sum_all())),
        ("max", vec![&[300, 211]], Box::new(|x| Ok(x[0].max(1)?.0))),
        ("softmax", vec![&[300, 211]], Box::new(|x| x[0].softmax(1))),
        ("log_softmax", vec![&[300, 211]], Box::new(|x| x[0].log_softmax(0))),
        (
            "gelu",
            vec![&[300, 211], &[211]],
            Box::new(|x| x[0].activate_with(&x[1], Activation::Gelu)),
        ),
        (
            "layer_norm",
            vec![&[700, 96], &[96], &[96]],
            Box::new(|x| x[0].layer_norm(&x[1], &x[2], 1e-5)),
        ),
        ("matmul", vec![&[150, 170], &[170, 190]], Box::new(|x| x[0].matmul(&x[1]))),
        ("many matmul", vec![&[9, 40, 50], &[9, 50, 60]], Box::new(|x| x[0].matmul(&x[1]))),
        (
            "linear",
            vec![&[700, 96], &[80, 96], &[80]],
            Box::new(|x| x[0].linear(&x[1], Some(&x[2]))),
        ),
        ("cat", vec![&[100, 90], &[100, 150]], Box::new(|x| Tensor::cat(x, 1))),
        ("transpose", vec![&[300, 211]], Box::new(|x| x[0].transpose(0, 1)?.contiguous())),
        (
            "conv2d",
            vec![&[3, 4, 20, 20], &[8, 4, 3, 3], &[8]],
            Box::new(|x| x[0].conv2d(&x[1], Some(&x[2]), &SlidingWindow::new([3, 3]))),
        ),
        (
            "rows",
            vec![&[97, 64]],
            Box::new(|x| {
                let ids = (0..2000).map(|i| i * i % 97).collect::<Vec<i64>>();
                x[0].rows(&Tensor::from_vec(ids, &[2000])?)
            }),
        ),
        (
            "segment_sum",
            vec![&[2000, 64]],
            Box::new(|x| {
                let ids = (0..2000).map(|i| i * i % 97).collect::<Vec<i64>>();
                x[0].segment_sum(&Tensor::from_vec(ids, &[2000])?, 97)
            }),
        ),
        (
            "gru",
            vec![&[9, 30, 96], &[96, 32], &[96], &[9, 32]],
            Box::new(|x| {
                let start =
                    RecurrentStart { w_hh: &x[1], b_hh: Some(&x[2]), h0: Some(&x[3]), c0: None };
                Ok(x[0].recurrent(Cell::Gru, start, None, false)?.out)
            }),
        ),
        (
            "cross_entropy",
            vec![&[900, 40]],
            Box::new(|x| {
                let ids = (0..900).map(|i| i % 40).collect::<Vec<i64>>();
                let targets = Tensor::from_vec(ids, &[900])?;
                x[0].cross_entropy(&targets, CrossEntropy::default())?.reshape(&[1])
            }),
        ),
    ];
    let mut differ = Vec::new();
    for (name, shapes, f) in &operations {
        let one = on(1, || all_bits(shapes, f).unwrap());
        for threads in [2, 3] {
            if on(threads, || all_bits(shapes, f).unwrap()) != one {
                differ.push(format!("{name} on {threads} threads"));
            }
        }
    }
    assert!(differ.is_empty(), "other bits: {differ:?}");
}
