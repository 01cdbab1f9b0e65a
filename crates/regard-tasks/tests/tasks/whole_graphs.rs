//! `graph` with one label for a whole graph, and with edges that carry weights and features.

use crate::course;

use course::{Course, options, refusal, resumes_exactly};
use regard_data::files::LabeledGraphs;
use regard_data::remarked;
use regard_picture::scene::Scene;
use regard_tasks::run::Run;
use regard_tasks::task::{How, Part};
use regard_tasks::tasks::task_named;
use std::path::Path;

const TOUCHING: [&str; 7] = [
    "embedded=touching",
    "batch_size=32",
    "heads=2",
    "layers=1",
    "dropout=0.0",
    "learning_rate=0.01",
    "weight_decay=0.0",
];

fn touching(more: &[&str]) -> Course {
    Course::done("graph", &[&TOUCHING[..], more].concat())
}

#[test]
fn whole_graphs_are_learned_and_pooling_finds_the_nodes_that_touch() {
    let course = touching(&["size=300", "epochs=25"]);
    let model = course.model();
    let report = model.evaluate(Part::Test).unwrap();
    assert_eq!(report.examples, 50);
    let accuracy = report.scores.get("accuracy").unwrap();
    assert!(accuracy >= 0.9, "{accuracy} of the test part; chance is 0.5");
    let read = report.values_read.unwrap();
    assert!(read.per_output == read.of && read.of > 8.0, "{read:?}");
    // Of a graph that is touching, the two nodes that touch weigh more than any other pair.
    let (mut found, mut all) = (0, 0);
    for at in 0..50 {
        let input = regard_tasks::task::Input::example(Part::Test, at);
        if model.truth(&input).unwrap() != "touching" {
            continue;
        }
        let scenes = model.show(&input).unwrap();
        let names: Vec<&str> = scenes.iter().map(|(name, _)| &name[..]).collect();
        assert_eq!(names, ["pooling", "graph"]);
        let (Scene::Maps(pooled), Scene::Graph(graph)) = (&scenes[0].1, &scenes[1].1) else {
            panic!("other scenes")
        };
        assert_eq!(pooled.columns.len(), graph.nodes.len());
        let kind = |node: usize| graph.classes[node].unwrap();
        let touch = graph.edges.iter().find(|&&(a, b)| (kind(a), kind(b)) == (1, 2)).unwrap();
        let weights = &pooled.maps[0].weights;
        let sum: f32 = weights.iter().sum();
        assert!((sum - 1.0).abs() < 1e-4, "{sum}");
        let mut order: Vec<usize> = (0..weights.len()).collect();
        order.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]));
        all += 1;
        found += usize::from(order[..2].iter().any(|node| [touch.0, touch.1].contains(node)));
    }
    assert!(all >= 20 && 10 * found >= 9 * all, "{found} of {all}");
    assert_eq!(course.drawn("test:3"), ["pooling", "graph"]);
}

#[test]
fn stopped_and_resumed_whole_graphs_are_learned_to_the_same_bits() {
    for more in [&["size=60", "epochs=3"][..], &["size=60", "epochs=3", "weighting=sample"]] {
        resumes_exactly("graph", &[&TOUCHING[..], more].concat(), 3);
    }
}

/// Files of twelve graphs: rings of four nodes and paths of three, by turns.
fn write_graphs(folder: &Path, nodes: usize, edges: usize, split: bool) {
    let write = |name: &str, text: String| {
        std::fs::write(folder.join(format!("TOY_{name}.txt")), text).unwrap();
    };
    let (mut indicator, mut pairs, mut labels) = (String::new(), Vec::new(), String::new());
    let mut first = 1;
    for graph in 0..12 {
        let (size, ring) = if graph % 2 == 0 { (4, true) } else { (3, false) };
        labels += if ring { "ring\n" } else { "path\n" };
        indicator += &format!("{}\n", graph + 1).repeat(size);
        let last = if ring { size } else { size - 1 };
        for at in 0..last {
            let ends = (first + at, first + (at + 1) % size);
            pairs.extend([ends, (ends.1, ends.0)]);
        }
        first += size;
    }
    let count = first - 1;
    write("graph_indicator", indicator);
    write("graph_labels", labels);
    write("A", pairs.iter().map(|(a, b)| format!("{a}, {b}\n")).collect());
    if nodes & 1 > 0 {
        write("node_labels", (0..count).map(|n| format!("{}\n", n % 3)).collect());
    }
    if nodes & 2 > 0 {
        write("node_attributes", (0..count).map(|n| format!("{}.5, -{n}\n", n % 2)).collect());
    }
    // Both directions of an edge carry the same.
    if edges & 1 > 0 {
        write("edge_labels", (0..pairs.len()).map(|e| format!("{}\n", e / 2 % 2)).collect());
    }
    if edges & 2 > 0 {
        write("edge_attributes", (0..pairs.len()).map(|e| format!("{}\n", e / 2)).collect());
    }
    if edges & 4 > 0 {
        write("edge_weights", (0..pairs.len()).map(|e| format!("{}\n", 1 + e / 2)).collect());
    }
    if split {
        let parts = ["train", "train", "train", "train", "val", "val", "test", "test"];
        let text: String =
            (0..12).map(|g| format!("{}\t{}\n", parts.get(g).unwrap_or(&"train"), g + 1)).collect();
        std::fs::write(folder.join("split.tsv"), text).unwrap();
    }
}

#[test]
fn every_choice_of_files_is_read_learned_asked_drawn_and_exported() {
    let mut done = 0;
    for nodes in 0..4 {
        for edges in 0..8 {
            for split in [false, true] {
                let what = format!("{nodes} {edges} {split}");
                let folder = tempfile::tempdir().unwrap();
                write_graphs(folder.path(), nodes, edges, split);
                let own = format!("data.folder={:?}", folder.path().display().to_string());
                let layer = ["gat", "gatv2", "dot", "scaled-dot"][done % 4];
                let pooling = ["attention", "mean", "max", "gate"][done / 4 % 4];
                let (layer, pooling) = (format!("layer={layer}"), format!("pooling={pooling}"));
                let settings = [&own[..], &layer, &pooling, "hidden=2", "heads=2"];
                // A split says by itself what is held out.
                let held_out: &[&str] = if split { &[] } else { &["held_out=0.2"] };
                let settings = [&settings[..], &["epochs=1"], held_out].concat();
                let course = Course::done("graph", &settings);
                let model = course.model();
                let report = model.evaluate(Part::Test).unwrap();
                assert_eq!(report.examples, 2, "{what}");
                let (named, asked) = (&["7".into()], &["test:0".into()]);
                let predictions = model.predict(named).unwrap();
                assert!(["ring", "path"].contains(&&predictions[0].output[..]), "{what}");
                assert_eq!(model.truth(&"7".into()).unwrap(), "ring");
                if split {
                    assert_eq!(predictions[0].output, model.predict(asked).unwrap()[0].output);
                    assert_eq!(model.typed(&"test:0".into()).unwrap().unwrap(), "7");
                }
                let scenes = course.drawn("7");
                assert_eq!(scenes, ["pooling", "graph"], "{what}");
                let saliency = model.abilities().saliency(&"7".into(), How::default()).unwrap();
                assert_eq!(saliency.values.len(), 4, "{what}");
                let exported = model.abilities().exported().unwrap();
                assert_eq!(exported.inputs.contains_key("edge_weights"), edges & 4 > 0, "{what}");
                assert_eq!(exported.inputs.contains_key("edge_features"), edges & 3 > 0, "{what}");
                let error = model.predict(&["13".into()]).unwrap_err().to_string();
                assert!(
                    error.starts_with("`13` is no graph; there are 12, counted from 1"),
                    "{error}"
                );
                done += 1;
            }
        }
    }
    assert_eq!(done, 64);
}

#[test]
fn a_graph_of_its_own_run_is_refused_where_the_files_have_changed() {
    let folder = tempfile::tempdir().unwrap();
    write_graphs(folder.path(), 1, 0, false);
    let own = format!("data.folder={:?}", folder.path().display().to_string());
    let course = Course::done("graph", &[&own, "epochs=1"]);
    write_graphs(folder.path(), 3, 0, false);
    let Err(error) = Run::open(course.run.folder()).and_then(|run| run.model(&course.options))
    else {
        panic!("other features")
    };
    assert!(error.to_string().contains("the graphs have 5 features"), "{error}");
}

#[test]
fn files_that_do_not_go_together_are_refused_by_line() {
    let cases = [
        (
            "A",
            "1, 2\n2, 99\n",
            "TOY_A.txt, line 2: there is no node 99; there are 42, counted from 1",
        ),
        ("A", "1, 2\n1, 5\n", "TOY_A.txt, line 2: this edge leads from graph 1 to graph 2"),
        ("A", "1\n", "TOY_A.txt, line 1: two nodes with a comma between were expected, not 1"),
        ("A", "1, x\n", "TOY_A.txt, line 1: \"x\" is not a node's number"),
        (
            "graph_labels",
            "a\nb\n",
            "TOY_graph_labels.txt: it has 2 lines; the nodes belong to 12 graphs",
        ),
        (
            "graph_indicator",
            "1\nx\n",
            "TOY_graph_indicator.txt, line 2: \"x\" is no graph's number, counted from 1",
        ),
        ("graph_indicator", "1\n3\n3\n", "TOY_graph_indicator.txt: graph 2 has no nodes"),
        ("graph_indicator", "", "TOY_graph_indicator.txt: it has no nodes"),
        ("node_labels", "1\n", "TOY_node_labels.txt: it has 1 line; there are 42 nodes"),
        ("edge_weights", "1\n", "TOY_edge_weights.txt: it has 1 line; there are 72 edges"),
        (
            "edge_attributes",
            &"x\n".repeat(72),
            "TOY_edge_attributes.txt, line 1: \"x\" is not a number",
        ),
        (
            "edge_weights",
            &"-1\n".repeat(72),
            "TOY_edge_weights.txt, line 1: \"-1\" is not the weight of an edge, a positive number",
        ),
    ];
    for (file, text, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        write_graphs(folder.path(), 0, 0, false);
        std::fs::write(folder.path().join(format!("TOY_{file}.txt")), text).unwrap();
        let error = LabeledGraphs::read_folder(folder.path(), None).unwrap_err().to_string();
        assert!(error.ends_with(expected), "{error}\n{expected}");
    }
    let folder = tempfile::tempdir().unwrap();
    write_graphs(folder.path(), 0, 0, false);
    std::fs::write(folder.path().join("TWO_graph_indicator.txt"), "1\n").unwrap();
    let error = LabeledGraphs::read_folder(folder.path(), None).unwrap_err().to_string();
    assert!(error.ends_with("one file *_graph_indicator.txt was expected, 2 are there"), "{error}");
}

#[test]
fn what_a_split_or_a_table_of_graphs_leaves_out_is_said() {
    let folder = tempfile::tempdir().unwrap();
    write_graphs(folder.path(), 0, 0, false);
    std::fs::write(folder.path().join("TOY_A.txt"), "1, 2\n1, 2\n2, 3\n3, 2\n").unwrap();
    let (read, remarks) = remarked(|| LabeledGraphs::read_folder(folder.path(), None));
    assert_eq!(read.unwrap().graphs[0].edges, [(0, 1), (1, 0), (1, 2), (2, 1)]);
    for said in [
        "1 line names an edge that was there before; it counts once",
        "1 edges stand there one way only; attention goes both ways",
        "each has the number of its edges as its feature",
    ] {
        assert!(remarks.iter().any(|remark| remark.contains(said)), "{remarks:?}");
    }
    let own = format!("data.folder={:?}", folder.path().display().to_string());
    let all = options("graph", &[&own, "held_out=0.25"]);
    let (described, remarks) = remarked(|| task_named("graph").unwrap().describe(&all).unwrap());
    assert!(described.facts.contains(&("training graphs".into(), "6".into())), "{described:?}");
    assert!(remarks.iter().any(|r| r.contains("6 graphs are learned, 3 validate and 3 test")));
}

#[test]
fn options_that_only_nodes_or_only_graphs_have_are_refused_for_the_others() {
    let of_graphs = [
        "held_out=0.2",
        "held_out_seed=2",
        "pooling=mean",
        "queries=2",
        "score=dot",
        "weighting=argmax",
        "score_hidden=7",
    ];
    for setting in of_graphs {
        let why = refusal("graph", &[setting]);
        assert!(why.contains("has no effect"), "{setting}: {why}");
    }
    let why = refusal("graph", &["edge_columns=weight"]);
    assert!(why.contains("has no effect"), "{why}");
    let why = refusal("graph", &["data.folder=\"nowhere\"", "pooling=mean"]);
    assert_eq!(why, "nowhere: there is no such folder");
    let folder = tempfile::tempdir().unwrap();
    write_graphs(folder.path(), 1, 0, true);
    let own = format!("data.folder={:?}", folder.path().display().to_string());
    for setting in ["held_out=0.2", "held_out_seed=2"] {
        let why = refusal("graph", &["embedded=touching", setting]);
        assert!(why.contains("has no effect"), "{setting}: {why}");
        let why = refusal("graph", &[&own, setting]);
        assert!(why.contains("split.tsv says which graphs are held out"), "{setting}: {why}");
    }
    let of_nodes = ["labeled=3", "output_heads=2"];
    for setting in of_nodes {
        let why = refusal("graph", &["embedded=touching", setting]);
        assert!(why.contains("has no effect"), "{setting}: {why}");
    }
    for setting in ["queries=2", "score=dot", "weighting=argmax"] {
        let why = refusal("graph", &["embedded=touching", "pooling=mean", setting]);
        assert!(why.contains("has no effect"), "{setting}: {why}");
    }
    for weighting in ["sample", "straight-through", "gumbel", "gumbel-hard"] {
        let why = refusal("graph", &[&format!("head_weighting={weighting}")]);
        assert!(why.contains("weighs edges by softmax"), "{why}");
    }
    let why = refusal("graph", &["layer=mean", "head_weighting=sparsemax"]);
    assert!((why.contains("has no effect") || why.contains("a mean weighs all alike")), "{why}");
    assert_eq!(
        refusal("graph", &["embedded=touching", "queries=0"]),
        "`model.queries` cannot be 0"
    );
}

#[test]
fn parts_stand_in_a_table_of_any_ending() {
    for ending in ["tsv", "csv", "txt"] {
        let folder = tempfile::tempdir().unwrap();
        write_graphs(folder.path(), 1, 0, true);
        let named = folder.path().join(format!("split.{ending}"));
        std::fs::rename(folder.path().join("split.tsv"), named).unwrap();
        let parts = LabeledGraphs::read_folder(folder.path(), None).unwrap().parts.unwrap();
        assert_eq!(parts.map(|part| part.len()), [8, 2, 2], "{ending}");
    }
}

#[test]
fn a_weight_that_is_none_in_single_precision_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    write_nodes(folder.path(), |_| "\t1e-50".into());
    let own = format!("data.folder={:?}", folder.path().display().to_string());
    let options_of_nodes = options("graph", &[&own, "labeled=4"]);
    let why = task_named("graph").unwrap().begin(&options_of_nodes).map(drop).unwrap_err();
    assert!(why.to_string().contains("this edge weighs 1e-50"), "{why}");
    let folder = tempfile::tempdir().unwrap();
    write_graphs(folder.path(), 1, 4, true);
    let weights = folder.path().join("TOY_edge_weights.txt");
    let text = std::fs::read_to_string(&weights).unwrap().replacen('1', "1e-50", 1);
    std::fs::write(&weights, text).unwrap();
    let why = LabeledGraphs::read_folder(folder.path(), None).unwrap_err().to_string();
    assert!(why.contains("is not the weight of an edge"), "{why}");
}

#[test]
fn many_graphs_in_one_step_are_told() {
    for (more, told) in [("batch_size=32", false), ("size=100", true)] {
        let settings = ["embedded=touching", "size=100", more];
        let notes =
            task_named("graph").unwrap().begin(&options("graph", &settings)).unwrap().notes();
        assert_eq!(
            notes.iter().any(|note| note.contains("one batch holds all")),
            told,
            "{notes:?}"
        );
    }
}

/// Eight nodes in two classes; the weights or features of the edges say who is like whom.
fn write_nodes(folder: &Path, carried: impl Fn(bool) -> String) {
    let class = |node: usize| ["x", "y"][node % 2];
    let nodes: String =
        (0..16).map(|n| format!("n{n}\t{}\t1\t{}\n", class(n), n % 4 / 2)).collect();
    let mut edges = String::new();
    for a in 0..16 {
        for b in a + 1..16 {
            edges += &format!("n{a}\tn{b}{}\n", carried(class(a) == class(b)));
        }
    }
    std::fs::write(folder.join("nodes.tsv"), nodes).unwrap();
    std::fs::write(folder.join("edges.tsv"), edges).unwrap();
}

#[test]
fn edges_of_one_weight_count_more_than_a_loop() {
    for (weight, kept) in [("1", false), ("5", true)] {
        let folder = tempfile::tempdir().unwrap();
        write_nodes(folder.path(), |_| format!("\t{weight}"));
        let own = format!("data.folder={:?}", folder.path().display().to_string());
        let options = options("graph", &[&own, "labeled=4"]);
        let (learner, remarks) = remarked(|| task_named("graph").unwrap().begin(&options).unwrap());
        let exported = learner.model().abilities().exported().unwrap();
        assert_eq!(exported.inputs.contains_key("edge_weights"), kept, "{remarks:?}");
        let said = if kept { "edges have weights" } else { "every edge weighs 1" };
        assert!(remarks.iter().any(|text| text.contains(said)), "{remarks:?}");
    }
}

#[test]
fn nodes_learn_from_the_weights_and_from_the_features_of_edges() {
    let mut done = 0;
    for layer in ["gat", "gatv2", "dot", "scaled-dot", "mean"] {
        for columns in ["auto", "weight", "features"] {
            let folder = tempfile::tempdir().unwrap();
            let weight = columns != "features";
            write_nodes(folder.path(), |alike| match (weight, alike) {
                (true, alike) => format!("\t{}", if alike { 2.0 } else { 0.5 }),
                (false, alike) => format!("\t{}\t{}", i32::from(alike), i32::from(!alike)),
            });
            let own = format!("data.folder={:?}", folder.path().display().to_string());
            let (layer_set, columns) =
                (format!("layer={layer}"), format!("edge_columns={columns}"));
            let settings = [&own[..], &layer_set, &columns, "labeled=4", "epochs=2"];
            if !weight && layer == "mean" {
                let why = refusal("graph", &settings);
                assert_eq!(why, "a mean has no use for the features of edges");
                continue;
            }
            let course = Course::done("graph", &settings);
            let model = course.model();
            assert_eq!(model.evaluate(Part::Test).unwrap().examples, 4);
            let names = model.parameters().all().iter().any(|p| p.name().contains("lin_edge"));
            assert_eq!(names, !weight, "{layer}");
            assert_eq!(course.drawn("n3"), ["neighborhood"]);
            let exported = model.abilities().exported().unwrap();
            let carried = if weight { "edge_weights" } else { "edge_features" };
            assert!(exported.inputs.contains_key(carried), "{layer}");
            if layer == "mean" {
                // Itself 1, seven of its own class 2 each, eight others a half each.
                let Scene::Graph(scene) = &model.show(&"n3".into()).unwrap()[0].1 else { panic!() };
                let own = scene.edges.iter().zip(&scene.maps[0].weights);
                let most = own.filter(|(edge, _)| edge.0 == 0).map(|(_, w)| *w).fold(0.0, f32::max);
                assert!((most - 2.0 / 19.0).abs() < 1e-6, "{most}");
            }
            done += 1;
        }
    }
    assert_eq!(done, 14);
    let folder = tempfile::tempdir().unwrap();
    write_nodes(folder.path(), |_| "\t1\t2".into());
    let own = format!("data.folder={:?}", folder.path().display().to_string());
    let why = refusal("graph", &[&own, "edge_columns=weight"]);
    assert!(why.contains("line 1: a weight behind two nodes was expected, not 2 columns"), "{why}");
    let why = refusal("graph", &[&own, "edge_columns=both"]);
    assert!(why.contains("both"), "{why}");
}

#[test]
fn every_weighting_of_edges_learns_draws_and_is_exported() {
    let mut done = 0;
    for weighting in ["softmax", "sparsemax", "entmax15", "sigmoid", "none", "argmax"] {
        for layer in ["gat", "gatv2", "dot", "scaled-dot"] {
            let (head, layer) = (format!("head_weighting={weighting}"), format!("layer={layer}"));
            let course =
                Course::done("graph", &["size=40", "labeled=4", "epochs=2", &head, &layer]);
            assert_eq!(course.drawn("0"), ["neighborhood"]);
            assert!(course.model().abilities().exported().is_ok());
            done += 1;
        }
    }
    assert_eq!(done, 24);
}

#[test]
fn which_graphs_are_held_out_depends_on_their_own_seed_alone() {
    let folder = tempfile::tempdir().unwrap();
    write_graphs(folder.path(), 1, 0, false);
    let own = format!("data.folder={:?}", folder.path().display().to_string());
    let held = |seed: &str| {
        let options = options("graph", &[&own, "held_out=0.25", seed]);
        let learner = task_named("graph").unwrap().begin(&options).unwrap();
        let model = learner.model();
        let part = |name: &str| {
            let typed = |at| model.typed(&format!("{name}:{at}").as_str().into()).unwrap().unwrap();
            (0..3).map(typed).collect::<Vec<String>>()
        };
        (part("validation"), part("test"))
    };
    let plain = held("training.seed=1");
    assert_eq!(plain, held("training.seed=2"));
    assert_ne!(plain, held("held_out_seed=2"));
    assert!(plain.0.iter().all(|graph| !plain.1.contains(graph)));
}

#[test]
fn a_run_of_any_seed_is_opened_with_the_options_it_was_trained_with() {
    let folder = tempfile::tempdir().unwrap();
    write_graphs(folder.path(), 1, 0, false);
    let own = format!("data.folder={:?}", folder.path().display().to_string());
    for settings in [&["size=40", "labeled=4"][..], &["embedded=touching", "size=60"], &[&own[..]]]
    {
        let settings = [settings, &["epochs=1", "seed=3"]].concat();
        let course = Course::done("graph", &settings);
        let opened = course.run.options().unwrap();
        assert_eq!(opened.get("data.held_out_seed"), None);
        let parts = |model: &dyn regard_tasks::task::Model| {
            model.judge(Part::Test).unwrap().into_iter().map(|one| one.input).collect::<Vec<_>>()
        };
        let again = course.run.model(&opened).unwrap();
        assert_eq!(parts(again.as_ref()), parts(course.model().as_ref()));
    }
}
