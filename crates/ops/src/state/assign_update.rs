//! `AssignAdd`, `AssignSub` and their forms for resource variables: `var += value`, `var -= value`.
//!
//! TensorFlow: AssignAdd(ref: Ref(T), value: T) -> output_ref: Ref(T), with attr use_locking: bool = false;
//! AssignAddVariableOp(resource: resource, value: dtype). Shapes must be equal. The update is exclusive
//! whatever `use_locking` says.

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx};
use tensorfleet_math::binary::{self, Binary, BinaryElement, Fault};
use tensorfleet_math::broadcast::Broadcast;
use tensorfleet_math::par::Par;
use tensorfleet_status::{Result, ensure, internal};
use tensorfleet_tensor::{Element, Tensor};

use super::NO_GRADIENT;
use super::target::Target;
use super::variable::check_dtype;
use crate::by_number;
use crate::types::NUMBERS;

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        scripts: &[ADD_TYPES, ADD_ERRORS],
        kernels: &[cpu(&[("T", NUMBERS)], |_| build(Binary::Add))],
        ..by_reference("AssignAdd")
    },
    OpDef {
        scripts: &[script(
            "integers wrap",
            "v = VariableV2() {dtype=DT_UINT8, shape=[3]}
             c = uint8[3]{0, 5, 255}
             init = Assign(v, c)
             one = uint8[3]{1, 6, 5}
             sub = AssignSub(v, one)
             z = VariableV2() {dtype=DT_COMPLEX64, shape=[]}
             zc = complex64[]{(1,2)}
             zinit = Assign(z, zc)
             zsub = AssignSub(z, zc)",
            &[
                "run init, zinit",
                "fetch sub => uint8[3]{255, 255, 250}",
                "fetch zsub => complex64[]{(0,0)}",
            ],
        )],
        kernels: &[cpu(&[("T", NUMBERS)], |_| build(Binary::Sub))],
        ..by_reference("AssignSub")
    },
    OpDef {
        scripts: &[ADD_RESOURCE],
        kernels: &[cpu(&[("dtype", NUMBERS)], |_| build(Binary::Add))],
        ..by_handle("AssignAddVariableOp")
    },
    OpDef {
        scripts: &[script(
            "read after the update",
            "v = VarHandleOp() {dtype=DT_DOUBLE, shape=[2], shared_name='v'}
             c = double[2]{1, 2}
             init = AssignVariableOp(v, c)
             d = double[2]{0.5, 5}
             sub = AssignSubVariableOp(v, d)
             read = ReadVariableOp(v, ^sub) {dtype=DT_DOUBLE}",
            &["run init", "fetch read => double[2]{0.5, -3}"],
        )],
        kernels: &[cpu(&[("dtype", NUMBERS)], |_| build(Binary::Sub))],
        ..by_handle("AssignSubVariableOp")
    },
];

const ADD_TYPES: Script = script(
    "values of several types",
    "v = VariableV2() {dtype=DT_FLOAT, shape=[2,3]}
     c = float[2,3]{1, 2, 3, 4, 5, 6}
     init = Assign(v, c)
     add = AssignAdd(v, c)
     step = VariableV2() {dtype=DT_INT64, shape=[]}
     zero = int64[]{0}
     start = Assign(step, zero)
     one = int64[]{1}
     count = AssignAdd(step, one) {use_locking=true}
     h = VariableV2() {dtype=DT_HALF, shape=[]}
     hc = half[]{1.5}
     hinit = Assign(h, hc)
     hadd = AssignAdd(h, hc)",
    &[
        "run init, start, hinit",
        "fetch add => float[2,3]{2, 4, 6, 8, 10, 12}",
        "run count",
        "fetch count, hadd => int64[]{2}; half[]{3}",
    ],
);

const ADD_ERRORS: Script = script(
    "wrong shapes, no value",
    "v = VariableV2() {dtype=DT_FLOAT, shape=[2]}
     c = float[2]{1, 2}
     init = Assign(v, c)
     s = float[]{1}
     add = AssignAdd(v, c)
     bad = AssignAdd(v, s)",
    &[
        "run add fails FAILED_PRECONDITION Attempting to use uninitialized value v",
        "run init",
        "run bad fails INVALID_ARGUMENT Parameters and update must be the same size",
    ],
);

const ADD_RESOURCE: Script = script(
    "counter",
    "v = VarHandleOp() {dtype=DT_INT64, shape=[], shared_name='v'}
     w = VarHandleOp() {dtype=DT_INT64, shape=[], shared_name='w'}
     zero = int64[]{0}
     one = int64[]{1}
     two = int64[2]{1, 2}
     init = AssignVariableOp(v, zero)
     add = AssignAddVariableOp(v, one)
     bad = AssignAddVariableOp(v, two)
     none = AssignAddVariableOp(w, one)
     read = ReadVariableOp(v, ^add) {dtype=DT_INT64}",
    &[
        "run none fails NOT_FOUND Container localhost does not exist. (Could not find resource: localhost/w)",
        "run init",
        "fetch read => int64[]{1}",
        "fetch read => int64[]{2}",
        "run bad fails INVALID_ARGUMENT Cannot update variable with shape [] using a Tensor with shape [2], shapes must be equal.",
        "run none fails NOT_FOUND Resource localhost/w/N10tensorflow3VarE does not exist.",
    ],
);

const fn by_reference(name: &'static str) -> OpDef {
    OpDef {
        name,
        inputs: &["ref: Ref(T)", "value: T"],
        outputs: &["output_ref: Ref(T)"],
        attrs: &[
            "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}",
            "use_locking: bool = false",
        ],
        infer: infer::all_same,
        gradient: NO_GRADIENT,
        ..OpDef::BLANK
    }
}

const fn by_handle(name: &'static str) -> OpDef {
    OpDef {
        name,
        inputs: &["resource: resource", "value: dtype"],
        attrs: &["dtype: type"],
        stateful: true,
        gradient: NO_GRADIENT,
        ..OpDef::BLANK
    }
}

fn build(op: Binary) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let target = Target::of(ctx, 0)?;
        let value = ctx.take(1)?;
        let par = ctx.par();
        target.update(ctx, |var| {
            check_shapes(&target, var, &value)?;
            let dtype = value.dtype();
            by_number!(dtype, T => update::<T>(par, op, var, value),
                else => Err(internal!("no arithmetic for {dtype}")))
        })?;
        target.forward(ctx);
        Ok(())
    })
}

fn check_shapes(target: &Target, var: &Tensor, value: &Tensor) -> Result<()> {
    let same = var.shape() == value.shape();
    match target {
        Target::Ref(_) => ensure!(
            same,
            invalid_argument,
            "Parameters and update must be the same size, got {} and {}",
            var.shape(),
            value.shape()
        ),
        Target::Resource(_) => {
            check_dtype(var, value.dtype())?;
            ensure!(
                same,
                invalid_argument,
                "Cannot update variable with shape {} using a Tensor with shape {}, shapes must be equal.",
                var.shape(),
                value.shape()
            );
        }
    }
    Ok(())
}

/// `var = op(var, value)` in whatever memory nobody else reads: the variable's, the value's, or new.
fn update<T: Element + BinaryElement>(
    par: &dyn Par,
    op: Binary,
    var: &mut Tensor,
    mut value: Tensor,
) -> Result<()> {
    let all = Broadcast::same(var.elements());
    let done = if var.is_unique() {
        binary::apply_lhs(par, op, &all, var.slice_mut::<T>()?, value.slice()?)
    } else if value.is_unique() {
        let done = binary::apply_rhs(par, op, &all, var.slice::<T>()?, value.slice_mut()?);
        *var = value;
        done
    } else {
        let mut sum = Tensor::new(var.dtype(), var.shape().clone())?;
        let done = binary::apply(
            par,
            op,
            &all,
            var.slice::<T>()?,
            value.slice()?,
            sum.slice_mut()?,
        );
        *var = sum;
        done
    };
    done.map_err(|fault: Fault| internal!("{op:?} of {}: {fault}", T::DTYPE))
}
