//! `VariableV2` and `Variable`: a mutable tensor, handed on by reference.
//!
//! TensorFlow: VariableV2() -> ref: Ref(dtype), with attrs shape: shape, dtype: type, container: string = "",
//! shared_name: string = "". The state is found by (container, shared name or node name) on the device and
//! outlives sessions. An existing variable of that name is used as it is, whatever `shape` says.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo, RefVar, Resource, Value};
use tensorfleet_status::{Result, ensure, invalid_argument};
use tensorfleet_tensor::{DType, PartialShape, PortType, Shape};

use super::cache::Cache;
use super::names::SharedName;

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "VariableV2",
        infer: infer::from_shape_attr,
        scripts: &[
            script(
                "assigned, read, kept between steps",
                "v = VariableV2() {dtype=DT_FLOAT, shape=[2]}
                 c = float[2]{1, 2}
                 init = Assign(v, c)
                 read = Identity(v)",
                &[
                    "fetch read fails FAILED_PRECONDITION Attempting to use uninitialized value v",
                    "fetch init => float[2]{1, 2}",
                    "fetch read, v => float[2]{1, 2}; float[2]{1, 2}",
                ],
            ),
            SHARED,
            script(
                "names and shapes that are none",
                "a = VariableV2() {dtype=DT_FLOAT, shape=[2], container='a b'}
                 b = VariableV2() {dtype=DT_FLOAT, shape=[2], shared_name='_b'}
                 c = VariableV2() {dtype=DT_FLOAT, shape=[?,2]}",
                &[
                    "fetch a fails INVALID_ARGUMENT container contains invalid characters: a b",
                    "fetch b fails INVALID_ARGUMENT shared_name cannot start with '_':_b",
                    "fetch c fails INVALID_ARGUMENT Shape [?,2] is not fully defined",
                ],
            ),
        ],
        ..VARIABLE
    },
    OpDef {
        name: "Variable",
        // A scalar stands for "not known" in this older op.
        infer: infer::unknown,
        scripts: &[script(
            "of unknown shape",
            "v = Variable() {dtype=DT_INT32, shape=[]}
             c = int32[2]{1, 2}
             init = Assign(v, c) {validate_shape=false}",
            &["run init", "fetch v => int32[2]{1, 2}"],
        )],
        ..VARIABLE
    },
];

const SHARED: Script = script(
    "shared by name",
    "a = VariableV2() {dtype=DT_INT64, shape=[]}
     b = VariableV2() {dtype=DT_INT64, shape=[3], shared_name='a'}
     c = VariableV2() {dtype=DT_FLOAT, shape=[], shared_name='a'}
     d = VariableV2() {dtype=DT_INT64, shape=[], shared_name='a', container='other'}
     seven = int64[]{7}
     init = Assign(a, seven)
     known = IsVariableInitialized(d)",
    &[
        "run init",
        "fetch b => int64[]{7}",
        "fetch c fails INTERNAL of type int64_ref does not match declared output type float_ref",
        "fetch known => bool[]{false}",
    ],
);

const VARIABLE: OpDef = OpDef {
    outputs: &["ref: Ref(dtype)"],
    attrs: &[
        "shape: shape",
        "dtype: type",
        "container: string = ''",
        "shared_name: string = ''",
    ],
    stateful: true,
    gradient: Gradient::Stop("a variable has no inputs"),
    kernels: &[cpu(&[], build)],
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

/// A variable in the resource manager.
struct Kept {
    var: Arc<RefVar>,
    removed: AtomicBool,
}

impl Resource for Kept {
    fn type_name(&self) -> &'static str {
        "N10tensorflow9LegacyVarE"
    }

    fn on_removed(&self) {
        self.removed.store(true, Ordering::Release);
    }
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let names = SharedName::of(node)?;
    let dtype = node.attrs.dtype("dtype")?;
    let shape = declared_shape(node.attrs.shape("shape")?)?;
    let cache: Cache<Arc<Kept>> = Cache::new();
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let resources = &ctx.env().resources;
        let kept = cache.get(
            resources,
            |kept| !kept.removed.load(Ordering::Acquire),
            || {
                let kept: Arc<Kept> =
                    resources.lookup_or_create(names.container(ctx), &names.name, || {
                        let var = RefVar::declared(names.name.clone(), dtype, shape.clone());
                        Ok(Kept {
                            var: Arc::new(var),
                            removed: AtomicBool::new(false),
                        })
                    })?;
                check_type(kept.var.dtype(), dtype)?;
                Ok(kept)
            },
        )?;
        ctx.set_value(0, Value::Ref(kept.var.clone()));
        Ok(())
    })
}

/// The shape of the value to come. An unknown one counts as a scalar, as in TensorFlow.
pub(super) fn declared_shape(shape: &PartialShape) -> Result<Shape> {
    match (shape.dims(), shape.to_shape()) {
        (None, _) => Ok(Shape::scalar()),
        (Some(_), Some(shape)) => Ok(shape),
        (Some(_), None) => Err(invalid_argument!("Shape {shape} is not fully defined")),
    }
}

fn check_type(found: DType, wanted: DType) -> Result<()> {
    ensure!(
        found == wanted,
        internal,
        "output 0 of type {} does not match declared output type {}",
        PortType::reference(found),
        PortType::reference(wanted)
    );
    Ok(())
}
