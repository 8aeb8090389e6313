//! Variable scopes: variables found by name, made once and used again.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use tensorfleet_status::{Result, Status, invalid_argument};
use tensorfleet_tensor::PartialShape;

use crate::graph::Graph;
use crate::init::{self, Initializer};
use crate::scope::Scope;
use crate::variable::{Variable, VariableBuilder};

/// Whether a variable that exists may be used again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reuse {
    /// No: a second one of the same name is a mistake.
    #[default]
    Never,
    /// It must exist.
    Always,
    /// If it exists.
    Auto,
}

/// One open variable scope.
#[derive(Clone)]
pub(crate) struct VariableScope {
    /// The whole name.
    name: String,
    reuse: Reuse,
    initializer: Option<Arc<dyn Initializer>>,
}

/// Variables by name.
pub(crate) type VariableStore = FxHashMap<String, Variable>;

impl Graph {
    /// Puts `name/` before the names of variables found by [`get_variable`](Self::get_variable), and opens
    /// a name scope of that name. Opened twice it means the same variables.
    pub fn variable_scope(&self, name: &str, reuse: Reuse) -> Scope {
        self.open_variable_scope(name, reuse, None)
    }

    /// A variable scope whose variables have this initial value unless they say otherwise.
    pub fn variable_scope_with(
        &self,
        name: &str,
        reuse: Reuse,
        initializer: impl Initializer + 'static,
    ) -> Scope {
        self.open_variable_scope(name, reuse, Some(Arc::new(initializer)))
    }

    fn open_variable_scope(
        &self,
        name: &str,
        reuse: Reuse,
        initializer: Option<Arc<dyn Initializer>>,
    ) -> Scope {
        // The name scope is opened by the same guard: both end together.
        let scope = self.name_scope(name);
        let graph = self.current();
        graph.lock().scopes.open_variables(name, reuse, initializer);
        scope
    }

    /// The variable of this name in the open variable scopes: made at the first call, found again where the
    /// scope allows it.
    ///
    /// ```
    /// use tensorfleet_client::{Graph, Reuse};
    ///
    /// let g = Graph::new();
    /// let first = g.variable_scope("fc", Reuse::Never).run(|| g.get_variable("w", &[2, 2]).build());
    /// let again = g.variable_scope("fc", Reuse::Always).run(|| g.get_variable("w", &[2, 2]).build());
    /// assert_eq!(first.name(), "fc/w");
    /// assert!(first.is(&again));
    /// ```
    pub fn get_variable(&self, name: &str, dims: &[i64]) -> VariableBuilder {
        let mut builder = self.variable(name, dims);
        builder.shared = true;
        builder
    }
}

impl crate::scope::Scopes {
    fn open_variables(
        &mut self,
        name: &str,
        reuse: Reuse,
        initializer: Option<Arc<dyn Initializer>>,
    ) {
        let outer = self.variables.last();
        let full = match outer.map(|scope| scope.name.as_str()) {
            None | Some("") => name.to_owned(),
            Some(outer) => format!("{outer}/{name}"),
        };
        // Reuse is handed down: inside a scope that reuses, everything is reused.
        let reuse = match outer.map(|scope| scope.reuse) {
            Some(outer) if reuse == Reuse::Never => outer,
            _ => reuse,
        };
        let initializer = initializer.or_else(|| outer.and_then(|scope| scope.initializer.clone()));
        self.variables.push(VariableScope {
            name: full,
            reuse,
            initializer,
        });
    }
}

impl VariableBuilder {
    #[track_caller]
    pub(crate) fn get(mut self) -> Variable {
        let (graph, name, ..) = self.target();
        let graph = graph.clone();
        // The scopes may be those of a function's body; the variables are always of the graph around it.
        let scope = graph.current().lock().scopes.variables.last().cloned();
        let (full, reuse, initializer, known) = {
            let state = graph.lock();
            let scope = scope.as_ref();
            let full = match scope {
                Some(scope) if !scope.name.is_empty() => format!("{}/{name}", scope.name),
                _ => name.to_owned(),
            };
            let known = state.variables.get(&full).cloned();
            let reuse = scope.map_or(Reuse::Never, |scope| scope.reuse);
            let initializer = scope.and_then(|scope| scope.initializer.clone());
            (full, reuse, initializer, known)
        };
        match self.check_reuse(&full, reuse, known.as_ref()) {
            Err(status) => graph.note(status),
            Ok(()) => {
                if let Some(known) = known {
                    return known;
                }
            }
        }
        let floating = self.target().3.is_floating();
        self.default_initializer(|| match initializer {
            Some(initializer) => Some(initializer),
            None if floating => Some(Arc::new(init::glorot_uniform())),
            None => None,
        });
        let variable = self.make(Some(&full));
        graph.lock().names.take(&full);
        graph.lock().variables.insert(full, variable.clone());
        variable
    }

    fn check_reuse(
        &self,
        full: &str,
        reuse: Reuse,
        known: Option<&Variable>,
    ) -> Result<(), Status> {
        let (_, _, dims, dtype) = self.target();
        match (known, reuse) {
            (Some(_), Reuse::Never) => Err(invalid_argument!(
                "variable {full} already exists; open its variable scope with Reuse::Always or Reuse::Auto to use it again"
            )),
            (None, Reuse::Always) => Err(invalid_argument!(
                "variable {full} does not exist; open its variable scope with Reuse::Never or Reuse::Auto to make it"
            )),
            (Some(known), _) if known.dims() != dims || known.dtype() != dtype => {
                Err(invalid_argument!(
                    "variable {full} is {} {}, {} {} was asked for",
                    known.dtype().name(),
                    PartialShape::new(known.dims()),
                    dtype.name(),
                    PartialShape::new(dims)
                ))
            }
            _ => Ok(()),
        }
    }
}
