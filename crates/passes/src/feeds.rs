//! Feeds and fetches become nodes: arguments and results, or receives and sends.

use std::sync::Arc;

use smallvec::SmallVec;
use tensorfleet_graph::{Graph, NodeId, Output};
use tensorfleet_kernel::{AttrValue, Attrs};
use tensorfleet_status::{Result, invalid_argument, not_found};
use tensorfleet_tensor::DType;

use crate::prune::prune;
use crate::reads::{read_after_updates, read_after_writes_in_place};
use crate::roots::Roots;

/// What a run feeds, fetches and runs, by name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Signature {
    /// Fed tensors, `node:port` or `node`.
    pub feeds: Vec<String>,
    /// Fetched tensors, `node:port` or `node`.
    pub fetches: Vec<String>,
    /// Nodes to run.
    pub targets: Vec<String>,
}

/// How values get in and out of the graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Boundary<'a> {
    /// All at once: `_Arg` and `_Retval` nodes on this device; empty for the devices of what is fed and fetched.
    Call {
        /// The name of the client's device.
        device: &'a str,
    },
    /// One by one while the step runs: `_Recv` and `_Send` nodes on this device.
    Rendezvous {
        /// The name of the client's device.
        device: &'a str,
        /// Its incarnation.
        incarnation: u64,
    },
}

impl Boundary<'_> {
    /// Where the node that feeds or fetches for `node` belongs.
    fn device(self, graph: &Graph, node: NodeId) -> Arc<str> {
        match self {
            Boundary::Call { device: "" } => graph.node(node).device.clone(),
            Boundary::Call { device } | Boundary::Rendezvous { device, .. } => device.into(),
        }
    }
}

/// The graph of one signature.
pub struct Rewritten {
    /// Fed tensors replaced, fetches captured, the rest pruned.
    pub graph: Graph,
    /// The nodes that must run.
    pub roots: Roots,
    /// The dtypes of the feeds, in order.
    pub feed_types: Vec<DType>,
}

/// Turns feeds and fetches into nodes and drops what they do not need.
pub fn rewrite(graph: &Graph, signature: &Signature, boundary: Boundary<'_>) -> Result<Rewritten> {
    let mut out = graph.clone();
    let mut feed_types = Vec::with_capacity(signature.feeds.len());
    let mut fed: Vec<(Output, NodeId)> = Vec::with_capacity(signature.feeds.len());
    for (index, name) in signature.feeds.iter().enumerate() {
        let output = find_feed(graph, name)?;
        if fed.iter().any(|(earlier, _)| *earlier == output) {
            return Err(invalid_argument!("tensor {name} is fed more than once"));
        }
        let dtype = graph
            .output_type(output)
            .map_or(DType::F32, |port| port.dtype);
        feed_types.push(dtype);
        fed.push((
            output,
            add_feed(&mut out, name, output, index, dtype, boundary)?,
        ));
    }
    rewire(&mut out, graph, &fed)?;
    let mut roots = Vec::new();
    for (index, name) in signature.fetches.iter().enumerate() {
        let output = find_fetch(graph, name)?;
        let source = fed
            .iter()
            .find(|(fed, _)| *fed == output)
            .map_or(output, |(_, feed)| Output::from(*feed));
        roots.push(add_fetch(&mut out, name, source, index, boundary)?);
    }
    let mut missing = String::new();
    for name in &signature.targets {
        match graph.find(name.trim_start_matches('^')) {
            Some(id) => roots.push(id),
            None => missing.push_str(&format!("{name} ")),
        }
    }
    if !missing.is_empty() {
        return Err(not_found!(
            "PruneForTargets: Some target nodes not found: {missing}"
        ));
    }
    let mut pruned = prune(&out, roots.iter().copied())?;
    read_after_updates(&mut pruned)?;
    read_after_writes_in_place(&mut pruned)?;
    Ok(Rewritten {
        graph: pruned,
        roots: Roots::of(&out, roots),
        feed_types,
    })
}

/// `node:port` or `node`, as far as it is one.
fn split(name: &str) -> (&str, Option<u32>) {
    match name.rsplit_once(':') {
        Some((node, port)) => match port.parse() {
            Ok(port) => (node, Some(port)),
            Err(_) => (name, None),
        },
        None => (name, Some(0)),
    }
}

fn find_feed(graph: &Graph, name: &str) -> Result<Output> {
    let (node, port) = split(name);
    let found = graph.find(node).zip(port);
    let Some((node, port)) = found else {
        return Err(not_found!("FeedInputs: unable to find feed output {name}"));
    };
    let output = Output { node, port };
    if graph.output_type(output).is_none() {
        return Err(invalid_argument!(
            "FeedInputs: {name} should have output index < {}",
            graph.node(node).output_types.len()
        ));
    }
    Ok(output)
}

fn find_fetch(graph: &Graph, name: &str) -> Result<Output> {
    let (node, port) = split(name);
    let found = graph.find(node).zip(port);
    let Some((node, port)) = found else {
        return Err(not_found!("FetchOutputs node {name}: not found"));
    };
    let output = Output { node, port };
    let outputs = graph.node(node).output_types.len();
    if outputs == 0 {
        return Err(invalid_argument!(
            "Tried to fetch data for '{name}', which produces no output.  To run to a node but not fetch any data, pass '{name}' as an argument to the 'target_node_names' argument of the Session::Run API."
        ));
    }
    if graph.output_type(output).is_none() {
        return Err(invalid_argument!(
            "FetchOutputs {name}: output index too large, must be < {outputs}"
        ));
    }
    Ok(output)
}

fn add_feed(
    graph: &mut Graph,
    name: &str,
    output: Output,
    index: usize,
    dtype: DType,
    boundary: Boundary<'_>,
) -> Result<NodeId> {
    let node_name = graph.unique_name(&format!(
        "_recv_{}_{}",
        graph.node(output.node).name,
        output.port
    ));
    let (op, attrs) = match boundary {
        Boundary::Call { .. } => {
            let mut attrs = Attrs::new();
            attrs.set("T", AttrValue::Type(dtype.into()));
            attrs.set("index", AttrValue::I(index as i64));
            ("_Arg", attrs)
        }
        Boundary::Rendezvous {
            device,
            incarnation,
        } => (
            "_Recv",
            transfer_attrs("tensor_type", dtype, name, device, incarnation),
        ),
    };
    let op = graph.registry().find(op)?.clone();
    let device = boundary.device(graph, output.node);
    graph.add(
        node_name,
        op,
        attrs,
        SmallVec::new(),
        SmallVec::new(),
        device,
    )
}

fn add_fetch(
    graph: &mut Graph,
    name: &str,
    source: Output,
    index: usize,
    boundary: Boundary<'_>,
) -> Result<NodeId> {
    let dtype = graph
        .output_type(source)
        .map_or(DType::F32, |port| port.dtype);
    let node_name = graph.unique_name(&format!(
        "_send_{}_{}",
        graph.node(source.node).name,
        source.port
    ));
    let (op, attrs) = match boundary {
        Boundary::Call { .. } => {
            let mut attrs = Attrs::new();
            attrs.set("T", AttrValue::Type(dtype.into()));
            attrs.set("index", AttrValue::I(index as i64));
            ("_Retval", attrs)
        }
        Boundary::Rendezvous {
            device,
            incarnation,
        } => (
            "_Send",
            transfer_attrs("T", dtype, name, device, incarnation),
        ),
    };
    let op = graph.registry().find(op)?.clone();
    let device = boundary.device(graph, source.node);
    graph.add(
        node_name,
        op,
        attrs,
        SmallVec::from_slice(&[source]),
        SmallVec::new(),
        device,
    )
}

fn transfer_attrs(
    type_attr: &str,
    dtype: DType,
    name: &str,
    device: &str,
    incarnation: u64,
) -> Attrs {
    let mut attrs = Attrs::new();
    attrs.set(type_attr, dtype.into());
    attrs.set("tensor_name", name.into());
    attrs.set("send_device", device.into());
    attrs.set("recv_device", device.into());
    attrs.set("send_device_incarnation", AttrValue::I(incarnation as i64));
    attrs.set("client_terminated", true.into());
    attrs
}

/// Lets consumers of fed tensors read the feed. Whoever waits for a fed placeholder waits for the feed.
fn rewire(graph: &mut Graph, original: &Graph, fed: &[(Output, NodeId)]) -> Result<()> {
    if fed.is_empty() {
        return Ok(());
    }
    for (id, node) in original.nodes() {
        for (port, input) in node.inputs.iter().enumerate() {
            // Who writes to a fed variable cannot write to its feed; a run that asks for both writes the variable.
            let by_reference = node
                .input_types
                .get(port)
                .is_some_and(|wanted| wanted.is_ref);
            if let Some((_, feed)) = fed.iter().find(|(output, _)| output == input)
                && !by_reference
            {
                graph.set_input(id, port, Output::from(*feed))?;
            }
        }
        let is_fed_placeholder = |source: &NodeId| {
            let feed = fed.iter().find(|(output, _)| output.node == *source)?;
            original
                .node(*source)
                .op_name()
                .starts_with("Placeholder")
                .then_some(feed.1)
        };
        if node
            .control_inputs
            .iter()
            .any(|source| is_fed_placeholder(source).is_some())
        {
            let moved = node
                .control_inputs
                .iter()
                .map(|source| is_fed_placeholder(source).unwrap_or(*source))
                .collect();
            graph.set_control_inputs(id, moved);
        }
    }
    Ok(())
}
