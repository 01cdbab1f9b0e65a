//! From numbers to places: weights to colors, values to points of an axis.

use super::color::{self, Rgb};
use super::label;
use super::svg::{Pixels, Svg, Text};
use crate::scene::Map;

/// The range of weights that the colors span: from zero, or the least where that is below, to the
/// greatest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    pub(crate) low: f32,
    pub(crate) high: f32,
}

impl Scale {
    /// One scale for several maps, so that their colors can be compared.
    pub(crate) fn of(maps: &[Map]) -> Self {
        let weights =
            || maps.iter().flat_map(|map| &map.weights).filter(|weight| weight.is_finite());
        let low = weights().fold(0.0f32, |low, &weight| low.min(weight));
        let high = weights().fold(low, |high, &weight| high.max(weight));
        Self { low, high: if high > low { high } else { low + 1.0 } }
    }

    /// Where a weight lies, from 0 to 1.
    pub(crate) fn share(&self, weight: f32) -> f32 {
        ((weight - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    pub(crate) fn color(&self, weight: Option<f32>) -> Rgb {
        weight.map_or(color::MISSING, |weight| color::heat(self.share(weight)))
    }

    /// Draws the colors beside their numbers.
    pub(crate) fn legend(&self, svg: &mut Svg, x: f64, y: f64, height: f64) {
        self.legend_in(svg, [x, y], height, &color::heat);
    }

    /// The same for other colors.
    pub(crate) fn legend_in(
        &self,
        svg: &mut Svg,
        [x, y]: [f64; 2],
        height: f64,
        colors: &dyn Fn(f32) -> Rgb,
    ) {
        let bytes = (0..64).flat_map(|i| colors(1.0 - i as f32 / 63.0)).collect();
        svg.pixels([x, y, 12.0, height], &Pixels { width: 1, height: 64, bytes });
        svg.frame([x, y, 12.0, height]);
        for (value, y) in [(self.high, y + 8.0), (self.low, y + height)] {
            svg.text(Text::at(x + 18.0, y, &label::number(value.into())).size(11.0).faint());
        }
    }
}

/// An axis: values to places on the paper.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    /// Spans the values that are numbers, between two places.
    pub(crate) fn spanning(values: impl IntoIterator<Item = f64>, from: f64, to: f64) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.into_iter().filter(|value| value.is_finite()) {
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        if high - low < 1e-9 * high.abs().max(1e-9) {
            let margin = if low == 0.0 { 1.0 } else { low.abs() * 0.5 };
            (low, high) = (low - margin, high + margin);
        }
        Self { low, high, from, to }
    }

    /// With a little margin beyond the last values.
    pub(crate) fn with_margin(self) -> Self {
        let margin = (self.high - self.low) * 0.06;
        Self { low: self.low - margin, high: self.high + margin, ..self }
    }

    pub(crate) fn place(&self, value: f64) -> f64 {
        self.from + (value - self.low) / (self.high - self.low) * (self.to - self.from)
    }

    /// The value at a place from 0 (the low end) to 1.
    pub(crate) fn value(&self, share: f64) -> f64 {
        self.low + share * (self.high - self.low)
    }

    /// About `count` round values, written with the digits that tell them apart.
    pub(crate) fn ticks(&self, count: usize) -> Vec<(f64, String)> {
        let rough = (self.high - self.low) / count.max(1) as f64;
        let power = 10f64.powf(rough.log10().floor());
        let round = [1.0, 2.0, 5.0].map(|digit| digit * power);
        let step = round.into_iter().find(|&step| step >= rough * 0.999).unwrap_or(10.0 * power);
        let digits = (-step.log10() - 1e-9).ceil().max(0.0) as usize;
        let first = (self.low / step - 1e-6).ceil();
        let written = |value: f64| match (1e-4..1e6).contains(&step) && value.abs() < 1e7 {
            true => format!("{value:.digits$}"),
            false => label::number(value),
        };
        (0..=2 * count.max(4))
            // Zero is added so that -0 reads 0.
            .map(|i| (first + i as f64) * step + 0.0)
            .take_while(|&value| value <= self.high + step * 1e-6)
            .map(|value| (value, written(value)))
            .collect()
    }
}
