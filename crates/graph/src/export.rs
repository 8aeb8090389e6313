//! [`Graph`] → GraphDef.

use tensorfleet_proto::{GraphDef, NodeDef, VersionDef};
use tensorfleet_status::Result;

use crate::attr_proto::attrs_to_proto;
use crate::graph::{Graph, Node};

impl Graph {
    /// Exports everything: names, devices, attributes, control edges, versions, functions.
    pub fn export(&self) -> Result<GraphDef> {
        self.export_from(0)
    }

    /// Exports the nodes from position `first` on, with versions and all functions.
    pub fn export_from(&self, first: usize) -> Result<GraphDef> {
        let node = self
            .nodes()
            .skip(first)
            .map(|(_, node)| self.export_node(node))
            .collect::<Result<_>>()?;
        let library = self.library();
        Ok(GraphDef {
            node,
            library: (!library.is_empty()).then(|| library.to_proto()),
            versions: Some(VersionDef {
                producer: self.versions().producer,
                min_consumer: self.versions().min_consumer,
                bad_consumers: self.versions().bad_consumers.clone(),
            }),
            ..GraphDef::default()
        })
    }

    fn export_node(&self, node: &Node) -> Result<NodeDef> {
        let data = node.inputs.iter().map(|input| self.output_name(*input));
        let control = node
            .control_inputs
            .iter()
            .map(|id| format!("^{}", self.node(*id).name));
        Ok(NodeDef {
            name: node.name.to_string(),
            op: node.op.name.to_string(),
            input: data.chain(control).collect(),
            device: node.device.to_string(),
            attr: attrs_to_proto(&node.attrs)?,
            ..NodeDef::default()
        })
    }
}
