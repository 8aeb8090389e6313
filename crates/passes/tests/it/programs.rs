//! Random programs: arithmetic, conditionals and loops, nested, with control edges.

use tensorfleet_graph::{Graph, GraphBuilder, NodeId, Output};
use tensorfleet_tensor::Tensor;

use crate::harness::registry;

/// A small random number generator with a seed.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % limit
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// A random program that returns `results` integers.
pub(crate) fn program(seed: u64, results: usize) -> Graph {
    let mut writer = Writer {
        random: Random::new(seed),
        builder: GraphBuilder::new(registry()),
        loops: 0,
    };
    let mut values: Vec<Output> = (0..3).map(|_| writer.constant(None)).collect();
    values = writer.block(values, 3);
    for index in 0..results {
        let value = writer.random.pick(&values);
        let ret = writer.builder.op("_Retval").input(value);
        ret.attr("index", index as i64).build().unwrap();
    }
    writer.builder.finish()
}

struct Writer {
    random: Random,
    builder: GraphBuilder,
    loops: u32,
}

impl Writer {
    fn constant(&mut self, after: Option<NodeId>) -> Output {
        let value = Tensor::scalar(self.random.below(9) as i32);
        let mut op = self.builder.op("Const");
        if let Some(after) = after {
            op = op.control(after);
        }
        op.attr("dtype", value.dtype())
            .attr("value", value)
            .output()
            .unwrap()
    }

    fn apply(&mut self, op: &str, inputs: &[Output]) -> Output {
        self.builder.apply(op, inputs).unwrap()
    }

    /// Random statements over values of one frame and branch; the values to go on with.
    fn block(&mut self, mut values: Vec<Output>, depth: usize) -> Vec<Output> {
        for _ in 0..2 + self.random.below(4) {
            let what = if depth == 0 { 0 } else { self.random.below(10) };
            match what {
                0..=5 => {
                    let value = self.statement(&values);
                    values.push(value);
                }
                6..=7 => {
                    let merged = self.conditional(&values, depth - 1);
                    values.extend(merged);
                }
                _ => {
                    let left = self.repeat(&values, depth - 1);
                    values.extend(left);
                }
            }
        }
        values
    }

    fn statement(&mut self, values: &[Output]) -> Output {
        if self.random.chance(15) {
            let after = self.random.pick(values).node;
            // A control edge from a Switch says nothing of its branch, one from an Enter lives on.
            if !matches!(
                self.builder.graph().node(after).op_name(),
                "Switch" | "Enter"
            ) {
                return self.constant(Some(after));
            }
        }
        let op = self.random.pick(&["AddV2", "Sub", "Maximum", "Minimum"]);
        let (x, y) = (self.random.pick(values), self.random.pick(values));
        let after = self.random.pick(values).node;
        let waits = self.random.chance(20);
        let pivot = self.pivot_for(x, y, values);
        let mut node = self.builder.op(op).input(x).input(y);
        if waits {
            node = node.control(after);
        }
        if let Some(pivot) = pivot {
            node = node.control(pivot);
        }
        node.output().unwrap()
    }

    /// What a node with these inputs must wait for: in a loop's body, where the first value is a loop
    /// variable, a node that depends on nothing but constants would live on in the last iteration.
    fn pivot_for(&self, x: Output, y: Output, values: &[Output]) -> Option<NodeId> {
        let graph = self.builder.graph();
        let is_constant = |value: Output| graph.node(value.node).op_name() == "Enter";
        (is_constant(x) && is_constant(y)).then_some(values[0].node)
    }

    fn conditional(&mut self, values: &[Output], depth: usize) -> Vec<Output> {
        let (x, y) = (self.random.pick(values), self.random.pick(values));
        let pivot = self.pivot_for(x, y, values);
        let mut condition = self.builder.op("Less").input(x).input(y);
        if let Some(pivot) = pivot {
            condition = condition.control(pivot);
        }
        let condition = condition.output().unwrap();
        let mut branches = [Vec::new(), Vec::new()];
        for _ in 0..1 + self.random.below(3) {
            let value = self.random.pick(values);
            let switch = self.apply("Switch", &[value, condition]).node;
            for (port, branch) in branches.iter_mut().enumerate() {
                branch.push(switch.output(port));
            }
        }
        let [no, yes] = branches.map(|branch| self.block(branch, depth));
        (0..1 + self.random.below(2))
            .map(|_| {
                let ends = [self.random.pick(&no), self.random.pick(&yes)];
                let merge = self.builder.op("Merge").list(&ends);
                merge.output().unwrap()
            })
            .collect()
    }

    fn repeat(&mut self, values: &[Output], depth: usize) -> Vec<Output> {
        self.loops += 1;
        let frame = format!("loop_{}/while_context", self.loops);
        let parallel = 1 + self.random.below(10) as i64;
        let enter = |writer: &mut Writer, value: Output, constant: bool| {
            let op = writer.builder.op("Enter").input(value);
            op.attr("frame_name", frame.as_str())
                .attr("is_constant", constant)
                .attr("parallel_iterations", parallel)
                .output()
                .unwrap()
        };
        let pivot = self.random.pick(values).node;
        let op = self.builder.graph().node(pivot).op_name();
        let pivot = (!matches!(op, "Switch" | "Enter")).then_some(pivot);
        let in_frame = values[0];
        let zero = self.apply("Sub", &[in_frame, in_frame]);
        let ones = self.constant_near(in_frame, pivot, 1);
        let trips = self.random.below(4) as i32;
        let limit = self.constant_near(in_frame, pivot, trips);
        let limit = enter(self, limit, true);
        let one = enter(self, ones, true);
        let mut starts = vec![zero];
        for _ in 0..1 + self.random.below(2) {
            starts.push(self.random.pick(values));
        }
        let merges: Vec<Output> = starts
            .into_iter()
            .map(|start| {
                let entered = enter(self, start, false);
                let merge = self.builder.op("Merge").list(&[entered, entered]);
                merge.output().unwrap()
            })
            .collect();
        let less = self.apply("Less", &[merges[0], limit]);
        let condition = self.apply("LoopCond", &[less]);
        let switches: Vec<NodeId> = merges
            .iter()
            .map(|merge| self.apply("Switch", &[*merge, condition]).node)
            .collect();
        let mut inside: Vec<Output> = switches
            .iter()
            .map(|switch| self.apply("Identity", &[switch.output(1)]))
            .collect();
        for _ in 0..self.random.below(3) {
            let value = self.random.pick(values);
            inside.push(enter(self, value, true));
        }
        let more = self.apply("AddV2", &[inside[0], one]);
        let body = self.block(inside, depth);
        for (index, merge) in merges.iter().enumerate() {
            // Back edges must depend on a loop variable: they end in the last iteration.
            let picked = self.random.pick(&body);
            let end = match index {
                0 => more,
                _ => self.apply("AddV2", &[picked, body[0]]),
            };
            let next = self.apply("NextIteration", &[end]);
            let graph = self.builder.graph_mut();
            graph.set_input(merge.node, 1, next).unwrap();
        }
        switches
            .iter()
            .map(|switch| self.apply("Exit", &[switch.output(0)]))
            .collect()
    }

    /// A constant in the frame and branch of a value.
    fn constant_near(&mut self, near: Output, pivot: Option<NodeId>, value: i32) -> Output {
        let tensor = Tensor::scalar(value);
        if let Some(pivot) = pivot {
            let op = self.builder.op("Const").control(pivot);
            return op
                .attr("dtype", tensor.dtype())
                .attr("value", tensor)
                .output()
                .unwrap();
        }
        let same = self.apply("Identity", &[near]);
        let op = self.builder.op("Const").control(same.node);
        op.attr("dtype", tensor.dtype())
            .attr("value", tensor)
            .output()
            .unwrap()
    }
}
