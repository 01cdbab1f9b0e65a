//! A classifier of images.

use super::augmentation::Augmentation;
use super::config::{Config, Kind};
use super::data::Dataset;
use crate::metric::judged::Judged;
use crate::task::abilities::{Abilities, Explains, Exports, Sees};
use crate::task::input::{Asks, Input, InputForm};
use crate::task::looked_up::LookedUp;
use crate::task::model::Model;
use crate::task::named_rows::NamedRows;
use crate::task::network::Exported;
use crate::task::part::Part;
use crate::task::prediction::{Alternative, Prediction};
use crate::task::report::Report;
use crate::task::saliency::{How, Probe, Saliency};
use crate::tasks::labels::probabilities::LabelProbabilities;
use crate::tasks::labels::truth::Truth;
use regard::attention::{Need, Site};
use regard::models::{ConvolutionalClassifier, ImagePooling, VisionTransformer};
use regard::tensor::{Parameters, Random, without_gradients};
use regard::{DType, Mode, Tensor};
use regard_data::files::Images;
use regard_data::text::Labels;
use regard_data::tick;
use regard_data::{Error, Result};
use regard_picture::scene::{ImageScene, Map, Place, Scene};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Images looked at together when nothing is learned.
const EVALUATION_BATCH: usize = 250;

/// What a classifier knows of its data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Preprocessor {
    labels: Labels,
    /// C, height and width.
    size: [usize; 3],
    /// The mean of all pixels, and how far they lie from it.
    mean: f32,
    deviation: f32,
}

impl Preprocessor {
    /// What the images tell, but for what the options say themselves.
    pub(super) fn fit(images: &Images, data: &super::config::Data) -> Self {
        let count = images.pixels.len().max(1) as f64;
        let values = || images.pixels.iter().map(|&pixel| f64::from(pixel) / 255.0);
        let mean = values().sum::<f64>() / count;
        let variance = values().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
        // Images that are all alike have no spread to divide by.
        let deviation = if variance > 0.0 { variance.sqrt() } else { 1.0 };
        Self {
            labels: Labels::in_order(images.labels.iter().map(String::as_str)),
            size: [images.channels, images.height, images.width],
            mean: data.mean.unwrap_or(mean as f32),
            deviation: data.std.unwrap_or(deviation as f32),
        }
    }
}

enum Network {
    Vit(Box<VisionTransformer>),
    Cnn(ConvolutionalClassifier),
}

pub(super) struct Classifier {
    pub(super) config: Config,
    preprocessor: Preprocessor,
    parameters: Parameters,
    network: Network,
    looked_up: LookedUp<Images>,
}

impl Classifier {
    pub(super) fn new(config: Config, preprocessor: Preprocessor) -> Result<Self> {
        let parameters = Parameters::new(DType::F32, config.training.seed);
        let (size, classes) = (preprocessor.size, preprocessor.labels.len());
        let network = match config.model.model {
            Kind::Vit => {
                let transformer = config.transformer(size, classes);
                Parameters::check_fit(DType::F32, |p| VisionTransformer::new(p, &transformer))?;
                Network::Vit(Box::new(VisionTransformer::new(&parameters, &transformer)?))
            }
            Kind::Cnn => {
                let convolutional = config.convolutional(size, classes);
                Parameters::check_fit(DType::F32, |p| {
                    ConvolutionalClassifier::new(p, &convolutional)
                })?;
                Network::Cnn(ConvolutionalClassifier::new(&parameters, &convolutional)?)
            }
        };
        Ok(Self { config, preprocessor, parameters, network, looked_up: LookedUp::new() })
    }

    /// Refuses images of another size than the model was made for.
    pub(super) fn check_size(&self, images: &Images, part: Part) -> Result<()> {
        let (now, then) = ([images.channels, images.height, images.width], self.preprocessor.size);
        if now != then && !images.is_empty() {
            let [c, h, w] = now;
            let [channels, height, width] = then;
            return Err(Error::invalid(format!(
                "the {} part has images of {h}×{w} pixels and {c} channels; the model was made for \
                 {height}×{width} and {channels}",
                part.name()
            )));
        }
        Ok(())
    }

    /// The images of a part; refuses those of another size.
    fn part(&self, dataset: &Dataset, part: Part) -> Result<Images> {
        let images = dataset.part(part)?;
        self.check_size(&images, part)?;
        Ok(images)
    }

    /// The numbers of images' labels.
    pub(super) fn truth(&self, images: &Images) -> Truth {
        Truth::new(&self.preprocessor.labels, images.labels.iter().map(String::as_str))
    }

    /// The values `[B, C, height, width]`, from 0 to 1, as the network takes them.
    fn input(&self, mut values: Vec<f32>) -> Result<Tensor> {
        let Preprocessor { size: [c, h, w], mean, deviation, .. } = self.preprocessor;
        values.iter_mut().for_each(|value| *value = (*value - mean) / deviation);
        let count = values.len() / (c * h * w).max(1);
        Ok(Tensor::from_vec(values, &[count, c, h, w])?)
    }

    fn forward(&self, input: &Tensor, mode: Mode) -> Result<Tensor> {
        Ok(match &self.network {
            Network::Vit(network) => network.forward(input, mode)?,
            Network::Cnn(network) => network.forward(input, mode)?,
        })
    }

    /// The labels' names, by number.
    pub(super) fn labels(&self) -> &[String] {
        self.preprocessor.labels.names()
    }

    /// What is said of some images, changed by chance, and the numbers of their labels.
    pub(super) fn learned(
        &self,
        images: &Images,
        which: &[usize],
        truth: &[usize],
        random: &Random,
    ) -> Result<(Tensor, Vec<i64>)> {
        let data = &self.config.data;
        let augmentation = Augmentation { shift: data.shift, flip: data.flip };
        let [c, h, w] = self.preprocessor.size;
        let mut values = images.values(which)?;
        values.chunks_mut(c * h * w).for_each(|image| augmentation.apply(image, [h, w], random));
        let logits = self.forward(&self.input(values)?, Mode::Train(random))?;
        Ok((logits, which.iter().map(|&at| truth[at] as i64).collect()))
    }

    pub(super) fn label_probabilities(&self, images: &Images) -> Result<LabelProbabilities<'_>> {
        let indices: Vec<usize> = (0..images.len()).collect();
        let mut logits = Vec::new();
        for indices in indices.chunks(EVALUATION_BATCH) {
            let input = self.input(images.values(indices)?)?;
            logits.push(without_gradients(|| self.forward(&input, Mode::Infer))?);
            let done = indices.last().map_or(0, |last| last + 1);
            tick("classifying", done, images.len())?;
        }
        if logits.is_empty() {
            return Err(Error::invalid("there are no images to predict the labels of"));
        }
        LabelProbabilities::new(self.preprocessor.labels.names(), Tensor::cat(&logits, 0)?)
    }

    /// The images that inputs hold; `validation:3` is one of the data.
    fn images(&self, inputs: &[Input]) -> Result<Images> {
        let [channels, height, width] = self.preprocessor.size;
        let mut all = Images { channels, height, width, ..Images::default() };
        let examples = self.looked_up.within(&self.config, "images");
        for input in inputs {
            all.labels.push(input.to_string());
            let Some((part, at)) = input.as_example() else {
                let (name, bytes) = input.content("a picture")?;
                let pixels = Images::decode_one(name, bytes, [height, width], channels == 3)?;
                all.pixels.extend(pixels);
                continue;
            };
            let one = examples.get(input, (part, at))?;
            self.check_size(&one, part)?;
            all.pixels.extend(one.pixels);
        }
        Ok(all)
    }

    /// How much each patch weighs, by layer and head: for the class token, or on average over all
    /// patches where there is none.
    fn weights(&self, network: &VisionTransformer, input: &Tensor) -> Result<Vec<Map>> {
        let seen = without_gradients(|| network.classify(input, Mode::Infer, Need::WEIGHTS))?;
        let layers = seen.weights;
        let token = usize::from(self.config.model.pooling == ImagePooling::ClassToken);
        let maps = Map::of_layers(&layers, Site::Encoder)?;
        let of = |map: Map| {
            let n = map.weights.len().isqrt();
            let rows = if token == 1 { 1 } else { n };
            let weight = |column: usize| {
                (0..rows).map(|row| map.weights[row * n + column]).sum::<f32>() / rows as f32
            };
            let place = map.place.map(|place| Place { column: token, ..place });
            Map { place, ..Map::new(&map.name[..], (token..n).map(weight).collect()) }
        };
        Ok(maps.into_iter().map(of).collect())
    }
}

impl Model for Classifier {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn named_rows(&self) -> Vec<NamedRows> {
        NamedRows::of(&["head.weight", "head.bias"], self.preprocessor.labels.names())
    }

    fn vocabulary(&self) -> Result<String> {
        serde_json::to_string(&self.preprocessor).map_err(|e| Error::invalid(e.to_string()))
    }

    fn evaluate(&self, part: Part) -> Result<Report> {
        let images = self.part(&Dataset::new(&self.config), part)?;
        let truth = self.truth(&images);
        let names: Vec<String> =
            (0..images.len()).map(|at| format!("{}:{at}", part.name())).collect();
        let probabilities = self.label_probabilities(&images)?.with_unseen(&truth.unseen);
        let notes = truth.note(part.name()).into_iter().collect();
        Ok(Report { notes, ..probabilities.report(&names, &truth.ids)? })
    }

    fn asks(&self) -> Asks {
        Asks::new(InputForm::Picture, self.preprocessor.labels.names())
    }

    fn judge(&self, part: Part) -> Result<Vec<Judged>> {
        let images = self.part(&Dataset::new(&self.config), part)?;
        let truth = self.truth(&images);
        let names: Vec<String> =
            (0..images.len()).map(|at| format!("{}:{at}", part.name())).collect();
        let probabilities = self.label_probabilities(&images)?.with_unseen(&truth.unseen);
        Ok(probabilities.judged(&names, &vec![1; images.len()], &truth.ids))
    }

    fn predict(&self, inputs: &[Input]) -> Result<Vec<Prediction>> {
        if inputs.is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.label_probabilities(&self.images(inputs)?)?.predictions(inputs))
    }

    fn n_best(&self, inputs: &[Input], n: usize) -> Result<Vec<Vec<Alternative>>> {
        Ok(self.label_probabilities(&self.images(inputs)?)?.n_best(n))
    }

    fn show(&self, input: &Input) -> Result<Vec<(String, Scene)>> {
        let Network::Vit(network) = &self.network else {
            return Err(Error::invalid("this model attends to nothing: it is a CNN"));
        };
        let image = self.images(std::slice::from_ref(input))?;
        let values = image.values(&[0])?;
        let maps = self.weights(network, &self.input(values.clone())?)?;
        let patch = self.config.model.patch_size;
        let (columns, rows) = (image.width / patch, image.height / patch);
        let scene = ImageScene { columns, rows, maps, ..pixels(&image, &values) };
        Ok(vec![("patches".into(), Scene::Image(scene))])
    }

    /// The label of an example, or the folder that an image lies in where that is a label.
    fn truth(&self, input: &Input) -> Option<String> {
        if let Input::File { name, .. } = input {
            let folder = Path::new(name).parent()?.file_name()?.to_str()?;
            return self.preprocessor.labels.id(folder).map(|_| folder.into());
        }
        self.looked_up.within(&self.config, "images").find(input)?.labels.pop()
    }

    fn abilities(&self) -> Abilities<'_> {
        let (explains, sees, exports) = (Some(self as _), Some(self as _), Some(self as _));
        Abilities { explains, sees, exports, ..Abilities::default() }
    }
}

/// An image in one part, without weights.
fn pixels(image: &Images, values: &[f32]) -> ImageScene {
    let (channels, height, width) = (image.channels, image.height, image.width);
    // A scene has the colors of a pixel together, the data have them in planes.
    let pixel = |at: usize| (0..channels).map(move |c| c * height * width + at);
    let pixels = (0..height * width).flat_map(pixel).map(|at| values[at]).collect();
    ImageScene { width, height, channels, pixels, columns: 1, rows: 1, maps: Vec::new() }
}

impl Sees for Classifier {
    fn picture(&self, input: &Input) -> Result<ImageScene> {
        let image = self.images(std::slice::from_ref(input))?;
        Ok(pixels(&image, &image.values(&[0])?))
    }
}

impl Explains for Classifier {
    fn saliency(&self, input: &Input, how: How) -> Result<Saliency> {
        let image = self.images(std::slice::from_ref(input))?;
        let label = self.label_probabilities(&image)?.best().first().copied().unwrap_or(0);
        let x = self.input(image.values(&[0])?)?;
        let patch = match self.config.model.model {
            Kind::Vit => self.config.model.patch_size,
            Kind::Cnn => 1,
        };
        let score =
            |x: &Tensor| Ok(self.forward(x, Mode::Infer)?.log_softmax(1)?.narrow(1, label, 1)?);
        let found = Probe::image(x, patch, &score).explain(how)?;
        let grid = Some([image.height / patch, image.width / patch]);
        let names = (1..=found.values.len()).map(|n| n.to_string()).collect();
        let name = self.preprocessor.labels.name(label);
        Ok(found.named(format!("the log-probability of {name}"), names, grid))
    }
}

impl Exports for Classifier {
    fn exported(&self) -> Result<Exported> {
        let [c, h, w] = self.preprocessor.size;
        let images = Random::named(1, "export").normal(&[3, c, h, w], 0.0, 1.0, DType::F32)?;
        let output = without_gradients(|| self.forward(&images, Mode::Infer))?;
        let network = match &self.network {
            Network::Vit(network) => {
                crate::task::network::Network::Vision(network.config().clone())
            }
            Network::Cnn(network) => {
                crate::task::network::Network::Convolutional(network.config().clone())
            }
        };
        Ok(Exported { network, inputs: [("images".to_string(), images)].into(), output })
    }
}
