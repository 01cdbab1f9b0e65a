//! Pictures hold what they should, for any scene.

use regard_tasks::picture::{self, Panel};
use regard_tasks::{Map, Maps, Scene};

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
    write("curves", picture::curves("translate, run 3", &[loss, bleu]));
}
