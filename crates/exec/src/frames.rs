//! Loops: which frame every node is in, and frames and iterations at run time.
//!
//! An `Enter` opens a child frame of the iteration it runs in; values entering as constants are
//! handed to every iteration. `NextIteration` hands values to the next iteration, which starts only
//! while fewer than `parallel_iterations` are open. `Exit` hands values to the parent. A frame ends
//! when all its Enters came and no iteration has anything running; dead exits of its last iteration
//! are handed on only then.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tensorfleet_graph::{Graph, NodeId};
use tensorfleet_kernel::{FrameIter, Outputs, Value};
use tensorfleet_status::{Result, invalid_argument};

use crate::plan::{Kind, Plan};
use crate::state::{Count, Iteration, SourceOf, State, Task, activate};

/// What is known of a frame before anything runs.
#[derive(Default)]
pub(crate) struct StaticFrame {
    /// The `frame_name` of its Enters.
    pub(crate) name: String,
    /// Initial counts of its nodes.
    pub(crate) counts: Vec<Count>,
    /// The number of input slots of its nodes.
    pub(crate) slots: u32,
    enters: u32,
    parallel_iterations: u32,
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
            slots: std::iter::repeat_with(Value::default)
                .take(self.slots as usize)
                .collect(),
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
    let is_next = |id: NodeId| {
        matches!(
            graph.node(id).op_name(),
            "NextIteration" | "RefNextIteration"
        )
    };
    for id in graph.topological_order()? {
        let node = graph.node(id);
        let sources = node
            .inputs
            .iter()
            .map(|input| input.node)
            .chain(node.control_inputs.iter().copied());
        let mut frame = None;
        for source in sources.filter(|source| !is_next(*source)) {
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

/// A frame at run time.
struct Frame {
    fixed: u32,
    parent_iteration: u32,
    id: u64,
    /// Enters that did not come yet.
    pending_enters: u32,
    /// Open iterations, oldest first: indices into `State::iterations`.
    open: VecDeque<u32>,
    /// The number of the newest iteration.
    newest: i64,
    /// Values that every iteration gets.
    constants: Vec<(u32, Value, bool)>,
    /// NextIterations that wait for a place: node and value.
    waiting: Vec<(u32, Value)>,
    dead_exits: Vec<u32>,
}

/// The frames of one step.
pub(crate) struct Frames {
    live: Vec<Option<Frame>>,
    by_parent: FxHashMap<(u32, u32), u32>,
    free_iterations: Vec<u32>,
    /// Spare iterations by static frame, so that a loop allocates only for its first ones.
    spare: Vec<Vec<Iteration>>,
}

impl Frames {
    pub(crate) fn new() -> Frames {
        Frames {
            live: Vec::new(),
            by_parent: FxHashMap::default(),
            free_iterations: Vec::new(),
            spare: Vec::new(),
        }
    }

    pub(crate) fn reset(&mut self) {
        self.live.clear();
        self.by_parent.clear();
        self.free_iterations.clear();
    }

    /// Frame id and iteration of a task, for rendezvous keys.
    pub(crate) fn frame_iter(&self, iteration: &Iteration, index: u32) -> FrameIter {
        if index == 0 {
            return FrameIter::default();
        }
        let frame = self
            .live
            .get(iteration.frame as usize)
            .and_then(Option::as_ref);
        FrameIter {
            frame_id: frame.map_or(0, |frame| frame.id),
            iteration: iteration.number,
        }
    }
}

/// Hands the outputs of a run on, across frames where the node says so, and tidies up what ended.
pub(crate) fn propagate(
    state: &mut State,
    plan: &Plan,
    task: Task,
    outputs: &mut Outputs,
    dead: bool,
) {
    let source = SourceOf {
        node: task.node,
        dead,
    };
    match plan.nodes[task.node as usize].kind {
        Kind::Enter => enter(state, plan, task, outputs, dead),
        Kind::Exit => {
            let frame = state.iterations[task.iteration as usize].frame;
            if let Some(Some(frame)) = state.frames.live.get_mut(frame as usize) {
                if dead {
                    if state.iterations[task.iteration as usize].number == frame.newest {
                        frame.dead_exits.push(task.node);
                    }
                } else {
                    let parent = frame.parent_iteration;
                    activate(
                        plan,
                        source,
                        &mut state.iterations[parent as usize],
                        parent,
                        outputs,
                        &mut state.ready,
                    );
                }
            }
        }
        Kind::NextIteration => next_iteration(state, plan, task, outputs, dead),
        _ => activate(
            plan,
            source,
            &mut state.iterations[task.iteration as usize],
            task.iteration,
            outputs,
            &mut state.ready,
        ),
    }
    finish_run(state, plan, task.iteration);
}

fn enter(state: &mut State, plan: &Plan, task: Task, outputs: &mut Outputs, dead: bool) {
    let node = &plan.nodes[task.node as usize];
    let index = find_or_create_frame(state, plan, node.child_frame, task.iteration);
    let Some(Some(frame)) = state.frames.live.get_mut(index as usize) else {
        return;
    };
    frame.pending_enters -= 1;
    let first = frame.open.front().copied();
    let source = SourceOf {
        node: task.node,
        dead,
    };
    if node.is_constant {
        let value = outputs.first().cloned().unwrap_or_default();
        frame.constants.push((task.node, value.clone(), dead));
        let open: SmallVec<[u32; 8]> = frame.open.iter().copied().collect();
        for iteration in open {
            let mut copy: Outputs = SmallVec::from_iter([value.clone()]);
            activate(
                plan,
                source,
                &mut state.iterations[iteration as usize],
                iteration,
                &mut copy,
                &mut state.ready,
            );
        }
    } else if let Some(iteration) = first {
        // Iteration 0 stays open until all Enters came, so the oldest open one is it.
        activate(
            plan,
            source,
            &mut state.iterations[iteration as usize],
            iteration,
            outputs,
            &mut state.ready,
        );
    }
    settle_frame(state, plan, index);
}

fn next_iteration(state: &mut State, plan: &Plan, task: Task, outputs: &mut Outputs, dead: bool) {
    if dead {
        return;
    }
    let (frame_index, number) = {
        let iteration = &state.iterations[task.iteration as usize];
        (iteration.frame, iteration.number)
    };
    let Some(Some(frame)) = state.frames.live.get_mut(frame_index as usize) else {
        return;
    };
    if number == frame.newest {
        let limit = plan.frames[frame.fixed as usize].parallel_iterations as usize;
        if frame.open.len() >= limit {
            let value = outputs.first_mut().map(std::mem::take).unwrap_or_default();
            frame.waiting.push((task.node, value));
            return;
        }
        open_iteration(state, plan, frame_index);
    }
    let target = target_iteration(state, frame_index, number + 1);
    if let Some(target) = target {
        let source = SourceOf {
            node: task.node,
            dead: false,
        };
        activate(
            plan,
            source,
            &mut state.iterations[target as usize],
            target,
            outputs,
            &mut state.ready,
        );
    }
}

/// The open iteration with this number.
fn target_iteration(state: &State, frame: u32, number: i64) -> Option<u32> {
    let frame = state.frames.live.get(frame as usize)?.as_ref()?;
    let behind = usize::try_from(frame.newest - number).ok()?;
    let position = frame.open.len().checked_sub(1 + behind)?;
    frame.open.get(position).copied()
}

fn find_or_create_frame(state: &mut State, plan: &Plan, fixed: u32, parent_iteration: u32) -> u32 {
    if let Some(index) = state.frames.by_parent.get(&(parent_iteration, fixed)) {
        return *index;
    }
    let parent = state.frames.frame_iter(
        &state.iterations[parent_iteration as usize],
        parent_iteration,
    );
    let known = &plan.frames[fixed as usize];
    let index = state
        .frames
        .live
        .iter()
        .position(Option::is_none)
        .unwrap_or_else(|| {
            state.frames.live.push(None);
            state.frames.live.len() - 1
        }) as u32;
    state.frames.live[index as usize] = Some(Frame {
        fixed,
        parent_iteration,
        id: child_frame_id(parent.frame_id, parent.iteration, &known.name),
        pending_enters: known.enters,
        open: VecDeque::new(),
        newest: -1,
        constants: Vec::new(),
        waiting: Vec::new(),
        dead_exits: Vec::new(),
    });
    state
        .frames
        .by_parent
        .insert((parent_iteration, fixed), index);
    state.iterations[parent_iteration as usize].children += 1;
    open_iteration(state, plan, index);
    index
}

/// Starts the next iteration of a frame: fresh counts, and the constants handed in.
fn open_iteration(state: &mut State, plan: &Plan, frame_index: u32) {
    let Some(Some(frame)) = state.frames.live.get_mut(frame_index as usize) else {
        return;
    };
    frame.newest += 1;
    frame.dead_exits.clear();
    let known = &plan.frames[frame.fixed as usize];
    let mut iteration = match state
        .frames
        .spare
        .get_mut(frame.fixed as usize)
        .and_then(Vec::pop)
    {
        Some(mut spare) => {
            spare.counts.copy_from_slice(&known.counts);
            spare
        }
        None => known.iteration(),
    };
    iteration.frame = frame_index;
    iteration.number = frame.newest;
    iteration.running = 0;
    iteration.children = 0;
    let index = match state.frames.free_iterations.pop() {
        Some(index) => {
            state.iterations[index as usize] = iteration;
            index
        }
        None => {
            state.iterations.push(iteration);
            (state.iterations.len() - 1) as u32
        }
    };
    frame.open.push_back(index);
    for (node, value, dead) in &frame.constants {
        let mut outputs: Outputs = SmallVec::from_iter([value.clone()]);
        let source = SourceOf {
            node: *node,
            dead: *dead,
        };
        activate(
            plan,
            source,
            &mut state.iterations[index as usize],
            index,
            &mut outputs,
            &mut state.ready,
        );
    }
}

/// A run in this iteration ended; closes iterations and frames that have nothing left to do.
fn finish_run(state: &mut State, plan: &Plan, iteration: u32) {
    let ended = &mut state.iterations[iteration as usize];
    ended.running -= 1;
    if ended.running == 0 && iteration != 0 {
        let frame = ended.frame;
        settle_frame(state, plan, frame);
    }
}

/// Closes the oldest iterations while they are done, lets waiting ones start, ends the frame if all is done.
fn settle_frame(state: &mut State, plan: &Plan, frame_index: u32) {
    loop {
        let Some(Some(frame)) = state.frames.live.get_mut(frame_index as usize) else {
            return;
        };
        let Some(oldest) = frame.open.front().copied() else {
            break;
        };
        let iteration = &mut state.iterations[oldest as usize];
        if iteration.running > 0 || iteration.children > 0 || frame.pending_enters > 0 {
            return;
        }
        frame.open.pop_front();
        let mut closed = std::mem::take(iteration);
        // Values for nodes that never became ready, such as a second input of a Merge, end here.
        for slot in closed
            .slots
            .iter_mut()
            .filter(|slot| !matches!(slot, Value::Empty))
        {
            *slot = Value::Empty;
        }
        let fixed = frame.fixed;
        if state.frames.spare.len() <= fixed as usize {
            state.frames.spare.resize_with(fixed as usize + 1, Vec::new);
        }
        state.frames.spare[fixed as usize].push(closed);
        state.frames.free_iterations.push(oldest);
        let Some(Some(frame)) = state.frames.live.get_mut(frame_index as usize) else {
            return;
        };
        if !frame.waiting.is_empty() {
            let waiting = std::mem::take(&mut frame.waiting);
            open_iteration(state, plan, frame_index);
            let newest = state.frames.live[frame_index as usize]
                .as_ref()
                .and_then(|frame| frame.open.back().copied());
            if let Some(index) = newest {
                for (node, value) in waiting {
                    let mut outputs: Outputs = SmallVec::from_iter([value]);
                    let source = SourceOf { node, dead: false };
                    activate(
                        plan,
                        source,
                        &mut state.iterations[index as usize],
                        index,
                        &mut outputs,
                        &mut state.ready,
                    );
                }
            }
        }
    }
    end_frame(state, plan, frame_index);
}

/// Removes a frame that is done and hands its dead exits to the parent.
fn end_frame(state: &mut State, plan: &Plan, frame_index: u32) {
    let Some(frame) = state
        .frames
        .live
        .get_mut(frame_index as usize)
        .and_then(Option::take)
    else {
        return;
    };
    let parent = frame.parent_iteration;
    state.frames.by_parent.remove(&(parent, frame.fixed));
    for node in &frame.dead_exits {
        let mut outputs: Outputs = SmallVec::from_iter([Value::Empty]);
        let source = SourceOf {
            node: *node,
            dead: true,
        };
        activate(
            plan,
            source,
            &mut state.iterations[parent as usize],
            parent,
            &mut outputs,
            &mut state.ready,
        );
    }
    let iteration = &mut state.iterations[parent as usize];
    iteration.children -= 1;
    if parent != 0 && iteration.running == 0 {
        let outer = iteration.frame;
        settle_frame(state, plan, outer);
    }
}

/// TensorFlow's id of a child frame: sender and receiver of a tensor compute it independently.
fn child_frame_id(parent_id: u64, parent_iteration: i64, name: &str) -> u64 {
    combine(
        parent_id,
        combine(
            parent_iteration as u64,
            hash64(name.as_bytes(), 0x00DE_CAFC_AFFE),
        ),
    )
}

fn combine(a: u64, b: u64) -> u64 {
    a ^ b
        .wrapping_add(0x9e37_79b9_7f4a_7800)
        .wrapping_add(a << 10)
        .wrapping_add(a >> 4)
}

/// MurmurHash64A.
fn hash64(data: &[u8], seed: u64) -> u64 {
    const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
    const SHIFT: u32 = 47;
    let mut hash = seed ^ (data.len() as u64).wrapping_mul(MULTIPLIER);
    let mut words = data.chunks_exact(8);
    for word in &mut words {
        let mut k = u64::from_le_bytes(word.try_into().unwrap_or_default());
        k = k.wrapping_mul(MULTIPLIER);
        k ^= k >> SHIFT;
        k = k.wrapping_mul(MULTIPLIER);
        hash ^= k;
        hash = hash.wrapping_mul(MULTIPLIER);
    }
    let tail = words.remainder();
    if !tail.is_empty() {
        let mut word = [0u8; 8];
        word[..tail.len()].copy_from_slice(tail);
        hash ^= u64::from_le_bytes(word);
        hash = hash.wrapping_mul(MULTIPLIER);
    }
    hash ^= hash >> SHIFT;
    hash = hash.wrapping_mul(MULTIPLIER);
    hash ^ (hash >> SHIFT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_ids_are_tensorflows() {
        // Seen on the wire: frame "loop/while_context" entered from the top level.
        assert_eq!(
            child_frame_id(0, 0, "loop/while_context"),
            6_339_987_812_709_914_503
        );
    }
}
