//! `ComputeAccidentalHits`: where candidates are true classes.

use std::collections::HashMap;

use tensorfleet_graph::example::{Lit, ex_attrs, ex_err, f32s, i32s, i64s};
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, ensure};
use tensorfleet_tensor::{PartialShape, Tensor};

const NO_HITS: [Lit; 3] = [i32s(&[0], &[]), i64s(&[0], &[]), f32s(&[0], &[])];
const LOWEST: f64 = f32::MIN as f64;

pub(crate) static OP: OpDef = OpDef {
    name: "ComputeAccidentalHits",
    inputs: &["true_classes: int64", "sampled_candidates: int64"],
    outputs: &["indices: int32", "ids: int64", "weights: float"],
    attrs: &["num_true: int", "seed: int = 0", "seed2: int = 0"],
    infer: |ctx: &mut InferCtx<'_>| {
        for output in 0..3 {
            ctx.set(output, PartialShape::of_rank(1));
        }
        Ok(())
    },
    gradient: Gradient::Stop("hits are integers"),
    kernels: &[cpu(&[], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex_attrs(
            "the last of several",
            &[("num_true", "2")],
            &[i64s(&[2, 2], &[5, 7, 9, 5]), i64s(&[4], &[7, 5, 3, 5])],
            &[
                i32s(&[3], &[0, 0, 1]),
                i64s(&[3], &[3, 0, 3]),
                f32s(&[3], &[LOWEST, LOWEST, LOWEST]),
            ],
        ),
        ex_attrs(
            "none",
            &[("num_true", "1")],
            &[i64s(&[1, 1], &[5]), i64s(&[2], &[1, 2])],
            &NO_HITS,
        ),
        ex_err(
            "columns",
            &[("num_true", "2")],
            &[i64s(&[1, 1], &[5]), i64s(&[2], &[1, 2])],
            Code::InvalidArgument,
            "true_candidates must be a batch_size * num_true matrix",
        ),
        ex_err(
            "candidates",
            &[("num_true", "1")],
            &[i64s(&[1, 1], &[5]), i64s(&[], &[1])],
            Code::InvalidArgument,
            "sampled_candidates must be a vector",
        ),
    ],
    ..OpDef::BLANK
};

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let columns = node.attrs.int("num_true")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let (classes, candidates) = (ctx.input(0)?, ctx.input(1)?);
        ensure!(
            classes.rank() == 2 && classes.shape().dims()[1] == columns,
            invalid_argument,
            "true_candidates must be a batch_size * num_true matrix"
        );
        ensure!(
            candidates.rank() == 1,
            invalid_argument,
            "sampled_candidates must be a vector, which is typically an output from CandidateSampler"
        );
        let places = candidates.slice::<i64>()?.iter().zip(0i64..);
        let places: HashMap<i64, i64> = places.map(|(class, place)| (*class, place)).collect();
        let (mut rows, mut ids) = (Vec::new(), Vec::new());
        for (at, class) in classes.slice::<i64>()?.iter().enumerate() {
            if let Some(place) = places.get(class) {
                rows.push((at / columns.max(1) as usize) as i32);
                ids.push(*place);
            }
        }
        let weights = vec![f32::MIN; ids.len()];
        ctx.set(0, Tensor::vector(&rows));
        ctx.set(1, Tensor::vector(&ids));
        ctx.set(2, Tensor::vector(&weights));
        Ok(())
    })
}
