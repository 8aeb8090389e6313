//! The split itself: nodes go to their parts, edges between parts become transfers.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tensorfleet_graph::{Graph, Library, Node, NodeId, Output};
use tensorfleet_status::{Result, internal};
use tensorfleet_tensor::DType;

use super::control_flow::is_control_loop_merge;
use super::names::Names;
use super::transfer::{Channel, Maker};
use super::{Part, PartDevice, PartitionOptions};

/// The port of a control edge.
const CONTROL: u32 = u32::MAX;

/// Distributes the nodes and joins the parts.
pub(super) fn split(
    graph: Graph,
    devices: &[u32],
    options: &PartitionOptions<'_>,
    names: &Names<'_>,
) -> Result<Vec<Part>> {
    let table = options.devices;
    let template = Graph::new(graph.registry().clone());
    let (library, versions) = (graph.library().clone(), graph.versions().clone());
    let maker = Maker::new(&graph, table)?;
    let mut splitter = Splitter {
        maker,
        names,
        floats_as_bfloat16: options.floats_as_bfloat16,
        copied_constant_bytes: options.copied_constant_bytes,
        devices,
        homes: Vec::with_capacity(graph.len()),
        parts: empty_parts(devices, table),
        transfers: FxHashMap::default(),
    };
    splitter.distribute(graph, table)?;
    for index in 0..devices.len() {
        splitter.connect(index)?;
    }
    let mut parts = Vec::with_capacity(splitter.parts.len());
    for (part, nodes) in splitter.parts {
        let library = if library.is_empty() {
            library.clone()
        } else {
            Library::reachable(&library, &nodes).into()
        };
        let mut graph = template.assemble(nodes)?;
        graph.set_library(library);
        graph.set_versions(versions.clone());
        parts.push(Part { part, graph });
    }
    Ok(parts)
}

/// The numbers of the parts that have nodes, in order.
fn empty_parts(devices: &[u32], table: &[PartDevice]) -> Vec<(u32, Vec<Node>)> {
    let mut used = vec![false; table.len()];
    for device in devices {
        used[*device as usize] = true;
    }
    let used = table.iter().zip(used).filter(|(_, used)| *used);
    let mut numbers: Vec<u32> = used.map(|(device, _)| device.part).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.into_iter().map(|part| (part, Vec::new())).collect()
}

/// Where a node is: the index of its part and its id there.
#[derive(Clone, Copy)]
struct Home {
    part: u32,
    id: NodeId,
}

/// Everything that can share one transfer.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    source: NodeId,
    port: u32,
    part: u32,
    on_host: bool,
}

struct Splitter<'a> {
    maker: Maker<'a>,
    names: &'a Names<'a>,
    floats_as_bfloat16: bool,
    copied_constant_bytes: usize,
    /// By id in the whole graph, as is `homes`.
    devices: &'a [u32],
    homes: Vec<Home>,
    parts: Vec<(u32, Vec<Node>)>,
    /// What stands for a source in another part.
    transfers: FxHashMap<Key, NodeId>,
}

/// The receives that one consumer got.
#[derive(Default)]
struct Arrivals {
    /// Reads of references, which must come after everything else that the consumer waits for.
    reads: SmallVec<[NodeId; 2]>,
    others: SmallVec<[NodeId; 8]>,
}

impl Splitter<'_> {
    /// Moves all nodes to their parts; their inputs still are ids of the whole graph.
    fn distribute(&mut self, graph: Graph, table: &[PartDevice]) -> Result<()> {
        let index_of: FxHashMap<u32, u32> = (0..)
            .zip(&self.parts)
            .map(|(index, (number, _))| (*number, index))
            .collect();
        for (node, device) in graph.into_nodes().into_iter().zip(self.devices) {
            let number = table[*device as usize].part;
            let Some(index) = index_of.get(&number).copied() else {
                return Err(internal!("part {number} was not prepared"));
            };
            let nodes = &mut self.parts[index as usize].1;
            self.homes.push(Home {
                part: index,
                id: NodeId::from_index(nodes.len()),
            });
            nodes.push(node);
        }
        Ok(())
    }

    fn node(&self, home: Home) -> &Node {
        &self.parts[home.part as usize].1[home.id.index()]
    }

    fn node_mut(&mut self, home: Home) -> &mut Node {
        &mut self.parts[home.part as usize].1[home.id.index()]
    }

    fn push(&mut self, part: u32, node: Node) -> NodeId {
        let nodes = &mut self.parts[part as usize].1;
        nodes.push(node);
        NodeId::from_index(nodes.len() - 1)
    }

    /// Replaces the inputs of a node by those of its part.
    fn connect(&mut self, index: usize) -> Result<()> {
        let home = self.homes[index];
        let node = self.node_mut(home);
        let mut inputs = std::mem::take(&mut node.inputs);
        let mut controls = std::mem::take(&mut node.control_inputs);
        let once_per_iteration = controls.iter().find_map(|control| {
            let source = self.homes[control.index()];
            let is_trigger = source.part == home.part && is_control_loop_merge(self.node(source));
            is_trigger.then_some(source.id)
        });
        let consumer = Consumer {
            index,
            home,
            once_per_iteration,
        };
        let mut arrivals = Arrivals::default();
        for input in &mut inputs {
            let id = self.arrive(&consumer, input.node, input.port, &mut arrivals)?;
            if self.homes[input.node.index()].part != home.part {
                input.port = 0;
            }
            input.node = id;
        }
        for control in &mut controls {
            *control = self.arrive(&consumer, *control, CONTROL, &mut arrivals)?;
        }
        // A Merge does not wait for all of its inputs: nor must the reads.
        if self.node(home).op_name() != "Merge" {
            for read in &arrivals.reads {
                let read = Home {
                    part: home.part,
                    id: *read,
                };
                let waits = &mut self.node_mut(read).control_inputs;
                for other in &arrivals.others {
                    if !waits.contains(other) {
                        waits.push(*other);
                    }
                }
            }
        }
        let node = self.node_mut(home);
        node.inputs = inputs;
        node.control_inputs = controls;
        Ok(())
    }

    /// What stands for a source in the part of a consumer.
    fn arrive(
        &mut self,
        consumer: &Consumer,
        source: NodeId,
        port: u32,
        arrivals: &mut Arrivals,
    ) -> Result<NodeId> {
        let from = self.homes[source.index()];
        let port_type = match port {
            CONTROL => DType::F32.into(),
            _ => match self.node(from).output_types.get(port as usize) {
                Some(port_type) => *port_type,
                None => {
                    return Err(internal!("'{}' has no output {port}", self.node(from).name));
                }
            },
        };
        let is_local = from.part == consumer.home.part;
        let id = match is_local {
            true => from.id,
            false => self.transfer(consumer, source, port, port_type)?,
        };
        match (is_local, port_type.is_ref) {
            (false, true) => arrivals.reads.push(id),
            (true, true) => {}
            (_, false) => arrivals.others.push(id),
        }
        Ok(id)
    }

    /// Sends an output, or the news that a node has run, to the part of a consumer.
    fn transfer(
        &mut self,
        consumer: &Consumer,
        source: NodeId,
        port: u32,
        port_type: tensorfleet_tensor::PortType,
    ) -> Result<NodeId> {
        let device = self.devices[consumer.index];
        let dtype = port_type.dtype;
        let on_host = self
            .maker
            .wants_on_host(dtype, device, self.node(consumer.home));
        let key = Key {
            source,
            port,
            part: consumer.home.part,
            on_host,
        };
        // Every read of a reference is one of its own: others may write in between.
        let is_shared = !port_type.is_ref;
        if is_shared && let Some(id) = self.transfers.get(&key) {
            return Ok(*id);
        }
        let arrived = match self.copied_constant(consumer, source) {
            Some(copy) => copy,
            None => self.new_transfer(consumer, source, port, dtype, on_host)?,
        };
        if is_shared {
            self.transfers.insert(key, arrived);
        }
        Ok(arrived)
    }

    /// A copy of the source, if it is a small constant outside of all branches and loops.
    fn copied_constant(&mut self, consumer: &Consumer, source: NodeId) -> Option<NodeId> {
        let node = self.node(self.homes[source.index()]);
        if node.op_name() != "Const" || !node.control_inputs.is_empty() {
            return None;
        }
        let value = node.attrs.tensor("value").ok()?;
        if !value.dtype().is_plain() || value.byte_size() > self.copied_constant_bytes {
            return None;
        }
        let mut copy = node.clone();
        copy.name = self.names.fresh(&copy.name);
        copy.device = self.maker.device_name(self.devices[consumer.index]);
        Some(self.push(consumer.home.part, copy))
    }

    fn new_transfer(
        &mut self,
        consumer: &Consumer,
        source: NodeId,
        port: u32,
        dtype: DType,
        on_host: bool,
    ) -> Result<NodeId> {
        let names = self.names;
        let from = self.homes[source.index()];
        let (part, device) = (consumer.home.part, self.devices[consumer.index]);
        let name = self.node(from).name.clone();
        let is_cast = self.floats_as_bfloat16 && dtype == DType::F32 && port != CONTROL;
        let channel = Channel {
            dtype: if is_cast { DType::BF16 } else { dtype },
            tensor_name: format!("edge_{}_{name}", names.number()).into(),
            from: self.devices[source.index()],
            to: device,
        };
        let mut sent = Output {
            node: from.id,
            port,
        };
        if port == CONTROL {
            let signal_name = names.fresh(&format!("{name}/ctrl"));
            let signal = self.maker.signal(signal_name, channel.from, from.id)?;
            sent = self.push(from.part, signal).output(0);
        } else if is_cast {
            let types = (dtype, channel.dtype);
            let cast = self
                .maker
                .cast(names.fresh(&name), channel.from, sent, types);
            sent = self.push(from.part, cast).output(0);
        }
        let send = self.maker.send(names.fresh(&name), &channel, sent);
        self.push(from.part, send);
        let mut recv = self.maker.recv(names.fresh(&name), &channel, on_host);
        recv.control_inputs.extend(consumer.once_per_iteration);
        let recv = self.push(part, recv);
        if port == CONTROL {
            let identity = self.maker.arrival(names.fresh(&name), device, recv);
            return Ok(self.push(part, identity));
        }
        if is_cast {
            let types = (channel.dtype, dtype);
            let cast = self
                .maker
                .cast(names.fresh(&name), device, recv.output(0), types);
            return Ok(self.push(part, cast));
        }
        Ok(recv)
    }
}

/// The node whose inputs are being replaced.
struct Consumer {
    /// Its index in the whole graph.
    index: usize,
    home: Home,
    /// The Merge that receives inside of a frame wait for.
    once_per_iteration: Option<NodeId>,
}
