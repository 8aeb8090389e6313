//! [`RegisteredGraph`]: a task's part of a graph, compiled for each of its devices.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tensorfleet_exec::{Functions, Plan, PlanOptions};
use tensorfleet_graph::{Graph, Node, NodeId};
use tensorfleet_kernel::Device;
use tensorfleet_passes::{PartDevice, PartitionOptions, partition};
use tensorfleet_proto::GraphDef;
use tensorfleet_status::{Result, Status, invalid_argument};

use super::env::WorkerEnv;
use super::functions::SessionFunctions;
use super::session::{SessionDevice, WorkerSession};
use crate::api::Peers;
use crate::task::TaskName;

/// Steps that lately took no longer than this run on the thread that asked for them: handing them to
/// another thread costs more. Longer ones would keep that thread from answering others.
const INLINE_NANOS: u64 = 100_000;

/// One graph, ready to run.
pub(crate) struct RegisteredGraph {
    pub(super) env: Arc<WorkerEnv>,
    /// The handle of its session.
    pub(super) session: Arc<str>,
    pub(super) task: TaskName,
    pub(super) peers: Arc<dyn Peers>,
    pub(super) parts: Vec<DevicePart>,
    has_transfers: bool,
    /// How long a step lately kept the thread that started it.
    nanos: AtomicU64,
}

/// What one device runs.
pub(super) struct DevicePart {
    pub(super) device: Arc<Device>,
    pub(super) plan: Arc<Plan>,
    pub(super) functions: Arc<SessionFunctions>,
    graph: Graph,
}

impl RegisteredGraph {
    /// Compiles a graph whose every node names one of the session's devices in full.
    pub(crate) fn build(session: &WorkerSession, graph: Graph) -> Result<RegisteredGraph> {
        let has_transfers = graph.nodes().any(|(_, node)| is_transfer(node.op_name()));
        let mut parts = Vec::new();
        for (device, graph) in split(session, graph)? {
            parts.push(compile(session, device, graph)?);
        }
        Ok(RegisteredGraph {
            env: session.env.clone(),
            session: session.handle.clone(),
            task: session.task.clone(),
            peers: session.peers.clone(),
            has_transfers: has_transfers || parts.len() > 1,
            parts,
            nanos: AtomicU64::new(u64::MAX),
        })
    }

    /// Compiles a graph that came from another process: functions are inlined first.
    pub(crate) fn import(session: &WorkerSession, def: &GraphDef) -> Result<RegisteredGraph> {
        let graph = Graph::import(session.env.registry.clone(), def)?;
        let roots = sinks(&graph);
        RegisteredGraph::build(session, (session.optimize)(graph, &roots)?)
    }

    /// The graphs that really run, one per device.
    pub(crate) fn partition_graphs(&self) -> Result<Vec<GraphDef>> {
        self.parts.iter().map(|part| part.graph.export()).collect()
    }

    /// Whether tensors come from or go to other parts, or the client one by one.
    pub(crate) fn has_transfers(&self) -> bool {
        self.has_transfers
    }

    pub(super) fn is_quick(&self) -> bool {
        self.nanos.load(Ordering::Relaxed) <= INLINE_NANOS
    }

    pub(super) fn took(&self, nanos: u64) {
        self.nanos.store(nanos, Ordering::Relaxed);
    }
}

fn is_transfer(op: &str) -> bool {
    matches!(op, "_Send" | "_Recv" | "_HostSend" | "_HostRecv")
}

/// Nodes that nobody waits for: everything else is there for them.
fn sinks(graph: &Graph) -> Vec<NodeId> {
    let mut used = vec![false; graph.len()];
    for (_, node) in graph.nodes() {
        let sources = node.inputs.iter().map(|input| input.node);
        for source in sources.chain(node.control_inputs.iter().copied()) {
            used[source.index()] = true;
        }
    }
    let sinks = graph
        .nodes()
        .filter(|(id, node)| !used[id.index()] || node.is_stateful());
    sinks.map(|(id, _)| id).collect()
}

/// One graph per device that has nodes.
fn split(session: &WorkerSession, graph: Graph) -> Result<Vec<(&SessionDevice, Graph)>> {
    let mut device_of = Vec::with_capacity(graph.len());
    for (_, node) in graph.nodes() {
        let device = session
            .devices
            .iter()
            .position(|device| *device.device.name == *node.device);
        device_of.push(device.ok_or_else(|| unknown_device(session, node))? as u32);
    }
    let devices: Vec<PartDevice> = session
        .devices
        .iter()
        .enumerate()
        .map(|(part, device)| PartDevice {
            name: device.device.name.as_str().into(),
            incarnation: device.device.incarnation,
            part: part as u32,
        })
        .collect();
    let parts = partition(
        graph,
        &PartitionOptions {
            devices: &devices,
            device_of: &|node| device_of[node.index()],
            suffix: "_G",
            counter: &session.transfers,
            control_flow_added: true,
            floats_as_bfloat16: false,
            copied_constant_bytes: 0,
        },
    )?;
    let parts = parts
        .into_iter()
        .map(|part| (&session.devices[part.part as usize], part.graph));
    Ok(parts.collect())
}

fn unknown_device(session: &WorkerSession, node: &Node) -> Status {
    if node.device.is_empty() {
        return invalid_argument!("Node '{}' is missing a device specification", node.name);
    }
    let known: Vec<&str> = session
        .devices
        .iter()
        .map(|device| device.device.name.as_str())
        .collect();
    invalid_argument!(
        "{} unknown device: node '{}' cannot run on {}, whose devices are {}",
        node.device,
        node.name,
        session.task,
        known.join(", ")
    )
}

fn compile(session: &WorkerSession, device: &SessionDevice, graph: Graph) -> Result<DevicePart> {
    let device_type = device.device.device_type;
    let plan = Plan::compile(
        &graph,
        &PlanOptions {
            kernels: &device.kernels,
            scope: "",
            device: device_type,
        },
    )?;
    let functions = Functions::new(
        graph.registry().clone(),
        graph.library().clone(),
        device.kernels.clone(),
        device_type,
        session.optimize.clone(),
    );
    Ok(DevicePart {
        device: device.device.clone(),
        plan: Arc::new(plan),
        functions: Arc::new(SessionFunctions::new(session, &graph, functions)),
        graph,
    })
}
