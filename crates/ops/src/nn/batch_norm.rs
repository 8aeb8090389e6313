//! `FusedBatchNorm`, `FusedBatchNormV2`, `FusedBatchNormV3` and their gradients.
//!
//! TensorFlow: (x: T, scale: U, offset: U, mean: U, variance: U) -> (y: T, batch_mean: U, batch_variance: U, and what the
//! gradient needs). In training the batch's own statistics normalise, and the variance that comes out has Bessel's
//! correction; else the given statistics do. What V3 reserves third means nothing on a CPU: it is empty here.

use tensorfleet_graph::example::{Lit, Script, ex_ref, f32s, script};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::norm::{
    BatchNorm, BatchNormGrad, Layout, NormElement, Running, Statistics,
    batch_norm_grad as compute_grad, batch_norm_infer, batch_norm_train,
};
use tensorfleet_math::unary::UnaryElement;
use tensorfleet_status::{Result, internal, invalid_argument, unimplemented};
use tensorfleet_tensor::{DType, Element, Shape, Tensor, bf16, f16};

use super::batch_norm_grad;
use super::ending::Ending;

pub(super) const TYPES: &[DType] = &[DType::F16, DType::BF16, DType::F32];
pub(super) const F32: &[DType] = &[DType::F32];

pub(super) const V3_OUTPUTS: &[&str] = &[
    "y: T",
    "batch_mean: U",
    "batch_variance: U",
    "reserve_space_1: U",
    "reserve_space_2: U",
    "reserve_space_3: U",
];

pub(super) const NORM: OpDef = OpDef {
    inputs: &["x: T", "scale: U", "offset: U", "mean: U", "variance: U"],
    outputs: &[
        "y: T",
        "batch_mean: U",
        "batch_variance: U",
        "reserve_space_1: U",
        "reserve_space_2: U",
    ],
    infer: shapes,
    gradient: Gradient::Rule(batch_norm_grad::forward),
    cost: Cost::Measured,
    exactness: Exactness::Relative(2e-5),
    ..OpDef::BLANK
};

const GRAD: OpDef = OpDef {
    inputs: &[
        "y_backprop: T",
        "x: T",
        "scale: float",
        "reserve_space_1: U",
        "reserve_space_2: U",
    ],
    outputs: &[
        "x_backprop: T",
        "scale_backprop: U",
        "offset_backprop: U",
        "reserve_space_3: U",
        "reserve_space_4: U",
    ],
    gradient: Gradient::Rule(batch_norm_grad::gradient),
    ..NORM
};

const BACKWARD: &[Lit] = &[
    f32s(&[2, 1, 2, 2], &[0.1, 0.2, -0.3, 0.4, 0.5, -0.6, 0.7, 0.8]),
    f32s(&[2, 1, 2, 2], &[1.0, -2.0, 3.0, 0.5, -1.0, 4.0, 2.0, 2.5]),
    f32s(&[2], &[1.0, 2.0]),
    f32s(&[2], &[1.25, 1.25]),
    f32s(&[2], &[2.1875, 4.8125]),
];

const TRAINING: &[Script] = &[
    script(
        "volumes, channels first",
        "x = float[1,2,1,2,2]{1, 2, 4, 8, -1, 0.5, 3, 2}\ns = float[2]{1, 2}\no = float[2]{0.5, -1}\ne = float[0]{}\nn = FusedBatchNormV3(x, s, o, e, e) {data_format='NCDHW'}",
        &["fetch n, n:1, n:2 => ?"],
    ),
    script(
        "training and its gradient",
        "x = float[2,1,2,2]{1, -2, 3, 0.5, -1, 4, 2, 2.5}
         scale = float[2]{1, 2}
         offset = float[2]{0.5, -1}
         none = float[0]{}
         dy = float[2,1,2,2]{0.1, 0.2, -0.3, 0.4, 0.5, -0.6, 0.7, 0.8}
         bn = FusedBatchNormV3(x, scale, offset, none, none) {epsilon=0.001, is_training=true}
         g = FusedBatchNormGradV3(dy, x, scale, bn:3, bn:4, bn:5) {epsilon=0.001, is_training=true}",
        &["fetch bn, bn:1, bn:2 => ?", "fetch g, g:1, g:2 => ?"],
    ),
    script(
        "inference and its gradient",
        "x = float[1,2,2,1]{1, -2, 3, 0.5}
         scale = float[1]{2}
         offset = float[1]{-1}
         mean = float[1]{0.5}
         variance = float[1]{4}
         dy = float[1,2,2,1]{0.1, 0.2, -0.3, 0.4}
         none = float[]{0}
         bn = FusedBatchNormV3(x, scale, offset, mean, variance) {epsilon=0.001, is_training=false}
         g = FusedBatchNormGradV3(dy, x, scale, mean, variance, none) {epsilon=0.001, is_training=false}",
        &["fetch bn, bn:1, bn:2 => ?", "fetch g, g:1, g:2 => ?"],
    ),
    script(
        "nothing to normalise",
        "x = float[0,2,2,2]{}
         scale = float[2]{1, 2}
         offset = float[2]{0.5, -1}
         none = float[0]{}
         bn = FusedBatchNormV3(x, scale, offset, none, none) {epsilon=0.001, is_training=true}
         g = FusedBatchNormGradV3(x, x, scale, bn:3, bn:4, bn:5) {epsilon=0.001, is_training=true}",
        &["fetch g, g:1, g:2 => float[0,2,2,2]{}; float[2]{0, 0}; float[2]{0, 0}"],
    ),
    script(
        "shapes must fit",
        "x = float[1,2,2,2]{1}
         scale = float[1]{2}
         bn = FusedBatchNormV3(x, scale, scale, scale, scale) {is_training=false}",
        &["fetch bn fails INVALID_ARGUMENT scale"],
    ),
];

const OLDER: &[Script] = &[script(
    "training",
    "x = float[2,1,2,2]{1, -2, 3, 0.5, -1, 4, 2, 2.5}
     scale = float[2]{1, 2}
     offset = float[2]{0.5, -1}
     none = float[0]{}
     dy = float[2,1,2,2]{0.1, 0.2, -0.3, 0.4, 0.5, -0.6, 0.7, 0.8}
     a = FusedBatchNorm(x, scale, offset, none, none)
     b = FusedBatchNormV2(x, scale, offset, none, none)
     ga = FusedBatchNormGrad(dy, x, scale, a:3, a:4)
     gb = FusedBatchNormGradV2(dy, x, scale, b:3, b:4)",
    &["fetch a, a:1, a:2, b => ?", "fetch ga, ga:1, ga:2, gb => ?"],
)];

pub(crate) static OPS: [OpDef; 6] = [
    OpDef {
        name: "FusedBatchNorm",
        inputs: &["x: T", "scale: T", "offset: T", "mean: T", "variance: T"],
        outputs: &[
            "y: T",
            "batch_mean: T",
            "batch_variance: T",
            "reserve_space_1: T",
            "reserve_space_2: T",
        ],
        attrs: &[
            "T: {float}",
            "epsilon: float = 0.0001",
            "exponential_avg_factor: float = 1.0",
            "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
            "is_training: bool = true",
        ],
        kernels: &[cpu(&[("T", F32)], build)],
        scripts: OLDER,
        ..NORM
    },
    OpDef {
        name: "FusedBatchNormV2",
        attrs: &[
            "T: {half, bfloat16, float}",
            "U: {float}",
            "epsilon: float = 0.0001",
            "exponential_avg_factor: float = 1.0",
            "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
            "is_training: bool = true",
        ],
        kernels: &[cpu(&[("T", TYPES)], build)],
        scripts: OLDER,
        ..NORM
    },
    OpDef {
        name: "FusedBatchNormV3",
        outputs: V3_OUTPUTS,
        attrs: &[
            "T: {half, bfloat16, float}",
            "U: {bfloat16, float}",
            "epsilon: float = 0.0001",
            "exponential_avg_factor: float = 1.0",
            "data_format: {'NHWC', 'NCHW', 'NDHWC', 'NCDHW'} = 'NHWC'",
            "is_training: bool = true",
        ],
        kernels: &[cpu(&[("T", TYPES), ("U", F32)], build)],
        scripts: TRAINING,
        ..NORM
    },
    OpDef {
        name: "FusedBatchNormGrad",
        inputs: &[
            "y_backprop: T",
            "x: T",
            "scale: T",
            "reserve_space_1: T",
            "reserve_space_2: T",
        ],
        outputs: &[
            "x_backprop: T",
            "scale_backprop: T",
            "offset_backprop: T",
            "reserve_space_3: T",
            "reserve_space_4: T",
        ],
        attrs: &[
            "T: {float}",
            "epsilon: float = 0.0001",
            "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
            "is_training: bool = true",
        ],
        kernels: &[cpu(&[("T", F32)], build_grad)],
        examples: &[
            ex_ref("by the batch", &[], BACKWARD),
            ex_ref("by what is given", &[("is_training", "false")], BACKWARD),
            ex_ref(
                "channels first",
                &[("data_format", "'NCHW'")],
                &[
                    f32s(&[1, 2, 1, 4], &[0.1, 0.2, -0.3, 0.4, 0.5, -0.6, 0.7, 0.8]),
                    f32s(&[1, 2, 1, 4], &[1.0, -2.0, 3.0, 0.5, -1.0, 4.0, 2.0, 2.5]),
                    f32s(&[2], &[1.0, 2.0]),
                    f32s(&[2], &[0.625, 1.875]),
                    f32s(&[2], &[3.171875, 3.296875]),
                ],
            ),
        ],
        scripts: OLDER,
        ..GRAD
    },
    OpDef {
        name: "FusedBatchNormGradV2",
        attrs: &[
            "T: {half, bfloat16, float}",
            "U: {float}",
            "epsilon: float = 0.0001",
            "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
            "is_training: bool = true",
        ],
        kernels: &[cpu(&[("T", TYPES)], build_grad)],
        scripts: OLDER,
        ..GRAD
    },
    OpDef {
        name: "FusedBatchNormGradV3",
        inputs: &[
            "y_backprop: T",
            "x: T",
            "scale: float",
            "reserve_space_1: U",
            "reserve_space_2: U",
            "reserve_space_3: U",
        ],
        outputs: &[
            "x_backprop: T",
            "scale_backprop: U",
            "offset_backprop: U",
            "reserve_space_4: U",
            "reserve_space_5: U",
        ],
        attrs: &[
            "T: {half, bfloat16, float}",
            "U: {float}",
            "epsilon: float = 0.0001",
            "data_format: {'NHWC', 'NCHW', 'NDHWC', 'NCDHW'} = 'NHWC'",
            "is_training: bool = true",
        ],
        kernels: &[cpu(&[("T", TYPES)], build_grad)],
        scripts: TRAINING,
        ..GRAD
    },
];

fn shapes(ctx: &mut InferCtx<'_>) -> Result<()> {
    let x = ctx.input(0).clone();
    ctx.set(0, x);
    Ok(())
}

/// What all forms read from their attributes.
#[derive(Clone, Copy)]
struct Settings {
    epsilon: f32,
    factor: f32,
    channels_first: bool,
    is_training: bool,
}

impl Settings {
    fn new(node: &NodeInfo) -> Result<Settings> {
        let attrs = &node.attrs;
        let channels_first = match attrs.str("data_format")? {
            "NHWC" | "NDHWC" => false,
            "NCHW" | "NCDHW" => true,
            other => {
                return Err(unimplemented!(
                    "{} of {other} data has no CPU kernel",
                    node.op
                ));
            }
        };
        let factor = if attrs.get("exponential_avg_factor").is_some() {
            attrs.float("exponential_avg_factor")?
        } else {
            1.0
        };
        Ok(Settings {
            epsilon: attrs.float("epsilon")?,
            factor,
            channels_first,
            is_training: attrs.bool("is_training")?,
        })
    }

    /// How the data lie, and the number of channels.
    fn layout(&self, x: &Shape) -> Result<(Layout, usize)> {
        let rank = x.rank();
        if rank != 4 && rank != 5 {
            return Err(invalid_argument!("input must be 4 or 5-dimensional{x}"));
        }
        Ok(if self.channels_first {
            let inner = x.elements_in(2..rank);
            (Layout::nchw(x.dim(0), x.dim(1), inner), x.dim(1))
        } else {
            let channels = x.dim(rank - 1);
            (Layout::nhwc(x.elements_in(0..rank - 1), channels), channels)
        })
    }
}

/// A vector with one number per channel.
fn per_channel<'a>(tensor: &'a Tensor, name: &str, channels: usize) -> Result<&'a [f32]> {
    if tensor.rank() != 1 || tensor.elements() != channels {
        return Err(invalid_argument!(
            "{name} must have the same number of elements as the channels of x, got {} and {channels}",
            tensor.shape()
        ));
    }
    tensor.slice::<f32>()
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    build_then(node, Ending::default())
}

/// The kernel of a normalisation, then these functions.
pub(super) fn build_then(node: &NodeInfo, ending: Ending) -> Result<AnyKernel> {
    let settings = Settings::new(node)?;
    match node.attrs.dtype("T")? {
        DType::F32 => forward::<f32>(settings, ending),
        DType::F16 => forward::<f16>(settings, ending),
        DType::BF16 => forward::<bf16>(settings, ending),
        other => Err(internal!("no batch norm of {other}")),
    }
}

fn forward<T>(settings: Settings, ending: Ending) -> Result<AnyKernel>
where
    T: Element + NormElement + UnaryElement,
{
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let x = ctx.input(0)?;
        let (layout, channels) = settings.layout(x.shape())?;
        let norm = BatchNorm {
            scale: per_channel(ctx.input(1)?, "scale", channels)?,
            offset: per_channel(ctx.input(2)?, "offset", channels)?,
            epsilon: settings.epsilon,
        };
        let vector = || Tensor::zeros(DType::F32, Shape::vector(channels));
        let mut y = ctx.allocate(T::DTYPE, x.shape().clone())?;
        let (mut mean, mut variance, mut saved_mean, mut saved_variance) =
            (vector()?, vector()?, vector()?, vector()?);
        if settings.is_training {
            let running = if settings.factor == 1.0 {
                None
            } else {
                Some(Running {
                    mean: per_channel(ctx.input(3)?, "mean", channels)?,
                    variance: per_channel(ctx.input(4)?, "variance", channels)?,
                    exponential_avg_factor: settings.factor,
                })
            };
            let statistics = Statistics {
                mean: mean.slice_mut()?,
                variance: variance.slice_mut()?,
                saved_mean: saved_mean.slice_mut()?,
                saved_variance: saved_variance.slice_mut()?,
            };
            batch_norm_train(
                ctx.par(),
                layout,
                norm,
                running,
                x.slice::<T>()?,
                y.slice_mut::<T>()?,
                statistics,
            );
        } else {
            let given = (
                per_channel(ctx.input(3)?, "mean", channels)?,
                per_channel(ctx.input(4)?, "variance", channels)?,
            );
            batch_norm_infer(
                ctx.par(),
                layout,
                norm,
                given,
                x.slice::<T>()?,
                y.slice_mut::<T>()?,
            );
            (mean, variance) = (ctx.input(3)?.clone(), ctx.input(4)?.clone());
            (saved_mean, saved_variance) = (mean.clone(), variance.clone());
        }
        ending.finish_all(ctx.par(), y.slice_mut::<T>()?);
        for (port, tensor) in [
            y,
            mean,
            variance,
            saved_mean,
            saved_variance,
            Tensor::zeros(DType::F32, Shape::scalar())?,
        ]
        .into_iter()
        .enumerate()
        {
            ctx.set(port, tensor);
        }
        Ok(())
    })
}

fn build_grad(node: &NodeInfo) -> Result<AnyKernel> {
    let settings = Settings::new(node)?;
    match node.attrs.dtype("T")? {
        DType::F32 => backward::<f32>(settings),
        DType::F16 => backward::<f16>(settings),
        DType::BF16 => backward::<bf16>(settings),
        other => Err(internal!("no batch norm of {other}")),
    }
}

fn backward<T: Element + NormElement>(settings: Settings) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (dy, x) = (ctx.input(0)?, ctx.input(1)?);
        if dy.shape() != x.shape() {
            return Err(invalid_argument!(
                "x and y_backprop must have same shape, but x has shape {} and y_backprop has shape {}",
                x.shape(),
                dy.shape()
            ));
        }
        let (layout, channels) = settings.layout(x.shape())?;
        let norm = BatchNormGrad {
            is_training: settings.is_training,
            scale: per_channel(ctx.input(2)?, "scale", channels)?,
            mean: per_channel(ctx.input(3)?, "reserve_space_1", channels)?,
            variance: per_channel(ctx.input(4)?, "reserve_space_2", channels)?,
            epsilon: settings.epsilon,
        };
        let mut dx = ctx.allocate(T::DTYPE, x.shape().clone())?;
        let mut scale = Tensor::zeros(DType::F32, Shape::vector(channels))?;
        let mut offset = Tensor::zeros(DType::F32, Shape::vector(channels))?;
        compute_grad(
            ctx.par(),
            layout,
            norm,
            dy.slice::<T>()?,
            x.slice::<T>()?,
            dx.slice_mut::<T>()?,
            scale.slice_mut()?,
            offset.slice_mut()?,
        );
        let unused = Tensor::zeros(DType::F32, Shape::vector(0))?;
        for (port, tensor) in [dx, scale, offset, unused.clone(), unused]
            .into_iter()
            .enumerate()
        {
            ctx.set(port, tensor);
        }
        Ok(())
    })
}
