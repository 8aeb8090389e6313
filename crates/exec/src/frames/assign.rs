//! Which frame every node is in, known before anything runs.

use rustc_hash::FxHashMap;
use tensorfleet_graph::{Graph, NodeId};
use tensorfleet_status::{Result, invalid_argument};

use crate::plan::Kind;
use crate::state::{Count, Iteration, empty};

/// What is known of a frame before anything runs.
#[derive(Default)]
pub(crate) struct StaticFrame {
    /// The `frame_name` of its Enters.
    pub(crate) name: String,
    /// Initial counts of its nodes.
    pub(crate) counts: Vec<Count>,
    /// The number of input slots of its nodes.
    pub(crate) slots: u32,
    pub(super) enters: u32,
    pub(super) parallel_iterations: u32,
}

impl StaticFrame {
    /// Adds a node.
    pub(crate) fn add(&mut self, kind: Kind, inputs: usize, control_inputs: usize) {
        let pending = match kind {
            Kind::Merge => 1 + 2 * control_inputs,
            _ => inputs + control_inputs,
        };
        self.counts.push(Count {
            pending: pending as u32,
            dead: 0,
        });
        self.slots += inputs as u32;
    }

    pub(crate) fn add_enter(&mut self, parallel_iterations: i64) {
        self.enters += 1;
        self.parallel_iterations = parallel_iterations.clamp(1, 1 << 20) as u32;
    }

    /// A fresh iteration.
    pub(crate) fn iteration(&self) -> Iteration {
        Iteration {
            counts: self.counts.clone(),
            slots: empty(self.slots as usize),
            ..Iteration::default()
        }
    }
}

/// The frame of every node.
pub(crate) struct Assignment {
    pub(crate) frames: Vec<StaticFrame>,
    pub(crate) of_node: Vec<u32>,
    children: FxHashMap<NodeId, u32>,
}

impl Assignment {
    pub(crate) fn child_of_enter(&self, enter: NodeId) -> u32 {
        self.children.get(&enter).copied().unwrap_or(0)
    }
}

/// Follows the edges and notes the frame of every node; mixing frames is INVALID_ARGUMENT.
pub(crate) fn assign(graph: &Graph) -> Result<Assignment> {
    let mut frames = vec![StaticFrame::default()];
    let mut parents = vec![0u32];
    let mut by_name: FxHashMap<(u32, String), u32> = FxHashMap::default();
    let mut children = FxHashMap::default();
    let mut of_node: Vec<Option<u32>> = vec![None; graph.len()];
    for id in graph.topological_order()? {
        let node = graph.node(id);
        let sources = node
            .inputs
            .iter()
            .map(|input| input.node)
            .chain(node.control_inputs.iter().copied());
        let mut frame = None;
        for source in sources.filter(|source| !graph.node(*source).is_next_iteration()) {
            let found = output_frame(graph, source, &of_node, &parents, &children);
            match (frame, found) {
                (None, found) => frame = found,
                (Some(have), Some(found)) if have != found => {
                    return Err(invalid_argument!(
                        "Node '{}' has inputs from different frames. The input node '{}' is in frame '{}'; another is in frame '{}'",
                        node.name,
                        graph.node(source).name,
                        frames[found as usize].name,
                        frames[have as usize].name
                    ));
                }
                _ => {}
            }
        }
        let frame = frame.unwrap_or(0);
        of_node[id.index()] = Some(frame);
        match node.op_name() {
            "Enter" | "RefEnter" => {
                let name = node.attrs.str("frame_name")?.to_owned();
                let child = *by_name.entry((frame, name.clone())).or_insert_with(|| {
                    frames.push(StaticFrame {
                        name,
                        ..StaticFrame::default()
                    });
                    parents.push(frame);
                    (frames.len() - 1) as u32
                });
                children.insert(id, child);
            }
            "Exit" | "RefExit" if frame == 0 => {
                return Err(invalid_argument!(
                    "Node '{}' is an Exit outside of any frame",
                    node.name
                ));
            }
            _ => {}
        }
    }
    Ok(Assignment {
        frames,
        of_node: of_node
            .into_iter()
            .map(|frame| frame.unwrap_or(0))
            .collect(),
        children,
    })
}

/// The frame that a node's outputs are in.
fn output_frame(
    graph: &Graph,
    source: NodeId,
    of_node: &[Option<u32>],
    parents: &[u32],
    children: &FxHashMap<NodeId, u32>,
) -> Option<u32> {
    let own = of_node[source.index()]?;
    match graph.node(source).op_name() {
        "Enter" | "RefEnter" => children.get(&source).copied(),
        "Exit" | "RefExit" => Some(parents[own as usize]),
        _ => Some(own),
    }
}
