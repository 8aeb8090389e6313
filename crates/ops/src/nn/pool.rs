//! [`Pooling`]: what all poolings read from their node, and how their windows lie on NHWC images.

use tensorfleet_kernel::{KernelCtx, NodeInfo};
use tensorfleet_math::conv::Window;
use tensorfleet_math::pool2d::Pool2d;
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::Shape;

use super::conv_attrs::{WindowAttrs, four, middle, pair};

/// Windows and strides of a node.
#[derive(Clone, Copy)]
pub(super) struct Pooling {
    window: [usize; 2],
    attrs: WindowAttrs,
    /// Where the inputs `ksize` and `strides` begin, of nodes that do not have them as attributes.
    inputs: Option<usize>,
}

impl Pooling {
    /// Reads the attributes; a node without `ksize` has it as the input behind its `tensors` others.
    pub(super) fn new(node: &NodeInfo, tensors: usize) -> Result<Pooling> {
        let is_given = node.attrs.get("ksize").is_none();
        Ok(Pooling {
            window: if is_given {
                [1, 1]
            } else {
                pair(&node.attrs, "ksize")?
            },
            attrs: WindowAttrs::new(node)?,
            inputs: is_given.then_some(tensors),
        })
    }

    /// The windows over images of this shape.
    pub(super) fn over(&self, ctx: &KernelCtx<'_>, input: &Shape) -> Result<Pool2d> {
        let (mut window, mut stride) = (self.window, self.attrs.stride);
        if let Some(first) = self.inputs {
            window = middle(&ctx.ints(first)?, "ksize")?;
            stride = middle(&ctx.ints(first + 1)?, "strides")?;
        }
        let [batch, in_rows, in_cols, channels] = four(input, "tensor_in")?;
        let fit = |direction: usize, length: usize| {
            Window::new(
                direction,
                length,
                window[direction],
                1,
                stride[direction],
                self.attrs.padding,
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
