//! Recurrent networks against PyTorch's numbers, and against themselves without padding.

use regard::layers::{Cell, Recurrent, RecurrentConfig, RecurrentState};
use regard::prelude::*;
use regard::tensor::load;
use std::collections::BTreeMap;

#[track_caller]
fn near(what: &str, a: &Tensor, b: &Tensor, tolerance: f64) {
    assert_eq!(a.shape(), b.shape(), "{what}");
    let (a, b) = (a.to_vec::<f64>().unwrap(), b.to_vec::<f64>().unwrap());
    for (i, (a, b)) in a.iter().zip(&b).enumerate() {
        assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{what}[{i}]: {a} and {b}");
    }
}

fn stack(parts: &[Tensor]) -> Tensor {
    Tensor::stack(parts, 0).unwrap()
}

/// Every case of a fixture file: outputs, last states, and the gradients of all weights and inputs.
fn holds_against(file: &str, cell: Cell) {
    let path = format!("{}/../../fixtures/{file}.safetensors", env!("CARGO_MANIFEST_DIR"));
    let (tensors, texts) = load(path).unwrap();
    let mut cases = 0;
    for (case, options) in texts.iter().filter(|(name, _)| *name != "made_with") {
        let options: serde_json::Value = serde_json::from_str(options).unwrap();
        let part = |part: &str| -> BTreeMap<String, Tensor> {
            let prefix = format!("{case}/{part}/");
            let named = tensors
                .iter()
                .filter_map(|(name, x)| Some((name.strip_prefix(&prefix)?.to_string(), x.clone())));
            named.collect()
        };
        let (inputs, outputs, seeds, grads) =
            (part("input"), part("output"), part("grad_out"), part("grad"));
        let number = |name: &str| options[name].as_u64().unwrap() as usize;
        let config = RecurrentConfig {
            cell,
            hidden: number("hidden_size"),
            layers: number("num_layers"),
            both_directions: options["bidirectional"].as_bool().unwrap(),
            dropout: 0.0,
        };
        let parameters = Parameters::new(DType::F64, 1);
        let network = Recurrent::new(&parameters, &config, number("input_size")).unwrap();
        parameters.set(&part("weight")).unwrap();
        let learned =
            |name: &str| inputs.get(name).map(|x| Parameter::new(name, x.clone()).unwrap());
        let (x, h0, c0) = (learned("x").unwrap(), learned("h0"), learned("c0"));
        let start = h0.as_ref().map(|h| {
            RecurrentState::stacked(&h.tensor(), c0.as_ref().map(|c| c.tensor()).as_ref()).unwrap()
        });
        let lengths = inputs.get("lengths").map(|x| x.to_vec::<i64>().unwrap());
        let lengths = lengths.map(|x| x.iter().map(|&x| x as usize).collect::<Vec<_>>());
        let output =
            network.forward(&x.tensor(), lengths.as_deref(), start.as_ref(), Mode::Infer).unwrap();
        let mut results = vec![("out", output.out), ("h", stack(&output.state.h))];
        if cell == Cell::Lstm {
            results.push(("c", stack(&output.state.c)));
        }
        let mut sum = Tensor::zeros(&[], DType::F64).unwrap();
        for (name, result) in &results {
            near(&format!("{case} {name}"), result, &outputs[*name], 1e-11);
            sum = sum.add(&result.mul(&seeds[*name]).unwrap().sum_all().unwrap()).unwrap();
        }
        let back = sum.backward().unwrap();
        let mut all = parameters.all();
        all.extend([Some(x), h0, c0].into_iter().flatten());
        assert_eq!(all.len(), grads.len(), "{case}");
        for parameter in all {
            let name = format!("{case} gradient of {}", parameter.name());
            near(&name, back.get(&parameter).unwrap(), &grads[parameter.name()], 1e-10);
        }
        cases += 1;
    }
    assert!(cases >= 9);
}

#[test]
fn an_rnn_gives_the_fixture_outputs_and_gradients() {
    holds_against("rnn", Cell::Rnn);
}

#[test]
fn a_gru_gives_the_fixture_outputs_and_gradients() {
    holds_against("gru", Cell::Gru);
}

#[test]
fn an_lstm_gives_the_fixture_outputs_and_gradients() {
    holds_against("lstm", Cell::Lstm);
}

#[test]
fn dropout_acts_between_layers_while_learning_and_never_in_use() {
    let config = RecurrentConfig { layers: 2, dropout: 0.5, ..RecurrentConfig::new(Cell::Gru, 8) };
    let network = Recurrent::new(&Parameters::new(DType::F64, 1), &config, 4).unwrap();
    let random = Random::new(1);
    let x = random.normal(&[2, 5, 4], 0.0, 1.0, DType::F64).unwrap();
    let run = |mode| network.forward(&x, None, None, mode).unwrap();
    let used = run(Mode::Infer).out.to_vec::<f64>().unwrap();
    assert_eq!(used, run(Mode::Infer).out.to_vec::<f64>().unwrap());
    assert_ne!(used, run(Mode::Train(&random)).out.to_vec::<f64>().unwrap());
}

#[test]
fn a_network_in_both_directions_has_no_step() {
    let config = RecurrentConfig { both_directions: true, ..RecurrentConfig::new(Cell::Gru, 4) };
    let network = Recurrent::new(&Parameters::new(DType::F64, 1), &config, 3).unwrap();
    let x = Tensor::zeros(&[1, 3], DType::F64).unwrap();
    let error = network.step(&x, &network.zeros(1).unwrap(), Mode::Infer).unwrap_err();
    assert!(error.to_string().contains("both directions"), "{error}");
}

#[test]
fn a_state_of_another_shape_is_refused_with_both_shapes() {
    let network =
        Recurrent::new(&Parameters::new(DType::F64, 1), &RecurrentConfig::new(Cell::Gru, 4), 3)
            .unwrap();
    let x = Tensor::zeros(&[2, 5, 3], DType::F64).unwrap();
    let state = network.zeros(3).unwrap();
    let error = network.forward(&x, None, Some(&state), Mode::Infer).unwrap_err();
    assert_eq!(error.to_string(), "a recurrent state has shape [3, 4]; it wants [2, 4]");
}
