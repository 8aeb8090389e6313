//! `UnsortedSegmentJoin`: strings of one segment joined.
//!
//! TensorFlow: UnsortedSegmentJoin(inputs: string, segment_ids: Tindices, num_segments: Tnumsegments) -> output: string, with
//! attr separator. An empty beginning of a segment takes no separator.

use tensorfleet_graph::example::{ex, ex_attrs, ex_err, i32s, i64s, strs};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, ensure};
use tensorfleet_tensor::{Shape, TString, Tensor};

use crate::room::filled;
use crate::types::INDEX;

pub(crate) static OP: OpDef = OpDef {
    name: "UnsortedSegmentJoin",
    inputs: &[
        "inputs: string",
        "segment_ids: Tindices",
        "num_segments: Tnumsegments",
    ],
    outputs: &["output: string"],
    attrs: &[
        "separator: string = ''",
        "Tindices: {int32, int64}",
        "Tnumsegments: {int32, int64} = DT_INT32",
    ],
    gradient: Gradient::Stop("text is not differentiated"),
    kernels: &[cpu(&[("Tindices", INDEX), ("Tnumsegments", INDEX)], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex_attrs(
            "rows",
            &[("separator", "':'")],
            &[
                strs(&[3, 2], &["a", "b", "c", "d", "e", "f"]),
                i32s(&[3], &[2, 0, 2]),
                i32s(&[], &[3]),
            ],
            &[strs(&[3, 2], &["c", "d", "", "", "a:e", "b:f"])],
        ),
        ex(
            "single strings",
            &[
                strs(&[2, 2], &["a", "b", "c", "d"]),
                i64s(&[2, 2], &[1, 0, 1, 0]),
                i64s(&[], &[2]),
            ],
            &[strs(&[2], &["bd", "ac"])],
        ),
        ex_attrs(
            "empty beginning",
            &[("separator", "':'")],
            &[
                strs(&[3], &["", "", "a"]),
                i32s(&[3], &[0, 0, 0]),
                i64s(&[], &[1]),
            ],
            &[strs(&[1], &["a"])],
        ),
        ex(
            "nothing",
            &[strs(&[0], &[]), i32s(&[0], &[]), i32s(&[], &[2])],
            &[strs(&[2], &["", ""])],
        ),
        ex_err(
            "beyond the last segment",
            &[],
            &[strs(&[1], &["a"]), i32s(&[1], &[2]), i32s(&[], &[2])],
            Code::InvalidArgument,
            "segment_ids are not allowed to exceed num_segments or to have negative values.",
        ),
        ex_err(
            "negative number",
            &[],
            &[strs(&[1], &["a"]), i32s(&[1], &[0]), i32s(&[], &[-2])],
            Code::InvalidArgument,
            "",
        ),
        ex_err(
            "rank",
            &[],
            &[strs(&[1], &["a"]), i32s(&[], &[0]), i32s(&[], &[2])],
            Code::InvalidArgument,
            "Segment_id cannot have rank 0",
        ),
    ],
    ..OpDef::BLANK
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let separator = node.attrs.bytes("separator")?.clone();
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (input, ids) = (ctx.input(0)?, ctx.input(1)?);
        let segments = segments(ctx)?;
        ensure!(
            ids.rank() != 0,
            invalid_argument,
            "Segment_id cannot have rank 0"
        );
        ensure!(
            ids.rank() <= input.rank(),
            out_of_range,
            "Invalid segment_id rank {} for input with {} dimension(s)",
            ids.rank(),
            input.rank()
        );
        for axis in 0..ids.rank() {
            ensure!(
                ids.shape()[axis] == input.shape()[axis],
                invalid_argument,
                "Segment dimension is {} while input dimension is {} in rank {axis}",
                ids.shape()[axis],
                input.rank()
            );
        }
        let row_shape = input.shape().get(ids.rank()..).unwrap_or_default();
        let shape = Shape::new(&[segments])?.concat(row_shape)?;
        let width = Shape::new(row_shape)?.elements();
        // A string takes more than a byte even if it is empty.
        Tensor::new(tensorfleet_tensor::DType::String, shape.clone())?;
        let mut joined: Vec<Vec<u8>> = filled(Vec::new(), shape.elements())?;
        let ids = ctx.ints(1)?;
        ensure!(
            ids.iter().all(|id| (0..segments).contains(id)),
            invalid_argument,
            "segment_ids are not allowed to exceed num_segments or to have negative values."
        );
        let rows = input.slice::<TString>()?.chunks_exact(width.max(1));
        for (id, row) in ids.iter().zip(rows) {
            let start = *id as usize * width;
            for (text, value) in joined.iter_mut().skip(start).zip(row) {
                if !text.is_empty() {
                    text.extend_from_slice(&separator);
                }
                text.extend_from_slice(value);
            }
        }
        let texts = joined.into_iter().map(TString::from).collect();
        let out = Tensor::from_vec(shape, texts)?;
        ctx.set(0, out);
        Ok(())
    })
}

fn segments(ctx: &KernelCtx<'_>) -> Result<i64> {
    let tensor = ctx.input(2)?;
    ensure!(
        !tensor.is_empty(),
        invalid_argument,
        "Number of segments cannot be empty."
    );
    ensure!(
        tensor.rank() == 0,
        invalid_argument,
        "Number of segments must be a scalar"
    );
    let segments = ctx.int(2)?;
    ensure!(
        segments >= 0,
        invalid_argument,
        "Number of segments must be non-negative but got {segments}"
    );
    Ok(segments)
}
