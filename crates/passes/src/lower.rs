//! Lowering: functional `If`, `Case` and `While` become Switch, Merge and frames around calls.
//!
//! Only where the client asked for it (`_lower_using_switch_merge`), as TensorFlow does: then branches
//! run next to the rest of the graph, iterations overlap, and parts can be placed apart.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};
use tensorfleet_graph::{FunctionBody, Graph, Node, NodeId, Output};
use tensorfleet_kernel::{AttrList, AttrValue, Attrs, FuncRef};
use tensorfleet_status::Result;
use tensorfleet_tensor::{DType, PortType};

use crate::prune::prune;
use crate::roots::Roots;
use crate::stand_ins::StandIns;

/// Marks calls whose control inputs are dead exactly where the call is to be.
pub(crate) const PIVOTED: &str = "_tensorfleet_pivoted";

/// Lowers what asks for it.
pub fn lower(mut graph: Graph, roots: &Roots) -> Result<Graph> {
    let found: Vec<NodeId> = graph
        .nodes()
        .filter(|(_, node)| wants_lowering(node))
        .map(|(id, _)| id)
        .collect();
    if found.is_empty() {
        return Ok(graph);
    }
    let mut stand_ins = StandIns::default();
    for id in found {
        let node = graph.node(id).clone();
        let lowered = match node.op_name() {
            "If" | "StatelessIf" => {
                let branches = [
                    node.attrs.func("else_branch")?.clone(),
                    node.attrs.func("then_branch")?.clone(),
                ];
                lower_branches(&mut graph, &node, &branches)?
            }
            "Case" | "StatelessCase" => {
                let branches = node.attrs.funcs("branches")?.to_vec();
                lower_branches(&mut graph, &node, &branches)?
            }
            _ => lower_while(&mut graph, id, &node)?,
        };
        stand_ins.insert(id, lowered.outputs, lowered.waits);
    }
    stand_ins.connect(&mut graph)?;
    prune(&graph, roots.ids(&graph))
}

fn wants_lowering(node: &Node) -> bool {
    let asked = matches!(
        node.attrs.get("_lower_using_switch_merge"),
        Some(AttrValue::B(true))
    );
    let lowerable = match node.op_name() {
        // A predicate that is no bool follows rules that Switch does not know.
        "If" | "StatelessIf" => node
            .input_types
            .first()
            .is_some_and(|port| port.dtype == DType::Bool),
        "Case" | "StatelessCase" => true,
        "While" | "StatelessWhile" => !node.inputs.is_empty(),
        _ => false,
    };
    asked && lowerable
}

/// What stands for a node after lowering.
struct Lowered {
    outputs: Vec<Output>,
    /// What has ended when the node would have ended.
    waits: SmallVec<[NodeId; 1]>,
}

/// Adds nodes with the names, device and registry of one original node.
struct Adder<'a> {
    graph: &'a mut Graph,
    prefix: Arc<str>,
    device: Arc<str>,
}

impl Adder<'_> {
    /// A node called `name`, as TensorFlow calls it.
    fn add(
        &mut self,
        op: &str,
        name: &str,
        attrs: Attrs,
        inputs: SmallVec<[Output; 2]>,
        control: SmallVec<[NodeId; 1]>,
    ) -> Result<NodeId> {
        let entry = self.graph.registry().find(op)?.clone();
        let name = self.graph.unique_name(&format!("{}/{name}", self.prefix));
        self.graph
            .add(name, entry, attrs, inputs, control, self.device.clone())
    }

    fn typed(
        &mut self,
        op: &str,
        name: &str,
        dtype: DType,
        inputs: SmallVec<[Output; 2]>,
        control: SmallVec<[NodeId; 1]>,
    ) -> Result<NodeId> {
        let mut attrs = Attrs::new();
        attrs.set("T", dtype.into());
        if op == "Merge" {
            attrs.set("N", AttrValue::I(inputs.len() as i64));
        }
        self.add(op, name, attrs, inputs, control)
    }

    fn call(
        &mut self,
        name: &str,
        func: &FuncRef,
        stateful: bool,
        args: Vec<Output>,
        outputs: &[PortType],
        control: SmallVec<[NodeId; 1]>,
    ) -> Result<NodeId> {
        let mut attrs = Attrs::new();
        let types: Vec<PortType> = args
            .iter()
            .filter_map(|arg| self.graph.output_type(*arg))
            .map(|port| port.dtype.into())
            .collect();
        attrs.set("Tin", AttrValue::List(AttrList::Type(types)));
        attrs.set("Tout", AttrValue::List(AttrList::Type(outputs.to_vec())));
        attrs.set("f", AttrValue::Func(func.clone()));
        attrs.set(PIVOTED, AttrValue::B(true));
        let op = if stateful {
            "StatefulPartitionedCall"
        } else {
            "PartitionedCall"
        };
        self.add(op, name, attrs, args.into_iter().collect(), control)
    }
}

fn adder<'a>(graph: &'a mut Graph, node: &Node) -> Adder<'a> {
    Adder {
        graph,
        prefix: node.name.clone(),
        device: node.device.clone(),
    }
}

/// One call per branch, each behind a Switch on the selector; a Merge per output.
fn lower_branches(graph: &mut Graph, node: &Node, branches: &[FuncRef]) -> Result<Lowered> {
    let stateful = node.is_stateful();
    let mut add = adder(graph, node);
    let selector = node.inputs[0];
    let is_if = node.input_types[0].dtype == DType::Bool;
    let count = branches.len();
    let switch = |add: &mut Adder<'_>, name: &str, data: Output, dtype: DType| -> Result<NodeId> {
        let mut attrs = Attrs::new();
        attrs.set("T", dtype.into());
        if !is_if {
            attrs.set("num_outs", AttrValue::I(count as i64));
        }
        add.add(
            if is_if { "Switch" } else { "_SwitchN" },
            name,
            attrs,
            smallvec![data, selector],
            node.control_inputs.clone(),
        )
    };
    let pivots = if is_if { "switch_pred" } else { "branch_index" };
    let pivots = switch(&mut add, pivots, selector, node.input_types[0].dtype)?;
    let mut switched = Vec::new();
    for (input, port) in node.inputs.iter().zip(&node.input_types).skip(1) {
        switched.push(switch(&mut add, "switch", *input, port.dtype)?);
    }
    let mut calls = Vec::new();
    let mut done: SmallVec<[Output; 2]> = SmallVec::new();
    for (index, branch) in branches.iter().enumerate() {
        let (pivot, call) = match (is_if, index) {
            (true, 0) => ("pivot_f".to_owned(), "else".to_owned()),
            (true, _) => ("pivot_t".to_owned(), "then".to_owned()),
            _ => (format!("pivot_{index}"), format!("branch{index}")),
        };
        let pivot = add.typed(
            "Identity",
            &pivot,
            node.input_types[0].dtype,
            smallvec![pivots.output(index)],
            SmallVec::new(),
        )?;
        let args = switched.iter().map(|switch| switch.output(index)).collect();
        let control = smallvec![pivot];
        let call = add.call(&call, branch, stateful, args, &node.output_types, control)?;
        done.push(Output::from(add.typed(
            "Identity",
            "done",
            node.input_types[0].dtype,
            smallvec![Output::from(pivot)],
            smallvec![call],
        )?));
        calls.push(call);
    }
    let mut outputs = Vec::new();
    for (port, wanted) in node.output_types.iter().enumerate() {
        let merged = calls.iter().map(|call| call.output(port)).collect();
        outputs.push(Output::from(add.typed(
            "Merge",
            if is_if { "output" } else { "merge" },
            wanted.dtype,
            merged,
            SmallVec::new(),
        )?));
    }
    let dtype = node.input_types[0].dtype;
    let end = add.typed("Merge", "branch_executed", dtype, done, SmallVec::new())?;
    Ok(Lowered {
        outputs,
        waits: smallvec![end],
    })
}

/// A frame whose iterations call condition and body.
///
/// What the body hands on as it came enters once, as a constant of the loop.
fn lower_while(graph: &mut Graph, id: NodeId, node: &Node) -> Result<Lowered> {
    let stateful = node.is_stateful();
    let (cond, body) = (
        node.attrs.func("cond")?.clone(),
        node.attrs.func("body")?.clone(),
    );
    let parallel = node.attrs.int("parallel_iterations")?;
    let frame = format!("{}/while_context", node.name);
    let constant = unchanged_by(graph, &body, node.inputs.len());
    let mut add = adder(graph, node);
    let mut values = Vec::new();
    let mut merges = Vec::new();
    for (index, (input, port)) in node.inputs.iter().zip(&node.input_types).enumerate() {
        let mut attrs = Attrs::new();
        attrs.set("T", port.dtype.into());
        attrs.set("frame_name", frame.as_str().into());
        attrs.set("parallel_iterations", AttrValue::I(parallel));
        attrs.set("is_constant", AttrValue::B(constant[index]));
        let control = node.control_inputs.clone();
        let enter = Output::from(add.add("Enter", "enter", attrs, smallvec![*input], control)?);
        if constant[index] {
            values.push(enter);
            continue;
        }
        // The second input is the back edge; it is connected below.
        let merge = add.typed(
            "Merge",
            "merge",
            port.dtype,
            smallvec![enter, enter],
            SmallVec::new(),
        )?;
        merges.push(merge);
        values.push(Output::from(merge));
    }
    let loop_cond = {
        let result = [DType::Bool.into()];
        let control = smallvec![merges[0]];
        let test =
            Output::from(add.call("cond", &cond, stateful, values.clone(), &result, control)?);
        let inputs = smallvec![test];
        Output::from(add.add(
            "LoopCond",
            "LoopCond",
            Attrs::new(),
            inputs,
            SmallVec::new(),
        )?)
    };
    let mut switches = Vec::new();
    for (value, port) in values.iter().zip(&node.input_types) {
        let inputs = smallvec![*value, loop_cond];
        switches.push(add.typed("Switch", "switch", port.dtype, inputs, SmallVec::new())?);
    }
    let first = constant.iter().position(|is_constant| !is_constant);
    let first = first.unwrap_or(0);
    // Effects of one iteration wait for those of the one before by way of the first back edge. Without
    // effects the condition is pivot enough, and variables that nobody reads can be pruned.
    let (turn, dtype) = if stateful {
        (switches[first], node.input_types[first].dtype)
    } else {
        let inputs = smallvec![loop_cond, loop_cond];
        let turn = add.typed("Switch", "turn", DType::Bool, inputs, SmallVec::new())?;
        (turn, DType::Bool)
    };
    let pivot = add.typed(
        "Identity",
        "loop_body_control",
        dtype,
        smallvec![turn.output(1)],
        SmallVec::new(),
    )?;
    let args = switches.iter().map(|switch| switch.output(1)).collect();
    let run = add.call(
        "body",
        &body,
        stateful,
        args,
        &node.output_types,
        smallvec![pivot],
    )?;
    let mut outputs = Vec::new();
    let mut exits = SmallVec::new();
    let mut back_edges = merges.into_iter();
    for (index, port) in node.input_types.iter().enumerate() {
        if constant[index] {
            // The value is known before, but is to be had only when the loop has ended.
            let inputs = smallvec![node.inputs[index]];
            let same = add.typed("Identity", "exit", port.dtype, inputs, smallvec![id])?;
            outputs.push(Output::from(same));
            continue;
        }
        let control = if stateful && index == first {
            smallvec![run]
        } else {
            SmallVec::new()
        };
        let inputs = smallvec![run.output(index)];
        let next = add.typed(
            "NextIteration",
            "next_iteration",
            port.dtype,
            inputs,
            control,
        )?;
        if let Some(merge) = back_edges.next() {
            add.graph.set_input(merge, 1, Output::from(next))?;
        }
        let inputs = smallvec![switches[index].output(0)];
        let exit = add.typed("Exit", "exit", port.dtype, inputs, SmallVec::new())?;
        outputs.push(Output::from(exit));
        exits.push(exit);
    }
    Ok(Lowered {
        outputs,
        waits: exits,
    })
}

/// Which arguments a loop's body returns as they came. Never all: something must start iterations.
fn unchanged_by(graph: &Graph, body: &FuncRef, count: usize) -> Vec<bool> {
    let library = graph.library();
    let function = library.get(&body.name);
    // A body that cannot be instantiated is reported where it is called.
    let body = function.and_then(|function| {
        FunctionBody::instantiate(function, &body.attrs, graph.registry(), library).ok()
    });
    let mut unchanged = vec![false; count];
    if let Some(body) = body {
        for (index, unchanged) in unchanged.iter_mut().enumerate() {
            if let (Some(arg), Some(ret)) = (body.args.get(index), body.rets.get(index)) {
                *unchanged = passes_on(&body.graph, *arg, *ret);
            }
        }
    }
    if unchanged.iter().all(|unchanged| *unchanged) {
        unchanged.fill(false);
    }
    unchanged
}

/// Whether a result is just an argument, perhaps by way of identities.
fn passes_on(graph: &Graph, arg: NodeId, ret: NodeId) -> bool {
    let mut node = graph.node(ret);
    loop {
        let [input] = node.inputs.as_slice() else {
            return false;
        };
        if input.node == arg {
            return true;
        }
        node = graph.node(input.node);
        if node.op_name() != "Identity" || !node.control_inputs.is_empty() {
            return false;
        }
    }
}
