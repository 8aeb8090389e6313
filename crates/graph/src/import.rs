//! GraphDef → [`Graph`]. Whatever is wrong with it becomes a status; nothing panics.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tensorfleet_proto::{GraphDef, NodeDef};
use tensorfleet_status::{Result, invalid_argument};

use crate::attr_proto::attrs_from_proto;
use crate::check;
use crate::graph::{Graph, Node, NodeId, Output, Versions};
use crate::registry::Registry;
use crate::signature::port_types;

impl Graph {
    /// Imports a whole GraphDef.
    pub fn import(registry: Arc<Registry>, def: &GraphDef) -> Result<Graph> {
        let mut graph = Graph::new(registry);
        graph.set_versions(versions(def)?);
        graph.import_more(def)?;
        Ok(graph)
    }

    /// Adds the nodes and functions of a GraphDef to this graph, as ExtendSession does.
    pub fn import_more(&mut self, def: &GraphDef) -> Result<()> {
        if let Some(library) = &def.library {
            let merged = self.library().merged(library, self.registry())?;
            self.set_library(Arc::new(merged));
        }
        let first = self.len();
        let names = self.index_names(def, first)?;
        let mut nodes = Vec::with_capacity(def.node.len());
        for node in &def.node {
            nodes.push(self.parse_node(node, &names)?);
        }
        for node in nodes {
            self.push(node)?;
        }
        for index in first..self.len() {
            check::inputs(self, self.node(NodeId::from_index(index)))?;
        }
        self.topological_order()?;
        Ok(())
    }

    fn index_names<'a>(
        &self,
        def: &'a GraphDef,
        first: usize,
    ) -> Result<FxHashMap<&'a str, NodeId>> {
        let mut names = FxHashMap::default();
        names.reserve(def.node.len());
        for (index, node) in def.node.iter().enumerate() {
            check::name(&node.name)?;
            let id = NodeId::from_index(first + index);
            if names.insert(node.name.as_str(), id).is_some() {
                return Err(invalid_argument!("Node '{}' is not unique", node.name));
            }
            if self.find(&node.name).is_some() {
                return Err(invalid_argument!(
                    "GraphDef argument to Extend includes node '{}', which was created by a previous call to Create or Extend in this session.",
                    node.name
                ));
            }
        }
        Ok(names)
    }

    fn parse_node(&self, def: &NodeDef, names: &FxHashMap<&str, NodeId>) -> Result<Node> {
        let op = self
            .lookup_op(&def.op)
            .map_err(|status| check::at_node(status, &def.name))?;
        let attrs =
            attrs_from_proto(&def.attr).map_err(|status| check::at_node(status, &def.name))?;
        let attrs = check::attrs(&def.name, &op, attrs)?;
        let find = |name: &str| names.get(name).copied().or_else(|| self.find(name));
        let (inputs, control_inputs) = parse_inputs(def, find)?;
        let in_node = |status| check::at_node(status, &def.name);
        Ok(Node {
            name: def.name.as_str().into(),
            input_types: port_types(&op.signature.inputs, &attrs).map_err(in_node)?,
            output_types: port_types(&op.signature.outputs, &attrs).map_err(in_node)?,
            op,
            device: def.device.as_str().into(),
            attrs,
            inputs,
            control_inputs,
        })
    }
}

type Inputs = (SmallVec<[Output; 2]>, SmallVec<[NodeId; 1]>);

/// Parses `name`, `name:port` and `^name`; data inputs must come first.
fn parse_inputs(def: &NodeDef, find: impl Fn(&str) -> Option<NodeId>) -> Result<Inputs> {
    let mut inputs = SmallVec::new();
    let mut control_inputs = SmallVec::new();
    let missing =
        |name: &str| invalid_argument!("Node '{}': Unknown input node '{name}'", def.name);
    for text in &def.input {
        if let Some(name) = text.strip_prefix('^') {
            let id = find(name).ok_or_else(|| missing(text))?;
            if !control_inputs.contains(&id) {
                control_inputs.push(id);
            }
            continue;
        }
        if !control_inputs.is_empty() {
            return Err(invalid_argument!(
                "Node '{}': Control dependencies must come after regular dependencies",
                def.name
            ));
        }
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) => match port.parse::<u32>() {
                Ok(port) => (name, port),
                Err(_) => {
                    let status = invalid_argument!("Illegal op input name '{text}'");
                    return Err(check::at_node(status, &def.name));
                }
            },
            None => (text.as_str(), 0),
        };
        if check::name(name).is_err() {
            let status = invalid_argument!("Illegal op input name '{text}'");
            return Err(check::at_node(status, &def.name));
        }
        let node = find(name).ok_or_else(|| missing(text))?;
        inputs.push(Output { node, port });
    }
    Ok((inputs, control_inputs))
}

fn versions(def: &GraphDef) -> Result<Versions> {
    let Some(versions) = &def.versions else {
        // Very old graphs carry one number only.
        return Ok(Versions {
            producer: def.version,
            ..Versions::default()
        });
    };
    if versions.min_consumer > Versions::CURRENT {
        return Err(invalid_argument!(
            "GraphDef min consumer version {} above current version {} for TensorFlow. Please upgrade TensorFleet.",
            versions.min_consumer,
            Versions::CURRENT
        ));
    }
    if versions.bad_consumers.contains(&Versions::CURRENT) {
        return Err(invalid_argument!(
            "GraphDef disallows consumer version {}. Please upgrade TensorFleet.",
            Versions::CURRENT
        ));
    }
    Ok(Versions {
        producer: versions.producer,
        min_consumer: versions.min_consumer,
        bad_consumers: versions.bad_consumers.clone(),
    })
}
