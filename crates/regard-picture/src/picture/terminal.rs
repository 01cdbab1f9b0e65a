//! Scenes in a terminal: blocks of shade or color, bars, and points.

use super::color::{self, Rgb};
use super::label::{self, columns, fitted_in_columns, is_wide};
use super::patches;
use super::scale::{Axis, Scale};
use crate::scene::sound::SoundScene;
use crate::scene::{CurveScene, GraphScene, ImageScene, Map, Maps, Scene};

/// The narrowest terminal that is drawn for.
const NARROWEST: usize = 20;
/// The tallest labels of columns, in lines.
const TALLEST: usize = 12;
/// How many edges are listed.
const MOST_EDGES: usize = 20;

/// Draws one of a scene's maps in lines of at most `width` columns (20 or more), with 256 colors
/// or in shades only.
///
/// Of a graph it lists the center's heaviest edges; beside an image it draws the weights of its
/// parts; of a regression it plots the curve. Where there is no such map, it says so.
///
/// ```
/// use regard_picture::picture;
/// use regard_picture::scene::{Map, Maps, Scene};
/// let scene = Scene::Maps(Maps {
///     row_axis: "output".into(),
///     column_axis: "source".into(),
///     rows: vec!["花园".into()],
///     columns: vec!["a".into(), "b".into()],
///     maps: vec![Map::new("head 1", vec![0.0, 1.0])],
/// });
/// assert!(picture::terminal(&scene, 0, 80, false).contains("花园   ██"));
/// ```
pub fn terminal(scene: &Scene, which: usize, width: usize, color: bool) -> String {
    let Some(map) = scene.maps().get(which) else {
        return match scene.maps().len() {
            0 => "There are no weights to draw.\n".to_owned(),
            count => format!("There are {count} maps only.\n"),
        };
    };
    let brush = Brush { scale: Scale::of(std::slice::from_ref(map)), color };
    let width = width.max(NARROWEST);
    let mut lines = vec![fitted_in_columns(&map.name, width)];
    match scene {
        Scene::Maps(scene) => maps(&mut lines, scene, map, width, brush),
        Scene::Graph(scene) => graph(&mut lines, scene, map, width, brush.scale),
        Scene::Image(scene) => image(&mut lines, scene, map, width, brush),
        Scene::Curve(scene) => curve(&mut lines, scene, map, width, brush),
        Scene::Sound(scene) => sound(&mut lines, scene, map, width, brush),
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// How weights look.
#[derive(Clone, Copy)]
struct Brush {
    scale: Scale,
    color: bool,
}

impl Brush {
    /// A cell so many columns wide.
    fn cell(self, weight: Option<f32>, wide: usize) -> String {
        let Some(share) = weight.map(|weight| self.scale.share(weight)) else {
            return "?".repeat(wide);
        };
        match self.color {
            true => painted(color::heat_in_the_dark(share), wide),
            false => shade(share).to_string().repeat(wide),
        }
    }

    /// A cell of several weights: hidden where a mask hides all of them, else the greatest.
    fn block(self, map: &Map, places: impl Iterator<Item = usize> + Clone, wide: usize) -> String {
        match map.masked.is_empty() || !places.clone().all(|place| map.is_masked(place)) {
            true => self.cell(places.filter_map(|place| map.weight(place)).reduce(f32::max), wide),
            false => "╱".repeat(wide),
        }
    }

    fn legend(self) -> String {
        let Scale { low, high } = self.scale;
        let steps = (0..=8).map(|i| Some(low + (high - low) * i as f32 / 8.0));
        let bar: String = steps.map(|weight| self.cell(weight, 1)).collect();
        format!("{} {bar} {}", label::number(low.into()), label::number(high.into()))
    }
}

/// Little is shown as little, only next to nothing as nothing.
fn shade(share: f32) -> char {
    match share {
        share if share < 0.03 => ' ',
        share if share < 0.25 => '░',
        share if share < 0.5 => '▒',
        share if share < 0.75 => '▓',
        _ => '█',
    }
}

fn painted(color: Rgb, wide: usize) -> String {
    format!("\x1b[48;5;{}m{}\x1b[0m", nearest_of_256(color), " ".repeat(wide))
}

/// The nearest of xterm's 6 × 6 × 6 colors.
fn nearest_of_256(rgb: Rgb) -> u8 {
    const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let nearest = |value: u8| (0..6u8).min_by_key(|&i| LEVELS[i as usize].abs_diff(value));
    let [r, g, b] = rgb.map(|value| nearest(value).unwrap_or(0));
    16 + 36 * r + 6 * g + b
}

fn maps(lines: &mut Vec<String>, scene: &Maps, map: &Map, width: usize, brush: Brush) {
    let longest = scene.rows.iter().map(|text| columns(text)).max().unwrap_or(0);
    let count = scene.columns.len();
    // Beside few columns there is room for a row's whole sentence.
    let room = if count <= 8 { width.saturating_sub(2 * count + 2) } else { (width / 3).min(24) };
    let left = longest.min(room);
    let available = width - left - 1;
    let wide = if 2 * count <= available { 2 } else { 1 };
    let block = count.div_ceil(available).max(1);
    let has_wide = scene.columns.iter().any(|text| label::signs(text).any(is_wide));
    let is_numbered = wide == 1 && has_wide;
    if block == 1 {
        let numbers: Vec<String> = (1..=count).map(|i| i.to_string()).collect();
        let names = if is_numbered { &numbers } else { &scene.columns };
        lines.extend(upright(names, wide).iter().map(|line| " ".repeat(left + 1) + line));
    }
    for (row, name) in scene.rows.iter().enumerate() {
        let cells = (0..count).step_by(block).map(|first| {
            let places = row * count + first..row * count + (first + block).min(count);
            brush.block(map, places, wide)
        });
        lines.push(format!("{} {}", padded(name, left), cells.collect::<String>()));
    }
    let hidden = if map.masked.is_empty() { "" } else { "   ╱ masked" };
    lines.push(brush.legend() + hidden);
    if block > 1 {
        lines.push(fitted_in_columns(&format!("{block} columns of {count} to a cell"), width));
    } else if is_numbered {
        let key = scene.columns.iter().enumerate().map(|(i, name)| format!("{} {name}", i + 1));
        lines.extend(joined(key, width));
    }
}

/// Names written downwards, standing on the last line, each `wide` columns wide.
fn upright(names: &[String], wide: usize) -> Vec<String> {
    let names: Vec<Vec<String>> = names
        .iter()
        .map(|name| {
            let name = label::visible(name);
            let signs = label::signs(&name).filter(|sign| columns(sign) > 0);
            let mut signs: Vec<String> = signs.map(str::to_owned).collect();
            if signs.len() > TALLEST {
                signs.truncate(TALLEST - 1);
                signs.push("…".to_owned());
            }
            signs
        })
        .collect();
    let tall = names.iter().map(Vec::len).max().unwrap_or(0);
    let sign = |name: &Vec<String>, line: usize| {
        let sign = (line + name.len()).checked_sub(tall).and_then(|place| name.get(place));
        padded(sign.map_or("", String::as_str), wide)
    };
    let line = |line: usize| names.iter().map(|name| sign(name, line)).collect();
    (0..tall).map(line).collect()
}

/// The text in exactly so many columns.
fn padded(text: &str, wide: usize) -> String {
    let text = fitted_in_columns(text, wide);
    let available = wide.saturating_sub(columns(&text));
    text + &" ".repeat(available)
}

/// Words in as few lines as they fit in.
fn joined(words: impl Iterator<Item = String>, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        let word = fitted_in_columns(&word, width);
        match lines.last_mut() {
            Some(line) if columns(line) + 2 + columns(&word) <= width => {
                line.push_str("  ");
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

fn graph(lines: &mut Vec<String>, scene: &GraphScene, map: &Map, width: usize, scale: Scale) {
    let is_shown = |edge: &usize| scene.center.is_none_or(|center| scene.edges[*edge].0 == center);
    let mut edges: Vec<usize> = (0..scene.edges.len()).filter(is_shown).collect();
    let weight = |edge: usize| map.weight(edge);
    edges.sort_by(|&a, &b| {
        weight(b).unwrap_or(-1.0).total_cmp(&weight(a).unwrap_or(-1.0)).then(a.cmp(&b))
    });
    let name = |node: usize| scene.nodes.get(node).map_or("?", String::as_str);
    let words = |edge: usize| {
        let (from, to) = scene.edges[edge];
        match from == to {
            true => format!("{} → itself", name(from)),
            false => format!("{} → {}", name(from), name(to)),
        }
    };
    let shown = edges.len().min(MOST_EDGES);
    let longest = edges[..shown].iter().map(|&edge| columns(&words(edge))).max().unwrap_or(0);
    let left = longest.min(width * 2 / 5);
    let available = width - left - 8;
    for &edge in &edges[..shown] {
        let share = weight(edge).map_or(0.0, |weight| scale.share(weight));
        let bar = bar(share, available);
        let number = weight(edge).map_or("    ?".to_owned(), |weight| format!("{weight:.3}"));
        lines.push(format!("{} {number} {bar}", padded(&words(edge), left)));
    }
    if edges.len() > shown {
        lines.push(format!("… and {} more", edges.len() - shown));
    }
}

/// A bar in eighths of a column.
fn bar(share: f32, available: usize) -> String {
    let eighths = (share * 8.0 * available as f32).round() as usize;
    let last = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    "█".repeat(eighths / 8) + last
}

fn image(lines: &mut Vec<String>, scene: &ImageScene, map: &Map, width: usize, brush: Brush) {
    let pixels = patches::picture(scene);
    let wide = if 4 * scene.columns + 3 <= width { 2 } else { 1 };
    let shown = scene.columns.min((width - 3) / (2 * wide));
    let mean = |row: usize, column: usize| -> [f32; 3] {
        let span = |part: usize, parts: usize, all: usize| {
            let first = part * all / parts.max(1);
            first..((part + 1) * all / parts.max(1)).max(first + 1).min(all)
        };
        let mut sum = [0.0; 4];
        for y in span(row, scene.rows, scene.height) {
            for x in span(column, scene.columns, scene.width) {
                let place = 3 * (y * scene.width + x);
                for (sum, &byte) in sum.iter_mut().zip(&pixels.bytes[place..place + 3]) {
                    *sum += f32::from(byte);
                }
                sum[3] += 1.0;
            }
        }
        [0, 1, 2].map(|i| sum[i] / f32::max(sum[3], 1.0))
    };
    for row in 0..scene.rows {
        let picture = (0..shown).map(|column| {
            let mean = mean(row, column);
            match brush.color {
                true => painted(mean.map(|value| value.round() as u8), wide),
                false => shade(mean.iter().sum::<f32>() / 765.0).to_string().repeat(wide),
            }
        });
        let weights = (0..shown).map(|c| brush.cell(map.weight(row * scene.columns + c), wide));
        lines.push(format!("{} │ {}", picture.collect::<String>(), weights.collect::<String>()));
    }
    lines.push(brush.legend());
}

fn curve(lines: &mut Vec<String>, scene: &CurveScene, map: &Map, width: usize, brush: Brush) {
    let (left, tall) = (8, 16);
    let available = width - left - 1;
    let across = Axis::spanning(
        scene.x.iter().chain(&scene.at).map(|&x| f64::from(x)),
        0.0,
        (available - 1) as f64,
    );
    let truth = scene.truth.as_deref().unwrap_or_default();
    let values = scene.y.iter().chain(&scene.curve).chain(truth).map(|&y| f64::from(y));
    let up = Axis::spanning(values, (tall - 1) as f64, 0.0);
    let mut paper = vec![vec![' '; available]; tall];
    let mut plot = |xs: &[f32], ys: &[f32], sign: char| {
        for (&x, &y) in xs.iter().zip(ys).filter(|(x, y)| x.is_finite() && y.is_finite()) {
            let (row, column) = (up.place(y.into()).round(), across.place(x.into()).round());
            paper[row as usize][column as usize] = sign;
        }
    };
    plot(&scene.at, truth, '·');
    plot(&scene.x, &scene.y, 'o');
    plot(&scene.at, &scene.curve, '*');
    let query = scene.query.filter(|query| query.is_finite()).map(|query| {
        let column = across.place(query.into()).round().clamp(0.0, (available - 1) as f64);
        (query, column as usize)
    });
    for (row, signs) in paper.iter().enumerate() {
        let value = match row {
            0 => label::number(up.value(1.0)),
            row if row == tall - 1 => label::number(up.value(0.0)),
            _ => String::new(),
        };
        let line: String = signs.iter().collect();
        lines.push(format!("{value:>left$}│{}", line.trim_end()));
    }
    let mut below: Vec<char> = vec!['─'; available];
    if let Some((_, column)) = query {
        below[column] = '▲';
    }
    lines.push(format!("{:left$}└{}", "", below.iter().collect::<String>()));
    let (first, last) = (label::number(across.value(0.0)), label::number(across.value(1.0)));
    lines.push(format!("{:left$} {first}{last:>1$}", "", available - first.len()));
    let query = query
        .map_or(String::new(), |(query, _)| format!("  ▲ query {}", label::number(query.into())));
    let key = format!("* curve  o data  · truth{query}; below, the weight of each datum:");
    lines.push(fitted_in_columns(&key, width));
    kernel(lines, scene, map, [left, available], brush);
}

/// The kernel: a line for some of the points asked for, a cell for each datum or block of them.
fn kernel(lines: &mut Vec<String>, scene: &CurveScene, map: &Map, sizes: [usize; 2], brush: Brush) {
    let [left, available] = sizes;
    let data = super::curve::data_in_order(scene);
    let block = data.len().div_ceil(available).max(1);
    for at in (0..scene.at.len()).step_by(scene.at.len().div_ceil(12).max(1)) {
        let cells = data.chunks(block).map(|some| {
            let weights = some.iter().filter_map(|datum| map.weight(at * data.len() + datum));
            brush.cell(weights.reduce(f32::max), 1)
        });
        let value = label::number(scene.at[at].into());
        lines.push(format!("{value:>left$} {}", cells.collect::<String>()));
    }
    lines.push(brush.legend());
}

/// The rows over blocks of time, and under them how loud each block is.
fn sound(lines: &mut Vec<String>, scene: &SoundScene, map: &Map, width: usize, brush: Brush) {
    let (names, count) = (&scene.weights.rows, scene.weights.columns.len());
    let longest = names.iter().map(|text| columns(text)).max().unwrap_or(0).max(5);
    let left = longest.min(width / 3).min(24);
    let block = count.div_ceil(width - left - 1).max(1);
    for (row, name) in names.iter().enumerate() {
        let cells = (0..count).step_by(block).map(|first| {
            let moments = first..(first + block).min(count);
            let weights = moments.filter_map(|at| map.weight(row * count + at));
            brush.cell(weights.reduce(f32::max), 1)
        });
        lines.push(format!("{} {}", padded(name, left), cells.collect::<String>()));
    }
    let energy = |frame: &[f32]| frame.iter().sum::<f32>() / frame.len() as f32;
    let frames = scene.spectrogram.chunks_exact(scene.features.max(1));
    let frames: Vec<f32> = frames.map(energy).collect();
    let low = frames.iter().copied().fold(f32::INFINITY, f32::min);
    let high = frames.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let across = count.div_ceil(block);
    let loudness = (0..across).map(|column| {
        let at = |column: usize| column * frames.len() / across.max(1);
        let loudest = frames[at(column)..at(column + 1)].iter().copied().fold(low, f32::max);
        shade((loudest - low) / (high - low).max(f32::MIN_POSITIVE))
    });
    lines.push(format!("{} {}", padded("sound", left), loudness.collect::<String>()));
    lines.push(brush.legend());
    let seconds = label::number(scene.seconds());
    lines.push(fitted_in_columns(&format!("{seconds} {} from left to right", scene.unit), width));
}
