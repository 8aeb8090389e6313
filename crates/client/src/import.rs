//! [`Graph::import_graph_def`]: going on with a graph that was built elsewhere.

use tensorfleet_graph::NodeId;
use tensorfleet_proto as pb;
use tensorfleet_proto::attr_value::Value;
use tensorfleet_status::{Result, invalid_argument};

use crate::graph::Graph;
use crate::operation::Operation;

impl Graph {
    /// Adds the nodes and functions of a GraphDef, with `prefix/` before their names and after the prefix of the open
    /// name scopes; an empty prefix leaves names as they are. Open device scopes and control dependencies
    /// hold for the new nodes.
    ///
    /// ```
    /// use tensorfleet_client::{Graph, Session};
    ///
    /// let written = Graph::new();
    /// written.named_constant("two", 2.0f32);
    ///
    /// let g = Graph::new();
    /// g.import_graph_def(&written.graph_def()?, "old")?;
    /// let four = g.tensor("old/two:0")? * 2.0;
    /// assert_eq!(Session::new(&g)?.run(&four)?.to_scalar::<f32>()?, 4.0);
    /// # Ok::<(), tensorfleet_client::Status>(())
    /// ```
    pub fn import_graph_def(&self, def: &pb::GraphDef, prefix: &str) -> Result<Vec<Operation>> {
        let scope = self.import_scope(prefix)?;
        let first = {
            let mut state = self.lock();
            state.check_open()?;
            let graph = state.builder.graph_mut();
            let named =
                |node: &&pb::NodeDef| graph.find(&format!("{scope}{}", node.name)).is_some();
            if let Some(node) = def.node.iter().find(named) {
                return Err(invalid_argument!(
                    "the graph has a node '{scope}{}' already; import under another prefix",
                    node.name
                ));
            }
            let first = graph.len();
            if scope.is_empty() {
                graph.import_more(def)?;
            } else {
                graph.import_more(&renamed(def, &scope))?;
            }
            first
        };
        self.adopt_from(first)?;
        let new = (first..self.len()).map(NodeId::from_index);
        Ok(new.map(|id| Operation::new(self, Some(id))).collect())
    }

    /// What comes before the names of imported nodes: nothing, or a scope with its slash.
    fn import_scope(&self, prefix: &str) -> Result<String> {
        let mut state = self.lock();
        if prefix.is_empty() {
            return Ok(match state.scopes.prefix() {
                "" => String::new(),
                open => format!("{open}/"),
            });
        }
        crate::operation::check_name(prefix)?;
        Ok(format!("{}/", state.full_name(prefix)))
    }
}

fn renamed(def: &pb::GraphDef, scope: &str) -> pb::GraphDef {
    let mut def = def.clone();
    for node in &mut def.node {
        node.name.insert_str(0, scope);
        for input in &mut node.input {
            let control = usize::from(input.starts_with('^'));
            input.insert_str(control, scope);
        }
        if let Some(pb::AttrValue {
            value: Some(Value::List(list)),
        }) = node.attr.get_mut("_class")
        {
            for tie in &mut list.s {
                if let Some(name) = tie.strip_prefix(b"loc:@") {
                    *tie = [b"loc:@", scope.as_bytes(), name].concat().into();
                }
            }
        }
    }
    def
}
