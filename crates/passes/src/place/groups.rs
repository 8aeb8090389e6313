//! [`Groups`]: sets of nodes that must share a device, and what each set asks for.
//!
//! Union-find over the nodes. What a group asks for is kept at its root: the device of nodes placed
//! earlier (*assigned*), of nodes that own state (*resource*), and what all nodes together ask for
//! (*requested*), which always includes the first two.

use rustc_hash::FxHashMap;
use tensorfleet_graph::{Graph, Node, NodeId};
use tensorfleet_kernel::{AttrList, AttrValue};
use tensorfleet_status::{Result, Status, invalid_argument};
use tensorfleet_tensor::DType;

use super::PlaceOptions;
use super::explain;
use super::kernels;
use super::specs::{SpecId, Specs};

/// What a group asks for.
#[derive(Clone, Copy)]
pub(super) struct Member {
    pub(super) assigned: SpecId,
    pub(super) resource: SpecId,
    pub(super) requested: SpecId,
    /// The kinds of device that run all its nodes, as bits.
    pub(super) supported: u32,
}

pub(super) struct Groups<'a> {
    pub(super) graph: &'a Graph,
    pub(super) options: &'a PlaceOptions<'a>,
    /// All nodes, in the order they are looked at.
    pub(super) order: &'a [u32],
    pub(super) specs: Specs,
    pub(super) notes: Vec<String>,
    parent: Vec<u32>,
    rank: Vec<u8>,
    members: Vec<Member>,
}

impl<'a> Groups<'a> {
    /// Every node on its own.
    pub(super) fn new(
        graph: &'a Graph,
        options: &'a PlaceOptions<'a>,
        order: &'a [u32],
    ) -> Result<Groups<'a>> {
        let nobody = Member {
            assigned: SpecId::ANY,
            resource: SpecId::ANY,
            requested: SpecId::ANY,
            supported: 0,
        };
        let mut groups = Groups {
            graph,
            options,
            order,
            specs: Specs::new(),
            notes: Vec::new(),
            parent: (0..graph.len() as u32).collect(),
            rank: vec![0; graph.len()],
            members: vec![nobody; graph.len()],
        };
        for (position, index) in order.iter().enumerate() {
            groups.members[*index as usize] = groups.member(*index, position)?;
        }
        Ok(groups)
    }

    pub(super) fn node(&self, index: u32) -> &'a Node {
        self.graph.node(NodeId::from_index(index as usize))
    }

    /// The root of a node's group.
    pub(super) fn root(&mut self, index: u32) -> u32 {
        let mut at = index;
        while self.parent[at as usize] != at {
            // Path halving.
            let grandparent = self.parent[self.parent[at as usize] as usize];
            self.parent[at as usize] = grandparent;
            at = grandparent;
        }
        at
    }

    /// What the group with this root asks for.
    pub(super) fn at(&self, root: u32) -> Member {
        self.members[root as usize]
    }

    /// Joins the ends of reference and resource edges. State cannot move: where the ends ask for
    /// different devices, the source's wish wins.
    pub(super) fn join_edges(&mut self) -> Result<()> {
        for index in self.order {
            let node = self.node(*index);
            for (input, port_type) in node.inputs.iter().zip(&node.input_types) {
                let bound = match port_type.dtype {
                    DType::Resource => {
                        !is_exempt(node)
                            && !is_boundary(node)
                            && !is_boundary(self.graph.node(input.node))
                    }
                    DType::Variant => {
                        is_dataset(node.op_name())
                            && is_dataset(self.graph.node(input.node).op_name())
                    }
                    _ => false,
                };
                if bound || port_type.is_ref {
                    self.join_edge(input.node.index() as u32, *index)?;
                }
            }
        }
        Ok(())
    }

    /// Joins the groups that `_class` names; every node is in the group of its own name, too.
    pub(super) fn join_classes(&mut self) -> Result<()> {
        let graph = self.graph;
        let mut wanted: FxHashMap<&str, Option<u32>> = FxHashMap::default();
        // Most nodes neither name a group nor are named: they are passed over below.
        let mut concerned = vec![false; graph.len()];
        for (id, node) in graph.nodes() {
            for class in classes(node) {
                wanted.insert(class, None);
                concerned[id.index()] = true;
                if let Some(named) = graph.find(class) {
                    concerned[named.index()] = true;
                }
            }
        }
        for index in self.order {
            if !concerned[*index as usize] {
                continue;
            }
            let node = self.node(*index);
            for class in classes(node).chain([&*node.name]) {
                // A name that nobody asks for makes no group.
                match wanted.get_mut(class) {
                    None => {}
                    Some(first @ None) => *first = Some(*index),
                    Some(Some(first)) => {
                        let first = *first;
                        self.join_class(*index, first, class)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn member(&mut self, index: u32, position: usize) -> Result<Member> {
        let node = self.node(index);
        let devices = self.options.devices;
        if let Some(device) = self.options.assigned(node) {
            let spec = self.specs.intern(devices.device(device).name.clone());
            return Ok(Member {
                assigned: spec,
                resource: SpecId::ANY,
                requested: spec,
                supported: devices.kinds_mask(),
            });
        }
        let parsed = self.specs.parse(&node.device);
        let wanted = *parsed.as_ref().unwrap_or(&SpecId::ANY);
        let supported = kernels::supported(node, self.specs.name(wanted), devices);
        if supported == 0 {
            return Err(explain::no_kernel(node, devices));
        }
        if parsed.is_err() {
            return Err(explain::malformed(node, position));
        }
        Ok(Member {
            assigned: SpecId::ANY,
            resource: match owns_state(node) {
                true => wanted,
                false => SpecId::ANY,
            },
            requested: wanted,
            supported,
        })
    }

    fn join_edge(&mut self, source: u32, target: u32) -> Result<()> {
        let (source_root, target_root) = (self.root(source), self.root(target));
        let (from, to) = (self.at(source_root), self.at(target_root));
        for (what, one, other) in [
            ("assigned", from.assigned, to.assigned),
            ("resource", from.resource, to.resource),
        ] {
            if !self.specs.are_compatible(one, other) {
                let edge = (self.node(source), self.node(target));
                let wishes = (self.specs.name(one), self.specs.name(other));
                return Err(explain::edge_conflict(what, edge, wishes));
            }
        }
        if !self.specs.are_compatible(from.requested, to.requested) {
            if self.options.log_device_placement {
                self.notes.push(format!(
                    "Ignoring device specification {} for node '{}' because the input edge from '{}' is a reference connection and already has a device field set to {}",
                    self.specs.name(to.requested),
                    self.node(target).name,
                    self.node(source).name,
                    self.specs.name(from.requested)
                ));
            }
            self.members[target_root as usize].requested =
                self.with_fixed(from.requested, to.assigned, to.resource);
        }
        self.join((source, source_root), (target, target_root))
            .map_err(|status| {
                let status = invalid_argument!(
                    "Nodes were connected by a reference or resource connection (requiring them to be on the same device), but the two nodes were assigned two different devices: {}",
                    status.message()
                );
                explain::attach(status, self.node(target))
            })
    }

    fn join_class(&mut self, index: u32, first: u32, class: &str) -> Result<()> {
        let (root, first_root) = (self.root(index), self.root(first));
        match self.join((index, root), (first, first_root)) {
            Ok(()) => Ok(()),
            Err(status) if self.options.allow_soft_placement => {
                if self.options.log_device_placement {
                    self.notes.push(format!(
                        "Ignoring request to colocate node '{}' with nodes in colocation group '{class}' because soft placement is on and an attempt at doing so resulted in the following error: {status}",
                        self.node(index).name
                    ));
                }
                Ok(())
            }
            Err(status) => Err(explain::attach(status, self.node(index))),
        }
    }

    /// Joins the groups of two nodes, given with their roots; nothing changes if they disagree.
    fn join(&mut self, x: (u32, u32), y: (u32, u32)) -> Result<()> {
        if x.1 == y.1 {
            return Ok(());
        }
        // On a tie the first becomes the root: texts name its device first, as TensorFlow's do.
        let (root, child) = match self.rank[x.1 as usize] < self.rank[y.1 as usize] {
            true => (y.1, x.1),
            false => (x.1, y.1),
        };
        let merged = self.merge(self.at(root), self.at(child));
        let mut merged: Member = merged.map_err(|status| {
            let (x, y) = (self.node(x.0), self.node(y.0));
            explain::colocation(x, y, &format!(": {}", status.message()))
        })?;
        merged.supported = self.at(root).supported & self.at(child).supported;
        if merged.supported == 0 {
            let why = format!(
                " because no device type supports both of those nodes and the other nodes colocated with them.{}{}",
                explain::group(self, x.1),
                explain::group(self, y.1)
            );
            return Err(explain::colocation(self.node(x.0), self.node(y.0), &why));
        }
        self.members[root as usize] = merged;
        self.parent[child as usize] = root;
        if self.rank[root as usize] == self.rank[child as usize] {
            self.rank[root as usize] = self.rank[root as usize].saturating_add(1);
        }
        Ok(())
    }

    fn merge(&mut self, one: Member, other: Member) -> Result<Member, Status> {
        let soft = self.options.allow_soft_placement;
        let assigned = self.specs.merge(one.assigned, other.assigned, false)?;
        let resource = self.specs.merge(one.resource, other.resource, false)?;
        let requested = self.specs.merge(one.requested, other.requested, soft)?;
        Ok(Member {
            assigned,
            resource,
            requested: self.with_fixed(requested, assigned, resource),
            supported: one.supported,
        })
    }

    fn with_fixed(&mut self, requested: SpecId, assigned: SpecId, resource: SpecId) -> SpecId {
        let requested = self.specs.override_with(requested, assigned);
        self.specs.override_with(requested, resource)
    }
}

/// The groups that a node's `_class` names.
fn classes(node: &Node) -> impl Iterator<Item = &str> {
    let list = match node.attrs.get("_class") {
        Some(AttrValue::List(AttrList::S(list))) => list.as_slice(),
        _ => &[],
    };
    list.iter()
        .filter_map(|class| std::str::from_utf8(class).ok()?.strip_prefix("loc:@"))
}

/// Variables and the like: no inputs, one reference or handle.
fn owns_state(node: &Node) -> bool {
    match node.output_types[..] {
        [output] => node.inputs.is_empty() && (output.is_ref || output.dtype == DType::Resource),
        _ => false,
    }
}

/// Nodes on the client's device that feed or fetch: they only hand handles on.
fn is_boundary(node: &Node) -> bool {
    matches!(node.op_name(), "_Arg" | "_Recv" | "_Retval" | "_Send") && !node.device.is_empty()
}

/// Ops that may take handles from anywhere, because only their bodies use them.
fn is_exempt(node: &Node) -> bool {
    let name = node.op_name();
    node.op.function.is_some()
        || matches!(
            name,
            "PartitionedCall"
                | "StatefulPartitionedCall"
                | "RemoteCall"
                | "BatchFunction"
                | "SymbolicGradient"
                | "If"
                | "StatelessIf"
                | "Case"
                | "StatelessCase"
                | "While"
                | "StatelessWhile"
                | "For"
        )
        || is_dataset(name)
}

fn is_dataset(op: &str) -> bool {
    let stem = op.trim_end_matches(|c: char| c.is_ascii_digit());
    let stem = match stem.len() < op.len() {
        true => stem.strip_suffix('V').unwrap_or(op),
        false => op,
    };
    stem.ends_with("Dataset")
}
