//! Lowering: functional `If`, `Case` and `While` become Switch, Merge and frames around calls.
//!
//! Only where the client asked for it (`_lower_using_switch_merge`), as TensorFlow does: then branches
//! run next to the rest of the graph, iterations overlap, and parts can be placed apart.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};
use tensorfleet_graph::{Graph, Node, NodeId, Output};
use tensorfleet_kernel::{AttrList, AttrValue, Attrs, FuncRef};
use tensorfleet_status::Result;
use tensorfleet_tensor::{DType, PortType};

use crate::prune::prune;
use crate::roots::Roots;

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
            _ => lower_while(&mut graph, &node)?,
        };
        redirect(&mut graph, id, &lowered)?;
    }
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
    /// Ends when the node would have ended.
    end: NodeId,
}

/// Adds nodes with the names, device and registry of one original node.
struct Adder<'a> {
    graph: &'a mut Graph,
    prefix: Arc<str>,
    device: Arc<str>,
}

impl Adder<'_> {
    fn add(
        &mut self,
        op: &str,
        attrs: Attrs,
        inputs: SmallVec<[Output; 2]>,
        control: SmallVec<[NodeId; 1]>,
    ) -> Result<NodeId> {
        let entry = self.graph.registry().find(op)?.clone();
        let name = self.graph.unique_name(&format!("{}/{op}", self.prefix));
        self.graph
            .add(name, entry, attrs, inputs, control, self.device.clone())
    }

    fn typed(
        &mut self,
        op: &str,
        dtype: DType,
        inputs: SmallVec<[Output; 2]>,
        control: SmallVec<[NodeId; 1]>,
    ) -> Result<NodeId> {
        let mut attrs = Attrs::new();
        attrs.set("T", dtype.into());
        if op == "Merge" {
            attrs.set("N", AttrValue::I(inputs.len() as i64));
        }
        self.add(op, attrs, inputs, control)
    }

    fn call(
        &mut self,
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
        let op = if stateful {
            "StatefulPartitionedCall"
        } else {
            "PartitionedCall"
        };
        self.add(op, attrs, args.into_iter().collect(), control)
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
    let switch = |add: &mut Adder<'_>, data: Output, dtype: DType| -> Result<NodeId> {
        let mut attrs = Attrs::new();
        attrs.set("T", dtype.into());
        if !is_if {
            attrs.set("num_outs", AttrValue::I(count as i64));
        }
        add.add(
            if is_if { "Switch" } else { "_SwitchN" },
            attrs,
            smallvec![data, selector],
            node.control_inputs.clone(),
        )
    };
    let pivots = switch(&mut add, selector, node.input_types[0].dtype)?;
    let mut switched = Vec::new();
    for (input, port) in node.inputs.iter().zip(&node.input_types).skip(1) {
        switched.push(switch(&mut add, *input, port.dtype)?);
    }
    let mut calls = Vec::new();
    let mut done: SmallVec<[Output; 2]> = SmallVec::new();
    for (index, branch) in branches.iter().enumerate() {
        let pivot = add.typed(
            "Identity",
            node.input_types[0].dtype,
            smallvec![pivots.output(index)],
            SmallVec::new(),
        )?;
        let args = switched.iter().map(|switch| switch.output(index)).collect();
        let call = add.call(branch, stateful, args, &node.output_types, smallvec![pivot])?;
        done.push(Output::from(add.typed(
            "Identity",
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
            wanted.dtype,
            merged,
            SmallVec::new(),
        )?));
    }
    let end = add.typed("Merge", node.input_types[0].dtype, done, SmallVec::new())?;
    Ok(Lowered { outputs, end })
}

/// A frame whose iterations call condition and body.
fn lower_while(graph: &mut Graph, node: &Node) -> Result<Lowered> {
    let stateful = node.is_stateful();
    let (cond, body) = (
        node.attrs.func("cond")?.clone(),
        node.attrs.func("body")?.clone(),
    );
    let parallel = node.attrs.int("parallel_iterations")?;
    let frame = format!("{}/while_context", node.name);
    let mut add = adder(graph, node);
    let mut merges = Vec::new();
    for (input, port) in node.inputs.iter().zip(&node.input_types) {
        let mut attrs = Attrs::new();
        attrs.set("T", port.dtype.into());
        attrs.set("frame_name", frame.as_str().into());
        attrs.set("parallel_iterations", AttrValue::I(parallel));
        let enter = add.add(
            "Enter",
            attrs,
            smallvec![*input],
            node.control_inputs.clone(),
        )?;
        // The second input is the back edge; it is connected below.
        merges.push(add.typed(
            "Merge",
            port.dtype,
            smallvec![Output::from(enter), Output::from(enter)],
            SmallVec::new(),
        )?);
    }
    let values: Vec<Output> = merges.iter().map(|merge| Output::from(*merge)).collect();
    let test = add.call(
        &cond,
        stateful,
        values.clone(),
        &[DType::Bool.into()],
        smallvec![merges[0]],
    )?;
    let loop_cond = add.add(
        "LoopCond",
        Attrs::new(),
        smallvec![Output::from(test)],
        SmallVec::new(),
    )?;
    let mut switches = Vec::new();
    for (value, port) in values.iter().zip(&node.input_types) {
        switches.push(add.typed(
            "Switch",
            port.dtype,
            smallvec![*value, Output::from(loop_cond)],
            SmallVec::new(),
        )?);
    }
    let pivot = add.typed(
        "Identity",
        node.input_types[0].dtype,
        smallvec![switches[0].output(1)],
        SmallVec::new(),
    )?;
    let args = switches.iter().map(|switch| switch.output(1)).collect();
    let run = add.call(&body, stateful, args, &node.output_types, smallvec![pivot])?;
    let mut outputs = Vec::new();
    for (index, port) in node.input_types.iter().enumerate() {
        // The first back edge also waits for the body's effects, so that no iteration overtakes them.
        let control: SmallVec<[NodeId; 1]> = if index == 0 {
            smallvec![run]
        } else {
            SmallVec::new()
        };
        let next = add.typed(
            "NextIteration",
            port.dtype,
            smallvec![run.output(index)],
            control,
        )?;
        add.graph.set_input(merges[index], 1, Output::from(next))?;
        outputs.push(Output::from(add.typed(
            "Exit",
            port.dtype,
            smallvec![switches[index].output(0)],
            SmallVec::new(),
        )?));
    }
    let exits = outputs.iter().map(|output| output.node).collect();
    let end = add.add("NoOp", Attrs::new(), SmallVec::new(), exits)?;
    Ok(Lowered { outputs, end })
}

fn redirect(graph: &mut Graph, id: NodeId, lowered: &Lowered) -> Result<()> {
    for (consumer, input) in graph.consumers()[id.index()].clone() {
        match input {
            Some(input) => {
                let port = graph.node(consumer).inputs[input as usize].port as usize;
                if let Some(output) = lowered.outputs.get(port) {
                    graph.set_input(consumer, input as usize, *output)?;
                }
            }
            None => {
                let control = graph
                    .node(consumer)
                    .control_inputs
                    .iter()
                    .map(|c| if *c == id { lowered.end } else { *c })
                    .collect();
                graph.set_control_inputs(consumer, control);
            }
        }
    }
    graph.become_no_op(id, smallvec![lowered.end])
}
