//! The weights of a scene as numbers for other programs: CSV for a table, `.npz` for numpy.

use regard_picture::scene::{Map, Scene};

/// A line for each weight: its map, what attends, what is attended to, and the weight.
pub(crate) fn csv(scene: &Scene, which: Option<usize>) -> String {
    let places = places(scene);
    let mut text = "map,row,column,weight\n".to_string();
    for map in chosen(scene, which) {
        for ((row, column), weight) in places.iter().zip(&map.weights) {
            let name = quoted(&map.name);
            text += &format!("{name},{},{},{weight}\n", quoted(row), quoted(column));
        }
    }
    text
}

/// `weights` [maps, rows, columns], of a graph [maps, edges] with `edges` [edges, 2] beside them.
pub(crate) fn npz(scene: &Scene, which: Option<usize>) -> Vec<u8> {
    let maps = chosen(scene, which);
    let weights = maps.iter().flat_map(|map| &map.weights).flat_map(|x| x.to_le_bytes()).collect();
    let mut shape = vec![maps.len()];
    shape.extend(shape_of(scene));
    let mut arrays = vec![("weights.npy", npy("<f4", &shape, weights))];
    if let Scene::Graph(graph) = scene {
        let ends = graph.edges.iter().flat_map(|&(from, to)| [from as i64, to as i64]);
        let ends = ends.flat_map(i64::to_le_bytes).collect();
        arrays.push(("edges.npy", npy("<i8", &[graph.edges.len(), 2], ends)));
    }
    zip(&arrays)
}

fn chosen(scene: &Scene, which: Option<usize>) -> Vec<&Map> {
    let all = scene.maps().iter().enumerate();
    all.filter(|(at, _)| which.is_none_or(|one| one == *at)).map(|(_, map)| map).collect()
}

/// The names of each weight's row and column, in the order of the weights.
fn places(scene: &Scene) -> Vec<(String, String)> {
    let grid = |rows: &[String], columns: &[String]| {
        let pair = |row: &String| {
            columns.iter().map(|column| (row.clone(), column.clone())).collect::<Vec<_>>()
        };
        rows.iter().flat_map(pair).collect()
    };
    let counted = |count: usize| (1..=count).map(|at| at.to_string()).collect::<Vec<_>>();
    let written = |all: &[f32]| all.iter().map(f32::to_string).collect::<Vec<_>>();
    match scene {
        Scene::Maps(maps) => grid(&maps.rows, &maps.columns),
        Scene::Sound(sound) => grid(&sound.weights.rows, &sound.weights.columns),
        Scene::Image(image) => grid(&counted(image.rows), &counted(image.columns)),
        Scene::Curve(curve) => grid(&written(&curve.at), &written(&curve.x)),
        Scene::Graph(graph) => {
            let name = |at: usize| graph.nodes.get(at).cloned().unwrap_or_default();
            graph.edges.iter().map(|&(from, to)| (name(from), name(to))).collect()
        }
    }
}

fn shape_of(scene: &Scene) -> Vec<usize> {
    match scene {
        Scene::Maps(maps) => vec![maps.rows.len(), maps.columns.len()],
        Scene::Sound(sound) => vec![sound.weights.rows.len(), sound.weights.columns.len()],
        Scene::Image(image) => vec![image.rows, image.columns],
        Scene::Curve(curve) => vec![curve.at.len(), curve.x.len()],
        Scene::Graph(graph) => vec![graph.edges.len()],
    }
}

/// A field as RFC 4180 has it.
fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.into(),
    }
}

/// An array as numpy's format 1.0 has it: a header that ends at a multiple of 64 bytes, and the numbers.
fn npy(kind: &str, shape: &[usize], numbers: Vec<u8>) -> Vec<u8> {
    let shape: String = shape.iter().map(|side| format!("{side}, ")).collect();
    let shape = shape.trim_end();
    let told = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({shape}), }}");
    let length = (10 + told.len() + 1).next_multiple_of(64) - 10;
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((length as u16).to_le_bytes());
    bytes.extend(format!("{told:<width$}\n", width = length - 1).into_bytes());
    bytes.extend(numbers);
    bytes
}

/// Files side by side, not compressed.
fn zip(files: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in files {
        let at = bytes.len() as u32;
        // What stands in both places: version 2.0, no flags, stored, the first day that there is.
        let mut told: Vec<u8> =
            [20u16, 0, 0, 0, 0x21].into_iter().flat_map(u16::to_le_bytes).collect();
        let size = content.len() as u32;
        told.extend([crc32(content), size, size].into_iter().flat_map(u32::to_le_bytes));
        told.extend([name.len() as u16, 0].into_iter().flat_map(u16::to_le_bytes));
        bytes.extend(b"PK\x03\x04");
        bytes.extend(&told);
        bytes.extend(name.as_bytes());
        bytes.extend(content);
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&told);
        // No comment, disk 0, no attributes.
        directory.extend([0; 10]);
        directory.extend(at.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let count = files.len() as u16;
    let (size, at) = (directory.len() as u32, bytes.len() as u32);
    bytes.extend(directory);
    bytes.extend(b"PK\x05\x06\x00\x00\x00\x00");
    bytes.extend([count, count].into_iter().flat_map(u16::to_le_bytes));
    bytes.extend([size, at].into_iter().flat_map(u32::to_le_bytes));
    bytes.extend([0, 0]);
    bytes
}

/// The checksum of zip and PNG.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, &byte: &u8| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    };
    !bytes.iter().fold(!0, step)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use regard_data::files::NumpyArray;
    use regard_picture::scene::{GraphScene, Maps};

    fn scene() -> Scene {
        let names = |all: [&str; 2]| all.map(String::from).to_vec();
        Scene::Maps(Maps {
            row_axis: "output".into(),
            column_axis: "source".into(),
            rows: names(["a", "b"]),
            columns: names(["c, d", "\"e\""]),
            maps: vec![
                Map::new("layer 1, head 1", vec![0.5, 0.5, 1.0, 0.0]),
                Map::new("layer 1, head 2", vec![0.25, 0.75, 0.0, 1.0]),
            ],
        })
    }

    #[test]
    fn the_checksum_is_the_one_of_the_standard() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn a_table_has_a_line_for_each_weight_of_the_chosen_head() {
        let text = csv(&scene(), Some(1));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 1 + 4);
        assert_eq!(lines[1], "\"layer 1, head 2\",a,\"c, d\",0.25");
        assert_eq!(lines[4], "\"layer 1, head 2\",b,\"\"\"e\"\"\",1");
        assert_eq!(csv(&scene(), None).lines().count(), 1 + 8);
    }

    #[test]
    fn arrays_are_read_as_they_were_written() {
        let read = |bytes: &[u8]| NumpyArray::decode_all("a.npz".as_ref(), bytes).unwrap();
        let all = read(&npz(&scene(), None));
        assert_eq!((&all[0].0[..], &all[0].1.shape[..]), ("weights", &[2, 2, 2][..]));
        assert_eq!(read(&npz(&scene(), Some(0)))[0].1.shape, [1, 2, 2]);
        let graph = Scene::Graph(GraphScene {
            nodes: vec!["7".into(), "9".into()],
            classes: vec![None, None],
            class_names: Vec::new(),
            center: None,
            edges: vec![(0, 1), (1, 0), (1, 1)],
            maps: vec![Map::new("head 1", vec![1.0, 0.5, 0.5])],
        });
        let all = read(&npz(&graph, None));
        let shapes: Vec<&[usize]> = all.iter().map(|(_, array)| &array.shape[..]).collect();
        assert_eq!(shapes, [&[1, 3][..], &[3, 2]]);
        assert_eq!(csv(&graph, None).lines().nth(2), Some("head 1,9,7,0.5"));
    }
}
