//! Pictures hold what they should, for any scene.

use regard_picture::picture;
use regard_picture::picture::{Buckets, Caption, Comparison, Cost, Panel, Variant};
use regard_picture::scene::WeightsFile;
use regard_picture::scene::{CurveScene, GraphScene, ImageScene, Map, Maps, Scene, SoundScene};
use resvg::usvg::roxmltree::{Document, Node};

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
        center: Some(3),
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
        query: Some(2.0),
        at,
        x,
    })
}

fn sound(rows: usize) -> Scene {
    let (frames, bands) = (120, 20);
    let energy = |i: usize| ((i / bands) as f32 / 9.0).sin() * (i % bands) as f32 - 3.0;
    let weight = |i: usize| (-((i % frames) as f32 - 30.0 * (1 + i / frames) as f32).abs()).exp();
    Scene::Sound(SoundScene {
        spectrogram: (0..frames * bands).map(energy).collect(),
        features: bands,
        step: 0.01,
        unit: "seconds".into(),
        key_step: 0.01,
        weights: Maps {
            row_axis: "answer".into(),
            column_axis: "time".into(),
            rows: labels(rows, "answer "),
            columns: SoundScene::times(frames, 0.01),
            maps: vec![Map::new("share", (0..rows * frames).map(weight).collect())],
        },
        tracks: Vec::new(),
        moment: None,
    })
}

/// A text of so many words under so many heads.
fn text(words: usize, heads: usize) -> Scene {
    let weight = |i: usize, head: usize| ((i * 37 + head * 11) % 100) as f32 / 100.0;
    Scene::Maps(Maps {
        row_axis: "answer".into(),
        column_axis: "input".into(),
        rows: vec!["good".into()],
        columns: labels(words, "word"),
        maps: (0..heads)
            .map(|head| {
                let weights = (0..words).map(|i| weight(i, head)).collect();
                Map::new(format!("head {}", head + 1), weights)
            })
            .collect(),
    })
}

fn scenes() -> Vec<Scene> {
    vec![
        maps(6, 9, 1),
        maps(6, 9, 8),
        graph(34, 4),
        image(1),
        image(8),
        curve(1),
        curve(2),
        sound(1),
        sound(5),
        text(60, 2),
    ]
}

fn caption() -> Caption {
    Caption {
        title: "label: self-attention".into(),
        model: "runs/label".into(),
        input: "I saw a saw".into(),
        prediction: "I/PRON saw/VERB".into(),
        truth: "I/PRON saw/NOUN".into(),
    }
}

fn attribute(node: Node<'_, '_>, name: &str) -> f64 {
    node.attribute(name).and_then(|value| value.parse().ok()).unwrap_or_default()
}

/// One row and columns with these labels.
fn labeled(columns: &[&str]) -> Scene {
    Scene::Maps(Maps {
        row_axis: "output".into(),
        column_axis: "source".into(),
        rows: vec!["row".into()],
        columns: columns.iter().map(|&text| text.into()).collect(),
        maps: vec![Map::new("map", vec![0.5; columns.len()])],
    })
}

fn texts(svg: &str) -> Vec<String> {
    let document = Document::parse(svg).expect("the drawing is XML");
    let texts = document.descendants().filter(|node| node.has_tag_name("text"));
    texts.map(|node| node.text().unwrap_or_default().to_owned()).collect()
}

/// How many pixels are neither white nor nearly so.
fn ink(png: &[u8]) -> usize {
    let image = image::load_from_memory(png).expect("the picture is PNG").to_luma8();
    image.pixels().filter(|pixel| pixel.0[0] < 200).count()
}

/// Columns of a terminal; only Chinese is wide in these tests.
fn columns(line: &str) -> usize {
    let mut is_escape = false;
    let mut count = 0;
    for c in line.chars() {
        match c {
            '\x1b' => is_escape = true,
            'm' if is_escape => is_escape = false,
            _ if is_escape => {}
            '\u{3000}'..='\u{9fff}' => count += 2,
            _ => count += 1,
        }
    }
    count
}

#[test]
fn every_scene_is_drawn_whole_and_map_by_map() {
    for scene in scenes() {
        let every = (0..scene.maps().len()).map(Some).chain([None]);
        for which in every {
            let svg = picture::svg(&scene, "a title", which);
            assert!(texts(&svg).contains(&"a title".to_owned()));
            assert!(ink(&picture::png(&svg, 0.5).unwrap()) > 500);
        }
    }
}

#[test]
fn a_picture_is_as_large_as_it_is_asked_for() {
    let svg = picture::svg(&maps(3, 3, 1), "", None);
    let size = |scale| {
        let image = image::load_from_memory(&picture::png(&svg, scale).unwrap()).unwrap();
        [image.width(), image.height()]
    };
    assert_eq!(size(2.0), size(1.0).map(|side| 2 * side));
    for scale in [0.0, -1.0, f32::NAN, 1e6] {
        let refusal = picture::png(&svg, scale).unwrap_err().to_string();
        assert!(refusal.contains("pixels cannot be made"), "{refusal}");
    }
    let refusal = picture::png("no drawing", 1.0).unwrap_err().to_string();
    assert!(refusal.contains("is not SVG"), "{refusal}");
}

#[test]
fn labels_come_through_as_they_are() {
    let strange = ["<b>&amp;", "\"quoted\"", "it's", "花园", "a\tb\u{0}", "</script>", "\u{fffe}"];
    let scene = labeled(&strange);
    let drawn = texts(&picture::svg(&scene, "A & <B>", None));
    for text in ["A & <B>", "<b>&amp;", "\"quoted\"", "it's", "花园", "a b ", "</script>"] {
        assert!(drawn.iter().any(|label| label == text), "{text:?} is not in {drawn:?}");
    }
    let page = picture::page(&scene, "A & <B>");
    let (_, data) = page.split_once("type=\"application/json\">").unwrap();
    let (data, _) = data.split_once("</script>").unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["columns"], serde_json::json!(strange));
    assert!(page.contains("<h1>A &amp; &lt;B&gt;</h1>"));
    picture::png(&picture::svg(&scene, "A & <B>", None), 1.0).unwrap();
}

#[test]
fn a_chinese_label_is_drawn_with_its_own_strokes() {
    let drawn =
        |label: &str| ink(&picture::png(&picture::svg(&labeled(&[label]), "", None), 2.0).unwrap());
    // 一 is one stroke, 龘 forty-eight: boxes in place of both would have the same ink.
    assert!(drawn("龘龘") > drawn("一一") + 200);
}

#[test]
fn a_weight_that_is_not_a_number_is_said_to_be_none() {
    let mut scene = labeled(&["a", "b", "c"]);
    let Scene::Maps(maps) = &mut scene else { unreachable!() };
    maps.maps[0].weights = vec![f32::NAN, 0.25, f32::INFINITY];
    let svg = picture::svg(&scene, "", None);
    assert_eq!(svg.matches("not a number").count(), 2);
    assert!(svg.contains("row → b: 0.250"));
    assert!(picture::terminal(&scene, 0, 80, false).contains("row ??██??"));
    assert!(picture::numbers_json(&scene).contains("[null,0.25,null]"));
    // 65535, 65533 (the greatest), 65535, low byte first.
    assert!(picture::page(&scene, "").contains("\"///9////\""));
}

#[test]
fn a_masked_weight_is_hatched_and_named_in_every_form_and_a_zero_is_not() {
    let hides = |maps: &mut Maps, hidden: &[usize]| {
        let cells = maps.rows.len() * maps.columns.len();
        for map in &mut maps.maps {
            let flags = (0..cells).map(|place| hidden.contains(&place)).collect();
            *map = map.clone().hiding(flags);
        }
    };
    // One large map, several small ones, and some that become images.
    for (rows, columns, heads) in [(5, 6, 1), (5, 6, 4), (30, 40, 2), (300, 300, 4)] {
        let mut scene = maps(rows, columns, heads);
        let Scene::Maps(all) = &mut scene else { unreachable!() };
        all.maps.iter_mut().for_each(|map| map.weights[0] = 0.0);
        let plain = scene.clone();
        let Scene::Maps(all) = &mut scene else { unreachable!() };
        hides(all, &[1]);
        let what = format!("{rows} × {columns}, {heads} maps");
        let [with, without] = [&scene, &plain].map(|scene| picture::svg(scene, "", None));
        assert!(with.contains("hatched: masked") && !without.contains("hatched"), "{what}");
        let small = with.matches("#aab2bb").count();
        assert_eq!(small, if rows < 100 { heads } else { 0 }, "{what}: lines of hatching");
        assert_eq!(without.matches("#aab2bb").count(), 0, "{what}");
        let [with, without] = [&scene, &plain].map(|scene| picture::terminal(scene, 0, 200, false));
        assert_eq!((with.contains('╱'), without.contains('╱')), (true, false), "{what}");
        let [with, without] = [&scene, &plain].map(picture::numbers_json);
        assert!(with.contains("\"masked\":[false,true,false"), "{what}");
        assert!(!without.contains("masked"), "{what}");
        let [with, without] = [&scene, &plain].map(|scene| picture::page(scene, ""));
        assert_ne!(with, without, "{what}");
    }
}

#[test]
fn what_is_masked_is_still_masked_once_its_numbers_are_read_again() {
    let mut scene = maps(3, 4, 2);
    let Scene::Maps(all) = &mut scene else { unreachable!() };
    let hidden: Vec<bool> = (0..12).map(|place| place % 4 > place / 4).collect();
    all.maps[1] = all.maps[1].clone().hiding(hidden.clone());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weights.safetensors");
    std::fs::write(&path, picture::numbers(&scene).unwrap()).unwrap();
    let read = WeightsFile::default().scene(&path).unwrap();
    assert!(read.maps()[0].masked.is_empty());
    assert_eq!(read.maps()[1].masked, hidden);
}

#[test]
fn every_row_and_column_of_small_maps_is_named_where_they_fit_on_a_sheet() {
    for (rows, columns, heads) in [(1, 4, 2), (8, 8, 8), (11, 28, 4), (20, 40, 6), (40, 40, 2)] {
        let what = format!("{rows} × {columns}, {heads} maps");
        let svg = picture::svg(&maps(rows, columns, heads), "", None);
        let said = texts(&svg);
        let named = |word: &str| {
            let mut found: Vec<&String> =
                said.iter().filter(|text| text.starts_with(word)).collect();
            found.sort();
            found.dedup();
            found.len()
        };
        assert_eq!((named("row "), named("column ")), (rows, columns), "{what}");
        assert!(!svg.contains("is named"), "{what}");
    }
    // Few cells have room for their numbers.
    let said = texts(&picture::svg(&maps(1, 4, 2), "", None));
    assert!(said.iter().filter(|text| text.starts_with('.')).count() >= 4, "{said:?}");
}

#[test]
fn what_is_empty_or_does_not_fit_is_drawn_without_a_panic() {
    let mut odd = scenes();
    for scene in &mut odd {
        match scene {
            Scene::Maps(scene) => scene.rows.push("one more".into()),
            Scene::Graph(scene) => {
                scene.edges.push((1000, 0));
                scene.center = Some(1000);
                scene.classes.truncate(3);
            }
            Scene::Image(scene) => scene.pixels.truncate(100),
            Scene::Curve(scene) => scene.x.push(f32::NAN),
            Scene::Sound(scene) => scene.spectrogram.truncate(7),
        }
    }
    for scene in scenes() {
        let mut unnumbered = scene.clone();
        let mut empty = scene;
        match (&mut unnumbered, &mut empty) {
            (Scene::Maps(a), Scene::Maps(b)) => {
                a.maps.iter_mut().for_each(|map| map.weights.fill(f32::NAN));
                b.rows.clear();
            }
            (Scene::Graph(a), Scene::Graph(b)) => {
                a.maps.iter_mut().for_each(|map| map.weights.fill(f32::NAN));
                (b.nodes, b.edges) = (Vec::new(), Vec::new());
            }
            (Scene::Image(a), Scene::Image(b)) => {
                a.maps.iter_mut().for_each(|map| map.weights.fill(f32::NAN));
                (b.width, b.height, b.rows, b.columns) = (0, 0, 0, 0);
            }
            (Scene::Curve(a), Scene::Curve(b)) => {
                a.maps.iter_mut().for_each(|map| map.weights.fill(f32::NAN));
                (b.x, b.y, b.at, b.curve, b.truth) = Default::default();
            }
            (Scene::Sound(a), Scene::Sound(b)) => {
                a.spectrogram.fill(f32::NAN);
                (b.features, b.step) = (0, 0.0);
                b.weights.columns.clear();
            }
            _ => unreachable!(),
        }
        odd.extend([unnumbered, empty]);
    }
    odd.extend([maps(0, 0, 0), maps(0, 5, 2), maps(5, 0, 2), graph(1, 1)]);
    for scene in odd {
        for which in [None, Some(0), Some(99)] {
            picture::png(&picture::svg(&scene, "", which), 0.3).unwrap();
        }
        for (width, color) in [(0, false), (7, true), (80, true)] {
            picture::terminal(&scene, 0, width, color);
        }
        assert!(picture::page(&scene, "t").contains("</html>"));
        picture::numbers_json(&scene);
    }
    assert!(picture::svg(&maps(2, 2, 3), "", Some(3)).contains("There are 3 maps only."));
}

#[test]
fn five_hundred_tokens_take_an_image_for_each_head_and_no_element_for_each_cell() {
    let scene = maps(500, 500, 8);
    let (svg, page) = (picture::svg(&scene, "", None), picture::page(&scene, ""));
    assert!(svg.len() < 3_000_000, "{} bytes", svg.len());
    let document = Document::parse(&svg).unwrap();
    let elements: Vec<_> = document.descendants().filter(|node| node.is_element()).collect();
    // Eight heads and the legend.
    assert_eq!(elements.iter().filter(|node| node.has_tag_name("image")).count(), 8 + 1);
    assert!(elements.len() < 1_000, "{} elements", elements.len());
    assert!(page.len() < 8 * 700_000 + 50_000, "{} bytes", page.len());
    for fetched in ["https://", "src=\"", "<link", "@import", "fetch("] {
        assert!(!page.contains(fetched), "the page fetches something: {fetched}");
    }
    let png = picture::png(&picture::svg(&scene, "", Some(0)), 1.0).unwrap();
    assert!(ink(&png) > 500);
}

#[test]
fn labels_of_many_columns_do_not_touch() {
    for count in [5, 40, 100, 500] {
        let svg = picture::svg(&maps(5, count, 1), "", None);
        let document = Document::parse(&svg).unwrap();
        let labels = document.descendants().filter(|node| {
            node.has_tag_name("text") && node.text().is_some_and(|text| text.starts_with("column "))
        });
        let places: Vec<f64> =
            labels.map(|node| node.attribute("x").unwrap().parse().unwrap()).collect();
        assert!(places.len() >= count.min(30), "{} of {count}", places.len());
        for pair in places.windows(2) {
            assert!(pair[1] - pair[0] >= 12.0, "{pair:?}");
        }
    }
}

#[test]
fn the_terminal_is_never_wider_than_asked() {
    let mut all = scenes();
    all.extend([labeled(&["花园"; 30]), labeled(&["花园", "garden"]), maps(4, 300, 1)]);
    for scene in all {
        for width in [20, 33, 80, 120] {
            for color in [false, true] {
                for line in picture::terminal(&scene, 0, width, color).lines() {
                    assert!(
                        columns(line) <= width,
                        "{} columns for {width}: {line}",
                        columns(line)
                    );
                }
            }
        }
    }
}

#[test]
fn chinese_rows_line_up_in_the_terminal() {
    let Scene::Maps(mut scene) = maps(3, 3, 1) else { unreachable!() };
    scene.rows = ["我", "昨天", "garden"].map(String::from).to_vec();
    scene.maps[0].weights = vec![1.0; 9];
    let drawn = picture::terminal(&Scene::Maps(scene), 0, 60, false);
    let rows: Vec<&str> = drawn.lines().filter(|line| line.ends_with("██████")).collect();
    assert_eq!(rows, ["我     ██████", "昨天   ██████", "garden ██████"]);
}

#[test]
fn columns_too_narrow_for_chinese_get_numbers_and_a_key() {
    let drawn = picture::terminal(&labeled(&["花园"; 30]), 0, 40, false);
    assert!(drawn.contains("1 花园  2 花园"), "{drawn}");
}

#[test]
fn a_heavier_edge_is_wider_and_listed_first() {
    let scene = Scene::Graph(GraphScene {
        nodes: labels(3, "node "),
        classes: vec![None; 3],
        class_names: Vec::new(),
        center: Some(0),
        edges: vec![(0, 1), (0, 2), (1, 2)],
        maps: vec![Map::new("head", vec![0.1, 0.8, 0.9])],
    });
    let svg = picture::svg(&scene, "", None);
    let document = Document::parse(&svg).unwrap();
    let width = |title: &str| -> f64 {
        let group = document.descendants().find(|node| {
            node.children().any(|child| child.has_tag_name("title") && child.text() == Some(title))
        });
        let path = group.unwrap().children().find(|child| child.has_tag_name("path")).unwrap();
        path.attribute("stroke-width").unwrap().parse().unwrap()
    };
    assert!(width("node 0 → node 2: 0.800") > 2.0 * width("node 0 → node 1: 0.100"));
    let drawn = picture::terminal(&scene, 0, 60, false);
    let lines: Vec<&str> = drawn.lines().collect();
    assert!(lines[1].starts_with("node 0 → node 2 0.800") && lines[2].contains("0.100"), "{drawn}");
    assert_eq!(lines.len(), 3, "only the center's edges are listed: {drawn}");
}

#[test]
fn the_same_scene_gives_the_same_bytes() {
    for scene in scenes() {
        assert_eq!(picture::svg(&scene, "t", None), picture::svg(&scene, "t", None));
        assert_eq!(picture::page(&scene, "t"), picture::page(&scene, "t"));
        assert_eq!(picture::numbers(&scene).unwrap(), picture::numbers(&scene).unwrap());
    }
}

#[test]
fn the_raw_numbers_can_be_read_again() {
    let scene = maps(3, 4, 2);
    let bytes = picture::numbers(&scene).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let weights = file.tensor("weights").unwrap();
    assert_eq!(weights.shape(), [2, 3, 4]);
    let last = f32::from_le_bytes(weights.data()[92..].try_into().unwrap());
    assert_eq!(last, scene.maps()[1].weights[11]);
    let (_, header) = safetensors::SafeTensors::read_metadata(&bytes).unwrap();
    let names = &header.metadata().as_ref().unwrap()["labels"];
    let names: serde_json::Value = serde_json::from_str(names).unwrap();
    assert_eq!(names["maps"], serde_json::json!(["layer 1, head 1", "layer 1, head 2"]));
    assert_eq!(names["columns"], serde_json::json!(labels(4, "column ")));
    for (scene, tensor, shape) in [
        (graph(9, 2), "edges", vec![33, 2]),
        (image(2), "pixels", vec![28, 28, 1]),
        (curve(1), "truth", vec![100]),
    ] {
        let bytes = picture::numbers(&scene).unwrap();
        let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        assert_eq!(file.tensor(tensor).unwrap().shape(), shape);
    }
    let read: serde_json::Value = serde_json::from_str(&picture::numbers_json(&scene)).unwrap();
    assert_eq!((&read["kind"], &read["rows"][2]), (&"maps".into(), &"row 2".into()));
}

#[test]
fn numbers_that_do_not_fill_their_shape_are_refused() {
    let Scene::Maps(mut scene) = maps(3, 4, 2) else { unreachable!() };
    scene.maps[1].weights.pop();
    let refusal = picture::numbers(&Scene::Maps(scene)).unwrap_err().to_string();
    assert_eq!(refusal, "map \"layer 1, head 2\" has 11 weights, 12 are needed");
}

#[test]
fn a_page_keeps_three_digits_of_each_weight() {
    let mut scene = labeled(&["a", "b"]);
    let Scene::Maps(maps) = &mut scene else { unreachable!() };
    maps.maps[0].weights = vec![0.25, 1.0];
    // 16383 (a quarter of 65533, rounded) and 65533, low byte first.
    assert!(picture::page(&scene, "").contains("\"/z/9/w==\""));
}

#[test]
fn training_curves_name_their_lines_and_survive_any_number() {
    let loss = Panel::new("loss", "epoch")
        .line("training", &[(1.0, 4.0), (2.0, f64::NAN), (3.0, 1.0)])
        .line("validation", &[(1.0, 3.0), (3.0, 2.0)]);
    let bleu = Panel::new("BLEU", "epoch").line("validation", &[(1.0, 7.0)]).mark(1.0, "best: 7");
    let svg = picture::curves("run 1", &[loss, bleu]);
    let drawn = texts(&svg);
    for text in ["run 1", "loss", "BLEU", "training", "validation", "epoch", "best: 7"] {
        assert!(drawn.iter().any(|label| label == text), "{text:?} is not in {drawn:?}");
    }
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
    for panels in [vec![], vec![Panel::new("", "")]] {
        picture::png(&picture::curves("", &panels), 1.0).unwrap();
    }
    let wild = Panel::new("loss", "step").line("a", &[(0.0, 1e300), (1e9, -1e300), (2e9, 1e-300)]);
    picture::png(&picture::curves("", &[wild.mark(f64::INFINITY, "")]), 1.0).unwrap();
}

#[test]
fn a_confusion_shows_each_count() {
    let names = ["cat", "dog", "猫"].map(String::from);
    let drawn = texts(&picture::confusion("test", &names, &[vec![41, 2, 0], vec![3, 52]]));
    for text in ["41", "2", "3", "52", "猫", "truth", "predicted"] {
        assert!(drawn.iter().any(|label| label == text), "{text:?} is not in {drawn:?}");
    }
    picture::png(&picture::confusion("", &[], &[]), 1.0).unwrap();
    picture::png(&picture::confusion("", &labels(200, "label "), &[]), 1.0).unwrap();
}

#[test]
fn a_comparison_shows_means_spreads_and_buckets() {
    let variant = |name: &str, values: &[f64]| Variant { name: name.into(), values: values.into() };
    let buckets = |axis: &str| Buckets {
        metric: if axis == "place" { "accuracy" } else { "BLEU" }.into(),
        axis: axis.into(),
        names: ["1–10", "11–20", "> 20"].map(String::from).to_vec(),
        values: vec![vec![30.0, f64::NAN, 10.0]; 2],
    };
    let comparison = Comparison {
        metric: "BLEU".into(),
        variants: vec![variant("additive", &[29.0, 31.0]), variant("none", &[])],
        buckets: ["source length", "place"].map(buckets).to_vec(),
        costs: vec![Cost {
            name: "time".into(),
            values: vec![(3.0, "3 s".into()), (0.0, "0 s".into())],
        }],
    };
    let svg = picture::comparison("compare", &comparison);
    let drawn = texts(&svg);
    for text in [
        "30.0 ± 1.4",
        "additive",
        "time",
        "3 s",
        "no value",
        "11–20",
        "BLEU by source length",
        "accuracy by place",
    ] {
        assert!(drawn.iter().any(|label| label == text), "{text:?} is not in {drawn:?}");
    }
    assert!(!svg.contains("NaN"));
    picture::png(&picture::comparison("", &Comparison::default()), 1.0).unwrap();
}

#[test]
fn every_picture_says_model_input_prediction_and_truth() {
    for scene in scenes() {
        let every = (0..scene.maps().len()).map(Some).chain([None]);
        let drawn: Vec<Vec<String>> =
            every.map(|which| texts(&picture::svg(&scene, caption(), which))).collect();
        let page = picture::page(&scene, caption());
        for text in ["runs/label", "I saw a saw", "I/PRON saw/VERB", "I/PRON saw/NOUN"] {
            assert!(drawn.iter().all(|texts| texts.iter().any(|t| t == text)), "{text}: {drawn:?}");
            assert!(page.contains(&format!("<dd>{text}</dd>")), "{text} is not in the page");
        }
    }
}

#[test]
fn a_title_takes_two_lines_at_most_and_says_that_it_is_cut() {
    let long = "attention is what is left when all else has been looked away from ".repeat(200);
    for scene in scenes() {
        let caption = Caption { title: long.clone(), input: long.clone(), ..caption() };
        let svg = picture::svg(&scene, &caption, None);
        let document = Document::parse(&svg).unwrap();
        let lines = document.descendants().filter(|node| {
            node.text().is_some_and(|text| text.contains("attention is what"))
                || node.text().is_some_and(|text| text.contains("looked away"))
        });
        let lines: Vec<_> = lines.filter(|node| node.has_tag_name("text")).collect();
        let of_size = |size: f64| {
            let of_size = lines.iter().filter(|node| attribute(**node, "font-size") == size);
            of_size.map(|node| node.text().unwrap()).collect::<Vec<_>>()
        };
        for lines in [of_size(16.0), of_size(12.0)] {
            assert_eq!(lines.len(), 2, "{lines:?}");
            assert!(lines[1].ends_with('…'), "{lines:?}");
        }
    }
}

#[test]
fn a_text_is_drawn_as_running_text_with_every_word_on_its_color() {
    let svg = picture::svg(&text(300, 1), "", None);
    let document = Document::parse(&svg).unwrap();
    assert!(attribute(document.root_element(), "width") < 900.0);
    let words: Vec<Node<'_, '_>> = document
        .descendants()
        .filter(|node| node.has_tag_name("text"))
        .filter(|node| node.text().is_some_and(|text| text.starts_with("word")))
        .collect();
    let written: Vec<&str> = words.iter().filter_map(|node| node.text()).collect();
    assert_eq!(written, labels(300, "word"));
    // Below each other, and never beyond the paper.
    let lines: std::collections::BTreeSet<i64> =
        words.iter().map(|node| attribute(*node, "y") as i64).collect();
    assert!(lines.len() > 20, "{} lines", lines.len());
    assert!(words.iter().all(|node| attribute(*node, "x") < 800.0));
    // word27 weighs .99, word0 nothing.
    let fill = |title: &str| {
        let group = document.descendants().find(|node| {
            node.children().any(|child| child.has_tag_name("title") && child.text() == Some(title))
        });
        let rect = group.unwrap().children().find(|child| child.has_tag_name("rect")).unwrap();
        light(rect.attribute("fill").unwrap())
    };
    assert!(fill("word27: 0.990") + 0.4 < fill("word0: 0.000"));
}

/// WCAG's relative luminance of `#rrggbb`.
fn light(hex: &str) -> f64 {
    let linear = |at: usize| {
        let value =
            f64::from(u8::from_str_radix(&hex[at..at + 2], 16).expect("two hexadecimal digits"))
                / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * linear(1) + 0.7152 * linear(3) + 0.0722 * linear(5)
}

fn contrast(a: &str, b: &str) -> f64 {
    let (a, b) = (light(a), light(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

#[test]
fn every_text_has_a_contrast_of_4_5_to_what_is_under_it() {
    let confusion = picture::confusion("test", &labels(4, "label "), &[vec![9, 2], vec![3, 5, 1]]);
    let panel = Panel::new("loss", "epoch").line("training", &[(1.0, 2.0), (2.0, 1.0)]);
    let drawn = scenes().into_iter().map(|scene| picture::svg(&scene, caption(), None));
    let ones = scenes().into_iter().map(|scene| picture::svg(&scene, caption(), Some(0)));
    let others = [confusion, picture::curves("run", &[panel.mark(1.0, "best")])];
    let mut checked = 0;
    for svg in drawn.chain(ones).chain(others) {
        let document = Document::parse(&svg).unwrap();
        let mut under: Vec<([f64; 4], String)> = Vec::new();
        for node in document.descendants() {
            let fill = node.attribute("fill").filter(|fill| fill.starts_with('#'));
            match (node.tag_name().name(), fill) {
                ("rect", Some(fill)) => {
                    let [x, y, w, h] = ["x", "y", "width", "height"].map(|n| attribute(node, n));
                    under.push(([x, y, x + w, y + h], fill.into()));
                }
                ("circle", Some(fill)) => {
                    let [x, y, r] = ["cx", "cy", "r"].map(|n| attribute(node, n));
                    under.push(([x - r, y - r, x + r, y + r], fill.into()));
                }
                ("text", Some(ink)) if node.text().is_some_and(|text| !text.trim().is_empty()) => {
                    let inside = match node.attribute("text-anchor") {
                        Some("middle") => 0.0,
                        Some("end") => -2.0,
                        _ => 2.0,
                    };
                    let [x, y] = [attribute(node, "x") + inside, attribute(node, "y") - 3.0];
                    // A halo of paper stands between a text and what is under it.
                    let has_halo = node.attribute("paint-order").is_some();
                    let found = under.iter().rev().find(|([x1, y1, x2, y2], _)| {
                        (x1..=x2).contains(&&x) && (y1..=y2).contains(&&y) && !has_halo
                    });
                    let paper = found.map_or("#ffffff", |(_, fill)| fill.as_str());
                    let contrast = contrast(ink, paper);
                    assert!(contrast >= 4.5, "{:?}: {ink} on {paper}", node.text());
                    checked += 1;
                }
                _ => {}
            }
        }
    }
    assert!(checked > 500, "{checked} texts");
    let page = picture::page(&maps(2, 2, 1), "");
    for theme in page.split(":root {").skip(1) {
        let color = |name: &str| {
            let (_, rest) = theme.split_once(&format!("{name}: ")).unwrap();
            let hex = &rest[..rest.find(';').unwrap()];
            match hex.len() {
                4 => {
                    hex.chars().flat_map(|c| if c == '#' { vec![c] } else { vec![c, c] }).collect()
                }
                _ => hex.to_owned(),
            }
        };
        for ink in ["--ink", "--faint", "--mark"] {
            assert!(contrast(&color(ink), &color("--paper")) >= 4.5, "{ink} in the page");
        }
    }
}

/// The pixels of a picture's images, in order.
fn images(svg: &str) -> Vec<image::RgbImage> {
    let document = Document::parse(svg).expect("an SVG is XML");
    let decode = |node: Node<'_, '_>| {
        let data = node.attribute("href")?.strip_prefix("data:image/png;base64,")?.to_owned();
        image::load_from_memory(&bytes_of(&data)).ok().map(|image| image.to_rgb8())
    };
    document.descendants().filter(|node| node.has_tag_name("image")).filter_map(decode).collect()
}

fn bytes_of(base64: &str) -> Vec<u8> {
    const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let six = |c: char| LETTERS.find(c).map(|place| place as u32);
    let digits: Vec<u32> = base64.chars().filter_map(six).collect();
    digits
        .chunks(4)
        .flat_map(|four| {
            let all = four.iter().fold(0, |all, six| all << 6 | six) << (6 * (4 - four.len()));
            all.to_be_bytes()[1..four.len()].to_vec()
        })
        .collect()
}

#[test]
fn what_an_image_model_does_not_attend_to_is_dimmed_on_black_and_on_white() {
    for value in [0.0, 1.0] {
        let Scene::Image(mut scene) = image(8) else { unreachable!() };
        scene.pixels.fill(value);
        // Heads whose greatest weights differ a hundredfold.
        for (head, map) in scene.maps.iter_mut().enumerate() {
            let scale = if head == 0 { 0.01 } else { 1.0 };
            map.weights.iter_mut().for_each(|weight| *weight *= scale);
        }
        let svg = picture::svg(&Scene::Image(scene), "", None);
        let shown = images(&svg);
        assert_eq!(shown.len(), 1 + 8);
        let drawn = texts(&svg);
        assert!(drawn.iter().any(|text| text == "dim 0, clear 0.01"), "{drawn:?}");
        assert!(drawn.iter().any(|text| text == "dim 0, clear 1"), "{drawn:?}");
        for (head, panel) in shown[1..].iter().enumerate() {
            let part = panel.width() / 7;
            let middle = |column: u32, row: u32| {
                let pixel = panel.get_pixel(column * part + part / 2, row * part + part / 2).0;
                format!("#{:02x}{:02x}{:02x}", pixel[0], pixel[1], pixel[2])
            };
            let (heavy, light) = (middle(head as u32 % 7, 3), middle((head as u32 + 4) % 7, 6));
            assert_eq!(heavy, if value == 0.0 { "#000000" } else { "#ffffff" });
            assert!(contrast(&heavy, &light) > 3.0, "{heavy} beside {light}");
        }
    }
}

#[test]
fn a_regression_marks_what_was_asked_for() {
    let scene = curve(1);
    let svg = picture::svg(&scene, "", None);
    let document = Document::parse(&svg).unwrap();
    let marks: Vec<f64> = document
        .descendants()
        .filter(|node| node.has_tag_name("line") && node.attribute("stroke") == Some("#b91c5c"))
        .map(|node| attribute(node, "x1"))
        .collect();
    // Above and in the kernel, at 2 of 0 to 4.95 on an axis of 620 from 70 on.
    assert_eq!(marks.len(), 2);
    assert!(marks.iter().all(|x| (x - (70.0 + 620.0 * 2.0 / 4.95)).abs() < 0.1), "{marks:?}");
    assert!(
        texts(&svg).iter().any(|text| text.starts_with("query x = 2: y = ")),
        "{:?}",
        texts(&svg)
    );
    // The nearest datum is the largest.
    let circles = document.descendants().filter(|node| node.attribute("fill-opacity").is_some());
    let largest = circles.max_by(|a, b| attribute(*a, "r").total_cmp(&attribute(*b, "r"))).unwrap();
    assert!((attribute(largest, "cx") - marks[0]).abs() < 10.0);
    assert!(picture::terminal(&scene, 0, 80, false).contains("▲ query 2"));
}

#[test]
fn every_panel_of_a_graph_names_its_nodes_and_a_color_is_a_class() {
    for nodes in [9, 34, 41] {
        let scene = graph(nodes, 4);
        let svg = picture::svg(&scene, "", None);
        let drawn = texts(&svg);
        for node in 0..nodes {
            let name = format!("node {node}");
            assert_eq!(drawn.iter().filter(|text| **text == name).count(), 4, "{name}");
        }
        let document = Document::parse(&svg).unwrap();
        let colors = |tag: &str, name: &str| -> std::collections::BTreeSet<String> {
            let all = document.descendants().filter(|node| node.has_tag_name(tag));
            all.filter_map(|node| node.attribute(name)).map(str::to_owned).collect()
        };
        let edges = colors("path", "stroke");
        let classes = colors("circle", "fill");
        assert_eq!(edges.len(), 2, "the center's and the others: {edges:?}");
        assert!(edges.is_disjoint(&classes), "{edges:?} and {classes:?}");
    }
}

#[test]
fn the_spectrogram_lies_under_the_weights_on_the_same_axis() {
    for rows in [1, 5] {
        let svg = picture::svg(&sound(rows), "", None);
        let document = Document::parse(&svg).unwrap();
        let drawn = images(&svg);
        let nodes = document.descendants().filter(|node| node.has_tag_name("image"));
        let nodes: Vec<Node> = nodes.collect();
        let of_size = |size: (u32, u32)| {
            let place = drawn.iter().position(|image| image.dimensions() == size).unwrap();
            nodes[place]
        };
        let [left, wide] = ["x", "width"].map(|name| attribute(of_size((120, 20)), name));
        let weights = match rows {
            1 => document.descendants().find(|node| node.has_tag_name("path")).unwrap(),
            _ => of_size((120, 5)),
        };
        let (from, to) = match weights.attribute("d") {
            Some(d) => {
                let across: Vec<f64> = d
                    .split(['M', 'H'])
                    .filter_map(|part| part.split(['V', ' ', 'z']).next()?.parse().ok())
                    .collect();
                let low = across.iter().copied().fold(f64::INFINITY, f64::min);
                (low, across.iter().copied().fold(0.0, f64::max))
            }
            None => {
                let [x, width] = ["x", "width"].map(|name| attribute(weights, name));
                (x, x + width)
            }
        };
        assert!((from - left).abs() < 0.1 && (to - left - wide).abs() < 0.1, "{from} to {to}");
        assert!(texts(&svg).iter().any(|text| text == "seconds"));
    }
}

#[test]
fn close_values_of_a_comparison_lie_apart_and_have_equal_digits() {
    let variant = |name: &str, values: &[f64]| Variant { name: name.into(), values: values.into() };
    let comparison = Comparison {
        metric: "accuracy".into(),
        variants: vec![variant("a", &[0.986]), variant("b", &[0.995]), variant("c", &[0.99])],
        ..Comparison::default()
    };
    let svg = picture::comparison("compare", &comparison);
    let document = Document::parse(&svg).unwrap();
    let dots: Vec<f64> = document
        .descendants()
        .filter(|node| node.has_tag_name("circle"))
        .map(|node| attribute(node, "cx"))
        .collect();
    assert_eq!(dots.len(), 3);
    assert!(dots[1] - dots[0] > 300.0, "{dots:?}");
    let drawn = texts(&svg);
    for value in ["0.986", "0.995", "0.990"] {
        assert!(drawn.iter().any(|text| text == value), "{drawn:?}");
    }
}

#[test]
fn five_thousand_tokens_make_a_small_page_and_a_picture_that_says_what_it_leaves_out() {
    let count = 5000;
    let weight = |i: usize| {
        let (row, column) = (i / count, i % count);
        if column == row * 7 % count { 0.9 } else { 0.1 / count as f32 }
    };
    let scene = Scene::Maps(Maps {
        row_axis: "attends".into(),
        column_axis: "is attended to".into(),
        rows: labels(count, "t"),
        columns: labels(count, "t"),
        maps: (1..3)
            .map(|head| Map::new(format!("head {head}"), (0..count * count).map(weight).collect()))
            .collect(),
    });
    let page = picture::page(&scene, "");
    assert!(page.len() < 7_000_000, "{} bytes", page.len());
    let (_, data) = page.split_once("type=\"application/json\">").unwrap();
    let data: serde_json::Value =
        serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    let block = data["block"].as_u64().unwrap() as usize;
    let side = count.div_ceil(block);
    let blocks = bytes_of(data["weights"][0].as_str().unwrap());
    assert_eq!(blocks.len(), 2 * side * side);
    // Every block shows its greatest: row 1 attends to 7.
    let at = 2 * (7 / block);
    assert_eq!(u16::from_le_bytes([blocks[at], blocks[at + 1]]), 65533);
    // The strongest of row 3 is 21.
    let kept = data["kept"].as_u64().unwrap() as usize;
    let strongest = bytes_of(data["strongest"][1].as_str().unwrap());
    assert_eq!(strongest.len(), 6 * kept * count);
    assert_eq!(strongest[6 * kept * 3..][..6], [21, 0, 0, 0, 0xfd, 0xff]);
    for which in [None, Some(0)] {
        let svg = picture::svg(&scene, "", which);
        assert!(svg.len() < 2_000_000, "{} bytes", svg.len());
        let said = texts(&svg).join(" ");
        assert!(
            said.contains("5000 × 5000 weights; one in") && said.contains("a dot is"),
            "{said}"
        );
    }
    // Of a long text only what is around the heaviest words.
    let long = picture::svg(&text(5000, 1), "", None);
    let document = Document::parse(&long).unwrap();
    assert!(attribute(document.root_element(), "height") < 2000.0);
    assert!(texts(&long).iter().any(|text| text.ends_with(" tokens …")));
}
