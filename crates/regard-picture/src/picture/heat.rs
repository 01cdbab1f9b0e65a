//! Heat-maps: rows of queries over columns of keys.

use super::caption::Caption;
use super::color::{self, FAINT, Rgb};
use super::label;
use super::scale::Scale;
use super::svg::{Pixels, Svg, Text, escaped, short};
use crate::scene::{Map, Maps};

/// Up to so many cells are drawn one by one; more become an image, so that the file stays small.
const MOST_CELLS: usize = 1600;
/// An image has at most so many pixels a side; of several cells in one the greatest shows.
const MOST_PIXELS: usize = 1024;
/// The same where many images stand side by side.
const MOST_SMALL_PIXELS: usize = 380;
/// The sides that a cell of small maps may have, the best first: with numbers in it, and down to what
/// a label needs, so that every row and column is named.
const SIDES: [f64; 5] = [28.0, 24.0, 20.0, 15.0, 12.0];
/// From this side on a cell has room for its number.
const NUMBERED: f64 = 20.0;
/// Up to so many cells of small maps say their numbers.
const MOST_NUMBERS: usize = 600;
/// What small maps may take together.
const SHEET: [f64; 2] = [1060.0, 1200.0];
/// Cells smaller than this are too small for hatching; their color alone says that they are masked.
const HATCHED: f64 = 4.0;
const HATCHING: &str = "#aab2bb";
const LONGEST_LABEL: f64 = 130.0;
/// Names of small maps are cut behind so much.
const WIDEST_NAME: f64 = 150.0;
/// The side of a heat-map that stands alone.
const LARGE: f64 = 960.0;
/// Beside few columns there is room for a row's whole sentence.
const LONGEST_SENTENCE: f64 = 420.0;
const FEW_COLUMNS: usize = 8;
/// A picture is at least so wide, that its caption has room.
pub(crate) const NARROWEST: f64 = 480.0;

/// One heat-map, large.
pub(crate) fn one(scene: &Maps, map: &Map, caption: &Caption) -> String {
    one_until(scene, map, map, caption)
}

/// The same with what is seen of it so far, in the colors of all of it.
pub(crate) fn one_until(scene: &Maps, map: &Map, seen: &Map, caption: &Caption) -> String {
    let words = |place: usize| match seen.weight(place) {
        _ if seen.is_masked(place) => ["masked".to_owned(), String::new()],
        None => ["not a number".to_owned(), String::new()],
        Some(weight) if weight.abs() < 0.005 => [format!("{weight:.3}"), String::new()],
        Some(weight) => [format!("{weight:.3}"), short_number(weight)],
    };
    matrix(scene, [map, seen], caption, 34.0, &words)
}

/// A heat-map with cells no larger than `most`, which say what `words` gives: to a mouse that rests
/// on them, and in print where there is room. Of the map it shows what is seen, in the colors of all.
pub(crate) fn matrix(
    scene: &Maps,
    [map, seen]: [&Map; 2],
    caption: &Caption,
    most: f64,
    words: &dyn Fn(usize) -> [String; 2],
) -> String {
    let sheet = Sheet::new(scene, LARGE, most, 12.0);
    let [width, height] = sheet.size();
    let margin = 20.0;
    let mut svg = Svg::default();
    let left = margin + 18.0 + sheet.left();
    let full = (left + width + sheet.overhang().max(64.0) + margin).max(NARROWEST);
    let mut y = caption.draw(&mut svg, margin, full - 2.0 * margin);
    if !map.name.is_empty() && map.name != caption.title {
        let name = label::fitted(&map.name, 12.0, full - 2.0 * margin);
        svg.text(Text::at(margin, y + 3.0, &name).faint());
        y += 12.0;
    }
    svg.text(Text::at(left + width / 2.0, y + 12.0, &scene.column_axis).middle().bold());
    let top = y + 22.0 + sheet.top();
    sheet.column_labels(&mut svg, [left, top]);
    sheet.row_labels(&mut svg, [left, top]);
    let scale = Scale::of(std::slice::from_ref(map));
    sheet.cells(&mut svg, [left, top], seen, scale, Some(words));
    let middle = top + height / 2.0;
    svg.text(Text::at(margin + 10.0, middle, &scene.row_axis).middle().bold().turned(-90.0));
    let legend = height.clamp(40.0, 160.0);
    scale.legend(&mut svg, left + width + 16.0, top, legend);
    let bottom = top + height.max(legend);
    let hides = !map.masked.is_empty();
    let below = sheet.note(&mut svg, [left, bottom], (MOST_PIXELS, hides), full - left - margin);
    svg.finish(full, bottom + below + margin)
}

/// All of them, small, on one scale: a row for each layer where the names tell.
pub(crate) fn all(scene: &Maps, caption: &Caption) -> String {
    let (sheet, across) = Sheet::of_several(scene);
    let [width, height] = sheet.size();
    let (margin, gap, name) = (20.0, 22.0, 20.0);
    let step = [sheet.step_across(), height + name + sheet.top() + gap];
    let down = scene.maps.len().div_ceil(across);
    let left = margin + 18.0 + sheet.left();
    let full = (left + step[0] * across as f64 + 56.0)
        .max(left + width + sheet.overhang())
        .max(NARROWEST - margin)
        + margin;
    let mut svg = Svg::default();
    let y = caption.draw(&mut svg, margin, full - 2.0 * margin);
    let middle = left + (step[0] * across as f64 - gap) / 2.0;
    svg.text(Text::at(middle, y + 8.0, &scene.column_axis).middle().bold());
    let top = y + 20.0;
    let scale = Scale::of(&scene.maps);
    for (place, map) in scene.maps.iter().enumerate() {
        let corner = [
            left + step[0] * (place % across) as f64,
            top + name + sheet.top() + step[1] * (place / across) as f64,
        ];
        let words = label::fitted(&map.name, 11.0, step[0] - 8.0);
        svg.text(Text::at(corner[0], corner[1] - 6.0 - sheet.top(), &words).size(11.0));
        sheet.column_labels(&mut svg, corner);
        if place % across == 0 {
            sheet.row_labels(&mut svg, corner);
        }
        sheet.cells(&mut svg, corner, map, scale, None);
    }
    let bottom = top + step[1] * down as f64 - gap;
    let middle = (top + bottom) / 2.0;
    svg.text(Text::at(margin + 10.0, middle, &scene.row_axis).middle().bold().turned(-90.0));
    let legend = [top + name + sheet.top(), height.clamp(60.0, 120.0)];
    scale.legend(&mut svg, left + step[0] * across as f64 - 4.0, legend[0], legend[1]);
    let bottom = bottom.max(legend[0] + legend[1]);
    let hides = scene.maps.iter().any(|map| !map.masked.is_empty());
    let below =
        sheet.note(&mut svg, [left, bottom], (MOST_SMALL_PIXELS, hides), full - left - margin);
    svg.finish(full, bottom + below + margin)
}

/// How many pictures go side by side: as many as the first name's group has ("layer 1, …"), where
/// all groups have as many; else about a square.
pub(crate) fn across(maps: &[Map]) -> usize {
    let group = |map: &Map| map.name.rsplit_once([',', ' ']).map(|(group, _)| group.to_owned());
    let sizes: Vec<usize> = maps
        .chunk_by(|a, b| group(a).is_some() && group(a) == group(b))
        .map(<[Map]>::len)
        .collect();
    match sizes.first() {
        Some(&first) if (2..=8).contains(&first) && sizes.iter().all(|&n| n == first) => first,
        _ => ((maps.len() as f64).sqrt().ceil() as usize).clamp(1, 6),
    }
}

/// How the labels of the columns stand.
#[derive(Clone, Copy, PartialEq)]
enum Stand {
    Flat,
    Slanted,
    Upright,
}

/// Rows and columns as they are laid out on paper.
struct Sheet<'a> {
    scene: &'a Maps,
    cell: [f64; 2],
    font: f64,
    stand: Stand,
    rows: Vec<String>,
    columns: Vec<String>,
}

impl<'a> Sheet<'a> {
    /// In a square of the side `available`, cells being no larger than `most`.
    fn new(scene: &'a Maps, available: f64, most: f64, font: f64) -> Self {
        let side = |count: usize| (available / count.max(1) as f64).min(most);
        let cell = [side(scene.columns.len()), side(scene.rows.len())];
        let cut = |labels: &[String], longest: f64| -> Vec<String> {
            labels.iter().map(|text| label::fitted(text, font, longest)).collect()
        };
        let few = scene.columns.len() <= FEW_COLUMNS && available == LARGE;
        let rows = cut(&scene.rows, if few { LONGEST_SENTENCE } else { LONGEST_LABEL });
        let columns = cut(&scene.columns, LONGEST_LABEL);
        let stand = match cell[0] {
            wide if widest(&columns, font) <= wide - 4.0 => Stand::Flat,
            wide if wide >= font => Stand::Slanted,
            _ => Stand::Upright,
        };
        Self { scene, cell, font, stand, rows, columns }
    }

    /// Small maps of one scene and how many go side by side: the largest cells with which all of them
    /// fit on a sheet, in rows of as many as the names tell or of half, a quarter, … as many; where there
    /// are too many rows and columns for that, as small as they come.
    fn of_several(scene: &'a Maps) -> (Self, usize) {
        let widest = across(&scene.maps);
        let counts = std::iter::successors(Some(widest), |n| (*n > 1).then(|| n.div_ceil(2)));
        for count in counts {
            for side in SIDES {
                let [width, height] =
                    [side * scene.columns.len() as f64, side * scene.rows.len() as f64];
                let down = scene.maps.len().div_ceil(count) as f64;
                if width * count as f64 > SHEET[0] || height * down > SHEET[1] {
                    continue;
                }
                let sheet = Self::new(scene, width.max(height), side, 10.0).without_slant();
                if sheet.left() + sheet.step_across() * count as f64 <= SHEET[0]
                    && (height + sheet.top() + 42.0) * down <= SHEET[1]
                {
                    return (sheet, count);
                }
            }
        }
        (Self::new(scene, 190.0, 15.0, 10.0).without_slant(), widest)
    }

    /// From one small map to the next: its width or its name's, and a gap.
    fn step_across(&self) -> f64 {
        let names = self.scene.maps.iter().map(|map| label::width(&map.name, 11.0));
        self.size()[0].max(names.fold(70.0, f64::max).min(WIDEST_NAME)) + 22.0
    }

    /// Labels of columns upright where they do not lie flat: they reach into no neighbor.
    fn without_slant(mut self) -> Self {
        if self.stand == Stand::Slanted {
            self.stand = Stand::Upright;
        }
        self
    }

    fn size(&self) -> [f64; 2] {
        [self.cell[0] * self.columns.len() as f64, self.cell[1] * self.rows.len() as f64]
    }

    /// Room for the labels of the rows.
    fn left(&self) -> f64 {
        widest(&self.rows, self.font) + 8.0
    }

    /// Room for the labels of the columns.
    fn top(&self) -> f64 {
        let widest = widest(&self.columns, self.font);
        match self.stand {
            Stand::Flat => self.font + 8.0,
            Stand::Slanted => widest * 0.71 + self.font,
            Stand::Upright => widest + 10.0,
        }
    }

    /// How far the slanted labels of the last columns reach beyond them.
    fn overhang(&self) -> f64 {
        match self.stand {
            Stand::Slanted => widest(&self.columns, self.font) * 0.71,
            _ => 0.0,
        }
    }

    fn column_labels(&self, svg: &mut Svg, [left, top]: [f64; 2]) {
        let step = self.step(self.cell[0]);
        for (place, text) in self.columns.iter().enumerate().step_by(step) {
            let middle = left + (place as f64 + 0.5) * self.cell[0];
            let text = match self.stand {
                Stand::Flat => Text::at(middle, top - 6.0, text).middle(),
                Stand::Slanted => Text::at(middle + 2.0, top - 6.0, text).turned(-45.0),
                Stand::Upright => {
                    Text::at(middle + self.font * 0.35, top - 5.0, text).turned(-90.0)
                }
            };
            svg.text(text.size(self.font));
        }
    }

    fn row_labels(&self, svg: &mut Svg, [left, top]: [f64; 2]) {
        let step = self.step(self.cell[1]);
        for (place, text) in self.rows.iter().enumerate().step_by(step) {
            let y = top + (place as f64 + 0.5) * self.cell[1] + self.font * 0.35;
            svg.text(Text::at(left - 6.0, y, text).end().size(self.font));
        }
    }

    /// Labels so far apart that they do not touch.
    fn step(&self, cell: f64) -> usize {
        (self.font * 1.15 / cell.max(1e-6)).ceil().max(1.0) as usize
    }

    /// What is not drawn one by one, below; gives the height it took.
    fn note(
        &self,
        svg: &mut Svg,
        [x, y]: [f64; 2],
        (most, hides): (usize, bool),
        available: f64,
    ) -> f64 {
        let (rows, columns) = (self.rows.len(), self.columns.len());
        let named = self.step(self.cell[1]).max(self.step(self.cell[0]));
        let block = rows.max(columns).div_ceil(most);
        let mut notes = Vec::new();
        if named > 1 {
            notes.push(format!("{rows} × {columns} weights; one in {named} is named"));
        }
        if named > 1 && block > 1 {
            notes.push(format!("a dot is {block} × {block} of them and shows the greatest"));
        }
        if hides {
            notes.push("hatched: masked, so never attended to".into());
        }
        if notes.is_empty() {
            return 0.0;
        }
        let note = notes.join("; ");
        let lines = label::two_lines(&note, 11.0, available.max(200.0));
        for (place, line) in lines.iter().enumerate() {
            let y = y + 18.0 + 14.0 * place as f64;
            svg.text(Text::at(x, y, line).size(11.0).faint());
        }
        8.0 + 14.0 * lines.len() as f64
    }

    fn cells(
        &self,
        svg: &mut Svg,
        [x, y]: [f64; 2],
        map: &Map,
        scale: Scale,
        words: Option<&dyn Fn(usize) -> [String; 2]>,
    ) {
        let [width, height] = self.size();
        let (rows, columns) = (self.rows.len(), self.columns.len());
        match words.filter(|_| rows * columns <= MOST_CELLS) {
            Some(words) => {
                for place in 0..rows * columns {
                    let color = match map.is_masked(place) {
                        true => color::MASKED,
                        false => scale.color(map.weight(place)),
                    };
                    self.cell(svg, [x, y], place, color, words(place));
                }
            }
            None if words.is_none() && self.is_numbered() => self.numbers(svg, [x, y], map, scale),
            None => {
                let most = if words.is_some() { MOST_PIXELS } else { MOST_SMALL_PIXELS };
                svg.pixels([x, y, width, height], &pixels(map, [rows, columns], most, scale));
            }
        }
        self.hatch(svg, [x, y], map);
        svg.frame([x, y, width, height]);
    }

    /// Whether the cells of small maps have room for their numbers, and are few enough for that.
    fn is_numbered(&self) -> bool {
        let cells = self.rows.len() * self.columns.len() * self.scene.maps.len();
        self.cell[0].min(self.cell[1]) >= NUMBERED && cells <= MOST_NUMBERS
    }

    /// The cells of a small map, each with its weight in print.
    fn numbers(&self, svg: &mut Svg, [x, y]: [f64; 2], map: &Map, scale: Scale) {
        let ([w, h], size) = (self.cell, 9.0);
        for place in 0..self.rows.len() * self.columns.len() {
            let (row, column) = (place / self.columns.len(), place % self.columns.len());
            let [left, top] = [x + column as f64 * w, y + row as f64 * h];
            let weight = map.weight(place).filter(|_| !map.is_masked(place));
            let fill = match map.is_masked(place) {
                true => color::MASKED,
                false => scale.color(weight),
            };
            svg.rect([left, top, w, h], &color::hex(fill), "");
            let Some(weight) = weight.filter(|weight| weight.abs() >= 0.005) else { continue };
            let number = short_number(weight);
            if label::width(&number, size) <= w {
                let text = Text::at(left + w / 2.0, top + h / 2.0 + 0.35 * size, &number);
                svg.text(text.size(size).middle().fill(color::ink_on(fill)));
            }
        }
    }

    /// Lines through what a mask hides: a zero that nobody computed is not a low weight.
    fn hatch(&self, svg: &mut Svg, [x, y]: [f64; 2], map: &Map) {
        let [w, h] = self.cell;
        if w.min(h) < HATCHED {
            return;
        }
        let mut lines = String::new();
        for place in (0..map.masked.len()).filter(|&place| map.is_masked(place)) {
            let (row, column) = (place / self.columns.len(), place % self.columns.len());
            let [left, top] = [x + column as f64 * w, y + row as f64 * h];
            let mut line = |from: [f64; 2], to: [f64; 2]| {
                let [a, b, c, d] =
                    [left + from[0] * w, top + from[1] * h, left + to[0] * w, top + to[1] * h];
                lines += &format!("M{} {}L{} {}", short(a), short(b), short(c), short(d));
            };
            line([0.0, 1.0], [1.0, 0.0]);
            if w.min(h) > 10.0 {
                line([0.0, 0.5], [0.5, 0.0]);
                line([0.5, 1.0], [1.0, 0.5]);
            }
        }
        svg.path(&lines, &format!("stroke=\"{HATCHING}\" stroke-width=\"0.8\" fill=\"none\""));
    }

    fn cell(
        &self,
        svg: &mut Svg,
        corner: [f64; 2],
        place: usize,
        color: Rgb,
        [long, printed]: [String; 2],
    ) {
        let (row, column) = (place / self.columns.len(), place % self.columns.len());
        let [w, h] = self.cell;
        let [x, y] = [corner[0] + column as f64 * w, corner[1] + row as f64 * h];
        let (from, to) = (escaped(&self.scene.rows[row]), escaped(&self.scene.columns[column]));
        let (gap, fill) = (if w.min(h) > 8.0 { 0.5 } else { 0.0 }, color::hex(color));
        svg.raw(&format!("<g><title>{from} → {to}: {long}</title>"));
        svg.rect([x + gap, y + gap, w - 2.0 * gap, h - 2.0 * gap], &fill, "");
        svg.raw("</g>");
        if h >= 20.0 && !printed.is_empty() && label::width(&printed, 10.0) <= w {
            let ink = color::ink_on(color);
            svg.text(
                Text::at(x + w / 2.0, y + h / 2.0 + 3.5, &printed).size(10.0).middle().fill(ink),
            );
        }
    }
}

/// A weight in as few characters as a cell has room for: `.75`.
fn short_number(weight: f32) -> String {
    if weight.abs() >= 9.995 {
        return label::number(weight.into());
    }
    let written = format!("{weight:.2}");
    written.strip_prefix('0').map(str::to_owned).unwrap_or(written)
}

fn widest(labels: &[String], font: f64) -> f64 {
    labels.iter().map(|text| label::width(text, font)).fold(0.0, f64::max)
}

/// A map as an image, a pixel for each cell or, of very many, for a block of them.
fn pixels(map: &Map, [rows, columns]: [usize; 2], most: usize, scale: Scale) -> Pixels {
    let block = rows.max(columns).div_ceil(most).max(1);
    let blocks = Blocks::of(map, [rows, columns], block);
    let shown = blocks.greatest.iter().zip(&blocks.masked);
    let color = |(&weight, &masked): (&Option<f32>, &bool)| match masked {
        true => color::MASKED,
        false => scale.color(weight),
    };
    let bytes = shown.flat_map(color).collect();
    Pixels { width: blocks.columns, height: blocks.rows, bytes }
}

/// The greatest weights of square blocks of a map; none where a block holds no number.
pub(crate) struct Blocks {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) greatest: Vec<Option<f32>>,
    /// Whether a mask hides all of a block.
    pub(crate) masked: Vec<bool>,
}

impl Blocks {
    pub(crate) fn of(map: &Map, [rows, columns]: [usize; 2], block: usize) -> Self {
        let (down, across) = (rows.div_ceil(block), columns.div_ceil(block));
        let mut greatest: Vec<Option<f32>> = vec![None; down * across];
        let mut masked = vec![!map.masked.is_empty(); down * across];
        for row in 0..rows {
            let first = row / block * across;
            let blocks = &mut greatest[first..][..across];
            for column in 0..columns {
                masked[first + column / block] &= map.is_masked(row * columns + column);
                if let Some(weight) = map.weight(row * columns + column) {
                    let most = &mut blocks[column / block];
                    *most = Some(most.map_or(weight, |most| most.max(weight)));
                }
            }
        }
        Self { rows: down, columns: across, greatest, masked }
    }
}

/// A picture that holds a sentence only: why there is nothing else.
pub(crate) fn nothing(caption: &Caption, why: &str) -> String {
    let mut svg = Svg::default();
    let y = caption.draw(&mut svg, 20.0, NARROWEST - 40.0);
    svg.text(Text::at(20.0, y + 14.0, why).fill(FAINT));
    svg.finish((label::width(why, 12.0) + 60.0).max(NARROWEST), y + 40.0)
}
