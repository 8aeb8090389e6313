//! [`Pooling`]: what all poolings read from their node, and how their windows lie on NHWC images.

use tensorfleet_kernel::{KernelCtx, NodeInfo};
use tensorfleet_math::conv::{Padding, Window};
use tensorfleet_math::pool2d::Pool2d;
use tensorfleet_status::{Result, ensure, invalid_argument, unimplemented};
use tensorfleet_tensor::Shape;

use super::conv_attrs::{check_format, four, padding};

/// Windows and strides, each of batch, height, width and channels.
#[derive(Clone, Copy)]
struct Windows {
    window: [usize; 2],
    stride: [usize; 2],
    channels: [usize; 2],
}

impl Windows {
    fn new(ksize: &[i64], strides: &[i64]) -> Result<Windows> {
        let read = |values: &[i64], name: &str| -> Result<[usize; 4]> {
            let Ok(values) = <[i64; 4]>::try_from(values) else {
                return Err(invalid_argument!(
                    "Sliding window {name} field must specify 4 dimensions, got {}",
                    values.len()
                ));
            };
            let mut sizes = [0; 4];
            for (size, value) in sizes.iter_mut().zip(values) {
                let found = usize::try_from(value).ok().filter(|value| *value > 0);
                *size = found.ok_or_else(|| match name {
                    "ksize" => {
                        let texts = values.map(|value| value.to_string());
                        let text = texts.join(",");
                        invalid_argument!(
                            "Sliding window ksize must be positive. The specified or inferred ksize is: {text}"
                        )
                    }
                    _ => invalid_argument!("Stride must be > 0, but got {value}"),
                })?;
            }
            Ok(sizes)
        };
        let (window, stride) = (read(ksize, "ksize")?, read(strides, "strides")?);
        ensure!(
            window[0] == 1 && stride[0] == 1,
            unimplemented,
            "Pooling is not yet supported on the batch dimension."
        );
        Ok(Windows {
            window: [window[1], window[2]],
            stride: [stride[1], stride[2]],
            channels: [window[3], stride[3]],
        })
    }
}

/// Windows and strides of a node.
#[derive(Clone)]
pub(super) struct Pooling {
    /// What the attributes say, or where the inputs `ksize` and `strides` begin.
    windows: std::result::Result<Windows, usize>,
    padding: Padding,
    op: String,
}

impl Pooling {
    /// Reads the attributes; a node without `ksize` has it as the input behind its `tensors` others.
    pub(super) fn new(node: &NodeInfo, tensors: usize) -> Result<Pooling> {
        check_format(node)?;
        let attrs = &node.attrs;
        Ok(Pooling {
            windows: match attrs.get("ksize") {
                Some(_) => Ok(Windows::new(attrs.ints("ksize")?, attrs.ints("strides")?)?),
                None => Err(tensors),
            },
            padding: padding(attrs)?,
            op: node.op.clone(),
        })
    }

    fn windows(&self, ctx: &KernelCtx<'_>) -> Result<Windows> {
        match self.windows {
            Ok(windows) => Ok(windows),
            Err(first) => Windows::new(&ctx.ints(first)?, &ctx.ints(first + 1)?),
        }
    }

    /// The windows over images of this shape.
    pub(super) fn over(&self, ctx: &KernelCtx<'_>, input: &Shape) -> Result<Pool2d> {
        let Windows {
            window,
            stride,
            channels: [deep, step],
        } = self.windows(ctx)?;
        let [batch, in_rows, in_cols, channels] = four(input, "tensor_in")?;
        let is_gradient = self.op.starts_with("MaxPoolGrad");
        if is_gradient && (deep, step) != (1, 1) {
            return Err(unimplemented!(
                "MaxPoolingGrad is not yet supported on the depth dimension."
            ));
        }
        ensure!(
            deep == 1,
            unimplemented,
            "Non-spatial pooling is not yet supported. Volunteers? :)"
        );
        if let Padding::Explicit(pads) = self.padding {
            let sides = ["Top", "Bottom", "Left", "Right"];
            for (side, (pad, name)) in pads.iter().flatten().zip(sides).enumerate() {
                ensure!(
                    *pad < window[side / 2],
                    invalid_argument,
                    "{name} padding {pad} needs to be smaller than the window size {}",
                    window[side / 2]
                );
            }
        }
        let fit = |direction: usize, length: usize| {
            Window::new(
                direction,
                length,
                window[direction],
                1,
                stride[direction],
                self.padding,
            )
            .ok_or_else(|| {
                invalid_argument!(
                    "Computed output size would be negative: input {input}, window {:?}",
                    window
                )
            })
        };
        let (rows, cols) = (fit(0, in_rows)?, fit(1, in_cols)?);
        Ok(Pool2d {
            batch,
            in_rows,
            in_cols,
            channels,
            window_rows: window[0],
            window_cols: window[1],
            row_stride: stride[0],
            col_stride: stride[1],
            pad_top: rows.before,
            pad_left: cols.before,
            out_rows: rows.output,
            out_cols: cols.output,
        })
    }

    /// The same, and the shape of what is pooled; windows over channels are those over the columns of images that are one
    /// pixel each.
    pub(super) fn over_any(&self, ctx: &KernelCtx<'_>, input: &Shape) -> Result<(Pool2d, Shape)> {
        let windows = self.windows(ctx)?;
        let [deep, step] = windows.channels;
        if deep == 1 {
            let pool = self.over(ctx, input)?;
            let shape = output_shape(&pool)?;
            return Ok((pool, shape));
        }
        let [batch, rows, cols, channels] = four(input, "tensor_in")?;
        ensure!(
            windows.window == [1, 1],
            unimplemented,
            "MaxPooling supports exactly one of pooling across depth or pooling across width/height."
        );
        ensure!(
            channels.is_multiple_of(deep),
            unimplemented,
            "Depthwise max pooling requires the depth window to evenly divide the input depth"
        );
        ensure!(
            deep == step,
            unimplemented,
            "Depthwise max pooling requires the depth window to equal the depth stride"
        );
        ensure!(
            windows.stride == [1, 1],
            unimplemented,
            "Depthwise max pooling takes every pixel, the strides are {:?}",
            windows.stride
        );
        let pool = Pool2d {
            batch: batch * rows * cols,
            in_rows: 1,
            in_cols: channels,
            channels: 1,
            window_rows: 1,
            window_cols: deep,
            row_stride: 1,
            col_stride: deep,
            pad_top: 0,
            pad_left: 0,
            out_rows: 1,
            out_cols: channels / deep,
        };
        let shape = input.with_dim(3, (channels / deep) as i64)?;
        Ok((pool, shape))
    }
}

/// The shape of what is pooled.
pub(super) fn output_shape(pool: &Pool2d) -> Result<Shape> {
    Shape::new(&[
        pool.batch as i64,
        pool.out_rows as i64,
        pool.out_cols as i64,
        pool.channels as i64,
    ])
}

/// Fails unless the input `name` has the shape of what is pooled.
pub(super) fn check_output(pool: &Pool2d, name: &str, found: &Shape) -> Result<()> {
    let wanted = output_shape(pool)?;
    check_shape(&wanted, name, found)
}

/// Fails unless the input `name` has this shape.
pub(super) fn check_shape(wanted: &Shape, name: &str, found: &Shape) -> Result<()> {
    ensure!(
        wanted == found,
        invalid_argument,
        "Expected {name} shape to be {wanted}, but got {found}"
    );
    Ok(())
}
