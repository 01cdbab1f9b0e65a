//! Operations and optimizers held against what PyTorch computes.

use crate::known;

use known::Case;
use regard_tensor::{
    Activation, Better, CrossEntropy, DType, Decay, Gradients, Init, Optimizer, Parameters,
    Plateau, Result, Schedule, SlidingWindow, Tensor, UpdateRule,
};

#[test]
fn fixture_layer_norm() {
    known::each("layer_norm", 4, |case| {
        let x = case.input("x");
        // Two axes are one of their joint size; no gain and no shift are ones and zeros.
        let axes = case.option("normalized_shape").unwrap().as_array().unwrap().len();
        let width: usize = x.shape()[x.rank() - axes..].iter().product();
        let (gamma, beta) = match case.flag("elementwise_affine") {
            Some(false) => {
                (Tensor::full(&[width], 1.0, case.dtype)?, Tensor::zeros(&[width], case.dtype)?)
            }
            _ => (case.weight("weight"), case.weight("bias")),
        };
        let flat = x.reshape(&[x.numel() / width, width])?;
        let (gamma, beta) = (gamma.reshape(&[width])?, beta.reshape(&[width])?);
        let out = flat.layer_norm(&gamma, &beta, case.number("eps").unwrap())?;
        case.check("out", &out.reshape(x.shape())?)
    });
}

#[test]
fn fixture_conv1d() {
    known::each("conv1d", 7, |case| {
        let bias = case.has("weight/bias").then(|| case.weight("bias"));
        let [stride, dilation] = ["stride", "dilation"].map(|name| case.size(name).unwrap_or(1));
        let padding = case.size("padding").unwrap_or(0);
        let (x, weight) = (case.input("x"), case.weight("weight"));
        case.check("out", &x.conv1d(&weight, bias.as_ref(), stride, padding, dilation)?)
    });
}

fn slide(case: &Case) -> SlidingWindow {
    let kernel = case.pair("kernel_size").unwrap();
    SlidingWindow {
        stride: case.pair("stride").unwrap_or([1, 1]),
        padding: case.pair("padding").unwrap_or([0, 0]),
        ..SlidingWindow::new(kernel)
    }
}

#[test]
fn fixture_conv2d() {
    known::each("conv2d", 7, |case| {
        let bias = case.has("weight/bias").then(|| case.weight("bias"));
        let (x, weight) = (case.input("x"), case.weight("weight"));
        case.check("out", &x.conv2d(&weight, bias.as_ref(), &slide(case))?)
    });
}

#[test]
fn fixture_pool() {
    known::each("pool", 8, |case| {
        let x = case.input("x");
        let mut window = slide(case);
        window.stride = case.pair("stride").unwrap_or(window.kernel);
        // A line is an image of height 1.
        let line = x.rank() == 3;
        let image = if line { x.unsqueeze(2)? } else { x };
        if line {
            (window.kernel[0], window.stride[0], window.padding[0]) = (1, 1, 0);
        }
        let largest = case.name.starts_with("pool/max");
        let out = if largest { image.max_pool2d(&window)? } else { image.mean_pool2d(&window)? };
        case.check("out", &if line { out.squeeze(2)? } else { out })
    });
}

#[test]
fn fixture_activation() {
    known::each("activation", 8, |case| {
        let f = match case.name.split(['/', ' ']).nth(1).unwrap() {
            "relu" => Activation::Relu,
            "leaky-relu" => Activation::LeakyRelu { slope: case.number("negative_slope").unwrap() },
            "gelu" => Activation::Gelu,
            "gelu-tanh" => Activation::GeluTanh,
            "silu" => Activation::Silu,
            "elu" => Activation::Elu { alpha: case.number("alpha").unwrap() },
            "sigmoid" => Activation::Sigmoid,
            "tanh" => Activation::Tanh,
            other => panic!("no activation {other}"),
        };
        case.check("out", &case.input("x").activate(f)?)
    });
}

#[test]
fn fixture_softmax() {
    known::each("softmax", 6, |case| {
        let axis = case.option("dim").unwrap().as_i64().unwrap() as isize;
        let x = case.input("x");
        let log = case.name.starts_with("softmax/log");
        case.check("out", &if log { x.log_softmax(axis)? } else { x.softmax(axis)? })
    });
}

#[test]
fn fixture_cross_entropy() {
    known::each("cross_entropy", 8, |case| {
        let rule = CrossEntropy {
            label_smoothing: case.number("label_smoothing").unwrap_or(0.0),
            ignore_index: case.option("ignore_index").map(|x| x.as_i64().unwrap()),
        };
        let (logits, targets) = (case.input("logits"), case.input("targets"));
        let loss = match case.text("reduction").unwrap() {
            "mean" => logits.cross_entropy(&targets, rule)?,
            "sum" => logits.cross_entropy_rows(&targets, rule)?.sum_all()?,
            "none" => logits.cross_entropy_rows(&targets, rule)?,
            other => panic!("no reduction {other}"),
        };
        case.check("loss", &loss)
    });
}

#[test]
fn fixture_embedding() {
    known::each("embedding", 2, |case| {
        let (table, indices) = (case.weight("weight"), case.input("indices"));
        case.check("out", &table.embed(&indices, case.size("padding_idx"))?)
    });
}

const SHAPES: [(&str, &[usize]); 2] = [("weight", &[3, 4]), ("bias", &[4])];

#[test]
fn fixture_optimizer() {
    known::each("optimizer", 10, |case| match case.text("kind") {
        Some(kind) => descends(case, kind),
        None => clips(case),
    });
}

fn zeros(dtype: DType) -> Result<Parameters> {
    let parameters = Parameters::new(dtype, 0);
    for (name, shape) in SHAPES {
        parameters.parameter(name, shape, Init::Zeros)?;
    }
    Ok(parameters)
}

fn gradients(parameters: &Parameters, of: impl Fn(&str) -> Result<Tensor>) -> Result<Gradients> {
    let mut gradients = Gradients::default();
    for parameter in parameters.all() {
        gradients.set(&parameter, of(parameter.name())?)?;
    }
    Ok(gradients)
}

/// Ten steps along given gradients; the parameters after each.
fn descends(case: &Case, kind: &str) -> Result<()> {
    let number = |name: &str| case.number(name).unwrap_or(0.0);
    let betas = || {
        let two = case.option("betas").unwrap();
        (two[0].as_f64().unwrap(), two[1].as_f64().unwrap())
    };
    let weight_decay = number("weight_decay");
    let rule = match kind {
        "Adam" => UpdateRule::Adam { betas: betas(), eps: number("eps"), weight_decay },
        "AdamW" => UpdateRule::AdamW { betas: betas(), eps: number("eps"), weight_decay },
        "SGD" => UpdateRule::Sgd {
            momentum: number("momentum"),
            nesterov: case.flag("nesterov").unwrap_or(false),
            weight_decay,
        },
        other => panic!("no optimizer {other}"),
    };
    let parameters = zeros(case.dtype)?;
    case.fill(&parameters)?;
    let mut optimizer = Optimizer::new(&parameters, rule)?;
    if let Some(norm) = case.number("max_norm") {
        optimizer = optimizer.clipped(norm)?;
    }
    let (mut after, mut norms) = (vec![Vec::new(); SHAPES.len()], Vec::new());
    for step in 0..10 {
        let given = gradients(&parameters, |name| {
            case.tensor(&format!("grad/{name}")).select(0, step)?.contiguous()
        })?;
        norms.push(optimizer.step(&given, number("lr"))?.item()?);
        for (after, parameter) in after.iter_mut().zip(parameters.all()) {
            after.push(parameter.tensor().detach().contiguous()?);
        }
    }
    for (after, parameter) in after.iter().zip(parameters.all()) {
        case.compare(&format!("output/{}", parameter.name()), &Tensor::stack(after, 0)?);
    }
    if case.has("output/norm") {
        case.compare("output/norm", &Tensor::from_vec(norms, &[10])?);
    }
    Ok(())
}

/// One clipping alone: a plain step of rate 1 from 0 leaves minus the clipped gradients.
fn clips(case: &Case) -> Result<()> {
    let parameters = zeros(case.dtype)?;
    let sgd = Optimizer::new(&parameters, UpdateRule::sgd(0.0))?;
    let mut optimizer = sgd.clipped(case.number("max_norm").unwrap())?;
    let given = gradients(&parameters, |name| Ok(case.tensor(&format!("input/{name}"))))?;
    let norm = optimizer.step(&given, 1.0)?;
    case.compare("output/norm", &norm);
    for parameter in parameters.all() {
        let clipped = parameter.tensor().detach().scale(-1.0)?;
        case.compare(&format!("output/{}", parameter.name()), &clipped);
    }
    Ok(())
}

#[test]
fn fixture_schedule() {
    known::each("schedule", 5, |case| {
        let rates: Vec<f64> = match case.size("T_max") {
            Some(length) => {
                let warmup = case.size("warmup").unwrap_or(0) as u64;
                let steps = warmup + length as u64;
                let schedule = Schedule {
                    peak: case.number("lr").unwrap(),
                    warmup,
                    steps,
                    floor: case.number("eta_min").unwrap(),
                    decay: Decay::Cosine,
                };
                schedule.check()?;
                (0..=steps).map(|step| schedule.rate(step)).collect()
            }
            None => {
                let mut plateau = Plateau {
                    factor: case.number("factor").unwrap(),
                    patience: case.size("patience").unwrap() as u64,
                    cooldown: case.size("cooldown").unwrap() as u64,
                    threshold: case.number("threshold").unwrap(),
                    floor: case.number("min_lr").unwrap(),
                    better: match case.text("mode").unwrap() {
                        "max" => Better::Higher,
                        _ => Better::Lower,
                    },
                    ..Plateau::new(case.number("lr").unwrap())
                };
                assert_eq!(case.text("threshold_mode"), Some("rel"));
                let metrics = case.tensor("input/metric").to_dtype(DType::F64)?.to_vec::<f64>()?;
                metrics.into_iter().map(|metric| plateau.observe(metric)).collect()
            }
        };
        case.compare("output/lr", &Tensor::from_slice(&rates, &[rates.len()])?);
        Ok(())
    });
}
