//! How much may be asked at once.

use crate::refusal::Refusal;
use regard_data::files::{NumpyArray, Waveform, picture_size};
use regard_tasks::task::{Input, InputForm};
use serde::Serialize;
use std::path::Path;
use std::time::Duration;

/// How much may be asked at once. Attention takes memory by the square of what is read.
///
/// ```
/// assert_eq!(regard_explorer::Limits::default().tokens, 1000);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Limits {
    /// Bytes of a request.
    pub body: usize,
    /// Characters of a text.
    pub characters: usize,
    /// Words of a text, Chinese characters counted one by one; vectors of a file of features.
    pub tokens: usize,
    /// Pixels of a picture.
    pub pixels: usize,
    /// Seconds of a recording.
    pub seconds: usize,
    /// Inputs of a request that asks for predictions.
    pub inputs: usize,
    /// Bytes that a compressed file may have once it is unpacked.
    pub inflated: usize,
    /// Bytes of all requests that wait for their answers.
    pub waiting: usize,
    /// Connections at once; the next one waits.
    pub connections: usize,
    /// Models in memory; the one that was not used for longest is let go.
    pub models: usize,
    /// How long a request's head, and its body, may take to arrive.
    #[serde(skip)]
    pub arrival: Duration,
    /// How long nothing of an answer may be taken.
    #[serde(skip)]
    pub departure: Duration,
    /// How long the answer to one question may be computed.
    #[serde(skip)]
    pub compute: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 32 << 20,
            characters: 10_000,
            tokens: 1000,
            pixels: 25_000_000,
            seconds: 30,
            inputs: 256,
            inflated: 64 << 20,
            waiting: 256 << 20,
            connections: 256,
            models: 8,
            arrival: Duration::from_secs(20),
            departure: Duration::from_secs(20),
            compute: Duration::from_secs(120),
        }
    }
}

impl Limits {
    /// Refuses an input that is too large for a model that reads this form.
    pub(crate) fn check(&self, input: &Input, form: InputForm) -> Result<(), Refusal> {
        match input {
            Input::Example { .. } => Ok(()),
            Input::Text(text) if text.trim().is_empty() => {
                Err(Refusal::bad("the input is empty: there is nothing to answer"))
            }
            Input::Text(text) => self.check_text(text),
            Input::File { name, bytes, .. } => self.check_file(Path::new(name), bytes, form),
        }
    }

    fn check_text(&self, text: &str) -> Result<(), Refusal> {
        let characters = text.chars().count();
        if characters > self.characters {
            let most = self.characters;
            return Err(Refusal::too_large(format!(
                "a text of {characters} characters; {most} are read at most"
            )));
        }
        let words = words(text);
        if words > self.tokens {
            let most = self.tokens;
            return Err(Refusal::too_large(format!(
                "a text of {words} words; {most} are read at most"
            )));
        }
        Ok(())
    }

    /// The most vectors of an array in a file. What is none is none, which the model says better; of a
    /// compressed file nothing is unpacked before it is known how much that will be.
    fn rows(&self, name: &Path, bytes: &[u8]) -> Result<usize, Refusal> {
        let packed = name.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("npz"));
        if !packed {
            return Ok(NumpyArray::decode(name, bytes).map_or(0, |array| rows(&array)));
        }
        let size = NumpyArray::unpacked_size(name, bytes).unwrap_or(0);
        if size > self.inflated as u64 {
            let (most, name) = (self.inflated, name.display());
            return Err(Refusal::too_large(format!(
                "{name}: {size} bytes once it is unpacked; {most} are read at most"
            )));
        }
        let all = NumpyArray::decode_all(name, bytes).unwrap_or_default();
        Ok(all.iter().map(|(_, array)| rows(array)).max().unwrap_or(0))
    }

    fn check_file(&self, name: &Path, bytes: &[u8], form: InputForm) -> Result<(), Refusal> {
        let name_of = || name.display();
        match form {
            InputForm::Picture => {
                // What has no size is no picture, which the model says better.
                let Some([width, height]) = picture_size(bytes) else { return Ok(()) };
                if width as u64 * height as u64 > self.pixels as u64 {
                    let most = self.pixels;
                    return Err(Refusal::too_large(format!(
                        "{}: a picture of {width}×{height} pixels; {most} are read at most",
                        name_of()
                    )));
                }
            }
            InputForm::Recording => {
                let most = self.seconds;
                if Waveform::is_longer(name, bytes, most as f64)? {
                    return Err(Refusal::too_large(format!(
                        "{}: a recording of more than {most} seconds; {most} are read at most",
                        name_of()
                    )));
                }
            }
            InputForm::Features => {
                let rows = self.rows(name, bytes)?;
                if rows > 3 * self.tokens {
                    let most = 3 * self.tokens;
                    return Err(Refusal::too_large(format!(
                        "{}: {rows} vectors; {most} are read at most",
                        name_of()
                    )));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// How many vectors an array has.
fn rows(array: &NumpyArray) -> usize {
    array.shape.first().copied().unwrap_or(0)
}

/// Words between blanks; of what has none between words, such as Chinese, characters.
fn words(text: &str) -> usize {
    let own = |c: &char| matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{20000}'..='\u{3ffff}');
    text.split_whitespace().count() + text.chars().filter(own).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_counted_with_and_without_blanks() {
        assert_eq!(words("I see a bird"), 4);
        assert_eq!(words("我看见一只鸟"), 1 + 6);
    }
}
