//! [`Plan`]: a graph compiled into dense tables, shared by all steps that run it.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;
use tensorfleet_graph::{Cost, Graph, Node, NodeId};
use tensorfleet_kernel::{AnyKernel, DeviceType, NodeInfo};
use tensorfleet_status::{Result, invalid_argument};

use crate::frames::{self, StaticFrame};
use crate::kernels::KernelCache;
use crate::state::State;

/// Kernels that took at least this long are worth another thread. A wake-up costs about 5 µs.
const EXPENSIVE_NANOS: u32 = 20_000;

/// A step that goes on for no longer than this is not worth waking a thread for.
pub(crate) const QUICK_NANOS: u32 = 200_000;

/// Times are measured in the first steps of a plan, then in one of this many.
const MEASURE_EVERY: u64 = 64;
const MEASURE_FIRST: u64 = 4;

/// What compiling needs besides the graph.
pub struct PlanOptions<'a> {
    /// Kernels of stateful ops.
    pub kernels: &'a KernelCache,
    /// Where stateful kernels are cached: empty for a session's graph, the name for a function's.
    pub scope: &'a str,
    /// The device the plan runs on.
    pub device: DeviceType,
}

/// How a node is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Kernel,
    /// A kernel that also runs when its inputs are dead: `_Send`, `_Recv`.
    Transfer,
    Switch,
    Merge,
    Enter,
    Exit,
    NextIteration,
    /// Passes its input through: `LoopCond`, `Identity`.
    Pass,
    /// Runs whenever its inputs arrived, dead or not: `ControlTrigger`.
    ControlTrigger,
}

/// What a run of a node needs to know. One cache line: a wide graph touches each once per step.
#[repr(align(64))]
pub(crate) struct PlanNode {
    pub(crate) info: Arc<NodeInfo>,
    /// `None` for control flow.
    pub(crate) kernel: Option<AnyKernel>,
    pub(crate) kind: Kind,
    /// Its first input slot within the frame.
    pub(crate) slot: u32,
    pub(crate) inputs: u32,
    pub(crate) outputs: u32,
    /// Out-edges: a range of `Plan::edges`.
    pub(crate) first_edge: u32,
    pub(crate) end_edge: u32,
    /// Whether some input arrives by reference and is wanted by value.
    pub(crate) derefs: bool,
    /// Whether its kernel may change what others see. Here, as looking at the types would cost more than a tiny op.
    pub(crate) has_effects: bool,
    pub(crate) allows_uninitialized: bool,
    /// Whether numbers among its inputs say how much it has to do.
    pub(crate) sized: bool,
    /// For Enter: whether its value is the same in all iterations. For Merge: whether somebody wants to know which input was
    /// taken. For others nothing.
    pub(crate) marked: bool,
    cost: Cost,
    /// The logarithm of how many elements went in when it was measured.
    magnitude: AtomicU8,
    nanos: AtomicU32,
}

const _: () = assert!(size_of::<PlanNode>() <= 64);

/// An edge as its source sees it.
#[derive(Clone, Copy)]
pub(crate) struct Edge {
    pub(crate) target: u32,
    /// The source's output, or [`CONTROL`].
    pub(crate) port: u32,
    /// The target's input slot.
    pub(crate) slot: u32,
    /// The target's count.
    pub(crate) local: u32,
    /// Whether no later edge carries the same output: the value is moved, not cloned.
    pub(crate) last: bool,
    /// What the target is: control flow counts its inputs differently.
    pub(crate) kind: Kind,
}

/// The `port` of a control edge.
pub(crate) const CONTROL: u32 = u32::MAX;

/// A compiled graph.
pub struct Plan {
    pub(crate) nodes: Box<[PlanNode]>,
    pub(crate) edges: Box<[Edge]>,
    pub(crate) frames: Box<[StaticFrame]>,
    /// Nodes without inputs.
    pub(crate) roots: Box<[u32]>,
    /// By Enter: the frame it opens. Empty if there are no loops.
    child_frames: FxHashMap<u32, u32>,
    /// The largest number of outputs of a node.
    pub(crate) most_outputs: usize,
    /// Whether there are loops: the frame-aware path.
    pub(crate) has_frames: bool,
    steps: AtomicU64,
    #[allow(clippy::vec_box)] // drivers pass the box around; unboxing would copy the state
    spare: Mutex<Vec<Box<State>>>,
}

impl Plan {
    /// Compiles a graph whose every node can run on the device.
    pub fn compile(graph: &Graph, options: &PlanOptions<'_>) -> Result<Plan> {
        graph.topological_order()?;
        let mut assignment = frames::assign(graph)?;
        let mut frames: Vec<StaticFrame> = std::mem::take(&mut assignment.frames);
        let mut nodes = Vec::with_capacity(graph.len());
        let mut locals = Vec::with_capacity(graph.len());
        for (id, node) in graph.nodes() {
            let frame = &mut frames[assignment.of_node[id.index()] as usize];
            let planned = plan_node(graph, node, options, frame).map_err(|status| {
                status.append(format_args!("\n\t [[{{{{node {}}}}}]]", node.name))
            })?;
            locals.push(frame.counts.len() as u32);
            frame.add(planned.kind, node.inputs.len(), node.control_inputs.len());
            nodes.push(planned);
        }
        let mut child_frames = FxHashMap::default();
        for (id, node) in graph.nodes() {
            if nodes[id.index()].kind == Kind::Enter {
                let child = assignment.child_of_enter(id);
                child_frames.insert(id.index() as u32, child);
                nodes[id.index()].marked = node.attrs.bool("is_constant")?;
                frames[child as usize].add_enter(node.attrs.int("parallel_iterations")?);
            }
        }
        let edges = plan_edges(graph, &mut nodes, &locals);
        let has_inputs = |id: &NodeId| {
            !graph.node(*id).inputs.is_empty() || !graph.node(*id).control_inputs.is_empty()
        };
        let roots = graph
            .ids()
            .filter(|id| !has_inputs(id))
            .map(|id| id.index() as u32)
            .collect();
        Ok(Plan {
            has_frames: frames.len() > 1,
            child_frames,
            most_outputs: nodes.iter().map(|node| node.outputs).max().unwrap_or(0) as usize,
            nodes: nodes.into_boxed_slice(),
            edges: edges.into_boxed_slice(),
            frames: frames.into_boxed_slice(),
            roots,
            steps: AtomicU64::new(0),
            spare: Mutex::new(Vec::new()),
        })
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// What is known of node `index`.
    pub fn node(&self, index: u32) -> Option<&NodeInfo> {
        self.nodes.get(index as usize).map(|node| &*node.info)
    }

    /// The frame that an Enter opens.
    pub(crate) fn child_frame(&self, enter: u32) -> u32 {
        self.child_frames.get(&enter).copied().unwrap_or(0)
    }

    /// Counts a new step; whether its kernels should be timed.
    pub(crate) fn begin_step(&self) -> bool {
        let step = self.steps.fetch_add(1, Ordering::Relaxed);
        step < MEASURE_FIRST || step.is_multiple_of(MEASURE_EVERY)
    }

    /// A state of an earlier step, or a new one.
    pub(crate) fn take_state(&self) -> Box<State> {
        let spare = self
            .spare
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        spare.unwrap_or_else(|| Box::new(State::new(self)))
    }

    /// Keeps the state of a finished step for the next.
    pub(crate) fn give_state(&self, state: Box<State>) {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < 4 {
            spare.push(state);
        }
    }
}

impl PlanNode {
    #[inline]
    pub(crate) fn edges<'a>(&self, plan: &'a Plan) -> &'a [Edge] {
        &plan.edges[self.first_edge as usize..self.end_edge as usize]
    }

    /// Whether a run is worth another thread.
    #[inline]
    pub(crate) fn is_expensive(&self) -> bool {
        match self.cost {
            Cost::Cheap => false,
            Cost::Measured | Cost::Expensive => {
                self.nanos.load(Ordering::Relaxed) >= EXPENSIVE_NANOS
            }
        }
    }

    /// Whether a run takes too long for a thread that has other things to do.
    pub(crate) fn is_slow(&self) -> bool {
        self.nanos.load(Ordering::Relaxed) > QUICK_NANOS
    }

    pub(crate) fn is_measured(&self) -> bool {
        self.cost != Cost::Cheap
    }

    /// How many elements went in, by and large, when it was measured.
    pub(crate) fn measured_elements(&self) -> usize {
        1 << self.magnitude.load(Ordering::Relaxed)
    }

    /// Learns how many elements went into a measured run.
    pub(crate) fn learn_elements(&self, elements: usize) {
        let magnitude = elements.checked_ilog2().unwrap_or(0) as u8;
        self.magnitude.store(magnitude, Ordering::Relaxed);
    }

    /// For asynchronous nodes: whether the step lately had little to do after its answer.
    pub(crate) fn is_quickly_followed(&self) -> bool {
        (1..=QUICK_NANOS).contains(&self.nanos.load(Ordering::Relaxed))
    }

    /// Learns from a measured run: a moving average that forgets quickly.
    pub(crate) fn learn(&self, nanos: u64) {
        let old = u64::from(self.nanos.load(Ordering::Relaxed));
        let new = if old == 0 {
            nanos
        } else {
            (old * 3 + nanos) / 4
        };
        self.nanos
            .store(u32::try_from(new).unwrap_or(u32::MAX), Ordering::Relaxed);
    }
}

fn kind_of(op: &str) -> Kind {
    match op {
        "Switch" | "RefSwitch" | "_SwitchN" => Kind::Switch,
        "Merge" | "RefMerge" | "_XlaMerge" => Kind::Merge,
        "Enter" | "RefEnter" => Kind::Enter,
        "Exit" | "RefExit" => Kind::Exit,
        "NextIteration" | "RefNextIteration" => Kind::NextIteration,
        "LoopCond" | "Identity" => Kind::Pass,
        "ControlTrigger" => Kind::ControlTrigger,
        "_Send" | "_HostSend" | "_Recv" | "_HostRecv" => Kind::Transfer,
        _ => Kind::Kernel,
    }
}

fn plan_node(
    graph: &Graph,
    node: &Node,
    options: &PlanOptions<'_>,
    frame: &StaticFrame,
) -> Result<PlanNode> {
    let kind = kind_of(node.op_name());
    let info = Arc::new(node.info());
    let Some(def) = node.op.def else {
        return Err(invalid_argument!(
            "function {} must be called through PartitionedCall or inlined before it runs",
            node.op.name
        ));
    };
    let kernel = match kind {
        Kind::Kernel | Kind::Transfer => {
            let kernel = options.kernels.kernel(
                graph.registry(),
                options.scope,
                node,
                &info,
                options.device,
            )?;
            Some(AnyKernel::clone(&kernel))
        }
        _ => None,
    };
    let source_is_ref = |input: &tensorfleet_graph::Output| {
        graph.output_type(*input).is_some_and(|port| port.is_ref)
    };
    let derefs = node
        .inputs
        .iter()
        .zip(&node.input_types)
        .any(|(input, wanted)| !wanted.is_ref && source_is_ref(input));
    Ok(PlanNode {
        kernel,
        kind,
        slot: frame.slots,
        inputs: node.inputs.len() as u32,
        outputs: node.output_types.len() as u32,
        first_edge: 0,
        end_edge: 0,
        derefs,
        has_effects: info.has_effects(),
        allows_uninitialized: def.allows_uninitialized_input,
        sized: def.inputs.iter().any(|arg| is_size(arg)),
        marked: false,
        cost: def.cost,
        magnitude: AtomicU8::new(0),
        nanos: AtomicU32::new(if def.cost == Cost::Expensive {
            EXPENSIVE_NANOS
        } else {
            0
        }),
        info,
    })
}

/// Whether an argument of a signature, by its name, says how much is to be made.
fn is_size(arg: &str) -> bool {
    const WORDS: [&str; 17] = [
        "shape",
        "size",
        "dim",
        "num",
        "count",
        "limit",
        "stop",
        "multiples",
        "padding",
        "depth",
        "rows",
        "cols",
        "splits",
        "length",
        "max",
        "delta",
        "buckets",
    ];
    let name = arg.split_once(':').map_or(arg, |(name, _)| name);
    name == "k" || WORDS.iter().any(|word| name.contains(word))
}

fn plan_edges(graph: &Graph, nodes: &mut [PlanNode], locals: &[u32]) -> Vec<Edge> {
    let mut edges = Vec::new();
    for (id, consumers) in graph.ids().zip(graph.consumers()) {
        let first = edges.len();
        for (target_id, input) in consumers {
            let target = &nodes[target_id.index()];
            let (port, slot) = match input {
                Some(input) => (
                    graph.node(target_id).inputs[input as usize].port,
                    target.slot + input,
                ),
                None => (CONTROL, 0),
            };
            edges.push(Edge {
                target: target_id.index() as u32,
                port,
                slot,
                local: locals[target_id.index()],
                last: false,
                kind: target.kind,
            });
        }
        // Walk backwards: the first edge met of a port is its last.
        let mut seen = vec![false; nodes[id.index()].outputs as usize];
        for edge in edges[first..]
            .iter_mut()
            .rev()
            .filter(|edge| edge.port != CONTROL)
        {
            if let Some(seen) = seen.get_mut(edge.port as usize) {
                edge.last = !std::mem::replace(seen, true);
            }
        }
        // What only its first output is read for need not make the others.
        if seen.len() > 1 && seen.contains(&false) {
            let info = Arc::make_mut(&mut nodes[id.index()].info);
            info.unread = seen.iter().map(|seen| !seen).collect();
        }
        if nodes[id.index()].kind == Kind::Merge {
            nodes[id.index()].marked = edges[first..].iter().any(|edge| edge.port == 1);
        }
        nodes[id.index()].first_edge = first as u32;
        nodes[id.index()].end_edge = edges.len() as u32;
    }
    edges
}
