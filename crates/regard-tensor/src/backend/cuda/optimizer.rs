//! A step of an optimizer, and the norm of its gradients: one kernel for all parameters of a type.

use super::{CudaBackend, at, real, whole};
use crate::backend::{Backend, Move, Moved};
use crate::layout::Dims;
use crate::optim::UpdateRule;
use crate::{DType, Error, Result, Tensor};
use regard_kernels::CudaBuffer;
use regard_kernels::cuda::step::{Argument, ClipOf, Launch, PartOf, StepText};

/// Parameters as the kernels take them: the list on the GPU, its length, and the blocks for all.
struct Parts {
    list: CudaBuffer,
    count: usize,
    launch: Launch,
}

impl Parts {
    fn new(backend: &CudaBackend, parts: &[PartOf]) -> Result<Self> {
        let (list, launch) = PartOf::list(parts);
        let list = backend.cuda.upload(bytemuck::cast_slice(&list))?;
        Ok(Self { list, count: parts.len(), launch })
    }

    fn arguments(&self) -> [Argument; 2] {
        [Argument::At(self.list.address()), whole(self.count)]
    }
}

impl CudaBackend {
    pub(super) fn norm_there(&self, all: &[&Tensor]) -> Result<Tensor> {
        let mut of_types = Vec::new();
        for dtype in [DType::F32, DType::F64] {
            let gradients = all.iter().filter(|x| x.dtype() == dtype && x.numel() > 0);
            let parts = gradients.map(|x| {
                let (gradient, count) = (x.device_address()?, x.numel());
                Ok(PartOf { gradient, count, ..PartOf::default() })
            });
            let parts = parts.collect::<Result<Vec<_>>>()?;
            if let Some(text) = super::text(dtype).filter(|_| !parts.is_empty()) {
                of_types.push((text, Parts::new(self, &parts)?));
            }
        }
        let blocks: usize = of_types.iter().map(|(_, parts)| parts.launch.blocks()).sum();
        let sums = self.uninit(&Dims::new(&[blocks])?, DType::F64)?;
        let mut to = sums.device_address()?;
        for (text, parts) in &of_types {
            let [list, count] = parts.arguments();
            self.launch(*text, "squares", parts.launch, &[list, count, Argument::At(to)])?;
            to += (parts.launch.blocks() * size_of::<f64>()) as u64;
        }
        let norm = self.uninit(&Dims::new(&[])?, DType::F64)?;
        let text = of_types.first().map_or(StepText::F64, |(text, _)| *text);
        let arguments = [at(&sums)?, whole(blocks), at(&norm)?];
        self.launch(text, "root_of_sum", Launch::of_blocks(1), &arguments)?;
        Ok(norm)
    }

    pub(super) fn lerp_there(&self, all: &[(&mut Tensor, Tensor)], weight: f64) -> Result<()> {
        let Some((first, _)) = all.first() else { return Ok(()) };
        let text = real(first);
        let parts = all.iter().map(|(x, target)| {
            let (value, gradient) = (x.device_address()?, target.device_address()?);
            Ok(PartOf { value, gradient, count: x.numel(), ..PartOf::default() })
        });
        let parts = Parts::new(self, &parts.collect::<Result<Vec<_>>>()?)?;
        let [list, count] = parts.arguments();
        self.launch(text, "lerp", parts.launch, &[list, count, Argument::Number(weight)])
    }

    pub(super) fn step_there(&self, all: &[Moved], by: &Move) -> Result<()> {
        let Move { rule, learning_rate, step, clip } = *by;
        let Some(first) = all.first() else { return Ok(()) };
        let text = real(first.value);
        let parts = all.iter().map(|one| {
            let mut kept = [0; 2];
            for (kept, moment) in kept.iter_mut().zip(&*one.moments) {
                *kept = moment.device_address()?;
            }
            Ok(PartOf {
                value: one.value.device_address()?,
                gradient: one.gradient.device_address()?,
                kept,
                count: one.value.numel(),
            })
        });
        let parts = Parts::new(self, &parts.collect::<Result<Vec<_>>>()?)?;
        let clip = match clip {
            Some(clip) => ClipOf { norm: clip.norm.device_address()?, most: clip.most },
            None => ClipOf { norm: 0, most: 0.0 },
        };
        let [list, count] = parts.arguments();
        let mut arguments =
            vec![list, count, Argument::Clip(clip), Argument::Number(learning_rate)];
        let kernel = match rule {
            UpdateRule::Adam { betas, eps, weight_decay }
            | UpdateRule::AdamW { betas, eps, weight_decay } => {
                if all.iter().any(|one| one.moments.len() != 2) {
                    return Err(Error::new("Adam keeps two moments for a parameter"));
                }
                let correction = |beta: f64| 1.0 - beta.powf(step as f64);
                let decoupled = matches!(rule, UpdateRule::AdamW { .. });
                arguments.extend([betas.0, betas.1, eps, weight_decay].map(Argument::Number));
                arguments.push(Argument::Whole(i64::from(decoupled)));
                let corrections = [correction(betas.0), correction(betas.1).sqrt()];
                arguments.extend(corrections.map(Argument::Number));
                "adam"
            }
            UpdateRule::Sgd { momentum, nesterov, weight_decay } => {
                arguments.extend([momentum, weight_decay].map(Argument::Number));
                arguments.push(Argument::Whole(i64::from(nesterov)));
                "sgd"
            }
        };
        self.launch(text, kernel, parts.launch, &arguments)
    }
}
