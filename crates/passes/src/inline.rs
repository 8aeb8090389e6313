//! Function inlining: a call becomes the body it calls.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use tensorfleet_graph::{FunctionBody, Graph, Library, Node, NodeId, Output};
use tensorfleet_kernel::{AttrValue, Attrs, FuncRef};
use tensorfleet_status::{Result, invalid_argument};

use crate::lower::{PIVOTED, lower};
use crate::prune::prune;
use crate::roots::Roots;
use crate::stand_ins::StandIns;

/// The op that calls the gradient of a function.
const GRADIENT: &str = "SymbolicGradient";

/// Ops that have to do with state, but leave nothing behind that anybody could see.
const READS: &[&str] = &[
    "VarHandleOp",
    "ReadVariableOp",
    "VarIsInitializedOp",
    "ResourceGather",
    "ResourceGatherNd",
    "Variable",
    "VariableV2",
];

/// Recursion deeper than this is left to run as calls.
const MAX_DEPTH: usize = 24;

/// So many nodes of bodies become part of a graph; what is called besides is left to run as calls. Some kilobytes of functions
/// that call each other twice ask for more than memory has room for.
const MAX_NODES: usize = 1 << 17;

/// Replaces calls by bodies, again and again until none is left or recursion is too deep.
///
/// A call that runs has all of its effects, whatever of its results is wanted: what has effects becomes a root.
///
/// With `lowers`, functional control flow becomes Switch, Merge and frames on the way, where the client asked for it.
pub fn inline(mut graph: Graph, roots: &mut Roots, lowers: bool) -> Result<Graph> {
    if lowers {
        graph = lower(graph, roots)?;
    }
    inline_some(graph, roots, false, lowers)
}

/// Inlines only calls of gradients, and what calls them: these have no body until then.
pub(crate) fn inline_gradients(graph: Graph, roots: &mut Roots) -> Result<Graph> {
    inline_some(graph, roots, true, false)
}

fn inline_some(
    mut graph: Graph,
    roots: &mut Roots,
    only_gradients: bool,
    lowers: bool,
) -> Result<Graph> {
    let most = graph.len().saturating_add(MAX_NODES);
    for _ in 0..MAX_DEPTH {
        let calls: Vec<NodeId> = graph
            .nodes()
            .filter(|(_, node)| match callee(node) {
                Some(func) if only_gradients => {
                    let mut seen = FxHashSet::default();
                    node.op_name() == GRADIENT
                        || calls_gradient(graph.library(), &func.name, &mut seen)
                }
                other => other.is_some(),
            })
            .map(|(id, _)| id)
            .collect();
        if calls.is_empty() || graph.len() >= most {
            break;
        }
        let frames = graph.nodes().any(|(_, node)| {
            matches!(
                node.op_name(),
                "Enter" | "Switch" | "RefSwitch" | "_SwitchN"
            )
        });
        let mut stand_ins = StandIns::default();
        for call in calls {
            if graph.len() >= most {
                break;
            }
            let effects = inline_call(&mut graph, call, frames, &mut stand_ins)?;
            roots.add(&graph, effects);
        }
        stand_ins.connect(&mut graph)?;
        graph = prune(&graph, roots.ids(&graph))?;
        if lowers {
            graph = lower(graph, roots)?;
        }
    }
    Ok(graph)
}

/// Whether a function calls a gradient, itself or through others.
fn calls_gradient(library: &Library, name: &str, seen: &mut FxHashSet<String>) -> bool {
    let Some(function) = library.get(name) else {
        return false;
    };
    if !seen.insert(name.to_owned()) {
        return false;
    }
    function
        .calls()
        .any(|call| call == GRADIENT || calls_gradient(library, call, seen))
}

/// The function that a node calls, if it may be inlined.
fn callee(node: &Node) -> Option<FuncRef> {
    if node.op_name() == GRADIENT {
        return node.attrs.func("f").ok().cloned();
    }
    let is_set = |attrs: &Attrs| matches!(attrs.get("_noinline"), Some(AttrValue::B(true)));
    if is_set(&node.attrs) {
        return None;
    }
    match node.op_name() {
        "PartitionedCall" | "StatefulPartitionedCall" => node.attrs.func("f").ok().cloned(),
        _ => node.op.function.as_ref().map(|function| FuncRef {
            name: function.name().into(),
            attrs: node.attrs.clone(),
        }),
    }
}

/// Copies the body of one call into the graph; its results stand in for those of the call.
///
/// What waits for the call waits for all of its results and effects; what the call waits for, its
/// first nodes wait for. Gives the nodes with effects.
fn inline_call(
    graph: &mut Graph,
    call: NodeId,
    in_control_flow: bool,
    stand_ins: &mut StandIns,
) -> Result<Vec<NodeId>> {
    let node = graph.node(call).clone();
    let Some(func) = callee(&node) else {
        return Ok(Vec::new());
    };
    let library = graph.library().clone();
    let registry = graph.registry().clone();
    let body = match library.get(&func.name) {
        _ if node.op_name() == GRADIENT => FunctionBody::gradient(&func, &registry, &library)?,
        Some(function) => FunctionBody::instantiate(function, &func.attrs, &registry, &library)?,
        None => return Ok(Vec::new()),
    };
    // Gradients of conditionals and loops inside come with functions of their own.
    graph.set_library(body.graph.library().clone());

    if body.rets.len() != node.output_types.len() && node.op_name() == GRADIENT {
        return Err(invalid_argument!(
            "SymGrad expects to return {} gradients, one for each argument of {}, but get {} instead",
            node.output_types.len(),
            func.name,
            body.rets.len()
        ));
    }
    let args: SmallVec<[Output; 2]> = node
        .inputs
        .iter()
        .map(|input| stand_ins.resolve(*input))
        .collect();
    let before = Before::new(graph, &node, &args, in_control_flow)?;
    let mut moved: Vec<Option<Output>> = vec![None; body.graph.len()];
    for (position, arg) in body.args.iter().enumerate() {
        moved[arg.index()] = args.get(position).copied();
    }
    let mut ends: SmallVec<[NodeId; 1]> = SmallVec::new();
    let mut effects = Vec::new();
    let mut results: Vec<Output> = vec![Output::from(call); body.rets.len()];
    let mut back_edges = Vec::new();
    for id in body.graph.topological_order()? {
        if body.args.contains(&id) {
            continue;
        }
        let inner = body.graph.node(id);
        if let Some(position) = body.rets.iter().position(|ret| *ret == id) {
            let source = inner.inputs[0];
            results[position] = copied(&moved, source).unwrap_or(source);
            continue;
        }
        let mut inputs: SmallVec<[Output; 2]> = SmallVec::new();
        for (port, input) in inner.inputs.iter().enumerate() {
            match copied(&moved, *input) {
                Some(output) => inputs.push(output),
                None => {
                    // The source of a back edge comes later: point somewhere of the right type until it is there.
                    back_edges.push((id, port, *input));
                    inputs.push(inputs.first().copied().unwrap_or(Output::from(call)));
                }
            }
        }
        let mut control: SmallVec<[NodeId; 1]> = inner
            .control_inputs
            .iter()
            .filter_map(|c| copied(&moved, Output::from(*c)).map(|o| o.node))
            .collect();
        let is_first = inner.inputs.is_empty() && inner.control_inputs.is_empty();
        if let Some(wait) = before.for_node(is_first, inner.is_stateful()) {
            control.push(wait);
        }
        let name = graph.unique_name(&format!("{}/{}", node.name, inner.name));
        let device: Arc<str> = if inner.device.is_empty() {
            node.device.clone()
        } else {
            inner.device.clone()
        };
        let copy = graph.add(
            name,
            inner.op.clone(),
            inner.attrs.clone(),
            inputs,
            control,
            device,
        )?;
        if inner.is_stateful() || body.control_rets.contains(&id) {
            ends.push(copy);
            // A gradient's body repeats the function's, whose effects are not to be had twice. A branch or loop that was
            // lowered has the effects that its results ask for, as in TensorFlow.
            let is_call = node.op_name() != GRADIENT && node.attrs.get(PIVOTED).is_none();
            if is_call && !READS.contains(&inner.op_name()) {
                effects.push(copy);
            }
        }
        moved[id.index()] = Some(Output::from(copy));
    }
    for (id, port, input) in back_edges {
        if let (Some(target), Some(source)) = (moved[id.index()], copied(&moved, input)) {
            graph.set_input(target.node, port, source)?;
        }
    }
    for result in &results {
        if result.node != call && !ends.contains(&result.node) {
            ends.push(result.node);
        }
    }
    if ends.is_empty() {
        ends.extend(before.node);
    }
    stand_ins.insert(call, results, ends);
    Ok(effects)
}

fn copied(moved: &[Option<Output>], source: Output) -> Option<Output> {
    let start = moved[source.node.index()]?;
    Some(Output {
        node: start.node,
        port: start.port + source.port,
    })
}

/// What the first nodes of a body have to wait for.
struct Before {
    node: Option<NodeId>,
    always: bool,
}

impl Before {
    /// In conditionals and loops every node must hang on the call's inputs, or it would run outside of
    /// them. Where lowering put a pivot in front of the call, that alone says as much.
    fn new(
        graph: &mut Graph,
        call: &Node,
        args: &[Output],
        in_control_flow: bool,
    ) -> Result<Before> {
        let mut sources = call.control_inputs.clone();
        if in_control_flow && call.attrs.get(PIVOTED).is_none() {
            for input in args {
                if !sources.contains(&input.node) {
                    sources.push(input.node);
                }
            }
        }
        let node = match sources.as_slice() {
            [] => None,
            [only] => Some(*only),
            _ => Some(no_op(
                graph,
                &format!("{}/_begin", call.name),
                sources,
                &call.device,
            )?),
        };
        Ok(Before {
            node,
            always: in_control_flow,
        })
    }

    fn for_node(&self, is_first: bool, is_stateful: bool) -> Option<NodeId> {
        // Outside of control flow a constant need not wait; an effect must.
        self.node
            .filter(|_| is_stateful || (is_first && self.always))
    }
}

fn no_op(
    graph: &mut Graph,
    name: &str,
    control: SmallVec<[NodeId; 1]>,
    device: &Arc<str>,
) -> Result<NodeId> {
    let op = graph.registry().find("NoOp")?.clone();
    let name = graph.unique_name(name);
    graph.add(
        name,
        op,
        Attrs::new(),
        SmallVec::new(),
        control,
        device.clone(),
    )
}
