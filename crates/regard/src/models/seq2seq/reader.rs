//! From a source to the vectors that an encoder takes.

use super::{Source, SourceConfig};
use crate::{Embedding, Linear, length};
use regard_tensor::{Init, Parameter, Parameters, Result, SlidingWindow, Tensor, ensure};

#[derive(Clone, Debug)]
pub(super) enum Reader {
    Tokens(Embedding),
    Vectors { width: usize },
    Patches(Patches),
}

/// Patches of an image as vectors.
#[derive(Clone, Debug)]
pub(super) struct Patches {
    /// C, height and width.
    size: [usize; 3],
    patch: usize,
    project: Linear,
    /// Which row and which column a patch stands in, `[rows, width]` and `[columns, width]`.
    row: Parameter,
    column: Parameter,
}

impl Reader {
    /// For what is no token; tokens have the table that is given.
    pub(super) fn new(
        parameters: &Parameters,
        config: &SourceConfig,
        width: usize,
        table: impl FnOnce(usize) -> Result<Embedding>,
    ) -> Result<Self> {
        Ok(match *config {
            SourceConfig::Tokens { vocabulary } => Self::Tokens(table(vocabulary)?),
            SourceConfig::Vectors { width } => Self::Vectors { width },
            SourceConfig::Patches { image: [height, wide], channels, patch } => {
                let at = parameters.at("source");
                // Together as large as a patch's own vector, so that places count from the start.
                let init = Init::Normal(0.5f64.sqrt());
                Self::Patches(Patches {
                    size: [channels, height, wide],
                    patch,
                    project: Linear::new(
                        &at.at("patch"),
                        channels.saturating_mul(patch).saturating_mul(patch),
                        width,
                        true,
                    )?,
                    row: at.parameter("row", &[height / patch, width], init)?,
                    column: at.parameter("column", &[wide / patch, width], init)?,
                })
            }
        })
    }

    /// Width of the vectors it gives, where a token has `embedding`.
    pub(super) fn width(&self, embedding: usize) -> usize {
        match self {
            Self::Vectors { width } => *width,
            _ => embedding,
        }
    }

    /// → `[B, N, width]`
    pub(super) fn vectors(&self, source: &Source) -> Result<Tensor> {
        let x = &source.x;
        match self {
            Self::Tokens(table) => {
                ensure!(x.rank() == 2, "sources of shape {:?}; they are [B, N]", x.shape());
                table.forward(x)
            }
            Self::Vectors { width } => {
                ensure!(
                    x.rank() == 3 && x.shape()[2] == *width && x.dtype().is_float(),
                    "sources are {} {:?}; the model reads vectors [B, N, {width}]",
                    x.dtype(),
                    x.shape()
                );
                length::check("sources", Some(&source.lengths), x.shape()[0], x.shape()[1])?;
                // Vectors may hold anything past their number, even NaN: no gradient should meet it.
                length::without_padding(
                    x,
                    length::keep(Some(&source.lengths), x.shape()[1], x.device())?.as_ref(),
                )
            }
            Self::Patches(patches) => patches.vectors(x),
        }
    }
}

impl Patches {
    fn vectors(&self, images: &Tensor) -> Result<Tensor> {
        let [channels, height, width] = self.size;
        ensure!(
            images.rank() == 4 && images.shape()[1..] == self.size,
            "images of shape {:?}; the model reads [B, {channels}, {height}, {width}]",
            images.shape()
        );
        let side = [self.patch, self.patch];
        let window = SlidingWindow { stride: side, ..SlidingWindow::new(side) };
        let patches = images.unfold(&window)?.transpose(1, 2)?;
        let place = self.row.tensor().unsqueeze(1)?.add(&self.column.tensor().unsqueeze(0)?)?;
        let (count, wide) = (patches.shape()[1], place.shape()[2]);
        self.project.forward(&patches)?.add(&place.reshape(&[count, wide])?)
    }
}
