//! `Conv`: convolutions of images or volumes with channels last, whatever the number of batch dimensions.
//!
//! TensorFlow: Conv(input: T, filter: T) -> output: T, with strides, padding, explicit_paddings, dilations (all by default),
//! batch_dims: the leading dimensions that are no image. Two spatial dimensions are a Conv2D, three a Conv3D.

use tensorfleet_graph::example::{ex_err, ex_ref, f32s, ramp};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, Attrs, KernelCtx, NodeInfo};
use tensorfleet_math::conv::{Conv2d, Element as ConvElement, Padding, forward};
use tensorfleet_math::gemm::Epilogue;
use tensorfleet_status::{Code, Result, ensure, internal, invalid_argument, unimplemented};
use tensorfleet_tensor::{DType, Element, Shape, Tensor};

use super::conv_attrs::{explicit_padding, four};
use super::conv2d::{WITH_INT, output_shape};
use super::conv3d::{Attrs3d, volume_convolved};
use crate::by_float;

const UNIT: (&str, &str) = ("strides", "[1, 1, 1, 1]");
const VALID: (&str, &str) = ("padding", "'VALID'");
const SAME: (&str, &str) = ("padding", "'SAME'");

pub(crate) static OP: OpDef = OpDef {
    name: "Conv",
    inputs: &["input: T", "filter: T"],
    outputs: &["output: T"],
    attrs: &[
        "T: {half, bfloat16, float, double, int32}",
        "strides: list(int)",
        "padding: {'SAME', 'VALID', 'EXPLICIT'}",
        "explicit_paddings: list(int) = []",
        "data_format: {'CHANNELS_FIRST', 'CHANNELS_LAST'} = 'CHANNELS_LAST'",
        "dilations: list(int) = []",
        "batch_dims: int = 1",
        "groups: int = 1",
    ],
    gradient: Gradient::None("TensorFlow has none"),
    kernels: &[cpu(&[("T", WITH_INT)], build)],
    cost: Cost::Expensive,
    exactness: Exactness::Relative(2e-5),
    examples: &[
        ex_ref(
            "images",
            &[("strides", "[1, 2, 2, 1]"), SAME],
            &[
                ramp(&[2, 5, 4, 3], -3.0, 0.125),
                ramp(&[3, 3, 3, 2], 1.0, -0.0625),
            ],
        ),
        ex_ref(
            "dilated",
            &[UNIT, VALID, ("dilations", "[1, 2, 1, 1]")],
            &[
                ramp(&[1, 5, 4, 2], -3.0, 0.125),
                ramp(&[2, 3, 2, 2], 1.0, -0.0625),
            ],
        ),
        ex_ref(
            "two batch dimensions",
            &[UNIT, VALID, ("batch_dims", "2")],
            &[
                ramp(&[2, 2, 3, 3, 1], -3.0, 0.125),
                ramp(&[2, 2, 1, 2], 1.0, -0.125),
            ],
        ),
        ex_ref(
            "volumes",
            &[("strides", "[1, 1, 2, 1, 1]"), SAME],
            &[
                ramp(&[1, 3, 3, 3, 2], -3.0, 0.125),
                ramp(&[2, 2, 2, 2, 2], 1.0, -0.125),
            ],
        ),
        ex_err(
            "channels",
            &[UNIT, VALID],
            &[f32s(&[1, 3, 3, 4], &[1.0]), f32s(&[1, 1, 2, 2], &[1.0])],
            Code::InvalidArgument,
            "epth",
        ),
    ],
    ..OpDef::BLANK
};

/// What a node's attributes say.
#[derive(Clone)]
struct General {
    strides: Vec<i64>,
    dilations: Vec<i64>,
    batch_dims: usize,
    /// Before and after in each dimension of `EXPLICIT` paddings.
    explicit: Vec<i64>,
    padding: Padding,
}

impl General {
    fn new(attrs: &Attrs) -> Result<General> {
        ensure!(
            attrs.int("groups")? == 1,
            unimplemented,
            "Grouped/Depthwise Convolutions are not supported yet."
        );
        if attrs.str("data_format")? != "CHANNELS_LAST" {
            return Err(unimplemented!(
                "The Conv2D op currently only supports the NHWC tensor format on the CPU. The op was given the format: NCHW"
            ));
        }
        let batch_dims = attrs.int("batch_dims")?;
        Ok(General {
            strides: attrs.ints("strides")?.to_vec(),
            dilations: attrs.ints("dilations")?.to_vec(),
            batch_dims: usize::try_from(batch_dims)
                .map_err(|_| invalid_argument!("batch_dims must not be negative: {batch_dims}"))?,
            explicit: attrs.ints("explicit_paddings")?.to_vec(),
            padding: match attrs.str("padding")? {
                "SAME" => Padding::Same,
                "VALID" => Padding::Valid,
                _ => Padding::Explicit([[0; 2]; 2]),
            },
        })
    }

    /// The middle numbers of a list for `spatial` dimensions, `what` being its name.
    fn inner(values: &[i64], spatial: usize, what: &str, positive: &str) -> Result<Vec<usize>> {
        ensure!(
            values.len() == spatial + 2,
            invalid_argument,
            "{what} field must specify {} dimensions",
            spatial + 2
        );
        let (first, last) = (values[0], values[spatial + 1]);
        let short = if what.starts_with("Sliding") {
            "strides"
        } else {
            "dilation rates"
        };
        ensure!(
            first == 1 && last == 1,
            invalid_argument,
            "Current implementation does not support {short} in the batch and depth dimensions."
        );
        let middle = values[1..=spatial].iter();
        let middle = middle.map(|value| usize::try_from(*value).ok().filter(|value| *value > 0));
        let found: Option<Vec<usize>> = middle.collect();
        found.ok_or_else(|| invalid_argument!("{positive} should be larger than 0."))
    }

    fn strides(&self, spatial: usize) -> Result<Vec<usize>> {
        let positive = "Spatial strides";
        Self::inner(&self.strides, spatial, "Sliding window strides", positive)
    }

    fn dilations(&self, spatial: usize) -> Result<Vec<usize>> {
        if self.dilations.is_empty() {
            return Ok(vec![1; spatial]);
        }
        Self::inner(&self.dilations, spatial, "Dilation rates", "Dilated rates")
    }

    /// The padding of images.
    fn image_padding(&self) -> Result<Padding> {
        match self.padding {
            Padding::Explicit(_) => explicit_padding(&self.explicit),
            other => Ok(other),
        }
    }
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let (general, dtype) = (General::new(&node.attrs)?, node.attrs.dtype("T")?);
    by_float!(dtype, T => convolve::<T>(general), else => match dtype {
        DType::I32 => convolve::<i32>(general),
        _ => Err(internal!("no convolution of {dtype}")),
    })
}

fn convolve<T: Element + ConvElement>(general: General) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (input, filter) = (ctx.input(0)?, ctx.input(1)?);
        let batch_dims = general.batch_dims;
        let spatial = input.rank() as i64 - 1 - batch_dims as i64;
        ensure!(
            spatial == 2 || spatial == 3,
            invalid_argument,
            "The input must have 2 or 3 spatial dimensions but got {spatial}"
        );
        ensure!(
            filter.elements() > 0,
            invalid_argument,
            "filter must not have zero elements (i.e. all dimensions must be non-zero)"
        );
        ensure!(
            filter.rank() as i64 == spatial + 2,
            invalid_argument,
            "The filter must be rank 4 or 5 but got {}",
            filter.rank()
        );
        let dims = input.shape().dims();
        let (batch, image) = dims.split_at(batch_dims);
        let flat = [&[input.shape().elements_in(0..batch_dims) as i64], image].concat();
        let flat = input.clone().reshaped(Shape::new(&flat)?)?;
        let (found, wanted) = (
            input.shape().dim(input.rank() - 1),
            filter.shape().dim(filter.rank() - 2),
        );
        ensure!(
            found == wanted,
            invalid_argument,
            "Input depth must be equal to filter depth: {found} vs {wanted}"
        );
        let out = if spatial == 2 {
            of_images::<T>(ctx, &general, &flat, filter)?
        } else {
            of_volumes::<T>(ctx, &general, &flat, filter)?
        };
        let shape = [batch, &out.shape().dims()[1..]].concat();
        ctx.set(0, out.reshaped(Shape::new(&shape)?)?);
        Ok(())
    })
}

fn of_images<T: Element + ConvElement>(
    ctx: &KernelCtx<'_>,
    general: &General,
    input: &Tensor,
    filter: &Tensor,
) -> Result<Tensor> {
    let (strides, dilations) = (general.strides(2)?, general.dilations(2)?);
    let conv = Conv2d::new(
        four(input.shape(), "input")?,
        four(filter.shape(), "filter")?,
        [strides[0], strides[1]],
        [dilations[0], dilations[1]],
        general.image_padding()?,
    )
    .ok_or_else(|| {
        invalid_argument!(
            "Computed output size would be negative: input {}, filter {}",
            input.shape(),
            filter.shape()
        )
    })?;
    let mut out = ctx.allocate(T::DTYPE, output_shape(&conv)?)?;
    forward(
        ctx.par(),
        &conv,
        input.slice::<T>()?,
        filter.slice::<T>()?,
        out.slice_mut::<T>()?,
        Epilogue::None,
    );
    Ok(out)
}

fn of_volumes<T: Element + ConvElement>(
    ctx: &KernelCtx<'_>,
    general: &General,
    input: &Tensor,
    filter: &Tensor,
) -> Result<Tensor> {
    let (strides, dilations) = (general.strides(3)?, general.dilations(3)?);
    ensure!(
        dilations == [1; 3],
        invalid_argument,
        "CPU implementation of Conv3D currently only supports dilated rates of 1."
    );
    let padding = match general.padding {
        Padding::Explicit(_) => {
            return Err(invalid_argument!(
                "explicit paddings of volumes have no CPU kernel"
            ));
        }
        padding => padding,
    };
    let attrs = Attrs3d {
        stride: [strides[0], strides[1], strides[2]],
        padding,
    };
    let conv = attrs.over(input.shape(), filter.shape())?;
    volume_convolved::<T>(ctx, &conv, input, filter)
}
