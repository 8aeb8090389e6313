//! The part of a function library that some nodes can reach.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use tensorfleet_kernel::{AttrList, AttrValue, Attrs};
use tensorfleet_proto as pb;

use crate::function::Library;
use crate::graph::Node;

impl Library {
    /// The functions that these nodes call, name in attributes, or reach through others.
    pub fn reachable<'a>(&self, nodes: impl IntoIterator<Item = &'a Node>) -> Library {
        if self.is_empty() {
            return Library::default();
        }
        let mut search = Search {
            library: self,
            found: FxHashSet::default(),
            pending: Vec::new(),
        };
        for node in nodes {
            if node.op.function.is_some() {
                search.name(&node.op.name);
            }
            search.attrs(&node.attrs);
        }
        search.run();
        let found = search.found;
        if found.is_empty() {
            return Library::default();
        }
        Library {
            functions: self
                .functions
                .iter()
                .filter(|(name, _)| found.contains(*name))
                .map(|(name, function)| (name.clone(), function.clone()))
                .collect(),
            gradients: self
                .gradients
                .iter()
                .filter(|gradient| found.contains(gradient.function_name.as_str()))
                .cloned()
                .collect(),
            registered_gradients: self
                .registered_gradients
                .iter()
                .filter(|gradient| found.contains(gradient.gradient_func.as_str()))
                .cloned()
                .collect(),
        }
    }
}

struct Search<'a> {
    library: &'a Library,
    found: FxHashSet<Arc<str>>,
    pending: Vec<Arc<str>>,
}

impl Search<'_> {
    fn name(&mut self, name: &str) {
        if let Some((name, _)) = self.library.functions.get_key_value(name)
            && self.found.insert(name.clone())
        {
            self.pending.push(name.clone());
        }
    }

    fn attrs(&mut self, attrs: &Attrs) {
        for (_, value) in attrs.iter() {
            let functions = match value {
                AttrValue::Func(function) => std::slice::from_ref(function),
                AttrValue::List(AttrList::Func(functions)) => functions,
                _ => continue,
            };
            for function in functions {
                self.name(&function.name);
                self.attrs(&function.attrs);
            }
        }
    }

    fn proto_attr(&mut self, attr: &pb::AttrValue) {
        use pb::attr_value::Value;
        let functions = match &attr.value {
            Some(Value::Func(function)) => std::slice::from_ref(function),
            Some(Value::List(list)) => &list.func[..],
            _ => return,
        };
        for function in functions {
            self.name(&function.name);
            for attr in function.attr.values() {
                self.proto_attr(attr);
            }
        }
    }

    fn run(&mut self) {
        while let Some(name) = self.pending.pop() {
            let Some(function) = self.library.functions.get(&name) else {
                continue;
            };
            for node in &function.def().node_def {
                self.name(&node.op);
                for attr in node.attr.values() {
                    self.proto_attr(attr);
                }
            }
            for gradient in &self.library.gradients {
                if gradient.function_name == *name {
                    self.name(&gradient.gradient_func);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Graph, Registry};

    /// A function whose body calls others.
    fn function(name: &str, calls: &[&str]) -> pb::FunctionDef {
        let node = |(index, op): (usize, &&str)| pb::NodeDef {
            name: format!("call_{index}"),
            op: (*op).to_owned(),
            ..pb::NodeDef::default()
        };
        pb::FunctionDef {
            signature: Some(pb::OpDef {
                name: name.to_owned(),
                ..pb::OpDef::default()
            }),
            node_def: calls.iter().enumerate().map(node).collect(),
            ..pb::FunctionDef::default()
        }
    }

    #[test]
    fn finds_what_is_called_through_others_and_their_gradients() {
        let proto = pb::FunctionDefLibrary {
            function: vec![
                function("a", &["b"]),
                function("b", &["b"]),
                function("b_grad", &["c"]),
                function("c", &[]),
                function("unused", &["a"]),
            ],
            gradient: vec![pb::GradientDef {
                function_name: "b".to_owned(),
                gradient_func: "b_grad".to_owned(),
            }],
            ..pb::FunctionDefLibrary::default()
        };
        let def = pb::GraphDef {
            node: vec![pb::NodeDef {
                name: "call".to_owned(),
                op: "a".to_owned(),
                ..pb::NodeDef::default()
            }],
            library: Some(proto),
            ..pb::GraphDef::default()
        };
        let registry = Arc::new(Registry::new([]).unwrap());
        let graph = Graph::import(registry, &def).unwrap();
        let nodes: Vec<&Node> = graph.nodes().map(|(_, node)| node).collect();
        let reached = graph.library().reachable(nodes);
        let names: Vec<&str> = reached.iter().map(|function| function.name()).collect();
        assert_eq!(names, ["a", "b", "b_grad", "c"]);
        assert!(graph.library().reachable([]).is_empty());
    }
}
