//! `Placeholder`, `PlaceholderV2`: a tensor that must be fed.
//!
//! TensorFlow: Placeholder() -> output: dtype, with attrs dtype: type, shape: shape. A feed replaces the
//! node, so the kernel only runs, and fails, where the feed is missing.

use tensorfleet_graph::example::script;
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, invalid_argument};

const PLACEHOLDER: OpDef = OpDef {
    outputs: &["output: dtype"],
    infer: infer::from_shape_attr,
    gradient: Gradient::Stop("a placeholder has no inputs"),
    kernels: &[cpu(&[], build)],
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "Placeholder",
        attrs: &["dtype: type", "shape: shape = {unknown_rank: true}"],
        scripts: &[
            script(
                "not fed",
                "ph = Placeholder() {dtype=float}",
                &[
                    "fetch ph fails INVALID_ARGUMENT You must feed a value for placeholder tensor 'ph' with dtype float",
                ],
            ),
            script(
                "not fed, with a shape",
                "ph = Placeholder() {dtype=int32, shape=[?,3]}
                 y = Identity(ph)",
                &["fetch y fails INVALID_ARGUMENT 'ph' with dtype int32 and shape [?,3]"],
            ),
        ],
        ..PLACEHOLDER
    },
    OpDef {
        name: "PlaceholderV2",
        attrs: &["dtype: type", "shape: shape"],
        deprecated: 23,
        scripts: &[script(
            "not fed",
            "ph = PlaceholderV2() {dtype=float, shape=[2]}",
            &[
                "fetch ph fails INVALID_ARGUMENT You must feed a value for placeholder tensor 'ph' with dtype float and shape [2]",
            ],
        )],
        ..PLACEHOLDER
    },
];

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let shape = node.attrs.shape("shape")?;
    let (name, dtype) = (&node.name, node.attrs.dtype("dtype")?);
    let shape = match shape.rank() {
        None | Some(0) => String::new(),
        Some(_) => format!(" and shape {shape}"),
    };
    let missing = invalid_argument!(
        "You must feed a value for placeholder tensor '{name}' with dtype {dtype}{shape}"
    );
    AnyKernel::sync(move |_: &mut KernelCtx<'_>| Err(missing.clone()))
}
