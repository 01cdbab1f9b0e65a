//! What a captioner looked at: the patches of each word, and every head.

use super::model::Captioner;
use crate::tasks::captioned::{Pictures, interleaved};
use crate::tasks::seq2seq::{alignment, decoder_scene, encoder_scene, some_scene};
use regard::Tensor;
use regard::attention::Site;
use regard::models::Hypothesis;
use regard_data::Result;
use regard_picture::scene::{ImageScene, Map, Place, Scene};

impl Captioner {
    /// What the first picture's sentence was written with.
    pub(super) fn scenes(&self, pictures: &Pictures) -> Result<Vec<(String, Scene)>> {
        let sources = self.sources(pictures, vec![0]);
        let h = self.writer.write_one(&sources)?;
        let tokenizer = &self.preprocessor.tokenizer;
        let words = h.tokens.iter().map(|&id| tokenizer.token(id).to_string());
        let words: Vec<String> = words.chain(h.ended.then(|| "<end>".to_string())).collect();
        let side = self.config.patches();
        let name = |at: usize| format!("{},{}", at / side + 1, at % side + 1);
        let patches: Vec<String> = (0..side * side).map(name).collect();
        let mut scenes = Vec::new();
        if let Some(weights) = &h.alignment {
            scenes.push(("words".into(), self.words(pictures, &h, weights, &words)?));
        }
        // One head of one layer is what the words show already.
        if h.heads.as_ref().is_some_and(|heads| heads.shape()[0] * heads.shape()[1] > 1) {
            scenes.extend(alignment(&h, &words, &patches)?);
        }
        scenes.extend(encoder_scene(&self.writer.encode_one(&sources)?, patches, None)?);
        scenes.extend(decoder_scene(&self.writer.self_attention(&sources, &h)?, &words)?);
        some_scene(scenes)
    }

    /// For each word the patches it looked at.
    fn words(
        &self,
        pictures: &Pictures,
        hypothesis: &Hypothesis,
        weights: &Tensor,
        words: &[String],
    ) -> Result<Scene> {
        let side = self.config.patches();
        let heads = &hypothesis.heads;
        let layer = heads.as_ref().map_or(0, |heads| heads.shape()[0].saturating_sub(1));
        let place = |row| Place { head: None, row, ..Place::new(Site::Cross, layer, 0) };
        let weights = weights.contiguous()?.to_vec::<f32>()?;
        let maps = words.iter().zip(weights.chunks(side * side)).enumerate();
        let map = |(row, (word, weights)): (usize, (&String, &[f32]))| {
            Map::new(word, weights.to_vec()).at(place(row))
        };
        let maps = maps.map(map).collect();
        let [channels, height, width] = pictures.size;
        let pixels = interleaved(pictures.size, &pictures.pixels[0]);
        Ok(Scene::Image(ImageScene {
            width,
            height,
            channels,
            pixels,
            columns: side,
            rows: side,
            maps,
        }))
    }
}
