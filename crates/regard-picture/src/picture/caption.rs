//! What a picture says above itself: model, input, prediction, truth.

use super::label;
use super::svg::{Svg, Text};

/// What a picture says above itself. What is empty is left out.
///
/// ```
/// use regard_picture::picture::Caption;
/// let caption = Caption { prediction: "VERB".into(), ..Caption::from("I saw a saw") };
/// assert_eq!(caption.title, "I saw a saw");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caption {
    /// What the picture is of, in large letters.
    pub title: String,
    /// The model, or the run.
    pub model: String,
    /// What the model was given.
    pub input: String,
    /// What it made of it.
    pub prediction: String,
    /// What it should have made of it, where that is known.
    pub truth: String,
}

impl From<&str> for Caption {
    fn from(title: &str) -> Self {
        Self { title: title.into(), ..Self::default() }
    }
}

impl From<&String> for Caption {
    fn from(title: &String) -> Self {
        Self::from(title.as_str())
    }
}

impl From<&Caption> for Caption {
    fn from(caption: &Caption) -> Self {
        caption.clone()
    }
}

/// The size of its lines.
const SIZE: f64 = 12.0;

impl Caption {
    /// Its lines below the title: what each says, and what is said.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [
            ("model", &self.model),
            ("input", &self.input),
            ("prediction", &self.prediction),
            ("truth", &self.truth),
        ];
        all.into_iter().map(|(name, text)| (name, text.trim())).filter(|(_, text)| !text.is_empty())
    }

    /// Draws it, each text in two lines at most; gives where the next thing may begin.
    pub(crate) fn draw(&self, svg: &mut Svg, x: f64, width: f64) -> f64 {
        let mut y = svg.title(&self.title, x, width);
        let names = self.lines().map(|(name, _)| label::width(name, SIZE));
        let left = names.fold(0.0, f64::max) + 10.0;
        for (place, (name, text)) in self.lines().enumerate() {
            if place == 0 {
                y -= 10.0;
            }
            svg.text(Text::at(x, y + 12.0, name).size(SIZE).faint());
            for line in label::two_lines(text, SIZE, (width - left).max(160.0)) {
                y += 16.0;
                svg.text(Text::at(x + left, y - 4.0, &line).size(SIZE));
            }
        }
        y + if self.lines().next().is_some() { 14.0 } else { 0.0 }
    }
}
