//! The operations of a training step beside attention: their texts, and how they are launched.

pub(super) mod product;

#[doc(hidden)]
pub use product::{Factors, Operand, Product, ProductBase};

use crate::cuda::device::Cuda;
use crate::cuda::module::Grid;
use crate::error::{Error, ensure};
use crate::{Activation, Cell};
use std::ffi::c_void;
use std::fmt::Write;

/// The most axes of an array.
const MOST_AXES: usize = 6;

/// Which text a kernel is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StepText {
    /// Copies, choices and conversions of any numbers.
    Bytes,
    /// What computes in f32.
    F32,
    /// What computes in f64.
    F64,
}

/// The functions that the texts know by name; the place in a list is the number that a kernel is given.
const NAMES: [&[&str]; 5] = [&UNARY, &BINARY, &COMPARISON, &ACTIVATION, &NUMBER];
const UNARY: [&str; 9] = ["SCALE", "SHIFT", "EXP", "LN", "SQRT", "SQUARE", "ABS", "POWF", "CLAMP"];
const BINARY: [&str; 5] = ["ADD", "SUB", "MUL", "DIV", "MAXIMUM"];
const COMPARISON: [&str; 6] =
    ["EQUAL", "NOT_EQUAL", "LESS", "LESS_OR_EQUAL", "GREATER", "GREATER_OR_EQUAL"];
const ACTIVATION: [&str; 10] = [
    "IDENTITY",
    "RELU",
    "LEAKY_RELU",
    "GELU",
    "GELU_TANH",
    "SILU",
    "TANH",
    "SIGMOID",
    "ELU",
    "EXPONENTIAL",
];
const NUMBER: [&str; 7] = ["F32", "F64", "BF16_NUMBER", "F16_NUMBER", "I64", "U32", "BOOL"];
const CELL: [&str; 4] = ["CELL_RNN", "CELL_RNN_RELU", "CELL_GRU", "CELL_LSTM"];

/// An activation's number in the texts, and its own number.
pub fn activation_code(f: Activation) -> (i64, f64) {
    match f {
        Activation::Identity => (0, 0.0),
        Activation::Relu => (1, 0.0),
        Activation::LeakyRelu { slope } => (2, slope),
        Activation::Gelu => (3, 0.0),
        Activation::GeluTanh => (4, 0.0),
        Activation::Silu => (5, 0.0),
        Activation::Tanh => (6, 0.0),
        Activation::Sigmoid => (7, 0.0),
        Activation::Elu { alpha } => (8, alpha),
        Activation::Exp => (9, 0.0),
    }
}

/// A cell's number in the texts.
pub fn cell_code(cell: Cell) -> i64 {
    match cell {
        Cell::Rnn => 0,
        Cell::RnnRelu => 1,
        Cell::Gru => 2,
        Cell::Lstm => 3,
    }
}

impl StepText {
    /// What NVRTC is given.
    #[doc(hidden)]
    pub fn text(self) -> String {
        let mut text = String::new();
        let real = if self == Self::F32 { "float" } else { "double" };
        // Writing to a string does not fail.
        let _ = writeln!(text, "#define SAME 0\n#define BF16 1\n#define STORED SAME");
        let _ = writeln!(text, "#define REAL {real}");
        for names in NAMES.into_iter().chain([&CELL[..]]) {
            for (code, name) in names.iter().enumerate() {
                let _ = writeln!(text, "#define {name} {code}");
            }
        }
        text += include_str!("../text/numbers.cu");
        text += include_str!("../text/step/walk.cu");
        if self == Self::Bytes {
            return text + include_str!("../text/step/bytes.cu");
        }
        text += include_str!("../text/step/elementwise.cu");
        text += include_str!("../text/step/reduce.cu");
        text += include_str!("../text/step/rows.cu");
        text += include_str!("../text/step/matmul.cu");
        text += include_str!("../text/step/recurrent.cu");
        text + include_str!("../text/step/optimizer.cu")
    }
}

/// Where the numbers of up to three operands lie over one shape, as `text/step/walk.cu` has it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Walk {
    count: i64,
    axes: i64,
    sizes: [i64; MOST_AXES],
    strides: [[i64; MOST_AXES]; 3],
}

impl Walk {
    /// Over a shape of six axes at most; an operand's strides are one for each. Axes that lie one behind the
    /// other in all operands become one.
    pub fn new(shape: &[usize], operands: &[&[usize]]) -> Result<Self, Error> {
        ensure!(
            shape.len() <= MOST_AXES && operands.len() <= 3,
            "{} operands of {} axes are more than a kernel walks",
            operands.len(),
            shape.len()
        );
        let mut walk = Self { count: shape.iter().product::<usize>() as i64, ..Self::default() };
        let mut axes = 0;
        for (axis, &size) in shape.iter().enumerate().filter(|(_, size)| **size != 1) {
            let strides = |k: usize| operands.get(k).map_or(0, |strides| strides[axis] as i64);
            let size = size as i64;
            let joins = axes > 0 && (0..3).all(|k| walk.strides[k][axes - 1] == strides(k) * size);
            if joins {
                walk.sizes[axes - 1] *= size;
            } else {
                walk.sizes[axes] = size;
                axes += 1;
            }
            for k in 0..3 {
                walk.strides[k][axes - 1] = strides(k);
            }
        }
        walk.axes = axes.max(1) as i64;
        Ok(walk)
    }

    /// The same over groups of so many numbers, where these lie in a row in each of the first `operands`: places count
    /// groups then. A group is aligned where the operands begin so.
    pub fn grouped(&self, size: usize, operands: usize) -> Option<Self> {
        let (size, last) = (size as i64, self.axes as usize - 1);
        let fits = |k: usize| {
            let strides = self.strides[k];
            strides[last] == 1 && strides[..last].iter().all(|stride| stride % size == 0)
        };
        if self.count == 0 || self.sizes[last] % size != 0 || !(0..operands).all(fits) {
            return None;
        }
        let mut walk = *self;
        walk.count /= size;
        walk.sizes[last] /= size;
        for strides in &mut walk.strides[..operands] {
            strides[..last].iter_mut().for_each(|stride| *stride /= size);
        }
        Some(walk)
    }

    /// How many numbers.
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// How far apart neighbors are in the first two operands, where that is the same everywhere.
    pub fn evenly(&self) -> Option<[usize; 2]> {
        let [a, b, _] = self.strides;
        (self.axes == 1).then_some([a[0] as usize, b[0] as usize])
    }
}

/// Windows over images, as `text/step/rows.cu` has them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SlideOf {
    /// Height and width of a window.
    pub kernel: [i64; 2],
    /// How far apart windows are.
    pub stride: [i64; 2],
    /// Zeros around an image.
    pub padding: [i64; 2],
    /// How far apart a window's numbers are.
    pub dilation: [i64; 2],
    /// Height and width of an image.
    pub size: [i64; 2],
    /// How many windows, down and across.
    pub places: [i64; 2],
}

/// Sequences of a recurrent layer, as `text/step/recurrent.cu` has them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SequenceOf {
    /// How many.
    pub batch: i64,
    /// How many steps.
    pub steps: i64,
    /// The width of a state.
    pub hidden: i64,
    /// Its [`cell_code`].
    pub cell: i64,
    /// Whether each runs from its end.
    pub reverse: i64,
    /// The address of a length (i64) for each; 0: all steps.
    pub lengths: u64,
}

/// The states of a recurrent layer's step, as `text/step/recurrent.cu` has them: addresses, 0 where there is none.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct StatesOf {
    /// `[B, T, G·H]`
    pub gates: u64,
    /// `[B, H]`: before the step.
    pub h: u64,
    /// `[B, H]`: after it.
    pub next: u64,
    /// `[B, H]`: an LSTM's cells, replaced.
    pub c: u64,
    /// `[B, T, H]`
    pub out: u64,
    /// What the backward pass reads.
    pub saved: u64,
}

/// The gradients of a recurrent layer's step, as `text/step/recurrent.cu` has them: addresses, 0 where there is none.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SlopesOf {
    /// What the forward pass left.
    pub saved: u64,
    /// `[B, T, H]`
    pub grad_out: u64,
    /// `[B, H]`: what goes past the recurrent product, replaced.
    pub past: u64,
    /// `[B, H]`: of an LSTM's cells, replaced.
    pub grad_c: u64,
    /// `[B, T, G·H]`
    pub grad_gates: u64,
    /// `[B, G·H]`: of the recurrent product.
    pub by_h: u64,
}

/// One parameter of an optimizer's step, as `text/step/optimizer.cu` has it.
#[derive(Clone, Copy, Debug, Default)]
pub struct PartOf {
    /// Where its numbers are.
    pub value: u64,
    /// Where their gradients are.
    pub gradient: u64,
    /// What the rule keeps; 0 where it keeps nothing.
    pub kept: [u64; 2],
    /// How many numbers.
    pub count: usize,
}

impl PartOf {
    /// Numbers of a parameter that a block has.
    const CHUNK: usize = 4096;

    /// A list of parameters as the kernels read it, and the blocks for all of them.
    pub fn list(parts: &[Self]) -> (Vec<u64>, Launch) {
        let (mut list, mut blocks) = (Vec::with_capacity(6 * parts.len()), 0);
        for part in parts {
            let [first, second] = part.kept;
            let (count, block) = (part.count as u64, blocks as u64);
            list.extend([part.value, part.gradient, first, second, count, block]);
            blocks += part.count.div_ceil(Self::CHUNK);
        }
        (list, Launch::of_blocks(blocks))
    }
}

/// What gradients are scaled down to, as `text/step/optimizer.cu` has it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ClipOf {
    /// The address of their norm, an f64; 0: they are not scaled.
    pub norm: u64,
    /// The largest norm that stays.
    pub most: f64,
}

/// What a kernel is given.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Argument {
    /// An address, or none where it is 0.
    At(u64),
    /// A whole number.
    Whole(i64),
    /// A number.
    Number(f64),
    /// Where operands lie.
    Walk(Walk),
    /// Windows.
    Slide(SlideOf),
    /// Sequences.
    Sequence(SequenceOf),
    /// Clipping.
    Clip(ClipOf),
    /// A recurrent layer's states.
    States(StatesOf),
    /// A recurrent layer's gradients.
    Slopes(SlopesOf),
}

impl Argument {
    fn pointer(&self) -> *mut c_void {
        let at: *const c_void = match self {
            Self::At(x) => (&raw const *x).cast(),
            Self::Whole(x) => (&raw const *x).cast(),
            Self::Number(x) => (&raw const *x).cast(),
            Self::Walk(x) => (&raw const *x).cast(),
            Self::Slide(x) => (&raw const *x).cast(),
            Self::Sequence(x) => (&raw const *x).cast(),
            Self::Clip(x) => (&raw const *x).cast(),
            Self::States(x) => (&raw const *x).cast(),
            Self::Slopes(x) => (&raw const *x).cast(),
        };
        at.cast_mut()
    }
}

/// Threads of a block that has enough to do.
const THREADS: usize = 256;
/// Blocks at most, where threads go round: enough to fill any GPU there is.
const BLOCKS: usize = 4096;

/// How many blocks and threads a kernel gets.
#[derive(Clone, Copy, Debug)]
pub struct Launch {
    blocks: usize,
    threads: usize,
}

impl Launch {
    /// A thread for each of so many numbers, or a thread for several.
    pub fn of_numbers(count: usize) -> Self {
        let threads = count.next_multiple_of(32).clamp(32, THREADS);
        Self { blocks: count.div_ceil(threads).clamp(1, BLOCKS), threads }
    }

    /// A block for each of so many rows, as wide as they are.
    pub fn of_rows(rows: usize, width: usize) -> Self {
        Self { blocks: rows, threads: width.next_multiple_of(32).clamp(32, THREADS) }
    }

    /// So many blocks of 256 threads.
    pub fn of_blocks(blocks: usize) -> Self {
        Self { blocks, threads: THREADS }
    }

    /// A warp for each.
    pub fn of_warps(warps: usize) -> Self {
        Self { blocks: warps.div_ceil(4).max(1), threads: 128 }
    }

    /// How many blocks.
    pub fn blocks(&self) -> usize {
        self.blocks
    }
}

impl Cuda {
    /// Asks a kernel of a training step of the GPU's stream; nothing where there are no blocks.
    ///
    /// # Safety
    /// The arguments are those of the kernel's text, in order, and what lies at the addresses is as large as
    /// the kernel reads and writes it.
    #[doc(hidden)]
    pub unsafe fn launch_step(
        &self,
        text: StepText,
        kernel: &str,
        launch: Launch,
        arguments: &[Argument],
    ) -> Result<(), Error> {
        if launch.blocks == 0 {
            return Ok(());
        }
        ensure!(
            launch.blocks <= i32::MAX as usize,
            "{kernel}: {} blocks are more than a GPU counts",
            launch.blocks
        );
        let _entered = self.device.enter()?;
        let module = self.device.step_module(text)?;
        let mut pointers: Vec<*mut c_void> = arguments.iter().map(Argument::pointer).collect();
        let grid = Grid::new([launch.blocks as u32, 1, 1], launch.threads, 0);
        // SAFETY: the caller's promise.
        unsafe { module.launch(&self.device, kernel, grid, &mut pointers) }
    }
}
