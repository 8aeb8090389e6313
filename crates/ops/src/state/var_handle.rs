//! `VarHandleOp` and `_VarHandlesOp`: handles to variables.
//!
//! TensorFlow: VarHandleOp() -> resource: resource, with attrs container: string = "", shared_name: string = "",
//! debug_name: string = "", dtype: type, shape: shape, allowed_devices: list(string) = []. The variable is named by
//! `shared_name` alone: without one it has the empty name, as in TensorFlow. TensorFlow's name for anonymous
//! variables makes a new variable at every run. `_VarHandlesOp` is many of them at once.

use std::sync::Arc;

use tensorfleet_graph::example::{Script, script};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{DType, PartialShape, Tensor};

use super::cache::Cache;
use super::names::container_or_default;
use super::variable::{Variable, is_anonymous};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "VarHandleOp",
        outputs: &["resource: resource"],
        attrs: &[
            "container: string = ''",
            "shared_name: string = ''",
            "debug_name: string = ''",
            "dtype: type",
            "shape: shape",
            "allowed_devices: list(string) = []",
        ],
        kernels: &[cpu(&[], build_one)],
        scripts: &[SHARED, ANONYMOUS_VARIABLES],
        ..HANDLES
    },
    OpDef {
        name: "_VarHandlesOp",
        outputs: &["resources: N * resource"],
        attrs: &[
            "containers: list(string)",
            "shared_names: list(string)",
            "N: int >= 0",
            "dtypes: list(type)",
            "shapes: list(shape)",
        ],
        kernels: &[cpu(&[], build_many)],
        scripts: &[script(
            "two at once",
            "h = _VarHandlesOp() {containers=['', ''], shared_names=['a', 'b'], N=2, dtypes=[DT_FLOAT, DT_INT32], shapes=[[], [2]]}
             one = float[]{1}
             two = int32[2]{2, 3}
             set_a = AssignVariableOp(h:0, one)
             set_b = AssignVariableOp(h:1, two)
             b = VarHandleOp() {shared_name='b', dtype=DT_INT32, shape=[2]}
             read = _ReadVariablesOp([h:0, b]) {dtypes=[DT_FLOAT, DT_INT32]}",
            &[
                "run set_a, set_b",
                "fetch read:0, read:1 => float[]{1}; int32[2]{2, 3}",
            ],
        )],
        ..HANDLES
    },
];

const HANDLES: OpDef = OpDef {
    stateful: true,
    infer: infer::scalar,
    gradient: Gradient::Stop("a handle has no inputs"),
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

const SHARED: Script = script(
    "one name, one variable",
    "a = VarHandleOp() {dtype=DT_FLOAT, shape=[2], shared_name='v'}
     b = VarHandleOp() {dtype=DT_FLOAT, shape=[2], shared_name='v'}
     c = VarHandleOp() {dtype=DT_FLOAT, shape=[2], shared_name='v', container='other'}
     d = VarHandleOp() {dtype=DT_FLOAT, shape=[2]}
     e = VarHandleOp() {dtype=DT_FLOAT, shape=[2]}
     one = float[2]{1, 2}
     set_a = AssignVariableOp(a, one)
     set_d = AssignVariableOp(d, one)
     known_b = VarIsInitializedOp(b)
     known_c = VarIsInitializedOp(c)
     known_e = VarIsInitializedOp(e)",
    &[
        "fetch known_b => bool[]{false}",
        "run set_a, set_d",
        "fetch known_b, known_c, known_e => bool[]{true}; bool[]{false}; bool[]{true}",
    ],
);

const ANONYMOUS_VARIABLES: Script = script(
    "anonymous: new at every run",
    "h = VarHandleOp() {dtype=DT_FLOAT, shape=[], shared_name='cd2c89b7-88b7-44c8-ad83-06c2a9158347'}
     one = float[]{1}
     before = VarIsInitializedOp(h)
     set = AssignVariableOp(h, one, ^before)
     read = ReadVariableOp(h, ^set) {dtype=DT_FLOAT}
     stays = DestroyResourceOp(h, ^read)
     after = VarIsInitializedOp(h, ^stays)",
    &[
        "fetch before, read, after => bool[]{false}; float[]{1}; bool[]{true}",
        "fetch before, read, after => bool[]{false}; float[]{1}; bool[]{true}",
    ],
);

/// One handle and how to make it.
struct Maker {
    container: String,
    name: String,
    dtype: DType,
    shape: PartialShape,
    cache: Cache<(Arc<Variable>, Tensor)>,
}

impl Maker {
    fn handle(&self, ctx: &KernelCtx<'_>) -> Result<Tensor> {
        let env = ctx.env();
        let make = || {
            let container = container_or_default(&self.container, ctx);
            let variable = Variable::named(&env.resources, container, &self.name)?;
            let handle = variable.handle(&env.device.name, self.dtype, self.shape.clone());
            Ok((variable, handle))
        };
        let (_, handle) = if is_anonymous(&self.name) {
            make()?
        } else {
            let live = |found: &(Arc<Variable>, Tensor)| found.0.is_live();
            self.cache.get(&env.resources, live, make)?
        };
        Ok(handle)
    }
}

fn build_one(node: &NodeInfo) -> Result<AnyKernel> {
    let maker = Maker {
        container: node.attrs.str("container")?.to_owned(),
        name: node.attrs.str("shared_name")?.to_owned(),
        dtype: node.attrs.dtype("dtype")?,
        shape: node.attrs.shape("shape")?.clone(),
        cache: Cache::new(),
    };
    build(vec![maker])
}

fn build_many(node: &NodeInfo) -> Result<AnyKernel> {
    let containers = node.attrs.bytes_list("containers")?;
    let names = node.attrs.bytes_list("shared_names")?;
    let dtypes = node.attrs.dtypes("dtypes")?;
    let shapes = node.attrs.shapes("shapes")?;
    let count = node.output_types.len();
    if [containers.len(), names.len(), dtypes.len(), shapes.len()] != [count; 4] {
        return Err(invalid_argument!(
            "N = {count} handles, but {} containers, {} shared names, {} dtypes and {} shapes",
            containers.len(),
            names.len(),
            dtypes.len(),
            shapes.len()
        ));
    }
    let makers = containers.iter().zip(names).zip(dtypes).zip(shapes);
    let makers = makers.map(|(((container, name), dtype), shape)| Maker {
        container: String::from_utf8_lossy(container).into_owned(),
        name: String::from_utf8_lossy(name).into_owned(),
        dtype,
        shape: shape.clone(),
        cache: Cache::new(),
    });
    build(makers.collect())
}

fn build(makers: Vec<Maker>) -> Result<AnyKernel> {
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        for (index, maker) in makers.iter().enumerate() {
            let handle = maker.handle(ctx)?;
            ctx.set(index, handle);
        }
        Ok(())
    })
}
