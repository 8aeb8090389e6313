//! `InvertPermutation`: `y[x[i]] = i`.
//!
//! TensorFlow: InvertPermutation(x: T) -> y: T, T in {int32, int64}.

use tensorfleet_graph::example::{ex, ex_err, i32s, x};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, invalid_argument};
use tensorfleet_tensor::{DType, Tensor};

use crate::types::INDEX;

pub(crate) static OP: OpDef = OpDef {
    name: "InvertPermutation",
    inputs: &["x: T"],
    outputs: &["y: T"],
    attrs: &["T: {int32, int64} = DT_INT32"],
    infer: infer::same_as_first,
    gradient: Gradient::Stop("permutations are integers"),
    kernels: &[cpu(&[("T", INDEX)], build)],
    exactness: Exactness::Bits,
    examples: &[
        ex(
            "five",
            &[x(&[5], &[3.0, 4.0, 0.0, 2.0, 1.0])],
            &[x(&[5], &[2.0, 4.0, 3.0, 0.0, 1.0])],
        ),
        ex("empty", &[x(&[0], &[])], &[x(&[0], &[])]),
        ex_err(
            "twice",
            &[],
            &[i32s(&[2], &[1, 1])],
            Code::InvalidArgument,
            "1 is duplicated in the input",
        ),
        ex_err(
            "out of range",
            &[],
            &[i32s(&[2], &[0, 2])],
            Code::InvalidArgument,
            "2 is not between 0 and 2",
        ),
        ex_err(
            "negative",
            &[],
            &[i32s(&[2], &[0, -1])],
            Code::InvalidArgument,
            "-1 is not between 0 and 2",
        ),
    ],
    ..OpDef::BLANK
};

fn build(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let x = ctx.input(0)?;
        if x.rank() != 1 {
            return Err(invalid_argument!("invert_permutation expects a 1D vector."));
        }
        let inverse = inverted(&ctx.ints(0)?)?;
        let y = if x.dtype() == DType::I64 {
            Tensor::vector(&inverse)
        } else {
            let narrow: Vec<i32> = inverse.iter().map(|value| *value as i32).collect();
            Tensor::vector(&narrow)
        };
        ctx.set(0, y);
        Ok(())
    })
}

fn inverted(x: &[i64]) -> Result<Vec<i64>> {
    let mut inverse = vec![-1; x.len()];
    for (index, value) in x.iter().enumerate() {
        let slot = usize::try_from(*value)
            .ok()
            .and_then(|value| inverse.get_mut(value));
        match slot {
            Some(slot) if *slot == -1 => *slot = index as i64,
            Some(_) => return Err(invalid_argument!("{value} is duplicated in the input.")),
            None => {
                return Err(invalid_argument!(
                    "{value} is not between 0 and {}",
                    x.len()
                ));
            }
        }
    }
    Ok(inverse)
}
