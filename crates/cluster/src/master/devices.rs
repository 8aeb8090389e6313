//! [`SessionDevices`]: the devices of a session, and which node of its graph goes where.

use std::sync::Arc;

use tensorfleet_graph::{FunctionBody, Graph};
use tensorfleet_kernel::DeviceName;
use tensorfleet_passes::{
    Assignments, DeviceSet, Part, PartDevice, PartitionOptions, PlaceDevice, PlaceOptions,
    Placement, partition, place,
};
use tensorfleet_proto::{ConfigProto, DeviceAttributes};
use tensorfleet_status::{Result, internal};

use super::discovery::SessionTask;
use crate::task::TaskName;

/// The devices a session sees. Cheap to clone.
#[derive(Clone)]
pub(crate) struct SessionDevices(Arc<Inner>);

struct Inner {
    attributes: Vec<DeviceAttributes>,
    set: Arc<DeviceSet>,
    /// Each device with the position of its task.
    parts: Vec<PartDevice>,
    /// The device that feeds come from and fetches go to: the first of the master's task.
    client: usize,
}

/// A session's graph with a device for every node.
#[derive(Clone)]
pub(super) struct PlacedGraph {
    /// As the client sent it, with what it asks for.
    pub(super) requested: Arc<Graph>,
    /// Every node with the full name of its device.
    pub(super) placed: Arc<Graph>,
    /// State stays where it is when the graph grows.
    stateful: Arc<Assignments>,
}

impl SessionDevices {
    /// `tasks` has the master's own task first.
    pub(super) fn new(
        attributes: Vec<DeviceAttributes>,
        tasks: &[SessionTask],
    ) -> Result<SessionDevices> {
        let task_of = |device: &DeviceAttributes| {
            let task = TaskName::of_device(&device.name)?;
            tasks.iter().position(|known| known.name == task)
        };
        let mut parts = Vec::with_capacity(attributes.len());
        let mut places = Vec::with_capacity(attributes.len());
        for device in &attributes {
            let task = task_of(device)
                .ok_or_else(|| internal!("device {} is of no known task", device.name))?;
            parts.push(PartDevice {
                name: device.name.as_str().into(),
                incarnation: device.incarnation,
                part: task as u32,
            });
            places.push(PlaceDevice {
                name: DeviceName::parse(&device.name)?,
                device_type: device.device_type.as_str().into(),
            });
        }
        let client = parts
            .iter()
            .position(|device| device.part == 0)
            .ok_or_else(|| internal!("the session's device filters leave none of the master's"))?;
        Ok(SessionDevices(Arc::new(Inner {
            attributes,
            set: Arc::new(DeviceSet::new(places, client)?),
            parts,
            client,
        })))
    }

    pub(super) fn attributes(&self) -> &[DeviceAttributes] {
        &self.0.attributes
    }

    /// The name of the device that feeds come from and fetches go to.
    pub(super) fn client(&self) -> &str {
        &self.0.attributes[self.0.client].name
    }

    pub(super) fn client_incarnation(&self) -> u64 {
        self.0.attributes[self.0.client].incarnation
    }

    /// Places a whole graph; `before` is what it grew from.
    pub(super) fn place(
        &self,
        graph: Graph,
        before: Option<&PlacedGraph>,
        config: &ConfigProto,
    ) -> Result<PlacedGraph> {
        let placement = self.assign(&graph, before.map(|before| &*before.stateful), config)?;
        if config.log_device_placement {
            let known =
                |name: &str| before.is_some_and(|before| before.placed.find(name).is_some());
            for ((_, node), line) in graph.nodes().zip(placement.log_lines(&graph)) {
                if !known(&node.name) {
                    tracing::info!(target: "placement", "{line}");
                }
            }
        }
        let mut placed = graph.clone();
        placement.write_to(&mut placed);
        Ok(PlacedGraph {
            stateful: Arc::new(placement.stateful(&graph)),
            requested: Arc::new(graph),
            placed: Arc::new(placed),
        })
    }

    /// Places what rewriting added and splits by task; parts are numbered as the session's tasks.
    pub(super) fn split(
        &self,
        graph: Graph,
        config: &ConfigProto,
        counter: &std::sync::atomic::AtomicU64,
    ) -> Result<Vec<Part>> {
        let placement = self.assign(&graph, None, config)?;
        if !config.allow_soft_placement {
            self.check_bodies(&graph, config)?;
        }
        let options = config.graph_options.as_ref();
        partition(
            graph,
            &PartitionOptions {
                devices: &self.0.parts,
                device_of: &|node| placement.index_of(node),
                suffix: "_S",
                counter,
                control_flow_added: false,
                floats_as_bfloat16: options.is_some_and(|options| options.enable_bfloat16_sendrecv),
                copied_constant_bytes: 0,
            },
        )
    }

    /// A function that is called for batches runs as a whole where its caller is. What its nodes ask for must be there all the
    /// same.
    fn check_bodies(&self, graph: &Graph, config: &ConfigProto) -> Result<()> {
        for (_, node) in graph.nodes() {
            if node.op_name() != "BatchFunction" {
                continue;
            }
            let func = node.attrs.func("f")?;
            let (registry, library) = (graph.registry(), graph.library());
            let function = library.find(&func.name)?;
            let body = FunctionBody::instantiate(function, &func.attrs, registry, library)?;
            self.assign(&body.graph, None, config)?;
        }
        Ok(())
    }

    fn assign(
        &self,
        graph: &Graph,
        assigned: Option<&Assignments>,
        config: &ConfigProto,
    ) -> Result<Placement> {
        let placement = place(
            graph,
            &PlaceOptions {
                devices: &self.0.set,
                allow_soft_placement: config.allow_soft_placement,
                log_device_placement: config.log_device_placement,
                assigned,
            },
        )?;
        for note in placement.notes() {
            tracing::warn!(target: "placement", "{note}");
        }
        Ok(placement)
    }
}
