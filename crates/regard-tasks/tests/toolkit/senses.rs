//! Sound, images and graphs: what is read right, and what is refused in which words.

use crate::corpus;

use corpus::corpus;
use flate2::{Compression, write::GzEncoder};
use image::{GrayImage, ImageFormat, Luma, Rgb, RgbImage, Rgba, RgbaImage};
use regard_data::files::{
    Idx, ImageOptions, Images, LabeledGraph, LogMel, SoundOptions, Sounds, StandardScaler, Waveform,
};
use regard_tasks::{Error, Result};
use std::fmt::Debug;
use std::io::Write;
use std::path::{Path, PathBuf};
use tempfile::{TempDir, tempdir};

/// The message of a refusal, its folder taken out.
fn refusal<T: Debug>(folder: &Path, result: Result<T>) -> String {
    result.unwrap_err().to_string().replace(&format!("{}/", folder.display()), "")
}

fn write(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, bytes).unwrap();
    path
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

mod graphs {
    use super::*;

    const NODES: &str = "a 0:1 2:3\nb 1:-2 # two\n# no node\na\nb 0:1 1:1 2:2\n";
    const EDGES: &str = "0\t1\n1\t2\n";
    const SPLIT: &str = "train\t0\ntrain\t1\nval\t2\ntest\t3\n";

    fn graph(nodes: &str, edges: &str, split: &str) -> (TempDir, Result<LabeledGraph>) {
        let folder = tempdir().unwrap();
        write(folder.path(), "nodes.svm", nodes);
        write(folder.path(), "edges.tsv", edges);
        write(folder.path(), "split.tsv", split);
        let graph = LabeledGraph::read_folder(folder.path(), None, Default::default());
        (folder, graph)
    }

    fn refused(nodes: &str, edges: &str, split: &str) -> String {
        let (folder, graph) = graph(nodes, edges, split);
        refusal(folder.path(), graph)
    }

    #[test]
    fn three_files_make_a_graph() {
        let graph = graph(NODES, EDGES, SPLIT).1.unwrap();
        assert_eq!(graph.width, 3);
        #[rustfmt::skip]
        assert_eq!(graph.features, [
            1.0, 0.0, 3.0,
            0.0, -2.0, 0.0,
            0.0, 0.0, 0.0,
            1.0, 1.0, 2.0,
        ]);
        assert_eq!(graph.edges, [(0, 1), (1, 0), (1, 2), (2, 1)]);
        assert_eq!(graph.labels, [Some(0), Some(1), Some(0), Some(1)]);
        assert_eq!(graph.label_names, ["a", "b"]);
        assert_eq!((graph.train, graph.validation, graph.test), (vec![0, 1], vec![2], vec![3]));
    }

    #[test]
    fn a_row_is_divided_by_its_sum_and_an_empty_one_stays() {
        let mut graph = graph(NODES, EDGES, SPLIT).1.unwrap();
        graph.normalize_rows();
        #[rustfmt::skip]
        assert_eq!(graph.features, [
            0.25, 0.0, 0.75,
            0.0, -1.0, 0.0,
            0.0, 0.0, 0.0,
            0.25, 0.25, 0.5,
        ]);
    }

    #[test]
    fn ends_of_lines_and_marks_of_other_editors_change_nothing() {
        let marked = |text: &str| format!("\u{feff}{}", text.replace('\n', "\r\n"));
        let other = graph(&marked(NODES), &marked(EDGES), &marked(SPLIT)).1.unwrap();
        assert_eq!(other, graph(NODES, EDGES, SPLIT).1.unwrap());
    }

    #[test]
    fn an_edge_given_again_is_merged_and_counted_and_a_loop_stays_one_edge() {
        let graph = graph(NODES, "0\t1\n1\t0\n2\t2\n0\t1\n", SPLIT).1.unwrap();
        assert_eq!(graph.edges, [(0, 1), (1, 0), (2, 2)]);
        assert_eq!(graph.repeated_edges, 2);
    }

    #[test]
    fn labels_that_are_numbers_are_ordered_as_numbers() {
        let graph = graph("10 0:1\n9 0:1\n", "", "train\t0\ntrain\t1\n").1.unwrap();
        assert_eq!(graph.label_names, ["9", "10"]);
        assert_eq!(graph.labels, [Some(1), Some(0)]);
    }

    #[test]
    fn a_node_of_unknown_label_may_be_there_but_in_no_part() {
        let nodes = NODES.replace("a\n", "?\n");
        let known = "train\t0\ntrain\t1\n";
        assert_eq!(graph(&nodes, EDGES, known).1.unwrap().labels[2], None);
        let expected = "split.tsv, line 3: node 2 has no label, so it cannot be in a part";
        assert_eq!(refused(&nodes, EDGES, SPLIT), expected);
    }

    #[test]
    fn bad_nodes_are_refused_by_line() {
        let cases = [
            ("", "nodes.svm: it has no nodes"),
            ("a\nb\n", "nodes.svm: no node has a feature"),
            ("a 0:1\n\nb 0:1", "nodes.svm, line 2: a label was expected, the line is empty"),
            ("a 0:1\n0:1", "nodes.svm, line 2: a label was expected, there is the feature \"0:1\""),
            ("a 3:1 2:1", "nodes.svm, line 1: index 2 comes after 3; indices must increase"),
            ("a 3:1 3:1", "nodes.svm, line 1: index 3 comes twice"),
            ("a x:1", "nodes.svm, line 1: \"x:1\" is not a feature; index:value was expected"),
            ("a 1:x", "nodes.svm, line 1: \"1:x\" is not a feature; index:value was expected"),
            ("a 1:nan", "nodes.svm, line 1: \"1:nan\" is not a feature; index:value was expected"),
            ("a -1:1", "nodes.svm, line 1: \"-1:1\" is not a feature; index:value was expected"),
            ("a 17", "nodes.svm, line 1: \"17\" is not a feature; index:value was expected"),
        ];
        for (nodes, expected) in cases {
            assert_eq!(refused(nodes, EDGES, SPLIT), expected);
        }
    }

    #[test]
    fn an_index_too_great_to_hold_is_refused_before_memory_is_asked_for() {
        for index in ["4000000000", "18446744073709551615"] {
            let message = refused(&format!("a 0:1\nb {index}:1\n"), EDGES, SPLIT);
            assert!(message.starts_with("nodes.svm, line 2: index "), "{message}");
            assert!(message.ends_with("features; at most 268435456 are held"), "{message}");
        }
    }

    #[test]
    fn names_headers_and_separators_are_read_whatever_they_are() {
        let plain = ["ann,x,1,0", "bob,y,0,1", "cy,x,1,1", "di,y,0,0", "eve,?,1,2"];
        let ties = ["from,to", "ann,bob", "bob,cy", "bob,ann"];
        let parts = ["part,node", "train,ann", "train,bob", "val,cy", "test,di"];
        let mut read = 0;
        for (ending, between) in
            [("csv", ","), ("tsv", "\t"), ("txt", " "), ("csv", ";"), ("txt", "\t")]
        {
            // Features have names, numbers for names as pandas gives them, or none.
            for title in ["node,label,a,b", "id,label,0,1", "id,Class,0,1", ""] {
                let header = !title.is_empty();
                let rows = [&[title][..], &plain].concat();
                let folder = tempdir().unwrap();
                for (stem, lines) in [("nodes", &rows[..]), ("edges", &ties), ("split", &parts)] {
                    let text: String = lines[usize::from(!header)..]
                        .iter()
                        .map(|line| line.replace(',', between) + "\n")
                        .collect();
                    write(folder.path(), &format!("{stem}.{ending}"), &text);
                }
                let (graph, remarks) = regard_data::remarked(|| {
                    LabeledGraph::read_folder(folder.path(), None, Default::default())
                });
                let graph = graph.unwrap();
                assert_eq!((graph.width, graph.labels.len(), graph.labels[4]), (2, 5, None));
                assert_eq!(graph.features[..4], [1.0, 0.0, 0.0, 1.0]);
                assert_eq!(graph.edges, [(0, 1), (1, 0), (1, 2), (2, 1)]);
                assert_eq!((graph.node("cy"), graph.node("2")), (Some(2), None));
                let parts = [&graph.train[..], &graph.validation, &graph.test];
                assert_eq!(parts, [&[0, 1][..], &[2], &[3]]);
                let said = |text: &str| remarks.iter().filter(|one| one.contains(text)).count();
                assert_eq!(said("line 1 names the columns"), if header { 3 } else { 0 });
                assert_eq!(said("1 line names an edge that was there before"), 1);
                assert_eq!(said("2 of 5 nodes have no edge"), 1);
                read += 1;
            }
        }
        assert_eq!(read, 20);
    }

    #[test]
    fn a_graph_without_a_split_is_split_by_chance_and_says_so() {
        let folder = tempdir().unwrap();
        let name = |node: usize| format!("n{node}");
        let nodes: String =
            (0..40).map(|i| format!("{},{},{i},1\n", name(i), ["x", "y"][i % 2])).collect();
        let edges: String = (1..40).map(|i| format!("{},{},1\n", name(i - 1), name(i))).collect();
        write(folder.path(), "nodes.csv", &nodes);
        write(folder.path(), "edges.csv", &edges);
        let task = regard_tasks::tasks::task_named("graph").unwrap();
        let options = task.options().unwrap().set("labeled=5").unwrap();
        let options = options.set(&format!("folder={}", folder.path().display())).unwrap();
        let (learner, remarks) = regard_data::remarked(|| task.begin(&options).unwrap());
        let said = "there is no split.tsv; 10 nodes are learned, `data.labeled` = 5 of each class, 15 \
                    validate and 15 test";
        assert!(remarks.iter().any(|text| text.contains(said)), "{remarks:?}");
        assert!(remarks.iter().any(|text| text.contains("every edge weighs 1")), "{remarks:?}");
        let predicted = learner.model().predict(&["n17".into()]).unwrap();
        assert!(["x", "y"].contains(&&predicted[0].output[..]));
        let refused = learner.model().predict(&["17".into()]).unwrap_err().to_string();
        assert_eq!(refused, "`17` is no node; there are 40, called n0, n1, n2, …");
    }

    #[test]
    fn bad_edges_are_refused_by_line() {
        let cases = [
            ("0\t4", "edges.tsv, line 1: there is no node 4; there are 4, counted from 0"),
            ("0\t1\n0", "edges.tsv, line 2: 2 columns with a tab between were expected, not 1"),
            ("0\t1\t2\n1\t2", "edges.tsv, line 2: 2 columns; the lines before have 3"),
            (
                "0\t1\t2\n1\t2\t-3",
                "edges.tsv, line 2: this edge weighs -3; a weight is a positive number, and an edge that weighs nothing is left out",
            ),
            (
                "0\t1\t2\n0\t1\t3",
                "edges.tsv, line 2: this edge is there already, in line 1, and carries other numbers there",
            ),
            (
                "0\t1\t2\t1e99",
                "edges.tsv, line 1: \"1e99\" is not a number that an edge could carry",
            ),
            (
                "0\t1\n\n0\t2",
                "edges.tsv, line 2: 2 columns with a tab between were expected, not 1",
            ),
            ("0\tx", "edges.tsv, line 1: \"x\" is not a node's number"),
            ("-1\t0", "edges.tsv, line 1: \"-1\" is not a node's number"),
        ];
        for (edges, expected) in cases {
            assert_eq!(refused(NODES, edges, SPLIT), expected);
        }
    }

    #[test]
    fn a_bad_split_is_refused_by_line() {
        let cases = [
            ("train\t9", "split.tsv, line 1: there is no node 9; there are 4, counted from 0"),
            (
                "train\t0\nlearn\t1",
                "split.tsv, line 2: \"learn\" is not a part; train, val or test was expected",
            ),
            ("train\t0\ntest\t0", "split.tsv, line 2: node 0 is in a part already, by line 1"),
            (
                "test\t1\ntrain\t0",
                "split.tsv, line 1: node 1 has the label \"b\", which no training node has",
            ),
            ("test\t1", "split.tsv: no node is in the part train"),
            ("", "split.tsv: no node is in the part train"),
        ];
        for (split, expected) in cases {
            assert_eq!(refused(NODES, EDGES, split), expected);
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let folder = tempdir().unwrap();
        let message = refusal(
            folder.path(),
            LabeledGraph::read_folder(folder.path(), None, Default::default()),
        );
        assert!(message.starts_with("nodes.svm: "), "{message}");
    }

    #[test]
    #[ignore = "needs ../shared/data"]
    fn cora_is_read_whole() {
        let graph = LabeledGraph::read_folder(&corpus("cora"), None, Default::default()).unwrap();
        assert_eq!((graph.labels.len(), graph.width), (2708, 1433));
        assert_eq!(graph.features.len(), 2708 * 1433);
        assert_eq!((graph.edges.len(), graph.repeated_edges), (2 * 5278, 0));
        assert_eq!(graph.label_names, ["0", "1", "2", "3", "4", "5", "6"]);
        assert_eq!(graph.features.iter().sum::<f32>(), 49216.0);
        let parts = [&graph.train, &graph.validation, &graph.test].map(Vec::len);
        assert_eq!(parts, [140, 500, 1000]);
    }
}

mod idx {
    use super::*;

    /// Zero, zero, unsigned bytes, the axes, the values.
    fn idx(axes: &[u32], values: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0, 0, 8, axes.len() as u8];
        axes.iter().for_each(|axis| bytes.extend(axis.to_be_bytes()));
        bytes.extend(values);
        bytes
    }

    fn refused(bytes: &[u8]) -> String {
        let folder = tempdir().unwrap();
        let plain = refusal(folder.path(), Idx::read(&write(folder.path(), "x", bytes)));
        let packed = refusal(folder.path(), Idx::read(&write(folder.path(), "x", gzip(bytes))));
        assert_eq!(plain, packed);
        plain
    }

    #[test]
    fn images_and_labels_are_read_plain_and_packed() {
        let folder = tempdir().unwrap();
        let bytes = idx(&[2, 1, 3], &[0, 255, 51, 1, 2, 3]);
        let labels = write(folder.path(), "labels", idx(&[2], &[7, 10]));
        for bytes in [gzip(&bytes), bytes] {
            let images = Images::read_idx(&write(folder.path(), "images", bytes), &labels).unwrap();
            assert_eq!((images.channels, images.height, images.width), (1, 1, 3));
            assert_eq!(images.labels, ["7", "10"]);
            assert_eq!(images.pixels, [0, 255, 51, 1, 2, 3]);
            assert_eq!(images.values(&[0]).unwrap(), [0.0, 1.0, 0.2]);
            for at in [2, usize::MAX] {
                let error = images.values(&[at]).unwrap_err().to_string();
                assert_eq!(error, format!("there is no image {at}; there are 2"));
            }
        }
    }

    #[test]
    fn a_header_that_lies_is_refused() {
        let cases = [
            (
                idx(&[60000, 28, 28], &[0; 9]),
                "x: its header says 60000 images of 28×28, 47040000 bytes; it holds 9",
            ),
            (
                idx(&[2, 1, 1], &[0; 9]),
                "x: its header says 2 images of 1×1, 2 bytes; it holds more",
            ),
            (idx(&[3], &[1, 2]), "x: its header says 3 labels, 3 bytes; it holds 2"),
            (
                idx(&[u32::MAX, u32::MAX, u32::MAX], &[]),
                "x: its header says 4294967295 images of 4294967295×4294967295; that is too much \
                 to hold",
            ),
            (
                idx(&[4, 1 << 15, 1 << 15], &[1]),
                "x: its header says 4 images of 32768×32768, 4294967296 bytes; it holds 1",
            ),
        ];
        for (bytes, expected) in cases {
            assert_eq!(refused(&bytes), expected);
        }
    }

    #[test]
    fn what_is_no_idx_is_refused() {
        let cases: [(&[u8], &str); 5] = [
            (b"PNG!", "x: not an IDX file: it does not begin with two zeros"),
            (&[0, 0], "x: not an IDX file: it does not begin with two zeros"),
            (
                &[0, 0, 13, 1, 0, 0, 0, 1],
                "x: its numbers are of kind 13; only unsigned bytes (8) are read",
            ),
            (&[0, 0, 8, 2, 0, 0, 0, 1], "x: its header of 2 axes is cut short"),
            (&[0, 0, 8, 0, 1], "x: its header of 0 axes is cut short"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(refused(bytes), expected);
        }
    }

    #[test]
    fn a_packed_file_cut_short_is_refused_by_name() {
        let folder = tempdir().unwrap();
        let packed = gzip(&idx(&[1000], &[7; 1000]));
        let path = write(folder.path(), "x.gz", &packed[..packed.len() - 12]);
        let message = refusal(folder.path(), Idx::read(&path));
        assert!(message.starts_with("x.gz: "), "{message}");
    }

    #[test]
    fn images_and_labels_must_fit_each_other() {
        let folder = tempdir().unwrap();
        let folder = folder.path();
        let two = write(folder, "two", idx(&[2, 1, 1], &[1, 2]));
        let none = write(folder, "none", idx(&[0, 28, 28], &[]));
        let three = write(folder, "three", idx(&[3], &[1, 2, 3]));
        let no_labels = write(folder, "no_labels", idx(&[0], &[]));
        let refused = |images, labels| refusal(folder, Images::read_idx(images, labels));
        assert_eq!(refused(&two, &three), "three: 3 labels, but two has 2 images");
        assert_eq!(refused(&three, &three), "three: images have 3 axes in IDX, this file has 1");
        assert_eq!(refused(&two, &two), "two: labels have 1 axes in IDX, this file has 3");
        assert_eq!(refused(&none, &no_labels), "none: there is nothing in 0 images of 28×28");
    }

    #[test]
    #[ignore = "needs ../shared/data"]
    fn fashion_mnist_is_read_whole() {
        let folder = corpus("fashion-mnist");
        for (part, count) in [("train", 60000), ("t10k", 10000)] {
            let images = Images::read_idx(
                &folder.join(format!("{part}-images-idx3-ubyte.gz")),
                &folder.join(format!("{part}-labels-idx1-ubyte.gz")),
            )
            .unwrap();
            assert_eq!((images.len(), images.height, images.width), (count, 28, 28));
            assert_eq!(images.labels.iter().filter(|&label| label == "9").count(), count / 10);
        }
    }
}

mod pictures {
    use super::*;

    fn gray(width: u32, height: u32, value: u8) -> GrayImage {
        GrayImage::from_pixel(width, height, Luma([value]))
    }

    /// A folder with the labels cat (two images of 4×2) and dog (one).
    fn folder() -> TempDir {
        let folder = tempdir().unwrap();
        for label in ["cat", "dog"] {
            std::fs::create_dir(folder.path().join(label)).unwrap();
        }
        gray(4, 2, 20).save(folder.path().join("cat/2.png")).unwrap();
        gray(4, 2, 10).save(folder.path().join("cat/1.PNG")).unwrap();
        RgbImage::from_pixel(4, 2, Rgb([200, 100, 0]))
            .save(folder.path().join("dog/1.png"))
            .unwrap();
        folder
    }

    #[test]
    fn a_folder_for_each_label_is_read_in_order() {
        let folder = folder();
        let images = Images::read_folder(folder.path(), &ImageOptions::default()).unwrap();
        assert_eq!((images.channels, images.height, images.width), (1, 2, 4));
        assert_eq!(images.labels, ["cat", "cat", "dog"]);
        assert_eq!(images.pixels[..16], [[10; 8], [20; 8]].concat());
        assert_eq!(images.len(), 3);
    }

    #[test]
    fn colors_are_planes() {
        let options = ImageOptions { color: true, side: None };
        let images = Images::read_folder(folder().path(), &options).unwrap();
        assert_eq!(images.channels, 3);
        assert_eq!(images.pixels[48..], [[200; 8], [100; 8], [0; 8]].concat());
    }

    #[test]
    fn what_is_transparent_is_white() {
        let folder = folder();
        let clear = RgbaImage::from_pixel(4, 2, Rgba([0, 0, 0, 0]));
        clear.save(folder.path().join("dog/1.png")).unwrap();
        let images = Images::read_folder(folder.path(), &ImageOptions::default()).unwrap();
        assert_eq!(images.pixels[16..], [255; 8]);
    }

    #[test]
    fn another_size_is_refused_by_name_unless_a_side_is_given() {
        let folder = folder();
        gray(5, 3, 30).save(folder.path().join("cat/3.png")).unwrap();
        let read = |side| {
            Images::read_folder(folder.path(), &ImageOptions { side, ..ImageOptions::default() })
        };
        assert_eq!(
            refusal(folder.path(), read(None)),
            "cat/3.png: 5×3 pixels, but cat/1.PNG has 4×2; `data.image_size` brings all to one size"
        );
        let images = read(Some(3)).unwrap();
        assert_eq!((images.len(), images.height, images.width), (4, 3, 3));
        assert_eq!(images.pixels[..27], [[10; 9], [20; 9], [30; 9]].concat());
        let error = read(Some(0)).unwrap_err().to_string();
        assert_eq!(error, "images cannot be brought to a side of 0 pixels");
    }

    fn jpeg() -> Vec<u8> {
        let mut bytes = std::io::Cursor::new(Vec::new());
        let slope = GrayImage::from_fn(64, 64, |x, y| Luma([(2 * x + y) as u8]));
        slope.write_to(&mut bytes, ImageFormat::Jpeg).unwrap();
        bytes.into_inner()
    }

    #[test]
    fn a_jpeg_is_read() {
        let folder = tempdir().unwrap();
        write(folder.path(), "slope/1.jpg", jpeg());
        let images = Images::read_folder(folder.path(), &ImageOptions::default()).unwrap();
        assert_eq!((images.height, images.width), (64, 64));
        assert!(images.pixels[64 * 32 + 32].abs_diff(96) < 4, "{}", images.pixels[64 * 32 + 32]);
    }

    #[test]
    fn webp_bmp_and_gif_are_read_and_what_is_not_is_counted() {
        let folder = tempdir().unwrap();
        for format in [ImageFormat::WebP, ImageFormat::Bmp, ImageFormat::Gif, ImageFormat::Png] {
            let mut bytes = std::io::Cursor::new(Vec::new());
            let gray = image::RgbImage::from_pixel(6, 4, image::Rgb([80; 3]));
            gray.write_to(&mut bytes, format).unwrap();
            let name = format!("gray/1.{}", format.extensions_str()[0]);
            write(folder.path(), &name, bytes.into_inner());
        }
        write(folder.path(), "gray/2.tiff", "II");
        let images = Images::read_folder(folder.path(), &ImageOptions::default()).unwrap();
        assert_eq!((images.len(), images.height, images.width), (4, 4, 6));
        assert!(images.pixels.iter().all(|pixel| pixel.abs_diff(80) < 3));
        // The count survives the split into parts.
        for at in 0..10 {
            let gray = image::RgbImage::from_pixel(6, 4, image::Rgb([at; 3]));
            gray.save(folder.path().join(format!("gray/more{at}.png"))).unwrap();
        }
        let task = regard_tasks::tasks::task_named("image").unwrap();
        let setting = format!("train_folder={:?}", folder.path());
        let described = task.describe(&task.options().unwrap().set(&setting).unwrap()).unwrap();
        let left_out = ("no images, left out".to_string(), "1".to_string());
        assert!(described.facts.contains(&left_out), "{:?}", described.facts);
    }

    #[test]
    fn a_photograph_becomes_the_mean_of_what_a_pixel_covers_however_it_was_held() {
        let folder = tempdir().unwrap();
        // Dark above, light below: bands whose mean is known.
        let bands = image::RgbImage::from_fn(300, 400, |_, y| {
            image::Rgb([if y < 200 { 40 } else { 200 }; 3])
        });
        bands.save(folder.path().join("bands.png")).unwrap();
        write(folder.path(), "a/1.png", std::fs::read(folder.path().join("bands.png")).unwrap());
        let options = ImageOptions { side: Some(4), color: false };
        let images = Images::read_folder(folder.path(), &options).unwrap();
        let rows: Vec<u8> = images.pixels.chunks(4).map(|row| row[0]).collect();
        assert_eq!((rows[0], rows[3]), (40, 200));
        assert!(images.pixels.chunks(4).all(|row| row.iter().all(|x| *x == row[0])));
        assert!(rows[1].abs_diff(60) < 3 && rows[2].abs_diff(180) < 3, "{rows:?}");
    }

    #[test]
    fn a_damaged_image_is_refused_by_name() {
        let folder = folder();
        let path = folder.path().join("dog/2.png");
        let refused = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            refusal(folder.path(), Images::read_folder(folder.path(), &ImageOptions::default()))
        };
        let whole = std::fs::read(folder.path().join("dog/1.png")).unwrap();
        let mut vast = whole.clone();
        vast[16..24].copy_from_slice(&[0, 0, 200, 0, 0, 0, 200, 0]);
        let jpeg = jpeg();
        for bytes in [&whole[..whole.len() - 20], &vast, b"", b"no image", &jpeg[..jpeg.len() / 2]]
        {
            let message = refused(bytes);
            assert!(message.starts_with("dog/2.png: damaged image: "), "{message}");
        }
    }

    #[test]
    fn files_that_are_no_images_are_left_out_and_told() {
        let folder = folder();
        let notes = write(folder.path(), "cat/notes.txt", "");
        let readme = write(folder.path(), "readme.txt", "");
        write(folder.path(), ".hidden", "");
        let images = Images::read_folder(folder.path(), &ImageOptions::default()).unwrap();
        assert_eq!(images.left_out, [readme, notes]);
        assert_eq!(images.len(), 3);
    }

    #[test]
    fn a_folder_without_labels_or_images_is_refused() {
        let folder = tempdir().unwrap();
        let read = |path: &Path| Images::read_folder(path, &ImageOptions::default());
        let message = read(folder.path()).unwrap_err().to_string();
        assert!(message.ends_with(": one folder for each label was expected, it has none"));
        std::fs::create_dir(folder.path().join("cat")).unwrap();
        assert_eq!(
            refusal(folder.path(), read(folder.path())),
            "cat: it has no file that ends with .png or .jpg or .jpeg or .webp or .bmp or .gif"
        );
    }
}

mod wav {
    use super::*;
    use hound::{SampleFormat, WavSpec, WavWriter};

    fn spec(channels: u16, bits: u16, format: SampleFormat) -> WavSpec {
        WavSpec { channels, sample_rate: 8000, bits_per_sample: bits, sample_format: format }
    }

    fn write_wav<S: hound::Sample + Copy>(path: &Path, spec: WavSpec, samples: &[S]) {
        let mut writer = WavWriter::create(path, spec).unwrap();
        samples.iter().for_each(|&sample| writer.write_sample(sample).unwrap());
        writer.finalize().unwrap();
    }

    #[test]
    fn floats_of_64_bits_are_read_in_both_ways_of_writing_them() {
        let folder = tempdir().unwrap();
        let samples = [0.5f64, -0.25, 1.0, 0.0];
        let data: Vec<u8> = samples.iter().flat_map(|x| x.to_le_bytes()).collect();
        // The plain header, and the extensible one, which names the format further on.
        for extensible in [false, true] {
            let mut format = Vec::new();
            format.extend(if extensible { 0xfffeu16 } else { 3 }.to_le_bytes());
            format.extend(2u16.to_le_bytes());
            format.extend(8000u32.to_le_bytes());
            format.extend(128_000u32.to_le_bytes());
            format.extend(16u16.to_le_bytes());
            format.extend(64u16.to_le_bytes());
            if extensible {
                format.extend([22, 0, 64, 0, 3, 0, 0, 0, 3, 0]);
                format.extend([0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71]);
            }
            let mut bytes = b"RIFF\0\0\0\0WAVE".to_vec();
            for (name, content) in [(b"fmt ", &format), (b"data", &data)] {
                bytes.extend(name);
                bytes.extend((content.len() as u32).to_le_bytes());
                bytes.extend(content);
            }
            let path = write(folder.path(), "x.wav", bytes);
            let read = Waveform::read(&path).unwrap();
            assert_eq!((read.samples, read.rate), (vec![0.125, 0.5], 8000));
        }
    }

    /// A WAV of one 16-bit channel, byte by byte: tag of the coding, rate, what the header says
    /// about the length of the samples, and the samples.
    fn raw(tag: u16, rate: u32, says: u32, samples: &[u8]) -> Vec<u8> {
        let mut bytes = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0".to_vec();
        bytes.extend(tag.to_le_bytes());
        bytes.extend(1u16.to_le_bytes());
        bytes.extend(rate.to_le_bytes());
        bytes.extend((2 * rate).to_le_bytes());
        bytes.extend([2, 0, 16, 0]);
        bytes.extend(b"data");
        bytes.extend(says.to_le_bytes());
        bytes.extend(samples);
        bytes
    }

    #[test]
    fn every_depth_gives_the_same_sound() {
        let folder = tempdir().unwrap();
        let path = folder.path().join("x.wav");
        for bits in [8, 16, 24, 32] {
            let full = 1i64 << (bits - 1);
            let samples = [-full, -full / 2, 0, full / 4].map(|sample| sample as i32);
            write_wav(&path, spec(1, bits, SampleFormat::Int), &samples);
            let sound = Waveform::read(&path).unwrap();
            assert_eq!((sound.samples, sound.rate), (vec![-1.0, -0.5, 0.0, 0.25], 8000), "{bits}");
        }
        write_wav(&path, spec(1, 32, SampleFormat::Float), &[-1.0f32, 0.3]);
        assert_eq!(Waveform::read(&path).unwrap().samples, [-1.0, 0.3]);
    }

    #[test]
    fn channels_are_averaged() {
        let folder = tempdir().unwrap();
        let path = folder.path().join("x.wav");
        let samples = [16384i16, 0, -16384, -16384, 8192, -8192];
        write_wav(&path, spec(2, 16, SampleFormat::Int), &samples);
        assert_eq!(Waveform::read(&path).unwrap().samples, [0.25, -0.5, 0.0]);
    }

    #[test]
    fn what_is_no_sound_is_refused_by_name() {
        let cases = [
            (
                b"MThd".to_vec(),
                "x.wav: not a recording: it is no WAV, FLAC, MP3 or Ogg Vorbis file",
            ),
            (b"".to_vec(), "x.wav: not a recording: it is no WAV, FLAC, MP3 or Ogg Vorbis file"),
            (b"RIFF\0\0\0\0WAVE".to_vec(), "x.wav: cut short: it has no samples after its header"),
            (
                raw(7, 8000, 2, &[0, 0]),
                "x.wav: its sound is coded as µ-law (format 7); PCM and float are read",
            ),
            (
                raw(0x161, 8000, 2, &[0, 0]),
                "x.wav: its sound is coded as format 353; PCM and float are read",
            ),
            (
                raw(1, 8000, 8, &[0, 0, 1, 1, 2]),
                "x.wav: cut short: its header says 4 samples, it holds 2",
            ),
            (
                raw(1, 8000, 4_000_000_000, &[]),
                "x.wav: cut short: its header says 2000000000 samples, it holds 0",
            ),
            (raw(1, 8000, 0, &[]), "x.wav: it holds no samples"),
            (raw(1, 0, 2, &[0, 0]), "x.wav: its header says 0 samples a second"),
            (
                raw(1, 8000, 3, &[0, 0, 0]),
                "x.wav: its header is damaged: Ill-formed WAVE file: data chunk length is not a \
                 multiple of sample size",
            ),
        ];
        let folder = tempdir().unwrap();
        for (bytes, expected) in cases {
            let path = write(folder.path(), "x.wav", bytes);
            assert_eq!(refusal(folder.path(), Waveform::read(&path)), expected);
        }
    }

    #[test]
    fn a_header_cut_anywhere_is_an_error_and_no_panic() {
        let folder = tempdir().unwrap();
        let whole = raw(1, 8000, 4, &[0, 0, 1, 1]);
        for length in 0..whole.len() {
            let path = write(folder.path(), "x.wav", &whole[..length]);
            let message = refusal(folder.path(), Waveform::read(&path));
            assert!(message.starts_with("x.wav: "), "{message}");
        }
    }

    #[test]
    fn a_sample_that_is_not_a_number_is_refused() {
        let folder = tempdir().unwrap();
        let path = folder.path().join("x.wav");
        write_wav(&path, spec(1, 32, SampleFormat::Float), &[0.0, f32::NAN]);
        let message = refusal(folder.path(), Waveform::read(&path));
        assert_eq!(message, "x.wav: sample 1 is not a number");
    }
}

mod mel {
    use super::*;

    #[derive(serde::Deserialize)]
    struct Known {
        choice: LogMel,
        signal: Vec<f32>,
        frames: Vec<Vec<f32>>,
    }

    fn refused(choice: LogMel) -> String {
        choice.filters().err().unwrap().to_string()
    }

    #[test]
    fn frames_are_those_of_the_plain_formula() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/mel.json");
        let known: Known = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        assert_eq!(known.choice, LogMel::new(8000));
        let sound = Waveform { samples: known.signal, rate: 8000 };
        let frames = known.choice.filters().unwrap().frames(&sound).unwrap();
        let expected = known.frames.concat();
        assert_eq!(frames.len(), expected.len());
        for (at, (own, known)) in frames.iter().zip(expected).enumerate() {
            assert!(
                (own - known).abs() < 1e-5,
                "frame {}, mel {}: {own}, {known}",
                at / 40,
                at % 40
            );
        }
    }

    #[test]
    fn a_tone_is_loudest_where_it_stands_on_the_scale() {
        let tone = |n: usize| (std::f32::consts::TAU * 1000.0 * n as f32 / 16000.0).sin();
        let sound = Waveform { samples: (0..400).map(tone).collect(), rate: 16000 };
        let frames = LogMel::new(16000).filters().unwrap().frames(&sound).unwrap();
        // 1000 Hz are 1000 mel; 40 triangles between mel(20) = 31.7 and mel(8000) = 2840 have
        // their tops every 68.5 mel: the 14th, at 991.
        let loudest = (0..40).max_by(|&a, &b| frames[a].total_cmp(&frames[b]));
        assert_eq!((frames.len(), loudest), (40, Some(13)));
    }

    #[test]
    fn a_sound_shorter_than_a_frame_is_one_frame() {
        let filters = LogMel::new(8000).filters().unwrap();
        let frames = |samples: usize| {
            filters.frames(&Waveform { samples: vec![0.1; samples], rate: 8000 }).unwrap().len()
                / 40
        };
        assert_eq!([1, 200, 201, 280, 281].map(frames), [1, 1, 2, 2, 3]);
    }

    #[test]
    fn a_tone_of_another_rate_gives_the_same_frames() {
        let filters = LogMel::new(8000).filters().unwrap();
        let frames = |rate: u32| {
            let angle = |n: u32| std::f64::consts::TAU * 1000.0 * f64::from(n) / f64::from(rate);
            let samples = (0..rate / 2).map(|n| angle(n).sin() as f32).collect();
            filters.frames(&Waveform { samples, rate }).unwrap()
        };
        let (own, other) = (frames(8000), frames(44100));
        assert_eq!(own.len(), other.len());
        // At both ends the tone begins and ends, which no filter leaves as it is; and of what is next
        // to nothing, the logarithm tells everything.
        let frames = own.chunks(40).zip(other.chunks(40)).skip(2).take(own.len() / 40 - 5);
        for (own, other) in frames {
            let loudest = own.iter().copied().fold(f32::MIN, f32::max);
            for (a, b) in own.iter().zip(other).filter(|(a, _)| **a > loudest - 8.0) {
                assert!((a - b).abs() < 0.01, "{a} {b}");
            }
        }
    }

    #[test]
    fn a_choice_that_cannot_be_is_refused() {
        let usual = || LogMel::new(8000);
        assert_eq!(refused(LogMel { hop: 0, ..usual() }), "a hop of 0; it must be at least 1");
        assert_eq!(
            refused(LogMel { window: usize::MAX, ..usual() }),
            "window 18446744073709551615 is longer than a second, 8000 samples"
        );
        for high in [4001.0, 10.0, f64::NAN] {
            assert_eq!(
                refused(LogMel { high, ..usual() }),
                format!(
                    "mel filters from 20 to {high} Hz; 0 ≤ low < high ≤ 4000, half the rate, is needed"
                )
            );
        }
        for mels in [200, usize::MAX] {
            assert_eq!(
                refused(LogMel { mels, ..usual() }),
                format!(
                    "{mels} mel filters from 20 to 4000 Hz: some are narrower than the spectrum's \
                     lines of 15.6 Hz; ask for fewer mels or a longer window"
                )
            );
        }
    }

    #[test]
    fn standard_features_have_mean_zero_and_deviation_one() {
        let mut sequences = vec![vec![1.0, 7.0, 2.0, 7.0], vec![6.0, 7.0]];
        let standard = StandardScaler::fit(&sequences, 2).unwrap();
        assert_eq!((&standard.mean[..], standard.deviation[1]), (&[3.0, 7.0][..], 1.0));
        assert!((standard.deviation[0] - (14.0f32 / 3.0).sqrt()).abs() < 1e-6);
        sequences.iter_mut().for_each(|sequence| standard.apply(sequence).unwrap());
        let again = StandardScaler::fit(&sequences, 2).unwrap();
        assert!(again.mean[0].abs() < 1e-6 && (again.deviation[0] - 1.0).abs() < 1e-6);
        assert_eq!(again.mean[1], 0.0);
    }

    #[test]
    fn a_constant_has_deviation_one_and_a_small_feature_its_own() {
        let row = |at: usize| [0.1, 1e-9 * at as f32];
        let standard = StandardScaler::fit(&[(0..3).flat_map(row).collect()], 2).unwrap();
        assert_eq!(standard.deviation[0], 1.0);
        assert!((standard.deviation[1] / 8.165e-10 - 1.0).abs() < 1e-3);
    }

    #[test]
    fn vectors_of_another_width_and_none_at_all_are_refused() {
        let message = |result: Result<StandardScaler>| result.unwrap_err().to_string();
        assert_eq!(
            message(StandardScaler::fit(&[vec![1.0; 3]], 2)),
            "3 values are not vectors of width 2"
        );
        assert_eq!(
            message(StandardScaler::fit(&[vec![]], 2)),
            "there are no vectors to measure a mean and deviation of"
        );
    }
}

mod sounds {
    use super::*;

    fn found(path: &Path, options: &SoundOptions) -> Vec<(String, String, bool)> {
        let sounds = Sounds::find(path, options).unwrap().sounds.into_iter();
        let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        sounds.map(|sound| (name(sound.path), sound.label, sound.test)).collect()
    }

    fn refused(folder: &Path, path: &Path, options: &SoundOptions) -> String {
        let error = Sounds::find(path, options).unwrap_err();
        refusal(folder, Err::<(), Error>(error))
    }

    #[test]
    fn a_folder_is_a_label() {
        let folder = tempdir().unwrap();
        for name in ["no/2.wav", "yes/1.wav", "no/1.WAV"] {
            write(folder.path(), name, "");
        }
        let other = write(folder.path(), "no/1.txt", "");
        let sounds = found(folder.path(), &SoundOptions::default());
        let expected = [("1.WAV", "no"), ("2.wav", "no"), ("1.wav", "yes")];
        assert_eq!(sounds, expected.map(|(name, label)| (name.into(), label.into(), false)));
        let left_out = Sounds::find(folder.path(), &SoundOptions::default()).unwrap().left_out;
        assert_eq!(left_out, [other]);
    }

    #[test]
    fn a_list_names_files_beside_it() {
        let folder = tempdir().unwrap();
        for name in ["a/1.wav", "2.wav"] {
            write(folder.path(), name, "");
        }
        let list = write(folder.path(), "list.tsv", "yes\ta/1.wav\nno\t2.wav\n\n");
        let sounds = found(&list, &SoundOptions::default());
        let expected = [("1.wav", "yes"), ("2.wav", "no")];
        assert_eq!(sounds, expected.map(|(name, label)| (name.into(), label.into(), false)));
    }

    #[test]
    fn a_bad_list_is_refused_by_line() {
        let folder = tempdir().unwrap();
        write(folder.path(), "1.wav", "");
        let cases = [
            (
                "yes\t1.wav\nno 1.wav",
                "line 2: label and path with a tab between were expected, 1 column is there",
            ),
            ("\t1.wav", "line 1: the label is empty"),
            (
                "yes\t1.wav\n\nno\t1.wav",
                "line 2: label and path with a tab between were expected, 1 column is there",
            ),
            ("yes\t2.wav", "line 1: there is no file 2.wav"),
        ];
        for (text, expected) in cases {
            let list = write(folder.path(), "list.tsv", text);
            let message = refused(folder.path(), &list, &SoundOptions::default());
            assert_eq!(message, format!("list.tsv, {expected}"));
        }
        let latin1 = write(folder.path(), "list.tsv", b"yes\t1.wav\nn\xf3\t1.wav\n");
        let message = refused(folder.path(), &latin1, &SoundOptions::default());
        assert!(message.starts_with("list.tsv, line 2: "), "{message}");
        let list = write(folder.path(), "list.tsv", "\n");
        let message = refused(folder.path(), &list, &SoundOptions::default());
        assert_eq!(message, "list.tsv: it lists no recordings");
    }

    #[test]
    fn fields_of_a_name_give_the_label_and_the_part() {
        let folder = tempdir().unwrap();
        for name in ["7_ann_5.wav", "7_ann_4.wav", "3_bob_12.wav"] {
            write(folder.path(), name, "");
        }
        let options =
            SoundOptions { label_field: Some(1), split_field: Some(2), split_test_below: 5 };
        let expected = [
            ("3_bob_12.wav", "bob", false),
            ("7_ann_4.wav", "ann", true),
            ("7_ann_5.wav", "ann", false),
        ];
        assert_eq!(
            found(folder.path(), &options),
            expected.map(|(name, label, test)| (name.into(), label.into(), test))
        );
        let label_only = SoundOptions { split_field: None, ..options };
        assert!(found(folder.path(), &label_only).iter().all(|&(_, _, test)| !test));
    }

    #[test]
    fn a_name_without_the_field_is_refused() {
        let folder = tempdir().unwrap();
        let folder = folder.path();
        write(folder, "7_ann_x.wav", "");
        let options = |label, split| SoundOptions {
            label_field: label,
            split_field: split,
            split_test_below: 5,
        };
        let refused = |options| refused(folder, folder, &options);
        assert_eq!(
            refused(options(Some(3), None)),
            "7_ann_x.wav: its name has no field 3, counted from 0"
        );
        assert_eq!(
            refused(options(Some(0), Some(2))),
            "7_ann_x.wav: field 2 of its name, \"x\", is not a number"
        );
        let message = refused(options(None, None));
        assert!(
            message.contains("recordings and no folders; `label_field` says which"),
            "{message}"
        );
    }

    #[test]
    fn a_folder_without_recordings_is_refused() {
        let folder = tempdir().unwrap();
        let options = SoundOptions { label_field: Some(0), ..SoundOptions::default() };
        let message = refused(folder.path(), folder.path(), &options);
        assert!(
            message
                .ends_with(": it has no file that ends with .wav or .flac or .mp3 or .ogg or .oga"),
            "{message}"
        );
        let nowhere = folder.path().join("nowhere");
        let message = refused(folder.path(), &nowhere, &SoundOptions::default());
        assert!(message.starts_with("nowhere: "), "{message}");
    }

    #[test]
    #[ignore = "needs ../shared/data"]
    fn the_spoken_digits_are_read_whole() {
        let folder = corpus("fsdd/recordings");
        // The corpus's own split: recordings 0 to 4 of each speaker and digit are for the test
        // (https://github.com/Jakobovski/free-spoken-digit-dataset).
        let options =
            SoundOptions { label_field: Some(0), split_field: Some(2), split_test_below: 5 };
        let sounds = Sounds::find(&folder, &options).unwrap().sounds;
        assert_eq!(sounds.len(), 3000);
        assert_eq!(sounds.iter().filter(|sound| sound.test).count(), 300);
        let filters = LogMel::new(8000).filters().unwrap();
        let frames: Vec<Vec<f32>> = sounds
            .iter()
            .map(|sound| filters.frames(&Waveform::read(&sound.path).unwrap()).unwrap())
            .collect();
        let standard = StandardScaler::fit(&frames, 40).unwrap();
        assert!(standard.deviation.iter().all(|deviation| deviation.is_finite()));
    }
}
