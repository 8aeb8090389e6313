//! Picks a device for every group and node.

use rustc_hash::FxHashMap;
use tensorfleet_graph::{Graph, Node, NodeId};
use tensorfleet_kernel::DeviceName;
use tensorfleet_status::{Result, invalid_argument};

use super::explain;
use super::groups::{Groups, Member};
use super::specs::SpecId;

/// No device yet.
const UNPLACED: u32 = u32::MAX;
/// Readers on several devices.
const MIXED: u32 = u32::MAX - 1;

/// No reader.
const NOBODY: u32 = u32::MAX;
/// More than one edge out.
const SEVERAL: u32 = u32::MAX - 1;

/// The devices that a group may be on: those of some kinds that match a name, of which one is best.
#[derive(Clone, Copy)]
struct Candidates {
    wanted: SpecId,
    kinds: u32,
    best: u32,
}

/// The device of every node, by position in the graph.
pub(super) fn assign(groups: &mut Groups<'_>) -> Result<Vec<u32>> {
    let order = groups.order;
    let mut picker = Picker {
        by_node: vec![UNPLACED; order.len()],
        by_root: vec![UNPLACED; order.len()],
        cache: FxHashMap::default(),
        groups,
    };
    let readers = only_readers(picker.groups.graph);
    let mut generators = Vec::new();
    for index in order {
        let node = picker.groups.node(*index);
        if let Some(device) = picker.groups.options.assigned(node) {
            picker.by_node[*index as usize] = device;
        } else if is_generator(node) {
            generators.push(*index);
        } else {
            let near = picker.neighbour(*index, node, &readers);
            picker.pick(*index, near)?;
        }
    }
    if !generators.is_empty() {
        let devices = devices_of_readers(&picker);
        for index in generators {
            picker.pick(index, Some(devices[index as usize]))?;
        }
    }
    Ok(picker.by_node)
}

struct Picker<'g, 'a> {
    groups: &'g mut Groups<'a>,
    by_node: Vec<u32>,
    /// The device of a group once one of its nodes has it.
    by_root: Vec<u32>,
    cache: FxHashMap<(Member3, u32), Option<Candidates>>,
}

/// Assigned, resource and requested: with the kinds, all that candidates depend on.
type Member3 = (SpecId, SpecId, SpecId);

impl Picker<'_, '_> {
    /// The device of the input that a node should rather be with: measuring a tensor where it is saves
    /// sending it, and an identity between nodes that ask for the same device belongs there, too.
    fn neighbour(&self, index: u32, node: &Node, readers: &[u32]) -> Option<u32> {
        let input = node.inputs.first()?.node;
        let goes_along = match node.op_name() {
            "Shape" | "Size" | "Rank" => true,
            "Identity" => {
                let reader = match readers[index as usize] {
                    NOBODY => Some(""),
                    SEVERAL => None,
                    reader => Some(&*self.groups.node(reader).device),
                };
                node.device.is_empty()
                    && node.control_inputs.is_empty()
                    && reader == Some(&*self.groups.graph.node(input).device)
            }
            _ => false,
        };
        goes_along.then(|| self.by_node[input.index()])
    }

    /// Places a node: with its group, else on `near` if that is possible, else on the best device.
    fn pick(&mut self, index: u32, near: Option<u32>) -> Result<()> {
        let root = self.groups.root(index);
        let mut device = self.by_root[root as usize];
        if device == UNPLACED {
            let found = self.candidates(index, root)?;
            let devices = self.groups.options.devices;
            let wanted = self.groups.specs.name(found.wanted);
            let fits =
                |near: &u32| *near < MIXED && devices.is_candidate(*near, wanted, found.kinds);
            device = near.filter(fits).unwrap_or(found.best);
            self.by_root[root as usize] = device;
        }
        self.by_node[index as usize] = device;
        Ok(())
    }

    fn candidates(&mut self, index: u32, root: u32) -> Result<Candidates> {
        let member = self.groups.at(root);
        let key = (
            (member.assigned, member.resource, member.requested),
            member.supported,
        );
        let found = match self.cache.get(&key) {
            Some(found) => *found,
            None => {
                let found = self.search(member, root);
                self.cache.insert(key, found);
                found
            }
        };
        found.ok_or_else(|| {
            let node = self.groups.node(index);
            let why = explain::no_device(self.groups, index, root);
            let status =
                invalid_argument!("Cannot assign a device for operation {}: {why}", node.name);
            explain::attach(status, node)
        })
    }

    fn search(&mut self, member: Member, root: u32) -> Option<Candidates> {
        if let Some(found) = self.matching(member.requested, member.supported) {
            return Some(found);
        }
        if !self.groups.options.allow_soft_placement {
            return None;
        }
        let specs = &mut self.groups.specs;
        let fixed = specs.override_with(member.assigned, member.resource);
        let soft = self.soften(member.requested, fixed);
        if let Some(found) = self.matching(soft, member.supported) {
            return Some(found);
        }
        let softer = self.soften(member.requested, member.assigned);
        let found = self.matching(softer, member.supported)?;
        let note = format!(
            "Failed to place the graph without changing the devices of some resources. Some of the operations (that had to be colocated with resource generating operations) are not supported on the resources' devices. See below for details of this colocation group:{}",
            explain::group(self.groups, root)
        );
        self.groups.notes.push(note);
        Some(found)
    }

    fn matching(&self, wanted: SpecId, kinds: u32) -> Option<Candidates> {
        let devices = self.groups.options.devices;
        let best = devices.best(self.groups.specs.name(wanted), kinds)?;
        Some(Candidates {
            wanted,
            kinds,
            best,
        })
    }

    /// The request without type and index, but for those that are fixed.
    fn soften(&mut self, requested: SpecId, fixed: SpecId) -> SpecId {
        let specs = &mut self.groups.specs;
        let fixed = specs.name(fixed).clone();
        let soft = DeviceName {
            device_type: fixed.device_type,
            index: fixed.index,
            ..specs.name(requested).clone()
        };
        specs.intern(soft)
    }
}

/// Constants, placeholders, handles: placed last, with their readers.
fn is_generator(node: &Node) -> bool {
    match node.output_types[..] {
        [output] => node.inputs.is_empty() && !output.is_ref,
        _ => false,
    }
}

/// For every node the one edge's reader, [`NOBODY`] or [`SEVERAL`].
fn only_readers(graph: &Graph) -> Vec<u32> {
    let mut readers = vec![NOBODY; graph.len()];
    for (id, node) in graph.nodes() {
        for source in sources(node) {
            let reader = &mut readers[source.index()];
            *reader = match *reader {
                NOBODY => id.index() as u32,
                _ => SEVERAL,
            };
        }
    }
    readers
}

/// For every node the device that all its readers are on, [`MIXED`] or [`UNPLACED`].
fn devices_of_readers(picker: &Picker<'_, '_>) -> Vec<u32> {
    let mut readers = vec![UNPLACED; picker.by_node.len()];
    let mut is_read = vec![false; picker.by_node.len()];
    for (id, node) in picker.groups.graph.nodes() {
        let device = picker.by_node[id.index()];
        for source in sources(node) {
            let reader = &mut readers[source.index()];
            if !std::mem::replace(&mut is_read[source.index()], true) {
                *reader = device;
            } else if *reader != device {
                *reader = MIXED;
            }
        }
    }
    readers
}

fn sources(node: &Node) -> impl Iterator<Item = NodeId> {
    let data = node.inputs.iter().map(|input| input.node);
    data.chain(node.control_inputs.iter().copied())
}
