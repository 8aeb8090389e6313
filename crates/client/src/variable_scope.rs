//! Variable scopes: variables found by name, made once and used again.

use std::collections::BTreeSet;
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

/// Variables by name, and the variable scopes that were opened.
#[derive(Default)]
pub(crate) struct VariableStore {
    by_name: FxHashMap<String, Variable>,
    opened: BTreeSet<String>,
}

impl VariableStore {
    /// Lets a variable that was made elsewhere be found by its name.
    pub(crate) fn keep(&mut self, variable: &Variable) {
        let name = variable.name().to_owned();
        let known = self.by_name.entry(name);
        known.or_insert_with(|| variable.clone());
    }

    /// Remembers that a scope was opened. Scopes inside it begin anew: opened again, they mean the same.
    fn open(&mut self, scope: &str) {
        let inside = format!("{scope}/");
        self.opened.retain(|known| !known.starts_with(&inside));
        self.opened.insert(scope.to_owned());
    }
}

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

    /// Lets variables of the open variable scope be found again, without a name of its own.
    pub fn reuse_variables(&self, reuse: Reuse) -> Scope {
        self.open(|state| {
            let outer = state.scopes.variables.last();
            let scope = VariableScope {
                name: outer.map_or_else(String::new, |scope| scope.name.clone()),
                reuse,
                initializer: outer.and_then(|scope| scope.initializer.clone()),
            };
            state.scopes.variables.push(scope);
        })
    }

    fn open_variable_scope(
        &self,
        name: &str,
        reuse: Reuse,
        initializer: Option<Arc<dyn Initializer>>,
    ) -> Scope {
        // The name scope is opened by the same guard: both end together.
        let scope = self.name_scope(name);
        let full = {
            let graph = self.current();
            let mut state = graph.lock();
            state.scopes.open_variables(name, reuse, initializer)
        };
        self.root().lock().variables.open(&full);
        scope
    }

    /// A variable scope of this name, or of the first of `name_1`, `name_2`… that was not opened yet in the
    /// scope around: for layers that nobody named. Where the scope around is opened again to reuse its
    /// variables, the names come again too.
    pub fn unique_variable_scope(&self, name: &str) -> Scope {
        let is_new = |name: &String| {
            let full = self.variable_name(name);
            !self.root().lock().variables.opened.contains(&full)
        };
        let numbered = (1..).map(|number| format!("{name}_{number}"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        let unique = names.find(is_new);
        self.open_variable_scope(unique.as_deref().unwrap_or(name), Reuse::Never, None)
    }

    /// `name` behind the open variable scopes.
    pub(crate) fn variable_name(&self, name: &str) -> String {
        self.current().lock().scopes.variable_name(name)
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

impl crate::graph::State {
    /// The name of a slot of variable `primary`: behind the open variable scopes, as TensorFlow has it.
    pub(crate) fn slot_name(&mut self, primary: &str, slot: &str) -> String {
        let full = match self.scopes.variables.last() {
            Some(scope) if !scope.name.is_empty() => format!("{}/{primary}/{slot}", scope.name),
            _ => format!("{primary}/{slot}"),
        };
        self.names.unique(&full)
    }
}

impl crate::scope::Scopes {
    /// `name` behind the open variable scopes.
    fn variable_name(&self, name: &str) -> String {
        match self.variables.last().map(|scope| scope.name.as_str()) {
            None | Some("") => name.to_owned(),
            Some(outer) => format!("{outer}/{name}"),
        }
    }

    /// Opens a scope; its whole name.
    fn open_variables(
        &mut self,
        name: &str,
        reuse: Reuse,
        initializer: Option<Arc<dyn Initializer>>,
    ) -> String {
        let full = self.variable_name(name);
        let outer = self.variables.last();
        // Reuse is handed down: inside a scope that reuses, everything is reused.
        let reuse = match outer.map(|scope| scope.reuse) {
            Some(outer) if reuse == Reuse::Never => outer,
            _ => reuse,
        };
        let initializer = initializer.or_else(|| outer.and_then(|scope| scope.initializer.clone()));
        self.variables.push(VariableScope {
            name: full.clone(),
            reuse,
            initializer,
        });
        full
    }
}

impl VariableBuilder {
    #[track_caller]
    pub(crate) fn get(mut self) -> Variable {
        let (graph, name, ..) = self.target();
        let graph = graph.clone();
        // The scopes may be those of a function's body; the variables are always of the graph around it.
        let scope = graph.current().lock().scopes.variables.last().cloned();
        let full = graph.variable_name(name);
        let (reuse, initializer, known) = {
            let state = graph.lock();
            let scope = scope.as_ref();
            let known = state.variables.by_name.get(&full).cloned();
            let reuse = scope.map_or(Reuse::Never, |scope| scope.reuse);
            let initializer = scope.and_then(|scope| scope.initializer.clone());
            (reuse, initializer, known)
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
        let regularizer = self.take_regularizer();
        let variable = self.make(Some(&full));
        {
            let mut state = graph.lock();
            state.names.take(&full);
            state.variables.by_name.insert(full, variable.clone());
        }
        if let Some(regularizer) = regularizer {
            variable.regularize(&*regularizer);
        }
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
