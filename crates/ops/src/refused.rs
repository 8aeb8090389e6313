//! Ops that are known and do not run: a graph that holds them loads, and runs where it does not need them. A step that
//! does need them fails, with the code and words of TensorFlow's servers where these do not run them either.
//!
//! | ops | why |
//! |---|---|
//! | `PyFunc`, `PyFuncStateless`, `EagerPyFunc` | the functions are Python's, in the process that built the graph |
//! | `DatasetToGraph`, `DatasetToGraphV2`, `SerializeIterator`, `DeserializeIterator`, see `dataset/iterator/refused.rs` | pipelines are not written down |
//! | `GetSessionHandle`, `GetSessionHandleV2`, `GetSessionTensor`, `DeleteSessionTensor` | a server's sessions keep no tensors between steps |

use tensorfleet_graph::{Cost, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, failed_precondition, invalid_argument};

pub(crate) static OPS: [OpDef; 7] = [
    OpDef {
        name: "PyFunc",
        stateful: true,
        ..PYTHON
    },
    OpDef {
        name: "PyFuncStateless",
        ..PYTHON
    },
    OpDef {
        name: "EagerPyFunc",
        attrs: &[
            "token: string",
            "is_async: bool = false",
            "Tin: list(type) >= 0",
            "Tout: list(type) >= 0",
        ],
        stateful: true,
        ..PYTHON
    },
    OpDef {
        name: "GetSessionHandle",
        inputs: &["value: T"],
        outputs: &["handle: string"],
        attrs: &["T: type"],
        ..SESSION_STATE
    },
    OpDef {
        name: "GetSessionHandleV2",
        inputs: &["value: T"],
        outputs: &["handle: resource"],
        attrs: &["T: type"],
        ..SESSION_STATE
    },
    OpDef {
        name: "GetSessionTensor",
        inputs: &["handle: string"],
        outputs: &["value: dtype"],
        attrs: &["dtype: type"],
        ..SESSION_STATE
    },
    OpDef {
        name: "DeleteSessionTensor",
        inputs: &["handle: string"],
        ..SESSION_STATE
    },
];

const PYTHON: OpDef = OpDef {
    inputs: &["input: Tin"],
    outputs: &["output: Tout"],
    attrs: &[
        "token: string",
        "Tin: list(type) >= 0",
        "Tout: list(type) >= 0",
    ],
    gradient: Gradient::None("the function is Python's"),
    kernels: &[cpu(&[], build_python)],
    cost: Cost::Cheap,
    ..OpDef::BLANK
};

const SESSION_STATE: OpDef = OpDef {
    stateful: true,
    gradient: Gradient::Stop("a handle is no number"),
    kernels: &[cpu(&[], build_session_state)],
    cost: Cost::Cheap,
    ..OpDef::BLANK
};

fn build_python(node: &NodeInfo) -> Result<AnyKernel> {
    let (op, token) = (node.op.clone(), node.attrs.str("token")?.to_owned());
    AnyKernel::sync(move |_: &mut KernelCtx<'_>| {
        Err(invalid_argument!(
            "Could not find callback with key={token} in the registry. {op} calls a Python function of the program that \
             built the graph, which a server does not have: compute it there and feed the result, or use TensorFlow's \
             ops"
        ))
    })
}

fn build_session_state(node: &NodeInfo) -> Result<AnyKernel> {
    let op = node.op.clone();
    AnyKernel::sync(move |_: &mut KernelCtx<'_>| {
        Err(failed_precondition!(
            "{} called on null session state. Sessions keep no tensors between steps: keep them in variables, or \
             fetch and feed them",
            op.trim_end_matches("V2")
        ))
    })
}
