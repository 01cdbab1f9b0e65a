//! A TrueType font made of GNU Unifont's bitmaps, a square for each pixel: so that signs no font of
//! the system has are set among the others, in their order and with their marks.

use std::collections::BTreeSet;

use super::label;

/// Units to a pixel; 16 pixels are an em.
const PIXEL: i16 = 64;
/// Pixels under the line that letters stand on.
const BELOW: i16 = 2;

/// A font file with these characters; for one that Unifont has not, a sign that says so: who looks for
/// fonts gives a label up at the first character that none has.
pub(crate) fn bitmap_font(characters: &BTreeSet<char>) -> Vec<u8> {
    let missing = unifont::get_glyph('\u{fffd}');
    let known: Vec<(char, &unifont::Glyph)> =
        characters.iter().filter_map(|&c| Some((c, unifont::get_glyph(c).or(missing)?))).collect();
    let (mut glyf, mut loca, mut hmtx) = (Vec::new(), vec![0], Vec::new());
    let glyphs = missing.map(|glyph| (None, glyph)).into_iter();
    for (c, glyph) in glyphs.chain(known.iter().map(|&(c, glyph)| (Some(c), glyph))) {
        let advance = advance(c, glyph);
        // A mark stands on the letter before it.
        let left = if advance == 0 { -(glyph.get_width() as i16) } else { 0 };
        let runs = runs(glyph);
        glyf.extend(outline(&runs, left));
        loca.push(glyf.len() as u32);
        // Where the outline begins is told twice; fonts in which the two differ are moved.
        let first = runs.iter().map(|run| (left + run.column) * PIXEL).min().unwrap_or(0);
        hmtx.extend([advance as u16, first as u16]);
    }
    let count = loca.len() as u16 - 1;
    let tables = [
        (*b"OS/2", os2()),
        (*b"cmap", cmap(&known)),
        (*b"glyf", glyf),
        (*b"head", head()),
        (*b"hhea", hhea(count)),
        (*b"hmtx", bytes(&hmtx)),
        (*b"loca", loca.iter().flat_map(|at| at.to_be_bytes()).collect()),
        (*b"maxp", maxp(count)),
        (*b"name", name()),
        (*b"post", [bytes(&[3, 0]), vec![0; 28]].concat()),
    ];
    file(&tables)
}

fn bytes(words: &[u16]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// How far the pen moves; a mark that takes no room does not move it.
fn advance(c: Option<char>, glyph: &unifont::Glyph) -> i16 {
    match c.is_some_and(|c| label::columns(&c.to_string()) == 0) {
        true => 0,
        false => glyph.get_width() as i16 * PIXEL,
    }
}

/// A contour for each run of black pixels, so many pixels to the right; nothing for a space.
fn outline(runs: &[Pixels], left: i16) -> Vec<u8> {
    let (Some(low), Some(high)) = (
        runs.iter().map(|run| run.column).min(),
        runs.iter().map(|run| run.column + run.length).max(),
    ) else {
        return Vec::new();
    };
    let place = |column: i16| (left + column) * PIXEL;
    let height = |row: i16| (16 - BELOW - row) * PIXEL;
    let [top, bottom] = [runs[0].row, runs[runs.len() - 1].row + 1].map(height);
    let mut words: Vec<i16> = vec![runs.len() as i16, place(low), bottom, place(high), top];
    words.extend((1..=runs.len()).map(|run| 4 * run as i16 - 1));
    words.push(0);
    let mut out: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    // Every point is on the curve, and its place a step of two bytes.
    out.extend(std::iter::repeat_n(1, 4 * runs.len()));
    let corners: Vec<[i16; 2]> = runs
        .iter()
        .flat_map(|run| {
            let (x, end) = (place(run.column), place(run.column + run.length));
            let (y, below) = (height(run.row), height(run.row + 1));
            [[x, y], [end, y], [end, below], [x, below]]
        })
        .collect();
    for side in 0..2 {
        let mut before = 0;
        for corner in &corners {
            out.extend((corner[side] - before).to_be_bytes());
            before = corner[side];
        }
    }
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

/// Black pixels beside each other.
struct Pixels {
    row: i16,
    column: i16,
    length: i16,
}

fn runs(glyph: &unifont::Glyph) -> Vec<Pixels> {
    let mut runs: Vec<Pixels> = Vec::new();
    for row in 0..16 {
        for column in (0..glyph.get_width()).filter(|&column| glyph.get_pixel(column, row)) {
            let (row, column) = (row as i16, column as i16);
            match runs.last_mut() {
                Some(run) if run.row == row && run.column + run.length == column => run.length += 1,
                _ => runs.push(Pixels { row, column, length: 1 }),
            }
        }
    }
    runs
}

/// Characters to glyphs, in segments of 32 bits (format 12). Glyph 0 is what stands for the others.
fn cmap(known: &[(char, &unifont::Glyph)]) -> Vec<u8> {
    let mut out = bytes(&[0, 1, 3, 10, 0, 12, 12, 0]);
    let length = 16 + 12 * known.len() as u32;
    for word in [length, 0, known.len() as u32] {
        out.extend(word.to_be_bytes());
    }
    for (place, &(c, _)) in known.iter().enumerate() {
        for word in [u32::from(c), u32::from(c), place as u32 + 1] {
            out.extend(word.to_be_bytes());
        }
    }
    out
}

fn head() -> Vec<u8> {
    let mut out = bytes(&[1, 0, 1, 0, 0, 0, 0x5f0f, 0x3cf5, 0, 16 * PIXEL as u16]);
    out.extend([0; 16]);
    let (least, most) = (-(16 * PIXEL) as u16, 16 * PIXEL as u16);
    // The extent of all glyphs; regular, readable from 8 pixels on, long offsets.
    out.extend(bytes(&[least, -(BELOW * PIXEL) as u16, most, most, 0, 8, 2, 1, 0]));
    out
}

fn hhea(count: u16) -> Vec<u8> {
    let (up, down) = ((16 - BELOW) * PIXEL, -BELOW * PIXEL);
    let mut out = bytes(&[1, 0, up as u16, down as u16, 0, 16 * PIXEL as u16, 0, 0, 0, 1, 0, 0]);
    out.extend([0; 10]);
    out.extend(bytes(&[count]));
    out
}

fn maxp(count: u16) -> Vec<u8> {
    let mut out = bytes(&[1, 0, count, 512, 128]);
    out.extend(bytes(&[0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0]));
    out
}

fn os2() -> Vec<u8> {
    let mut out = bytes(&[4, 8 * PIXEL as u16, 400, 5, 0]);
    out.resize(96, 0);
    let mut set = |at: usize, word: i16| out[at..at + 2].copy_from_slice(&word.to_be_bytes());
    // Ascent and descent, thrice, and the height of small letters and capitals.
    for (at, word) in [(68, 14), (70, -2), (74, 14), (76, 2), (86, 8), (88, 10)] {
        set(at, word * PIXEL);
    }
    out
}

/// Family, style and full name.
fn name() -> Vec<u8> {
    let texts: Vec<(u16, Vec<u8>)> =
        [(1, "Unifont bitmaps"), (2, "Regular"), (6, "Unifont-bitmaps")]
            .map(|(kind, text)| (kind, text.encode_utf16().flat_map(u16::to_be_bytes).collect()))
            .into();
    let mut out = bytes(&[0, texts.len() as u16, 6 + 12 * texts.len() as u16]);
    let mut at = 0;
    for (kind, text) in &texts {
        out.extend(bytes(&[3, 1, 0x409, *kind, text.len() as u16, at]));
        at += text.len() as u16;
    }
    texts.into_iter().for_each(|(_, text)| out.extend(text));
    out
}

/// The tables behind a directory of them, in order of their names, each at a multiple of four.
fn file(tables: &[([u8; 4], Vec<u8>)]) -> Vec<u8> {
    let count = tables.len() as u16;
    let power = count.ilog2() as u16;
    let range = 16 << power;
    let mut out = bytes(&[1, 0, count, range, power, 16 * count - range]);
    let mut at = out.len() + 16 * tables.len();
    for (name, table) in tables {
        out.extend(name);
        for word in [checksum(table), at as u32, table.len() as u32] {
            out.extend(word.to_be_bytes());
        }
        at += table.len().next_multiple_of(4);
    }
    for (_, table) in tables {
        out.extend(table);
        out.resize(out.len().next_multiple_of(4), 0);
    }
    out
}

fn checksum(table: &[u8]) -> u32 {
    let word = |four: &[u8]| {
        let mut word = [0; 4];
        word[..four.len()].copy_from_slice(four);
        u32::from_be_bytes(word)
    };
    table.chunks(4).map(word).fold(0, u32::wrapping_add)
}
