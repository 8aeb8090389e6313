//! `ScatterAdd` and its relatives: rows of a variable changed in place, by reference and by handle.
//!
//! TensorFlow: ScatterAdd(ref: Ref(T), indices: Tindices, updates: T) -> output_ref: Ref(T), with attr
//! use_locking: bool = false; ResourceScatterAdd(resource: resource, indices: Tindices, updates: dtype); likewise
//! Sub, Mul, Div, Min, Max, Update. updates has the shape indices.shape + var.shape[1..], or is a scalar for all. A
//! row named twice is updated twice, in order. The lock is taken whatever `use_locking` says, and nothing is written
//! if an index is bad (TensorFlow may have written some rows by then). An integer divided by zero is
//! INVALID_ARGUMENT; TensorFlow's process dies of it.

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx};
use tensorfleet_math::movement::check_indices;
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::{DType, Shape, Tensor};

use super::NO_GRADIENT;
use super::target::{Target, settle};
use super::variable::check_dtype;
use crate::array::gather::bad_index;
use crate::array::moves::{self, RowsError};
use crate::array::row_update::{self, Update, row_numbers};
use crate::by_integer;
use crate::types::{INDEX, MOVABLE, NUMBERS, REAL_NUMBERS};

const INDICES: (&str, &[DType]) = ("Tindices", INDEX);

pub(crate) static OPS: [OpDef; 14] = [
    OpDef {
        name: "ScatterAdd",
        kernels: &[cpu(&[("T", NUMBERS), INDICES], |_| build(Update::Add))],
        scripts: &[ADD, SHAPES, BAD],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ScatterDiv",
        kernels: &[cpu(&[("T", NUMBERS), INDICES], |_| build(Update::Div))],
        scripts: &[script(
            "integers truncate",
            "v = VariableV2() {dtype=int32, shape=[3]}
             c = int32[3]{7, -7, 5}
             init = Assign(v, c)
             i = int32[2]{0, 1}
             two = int32[]{2}
             div = ScatterDiv(v, i, two)",
            &["run init", "fetch div => int32[3]{3, -3, 5}"],
        )],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ScatterMax",
        attrs: ORDERED,
        kernels: &[cpu(&[("T", REAL_NUMBERS), INDICES], |_| build(Update::Max))],
        scripts: &[script(
            "NaN changes nothing",
            "v = VariableV2() {dtype=float, shape=[4]}
             c = float[4]{1, NaN, 2, 3}
             init = Assign(v, c)
             i = int64[4]{0, 1, 2, 3}
             u = float[4]{3, 1, NaN, -1}
             max = ScatterMax(v, i, u)",
            &["run init", "fetch max => float[4]{3, NaN, 2, 3}"],
        )],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ScatterMin",
        attrs: ORDERED,
        kernels: &[cpu(&[("T", REAL_NUMBERS), INDICES], |_| build(Update::Min))],
        scripts: &[script(
            "one row twice",
            "v = VariableV2() {dtype=int64, shape=[2]}
             c = int64[2]{3, 4}
             init = Assign(v, c)
             i = int32[3]{1, 0, 1}
             u = int64[3]{5, 1, 2}
             min = ScatterMin(v, i, u)",
            &["run init", "fetch min => int64[2]{1, 2}"],
        )],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ScatterMul",
        kernels: &[cpu(&[("T", NUMBERS), INDICES], |_| build(Update::Mul))],
        scripts: &[script(
            "complex numbers",
            "v = VariableV2() {dtype=complex64, shape=[2]}
             c = complex64[2]{(1,1), (2,0)}
             init = Assign(v, c)
             i = int32[1]{0}
             u = complex64[1]{(0,1)}
             mul = ScatterMul(v, i, u)",
            &["run init", "fetch mul => complex64[2]{(-1,1), (2,0)}"],
        )],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ScatterSub",
        kernels: &[cpu(&[("T", NUMBERS), INDICES], |_| build(Update::Sub))],
        scripts: &[script(
            "rows",
            "v = VariableV2() {dtype=float, shape=[3,2]}
             c = float[3,2]{1, 2, 3, 4, 5, 6}
             init = Assign(v, c)
             i = int64[2]{2, 0}
             u = float[2,2]{1, 1, 0.5, 0.25}
             sub = ScatterSub(v, i, u) {use_locking=true}",
            &["run init", "fetch sub => float[3,2]{0.5, 1.75, 3, 4, 4, 5}"],
        )],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ScatterUpdate",
        attrs: &[
            "T: type",
            "Tindices: {int32, int64}",
            "use_locking: bool = true",
        ],
        kernels: &[cpu(&[("T", MOVABLE), INDICES], |_| build(Update::Assign))],
        scripts: &[UPDATE],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ResourceScatterAdd",
        kernels: &[cpu(&[("dtype", NUMBERS), INDICES], |_| build(Update::Add))],
        scripts: &[RESOURCE_ADD],
        ..BY_HANDLE
    },
    OpDef {
        name: "ResourceScatterDiv",
        kernels: &[cpu(&[("dtype", NUMBERS), INDICES], |_| build(Update::Div))],
        scripts: &[RESOURCE_DIV],
        ..BY_HANDLE
    },
    OpDef {
        name: "ResourceScatterMax",
        kernels: &[cpu(&[("dtype", REAL_NUMBERS), INDICES], |_| {
            build(Update::Max)
        })],
        scripts: &[RESOURCE_MAX],
        ..BY_HANDLE
    },
    OpDef {
        name: "ResourceScatterMin",
        kernels: &[cpu(&[("dtype", REAL_NUMBERS), INDICES], |_| {
            build(Update::Min)
        })],
        scripts: &[RESOURCE_MIN],
        ..BY_HANDLE
    },
    OpDef {
        name: "ResourceScatterMul",
        kernels: &[cpu(&[("dtype", NUMBERS), INDICES], |_| build(Update::Mul))],
        scripts: &[RESOURCE_MUL],
        ..BY_HANDLE
    },
    OpDef {
        name: "ResourceScatterSub",
        kernels: &[cpu(&[("dtype", NUMBERS), INDICES], |_| build(Update::Sub))],
        scripts: &[RESOURCE_SUB],
        ..BY_HANDLE
    },
    OpDef {
        name: "ResourceScatterUpdate",
        attrs: &["dtype: type", "Tindices: {int32, int64}"],
        kernels: &[cpu(&[("dtype", MOVABLE), INDICES], |_| {
            build(Update::Assign)
        })],
        scripts: &[RESOURCE_UPDATE],
        ..BY_HANDLE
    },
];

const BY_REFERENCE: OpDef = OpDef {
    inputs: &["ref: Ref(T)", "indices: Tindices", "updates: T"],
    outputs: &["output_ref: Ref(T)"],
    attrs: &[
        "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}",
        "Tindices: {int32, int64}",
        "use_locking: bool = false",
    ],
    infer: infer::same_as_first,
    gradient: NO_GRADIENT,
    ..OpDef::BLANK
};

const ORDERED: &[&str] = &[
    "T: {half, bfloat16, float, double, int32, int64}",
    "Tindices: {int32, int64}",
    "use_locking: bool = false",
];

const BY_HANDLE: OpDef = OpDef {
    inputs: &["resource: resource", "indices: Tindices", "updates: dtype"],
    attrs: &[
        "dtype: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}",
        "Tindices: {int32, int64}",
    ],
    stateful: true,
    gradient: NO_GRADIENT,
    ..OpDef::BLANK
};

fn build(update: Update) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let target = Target::of(ctx, 0)?;
        target.update(ctx, |var| scatter(ctx, var, update))?;
        target.forward(ctx);
        Ok(())
    })
}

fn scatter(ctx: &KernelCtx<'_>, var: &mut Tensor, update: Update) -> Result<()> {
    let (indices, updates) = (ctx.input(1)?, ctx.input(2)?);
    check_dtype(var, updates.dtype())?;
    check_shapes(var.shape(), indices.shape(), updates.shape())?;
    let limit = var.shape().dim(0);
    let rows = row_numbers(indices)?;
    let bad = |bad| bad_index("indices", indices.shape(), bad, limit);
    let row_len = var.shape().elements_in(1..var.rank());
    if rows.is_empty() || row_len == 0 {
        return check_indices(&rows, limit).map_err(bad);
    }
    if update == Update::Div {
        check_divisors(updates)?;
    }
    settle(var);
    let filled;
    let updates = if updates.rank() == 0 {
        filled = moves::fill(ctx.par(), updates, Shape::matrix(rows.len(), row_len)?)?;
        &filled
    } else {
        updates
    };
    row_update::apply(ctx.par(), update, var, row_len, &rows, updates).map_err(
        |error| match error {
            RowsError::Index(index) => bad(index),
            RowsError::Status(status) => status,
        },
    )
}

fn check_shapes(var: &Shape, indices: &Shape, updates: &Shape) -> Result<()> {
    let Some((_, row)) = var.split_first() else {
        return Err(invalid_argument!(
            "params must be at least 1-D, got shape {var}"
        ));
    };
    let rows = updates.strip_prefix(indices.dims());
    ensure!(
        updates.rank() == 0 || rows == Some(row),
        invalid_argument,
        "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got \
         updates.shape {updates}, indices.shape {indices}, params.shape {var}"
    );
    Ok(())
}

fn check_divisors(updates: &Tensor) -> Result<()> {
    let dtype = updates.dtype();
    let zero = by_integer!(dtype, T => updates.slice::<T>()?.contains(&0), else => false);
    ensure!(!zero, invalid_argument, "Integer division by zero");
    Ok(())
}

const ADD: Script = script(
    "rows, one of them twice",
    "v = VariableV2() {dtype=float, shape=[3,2]}
     c = float[3,2]{1, 2, 3, 4, 5, 6}
     init = Assign(v, c)
     i = int32[3]{2, 0, 2}
     u = float[3,2]{1, 1, 10, 20, 0.5, 0.25}
     add = ScatterAdd(v, i, u)",
    &[
        "run add fails FAILED_PRECONDITION Attempting to use uninitialized value v",
        "run init",
        "fetch add => float[3,2]{11, 22, 3, 4, 6.5, 7.25}",
        "fetch v => float[3,2]{11, 22, 3, 4, 6.5, 7.25}",
    ],
);

const SHAPES: Script = script(
    "a scalar, a matrix and none of indices",
    "v = VariableV2() {dtype=half, shape=[2,2]}
     c = half[2,2]{1, 2, 3, 4}
     init = Assign(v, c)
     one = int64[]{1}
     row = half[2]{1, 2}
     add_row = ScatterAdd(v, one, row)
     grid = int32[1,2]{0, 0}
     all = half[]{1}
     add_all = ScatterAdd(v, grid, all)
     none = int32[0]{}
     nothing = half[0,2]{}
     add_none = ScatterAdd(v, none, nothing)",
    &[
        "run init",
        "fetch add_row => half[2,2]{1, 2, 4, 6}",
        "fetch add_all => half[2,2]{3, 4, 4, 6}",
        "fetch add_none => half[2,2]{3, 4, 4, 6}",
    ],
);

const BAD: Script = script(
    "indices and shapes that do not fit",
    "v = VariableV2() {dtype=float, shape=[2,2]}
     c = float[2,2]{1, 2, 3, 4}
     init = Assign(v, c)
     s = VariableV2() {dtype=float, shape=[]}
     x = float[]{1}
     init_s = Assign(s, x)
     high = int32[1,2]{0, 2}
     low = int32[1]{-1}
     zero = int32[1]{0}
     flat = float[2]{1, 1}
     add_high = ScatterAdd(v, high, x)
     add_low = ScatterAdd(v, low, x)
     add_flat = ScatterAdd(v, zero, flat)
     add_scalar = ScatterAdd(s, zero, x)",
    &[
        "run init, init_s",
        "run add_high fails INVALID_ARGUMENT indices[0,1] = 2 is not in [0, 2)",
        "run add_low fails INVALID_ARGUMENT indices[0] = -1 is not in [0, 2)",
        "run add_flat fails INVALID_ARGUMENT Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got updates.shape [2], indices.shape [1], params.shape [2,2]",
        "run add_scalar fails INVALID_ARGUMENT params must be at least 1-D, got shape []",
    ],
);

const UPDATE: Script = script(
    "the last one wins",
    "v = VariableV2() {dtype=string, shape=[3]}
     c = string[3]{a, b, c}
     init = Assign(v, c)
     i = int32[3]{1, 2, 1}
     u = string[3]{d, e, f}
     put = ScatterUpdate(v, i, u)
     one = string[]{x}
     put_one = ScatterUpdate(v, i, one)
     b = VariableV2() {dtype=bool, shape=[2]}
     no = bool[2]{false}
     init_b = Assign(b, no)
     j = int64[1]{1}
     yes = bool[1]{true}
     put_b = ScatterUpdate(b, j, yes)",
    &[
        "run init, init_b",
        "fetch put, put_b => string[3]{a, f, e}; bool[2]{false, true}",
        "fetch put_one => string[3]{a, x, x}",
    ],
);

/// A variable 1, 2, 3, 4 and an update of elements 3, 0 and 3 by 1, 2 and 3.
macro_rules! resource_script {
    ($op:literal, $dtype:literal, $result:literal) => {
        script(
            "one element twice",
            concat!(
                "v = VarHandleOp() {dtype=",
                $dtype,
                ", shape=[4], shared_name='v'}\n",
                "c = ",
                $dtype,
                "[4]{1, 2, 3, 4}\n",
                "init = AssignVariableOp(v, c)\n",
                "i = int64[3]{3, 0, 3}\n",
                "u = ",
                $dtype,
                "[3]{1, 2, 3}\n",
                "change = ",
                $op,
                "(v, i, u)\n",
                "read = ReadVariableOp(v, ^change) {dtype=",
                $dtype,
                "}\n",
                "far = int32[1]{4}\n",
                "one = ",
                $dtype,
                "[1]{1}\n",
                "bad = ",
                $op,
                "(v, far, one)\n",
            ),
            &[
                "run change fails NOT_FOUND localhost/v",
                "run init",
                concat!("fetch read => ", $dtype, "[4]{", $result, "}"),
                "run bad fails INVALID_ARGUMENT indices[0] = 4 is not in [0, 4)",
            ],
        )
    };
}

const RESOURCE_ADD: Script = resource_script!("ResourceScatterAdd", "float", "3, 2, 3, 8");
const RESOURCE_DIV: Script = resource_script!("ResourceScatterDiv", "int32", "0, 2, 3, 1");
const RESOURCE_MAX: Script = resource_script!("ResourceScatterMax", "int8", "2, 2, 3, 4");
const RESOURCE_MIN: Script = resource_script!("ResourceScatterMin", "double", "1, 2, 3, 1");
const RESOURCE_MUL: Script = resource_script!("ResourceScatterMul", "uint16", "2, 2, 3, 12");
const RESOURCE_SUB: Script = resource_script!("ResourceScatterSub", "bfloat16", "-1, 2, 3, 0");
const RESOURCE_UPDATE: Script = resource_script!("ResourceScatterUpdate", "half", "2, 2, 3, 3");
