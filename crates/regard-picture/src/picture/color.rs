//! Colors: an even scale for weights, and distinct ones for names.
//!
//! Both are made in OKLCH (lightness, chroma, hue), where equal steps look equal; so a weight twice
//! as far along the scale also looks twice as far.

/// Red, green, blue.
pub(crate) type Rgb = [u8; 3];

pub(crate) const INK: &str = "#1f2933";
pub(crate) const FAINT: &str = "#52606d";
pub(crate) const GRID: &str = "#e4e7eb";
pub(crate) const PAPER: &str = "#ffffff";
/// The place of a weight that is not a number, or is not there.
pub(crate) const MISSING: Rgb = [0xd9, 0xd4, 0xcf];

/// The place of a weight that a mask hides, under its hatching.
pub(crate) const MASKED: Rgb = [0xf1, 0xf1, 0xef];

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
    // None lighter than this: lines and letters in it must stand out from paper.
    const LIGHTNESS: [f32; 8] = [0.53, 0.56, 0.50, 0.55, 0.53, 0.52, 0.42, 0.40];
    let round = (place / 8) as f32;
    oklch(LIGHTNESS[place % 8], 0.15 / (1.0 + round), HUES[place % 8] + 22.0 * round)
}

/// Ink that is easy to read on this color.
pub(crate) fn ink_on(color: Rgb) -> &'static str {
    match (contrast([0x1f, 0x29, 0x33], color), contrast([255; 3], color)) {
        (dark, _) if dark >= READABLE => INK,
        (_, light) if light >= READABLE => PAPER,
        // Between the two nothing but black will do.
        _ => "#000000",
    }
}

/// The least contrast of a text and what is under it, as WCAG 2 asks for.
pub(crate) const READABLE: f32 = 4.5;

/// WCAG 2's contrast of two colors, from 1 to 21.
pub(crate) fn contrast(a: Rgb, b: Rgb) -> f32 {
    let [a, b] = [luminance(a), luminance(b)];
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

fn luminance(color: Rgb) -> f32 {
    let [r, g, b] = color.map(|value| {
        let value = f32::from(value) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    });
    0.2126 * r + 0.7152 * g + 0.0722 * b
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

#[cfg(test)]
mod tests {
    use super::*;

    fn rgb(hex: &str) -> Rgb {
        [1, 3, 5].map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
    }

    #[test]
    fn contrast_is_what_wcag_gives_for_known_pairs() {
        assert!((contrast([0; 3], [255; 3]) - 21.0).abs() < 1e-5);
        // The lightest gray that WCAG lets stand on white.
        assert!((contrast(rgb("#767676"), [255; 3]) - 4.54).abs() < 0.005);
        assert!((contrast(rgb("#ff0000"), [255; 3]) - 4.0).abs() < 0.005);
    }

    #[test]
    fn every_ink_can_be_read_on_what_is_under_it() {
        for ink in [INK, FAINT] {
            assert!(contrast(rgb(ink), rgb(PAPER)) >= READABLE, "{ink} on paper");
        }
        for step in 0..=1000 {
            for color in [heat(step as f32 / 1000.0), heat_in_the_dark(step as f32 / 1000.0)] {
                assert!(contrast(rgb(ink_on(color)), color) >= READABLE, "{color:?}");
            }
        }
        assert!(contrast(rgb(ink_on(MISSING)), MISSING) >= READABLE);
        for place in 0..64 {
            let color = named(place);
            assert!(contrast(color, rgb(PAPER)) >= READABLE, "the name at {place}: {color:?}");
            assert!(contrast(rgb(ink_on(color)), color) >= READABLE, "on {color:?}");
        }
    }
}
