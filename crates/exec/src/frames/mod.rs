//! Loops: frames and iterations at run time.
//!
//! An `Enter` opens a child frame of the iteration it runs in; values entering as constants are
//! handed to every iteration. `NextIteration` hands values to the next iteration, which starts only
//! while fewer than `parallel_iterations` are open. `Exit` hands values to the parent. A frame ends
//! when all its Enters came and no iteration has anything running; dead exits of its last iteration
//! are handed on only then.
//!
//! Iterations stay where they are in [`State::iterations`] when they close, and serve later iterations
//! of the same loop: a loop allocates for as many as were ever open at once.

mod assign;
mod id;

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use tensorfleet_kernel::{FrameIter, Value};

use crate::plan::{Kind, Plan};
use crate::state::{SourceOf, State, Task, activate};

pub(crate) use assign::{StaticFrame, assign};

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
    constants: Vec<(SourceOf, Value)>,
    /// NextIterations that wait for a place: node and value.
    waiting: Vec<(u32, Value)>,
}

/// The frames of one step.
pub(crate) struct Frames {
    live: Vec<Option<Frame>>,
    by_parent: FxHashMap<(u32, u32), u32>,
    /// Closed iterations by static frame: indices into `State::iterations`.
    free: Vec<Vec<u32>>,
}

impl Frames {
    pub(crate) fn new(static_frames: usize) -> Frames {
        Frames {
            live: Vec::new(),
            by_parent: FxHashMap::default(),
            free: vec![Vec::new(); static_frames],
        }
    }

    /// Whether some frame has not ended.
    pub(crate) fn any_live(&self) -> bool {
        self.live.iter().any(Option::is_some)
    }

    fn get_mut(&mut self, index: u32) -> Option<&mut Frame> {
        self.live.get_mut(index as usize)?.as_mut()
    }
}

/// Hands the outputs of a run on, across frames where the node says so, and tidies up what ended.
pub(crate) fn propagate(
    state: &mut State,
    plan: &Plan,
    task: Task,
    outputs: &mut [Value],
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
            // A dead one was noted where it became dead; it never runs.
            if let Some(frame) = state.frames.get_mut(frame).filter(|_| !dead) {
                let parent = frame.parent_iteration;
                hand(state, plan, source, parent, outputs);
            }
        }
        Kind::NextIteration => next_iteration(state, plan, task, outputs, dead),
        _ => hand(state, plan, source, task.iteration, outputs),
    }
    // The run ended; close what has nothing left to do.
    let ended = &mut state.iterations[task.iteration as usize];
    ended.running -= 1;
    if ended.running == 0 && task.iteration != 0 {
        let frame = ended.frame;
        settle_frame(state, plan, frame);
    }
}

/// Hands outputs to the consumers in one iteration.
#[inline]
fn hand(state: &mut State, plan: &Plan, source: SourceOf, iteration: u32, outputs: &mut [Value]) {
    activate::<false>(
        plan,
        source,
        &mut state.iterations[iteration as usize],
        iteration,
        outputs,
        &mut state.ready,
    );
}

fn enter(state: &mut State, plan: &Plan, task: Task, outputs: &mut [Value], dead: bool) {
    let node = &plan.nodes[task.node as usize];
    let child = plan.child_frame(task.node);
    let index = find_or_create_frame(state, plan, child, task.iteration);
    let Some(frame) = state.frames.get_mut(index) else {
        return;
    };
    frame.pending_enters -= 1;
    let source = SourceOf {
        node: task.node,
        dead,
    };
    if node.marked {
        let mut value = outputs.first_mut().map(std::mem::take).unwrap_or_default();
        for iteration in &frame.open {
            activate::<true>(
                plan,
                source,
                &mut state.iterations[*iteration as usize],
                *iteration,
                std::slice::from_mut(&mut value),
                &mut state.ready,
            );
        }
        frame.constants.push((source, value));
    } else if let Some(first) = frame.open.front().copied() {
        // Iteration 0 stays open until all Enters came, so the oldest open one is it.
        hand(state, plan, source, first, outputs);
    }
    settle_frame(state, plan, index);
}

fn next_iteration(state: &mut State, plan: &Plan, task: Task, outputs: &mut [Value], dead: bool) {
    if dead {
        return;
    }
    let iteration = &state.iterations[task.iteration as usize];
    let (frame_index, number) = (iteration.frame, iteration.at.iteration);
    let Some(frame) = state.frames.get_mut(frame_index) else {
        return;
    };
    let behind = frame.newest - number;
    let target = if behind == 0 {
        let limit = plan.frames[frame.fixed as usize].parallel_iterations as usize;
        if frame.open.len() >= limit {
            let value = outputs.first_mut().map(std::mem::take).unwrap_or_default();
            frame.waiting.push((task.node, value));
            return;
        }
        open_iteration(state, plan, frame_index)
    } else {
        // The next one is open already: one place nearer to the newest than this one.
        usize::try_from(behind)
            .ok()
            .and_then(|behind| frame.open.len().checked_sub(behind))
            .and_then(|position| frame.open.get(position).copied())
    };
    if let Some(target) = target {
        let source = SourceOf {
            node: task.node,
            dead: false,
        };
        hand(state, plan, source, target, outputs);
    }
}

fn find_or_create_frame(state: &mut State, plan: &Plan, fixed: u32, parent_iteration: u32) -> u32 {
    if let Some(index) = state.frames.by_parent.get(&(parent_iteration, fixed)) {
        return *index;
    }
    let parent = state.iterations[parent_iteration as usize].at;
    let known = &plan.frames[fixed as usize];
    let live = &mut state.frames.live;
    let index = live.iter().position(Option::is_none).unwrap_or_else(|| {
        live.push(None);
        live.len() - 1
    });
    live[index] = Some(Frame {
        fixed,
        parent_iteration,
        id: id::child_frame_id(parent.frame_id, parent.iteration, &known.name),
        pending_enters: known.enters,
        open: VecDeque::new(),
        newest: -1,
        constants: Vec::new(),
        waiting: Vec::new(),
    });
    let index = index as u32;
    state
        .frames
        .by_parent
        .insert((parent_iteration, fixed), index);
    state.iterations[parent_iteration as usize].children += 1;
    open_iteration(state, plan, index);
    index
}

/// Starts the next iteration of a frame: fresh counts, and the constants handed in. Returns its index.
fn open_iteration(state: &mut State, plan: &Plan, frame_index: u32) -> Option<u32> {
    let frame = state.frames.live.get_mut(frame_index as usize)?.as_mut()?;
    let known = &plan.frames[frame.fixed as usize];
    let free = state.frames.free.get_mut(frame.fixed as usize);
    let index = match free.and_then(Vec::pop) {
        Some(index) => {
            let counts = &mut state.iterations[index as usize].counts;
            counts.copy_from_slice(&known.counts);
            index
        }
        None => {
            state.iterations.push(known.iteration());
            (state.iterations.len() - 1) as u32
        }
    };
    frame.newest += 1;
    frame.open.push_back(index);
    let iteration = &mut state.iterations[index as usize];
    iteration.frame = frame_index;
    iteration.at = FrameIter {
        frame_id: frame.id,
        iteration: frame.newest,
    };
    iteration.running = 0;
    iteration.children = 0;
    iteration.dead_exits.clear();
    for (source, value) in &mut frame.constants {
        let value = std::slice::from_mut(value);
        activate::<true>(plan, *source, iteration, index, value, &mut state.ready);
    }
    Some(index)
}

/// Closes the oldest iterations while they are done, lets waiting ones start, ends the frame if all is done.
fn settle_frame(state: &mut State, plan: &Plan, frame_index: u32) {
    loop {
        let Some(frame) = state.frames.live.get_mut(frame_index as usize) else {
            return;
        };
        let Some(frame) = frame.as_mut() else {
            return;
        };
        let Some(oldest) = frame.open.front().copied() else {
            return;
        };
        let iteration = &mut state.iterations[oldest as usize];
        if iteration.running > 0 || iteration.children > 0 || frame.pending_enters > 0 {
            return;
        }
        frame.open.pop_front();
        // Values for nodes that never became ready, such as a second input of a Merge, end here.
        for slot in &mut iteration.slots {
            if !matches!(slot, Value::Empty) {
                *slot = Value::Empty;
            }
        }
        if let Some(free) = state.frames.free.get_mut(frame.fixed as usize) {
            free.push(oldest);
        }
        if !frame.waiting.is_empty() {
            start_waiting(state, plan, frame_index);
        } else if frame.open.is_empty() {
            return end_frame(state, plan, frame_index, oldest);
        }
    }
}

/// Opens the iteration that NextIterations wait for and hands them on.
fn start_waiting(state: &mut State, plan: &Plan, frame_index: u32) {
    let opened = open_iteration(state, plan, frame_index);
    let Some(frame) = state.frames.get_mut(frame_index) else {
        return;
    };
    let mut waiting = std::mem::take(&mut frame.waiting);
    for (node, mut value) in waiting.drain(..) {
        let source = SourceOf { node, dead: false };
        if let Some(index) = opened {
            hand(state, plan, source, index, std::slice::from_mut(&mut value));
        }
    }
    if let Some(frame) = state.frames.get_mut(frame_index) {
        frame.waiting = waiting;
    }
}

/// Removes a frame that is done and hands the dead exits of its last iteration to the parent.
fn end_frame(state: &mut State, plan: &Plan, frame_index: u32, last: u32) {
    let frame = state.frames.live.get_mut(frame_index as usize);
    let Some(frame) = frame.and_then(Option::take) else {
        return;
    };
    let parent = frame.parent_iteration;
    state.frames.by_parent.remove(&(parent, frame.fixed));
    let dead_exits = std::mem::take(&mut state.iterations[last as usize].dead_exits);
    for node in dead_exits {
        let source = SourceOf { node, dead: true };
        hand(state, plan, source, parent, &mut []);
    }
    let iteration = &mut state.iterations[parent as usize];
    iteration.children -= 1;
    if parent != 0 && iteration.running == 0 {
        let outer = iteration.frame;
        settle_frame(state, plan, outer);
    }
}
