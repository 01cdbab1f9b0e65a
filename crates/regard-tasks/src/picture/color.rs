//! Colors: an even scale for weights, and distinct ones for names.
//!
//! Both are made in OKLCH (lightness, chroma, hue), where equal steps look equal; so a weight twice
//! as far along the scale also looks twice as far.

/// Red, green, blue.
pub(crate) type Rgb = [u8; 3];

pub(crate) const INK: &str = "#1f2933";
pub(crate) const FAINT: &str = "#7b8794";
pub(crate) const GRID: &str = "#e4e7eb";
pub(crate) const PAPER: &str = "#ffffff";
/// The place of a weight that is not a number, or is not there.
pub(crate) const MISSING: Rgb = [0xd9, 0xd4, 0xcf];

/// A weight's share of the greatest, 0 to 1, on white paper: from almost white to deep blue.
pub(crate) fn heat(share: f32) -> Rgb {
    let share = share.clamp(0.0, 1.0);
    oklch(0.985 - 0.70 * share, 0.004 + 0.4 * share * (1.0 - 0.74 * share), 222.0 + 48.0 * share)
}

/// The same on dark paper: from almost black to pale yellow.
pub(crate) fn heat_in_the_dark(share: f32) -> Rgb {
    let share = share.clamp(0.0, 1.0);
    oklch(0.22 + 0.73 * share, 0.03 + 0.42 * share * (1.0 - 0.74 * share), 265.0 - 165.0 * share)
}

/// A color for the name at this place; the first eight are easy to tell apart.
pub(crate) fn named(place: usize) -> Rgb {
    const HUES: [f32; 8] = [255.0, 45.0, 150.0, 345.0, 85.0, 205.0, 300.0, 20.0];
    const LIGHTNESS: [f32; 8] = [0.55, 0.68, 0.62, 0.60, 0.77, 0.72, 0.50, 0.50];
    let round = (place / 8) as f32;
    oklch(LIGHTNESS[place % 8], 0.15 / (1.0 + round), HUES[place % 8] + 22.0 * round)
}

/// Whether dark ink is easier to read on this color than white.
pub(crate) fn is_light([r, g, b]: Rgb) -> bool {
    0.299 * f32::from(r) + 0.587 * f32::from(g) + 0.114 * f32::from(b) > 140.0
}

/// `#rrggbb`.
pub(crate) fn hex([r, g, b]: Rgb) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// Björn Ottosson's OKLCH as sRGB, what lies outside being cut off.
fn oklch(lightness: f32, chroma: f32, hue: f32) -> Rgb {
    let (b, a) = hue.to_radians().sin_cos();
    let (a, b) = (a * chroma, b * chroma);
    let cube = |v: f32| v * v * v;
    let l = cube(lightness + 0.396_337_78 * a + 0.215_803_76 * b);
    let m = cube(lightness - 0.105_561_346 * a - 0.063_854_17 * b);
    let s = cube(lightness - 0.089_484_18 * a - 1.291_485_5 * b);
    [
        4.076_741_7 * l - 3.307_711_6 * m + 0.230_969_94 * s,
        -1.268_438 * l + 2.609_757_4 * m - 0.341_319_4 * s,
        -0.004_196_086_3 * l - 0.703_418_6 * m + 1.707_614_7 * s,
    ]
    .map(|linear| {
        let linear = linear.clamp(0.0, 1.0);
        let curved = match linear <= 0.003_130_8 {
            true => 12.92 * linear,
            false => 1.055 * linear.powf(1.0 / 2.4) - 0.055,
        };
        (curved * 255.0).round() as u8
    })
}
