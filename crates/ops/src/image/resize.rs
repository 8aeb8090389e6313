//! What all ops that resize NHWC images read from their node: sizes, and where output pixels lie on the input.

use tensorfleet_graph::infer::InferCtx;
use tensorfleet_kernel::{KernelCtx, NodeInfo};
use tensorfleet_math::resample::Between;
use tensorfleet_status::{Result, ensure};
use tensorfleet_tensor::{PartialShape, Shape, UNKNOWN_DIM};

/// How output pixels are placed.
#[derive(Clone, Copy)]
pub(crate) struct Placement {
    align_corners: bool,
    pub(super) half_pixel_centers: bool,
}

impl Placement {
    pub(super) fn new(node: &NodeInfo) -> Result<Placement> {
        let attrs = &node.attrs;
        Ok(Placement {
            align_corners: attrs.bool("align_corners")?,
            half_pixel_centers: attrs.get("half_pixel_centers").is_some()
                && attrs.bool("half_pixel_centers")?,
        })
    }

    /// Corners on corners, or not.
    pub(crate) fn aligned(align_corners: bool) -> Placement {
        Placement {
            align_corners,
            half_pixel_centers: false,
        }
    }

    fn check(self) -> Result<()> {
        ensure!(
            !(self.align_corners && self.half_pixel_centers),
            invalid_argument,
            "If half_pixel_centers is True, align_corners must be False."
        );
        Ok(())
    }

    /// The distance of two output pixels on the input.
    pub(super) fn scale(self, input: usize, output: usize) -> f32 {
        if self.align_corners && input > 1 && output > 1 {
            (input - 1) as f32 / (output - 1) as f32
        } else {
            input as f32 / output as f32
        }
    }

    /// Where an output pixel lies on the input.
    pub(super) fn place(self, at: usize, scale: f32) -> f32 {
        if self.half_pixel_centers {
            (at as f32 + 0.5) * scale - 0.5
        } else {
            at as f32 * scale
        }
    }

    /// The neighbours of all output pixels.
    pub(crate) fn between(self, input: usize, output: usize) -> Vec<Between> {
        let scale = self.scale(input, output);
        (0..output)
            .map(|at| {
                let place = self.place(at, scale);
                // Negative places saturate to zero.
                Between {
                    lower: (place.floor() as usize).min(input - 1),
                    upper: (place.ceil() as usize).min(input - 1),
                    share: place - place.floor(),
                }
            })
            .collect()
    }

    /// The nearest input pixel of all output pixels.
    pub(super) fn nearest(self, input: usize, output: usize) -> Vec<usize> {
        let scale = self.scale(input, output);
        (0..output)
            .map(|at| {
                let centre = if self.half_pixel_centers { 0.5 } else { 0.0 };
                let place = (at as f32 + centre) * scale;
                let place = if self.align_corners {
                    place.round()
                } else {
                    place.floor()
                };
                (place as usize).min(input - 1)
            })
            .collect()
    }
}

/// The sizes of images before and after.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    pub(super) batch: usize,
    pub(crate) channels: usize,
    /// Height and width of the images.
    pub(crate) input: [usize; 2],
    /// Height and width of the resized images.
    pub(crate) output: [usize; 2],
}

impl Sizes {
    /// From images and an input of two sizes.
    pub(crate) fn new(ctx: &KernelCtx<'_>, placement: Placement) -> Result<Sizes> {
        placement.check()?;
        Sizes::of_images(ctx, "shape_t")
    }

    /// The same without a check of attributes; `what` is the name of the sizes.
    pub(super) fn of_images(ctx: &KernelCtx<'_>, what: &str) -> Result<Sizes> {
        let image = ctx.input(0)?.shape();
        ensure!(
            image.rank() == 4,
            invalid_argument,
            "input must be 4-dimensional{image}"
        );
        ensure!(
            image.dim(3) > 0,
            invalid_argument,
            "image must have at least one channel"
        );
        ensure!(
            image.dim(1) > 0 && image.dim(2) > 0,
            invalid_argument,
            "input image must be of non-zero size"
        );
        let output = pair(ctx, 1, what)?;
        ensure!(
            output[0] > 0 && output[1] > 0,
            invalid_argument,
            "output dimensions must be positive"
        );
        Ok(Sizes {
            batch: image.dim(0),
            channels: image.dim(3),
            input: [image.dim(1), image.dim(2)],
            output: output.map(|size| size as usize),
        })
    }

    /// Of a gradient: from the resized gradients and the original images.
    pub(super) fn of_gradient(ctx: &KernelCtx<'_>, placement: Placement) -> Result<Sizes> {
        placement.check()?;
        Sizes::of_gradient_images(ctx)
    }

    /// The same without a check of attributes.
    pub(super) fn of_gradient_images(ctx: &KernelCtx<'_>) -> Result<Sizes> {
        let (grads, image) = (ctx.input(0)?.shape(), ctx.input(1)?.shape());
        ensure!(
            grads.rank() == 4,
            invalid_argument,
            "input_grad must be 4-dimensional{grads}"
        );
        ensure!(
            grads.dim(1) > 0 && grads.dim(2) > 0,
            invalid_argument,
            "resized dimensions must be positive"
        );
        ensure!(
            image.rank() == 4,
            invalid_argument,
            "original_image must be 4-dimensional{image}"
        );
        ensure!(
            image.dim(1) > 0 && image.dim(2) > 0,
            invalid_argument,
            "original dimensions must be positive"
        );
        Ok(Sizes {
            batch: grads.dim(0),
            channels: grads.dim(3),
            input: [image.dim(1), image.dim(2)],
            output: [grads.dim(1), grads.dim(2)],
        })
    }

    /// The shape of images of these sizes.
    pub(crate) fn shape(&self, size: [usize; 2]) -> Result<Shape> {
        let [height, width] = size.map(|size| size as i64);
        Shape::new(&[self.batch as i64, height, width, self.channels as i64])
    }
}

/// Two sizes in an input.
pub(super) fn pair(ctx: &KernelCtx<'_>, index: usize, what: &str) -> Result<[i64; 2]> {
    let shape = ctx.input(index)?.shape();
    ensure!(
        shape.rank() == 1,
        invalid_argument,
        "{what} must be 1-dimensional{shape}"
    );
    ensure!(
        shape.elements() == 2,
        invalid_argument,
        "{what} must have two elements{shape}"
    );
    let sizes = ctx.ints(index)?;
    Ok([sizes[0], sizes[1]])
}

/// Images resized to the sizes in input 1.
pub(super) fn resized(ctx: &mut InferCtx<'_>) -> Result<()> {
    let image = ctx.input(0).merge(&PartialShape::of_rank(4))?;
    let dim = |axis| image.dim(axis).unwrap_or(UNKNOWN_DIM);
    let (height, width) = match ctx.constant_ints(1).as_deref() {
        Some(&[height, width]) if height >= 0 && width >= 0 => (height, width),
        _ => (UNKNOWN_DIM, UNKNOWN_DIM),
    };
    ctx.set(0, PartialShape::new(&[dim(0), height, width, dim(3)]));
    Ok(())
}

/// Gradients as large as the images in input 1.
pub(super) fn as_original(ctx: &mut InferCtx<'_>) -> Result<()> {
    let grads = ctx.input(0).merge(&PartialShape::of_rank(4))?;
    let image = ctx.input(1).merge(&PartialShape::of_rank(4))?;
    let of = |shape: &PartialShape, axis| shape.dim(axis).unwrap_or(UNKNOWN_DIM);
    let dims = [of(&grads, 0), of(&image, 1), of(&image, 2), of(&grads, 3)];
    ctx.set(0, PartialShape::new(&dims));
    Ok(())
}
