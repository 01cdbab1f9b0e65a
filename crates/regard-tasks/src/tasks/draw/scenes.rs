//! What an artist looked at: for each word where in the picture it was used, and every head.

use super::model::Artist;
use crate::tasks::captioned::interleaved;
use crate::tasks::seq2seq::{alignment, decoder_scene, encoder_scene, some_scene};
use regard::Tensor;
use regard_data::Result;
use regard_picture::scene::{ImageScene, Map, Scene};

impl Artist {
    /// What the picture of a sentence was drawn with.
    pub(super) fn scenes(&self, text: &str) -> Result<Vec<(String, Scene)>> {
        let sources = self.sources(std::iter::once(text));
        let h = self.writer.write_one(&sources)?;
        let mut words = self.preprocessor.tokenizer.tokens(text);
        words.truncate(self.preprocessor.reads());
        let side = self.config.patches();
        let name = |at: usize| format!("{},{}", at / side + 1, at % side + 1);
        let patches: Vec<String> = (0..side * side).map(name).collect();
        let mut scenes = Vec::new();
        if let Some(weights) = &h.alignment {
            scenes.push(("words".into(), self.words(&h.tokens, weights, &words)?));
        }
        scenes.extend(alignment(&h, &patches, &words)?);
        let window = self.config.model.seq2seq.encoder.window;
        scenes.extend(encoder_scene(&self.writer.encode_one(&sources)?, words, window)?);
        scenes.extend(decoder_scene(&self.writer.self_attention(&sources, &h)?, &patches)?);
        some_scene(scenes)
    }

    /// For each word the weights that the patches gave it, over the picture: a column of the alignment.
    fn words(&self, tokens: &[usize], weights: &Tensor, words: &[String]) -> Result<Scene> {
        let weights = weights.contiguous()?.to_vec::<f32>()?;
        let columns = words.len();
        let map = |(at, word): (usize, &String)| {
            let column = weights.chunks(columns).map(|row| row[at]).collect();
            Map::new(word, column).fixed(
                "These are columns of the alignment, which can be changed there: each patch's weights \
                 add up to 1 over the words.",
            )
        };
        let side = self.config.data.image_size;
        let (channels, patches) = (self.config.data.channels(), self.config.patches());
        let pixels = interleaved([channels, side, side], &self.picture(tokens)?);
        Ok(Scene::Image(ImageScene {
            width: side,
            height: side,
            channels,
            pixels,
            columns: patches,
            rows: patches,
            maps: words.iter().enumerate().map(map).collect(),
        }))
    }
}
