//! Answers that PyTorch 2.15 gave in double precision: the formulas are its formulas, the order of
//! the gates too. Inputs are sines of multiples of a number, which either side can write down.
#![allow(clippy::excessive_precision)]

use regard_kernels::step::reference;
use regard_kernels::{
    Activation, Adam, Cell, CrossEntropy, LayerNorm, Recurrent, RecurrentSeed, Sgd,
};

fn wave(n: usize, step: f64) -> Vec<f64> {
    (0..n).map(|at| (at as f64 * step).sin()).collect()
}

fn near(found: &[f64], known: &[f64]) {
    assert_eq!(found.len(), known.len());
    for (found, known) in found.iter().zip(known) {
        assert!((found - known).abs() < 1e-10, "{found} is not {known}");
    }
}

/// Two sequences of 3 and 2 steps: the outputs, and the gradients of w_hh, h0 and c0.
fn run(cell: Cell) -> [Vec<f64>; 5] {
    let (b, t, h, g) = (2, 3, 2, 2 * cell.gates());
    let (gates_x, w_hh, b_hh) = (wave(b * t * g, 0.5), wave(g * h, 0.7), wave(g, 0.3));
    let (h0, c0) = (wave(b * h, 0.9), wave(b * h, 1.1));
    let layer = Recurrent {
        cell,
        batch: b,
        steps: t,
        hidden: h,
        w_hh: &w_hh,
        b_hh: Some(&b_hh),
        h0: Some(&h0),
        c0: (cell == Cell::Lstm).then_some(&c0),
        lengths: Some(&[3, 2]),
        reverse: false,
    };
    let output = reference::recurrent(&gates_x, &layer);
    let grad_out = wave(b * t * h, 1.3);
    let seed = RecurrentSeed { out: Some(&grad_out), h: None, c: None };
    let grads = reference::recurrent_backward(&gates_x, &layer, seed);
    [output.out, output.c, grads.w_hh, grads.h0, grads.c0]
}

#[test]
fn a_gru_is_pytorchs() {
    let [out, _, w_hh, h0, _] = run(Cell::Gru);
    near(
        &out,
        &[
            0.22072076158720977,
            0.8321419626507431,
            -0.15257868590416868,
            0.6487646871495261,
            0.14609446724649677,
            0.7189869872921074,
            0.2393366505032143,
            0.6260903630772824,
            0.43071424175948536,
            0.7377383879585991,
            0.0,
            0.0,
        ],
    );
    near(
        &w_hh,
        &[
            0.005816348236315189,
            -0.01477187849045363,
            -0.06653739221592676,
            -0.1146239141806965,
            0.15918223797897807,
            0.29111955326359806,
            0.022666533937212845,
            -0.001630384101182868,
            0.06381399144064989,
            -0.014107172600709313,
            -0.15681324053459253,
            -0.21481883554408424,
        ],
    );
    near(
        &h0,
        &[-0.13595935363388428, 0.41740386078982944, 0.1136346030001339, -0.2750731599090576],
    );
}

#[test]
fn an_lstm_is_pytorchs() {
    let [out, c, w_hh, h0, c0] = run(Cell::Lstm);
    near(
        &out,
        &[
            0.4242214988705261,
            0.40835608478801866,
            0.32413952582200306,
            0.5908304865704481,
            0.2418247967144298,
            0.2724646024743691,
            0.705542378326189,
            0.36371423539234093,
            0.25325926076986904,
            0.4520103662285308,
            0.0,
            0.0,
        ],
    );
    near(
        &w_hh,
        &[
            0.0626101541756137,
            0.04238334298581013,
            -0.05988171163662391,
            -0.0395264944800372,
            -0.09107742025860702,
            -0.058915819972383196,
            -0.06324661987076831,
            -0.04185703429275464,
            -0.2818391157858141,
            -0.2787438010739299,
            -0.027714823690953527,
            -0.011219505890287718,
            0.014263097494615823,
            -0.025915203067546293,
            -0.0364145442627934,
            0.16133659724294452,
        ],
    );
    near(
        &h0,
        &[-0.08810743418134884, -0.19616073471878076, 0.032745696370888956, -0.013271127287727323],
    );
    near(&c, &[0.4208690256141437, 1.0843078473033971, 0.30225089790447146, 0.7541011987467268]);
    near(
        &c0,
        &[0.06682094241378167, 0.012509717084022045, 0.11555820811192971, 0.04290034064619799],
    );
}

#[test]
fn a_plain_rnn_is_pytorchs() {
    let [out, _, w_hh, h0, _] = run(Cell::Rnn);
    near(
        &out,
        &[
            0.4657529985910216,
            0.8959142860389947,
            0.8893137817644641,
            0.9872719000232095,
            0.9130092400371193,
            0.9895095431778221,
            0.39393189587809685,
            0.8546984764282276,
            -0.203317435259129,
            0.41693297804580765,
            0.0,
            0.0,
        ],
    );
    near(
        &w_hh,
        &[-0.08159725818670815, -0.6013919235210777, -0.4462147278245483, -0.4788390639851611],
    );
    near(&h0, &[0.1976948322253848, 0.1633811791486632, -0.19534456607653897, 0.03470877575401629]);
}

#[test]
fn cross_entropy_with_smoothing_and_an_ignored_row_is_pytorchs() {
    let logits: Vec<f64> = wave(8, 0.8).iter().map(|x| 3.0 * x).collect();
    let rule = CrossEntropy { label_smoothing: 0.1, ignore_index: Some(-100) };
    let (loss, lse) = reference::cross_entropy(&logits, &[2, -100], &rule);
    near(&loss, &[0.7393506178130662, 0.0]);
    near(
        &reference::cross_entropy_backward(&logits, &[2, -100], &rule, &lse, &[1.0, 1.0]),
        &[
            0.001846258616942275,
            0.2059484995670774,
            -0.3864678075626171,
            0.17867304937859735,
            0.0,
            0.0,
            0.0,
            0.0,
        ],
    );
}

#[test]
fn three_steps_of_each_optimizer_are_pytorchs() {
    let start: Vec<f64> = wave(3, 0.4).iter().map(|x| x + 1.0).collect();
    let grads = [1.0, 2.0, 3.0].map(|step| wave(3, step));
    for (decoupled, known) in [
        (true, [0.9411919999999999, 1.0294097885877234, 1.5283065308288013]),
        (false, [0.7015862869714917, 1.0994213347505282, 1.5464988571412743]),
    ] {
        let found: Vec<f64> = (0..3)
            .map(|at| {
                let [mut p, mut m, mut v] = [start[at], 0.0, 0.0];
                for (step, grad) in (1..).zip(&grads) {
                    let weight_decay = 0.2;
                    let adam = Adam { lr: 0.1, weight_decay, decoupled, step, ..Adam::default() };
                    [p, m, v] = reference::adam(&adam, p, grad[at], m, v);
                }
                p
            })
            .collect();
        near(&found, &known);
    }
    let sgd = Sgd { lr: 0.1, momentum: 0.9, nesterov: true, weight_decay: 0.2, ..Sgd::default() };
    let found: Vec<f64> = (0..3)
        .map(|at| {
            let [mut p, mut along] = [start[at], 0.0];
            for grad in &grads {
                [p, along] = reference::sgd(&sgd, p, grad[at], along);
            }
            p
        })
        .collect();
    near(&found, &[0.8445283279999999, 0.6344540714912791, 1.4088452047736368]);
}

#[test]
fn activations_and_their_slopes_are_pytorchs() {
    let x: Vec<f64> = wave(4, 0.8).iter().map(|x| 3.0 * x).collect();
    for (act, values, slopes) in [
        (
            Activation::Gelu,
            [0.0, 2.1182894332303706, 2.9946558088616455, 1.983100914799014],
            [0.5, 1.0690405744382918, 1.0119853858882744, 1.0823835085617102],
        ),
        (
            Activation::GeluTanh,
            [0.0, 2.118517223725643, 2.9950685726669923, 1.9832217841943502],
            [0.5, 1.0698594194068276, 1.0116248605760978, 1.0832517894900247],
        ),
        (
            Activation::Silu,
            [0.0, 1.9279559524281116, 2.856330461187417, 1.790396391374915],
            [0.5, 1.096635578083528, 1.0881454316955503, 1.0920494951909168],
        ),
        (
            Activation::Elu { alpha: 1.5 },
            [0.0, 2.1520682726985685, 2.9987208091245154, 2.026389541653452],
            [1.5, 1.0, 1.0, 1.0],
        ),
        (
            Activation::LeakyRelu { slope: 0.2 },
            [0.0, 2.1520682726985685, 2.9987208091245154, 2.026389541653452],
            [0.2, 1.0, 1.0, 1.0],
        ),
    ] {
        near(&reference::pointwise(&x, None, act), &values);
        near(&reference::pointwise_backward(&x, None, act, &[1.0; 4]).0, &slopes);
    }
}

#[test]
fn layer_norm_is_pytorchs() {
    let gamma: Vec<f64> = wave(3, 0.5).iter().map(|x| x + 1.0).collect();
    let (x, beta) = (wave(6, 0.8), wave(3, 0.2));
    let norm = LayerNorm { width: 3, gamma: Some(&gamma), beta: Some(&beta), eps: 1e-5 };
    near(
        &reference::layer_norm(&x, &norm).0,
        &[
            -1.3601245369055237,
            0.7086419557986315,
            2.2592749392785016,
            1.2346939070172123,
            0.16880954882654353,
            -1.8470675861243107,
        ],
    );
    let [grad_x, grad_gamma, _] = reference::layer_norm_backward(&x, &norm, &wave(6, 1.3));
    near(
        &grad_x,
        &[
            -0.31323083712008476,
            1.1091270651012175,
            -0.795896227981133,
            0.6528120527522809,
            -1.3387750112196528,
            0.685962958467371,
        ],
    );
    near(&grad_gamma, &[-0.849180686197083, 0.349979128417817, 0.26218214598405604]);
}
