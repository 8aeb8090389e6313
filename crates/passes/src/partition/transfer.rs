//! The nodes that a transfer is made of, and which of its ends are in host memory.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};
use tensorfleet_graph::{Graph, Node, NodeId, OpEntry, Output};
use tensorfleet_kernel::{AttrValue, Attrs};
use tensorfleet_status::Result;
use tensorfleet_tensor::{Bytes, DType};

use super::PartDevice;
use super::control_flow::signal;

/// What both ends of a transfer agree on.
pub(super) struct Channel {
    pub(super) dtype: DType,
    /// `edge_<number>_<source>`.
    pub(super) tensor_name: Bytes,
    /// Indices of devices.
    pub(super) from: u32,
    pub(super) to: u32,
}

/// Makes transfer nodes.
pub(super) struct Maker<'a> {
    devices: &'a [PartDevice],
    device_names: Vec<Bytes>,
    send: Arc<OpEntry>,
    host_send: Arc<OpEntry>,
    recv: Arc<OpEntry>,
    host_recv: Arc<OpEntry>,
    constant: Arc<OpEntry>,
    identity: Arc<OpEntry>,
    cast: Arc<OpEntry>,
    /// Attributes of transfers made so far, without names.
    attrs: FxHashMap<(u32, u32, DType, End), Attrs>,
    tensor_name: Arc<str>,
}

/// An end of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum End {
    Send,
    Recv,
}

impl<'a> Maker<'a> {
    pub(super) fn new(graph: &Graph, devices: &'a [PartDevice]) -> Result<Maker<'a>> {
        let op = |name: &str| graph.registry().find(name).cloned();
        Ok(Maker {
            devices,
            device_names: devices
                .iter()
                .map(|device| Bytes::copy_from_slice(device.name.as_bytes()))
                .collect(),
            send: op("_Send")?,
            host_send: op("_HostSend")?,
            recv: op("_Recv")?,
            host_recv: op("_HostRecv")?,
            constant: op("Const")?,
            identity: op("Identity")?,
            cast: op("Cast")?,
            attrs: FxHashMap::default(),
            tensor_name: "tensor_name".into(),
        })
    }

    /// `_Send` of an output of the sender's part.
    pub(super) fn send(&mut self, name: Arc<str>, channel: &Channel, from: Output) -> Node {
        let op = match is_host_type(channel.dtype) {
            true => &self.host_send,
            false => &self.send,
        };
        let mut node = self.node(name, op, channel.from);
        node.attrs = self.attrs(channel, End::Send);
        node.inputs = smallvec![from];
        node.input_types = smallvec![channel.dtype.into()];
        node
    }

    /// `_Recv` in the receiver's part.
    pub(super) fn recv(&mut self, name: Arc<str>, channel: &Channel, on_host: bool) -> Node {
        let op = match on_host {
            true => &self.host_recv,
            false => &self.recv,
        };
        let mut node = self.node(name, op, channel.to);
        node.attrs = self.attrs(channel, End::Recv);
        node.output_types = smallvec![channel.dtype.into()];
        node
    }

    /// An empty constant that waits for a node of the sender's part.
    pub(super) fn signal(&self, name: Arc<str>, device: u32, after: NodeId) -> Result<Node> {
        let mut node = self.node(name, &self.constant, device);
        node.attrs = signal()?;
        node.control_inputs = smallvec![after];
        node.output_types = smallvec![DType::F32.into()];
        Ok(node)
    }

    /// What the consumers of a control edge wait for.
    pub(super) fn arrival(&self, name: Arc<str>, device: u32, recv: NodeId) -> Node {
        let mut node = self.node(name, &self.identity, device);
        node.attrs.set("T", DType::F32.into());
        node.inputs = smallvec![recv.output(0)];
        node.input_types = smallvec![DType::F32.into()];
        node.output_types = smallvec![DType::F32.into()];
        node
    }

    /// A cast before a send or after a receive, as TensorFlow's cuts off the lower bits.
    pub(super) fn cast(
        &self,
        name: Arc<str>,
        device: u32,
        from: Output,
        types: (DType, DType),
    ) -> Node {
        let mut node = self.node(name, &self.cast, device);
        node.attrs.set("SrcT", types.0.into());
        node.attrs.set("DstT", types.1.into());
        node.attrs.set("Truncate", AttrValue::B(true));
        node.inputs = smallvec![from];
        node.input_types = smallvec![types.0.into()];
        node.output_types = smallvec![types.1.into()];
        node
    }

    pub(super) fn device_name(&self, device: u32) -> Arc<str> {
        self.devices[device as usize].name.clone()
    }

    fn node(&self, name: Arc<str>, op: &Arc<OpEntry>, device: u32) -> Node {
        Node {
            name,
            op: op.clone(),
            device: self.device_name(device),
            attrs: Attrs::new(),
            inputs: SmallVec::new(),
            control_inputs: SmallVec::new(),
            input_types: SmallVec::new(),
            output_types: SmallVec::new(),
        }
    }

    /// The attributes of one end of a transfer: all but the name is the same for many.
    fn attrs(&mut self, channel: &Channel, end: End) -> Attrs {
        let key = (channel.from, channel.to, channel.dtype, end);
        let (devices, names) = (self.devices, &self.device_names);
        let like = self.attrs.entry(key).or_insert_with(|| {
            let device = |index: u32| AttrValue::S(names[index as usize].clone());
            let incarnation = devices[channel.from as usize].incarnation;
            let mut attrs = Attrs::new();
            attrs.set("client_terminated", AttrValue::B(false));
            attrs.set("recv_device", device(channel.to));
            attrs.set("send_device", device(channel.from));
            // The wire has no unsigned attributes: the bits are what counts.
            attrs.set("send_device_incarnation", AttrValue::I(incarnation as i64));
            attrs.set("tensor_name", AttrValue::S(Bytes::new()));
            let type_attr = match end {
                End::Send => "T",
                End::Recv => "tensor_type",
            };
            attrs.set(type_attr, channel.dtype.into());
            attrs
        });
        let mut attrs = like.clone();
        attrs.set(
            self.tensor_name.clone(),
            AttrValue::S(channel.tensor_name.clone()),
        );
        attrs
    }

    /// Whether a consumer wants the input in host memory. Only where memories differ is it worth to
    /// look at the consumer: elsewhere all consumers share one receive.
    pub(super) fn wants_on_host(&self, dtype: DType, device: u32, consumer: &Node) -> bool {
        let is_cpu = self.devices[device as usize].name.contains("device:CPU:");
        is_host_type(dtype)
            || (!is_cpu
                && dtype == DType::Bool
                && matches!(consumer.op_name(), "Switch" | "RefSwitch" | "LoopCond"))
    }
}

/// Types that TensorFlow keeps in host memory on every device.
fn is_host_type(dtype: DType) -> bool {
    matches!(dtype, DType::I32 | DType::String | DType::Resource)
}
