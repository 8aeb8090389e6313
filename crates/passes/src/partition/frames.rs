//! Which frame every node runs in, and which its outputs are in.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use tensorfleet_graph::{Graph, Node, NodeId};
use tensorfleet_status::{Result, invalid_argument};

/// The frame outside of all loops.
pub(super) const ROOT: u32 = 0;

/// A frame as the graph describes it.
pub(super) struct Frame {
    pub(super) name: Arc<str>,
    pub(super) parent: u32,
    pub(super) parallel_iterations: i64,
    /// The predicate, if the frame has one.
    pub(super) loop_cond: Option<NodeId>,
}

/// The frames of a graph.
pub(super) struct Frames {
    pub(super) list: Vec<Frame>,
    /// Where each node runs.
    pub(super) of_node: Vec<u32>,
    /// Where each node's outputs are: elsewhere for `Enter` and `Exit`.
    pub(super) of_outputs: Vec<u32>,
}

pub(super) fn is_enter(node: &Node) -> bool {
    matches!(node.op_name(), "Enter" | "RefEnter")
}

/// Follows the edges in topological order; inputs from different frames are INVALID_ARGUMENT.
pub(super) fn find(graph: &Graph, order: &[NodeId]) -> Result<Frames> {
    let mut frames = Frames {
        list: vec![Frame {
            name: "".into(),
            parent: ROOT,
            parallel_iterations: 1,
            loop_cond: None,
        }],
        of_node: vec![ROOT; graph.len()],
        of_outputs: vec![ROOT; graph.len()],
    };
    let mut children: FxHashMap<(u32, &str), u32> = FxHashMap::default();
    for id in order {
        let node = graph.node(*id);
        let frame = frames.of_inputs(graph, node)?;
        frames.of_node[id.index()] = frame;
        frames.of_outputs[id.index()] = match node.op_name() {
            "Enter" | "RefEnter" => {
                let name = node.attrs.str("frame_name")?;
                let parallel_iterations = node.attrs.int("parallel_iterations")?;
                *children.entry((frame, name)).or_insert_with(|| {
                    frames.list.push(Frame {
                        name: name.into(),
                        parent: frame,
                        parallel_iterations,
                        loop_cond: None,
                    });
                    (frames.list.len() - 1) as u32
                })
            }
            "Exit" | "RefExit" if frame == ROOT => {
                return Err(invalid_argument!(
                    "Node '{}' is an Exit outside of any frame",
                    node.name
                ));
            }
            "Exit" | "RefExit" => frames.list[frame as usize].parent,
            "LoopCond" => {
                frames.list[frame as usize].loop_cond = Some(*id);
                frame
            }
            _ => frame,
        };
    }
    Ok(frames)
}

impl Frames {
    /// The frame that all inputs of a node are in, back edges left aside.
    fn of_inputs(&self, graph: &Graph, node: &Node) -> Result<u32> {
        let sources = node.inputs.iter().map(|input| input.node);
        let mut frame = None;
        for source in sources.chain(node.control_inputs.iter().copied()) {
            if graph.node(source).is_next_iteration() {
                continue;
            }
            let found = self.of_outputs[source.index()];
            match frame {
                None => frame = Some(found),
                Some(have) if have != found => {
                    return Err(invalid_argument!(
                        "Node '{}' has inputs from different frames. The input node '{}' is in frame '{}'; another is in frame '{}'",
                        node.name,
                        graph.node(source).name,
                        self.list[found as usize].name,
                        self.list[have as usize].name
                    ));
                }
                Some(_) => {}
            }
        }
        Ok(frame.unwrap_or(ROOT))
    }

    /// Notes a node that was added to the graph: the same frames as an existing one.
    pub(super) fn push_like(&mut self, id: NodeId) {
        self.push(self.of_node[id.index()], self.of_outputs[id.index()]);
    }

    /// Notes a node that was added to the graph.
    pub(super) fn push(&mut self, of_node: u32, of_outputs: u32) {
        self.of_node.push(of_node);
        self.of_outputs.push(of_outputs);
    }
}
