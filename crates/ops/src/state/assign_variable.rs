//! `AssignVariableOp`: gives a resource variable a value.
//!
//! TensorFlow: AssignVariableOp(resource: resource, value: dtype), with attr validate_shape: bool = false. Makes the
//! variable if there is none. The value is shared, not copied, as by `Assign`.

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{Cost, Exactness, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, ensure};

use super::NO_GRADIENT;
use super::variable::find_to_assign;

pub(crate) static OP: OpDef = OpDef {
    name: "AssignVariableOp",
    inputs: &["resource: resource", "value: dtype"],
    attrs: &["dtype: type", "validate_shape: bool = false"],
    stateful: true,
    gradient: NO_GRADIENT,
    kernels: &[cpu(&[], build)],
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    scripts: &[VALUES, SHAPES],
    ..OpDef::BLANK
};

const VALUES: Script = script(
    "values of several types",
    "v = VarHandleOp() {dtype=DT_STRING, shape=[2], shared_name='v'}
     words = string[2]{one, two}
     set_v = AssignVariableOp(v, words)
     read_v = ReadVariableOp(v, ^set_v) {dtype=DT_STRING}
     e = VarHandleOp() {dtype=DT_FLOAT, shape=[0,3], shared_name='e'}
     none = float[0,3]{}
     set_e = AssignVariableOp(e, none)
     read_e = ReadVariableOp(e, ^set_e) {dtype=DT_FLOAT}
     b = VarHandleOp() {dtype=DT_BOOL, shape=[], shared_name='b'}
     yes = bool[]{true}
     set_b = AssignVariableOp(b, yes)
     read_b = ReadVariableOp(b, ^set_b) {dtype=DT_BOOL}",
    &["fetch read_v, read_e, read_b => string[2]{one, two}; float[0,3]{}; bool[]{true}"],
);

const SHAPES: Script = script(
    "shapes that differ",
    "v = VarHandleOp() {dtype=DT_FLOAT, shape=?, shared_name='v'}
     two = float[2]{1, 2}
     three = float[3]{1, 2, 3}
     set_two = AssignVariableOp(v, two)
     check_two = AssignVariableOp(v, two) {validate_shape=true}
     set_three = AssignVariableOp(v, three)
     read = ReadVariableOp(v) {dtype=DT_FLOAT}",
    &[
        "run check_two",
        "run set_three",
        "run check_two fails INVALID_ARGUMENT Trying to assign to variable with tensor with wrong shape. Expected [3] got [2]",
        "fetch read => float[3]{1, 2, 3}",
        "run set_two",
        "fetch read => float[2]{1, 2}",
    ],
);

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let validate_shape = node.attrs.bool("validate_shape")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let variable = find_to_assign(ctx, 0)?;
        let value = ctx.take(1)?;
        let mut slot = variable.write();
        if let Some(old) = &*slot {
            ensure!(
                old.dtype() == value.dtype(),
                invalid_argument,
                "Trying to assign variable with wrong dtype. Expected {} got {}",
                old.dtype(),
                value.dtype()
            );
            ensure!(
                !validate_shape || old.shape() == value.shape(),
                invalid_argument,
                "Trying to assign to variable with tensor with wrong shape. Expected {} got {}",
                old.shape(),
                value.shape()
            );
        }
        let old = slot.replace(value);
        drop(slot);
        // Freed after the lock is released.
        drop(old);
        Ok(())
    })
}
