//! Ops that are known and not built: where a step needs one, it fails. Graphs that hold them load.

use tensorfleet_graph::{Cost, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, unimplemented};

use super::ITERATOR;

const REFUSED: OpDef = OpDef {
    kernels: &[cpu(&[], build)],
    cost: Cost::Cheap,
    ..ITERATOR
};

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        name: "DatasetToGraph",
        inputs: &["input_dataset: variant"],
        outputs: &["graph: string"],
        attrs: &[
            "stateful_whitelist: list(string) >= 0 = []",
            "allow_stateful: bool = false",
            "strip_device_assignment: bool = false",
        ],
        stateful: false,
        infer: infer::scalar,
        ..REFUSED
    },
    OpDef {
        name: "DatasetToGraphV2",
        inputs: &["input_dataset: variant"],
        outputs: &["graph: string"],
        attrs: &[
            "external_state_policy: int = 0",
            "strip_device_assignment: bool = false",
        ],
        stateful: false,
        infer: infer::scalar,
        ..REFUSED
    },
    OpDef {
        name: "DeserializeIterator",
        inputs: &["resource_handle: resource", "serialized: variant"],
        ..REFUSED
    },
    OpDef {
        name: "SerializeIterator",
        inputs: &["resource_handle: resource"],
        outputs: &["serialized: variant"],
        attrs: &["external_state_policy: int = 0"],
        ..REFUSED
    },
];

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let op = node.op.clone();
    AnyKernel::sync(move |_: &mut KernelCtx<'_>| {
        Err(unimplemented!(
            "{op}: pipelines are not written down, make the iterator anew instead"
        ))
    })
}
