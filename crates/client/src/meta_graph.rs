//! MetaGraphs: a graph with its collections, as `.meta` files have them.

use prost::Message;
use rustc_hash::FxHashMap;
use tensorfleet_proto as pb;
use tensorfleet_proto::collection_def::{BytesList, Int64List, Kind, NodeList};
use tensorfleet_proto::meta_graph_def::MetaInfoDef;
use tensorfleet_status::{Result, invalid_argument};

use crate::collection::{Item, keys};
use crate::graph::Graph;
use crate::operation::Operation;
use crate::variable::Variable;

/// The version of TensorFlow whose messages these are.
const TENSORFLOW_VERSION: &str = "2.21.0";

/// The collections whose messages are variables.
const OF_VARIABLES: &[&str] = &[
    keys::GLOBAL_VARIABLES,
    keys::LOCAL_VARIABLES,
    keys::TRAINABLE_VARIABLES,
    keys::MOVING_AVERAGE_VARIABLES,
    keys::METRIC_VARIABLES,
    keys::GLOBAL_STEP,
    "model_variables",
];

impl Graph {
    /// The graph with its collections, as TensorFlow's message. `saver` names the nodes that save and restore.
    ///
    /// ```
    /// use tensorfleet_client::Graph;
    ///
    /// let g = Graph::new();
    /// g.variable("w", &[2]).build();
    /// let meta = g.meta_graph_def(None)?;
    ///
    /// let again = Graph::new();
    /// again.import_meta_graph(&meta, "")?;
    /// assert_eq!(again.global_variables()[0].name(), "w");
    /// # Ok::<(), tensorfleet_client::Status>(())
    /// ```
    pub fn meta_graph_def(&self, saver: Option<pb::SaverDef>) -> Result<pb::MetaGraphDef> {
        let mut collection_def = std::collections::BTreeMap::new();
        for key in self.collection_keys() {
            let kind = collection_to_proto(&key, &self.collection(&key))?;
            collection_def.insert(key, pb::CollectionDef { kind: Some(kind) });
        }
        Ok(pb::MetaGraphDef {
            meta_info_def: Some(MetaInfoDef {
                tensorflow_version: TENSORFLOW_VERSION.to_owned(),
                ..MetaInfoDef::default()
            }),
            graph_def: Some(self.graph_def()?),
            saver_def: saver,
            collection_def,
            ..pb::MetaGraphDef::default()
        })
    }

    /// Adds the graph of a MetaGraph as [`import_graph_def`](Self::import_graph_def) does, and what its collections
    /// hold to those of this graph. Variables become [`Variable`]s, found by
    /// [`get_variable`](Self::get_variable) too.
    pub fn import_meta_graph(&self, def: &pb::MetaGraphDef, prefix: &str) -> Result<()> {
        let Some(graph) = &def.graph_def else {
            return Err(invalid_argument!("the MetaGraph has no graph"));
        };
        let nodes = self.import_graph_def(graph, prefix)?;
        // The scope is what came before the first name.
        let scope = match (nodes.first().map(Operation::name), graph.node.first()) {
            (Some(now), Some(was)) => now.strip_suffix(&was.name).unwrap_or("").to_owned(),
            _ => String::new(),
        };
        let mut known = FxHashMap::default();
        for (key, collection) in &def.collection_def {
            let Some(kind) = &collection.kind else {
                continue;
            };
            let items = self
                .collection_from_proto(key, kind, &scope, &mut known)
                .map_err(|status| status.context(format!("collection '{key}'")))?;
            for item in items {
                self.add_to_collection(key, item);
            }
        }
        Ok(())
    }

    fn collection_from_proto(
        &self,
        key: &str,
        kind: &Kind,
        scope: &str,
        known: &mut FxHashMap<String, Variable>,
    ) -> Result<Vec<Item>> {
        let node = |name: &String| {
            let name = format!("{scope}{name}");
            match name.contains(':') {
                true => self.tensor(&name).map(Item::Output),
                false => self.operation(&name).map(Item::Operation),
            }
        };
        match kind {
            Kind::BytesList(list) if OF_VARIABLES.contains(&key) => {
                let variable = |bytes| self.variable_from_bytes(bytes, scope, known);
                list.value.iter().map(variable).collect()
            }
            Kind::BytesList(list) => Ok(list.value.iter().cloned().map(Item::Bytes).collect()),
            Kind::NodeList(list) => list.value.iter().map(node).collect(),
            Kind::Int64List(list) => Ok(list.value.iter().copied().map(Item::Int).collect()),
            // Nothing that TensorFlow keeps there is of use to a graph.
            Kind::FloatList(_) | Kind::AnyList(_) => Ok(Vec::new()),
        }
    }

    fn variable_from_bytes(
        &self,
        bytes: &tensorfleet_tensor::Bytes,
        scope: &str,
        known: &mut FxHashMap<String, Variable>,
    ) -> Result<Item> {
        let def = pb::VariableDef::decode(bytes.clone())
            .map_err(|error| invalid_argument!("a damaged VariableDef: {error}"))?;
        if let Some(variable) = known.get(&def.variable_name) {
            return Ok(Item::Variable(variable.clone()));
        }
        let variable = Variable::from_proto(self, &def, scope)?;
        known.insert(def.variable_name, variable.clone());
        self.lock().variables.keep(&variable);
        Ok(Item::Variable(variable))
    }
}

/// A collection has one kind of items on the wire; variables among nodes go by their tensors.
fn collection_to_proto(key: &str, items: &[Item]) -> Result<Kind> {
    let variables = items.iter().map(|item| match item {
        Item::Variable(variable) => Some(variable.to_proto().encode_to_vec().into()),
        Item::Bytes(bytes) => Some(bytes.clone()),
        _ => None,
    });
    if let Some(value) = variables.collect::<Option<Vec<_>>>() {
        return Ok(Kind::BytesList(BytesList { value }));
    }
    let ints = items.iter().map(|item| match item {
        Item::Int(value) => Some(*value),
        _ => None,
    });
    if let Some(value) = ints.collect::<Option<Vec<_>>>() {
        return Ok(Kind::Int64List(Int64List { value }));
    }
    let nodes = items.iter().map(|item| match item {
        Item::Output(output) => Some(output.name()),
        Item::Operation(op) => Some(op.name()),
        Item::Variable(variable) => Some(variable.handle().name()),
        _ => None,
    });
    match nodes.collect::<Option<Vec<_>>>() {
        Some(value) => Ok(Kind::NodeList(NodeList { value })),
        None => Err(invalid_argument!(
            "collection '{key}' mixes nodes with numbers or messages, which a MetaGraph cannot hold"
        )),
    }
}
