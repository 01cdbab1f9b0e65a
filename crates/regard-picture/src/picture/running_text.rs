//! Weights of a text's tokens, drawn in the running text.

use super::caption::Caption;
use super::color;
use super::label;
use super::scale::Scale;
use super::svg::{Svg, Text, escaped};
use crate::scene::{Map, Maps};

/// Rows that are drawn as texts; more are a heat-map.
const MOST_ROWS: usize = 4;
/// Fewer tokens than this are a heat-map, with its numbers.
const FEWEST_TOKENS: usize = 13;
/// Tokens in all of a picture's texts; of longer ones only what is around the heaviest is shown.
const MOST_TOKENS: usize = 1600;
/// Tokens shown on each side of a heavy one.
const AROUND: usize = 8;
const SIZE: f64 = 14.0;
const LINE: f64 = 26.0;
const WIDTH: f64 = 720.0;

/// Whether a scene is one long text, or few rows over one.
pub(crate) fn suits(scene: &Maps) -> bool {
    let (rows, columns) = (scene.rows.len(), scene.columns.len());
    (1..=MOST_ROWS).contains(&rows) && columns >= FEWEST_TOKENS
}

/// A text for each row of each map, every token on the color of its weight.
pub(crate) fn draw(scene: &Maps, maps: &[Map], caption: &Caption) -> String {
    let margin = 20.0;
    let mut svg = Svg::default();
    let mut y = caption.draw(&mut svg, margin, WIDTH);
    let scale = Scale::of(maps);
    let legend = y;
    let spaces = spaces(&scene.columns);
    let most = MOST_TOKENS / (maps.len() * scene.rows.len()).max(1);
    for map in maps {
        for (row, name) in scene.rows.iter().enumerate() {
            let heading = [&map.name, &scene.row_axis, name].map(String::as_str);
            let heading = heading.iter().filter(|text| !text.is_empty()).copied();
            let heading = heading.collect::<Vec<_>>().join(" · ");
            y += 14.0;
            let heading = label::fitted(&heading, 12.0, WIDTH - 80.0);
            svg.text(Text::at(margin, y, &heading).bold());
            let weights = |token: usize| map.weight(row * scene.columns.len() + token);
            let shown = shown(scene.columns.len(), &weights, most);
            let mut line = Lines { svg: &mut svg, x: margin, y: y + 10.0, left: margin };
            for piece in shown {
                match piece {
                    Piece::Token(token) => line.token(
                        &scene.columns[token],
                        weights(token),
                        scale,
                        if spaces[token] { 0.32 * SIZE } else { 0.0 },
                    ),
                    Piece::Left { tokens } => line.left_out(tokens),
                }
            }
            y = line.y + LINE + 8.0;
        }
    }
    scale.legend(&mut svg, margin + WIDTH + 16.0, legend, (y - legend).clamp(40.0, 120.0));
    svg.finish(WIDTH + 2.0 * margin + 64.0, y.max(legend + 60.0) + 8.0)
}

/// What of a long text is drawn.
enum Piece {
    Token(usize),
    /// So many tokens that are not.
    Left {
        tokens: usize,
    },
}

/// All tokens where they are few; else the heaviest and what is around them.
fn shown(tokens: usize, weights: &dyn Fn(usize) -> Option<f32>, most: usize) -> Vec<Piece> {
    if tokens <= most.max(60) {
        return (0..tokens).map(Piece::Token).collect();
    }
    let mut order: Vec<usize> = (0..tokens).collect();
    let weight = |token: &usize| weights(*token).unwrap_or(f32::NEG_INFINITY);
    order.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    let mut is_kept = vec![false; tokens];
    let mut kept = 0;
    for token in order {
        if kept >= most.clamp(60, 480) {
            break;
        }
        let near = token.saturating_sub(AROUND)..(token + AROUND + 1).min(tokens);
        for is_kept in &mut is_kept[near] {
            kept += usize::from(!std::mem::replace(is_kept, true));
        }
    }
    let mut pieces = Vec::new();
    let mut at = 0;
    for run in is_kept.chunk_by(|a, b| a == b) {
        match run[0] {
            true => pieces.extend((at..at + run.len()).map(Piece::Token)),
            false => pieces.push(Piece::Left { tokens: run.len() }),
        }
        at += run.len();
    }
    pieces
}

/// Lines of text under way.
struct Lines<'a> {
    svg: &'a mut Svg,
    x: f64,
    y: f64,
    left: f64,
}

impl Lines<'_> {
    /// Makes room for a word of this width.
    fn room(&mut self, width: f64) {
        if self.x > self.left && self.x + width > self.left + WIDTH {
            (self.x, self.y) = (self.left, self.y + LINE);
        }
    }

    fn token(&mut self, token: &str, weight: Option<f32>, scale: Scale, space: f64) {
        let text = label::fitted(token, SIZE, WIDTH / 2.0);
        let width = label::width(&text, SIZE).max(0.3 * SIZE) + 4.0;
        let space = if self.x > self.left { space } else { 0.0 };
        self.room(space + width);
        self.x += if self.x > self.left { space } else { 0.0 };
        let fill = scale.color(weight);
        let said = weight.map_or("not a number".to_owned(), |weight| format!("{weight:.3}"));
        self.svg.raw(&format!("<g><title>{}: {said}</title>", escaped(token)));
        self.svg.rect([self.x, self.y, width, LINE - 4.0], &color::hex(fill), "rx=\"2\"");
        self.svg.raw("</g>");
        let middle = self.x + width / 2.0;
        let text = Text::at(middle, self.y + 16.0, &text).middle().size(SIZE);
        self.svg.text(text.fill(color::ink_on(fill)));
        self.x += width;
    }

    fn left_out(&mut self, tokens: usize) {
        let text = format!("… {tokens} tokens …");
        let width = label::width(&text, 12.0) + 12.0;
        self.room(width);
        self.svg.text(Text::at(self.x + 6.0, self.y + 16.0, &text).faint());
        self.x += width;
    }
}

/// Whether a space stands before each token: not where spaces are tokens themselves, not beside
/// Chinese, not before a mark that closes.
pub(crate) fn spaces(tokens: &[String]) -> Vec<bool> {
    let is_spelled = tokens.iter().any(|token| token == " ");
    let edge = |sign: Option<&str>| {
        sign.is_none_or(|sign| label::is_wide(sign) || "([{“‘$£¿¡".contains(sign))
    };
    let mut out = Vec::with_capacity(tokens.len());
    let mut before: Option<&String> = None;
    for token in tokens {
        let (first, last) = (
            label::signs(token).next(),
            before.and_then(|before| label::signs(before).next_back()),
        );
        let closes = first.is_some_and(|sign| ".,;:!?)]}%…»’”、。，！？".contains(sign));
        let is_joined = is_spelled
            || before.is_none()
            || closes
            || first.is_none_or(label::is_wide)
            || edge(last);
        out.push(!is_joined);
        before = Some(token);
    }
    out
}
