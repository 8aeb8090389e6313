//! What convolutions and poolings over NDHWC volumes read from their attributes and shapes.

use tensorfleet_graph::infer::InferCtx;
use tensorfleet_kernel::Attrs;
use tensorfleet_math::conv::{Padding, Window};
use tensorfleet_status::{Result, Status, ensure, invalid_argument};
use tensorfleet_tensor::{PartialShape, Shape, UNKNOWN_DIM};

/// `SAME` or `VALID`.
pub(super) fn padding(attrs: &Attrs) -> Result<Padding> {
    Ok(match attrs.str("padding")? {
        "SAME" => Padding::Same,
        _ => Padding::Valid,
    })
}

/// The five dimensions of volumes or filters.
pub(super) fn five(shape: &Shape) -> Option<[usize; 5]> {
    let mut dims = [0; 5];
    if shape.rank() != dims.len() {
        return None;
    }
    for (axis, dim) in dims.iter_mut().enumerate() {
        *dim = shape.dim(axis);
    }
    Some(dims)
}

/// The three middle numbers of five, each at least one; `refuse` has the error for other numbers at the ends.
pub(super) fn triple(
    values: &[i64],
    name: &str,
    refuse: impl Fn() -> Status,
) -> Result<[usize; 3]> {
    let [batch, middle @ .., channels] = values else {
        return Err(missing(name));
    };
    let Ok(middle) = <[i64; 3]>::try_from(middle) else {
        return Err(missing(name));
    };
    if (*batch, *channels) != (1, 1) {
        return Err(refuse());
    }
    let mut sizes = [0; 3];
    for (size, value) in sizes.iter_mut().zip(middle) {
        let found = usize::try_from(value).ok();
        *size = found.filter(|value| *value > 0).ok_or_else(|| match name {
            "ksize" => invalid_argument!(
                "Sliding window ksize field must have non-negative dimensions, got {values:?}"
            ),
            "Dilation rates" => invalid_argument!("Dilated rates should be larger than 0."),
            _ => invalid_argument!(
                "Stride must be > 0, but got {value}: spatial strides should be larger than 0."
            ),
        })?;
    }
    Ok(sizes)
}

fn missing(name: &str) -> Status {
    match name {
        "Dilation rates" => invalid_argument!("{name} field must specify 5 dimensions"),
        _ => invalid_argument!("Sliding window {name} field must specify 5 dimensions"),
    }
}

/// The text of a window that does not fit.
pub(super) fn negative(
    input: [usize; 3],
    window: [usize; 3],
    stride: [usize; 3],
    padding: Padding,
) -> Status {
    for axis in 0..3 {
        if Window::new(0, input[axis], window[axis], 1, stride[axis], padding).is_none() {
            let (input, window, stride) = (input[axis], window[axis], stride[axis]);
            let size = (input as i128 - window as i128 + stride as i128) / stride.max(1) as i128;
            return invalid_argument!(
                "Computed output size would be negative: {size} [input_size: {input}, effective_filter_size: {window}, stride: {stride}]"
            );
        }
    }
    invalid_argument!("sizes are too large: input {input:?}, window {window:?}")
}

/// The shape of sizes.
pub(super) fn shape_of(dims: [usize; 5]) -> Result<Shape> {
    Shape::new(&dims.map(|dim| dim as i64))
}

/// The shape in an input of five sizes; `text` is said of others.
pub(super) fn sizes(found: &[i64], text: &str) -> Result<Shape> {
    ensure!(found.len() == 5, invalid_argument, "{text}");
    Shape::new(found)
}

/// Volumes convolved with filters `[depth, height, width, inputs, outputs]`.
pub(super) fn convolved(ctx: &mut InferCtx<'_>) -> Result<()> {
    let filter = ctx.input(1);
    let dim = |axis| filter.dim(axis).unwrap_or(UNKNOWN_DIM);
    over_windows(ctx, [dim(0), dim(1), dim(2)], Some(dim(4)))
}

/// Volumes pooled by windows of `ksize`.
pub(super) fn pooled(ctx: &mut InferCtx<'_>) -> Result<()> {
    let [_, depth, height, width, _] = *ctx.attrs().ints("ksize")? else {
        return Ok(());
    };
    over_windows(ctx, [depth, height, width], None)
}

/// The batch, the positions of windows, and the channels: other ones if told.
fn over_windows(ctx: &mut InferCtx<'_>, window: [i64; 3], channels: Option<i64>) -> Result<()> {
    if ctx.attrs().str("data_format")? != "NDHWC" {
        return Ok(());
    }
    let volume = ctx.input(0).merge(&PartialShape::of_rank(5))?;
    let (Some(dims), [_, strides @ .., _]) = (volume.dims(), ctx.attrs().ints("strides")?) else {
        return Ok(());
    };
    let padding = padding(ctx.attrs())?;
    let mut out = dims.to_vec();
    for axis in 0..3 {
        let numbers = (
            usize::try_from(dims[axis + 1]),
            usize::try_from(window[axis]),
            usize::try_from(strides.get(axis).copied().unwrap_or(0)),
        );
        out[axis + 1] = match numbers {
            (Ok(size), Ok(window), Ok(stride)) if stride > 0 => {
                Window::new(0, size, window, 1, stride, padding)
                    .map_or(UNKNOWN_DIM, |found| found.output as i64)
            }
            _ => UNKNOWN_DIM,
        };
    }
    out[4] = channels.unwrap_or(out[4]);
    ctx.set(0, PartialShape::new(&out));
    Ok(())
}
