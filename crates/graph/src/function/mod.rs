//! [`Library`]: the functions that come with a graph. [`FunctionBody`] is the body of one as a graph.

mod body;
mod signature;

use std::sync::Arc;

use rustc_hash::FxHashMap;
use tensorfleet_proto as pb;
use tensorfleet_status::{Result, invalid_argument, not_found};

use crate::registry::{OpEntry, Registry};
use crate::signature::Signature;

pub use body::FunctionBody;

/// One function of a library.
pub struct Function {
    def: pb::FunctionDef,
    signature: Signature,
}

impl Function {
    /// The function's name.
    pub fn name(&self) -> &str {
        self.def
            .signature
            .as_ref()
            .map_or("", |signature| &signature.name)
    }

    /// The definition as it came.
    pub fn def(&self) -> &pb::FunctionDef {
        &self.def
    }

    /// Inputs, outputs, attributes.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Whether its author says that runs may not be left out or merged.
    pub fn is_stateful(&self) -> bool {
        self.def
            .signature
            .as_ref()
            .is_some_and(|signature| signature.is_stateful)
    }
}

/// The functions of a graph by name.
#[derive(Clone, Default)]
pub struct Library {
    pub(crate) functions: FxHashMap<Arc<str>, Arc<Function>>,
    pub(crate) gradients: Vec<pb::GradientDef>,
    pub(crate) registered_gradients: Vec<pb::RegisteredGradient>,
}

impl Library {
    /// Whether there are no functions.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty() && self.gradients.is_empty()
    }

    /// The function with this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Function>> {
        self.functions.get(name)
    }

    /// The function with this name; NOT_FOUND if there is none.
    pub fn find(&self, name: &str) -> Result<&Arc<Function>> {
        self.get(name)
            .ok_or_else(|| not_found!("Function {name} is not defined."))
    }

    /// All functions in order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Function>> {
        let mut all: Vec<_> = self.functions.values().collect();
        all.sort_by(|a, b| a.name().cmp(b.name()));
        all.into_iter()
    }

    /// The function as an op that a node can name directly.
    pub fn entry(&self, name: &str) -> Option<Arc<OpEntry>> {
        let (name, function) = self.functions.get_key_value(name)?;
        Some(Arc::new(OpEntry {
            name: name.clone(),
            signature: function.signature.clone(),
            def: None,
            function: Some(function.clone()),
        }))
    }

    /// This library and the functions of `def`. A function that is already there must be the same.
    pub fn merged(&self, def: &pb::FunctionDefLibrary, registry: &Registry) -> Result<Library> {
        let mut merged = self.clone();
        for function in &def.function {
            let Some(signature) = &function.signature else {
                return Err(invalid_argument!(
                    "a function of the library has no signature"
                ));
            };
            let name: Arc<str> = signature.name.as_str().into();
            if name.is_empty() {
                return Err(invalid_argument!("a function of the library has no name"));
            }
            if registry.get(&name).is_some() {
                return Err(invalid_argument!(
                    "Cannot add function '{name}' because an op with the same name already exists."
                ));
            }
            if let Some(known) = merged.functions.get(&name) {
                if known.def.node_def.len() == function.node_def.len() && known.def == *function {
                    continue;
                }
                return Err(invalid_argument!(
                    "Cannot add function '{name}' because a different function with the same name already exists."
                ));
            }
            let signature = signature::from_proto(signature)
                .map_err(|status| status.context(format!("function '{name}'")))?;
            let function = Function {
                def: function.clone(),
                signature,
            };
            merged.functions.insert(name, Arc::new(function));
        }
        for gradient in &def.gradient {
            if !merged.gradients.contains(gradient) {
                merged.gradients.push(gradient.clone());
            }
        }
        for gradient in &def.registered_gradients {
            if !merged.registered_gradients.contains(gradient) {
                merged.registered_gradients.push(gradient.clone());
            }
        }
        Ok(merged)
    }

    /// The library as it travels.
    pub fn to_proto(&self) -> pb::FunctionDefLibrary {
        pb::FunctionDefLibrary {
            function: self.iter().map(|function| function.def.clone()).collect(),
            gradient: self.gradients.clone(),
            registered_gradients: self.registered_gradients.clone(),
        }
    }
}
