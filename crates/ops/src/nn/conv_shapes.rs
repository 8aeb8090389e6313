//! Shape rules of convolutions and poolings over NHWC images.

use tensorfleet_graph::infer::InferCtx;
use tensorfleet_math::conv::Window;
use tensorfleet_status::Result;
use tensorfleet_tensor::{PartialShape, UNKNOWN_DIM};

use super::conv_attrs::WindowAttrs;

/// Images convolved with filters `[height, width, inputs, outputs]`.
pub(super) fn convolved(ctx: &mut InferCtx<'_>) -> Result<()> {
    let filter = ctx.input(1);
    let dim = |axis| filter.dim(axis).unwrap_or(UNKNOWN_DIM);
    over_windows(ctx, [dim(0), dim(1)], Some(dim(3)))
}

/// What has the sizes in the first input: all four, or only height and width.
pub(super) fn sized(ctx: &mut InferCtx<'_>) -> Result<()> {
    let shape = ctx.shape_from(0);
    ctx.set(
        0,
        match shape.dims() {
            Some(&[height, width]) => PartialShape::new(&[UNKNOWN_DIM, height, width, UNKNOWN_DIM]),
            Some(dims) if dims.len() == 4 => shape,
            _ => PartialShape::of_rank(4),
        },
    );
    Ok(())
}

/// Images convolved channel by channel with filters `[height, width, inputs, outputs per input]`.
pub(super) fn convolved_by_channel(ctx: &mut InferCtx<'_>) -> Result<()> {
    let filter = ctx.input(1);
    let dim = |axis| filter.dim(axis).unwrap_or(UNKNOWN_DIM);
    let channels = match (dim(2), dim(3)) {
        (inputs, each) if inputs >= 0 && each >= 0 => inputs * each,
        _ => UNKNOWN_DIM,
    };
    over_windows(ctx, [dim(0), dim(1)], Some(channels))
}

/// Images pooled by windows of `ksize`.
pub(super) fn pooled(ctx: &mut InferCtx<'_>) -> Result<()> {
    match (ctx.attrs().ints("ksize")?, ctx.attrs().ints("strides")?) {
        (&[1, height, width, 1], &[1, down, across, 1]) if down > 0 && across > 0 => {
            over_windows(ctx, [height, width], None)
        }
        // Windows over channels, or what the kernel refuses.
        _ => Ok(()),
    }
}

/// The batch, the positions of windows, and the channels: other ones if told.
fn over_windows(ctx: &mut InferCtx<'_>, window: [i64; 2], channels: Option<i64>) -> Result<()> {
    if ctx
        .attrs()
        .str("data_format")
        .is_ok_and(|format| format != "NHWC")
    {
        return Ok(());
    }
    let image = ctx.input(0).merge(&PartialShape::of_rank(4))?;
    let Some(&[batch, height, width, inputs]) = image.dims() else {
        return Ok(());
    };
    let attrs = WindowAttrs::read(ctx.attrs())?;
    let positions = |direction: usize, size: i64| -> i64 {
        let (Ok(size), Ok(window)) = (usize::try_from(size), usize::try_from(window[direction]))
        else {
            return UNKNOWN_DIM;
        };
        let (stride, dilation) = (attrs.stride[direction], attrs.dilation[direction]);
        Window::new(direction, size, window, dilation, stride, attrs.padding)
            .map_or(UNKNOWN_DIM, |found| found.output as i64)
    };
    let dims = [
        batch,
        positions(0, height),
        positions(1, width),
        channels.unwrap_or(inputs),
    ];
    for output in 0..ctx.num_outputs() {
        ctx.set(output, PartialShape::new(&dims));
    }
    Ok(())
}
