//! [`State`]: what the driver of a step owns: pending counts, values in flight, ready nodes.

use tensorfleet_kernel::{FrameIter, Value};

use crate::frames::Frames;
use crate::plan::{CONTROL, Edge, Kind, Plan, PlanNode};

/// A node that may run: which, in which iteration, and whether its inputs are dead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Task {
    pub(crate) node: u32,
    /// Index into [`State::iterations`].
    pub(crate) iteration: u32,
    pub(crate) dead: bool,
}

/// How many inputs a node waits for and how many of those that came are dead.
///
/// For a Merge the lowest bit of `pending` is set until the first live input came, and control
/// inputs count two each.
#[derive(Clone, Copy, Default)]
pub(crate) struct Count {
    pub(crate) pending: u32,
    pub(crate) dead: u32,
}

/// The counts and values of one iteration of one frame; the top level is one iteration of the root frame.
#[derive(Default)]
pub(crate) struct Iteration {
    pub(crate) counts: Vec<Count>,
    pub(crate) slots: Vec<Value>,
    /// The frame it belongs to: index into [`Frames::live`].
    pub(crate) frame: u32,
    /// The frame's id and the number of the iteration: what rendezvous keys say.
    pub(crate) at: FrameIter,
    /// Ready or running nodes.
    pub(crate) running: u32,
    /// Child frames that are not done.
    pub(crate) children: u32,
    /// Exits whose value is dead: handed to the parent if this turns out to be the last iteration.
    pub(crate) dead_exits: Vec<u32>,
}

/// The state of one step.
pub(crate) struct State {
    pub(crate) iterations: Vec<Iteration>,
    pub(crate) frames: Frames,
    pub(crate) ready: Vec<Task>,
    /// Ready nodes that are worth another thread.
    pub(crate) heavy: Vec<Task>,
    /// Runs that were started elsewhere and have not come back.
    pub(crate) outstanding: u32,
    /// Their nodes.
    pub(crate) started: Vec<u32>,
    /// Where runs on the driver's thread leave their outputs; all empty between runs.
    pub(crate) outputs: Vec<Value>,
}

impl State {
    pub(crate) fn new(plan: &Plan) -> State {
        State {
            iterations: vec![plan.frames[0].iteration()],
            frames: Frames::new(plan.frames.len()),
            ready: Vec::new(),
            heavy: Vec::new(),
            outstanding: 0,
            started: Vec::new(),
            outputs: empty(plan.most_outputs),
        }
    }

    /// Makes the state of a finished step as good as new.
    pub(crate) fn reset(&mut self, plan: &Plan, clean: bool, failed: bool) {
        self.ready.clear();
        self.heavy.clear();
        self.outstanding = 0;
        self.started.clear();
        if failed || self.frames.any_live() {
            self.iterations.truncate(1);
            self.frames = Frames::new(plan.frames.len());
        }
        if let Some(root) = self.iterations.first_mut() {
            if !clean {
                root.slots.fill_with(Value::default);
            }
            root.counts.copy_from_slice(&plan.frames[0].counts);
            root.running = 0;
            root.children = 0;
        }
    }

    /// Notes a run that was started elsewhere.
    pub(crate) fn went_out(&mut self, node: u32) {
        self.outstanding += 1;
        self.started.push(node);
    }

    /// Notes that a run came back.
    pub(crate) fn came_back(&mut self, node: u32) {
        self.outstanding -= 1;
        // The last to go is often the first to come back.
        if let Some(at) = self.started.iter().rposition(|started| *started == node) {
            self.started.swap_remove(at);
        }
    }

    /// Where a task runs, and its inputs.
    #[inline]
    pub(crate) fn inputs(&mut self, node: &PlanNode, task: Task) -> (FrameIter, &mut [Value]) {
        let iteration = &mut self.iterations[task.iteration as usize];
        let slots = &mut iteration.slots[node.slot as usize..(node.slot + node.inputs) as usize];
        (iteration.at, slots)
    }

    /// Marks the nodes without inputs as ready.
    pub(crate) fn seed(&mut self, plan: &Plan) {
        for node in plan.roots.iter().rev() {
            self.ready.push(Task {
                node: *node,
                iteration: 0,
                dead: false,
            });
        }
        self.iterations[0].running = plan.roots.len() as u32;
    }

    /// Hands the outputs of a run to its consumers. The only place where counts change.
    #[inline]
    pub(crate) fn propagate(&mut self, plan: &Plan, task: Task, outputs: &mut [Value], dead: bool) {
        if plan.has_frames {
            return crate::frames::propagate(self, plan, task, outputs, dead);
        }
        let source = SourceOf {
            node: task.node,
            dead,
        };
        activate::<false>(
            plan,
            source,
            &mut self.iterations[0],
            0,
            outputs,
            &mut self.ready,
        );
    }
}

/// So many empty values.
pub(crate) fn empty(count: usize) -> Vec<Value> {
    std::iter::repeat_with(Value::default).take(count).collect()
}

/// Whose outputs are handed on.
#[derive(Clone, Copy)]
pub(crate) struct SourceOf {
    pub(crate) node: u32,
    pub(crate) dead: bool,
}

/// Hands outputs to the consumers within one iteration; those that became ready are pushed.
///
/// An output that no later edge carries is moved, unless it is to be `KEEP`t.
#[inline]
pub(crate) fn activate<const KEEP: bool>(
    plan: &Plan,
    source: SourceOf,
    iteration: &mut Iteration,
    index: u32,
    outputs: &mut [Value],
    ready: &mut Vec<Task>,
) {
    let node = &plan.nodes[source.node as usize];
    for edge in node.edges(plan) {
        if edge.kind == Kind::Merge {
            let inputs = plan.nodes[edge.target as usize].inputs;
            let merge = Merge {
                inputs,
                from_enter: node.kind == Kind::Enter,
                moves: edge.last && !KEEP,
            };
            activate_merge(merge, edge, source, iteration, index, outputs, ready);
            continue;
        }
        let count = &mut iteration.counts[edge.local as usize];
        count.pending -= 1;
        if edge.port == CONTROL {
            count.dead += u32::from(source.dead);
        } else {
            match outputs.get_mut(edge.port as usize) {
                Some(value) if !source.dead && !matches!(value, Value::Empty) => {
                    let slot = &mut iteration.slots[edge.slot as usize];
                    if edge.last && !KEEP {
                        // The slot is empty, so this is a move that drops nothing.
                        std::mem::swap(slot, value);
                    } else {
                        *slot = value.clone();
                    }
                }
                _ => count.dead += 1,
            }
        }
        if count.pending == 0 {
            let dead = count.dead > 0 && edge.kind != Kind::ControlTrigger;
            if dead && iteration.absorbs(edge) {
                continue;
            }
            iteration.running += 1;
            ready.push(Task {
                node: edge.target,
                iteration: index,
                dead,
            });
        }
    }
}

/// What matters of a Merge to what arrives at it.
#[derive(Clone, Copy)]
struct Merge {
    inputs: u32,
    from_enter: bool,
    /// Whether the value is moved to it, not cloned.
    moves: bool,
}

/// One edge of [`activate`], to a Merge.
fn activate_merge(
    merge: Merge,
    edge: &Edge,
    source: SourceOf,
    iteration: &mut Iteration,
    index: u32,
    outputs: &mut [Value],
    ready: &mut Vec<Task>,
) {
    let value = match edge.port {
        CONTROL => None,
        port => outputs.get_mut(port as usize),
    };
    let alive = !source.dead
        && match &value {
            Some(value) => !matches!(value, Value::Empty),
            None => edge.port == CONTROL,
        };
    let count = &mut iteration.counts[edge.local as usize];
    let arrival = count.arrive_at_merge(edge, alive, merge);
    if let (true, Some(value)) = (arrival.takes_value, value) {
        let slot = &mut iteration.slots[edge.slot as usize];
        if merge.moves {
            std::mem::swap(slot, value);
        } else {
            *slot = value.clone();
        }
    }
    if arrival.is_ready {
        iteration.running += 1;
        ready.push(Task {
            node: edge.target,
            iteration: index,
            dead: arrival.is_dead,
        });
    }
}

impl Iteration {
    /// What leaves an iteration dead needs no run: a dead Exit is noted, a dead NextIteration ends here.
    #[inline]
    fn absorbs(&mut self, edge: &Edge) -> bool {
        if edge.kind == Kind::Exit {
            self.dead_exits.push(edge.target);
        }
        matches!(edge.kind, Kind::Exit | Kind::NextIteration)
    }
}

/// What an input does to the Merge it arrives at.
struct Arrival {
    is_ready: bool,
    is_dead: bool,
    takes_value: bool,
}

impl Count {
    /// A Merge runs when all control inputs came and either a live input came (the first one is taken) or
    /// all are dead. A dead Enter kills it at once: its back edge will never come.
    fn arrive_at_merge(&mut self, edge: &Edge, alive: bool, merge: Merge) -> Arrival {
        let Merge {
            inputs, from_enter, ..
        } = merge;
        if edge.port == CONTROL {
            self.pending -= 2;
            let dead = self.dead == inputs;
            return Arrival {
                is_ready: self.pending == 0 || (self.pending == 1 && dead),
                is_dead: dead,
                takes_value: false,
            };
        }
        if alive {
            let before = self.pending;
            self.pending &= !1;
            return Arrival {
                is_ready: before == 1,
                is_dead: false,
                takes_value: before & 1 == 1,
            };
        }
        self.dead += 1;
        let dead = self.dead == inputs || from_enter;
        Arrival {
            is_ready: self.pending == 1 && dead,
            is_dead: dead,
            takes_value: false,
        }
    }
}
