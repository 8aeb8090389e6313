//! `ScatterNdAdd` and its relatives: rows of a variable by coordinates, changed in place.
//!
//! TensorFlow: ScatterNdAdd(ref: Ref(T), indices: Tindices, updates: T) -> output_ref: Ref(T), with attrs
//! use_locking: bool = false, bad_indices_policy: string = ""; ResourceScatterNdAdd(ref: resource, …); likewise
//! Sub, Min, Max, Update. With policy IGNORE rows outside of the variable change nothing; otherwise one such row
//! fails the op before anything is written (TensorFlow may have written some rows by then).

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::Result;
use tensorfleet_tensor::{DType, Shape};

use super::NO_GRADIENT;
use super::target::{Target, settle};
use super::variable::check_dtype;
use crate::array::nd::BadIndices;
use crate::array::row_update::Update;
use crate::array::scatter_nd::scatter;
use crate::types::{INDEX, NUMBERS, PLAIN, REAL_NUMBERS, VALUES};

const INDICES: (&str, &[DType]) = ("Tindices", INDEX);

/// Elements [1,1], [0,0] and [1,1] of the matrix 1, 2, 3, 4 changed by 1, 3 and 2.
macro_rules! elements_by_reference {
    ($op:literal, $dtype:literal, $result:literal) => {
        script(
            "one element twice",
            concat!(
                "v = VariableV2() {dtype=",
                $dtype,
                ", shape=[2,2]}\n",
                "c = ",
                $dtype,
                "[2,2]{1, 2, 3, 4}\n",
                "init = Assign(v, c)\n",
                "i = int32[3,2]{1, 1, 0, 0, 1, 1}\n",
                "u = ",
                $dtype,
                "[3]{1, 3, 2}\n",
                "change = ",
                $op,
                "(v, i, u)\n",
            ),
            &[
                "run init",
                concat!("fetch change => ", $dtype, "[2,2]{", $result, "}"),
                concat!("fetch v => ", $dtype, "[2,2]{", $result, "}"),
            ],
        )
    };
}

/// The same by handle.
macro_rules! elements_by_handle {
    ($op:literal, $dtype:literal, $result:literal) => {
        script(
            "one element twice",
            concat!(
                "v = VarHandleOp() {dtype=",
                $dtype,
                ", shape=[2,2], shared_name='v'}\n",
                "c = ",
                $dtype,
                "[2,2]{1, 2, 3, 4}\n",
                "init = AssignVariableOp(v, c)\n",
                "i = int64[3,2]{1, 1, 0, 0, 1, 1}\n",
                "u = ",
                $dtype,
                "[3]{1, 3, 2}\n",
                "change = ",
                $op,
                "(v, i, u)\n",
                "read = ReadVariableOp(v, ^change) {dtype=",
                $dtype,
                "}\n",
            ),
            &[
                "run change fails NOT_FOUND localhost/v",
                "run init",
                concat!("fetch read => ", $dtype, "[2,2]{", $result, "}"),
            ],
        )
    };
}

/// Adding bools is "or", taking them away is "exclusive or".
macro_rules! bools {
    ($op:literal, $result:literal) => {
        script(
            "bools",
            concat!(
                "v = VarHandleOp() {dtype=bool, shape=[4], shared_name='v'}\n",
                "c = bool[4]{true, false, true, false}\n",
                "init = AssignVariableOp(v, c)\n",
                "i = int64[4,1]{0, 1, 2, 3}\n",
                "u = bool[4]{true, true, false, false}\n",
                "change = ",
                $op,
                "(v, i, u)\n",
                "read = ReadVariableOp(v, ^change) {dtype=bool}\n",
            ),
            &["run init", concat!("fetch read => bool[4]{", $result, "}")],
        )
    };
}

pub(crate) static OPS: [OpDef; 10] = [
    OpDef {
        name: "ScatterNdAdd",
        kernels: &[cpu(&[("T", NUMBERS), INDICES], |node| {
            build(node, Update::Add)
        })],
        scripts: &[
            elements_by_reference!("ScatterNdAdd", "float", "4, 2, 3, 7"),
            ROWS,
            BAD,
        ],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ScatterNdMax",
        kernels: &[cpu(&[("T", REAL_NUMBERS), INDICES], |node| {
            build(node, Update::Max)
        })],
        scripts: &[elements_by_reference!(
            "ScatterNdMax",
            "int32",
            "3, 2, 3, 4"
        )],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ScatterNdMin",
        kernels: &[cpu(&[("T", REAL_NUMBERS), INDICES], |node| {
            build(node, Update::Min)
        })],
        scripts: &[elements_by_reference!(
            "ScatterNdMin",
            "double",
            "1, 2, 3, 1"
        )],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ScatterNdSub",
        kernels: &[cpu(&[("T", NUMBERS), INDICES], |node| {
            build(node, Update::Sub)
        })],
        scripts: &[elements_by_reference!(
            "ScatterNdSub",
            "int64",
            "-2, 2, 3, 1"
        )],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ScatterNdUpdate",
        attrs: &[
            "T: type",
            "Tindices: {int32, int64}",
            "use_locking: bool = true",
            "bad_indices_policy: string = ''",
        ],
        kernels: &[cpu(&[("T", VALUES), INDICES], |node| {
            build(node, Update::Assign)
        })],
        scripts: &[
            elements_by_reference!("ScatterNdUpdate", "uint8", "3, 2, 3, 2"),
            IGNORED,
        ],
        ..BY_REFERENCE
    },
    OpDef {
        name: "ResourceScatterNdAdd",
        kernels: &[cpu(&[("T", PLAIN), INDICES], |node| {
            build(node, Update::Add)
        })],
        scripts: &[
            elements_by_handle!("ResourceScatterNdAdd", "half", "4, 2, 3, 7"),
            BOOL_ADD,
        ],
        ..BY_HANDLE
    },
    OpDef {
        name: "ResourceScatterNdMax",
        kernels: &[cpu(&[("T", REAL_NUMBERS), INDICES], |node| {
            build(node, Update::Max)
        })],
        scripts: &[elements_by_handle!(
            "ResourceScatterNdMax",
            "int8",
            "3, 2, 3, 4"
        )],
        ..BY_HANDLE
    },
    OpDef {
        name: "ResourceScatterNdMin",
        kernels: &[cpu(&[("T", REAL_NUMBERS), INDICES], |node| {
            build(node, Update::Min)
        })],
        scripts: &[elements_by_handle!(
            "ResourceScatterNdMin",
            "bfloat16",
            "1, 2, 3, 1"
        )],
        ..BY_HANDLE
    },
    OpDef {
        name: "ResourceScatterNdSub",
        kernels: &[cpu(&[("T", PLAIN), INDICES], |node| {
            build(node, Update::Sub)
        })],
        scripts: &[
            elements_by_handle!("ResourceScatterNdSub", "complex128", "-2, 2, 3, 1"),
            BOOL_SUB,
        ],
        ..BY_HANDLE
    },
    OpDef {
        name: "ResourceScatterNdUpdate",
        kernels: &[cpu(&[("T", VALUES), INDICES], |node| {
            build(node, Update::Assign)
        })],
        scripts: &[elements_by_handle!(
            "ResourceScatterNdUpdate",
            "string",
            "3, 2, 3, 2"
        )],
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
        "bad_indices_policy: string = ''",
    ],
    infer: infer::same_as_first,
    gradient: NO_GRADIENT,
    ..OpDef::BLANK
};

const BY_HANDLE: OpDef = OpDef {
    inputs: &["ref: resource", "indices: Tindices", "updates: T"],
    attrs: &[
        "T: type",
        "Tindices: {int32, int64}",
        "use_locking: bool = true",
        "bad_indices_policy: string = ''",
    ],
    stateful: true,
    gradient: NO_GRADIENT,
    ..OpDef::BLANK
};

const ROWS: Script = script(
    "rows",
    "v = VariableV2() {dtype=float, shape=[2,2,2]}
     c = float[2,2,2]{1}
     init = Assign(v, c)
     i = int32[2,2]{0, 1, 1, 0}
     u = float[2,2]{1, 2, 3, 4}
     add = ScatterNdAdd(v, i, u)
     one = int64[1]{1}
     plane = float[1,2,2]{10, 20, 30, 40}
     add_plane = ScatterNdAdd(v, one, plane)",
    &[
        "run init",
        "fetch add => float[2,2,2]{1, 1, 2, 3, 4, 5, 1, 1}",
        "fetch add_plane => float[2,2,2]{1, 1, 2, 3, 14, 25, 31, 41}",
    ],
);

const BAD: Script = script(
    "coordinates and shapes that do not fit",
    "v = VariableV2() {dtype=float, shape=[2,2]}
     c = float[2,2]{1, 2, 3, 4}
     init = Assign(v, c)
     i = int32[2,2]{0, 0, 0, -1}
     u = float[2]{1, 2}
     bad_index = ScatterNdAdd(v, i, u)
     short = float[1]{1}
     bad_count = ScatterNdAdd(v, i, short)
     j = int32[2,1]{0, 1}
     bad_row = ScatterNdAdd(v, j, u)",
    &[
        "run bad_index fails FAILED_PRECONDITION Attempting to use uninitialized value v",
        "run init",
        "run bad_index fails INVALID_ARGUMENT indices[1] = [0, -1] does not index into shape [2,2]",
        "run bad_count fails INVALID_ARGUMENT Dimensions [0,1) of indices[shape=[2,2]]",
        "run bad_row fails INVALID_ARGUMENT Dimensions [1,2) of input[shape=[2,2]] must match dimensions [1,1) of updates[shape=[2]]",
    ],
);

const IGNORED: Script = script(
    "bad ones ignored",
    "v = VariableV2() {dtype=float, shape=[3]}
     c = float[3]{1, 2, 3}
     init = Assign(v, c)
     i = int32[3,1]{5, 1, -1}
     u = float[3]{7, 8, 9}
     put = ScatterNdUpdate(v, i, u) {bad_indices_policy='IGNORE'}",
    &["run init", "fetch put => float[3]{1, 8, 3}"],
);

const BOOL_ADD: Script = bools!("ResourceScatterNdAdd", "true, true, true, false");
const BOOL_SUB: Script = bools!("ResourceScatterNdSub", "false, true, true, false");

fn build(node: &NodeInfo, update: Update) -> Result<AnyKernel> {
    let policy = BadIndices::of(&node.attrs)?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let target = Target::of(ctx, 0)?;
        target.update(ctx, |var| {
            let (indices, updates) = (ctx.input(1)?, ctx.input(2)?);
            check_dtype(var, updates.dtype())?;
            settle(var);
            // A lone coordinate counts as a list of one, other than in the ops on tensors.
            if indices.rank() == 1 && indices.elements() == 1 {
                let indices = indices.clone().reshaped(Shape::matrix(1, 1)?)?;
                return scatter(ctx, var, &indices, updates, update, policy);
            }
            scatter(ctx, var, indices, updates, update, policy)
        })?;
        target.forward(ctx);
        Ok(())
    })
}
