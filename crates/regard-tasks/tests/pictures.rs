//! Pictures hold what they should, for any scene.

use regard_tasks::picture::{self, Comparison, Panel, Variant};
use regard_tasks::{CurveScene, GraphScene, ImageScene, Map, Maps, Scene};

fn labels(count: usize, word: &str) -> Vec<String> {
    (0..count).map(|i| format!("{word}{i}")).collect()
}

fn maps(rows: usize, columns: usize, heads: usize) -> Scene {
    let map = |head: usize| {
        let weight = |i: usize| {
            let (row, column) = (i / columns, i % columns);
            (-((row as f32 - column as f32 - head as f32).abs() / 2.0)).exp()
        };
        let name = format!("layer {}, head {}", head / 4 + 1, head % 4 + 1);
        Map::new(name, (0..rows * columns).map(weight).collect())
    };
    Scene::Maps(Maps {
        row_axis: "output".into(),
        column_axis: "source".into(),
        rows: labels(rows, "row "),
        columns: labels(columns, "column "),
        maps: (0..heads).map(map).collect(),
    })
}

fn graph(nodes: usize, heads: usize) -> Scene {
    let mut edges: Vec<(usize, usize)> = (0..nodes).map(|i| (i, i)).collect();
    for i in 1..nodes {
        edges.extend([(i, i / 2), (i / 2, i), (i, i * 7 % (nodes / 2 + 1))]);
    }
    let weight = |head: usize| {
        (0..edges.len()).map(|i| ((i * 37 + head * 11) % 100) as f32 / 100.0).collect()
    };
    Scene::Graph(GraphScene {
        nodes: labels(nodes, "node "),
        classes: (0..nodes).map(|i| (i % 5 > 0).then_some(i % 4)).collect(),
        class_names: ["theory", "neural networks", "genetic", "事例"].map(String::from).to_vec(),
        centre: Some(3),
        maps: (0..heads).map(|head| Map::new(format!("head {}", head + 1), weight(head))).collect(),
        edges,
    })
}

fn image(heads: usize) -> Scene {
    let weight = |head: usize| {
        let distance = |i: usize| (i % 7).abs_diff(head % 7) + (i / 7).abs_diff(3);
        (0..49).map(|i| (-(distance(i) as f32)).exp()).collect()
    };
    let inside = |i: usize| {
        let (x, y) = (i % 28, i / 28);
        if (x as f32 - 14.0).hypot(y as f32 - 14.0) < 9.0 { 0.9 } else { 0.1 }
    };
    Scene::Image(ImageScene {
        width: 28,
        height: 28,
        channels: 1,
        pixels: (0..28 * 28).map(inside).collect(),
        columns: 7,
        rows: 7,
        maps: (0..heads)
            .map(|head| {
                Map::new(format!("layer {}, head {}", head / 4 + 1, head % 4 + 1), weight(head))
            })
            .collect(),
    })
}

fn curve(kernels: usize) -> Scene {
    let truth = |x: f32| 2.0 * x.sin() + x.powf(0.8);
    let x: Vec<f32> = (0..50).map(|i| 5.0 * ((i * 31 % 50) as f32 / 50.0)).collect();
    let at: Vec<f32> = (0..100).map(|i| i as f32 / 20.0).collect();
    let kernel = |width: f32| {
        let weights =
            at.iter().flat_map(|a| x.iter().map(move |b| (-((a - b) * width).powi(2)).exp()));
        Map::new(format!("width {width}"), weights.collect())
    };
    Scene::Curve(CurveScene {
        y: x.iter()
            .enumerate()
            .map(|(i, &x)| truth(x) + 0.4 * ((i * 17 % 11) as f32 / 5.0 - 1.0))
            .collect(),
        curve: at.iter().map(|&x| truth(x) * 0.9).collect(),
        truth: Some(at.iter().map(|&x| truth(x)).collect()),
        maps: (0..kernels).map(|i| kernel(1.0 + i as f32)).collect(),
        at,
        x,
    })
}

#[test]
fn look() {
    let Ok(folder) = std::env::var("LOOK") else { return };
    let write = |name: &str, svg: String| {
        std::fs::write(format!("{folder}/{name}.svg"), &svg).unwrap();
        std::fs::write(format!("{folder}/{name}.png"), picture::png(&svg, 1.0).unwrap()).unwrap();
    };
    let zh = Scene::Maps(Maps {
        row_axis: "output".into(),
        column_axis: "source".into(),
        rows: ["我", "昨天", "在", "花园", "里", "看见", "一只", "小", "猫", "。"]
            .map(String::from)
            .to_vec(),
        columns: ["I", "saw", "a", "small", "cat", "in", "the", "garden", "yesterday", "."]
            .map(String::from)
            .to_vec(),
        maps: match maps(10, 10, 1) {
            Scene::Maps(m) => m.maps,
            _ => vec![],
        },
    });
    write(
        "zh",
        picture::svg(&zh, "Alignment of “I saw a small cat in the garden yesterday .”", None),
    );
    write("m30", picture::svg(&maps(30, 24, 1), "Self-attention", None));
    write("m500", picture::svg(&maps(500, 500, 1), "Long self-attention", None));
    write("heads", picture::svg(&maps(10, 12, 8), "All heads", None));
    write("heads500", picture::svg(&maps(500, 500, 8), "All heads", None));
    write("row", picture::svg(&maps(1, 20, 1), "Pooling", None));
    let points =
        |f: &dyn Fn(f64) -> f64| (1..=20).map(|i| (i as f64, f(i as f64))).collect::<Vec<_>>();
    let loss = Panel::new("loss", "epoch")
        .line("training", &points(&|x| 4.0 / x + 0.5))
        .line("validation", &points(&|x| 4.0 / x + 0.8 + 0.01 * x));
    let bleu = Panel::new("BLEU", "epoch")
        .line("validation", &points(&|x| 31.0 - 30.0 / x))
        .mark(18.0, "best: 29.3");
    write("graph", picture::svg(&graph(34, 1), "Karate-like", None));
    write("graphs", picture::svg(&graph(34, 4), "All heads", None));
    write("graph300", picture::svg(&graph(300, 1), "Many nodes", None));
    write("image", picture::svg(&image(1), "A disc, taken for a disc", None));
    write("images", picture::svg(&image(8), "A disc, taken for a disc", None));
    write("curve", picture::svg(&curve(1), "y = 2 sin x + x^0.8", None));
    let words = ["NOUN", "VERB", "ADJ", "ADV", "PRON", "DET", "ADP", "NUM", "X"].map(String::from);
    let counts: Vec<Vec<usize>> = (0..9)
        .map(|i| {
            (0..9).map(|j| if i == j { 1200 + i * 100 } else { (i * 7 + j * 3) % 40 }).collect()
        })
        .collect();
    write("confusion", picture::confusion("UPOS, test", &words, &counts));
    let variant = |name: &str, base: f64| Variant {
        name: name.into(),
        values: vec![base, base + 0.8, base - 0.5],
        by_bucket: (0..6).map(|i| base + 4.0 - i as f64 * 30.0 / base).collect(),
    };
    write(
        "comparison",
        picture::comparison(
            "translate: Multi30k de→en",
            &Comparison {
                metric: "BLEU".into(),
                variants: vec![
                    variant("fixed vector", 20.0),
                    variant("additive", 31.0),
                    variant("dot", 30.2),
                    variant("Transformer", 36.9),
                ],
                bucket_axis: "source length".into(),
                buckets: ["1–5", "6–10", "11–15", "16–20", "21–25", "> 25"]
                    .map(String::from)
                    .to_vec(),
            },
        ),
    );
    write("curves", picture::curves("translate, run 3", &[loss, bleu]));
}
