//! Spectrograms, and over them what was attended to.

use super::caption::Caption;
use super::color::{self, FAINT, GRID, INK, Rgb};
use super::label;
use super::scale::{Axis, Scale};
use super::svg::{Pixels, Svg, Text, escaped, short};
use crate::scene::Map;
use crate::scene::sound::{SoundScene, Track};

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 150.0;
const MARGIN: f64 = 20.0;
/// A row of a map, and of a track.
const ROW: f64 = 17.0;
/// How much of a word's color covers the moment with its greatest weight.
const COVER: f32 = 0.6;
/// A word stands above the moment it was heard at where its weight there is at least this share of the
/// greatest of all: a row of even weights has no such moment.
const STANDS_OUT: f32 = 0.4;
/// Up to so many maps are drawn below each other.
const MOST_MAPS: usize = 16;
/// Rows, of all maps together, that are drawn as curves; more are colors.
const MOST_CURVES: usize = 3;
const CURVE: f64 = 64.0;
/// The most pixels across; of several moments in one the loudest, or the heaviest, shows.
const MOST_PIXELS: usize = 1200;

/// The spectrogram with the mean of some maps over it; the segments; and the maps themselves below,
/// on the same time.
pub(crate) fn draw(scene: &SoundScene, maps: &[Map], caption: &Caption) -> String {
    Sheet::new(scene).draw(&maps[..maps.len().min(MOST_MAPS)], caption)
}

struct Sheet<'a> {
    scene: &'a SoundScene,
    left: f64,
    time: Axis,
    svg: Svg,
}

impl<'a> Sheet<'a> {
    fn new(scene: &'a SoundScene) -> Self {
        let tracks = scene.tracks.iter().map(|track| &track.name);
        let names = scene.weights.rows.iter().chain(tracks);
        let widest = names.map(|name| label::width(&fitted(name), 11.0)).fold(30.0, f64::max);
        let left = MARGIN + widest + 8.0;
        // A last frame is longer than the step to the next: segments may end behind the frames. And the last
        // of several stacked frames may be filled up.
        let ends = scene.tracks.iter().flat_map(|track| &track.segments).map(|one| one.end);
        let keys = scene.weights.columns.len() as f64 * scene.key_step;
        let seconds = ends.fold(scene.seconds().max(scene.step).max(keys), f64::max);
        let time = Axis::spanning([0.0, seconds], left, left + WIDTH);
        Self { scene, left, time, svg: Svg::default() }
    }

    fn draw(mut self, maps: &[Map], caption: &Caption) -> String {
        let full = self.left + WIDTH + 90.0;
        let mut y = caption.draw(&mut self.svg, MARGIN, full - 2.0 * MARGIN);
        y = self.words(maps, y);
        self.spectrogram(maps, y);
        y = self.axis(y + HEIGHT);
        for track in &self.scene.tracks {
            self.track(track, y);
            y += ROW + 6.0;
        }
        if maps.is_empty() {
            let what = "This model attends to nothing.";
            self.svg.text(Text::at(self.left, y + 14.0, what).fill(FAINT));
            return self.svg.finish(full, y + 34.0);
        }
        let scale = Scale::of(maps);
        let are_curves = maps.len() * self.scene.weights.rows.len() <= MOST_CURVES;
        for (at, map) in maps.iter().enumerate() {
            y += 18.0;
            let name = label::fitted(&map.name, 11.0, WIDTH);
            self.svg.text(Text::at(self.left, y - 5.0, &name).size(11.0).faint());
            if are_curves {
                y = self.curves(map, scale, y);
                continue;
            }
            if at == 0 {
                let height = (self.scene.weights.rows.len() as f64 * ROW).clamp(40.0, 120.0);
                scale.legend(&mut self.svg, self.left + WIDTH + 14.0, y, height);
            }
            y = self.map(map, scale, y);
        }
        self.svg.finish(full, y.max(100.0) + MARGIN)
    }

    /// The weight of a row on a key, over all maps shown.
    fn weight(&self, maps: &[Map], row: usize, key: usize) -> f32 {
        let keys = self.scene.weights.columns.len();
        let all = maps.iter().filter_map(|map| map.weight(row * keys + key));
        all.sum::<f32>() / maps.len().max(1) as f32
    }

    /// The greatest weight of all rows.
    fn greatest(&self, maps: &[Map]) -> f32 {
        let (rows, keys) = (self.scene.weights.rows.len(), self.scene.weights.columns.len());
        let cells = (0..rows).flat_map(|row| (0..keys).map(move |key| (row, key)));
        cells.map(|(row, key)| self.weight(maps, row, key)).fold(1e-9, f32::max)
    }

    /// Where the greatest weight of a row lies; none where the row looks nowhere in particular.
    fn middle(&self, maps: &[Map], row: usize, greatest: f32) -> Option<f64> {
        let keys = 0..self.scene.weights.columns.len();
        let best = keys.max_by(|&a, &b| {
            self.weight(maps, row, a).total_cmp(&self.weight(maps, row, b)).then(b.cmp(&a))
        })?;
        let stands_out = self.weight(maps, row, best) >= STANDS_OUT * greatest;
        stands_out.then(|| self.time.place((best as f64 + 0.5) * self.scene.key_step))
    }

    /// The words above the places they were heard at, in as many lines as they need.
    fn words(&mut self, maps: &[Map], y: f64) -> f64 {
        let rows = &self.scene.weights.rows;
        if maps.is_empty() || rows.len() < 2 {
            return y;
        }
        let greatest = self.greatest(maps);
        let mut lines: Vec<f64> = Vec::new();
        let mut placed = Vec::new();
        for (row, word) in rows.iter().enumerate() {
            let Some(x) = self.middle(maps, row, greatest) else { continue };
            let word = fitted(word);
            let half = label::width(&word, 11.0) / 2.0 + 3.0;
            let line = lines.iter().position(|&end| end <= x - half).unwrap_or(lines.len());
            match lines.get_mut(line) {
                Some(end) => *end = x + half,
                None => lines.push(x + half),
            }
            placed.push((row, word, x, line));
        }
        let top = y + 10.0;
        for (row, word, x, line) in placed {
            let fill = color::hex(row_color(row));
            let height = top + line as f64 * 14.0;
            self.svg.line([x, height + 3.0], [x, top + lines.len() as f64 * 14.0], GRID, 1.0);
            self.svg.text(Text::at(x, height, &word).size(11.0).middle().bold().fill(&fill));
        }
        top + lines.len() as f64 * 14.0
    }

    fn spectrogram(&mut self, maps: &[Map], y: f64) {
        let scene = self.scene;
        let features = scene.features.max(1);
        let frames = scene.spectrogram.len() / features;
        let finite = || scene.spectrogram.iter().copied().filter(|x| x.is_finite());
        let low = finite().fold(f32::INFINITY, f32::min);
        let high = finite().fold(f32::NEG_INFINITY, f32::max);
        let span = if high > low { high - low } else { 1.0 };
        let blocks = Blocks::of(frames);
        let gray = |at: usize| {
            // The highest pitch stands at the top.
            let (row, column) = (features - 1 - at / blocks.count, at % blocks.count);
            let values =
                blocks.range(column).map(|frame| scene.spectrogram[frame * features + row]);
            let value = values.filter(|value| value.is_finite()).fold(low, f32::max);
            let share = if value.is_finite() { (value - low) / span } else { 0.0 };
            [(250.0 - 215.0 * share * share).round() as u8; 3]
        };
        let place = [self.left, y, self.time.place(scene.seconds()) - self.left, HEIGHT];
        let bytes = (0..blocks.count * features).flat_map(gray).collect();
        self.svg.pixels(place, &Pixels { width: blocks.count, height: features, bytes });
        if let Some(cover) = self.cover(maps) {
            let keys = scene.weights.columns.len() as f64 * scene.key_step;
            let wide = self.time.place(keys) - self.left;
            self.svg.pixels([self.left, y, wide, HEIGHT], &cover);
        }
        self.svg.frame(place);
        self.svg.text(
            Text::at(self.left - 10.0, y + HEIGHT / 2.0, "features")
                .size(11.0)
                .middle()
                .faint()
                .turned(-90.0),
        );
        if let Some(moment) = scene.moment {
            let x = self.time.place(moment);
            self.svg.line([x, y - 6.0], [x, y + HEIGHT + 6.0], INK, 1.0);
        }
    }

    /// At each moment the color of the row that looks there most, the denser the more it does.
    fn cover(&self, maps: &[Map]) -> Option<Pixels> {
        let (rows, keys) = (self.scene.weights.rows.len(), self.scene.weights.columns.len());
        if maps.is_empty() || rows == 0 || keys == 0 {
            return None;
        }
        // One scale for all rows: even weights look even, not as strong as a peak.
        let greatest = self.greatest(maps);
        let blocks = Blocks::of(keys);
        let pixel = |column: usize| {
            let heaviest = |row: usize| {
                blocks.range(column).map(|key| self.weight(maps, row, key)).fold(0.0, f32::max)
            };
            let share = |row: &usize| heaviest(*row) / greatest;
            let row = (0..rows).max_by(|a, b| share(a).total_cmp(&share(b))).unwrap_or(0);
            let [r, g, b] = row_color(row);
            [r, g, b, (COVER * share(&row).clamp(0.0, 1.0) * 255.0).round() as u8]
        };
        let bytes = (0..blocks.count).flat_map(pixel).collect();
        Some(Pixels { width: blocks.count, height: 1, bytes })
    }

    /// Seconds; gives where the next thing may begin.
    fn axis(&mut self, y: f64) -> f64 {
        for (value, text) in self.time.ticks(10) {
            let x = self.time.place(value);
            self.svg.line([x, y + 1.0], [x, y + 5.0], FAINT, 1.0);
            self.svg.text(Text::at(x, y + 17.0, &text).size(11.0).middle().faint());
        }
        let end = self.left + WIDTH + 26.0;
        self.svg.text(Text::at(end, y + 17.0, &self.scene.unit).size(11.0).faint());
        y + 26.0
    }

    fn track(&mut self, track: &Track, y: f64) {
        let name = fitted(&track.name);
        self.svg.text(Text::at(self.left - 6.0, y + ROW - 5.0, &name).size(11.0).end());
        let names = label_names(self.scene);
        for segment in &track.segments {
            let place = names.iter().position(|name| **name == segment.label).unwrap_or(0);
            let (fill, from) = (color::named(place), self.time.place(segment.start));
            let wide = (self.time.place(segment.end) - from).max(0.5);
            let (start, end) = (segment.start, segment.end);
            let long = format!("{}: {start:.2} to {end:.2} s", escaped(&segment.label));
            self.svg.raw(&format!("<g><title>{long}</title>"));
            self.svg.rect([from, y, wide, ROW], &color::hex(fill), "stroke=\"#ffffff\"");
            self.svg.raw("</g>");
            if label::width(&segment.label, 10.0) <= wide - 2.0 {
                let text = Text::at(from + wide / 2.0, y + ROW - 5.0, &segment.label);
                self.svg.text(text.size(10.0).middle().fill(color::ink_on(fill)));
            }
        }
    }

    /// Rows over keys, on the time of the spectrogram; gives where the next thing may begin.
    fn map(&mut self, map: &Map, scale: Scale, y: f64) -> f64 {
        let (rows, keys) = (self.scene.weights.rows.len(), self.scene.weights.columns.len());
        let blocks = Blocks::of(keys);
        let heaviest = |row: usize, column: usize| {
            let keys = blocks.range(column).filter_map(|key| map.weight(row * keys + key));
            keys.reduce(f32::max)
        };
        let cells = (0..rows).flat_map(|row| (0..blocks.count).map(move |at| (row, at)));
        let bytes = cells.flat_map(|(row, at)| scale.color(heaviest(row, at))).collect();
        let seconds = keys as f64 * self.scene.key_step;
        let place = [self.left, y, self.time.place(seconds) - self.left, rows as f64 * ROW];
        self.svg.pixels(place, &Pixels { width: blocks.count, height: rows, bytes });
        self.svg.frame(place);
        for (row, word) in self.scene.weights.rows.iter().enumerate() {
            let fill = color::hex(if rows > 1 { row_color(row) } else { [0x1f, 0x29, 0x33] });
            let middle = y + (row as f64 + 0.5) * ROW + 4.0;
            let text = fitted(word);
            self.svg.text(Text::at(self.left - 6.0, middle, &text).size(11.0).end().fill(&fill));
        }
        y + rows as f64 * ROW
    }

    /// A filled curve for each row; gives where the next thing may begin.
    fn curves(&mut self, map: &Map, scale: Scale, mut y: f64) -> f64 {
        let scene = self.scene;
        let blocks = Blocks::of(scene.weights.columns.len());
        for (row, word) in scene.weights.rows.iter().enumerate() {
            let up = Axis::spanning([scale.low.into(), scale.high.into()], y + CURVE, y);
            let bottom = short(y + CURVE);
            let mut d = format!("M{} {bottom}", short(self.left));
            for column in 0..blocks.count {
                let keys = blocks.range(column);
                let time = |key: usize| key as f64 * scene.key_step;
                let [from, to] = [keys.start, keys.end].map(|key| self.time.place(time(key)));
                let at = |key: usize| map.weight(row * scene.weights.columns.len() + key);
                let heaviest = keys.filter_map(at).reduce(f32::max).unwrap_or(scale.low);
                let top = up.place(heaviest.into());
                d += &format!("H{}V{}H{}", short(from), short(top), short(to));
            }
            d += &format!("V{bottom}z");
            self.svg.path(&d, &format!("fill=\"{}\"", color::hex(color::heat(0.75))));
            let (left, right) = ([self.left, y + CURVE], [self.left + WIDTH, y + CURVE]);
            self.svg.line(left, right, FAINT, 1.0);
            let middle = y + CURVE / 2.0 + 4.0;
            let name = fitted(word);
            self.svg.text(Text::at(self.left - 6.0, middle, &name).size(11.0).end());
            for (value, at) in [(scale.high, y + 8.0), (scale.low, y + CURVE)] {
                let text = label::number(value.into());
                self.svg.text(Text::at(self.left + WIDTH + 8.0, at, &text).size(11.0).faint());
            }
            y += CURVE + 8.0;
        }
        y
    }
}

/// Moments as pixels: several in one where there are too many.
struct Blocks {
    moments: usize,
    size: usize,
    /// Pixels.
    count: usize,
}

impl Blocks {
    fn of(moments: usize) -> Self {
        let size = moments.div_ceil(MOST_PIXELS).max(1);
        Self { moments, size, count: moments.div_ceil(size) }
    }

    fn range(&self, pixel: usize) -> std::ops::Range<usize> {
        pixel * self.size..((pixel + 1) * self.size).min(self.moments)
    }
}

fn fitted(name: &str) -> String {
    label::fitted(name, 11.0, 110.0)
}

/// Neighbors look different, however many there are.
fn row_color(row: usize) -> Rgb {
    color::named(row % 8)
}

/// The labels of all tracks, each once, in the order in which they come.
fn label_names(scene: &SoundScene) -> Vec<&String> {
    let mut names: Vec<&String> = Vec::new();
    for segment in scene.tracks.iter().flat_map(|track| &track.segments) {
        if !names.contains(&&segment.label) {
            names.push(&segment.label);
        }
    }
    names
}
