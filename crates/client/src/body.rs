//! Bodies of functions: graphs that closures build inside of another graph.
//!
//! While a closure runs, whatever it asks of the graph around, through whichever handle, is built in the
//! body: [`Graph::current`] decides. Tensors of the graph around become arguments of the function when
//! they are first read; variables are made outside, whoever asks for them.

use std::cell::RefCell;
use std::sync::Arc;

use tensorfleet_graph::{self as ir, FunctionWriter, NodeId};
use tensorfleet_kernel::{Attrs, FuncRef};
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{DType, PartialShape};

use crate::graph::Graph;
use crate::operation::Operation;
use crate::output::Output;

thread_local! {
    /// The bodies being built by this thread, innermost last.
    static OPEN: RefCell<Vec<Graph>> = const { RefCell::new(Vec::new()) };
}

/// Builds in another graph until it is dropped.
pub(crate) struct Building;

impl Building {
    fn start(graph: &Graph) -> Building {
        OPEN.with_borrow_mut(|open| open.push(graph.clone()));
        Building
    }
}

impl Drop for Building {
    fn drop(&mut self) {
        OPEN.with_borrow_mut(Vec::pop);
    }
}

/// A function in the library, by name, and whether it has effects.
pub(crate) struct Defined {
    pub(crate) func: FuncRef,
    pub(crate) is_stateful: bool,
}

impl Graph {
    /// Where nodes go that are asked of this graph: into the innermost body inside of it that this thread
    /// is building.
    pub(crate) fn current(&self) -> Graph {
        let body = OPEN.with_borrow(|open| {
            let mut open = open.iter().rev();
            open.find(|body| body.lies_in(self)).cloned()
        });
        body.unwrap_or_else(|| self.clone())
    }

    fn lies_in(&self, graph: &Graph) -> bool {
        self.is(graph) || self.outer().is_some_and(|outer| outer.lies_in(graph))
    }

    /// The graph around all bodies.
    pub(crate) fn root(&self) -> Graph {
        match self.outer() {
            Some(outer) => outer.root(),
            None => self.clone(),
        }
    }

    /// Builds in this graph even while a body inside of it is built.
    pub(crate) fn outside_of_bodies(&self) -> Building {
        Building::start(self)
    }

    /// Lets a closure build a body inside of this graph. Devices and variable scopes that hold here hold
    /// there.
    pub(crate) fn build_body<T>(&self, build: impl FnOnce(&Graph) -> T) -> (Graph, T) {
        let body = Graph::within(Some(self.clone()));
        {
            let outer = self.lock();
            let mut state = body.lock();
            let library = outer.builder.graph().library().clone();
            state.builder.graph_mut().set_library(library);
            state.seed = outer.seed;
            state.scopes.devices.clone_from(&outer.scopes.devices);
            state.scopes.variables.clone_from(&outer.scopes.variables);
        }
        let building = Building::start(&body);
        let built = build(&body);
        drop(building);
        {
            let mut outer = self.lock();
            let state = body.lock();
            let known = outer.builder.graph().library();
            let library = Arc::new(known.with_missing(state.builder.graph().library()));
            outer.builder.graph_mut().set_library(library);
            if let Some(status) = state.error() {
                outer.inherit(status.clone());
            }
        }
        (body, built)
    }

    /// An argument of this body.
    pub(crate) fn argument(
        &self,
        name: &str,
        dtype: DType,
        shape: PartialShape,
    ) -> Result<ir::Output> {
        let mut state = self.lock();
        let name = state.names.unique(name);
        let node = state.builder.op("Placeholder").name(name);
        node.attr("dtype", dtype).attr("shape", shape).output()
    }

    /// The tensor inside this body that stands for one of the graph around.
    pub(crate) fn capture(&self, outside: &Output) -> Result<ir::Output> {
        let found = {
            let state = self.lock();
            let mut captures = state.captures.iter();
            captures
                .find(|(known, _)| known.at() == outside.at())
                .map(|(_, inside)| *inside)
        };
        if let Some(inside) = found {
            return Ok(inside);
        }
        if outside.is_ref() {
            return Err(invalid_argument!(
                "'{}' is a reference variable, which conditionals and loops cannot use inside; read it before them, or make it a resource",
                outside.op().name()
            ));
        }
        let name = format!("captured/{}", outside.op().name());
        let at = self.argument(&name, outside.dtype(), outside.shape())?;
        self.lock().captures.push((outside.clone(), at));
        Ok(at)
    }

    /// Which nodes of this graph to wait for in order to wait for these. What is of the graph around, the
    /// whole body waits for.
    pub(crate) fn waits_inside<'a>(
        &self,
        ops: impl IntoIterator<Item = &'a Operation>,
    ) -> Vec<NodeId> {
        let mut inside = Vec::new();
        for op in ops {
            if op.graph().is(self) {
                inside.extend(op.node());
            } else if self.lies_in(op.graph()) {
                self.lock().waits.push(op.clone());
            } else {
                self.note(invalid_argument!(
                    "node '{}' is of another graph than what shall wait for it",
                    op.name()
                ));
            }
        }
        inside
    }

    /// Nodes that act without giving results, such as updates of variables: they run though nobody reads them.
    fn effects(&self) -> Vec<NodeId> {
        let state = self.lock();
        let nodes = state.builder.graph().nodes();
        nodes
            .filter(|(_, node)| node.is_stateful() && node.output_types.is_empty())
            .map(|(id, _)| id)
            .collect()
    }

    /// Defines this body as a function of the graph around.
    pub(crate) fn define(
        &self,
        base: &str,
        args: &[(DType, Option<ir::Output>)],
        rets: &[ir::Output],
        ops: &[Operation],
    ) -> Result<Defined> {
        let Some(outer) = self.outer() else {
            return Err(invalid_argument!("a whole graph is no function's body"));
        };
        let mut effects = self.effects();
        effects.extend(self.waits_inside(ops));
        let mut outer = outer.lock();
        let name = outer.builder.graph().library().fresh_name(base);
        let def = {
            let state = self.lock();
            let mut function = FunctionWriter::new(state.builder.graph());
            for (dtype, inside) in args {
                function = function.arg(*dtype, *inside);
            }
            function.rets(rets).control_rets(&effects).write(&name)?
        };
        let signature = def.signature.as_ref();
        let is_stateful = signature.is_some_and(|signature| signature.is_stateful);
        outer.builder.graph_mut().define(def)?;
        Ok(Defined {
            func: FuncRef {
                name: name.into(),
                attrs: Attrs::new(),
            },
            is_stateful,
        })
    }
}

/// What several bodies capture, each tensor once.
pub(crate) fn captured(bodies: &[&Graph]) -> Vec<Output> {
    let mut all: Vec<Output> = Vec::new();
    for body in bodies {
        for (outside, _) in &body.lock().captures {
            if !all.iter().any(|known| known.at() == outside.at()) {
                all.push(outside.clone());
            }
        }
    }
    all
}

/// The arguments of a body for these captures.
pub(crate) fn capture_args(body: &Graph, captures: &[Output]) -> Vec<(DType, Option<ir::Output>)> {
    let state = body.lock();
    let inside = |outside: &Output| {
        let mut known = state.captures.iter();
        known
            .find(|(known, _)| known.at() == outside.at())
            .map(|(_, inside)| *inside)
    };
    captures
        .iter()
        .map(|outside| (outside.dtype(), inside(outside)))
        .collect()
}
