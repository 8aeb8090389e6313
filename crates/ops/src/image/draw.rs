//! `DrawBoundingBoxes`, `DrawBoundingBoxesV2`: frames drawn on images.
//!
//! TensorFlow: DrawBoundingBoxes(images: T, boxes: float) -> output: T; the second version takes colors: float, a matrix with a
//! row for each box in turn. Boxes are `[y1, x1, y2, x2]` with 1 for the far edge; those outside or inverted are not drawn.

use tensorfleet_graph::example::{Lit, ex, ex_err, ex_ref, f32s, x};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_math::num::Float;
use tensorfleet_status::{Code, Result, ensure, internal};
use tensorfleet_tensor::{DType, Element, f16};

const HALF_OR_SINGLE: &[DType] = &[DType::F16, DType::F32];

/// The colours of boxes that have none, in turn.
const COLORS: [[f32; 4]; 10] = [
    [1.0, 1.0, 0.0, 1.0],
    [0.0, 0.0, 1.0, 1.0],
    [1.0, 0.0, 0.0, 1.0],
    [0.0, 1.0, 0.0, 1.0],
    [0.5, 0.0, 0.5, 1.0],
    [0.5, 0.5, 0.0, 1.0],
    [0.5, 0.0, 0.0, 1.0],
    [0.0, 0.0, 0.5, 1.0],
    [0.0, 1.0, 1.0, 1.0],
    [1.0, 0.0, 1.0, 1.0],
];

const BOXES: Lit = f32s(
    &[1, 4, 4],
    &[
        0.0, 0.25, 0.5, 0.75, -0.5, 0.5, 2.0, 0.5, 1.5, 0.0, 2.0, 1.0, 0.5, 0.5, 0.25, 0.25,
    ],
);
const IMAGE: Lit = x(&[1, 5, 5, 3], &[0.25]);

const DRAW: OpDef = OpDef {
    outputs: &["output: T"],
    attrs: &["T: {float, half} = DT_FLOAT"],
    infer: infer::same_as_first,
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "DrawBoundingBoxes",
        inputs: &["images: T", "boxes: float"],
        gradient: Gradient::Stop("as in TensorFlow, which does not differentiate it"),
        kernels: &[cpu(&[("T", HALF_OR_SINGLE)], build)],
        examples: &[
            ex(
                "grey",
                &[
                    x(&[1, 3, 3, 1], &[0.0]),
                    f32s(&[1, 1, 4], &[0.0, 0.0, 1.0, 1.0]),
                ],
                &[x(
                    &[1, 3, 3, 1],
                    &[1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0],
                )],
            ),
            ex_ref("inside and outside", &[], &[IMAGE, BOXES]),
            ex_err(
                "depth",
                &[],
                &[f32s(&[1, 3, 3, 2], &[0.0]), BOXES],
                Code::InvalidArgument,
                "Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA)",
            ),
            ex_err(
                "batches",
                &[],
                &[f32s(&[2, 3, 3, 1], &[0.0]), BOXES],
                Code::InvalidArgument,
                "The batch sizes should be the same",
            ),
        ],
        ..DRAW
    },
    OpDef {
        name: "DrawBoundingBoxesV2",
        inputs: &["images: T", "boxes: float", "colors: float"],
        gradient: Gradient::None("TensorFlow has none"),
        kernels: &[cpu(&[("T", HALF_OR_SINGLE)], build)],
        examples: &[
            ex_ref(
                "one colour",
                &[],
                &[IMAGE, BOXES, f32s(&[1, 3], &[0.5, 0.75, 1.0])],
            ),
            ex_ref("no colours", &[], &[IMAGE, BOXES, f32s(&[0, 3], &[])]),
            ex_err(
                "too few channels",
                &[],
                &[f32s(&[1, 5, 5, 3], &[0.0]), BOXES, f32s(&[1, 2], &[0.5])],
                Code::InvalidArgument,
                "colors must have equal or more channels than the image provided",
            ),
        ],
        ..DRAW
    },
];

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    match node.attrs.dtype("T")? {
        DType::F32 => AnyKernel::sync(draw::<f32>),
        DType::F16 => AnyKernel::sync(draw::<f16>),
        other => Err(internal!("no images of {other}")),
    }
}

/// The colours in turn, each with as many channels as the image.
fn palette(ctx: &KernelCtx<'_>, depth: usize) -> Result<Vec<Vec<f32>>> {
    if ctx.num_inputs() > 2 {
        let colors = ctx.input(2)?;
        let shape = colors.shape();
        ensure!(
            shape.rank() == 2,
            invalid_argument,
            "colors must be a 2-D matrix{shape}"
        );
        ensure!(
            shape.dim(1) >= depth,
            invalid_argument,
            "colors must have equal or more channels than the image provided: {shape}"
        );
        if !colors.is_empty() {
            let rows = colors.slice::<f32>()?.chunks_exact(shape.dim(1));
            return Ok(rows.map(|row| row[..depth].to_vec()).collect());
        }
    }
    Ok(match depth {
        1 => vec![vec![1.0]],
        _ => COLORS.iter().map(|color| color[..depth].to_vec()).collect(),
    })
}

fn draw<T: Element + Float>(ctx: &mut KernelCtx<'_>) -> Result<()> {
    let (shape, boxes) = (ctx.input(0)?.shape().clone(), ctx.input(1)?.clone());
    ensure!(
        shape.rank() == 4,
        invalid_argument,
        "The rank of the images should be 4"
    );
    ensure!(
        boxes.rank() == 3,
        invalid_argument,
        "The rank of the boxes tensor should be 3"
    );
    ensure!(
        shape.dim(0) == boxes.shape().dim(0),
        invalid_argument,
        "The batch sizes should be the same"
    );
    let (height, width, depth) = (shape.dims()[1], shape.dims()[2], shape.dim(3));
    ensure!(
        [1, 3, 4].contains(&depth),
        invalid_argument,
        "Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA)"
    );
    ensure!(
        boxes.shape().dim(2) == 4,
        invalid_argument,
        "The size of the third dimension of the box must be 4. Received: {}",
        boxes.shape().dim(2)
    );
    let palette = palette(ctx, depth)?;
    let mut out = ctx.take(0)?;
    let canvas = out.slice_mut::<T>()?;
    let number = boxes.shape().dim(1);
    let (corners, _) = boxes.slice::<f32>()?.as_chunks::<4>();
    for (at, &[top, left, bottom, right]) in corners.iter().enumerate() {
        let row = |edge: f32| (edge * (height - 1) as f32) as i64;
        let column = |edge: f32| (edge * (width - 1) as f32) as i64;
        let (top, bottom) = (row(top), row(bottom));
        let (left, right) = (column(left), column(right));
        let inverted = top > bottom || left > right;
        if inverted || top >= height || bottom < 0 || left >= width || right < 0 {
            continue;
        }
        let color = &palette[at % number % palette.len()];
        let image = (at / number) as i64 * height;
        let mut paint = |row: i64, column: i64| {
            let pixel = ((image + row) * width + column) as usize * depth;
            for (to, &from) in canvas[pixel..pixel + depth].iter_mut().zip(color) {
                *to = T::from_f32(from);
            }
        };
        for row in [top, bottom]
            .into_iter()
            .filter(|row| (0..height).contains(row))
        {
            (left.max(0)..=right.min(width - 1)).for_each(|column| paint(row, column));
        }
        for column in [left, right]
            .into_iter()
            .filter(|column| (0..width).contains(column))
        {
            (top.max(0)..=bottom.min(height - 1)).for_each(|row| paint(row, column));
        }
    }
    ctx.set(0, out);
    Ok(())
}
