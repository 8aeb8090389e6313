//! [`State`]: what the driver of a step owns: pending counts, values in flight, ready nodes.

use tensorfleet_kernel::{Outputs, Value};

use crate::frames::Frames;
use crate::plan::{CONTROL, Kind, Plan};

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
    pub(crate) number: i64,
    /// Ready or running nodes.
    pub(crate) running: u32,
    /// Child frames that are not done.
    pub(crate) children: u32,
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
}

impl State {
    pub(crate) fn new(plan: &Plan) -> State {
        State {
            iterations: vec![plan.frames[0].iteration()],
            frames: Frames::new(),
            ready: Vec::new(),
            heavy: Vec::new(),
            outstanding: 0,
        }
    }

    /// Makes the state of a finished step as good as new.
    pub(crate) fn reset(&mut self, plan: &Plan, clean: bool) {
        self.iterations.truncate(1);
        self.frames.reset();
        self.ready.clear();
        self.heavy.clear();
        self.outstanding = 0;
        if let Some(root) = self.iterations.first_mut() {
            if !clean {
                root.slots.fill_with(Value::default);
            }
            root.counts.copy_from_slice(&plan.frames[0].counts);
            root.running = 0;
            root.children = 0;
        }
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
    pub(crate) fn propagate(&mut self, plan: &Plan, task: Task, outputs: &mut Outputs, dead: bool) {
        if plan.has_frames {
            return crate::frames::propagate(self, plan, task, outputs, dead);
        }
        let source = SourceOf {
            node: task.node,
            dead,
        };
        activate(
            plan,
            source,
            &mut self.iterations[0],
            0,
            outputs,
            &mut self.ready,
        );
    }
}

/// Whose outputs are handed on.
#[derive(Clone, Copy)]
pub(crate) struct SourceOf {
    pub(crate) node: u32,
    pub(crate) dead: bool,
}

/// Hands outputs to the consumers within one iteration; those that became ready are pushed.
pub(crate) fn activate(
    plan: &Plan,
    source: SourceOf,
    iteration: &mut Iteration,
    index: u32,
    outputs: &mut Outputs,
    ready: &mut Vec<Task>,
) {
    let from_enter = plan.nodes[source.node as usize].kind == Kind::Enter;
    for edge in plan.nodes[source.node as usize].edges(plan) {
        let count = &mut iteration.counts[edge.local as usize];
        let is_control = edge.port == CONTROL;
        let value = if is_control {
            None
        } else {
            outputs.get_mut(edge.port as usize)
        };
        let alive = !source.dead
            && (is_control
                || value
                    .as_deref()
                    .is_some_and(|value| !matches!(value, Value::Empty)));
        let (is_ready, is_dead, takes_value);
        if edge.to_merge {
            (is_ready, is_dead, takes_value) = count.arrive_at_merge(
                is_control,
                alive,
                plan.nodes[edge.target as usize].inputs,
                from_enter,
            );
        } else {
            count.pending -= 1;
            count.dead += u32::from(!alive);
            is_ready = count.pending == 0;
            is_dead = count.dead > 0;
            takes_value = !is_control && alive;
        }
        if let (true, Some(value)) = (takes_value, value) {
            iteration.slots[edge.slot as usize] = if edge.last {
                std::mem::take(value)
            } else {
                value.clone()
            };
        }
        if is_ready {
            iteration.running += 1;
            ready.push(Task {
                node: edge.target,
                iteration: index,
                dead: is_dead && plan.nodes[edge.target as usize].kind != Kind::ControlTrigger,
            });
        }
    }
}

impl Count {
    /// (ready, dead, takes the value) for an input of a Merge.
    ///
    /// A Merge runs when all control inputs came and either a live input came (the first one is taken) or
    /// all are dead. A dead Enter kills it at once: its back edge will never come.
    fn arrive_at_merge(
        &mut self,
        is_control: bool,
        alive: bool,
        inputs: u32,
        from_enter: bool,
    ) -> (bool, bool, bool) {
        if is_control {
            self.pending -= 2;
            let dead = self.dead == inputs;
            return (
                self.pending == 0 || (self.pending == 1 && dead),
                dead,
                false,
            );
        }
        if alive {
            let before = self.pending;
            self.pending &= !1;
            return (before == 1, false, before & 1 == 1);
        }
        self.dead += 1;
        let dead = self.dead == inputs || from_enter;
        (self.pending == 1 && dead, dead, false)
    }
}
