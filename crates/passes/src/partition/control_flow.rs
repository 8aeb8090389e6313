//! Loops and conditionals that span devices, made ready for any split.
//!
//! First nodes move to where they cost least and cannot hang: `Switch` and `Exit` to their data
//! input, `Enter` and `NextIteration` to their consumers. The latter two hand on values only in some
//! iterations, so a receive of their outputs would wait for ever in the others: if their consumers
//! are on several devices they are copied, and their inputs are transferred instead.
//!
//! Then every device that receives something inside of a frame gets a control loop of that frame:
//!
//! ```text
//!   Const ──> Enter ──> Merge ──> Switch ──> NextIteration ──┐
//!                         ^         ^ LoopCond               │
//!                         └─────────┼────────────────────────┘
//!     outer control loop's Merge ──> Enter, if nested
//! ```
//!
//! Its Merge runs once per iteration, whatever the device has of the loop itself, and every node with
//! an input from another device waits for it. Splitting hands that edge on to the receives. The names
//! start with [`CONTROL_LOOP`]: by that TensorFlow's workers know the edges.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};
use tensorfleet_graph::{Graph, Node, NodeId, Output};
use tensorfleet_kernel::{AttrValue, Attrs};
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{DType, Shape, Tensor};

use super::frames::{self, Frames, ROOT, is_enter};
use super::names::Names;

/// How the names of control loops' nodes start.
pub(super) const CONTROL_LOOP: &str = "_cloop";

/// Whether a control edge from this node says "once per iteration".
pub(super) fn is_control_loop_merge(node: &Node) -> bool {
    node.op_name() == "Merge" && node.name.starts_with(CONTROL_LOOP)
}

/// Moves nodes and adds control loops; `devices` is kept in step with the graph.
pub(super) fn add(graph: &mut Graph, devices: &mut Vec<u32>, names: &Names<'_>) -> Result<()> {
    let mut has_switches = false;
    let mut has_frames = false;
    for (_, node) in graph.nodes() {
        has_switches |= is_follower(node);
        has_frames |= is_enter(node);
    }
    if !has_switches && !has_frames {
        return Ok(());
    }
    let order = graph.topological_order()?;
    follow_inputs(graph, &order, devices);
    if !has_frames {
        return Ok(());
    }
    let frames = frames::find(graph, &order)?;
    let mut loops = Loops {
        graph,
        devices,
        names,
        frames,
        merges: FxHashMap::default(),
    };
    loops.copy_to_consumers(&order)?;
    for (frame, device) in loops.needed() {
        loops.control_loop(frame, device)?;
    }
    loops.add_control_edges();
    Ok(())
}

/// Whether a node moves to its data input.
fn is_follower(node: &Node) -> bool {
    matches!(
        node.op_name(),
        "Switch" | "RefSwitch" | "_SwitchN" | "Exit" | "RefExit"
    )
}

/// Whether a node moves to its consumers, and can be copied for several.
fn is_copied(node: &Node) -> bool {
    matches!(node.op_name(), "Enter" | "NextIteration")
}

fn follow_inputs(graph: &Graph, order: &[NodeId], devices: &mut [u32]) {
    for id in order {
        let node = graph.node(*id);
        if !is_follower(node) {
            continue;
        }
        if let Some(input) = node.inputs.first()
            && !is_copied(graph.node(input.node))
        {
            devices[id.index()] = devices[input.node.index()];
        }
    }
}

struct Loops<'a> {
    graph: &'a mut Graph,
    devices: &'a mut Vec<u32>,
    names: &'a Names<'a>,
    frames: Frames,
    /// The Merge of the control loop of a frame on a device.
    merges: FxHashMap<(u32, u32), NodeId>,
}

impl Loops<'_> {
    /// Puts `Enter` and `NextIteration` on the devices of their consumers.
    fn copy_to_consumers(&mut self, order: &[NodeId]) -> Result<()> {
        let consumers = self.graph.consumers();
        let mut places: FxHashMap<NodeId, SmallVec<[u32; 2]>> = FxHashMap::default();
        // Backwards: the consumers of an Enter may be Enters of a nested frame.
        for id in order.iter().rev() {
            if !is_copied(self.graph.node(*id)) {
                continue;
            }
            let mut found: SmallVec<[u32; 2]> = SmallVec::new();
            let all = &consumers[id.index()];
            let data = all.iter().filter(|(_, port)| port.is_some());
            let control = all.iter().filter(|(_, port)| port.is_none());
            for (consumer, _) in data.chain(control) {
                let own: SmallVec<[u32; 2]> = smallvec![self.devices[consumer.index()]];
                for device in places.get(consumer).unwrap_or(&own) {
                    if !found.contains(device) {
                        found.push(*device);
                    }
                }
            }
            if let Some(first) = found.first() {
                self.devices[id.index()] = *first;
                places.insert(*id, found);
            }
        }
        let mut copies: FxHashMap<(NodeId, u32), NodeId> = FxHashMap::default();
        for id in order {
            let devices = places.get(id).map_or(&[][..], |devices| &devices[..]);
            for device in devices.iter().skip(1) {
                let node = self.graph.node(*id).clone();
                let copy = self.graph.add(
                    self.names.fresh(&node.name),
                    node.op,
                    node.attrs,
                    node.inputs,
                    node.control_inputs,
                    "",
                )?;
                self.devices.push(*device);
                self.frames.push_like(*id);
                copies.insert((*id, *device), copy);
            }
        }
        if copies.is_empty() {
            return Ok(());
        }
        for id in self.graph.ids() {
            self.read_copies(id, &copies)?;
        }
        Ok(())
    }

    /// Lets a node read the copies that are on its device.
    fn read_copies(&mut self, id: NodeId, copies: &FxHashMap<(NodeId, u32), NodeId>) -> Result<()> {
        let device = self.devices[id.index()];
        for port in 0..self.graph.node(id).inputs.len() {
            let input = self.graph.node(id).inputs[port];
            if let Some(copy) = copies.get(&(input.node, device)) {
                self.graph
                    .set_input(id, port, copy.output(input.port as usize))?;
            }
        }
        let controls = &self.graph.node(id).control_inputs;
        let copy_of = |control: &NodeId| copies.get(&(*control, device)).copied();
        if controls.iter().any(|control| copy_of(control).is_some()) {
            let moved = controls
                .iter()
                .map(|control| copy_of(control).unwrap_or(*control))
                .collect();
            self.graph.set_control_inputs(id, moved);
        }
        Ok(())
    }

    /// Edges between devices inside of frames: (source, consumer).
    fn cross_edges(&self) -> Vec<(NodeId, NodeId)> {
        let mut edges = Vec::new();
        for (id, node) in self.graph.nodes() {
            let sources = node.inputs.iter().map(|input| input.node);
            for source in sources.chain(node.control_inputs.iter().copied()) {
                if self.devices[source.index()] != self.devices[id.index()]
                    && self.frames.of_outputs[source.index()] != ROOT
                {
                    edges.push((source, id));
                }
            }
        }
        edges
    }

    /// The frames and devices that need a control loop.
    fn needed(&self) -> Vec<(u32, u32)> {
        let mut seen = FxHashSet::default();
        let mut needed = Vec::new();
        for (source, id) in self.cross_edges() {
            let key = (
                self.frames.of_outputs[source.index()],
                self.devices[id.index()],
            );
            if seen.insert(key) {
                needed.push(key);
            }
        }
        // A device that only sends, and has no loop variable, would not iterate on its own.
        let spanning: FxHashSet<u32> = needed.iter().map(|(frame, _)| *frame).collect();
        let mut iterating: FxHashSet<(u32, u32)> = FxHashSet::default();
        for (id, node) in self.graph.nodes() {
            if node.is_next_iteration() {
                iterating.insert((self.frames.of_node[id.index()], self.devices[id.index()]));
            }
        }
        for id in self.graph.ids() {
            let key = (self.frames.of_node[id.index()], self.devices[id.index()]);
            if spanning.contains(&key.0) && !iterating.contains(&key) && seen.insert(key) {
                needed.push(key);
            }
        }
        needed
    }

    /// Adds the control loops of a frame and its parents on a device, as far as they are missing.
    fn control_loop(&mut self, frame: u32, device: u32) -> Result<()> {
        let mut chain = Vec::new();
        let mut outer = frame;
        while outer != ROOT && !self.merges.contains_key(&(outer, device)) {
            chain.push(outer);
            outer = self.frames.list[outer as usize].parent;
        }
        for frame in chain.into_iter().rev() {
            let outer = self.frames.list[frame as usize].parent;
            let start = self.merges.get(&(outer, device)).copied();
            let merge = self.one_control_loop(frame, device, start)?;
            self.merges.insert((frame, device), merge);
        }
        Ok(())
    }

    fn one_control_loop(
        &mut self,
        frame: u32,
        device: u32,
        start: Option<NodeId>,
    ) -> Result<NodeId> {
        let known = &self.frames.list[frame as usize];
        let (parent, name) = (known.parent, known.name.clone());
        let Some(loop_cond) = known.loop_cond else {
            return Err(invalid_argument!(
                "A cross-device loop must have a pivot predicate: {name}"
            ));
        };
        let mut enter_attrs = of_type("T");
        enter_attrs.set("frame_name", AttrValue::from(&*name));
        enter_attrs.set(
            "parallel_iterations",
            AttrValue::I(known.parallel_iterations),
        );
        let base = format!("{CONTROL_LOOP}{}", self.graph.node(loop_cond).name);
        let mut add = |op: &str, attrs, inputs: SmallVec<[Output; 2]>, frames: (u32, u32)| {
            let entry = self.graph.registry().find(op)?.clone();
            let name = self.names.fresh(&base);
            let id = self
                .graph
                .add(name, entry, attrs, inputs, SmallVec::new(), "")?;
            self.devices.push(device);
            self.frames.push(frames.0, frames.1);
            Ok::<NodeId, tensorfleet_status::Status>(id)
        };
        let inside = (frame, frame);
        let start = match start {
            Some(merge) => merge,
            None => add("Const", signal()?, SmallVec::new(), (parent, parent))?,
        };
        let enter = add(
            "Enter",
            enter_attrs,
            smallvec![start.output(0)],
            (parent, frame),
        )?;
        let mut merge_attrs = of_type("T");
        merge_attrs.set("N", AttrValue::I(2));
        // The back edge is set when its source is there.
        let inputs = smallvec![enter.output(0), enter.output(0)];
        let merge = add("Merge", merge_attrs, inputs, inside)?;
        let inputs = smallvec![merge.output(0), loop_cond.output(0)];
        let switch = add("Switch", of_type("T"), inputs, inside)?;
        let inputs = smallvec![switch.output(1)];
        let next = add("NextIteration", of_type("T"), inputs, inside)?;
        self.graph.set_input(merge, 1, next.output(0))?;
        Ok(merge)
    }

    /// Lets whoever has an input from another device wait for the control loop.
    fn add_control_edges(&mut self) {
        for (source, id) in self.cross_edges() {
            let key = (
                self.frames.of_outputs[source.index()],
                self.devices[id.index()],
            );
            if let Some(merge) = self.merges.get(&key) {
                self.graph.add_control(*merge, id);
            }
        }
    }
}

fn of_type(attr: &str) -> Attrs {
    let mut attrs = Attrs::new();
    attrs.set(attr, DType::F32.into());
    attrs
}

/// The attributes of a constant that carries nothing but its arrival.
pub(super) fn signal() -> Result<Attrs> {
    let mut attrs = of_type("dtype");
    let empty = Tensor::new(DType::F32, Shape::vector(0))?;
    attrs.set("value", AttrValue::Tensor(empty));
    Ok(attrs)
}
