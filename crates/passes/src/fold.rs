//! Constant folding: what depends on constants only is computed once, now.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;
use tensorfleet_graph::{Graph, Node, NodeId, Output};
use tensorfleet_kernel::{AnyKernel, Attrs, DeviceType, KernelCtx, StepEnv, Value};
use tensorfleet_status::Result;
use tensorfleet_tensor::{DType, Tensor};

use crate::prune::prune;
use crate::roots::Roots;

/// A result may be this large, or as large as what it is computed from: folding must not blow graphs up.
const MAX_RESULT_BYTES: usize = 1 << 20;

/// All results together, besides what they are computed from: a graph of some kilobytes can ask for any number of them.
const MAX_ALL_BYTES: usize = 256 << 20;

/// Folding takes no longer: what is left then is computed by the steps, which have deadlines and can be cancelled.
const MAX_TIME: Duration = Duration::from_secs(1);

/// Replaces stateless nodes all of whose inputs are constants by constants. A node whose kernel
/// objects stays as it is: the error belongs to the step that runs it.
pub fn fold(mut graph: Graph, roots: &Roots, env: &Arc<StepEnv>) -> Result<Graph> {
    let mut known: Vec<Option<Vec<Tensor>>> = vec![None; graph.len()];
    let mut folded: Vec<NodeId> = Vec::new();
    let env = Arc::new(env.until(env.clock.monotonic() + MAX_TIME));
    let mut bytes = 0usize;
    for id in graph.topological_order()? {
        let node = graph.node(id);
        if node.op_name() == "Const" {
            if node.control_inputs.is_empty() {
                known[id.index()] = node
                    .attrs
                    .tensor("value")
                    .ok()
                    .map(|value| vec![value.clone()]);
            }
            continue;
        }
        if roots.contains(&node.name) || !may_fold(node) {
            continue;
        }
        if env.cancel.is_over() {
            break;
        }
        let inputs: Option<Vec<Tensor>> = node
            .inputs
            .iter()
            .map(|input| {
                known[input.node.index()]
                    .as_ref()?
                    .get(input.port as usize)
                    .cloned()
            })
            .collect();
        let Some(inputs) = inputs else { continue };
        let given: usize = inputs.iter().map(Tensor::byte_size).sum();
        let Some(results) = compute(&graph, node, inputs, &env) else {
            continue;
        };
        let taken: usize = results.iter().map(Tensor::byte_size).sum();
        bytes = bytes.saturating_add(taken.saturating_sub(given));
        if bytes > MAX_ALL_BYTES {
            break;
        }
        known[id.index()] = Some(results);
        folded.push(id);
    }
    if folded.is_empty() {
        return Ok(graph);
    }
    replace(&mut graph, &folded, &known)?;
    prune(&graph, roots.ids(&graph))
}

fn may_fold(node: &Node) -> bool {
    let plain = |dtype: DType| dtype.is_plain() || dtype == DType::String;
    let is_control_flow = matches!(
        node.op_name(),
        "Switch"
            | "Merge"
            | "Enter"
            | "Exit"
            | "NextIteration"
            | "LoopCond"
            | "_SwitchN"
            | "PlaceholderWithDefault"
            | "CheckNumerics"
            | "GuaranteeConst"
    );
    !node.inputs.is_empty()
        && node.control_inputs.is_empty()
        && !node.is_stateful()
        && !is_control_flow
        && !node.output_types.is_empty()
        && node
            .output_types
            .iter()
            .all(|port| !port.is_ref && plain(port.dtype))
}

fn compute(
    graph: &Graph,
    node: &Node,
    inputs: Vec<Tensor>,
    env: &Arc<StepEnv>,
) -> Option<Vec<Tensor>> {
    let given: usize = inputs.iter().map(Tensor::byte_size).sum();
    let info = node.info();
    let AnyKernel::Sync(kernel) = graph.registry().build_kernel(&info, DeviceType::Cpu).ok()?
    else {
        return None;
    };
    let mut inputs: Vec<Value> = inputs.into_iter().map(Value::Tensor).collect();
    let mut outputs: Vec<Value> = std::iter::repeat_with(Value::default)
        .take(node.output_types.len())
        .collect();
    let ran = catch_unwind(AssertUnwindSafe(|| {
        let mut ctx = KernelCtx::new(&info, env, &mut inputs, &mut outputs).watched(true);
        env.par.watch(|| kernel.compute(&mut ctx))
    }));
    if !matches!(ran, Ok(Ok(()))) {
        return None;
    }
    let tensors: Option<Vec<Tensor>> = outputs
        .into_iter()
        .map(|value| match value {
            Value::Tensor(tensor) => Some(tensor),
            _ => None,
        })
        .collect();
    tensors.filter(|tensors| {
        tensors.iter().map(Tensor::byte_size).sum::<usize>() <= MAX_RESULT_BYTES.max(given)
    })
}

/// Lets the consumers of folded nodes read constants. Only results that something else reads become nodes.
fn replace(graph: &mut Graph, folded: &[NodeId], known: &[Option<Vec<Tensor>>]) -> Result<()> {
    let is_folded = {
        let mut flags = vec![false; graph.len()];
        folded.iter().for_each(|id| flags[id.index()] = true);
        flags
    };
    let op = graph.registry().find("Const")?.clone();
    let consumers = graph.consumers();
    for id in folded {
        let Some(results) = &known[id.index()] else {
            continue;
        };
        let mut constants: Vec<Option<NodeId>> = vec![None; results.len()];
        for (consumer, input) in &consumers[id.index()] {
            let Some(input) = input.filter(|_| !is_folded[consumer.index()]) else {
                continue;
            };
            let port = graph.node(*consumer).inputs[input as usize].port as usize;
            let constant = match constants[port] {
                Some(constant) => constant,
                None => {
                    let name =
                        graph.unique_name(&format!("{}/_folded_{port}", graph.node(*id).name));
                    let mut attrs = Attrs::new();
                    attrs.set("dtype", results[port].dtype().into());
                    attrs.set("value", results[port].clone().into());
                    let device = graph.node(*id).device.clone();
                    let constant = graph.add(
                        name,
                        op.clone(),
                        attrs,
                        SmallVec::new(),
                        SmallVec::new(),
                        device,
                    )?;
                    constants[port] = Some(constant);
                    constant
                }
            };
            graph.set_input(*consumer, input as usize, Output::from(constant))?;
        }
    }
    Ok(())
}
