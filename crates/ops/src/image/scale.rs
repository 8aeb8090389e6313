//! `ScaleAndTranslate`, `ScaleAndTranslateGrad`: images resampled by a kernel that is as wide as the scale asks for.
//!
//! TensorFlow: ScaleAndTranslate(images: T, size: int32, scale: float, translation: float) -> resized_images: float, with
//! kernel_type and antialias; ScaleAndTranslateGrad(grads: float, original_image: float, scale, translation) -> output: float.

use tensorfleet_graph::example::{Example, Lit, ex_err, ex_ref, f32s, i32s, ramp, x};
use tensorfleet_graph::gradient::{GradCtx, InputGrads};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::resample::{Axis, resample};
use tensorfleet_status::{Code, Result, ensure, invalid_argument};
use tensorfleet_tensor::DType;

use super::resize::{Sizes, as_original, resized};
use crate::math::calculus::first_of;
use crate::math::cast::converted;
use crate::nn::conv_attrs::with_attrs;
use crate::types::REAL_NUMBERS;

const IMAGE: Lit = ramp(&[2, 4, 5, 3], 60.0, -0.5);
const LARGER: Lit = i32s(&[2], &[7, 6]);
const SMALLER: Lit = i32s(&[2], &[2, 3]);
const TWICE: Lit = f32s(&[2], &[1.75, 1.25]);
const HALF: Lit = f32s(&[2], &[0.5, 0.625]);
const MOVED: Lit = f32s(&[2], &[0.5, -0.25]);
const PLAIN: (&str, &str) = ("antialias", "false");

const FORWARD: &[Example] = &[
    ex_ref("larger", &[], &[IMAGE, LARGER, TWICE, MOVED]),
    ex_ref("smaller", &[], &[IMAGE, SMALLER, HALF, MOVED]),
    ex_ref(
        "triangle",
        &[("kernel_type", "'triangle'")],
        &[IMAGE, SMALLER, HALF, MOVED],
    ),
    ex_ref(
        "keys, as narrow as ever",
        &[("kernel_type", "'keyscubic'"), PLAIN],
        &[IMAGE, SMALLER, HALF, MOVED],
    ),
    ex_ref(
        "mitchell",
        &[("kernel_type", "'mitchellcubic'")],
        &[IMAGE, LARGER, TWICE, MOVED],
    ),
    ex_ref(
        "gaussian",
        &[("kernel_type", "'gaussian'")],
        &[IMAGE, LARGER, TWICE, MOVED],
    ),
    ex_ref(
        "box",
        &[("kernel_type", "'box'")],
        &[IMAGE, SMALLER, HALF, MOVED],
    ),
    ex_err(
        "kernel",
        &[("kernel_type", "'sharp'")],
        &[f32s(&[1, 1, 1, 1], &[0.0]), LARGER, TWICE, MOVED],
        Code::InvalidArgument,
        "Unrecognized kernel type: sharp",
    ),
    ex_err(
        "scale",
        &[],
        &[
            f32s(&[1, 1, 1, 1], &[0.0]),
            LARGER,
            f32s(&[2], &[1.0, 0.0]),
            MOVED,
        ],
        Code::InvalidArgument,
        "Scale must be greater than zero.",
    ),
];

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "ScaleAndTranslate",
        inputs: &[
            "images: T",
            "size: int32",
            "scale: float",
            "translation: float",
        ],
        outputs: &["resized_images: float"],
        attrs: &[
            "T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, double}",
            "kernel_type: string = 'lanczos3'",
            "antialias: bool = true",
        ],
        infer: resized,
        gradient: Gradient::Rule(gradient),
        kernels: &[cpu(&[("T", REAL_NUMBERS)], build)],
        exactness: Exactness::Relative(4e-6),
        examples: FORWARD,
        ..OpDef::BLANK
    },
    OpDef {
        name: "ScaleAndTranslateGrad",
        inputs: &[
            "grads: T",
            "original_image: T",
            "scale: float",
            "translation: float",
        ],
        outputs: &["output: T"],
        attrs: &[
            "T: {float}",
            "kernel_type: string = 'lanczos3'",
            "antialias: bool = true",
        ],
        infer: as_original,
        gradient: Gradient::None("TensorFlow has none"),
        kernels: &[cpu(&[("T", &[DType::F32])], build_grad)],
        exactness: Exactness::Relative(4e-6),
        examples: &[ex_ref(
            "smaller",
            &[],
            &[
                ramp(&[2, 2, 3, 1], -4.0, 0.25),
                x(&[2, 4, 5, 1], &[0.0]),
                HALF,
                MOVED,
            ],
        )],
        ..OpDef::BLANK
    },
];

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let inputs = [g.grad(0)?, g.input(0), g.input(2), g.input(3)];
    let names = ["kernel_type", "antialias"];
    first_of(4, with_attrs(g, "ScaleAndTranslateGrad", &names, &inputs)?)
}

/// How much a pixel counts, by its distance.
#[derive(Clone, Copy)]
enum Kernel {
    Lanczos(f32),
    Gaussian,
    Box,
    Triangle,
    Keys,
    Mitchell,
}

impl Kernel {
    fn new(name: &str) -> Result<Kernel> {
        Ok(match name.to_ascii_lowercase().as_str() {
            "lanczos1" => Kernel::Lanczos(1.0),
            "lanczos3" => Kernel::Lanczos(3.0),
            "lanczos5" => Kernel::Lanczos(5.0),
            "gaussian" => Kernel::Gaussian,
            "box" => Kernel::Box,
            "triangle" => Kernel::Triangle,
            "keyscubic" => Kernel::Keys,
            "mitchellcubic" => Kernel::Mitchell,
            _ => return Err(invalid_argument!("Unrecognized kernel type: {name}")),
        })
    }

    fn radius(self) -> f32 {
        match self {
            Kernel::Lanczos(radius) => radius,
            Kernel::Gaussian => 1.5,
            Kernel::Box | Kernel::Triangle => 1.0,
            Kernel::Keys | Kernel::Mitchell => 2.0,
        }
    }

    fn weight(self, x: f32) -> f32 {
        const PI: f32 = std::f32::consts::PI;
        match self {
            Kernel::Lanczos(radius) if x > radius => 0.0,
            Kernel::Lanczos(_) if x <= 1e-3 => 1.0,
            Kernel::Lanczos(radius) => {
                radius * (PI * x).sin() * (PI * x / radius).sin() / (PI * PI * x * x)
            }
            Kernel::Gaussian if x >= 1.5 => 0.0,
            Kernel::Gaussian => (-f64::from(x * x) / 0.5).exp() as f32,
            Kernel::Box if x < 0.5 => 1.0,
            Kernel::Box if x == 0.5 => 0.5,
            Kernel::Box => 0.0,
            Kernel::Triangle => (1.0 - x).max(0.0),
            Kernel::Keys | Kernel::Mitchell if x >= 2.0 => 0.0,
            Kernel::Keys if x >= 1.0 => ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0,
            Kernel::Keys => ((1.5 * x - 2.5) * x) * x + 1.0,
            Kernel::Mitchell if x >= 1.0 => {
                (((-7.0 / 18.0) * x + 2.0) * x - 10.0 / 3.0) * x + 16.0 / 9.0
            }
            Kernel::Mitchell => (((7.0 / 6.0) * x - 2.0) * x) * x + 8.0 / 9.0,
        }
    }

    /// What the output pixels of one direction see.
    fn axis(
        self,
        (input, output): (usize, usize),
        (scale, translation): (f32, f32),
        antialias: bool,
    ) -> Axis {
        let step = 1.0 / scale;
        let shift = -step * translation;
        let width = if antialias { step.max(1.0) } else { 1.0 };
        let reach = self.radius() * width;
        let last = input as i64 - 1;
        let mut axis = Axis::new(input);
        let mut weights = Vec::new();
        for at in 0..output {
            let sample = (at as f32 + 0.5) * step + shift;
            if !(0.0..=input as f32).contains(&sample) {
                axis.push([]);
                continue;
            }
            let first = ((sample - reach - 0.5).ceil() as i64).clamp(0, last);
            let end = ((sample + reach - 0.5).floor() as i64).clamp(0, last);
            weights.clear();
            weights.extend((first..=end).map(|pixel| {
                let distance = pixel as f32 + 0.5 - sample;
                (pixel as usize, self.weight((distance / width).abs()))
            }));
            let sum: f32 = weights.iter().map(|(_, weight)| weight).sum();
            if sum.abs() < 1000.0 * f32::MIN_POSITIVE {
                weights.clear();
            }
            let share = 1.0 / sum;
            axis.push(
                weights
                    .iter()
                    .map(|(pixel, weight)| (*pixel, weight * share)),
            );
        }
        axis
    }
}

/// A node's attributes.
#[derive(Clone, Copy)]
struct Scaling {
    kernel: Kernel,
    antialias: bool,
}

impl Scaling {
    fn new(node: &NodeInfo) -> Result<Scaling> {
        Ok(Scaling {
            kernel: Kernel::new(node.attrs.str("kernel_type")?)?,
            antialias: node.attrs.bool("antialias")?,
        })
    }

    fn axes(self, ctx: &KernelCtx<'_>, sizes: &Sizes) -> Result<[Axis; 2]> {
        let (scale, translation) = (floats(ctx, 2)?, floats(ctx, 3)?);
        ensure!(
            scale[0] > 0.0 && scale[1] > 0.0,
            invalid_argument,
            "Scale must be greater than zero."
        );
        let axis = |i: usize| {
            let lengths = (sizes.input[i], sizes.output[i]);
            self.kernel
                .axis(lengths, (scale[i], translation[i]), self.antialias)
        };
        Ok([axis(0), axis(1)])
    }
}

fn floats(ctx: &KernelCtx<'_>, index: usize) -> Result<[f32; 2]> {
    let tensor = ctx.input(index)?;
    match (tensor.rank(), tensor.slice::<f32>()?) {
        (1, &[first, second]) => Ok([first, second]),
        (1, _) => Err(invalid_argument!(
            "t must have two elements{}",
            tensor.shape()
        )),
        _ => Err(invalid_argument!(
            "t must be 1-dimensional{}",
            tensor.shape()
        )),
    }
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let scaling = Scaling::new(node)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let sizes = Sizes::of_images(ctx, "output_shape_t")?;
        let mut out = ctx.allocate(DType::F32, sizes.shape(sizes.output)?)?;
        if out.is_empty() {
            ctx.set(0, out);
            return Ok(());
        }
        let [rows, columns] = scaling.axes(ctx, &sizes)?;
        let input = converted(ctx.par(), ctx.input(0)?, DType::F32)?;
        let (from, to) = (input.slice::<f32>()?, out.slice_mut::<f32>()?);
        resample(ctx.par(), [&rows, &columns], sizes.channels, from, to);
        ctx.set(0, out);
        Ok(())
    })
}

fn build_grad(node: &NodeInfo) -> Result<AnyKernel> {
    let scaling = Scaling::new(node)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let sizes = Sizes::of_gradient_images(ctx)?;
        let mut out = ctx.allocate(DType::F32, sizes.shape(sizes.input)?)?;
        if out.is_empty() {
            ctx.set(0, out);
            return Ok(());
        }
        let [rows, columns] = scaling.axes(ctx, &sizes)?.map(|axis| axis.transposed());
        let (from, to) = (ctx.input(0)?.slice::<f32>()?, out.slice_mut::<f32>()?);
        resample(ctx.par(), [&rows, &columns], sizes.channels, from, to);
        ctx.set(0, out);
        Ok(())
    })
}
