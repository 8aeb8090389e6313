//! Scopes: what holds for the nodes made while a [`Scope`] is alive. Names, devices, control
//! dependencies, colocation.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use tensorfleet_graph::NodeId;

use crate::device::{DeviceFunction, DeviceScope};
use crate::graph::{Graph, State};
use crate::operation::Operation;

/// What a scope set, undone when it is dropped. Scopes end in the reverse order of their beginning.
///
/// ```
/// use tensorfleet_client::Graph;
///
/// let g = Graph::new();
/// let a = {
///     let _on_ps = g.device("/job:ps/task:0");
///     let _tower = g.name_scope("tower_0");
///     g.named_constant("a", 1.0f32)
/// };
/// assert_eq!(a.name(), "tower_0/a:0");
/// assert_eq!(a.op().device(), "/job:ps/task:0");
///
/// // The same for a single expression.
/// let b = g.device("/job:worker").run(|| g.constant(2.0f32));
/// assert_eq!(b.op().device(), "/job:worker");
/// ```
#[must_use = "a scope ends where its value is dropped: bind it to a name such as `_scope`"]
pub struct Scope {
    graph: Graph,
    was: Depth,
}

impl Scope {
    /// Runs `build` inside the scope and ends it.
    pub fn run<T>(self, build: impl FnOnce() -> T) -> T {
        build()
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        self.graph.lock().scopes.unwind(self.was);
    }
}

/// How deep each kind of scope was.
#[derive(Clone, Copy)]
struct Depth {
    names: usize,
    devices: usize,
    controls: usize,
    colocations: usize,
    variables: usize,
}

/// The open scopes of a graph.
#[derive(Default)]
pub(crate) struct Scopes {
    /// Whole prefixes, without the final slash.
    names: Vec<String>,
    pub(crate) devices: Vec<DeviceScope>,
    controls: Vec<Controls>,
    pub(crate) colocations: Vec<Option<NodeId>>,
    pub(crate) variables: Vec<crate::variable_scope::VariableScope>,
}

/// One `control_dependencies` scope.
struct Controls {
    /// Who must run before; `None` forgets the scopes around.
    before: Option<Vec<NodeId>>,
    /// Nodes made inside. What reads one of them is ordered already.
    inside: FxHashSet<NodeId>,
}

impl Scopes {
    fn depth(&self) -> Depth {
        Depth {
            names: self.names.len(),
            devices: self.devices.len(),
            controls: self.controls.len(),
            colocations: self.colocations.len(),
            variables: self.variables.len(),
        }
    }

    fn unwind(&mut self, was: Depth) {
        self.names.truncate(was.names);
        self.devices.truncate(was.devices);
        self.controls.truncate(was.controls);
        self.colocations.truncate(was.colocations);
        self.variables.truncate(was.variables);
    }

    /// The prefix of names, without the final slash.
    pub(crate) fn prefix(&self) -> &str {
        self.names.last().map_or("", String::as_str)
    }

    /// Whom a node with these inputs must wait for.
    pub(crate) fn controls_for(&self, inputs: &[NodeId]) -> SmallVec<[NodeId; 1]> {
        let mut found = SmallVec::new();
        for controls in self.controls.iter().rev() {
            let Some(before) = &controls.before else {
                break;
            };
            if inputs.iter().any(|input| controls.inside.contains(input)) {
                continue;
            }
            for node in before {
                if !found.contains(node) {
                    found.push(*node);
                }
            }
        }
        found
    }

    /// Remembers that the node was made inside the open scopes.
    pub(crate) fn made(&mut self, node: NodeId) {
        for controls in &mut self.controls {
            controls.inside.insert(node);
        }
    }
}

/// Names in use, counted as TensorFlow counts them, so that a program gets the same names.
#[derive(Default)]
pub(crate) struct Names {
    counts: FxHashMap<String, usize>,
}

impl Names {
    /// A name nobody has; `name` itself if it is free. Names that differ in case only are the same.
    pub(crate) fn unique(&mut self, name: &str) -> String {
        let key = name.to_lowercase();
        let mut next = self.counts.get(&key).copied().unwrap_or(0);
        self.counts.insert(key.clone(), next + 1);
        if next == 0 {
            return name.to_owned();
        }
        loop {
            let candidate = format!("{key}_{next}");
            next += 1;
            if self.counts.contains_key(&candidate) {
                continue;
            }
            self.counts.insert(candidate, 1);
            self.counts.insert(key, next);
            return format!("{name}_{}", next - 1);
        }
    }

    /// Marks a name that was chosen elsewhere.
    pub(crate) fn take(&mut self, name: &str) {
        *self.counts.entry(name.to_lowercase()).or_insert(0) += 1;
    }
}

impl State {
    /// `name` behind the prefix of the open name scopes, made unique. A name that ends in `/` is
    /// meant as it is.
    pub(crate) fn full_name(&mut self, name: &str) -> String {
        if let Some(whole) = name.strip_suffix('/') {
            return whole.to_owned();
        }
        let full = match self.scopes.prefix() {
            "" => name.to_owned(),
            prefix => format!("{prefix}/{name}"),
        };
        self.names.unique(&full)
    }
}

impl Graph {
    pub(crate) fn open(&self, change: impl FnOnce(&mut State)) -> Scope {
        let graph = self.current();
        let was = {
            let mut state = graph.lock();
            let was = state.scopes.depth();
            change(&mut state);
            was
        };
        Scope { graph, was }
    }

    /// Puts `name/` before the names of nodes made inside. A scope with the same name as an earlier one
    /// becomes `name_1`; an empty name goes back to the root; a name ending in `/` is opened again.
    pub fn name_scope(&self, name: &str) -> Scope {
        self.open(|state| {
            let prefix = if name.is_empty() {
                String::new()
            } else {
                state.full_name(name)
            };
            state.scopes.names.push(prefix);
        })
    }

    /// Puts nodes made inside on this device. Inner scopes win, outer ones fill in what inner ones
    /// leave open: `/job:ps` around `/task:1` is `/job:ps/task:1`. An empty name forgets the scopes around.
    #[track_caller]
    pub fn device(&self, device: &str) -> Scope {
        let scope = match DeviceScope::parse(device) {
            Ok(scope) => scope,
            Err(status) => {
                self.note(status);
                DeviceScope::Reset
            }
        };
        self.open(|state| state.scopes.devices.push(scope))
    }

    /// Asks a function for the device of every node made inside. It gets what inner scopes decided
    /// and returns the whole device.
    pub fn device_function(&self, function: impl DeviceFunction) -> Scope {
        let scope = DeviceScope::Function(std::sync::Arc::new(function));
        self.open(|state| state.scopes.devices.push(scope))
    }

    /// Lets nodes made inside run only after these.
    pub fn control_dependencies<'a>(
        &self,
        before: impl IntoIterator<Item = &'a Operation>,
    ) -> Scope {
        let before = self.current().waits_inside(before);
        self.open(|state| {
            state.scopes.controls.push(Controls {
                before: Some(before),
                inside: FxHashSet::default(),
            });
        })
    }

    /// Forgets control dependencies of the scopes around.
    pub fn no_control_dependencies(&self) -> Scope {
        self.open(|state| {
            state.scopes.controls.push(Controls {
                before: None,
                inside: FxHashSet::default(),
            });
        })
    }

    /// Puts nodes made inside on the device of this one, wherever that will be.
    pub fn colocate_with(&self, op: &Operation) -> Scope {
        // In a function's body there is no node of the graph around to be tied to; resources tie their users anyway.
        let node = op.node().filter(|_| op.graph().is(&self.current()));
        self.open(|state| state.scopes.colocations.push(node))
    }

    /// Forgets colocation of the scopes around.
    pub fn no_colocation(&self) -> Scope {
        self.open(|state| state.scopes.colocations.push(None))
    }

    /// The prefix of the open name scopes, without the final slash.
    pub fn current_name_scope(&self) -> String {
        self.current().lock().scopes.prefix().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::Names;

    #[test]
    fn names_count_as_in_tensorflow() {
        let mut names = Names::default();
        let got: Vec<String> = ["a", "a", "a_1", "A", "b"]
            .iter()
            .map(|name| names.unique(name))
            .collect();
        assert_eq!(got, ["a", "a_1", "a_1_1", "A_2", "b"]);
    }
}
