//! `InplaceUpdate`, `InplaceAdd`, `InplaceSub`: rows of a tensor overwritten, or added to.
//!
//! TensorFlow: (x: T, i: int32, v: T) -> y: T, where row `i[j]` of `y` is made from row `j` of `v`; row numbers count modulo
//! the number of rows. TensorFlow changes `x` itself, and its tests count on that: who reads `x` behind the op sees `y`. Here `x` is
//! changed only if nobody else holds it, and a pass gives `y` to whoever reads `x` behind the op. Readers that are not ordered see
//! the old value, in TensorFlow the one or the other; constants, variables and later steps keep theirs, which TensorFlow overwrites.

use tensorfleet_graph::example::{Example, ex, ex_err, f32s, i32s, script, strs};
use tensorfleet_graph::{Exactness, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx};
use tensorfleet_status::{Code, Result, ensure};
use tensorfleet_tensor::DType;

use super::row_update::{Update, apply};
use crate::types::NUMBERS;

pub(crate) static OPS: [OpDef; 3] = [
    OpDef {
        name: "InplaceAdd",
        kernels: &[cpu(&[], |_| kernel(Update::Add))],
        scripts: &[script(
            "seen by whoever comes later",
            "c = float[2]{1, 2}
             x = DeepCopy(c)
             zero = int32[1]{0}
             one = int32[1]{1}
             v = float[1]{10}
             y = InplaceAdd(x, zero, v)
             then = InplaceSub(x, one, v, ^y)
             z = Identity(x, ^then)",
            &["fetch z => float[2]{11, -8}"],
        )],
        examples: &[
            ex(
                "one row twice",
                &[
                    f32s(&[2, 2], &[1.0, 2.0, 3.0, 4.0]),
                    i32s(&[3], &[1, -1, 2]),
                    f32s(&[3, 2], &[1.0, 1.0, 10.0, 10.0, 100.0, 100.0]),
                ],
                &[f32s(&[2, 2], &[101.0, 102.0, 14.0, 15.0])],
            ),
            NO_TEXT,
        ],
        ..INPLACE
    },
    OpDef {
        name: "InplaceSub",
        kernels: &[cpu(&[], |_| kernel(Update::Sub))],
        examples: &[
            ex(
                "numbers",
                &[
                    i32s(&[3], &[1, 2, 3]),
                    i32s(&[2], &[0, 2]),
                    i32s(&[2], &[5, 7]),
                ],
                &[i32s(&[3], &[-4, 2, -4])],
            ),
            NO_TEXT,
        ],
        ..INPLACE
    },
    OpDef {
        name: "InplaceUpdate",
        kernels: &[cpu(&[], |_| kernel(Update::Assign))],
        examples: &[
            ex(
                "the last wins",
                &[
                    strs(&[3], &["a", "b", "c"]),
                    i32s(&[3], &[2, 3, 5]),
                    strs(&[3], &["x", "y", "z"]),
                ],
                &[strs(&[3], &["y", "b", "z"])],
            ),
            ex(
                "nothing",
                &[
                    f32s(&[2, 2], &[1.0, 2.0, 3.0, 4.0]),
                    i32s(&[0], &[]),
                    f32s(&[0, 2], &[]),
                ],
                &[f32s(&[2, 2], &[1.0, 2.0, 3.0, 4.0])],
            ),
            ex_err(
                "index is no vector",
                &[],
                &[f32s(&[2], &[1.0]), i32s(&[], &[0]), f32s(&[1], &[1.0])],
                Code::InvalidArgument,
                "i must be a vector. []",
            ),
            ex_err(
                "ranks",
                &[],
                &[f32s(&[2], &[1.0]), i32s(&[1], &[0]), f32s(&[1, 1], &[1.0])],
                Code::InvalidArgument,
                "x and v shape doesn't match (ranks differ): [2] vs. [1,1]",
            ),
            ex_err(
                "rows",
                &[],
                &[
                    f32s(&[2, 3], &[1.0]),
                    i32s(&[1], &[0]),
                    f32s(&[1, 2], &[1.0]),
                ],
                Code::InvalidArgument,
                "x and v shape doesn't match at index 1 : [2,3] vs. [1,2]",
            ),
            ex_err(
                "row numbers",
                &[],
                &[f32s(&[2], &[1.0]), i32s(&[2], &[0]), f32s(&[1], &[1.0])],
                Code::InvalidArgument,
                "i and x shape doesn't match at index 0: [2] vs. [1]",
            ),
        ],
        ..INPLACE
    },
];

const INPLACE: OpDef = OpDef {
    inputs: &["x: T", "i: int32", "v: T"],
    outputs: &["y: T"],
    attrs: &["T: type"],
    infer: infer::same_as_first,
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

const NO_TEXT: Example = ex_err(
    "no texts",
    &[],
    &[strs(&[1], &["a"]), i32s(&[1], &[0]), strs(&[1], &["b"])],
    Code::InvalidArgument,
    "Unsupported data type: string",
);

fn kernel(update: Update) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        check_shapes(ctx)?;
        let dtype = ctx.input(0)?.dtype();
        let is_plain = NUMBERS.contains(&dtype);
        let is_moved = update == Update::Assign && matches!(dtype, DType::String | DType::Bool);
        let mut x = ctx.take(0)?;
        let v = ctx.input(2)?;
        if !x.is_empty() && !v.is_empty() {
            ensure!(
                is_plain || is_moved,
                invalid_argument,
                "Unsupported data type: {dtype}"
            );
            let count = x.shape().dim(0) as i64;
            let indices = ctx.input(1)?.slice::<i32>()?.iter();
            let rows: Vec<i64> = indices
                .map(|row| i64::from(*row).rem_euclid(count))
                .collect();
            let row_len = x.elements() / x.shape().dim(0);
            apply(ctx.par(), update, &mut x, row_len, &rows, v)?;
        }
        ctx.set(0, x);
        Ok(())
    })
}

fn check_shapes(ctx: &KernelCtx<'_>) -> Result<()> {
    let (x, i, v) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
    ensure!(
        i.rank() == 1,
        invalid_argument,
        "i must be a vector. {}",
        i.shape()
    );
    ensure!(
        x.rank() == v.rank() && x.rank() > 0,
        invalid_argument,
        "x and v shape doesn't match (ranks differ): {} vs. {}",
        x.shape(),
        v.shape()
    );
    for axis in 1..x.rank() {
        ensure!(
            x.shape().dim(axis) == v.shape().dim(axis),
            invalid_argument,
            "x and v shape doesn't match at index {axis} : {} vs. {}",
            x.shape(),
            v.shape()
        );
    }
    ensure!(
        i.elements() == v.shape().dim(0),
        invalid_argument,
        "i and x shape doesn't match at index 0: {} vs. {}",
        i.shape(),
        v.shape()
    );
    Ok(())
}
