//! Gradients of ops that call functions: conditionals, loops, calls.
//!
//! A function's body and its gradient are made in one graph first ([`Halves`]). What depends on the
//! gradients of the results is the backward half and becomes a function of its own; the rest stays the
//! forward function. Tensors that cross over become further results of the node, which is rewritten in
//! place: a conditional returns them, a loop pushes them on lists, one element per iteration. So nothing
//! is computed twice, and the gradient sees random numbers and variables as the forward run saw them.

mod branches;
mod halves;
mod loops;

use std::sync::Arc;

use smallvec::SmallVec;
use tensorfleet_kernel::{AttrList, AttrValue, Attrs, FuncRef};
use tensorfleet_proto as pb;
use tensorfleet_status::{Result, failed_precondition};
use tensorfleet_tensor::{DType, PartialShape, PortType, Shape, Tensor};

use crate::builder::GraphBuilder;
use crate::check;
use crate::function::FunctionBody;
use crate::function_def::FunctionWriter;
use crate::gradient::InputGrads;
use crate::graph::{Graph, Node, NodeId, Output};
use crate::signature::port_types;

/// The gradients of a node's inputs if it calls functions; `None` if it does not, or if the function comes
/// with a gradient. `wanted` says for which inputs they are of use.
pub(crate) fn gradient(
    builder: &mut GraphBuilder,
    id: NodeId,
    sums: &[Option<Output>],
    wanted: &[bool],
) -> Option<Result<InputGrads>> {
    let node = builder.graph().node(id).clone();
    match node.op_name() {
        "While" | "StatelessWhile" => Some(loops::gradient(builder, id, &node, sums, wanted)),
        "If" | "StatelessIf" | "Case" | "StatelessCase" => {
            Some(branches::gradient(builder, id, &node, sums, wanted))
        }
        "PartitionedCall" | "StatefulPartitionedCall" => {
            let func = node.attrs.func("f").ok()?;
            let given = builder.graph().library().gradient_of(&func.name);
            (given.is_none() && !builder.is_fixed(id))
                .then(|| branches::gradient(builder, id, &node, sums, wanted))
        }
        _ => None,
    }
}

/// The functions that may be called with the node's inputs from position `first` on.
struct Callees {
    first: usize,
    functions: Vec<FuncRef>,
}

impl Callees {
    fn of(node: &Node) -> Option<Callees> {
        let func = |name: &str| node.attrs.func(name).ok().cloned();
        let (first, functions) = match node.op_name() {
            "While" | "StatelessWhile" => (0, vec![func("body")?]),
            "If" | "StatelessIf" => (1, vec![func("then_branch")?, func("else_branch")?]),
            "Case" | "StatelessCase" => (1, node.attrs.funcs("branches").ok()?.to_vec()),
            "PartitionedCall" | "StatefulPartitionedCall" => (0, vec![func("f")?]),
            _ => return None,
        };
        Some(Callees { first, functions })
    }
}

fn check_rewritable(builder: &GraphBuilder, id: NodeId) -> Result<()> {
    if builder.is_fixed(id) {
        let name = &builder.graph().node(id).name;
        return Err(failed_precondition!(
            "'{name}' has been sent to a session, and its gradient needs more results of it; take gradients through conditionals and loops before the first run, or open a new graph"
        ));
    }
    Ok(())
}

fn instantiate(builder: &GraphBuilder, func: &FuncRef) -> Result<FunctionBody> {
    let graph = builder.graph();
    let function = graph.library().find(&func.name)?;
    FunctionBody::instantiate(function, &func.attrs, graph.registry(), graph.library())
}

/// A function that was added to the library.
struct Defined {
    func: FuncRef,
    is_stateful: bool,
}

/// Adds a function to the library under a name that begins like this.
fn define(builder: &mut GraphBuilder, base: &str, function: FunctionWriter<'_>) -> Result<Defined> {
    let graph = builder.graph_mut();
    let name = graph.library().fresh_name(base);
    let def = function.write(&name)?;
    let is_stateful = def
        .signature
        .as_ref()
        .is_some_and(|signature| signature.is_stateful);
    graph.define(def)?;
    let func = FuncRef {
        name: name.into(),
        attrs: Attrs::new(),
    };
    Ok(Defined { func, is_stateful })
}

/// Zeros of the shape of a tensor, or of the value behind a variable's handle.
fn zeros_like(builder: &mut GraphBuilder, like: Output, dtype: DType) -> Result<Output> {
    let port = builder.graph().output_type(like);
    if port.is_some_and(|port| port.dtype == DType::Resource) {
        let shape = builder.apply("VariableShape", &[like])?;
        let zero = builder.constant(Tensor::zeros(dtype, Shape::scalar())?)?;
        return builder.apply("Fill", &[shape, zero]);
    }
    builder.apply("ZerosLike", &[like])
}

/// A list without elements, for elements of any shape.
fn empty_list(builder: &mut GraphBuilder, dtype: DType) -> Result<Output> {
    let any = builder.constant(Tensor::scalar(-1i32))?;
    let list = builder.op("EmptyTensorList").input(any).input(any);
    list.attr("element_dtype", dtype).output()
}

fn type_list(types: impl IntoIterator<Item = DType>) -> AttrValue {
    let types = types.into_iter().map(PortType::from).collect();
    AttrValue::List(AttrList::Type(types))
}

fn dtypes(ports: &[PortType]) -> impl Iterator<Item = DType> + '_ {
    ports.iter().map(|port| port.dtype)
}

/// Says of so many further outputs that their shapes are not known.
fn extend_output_shapes(attrs: &mut Attrs, more: usize) {
    if let Ok(shapes) = attrs.shapes("output_shapes")
        && !shapes.is_empty()
    {
        let mut shapes = shapes.to_vec();
        shapes.extend(std::iter::repeat_n(PartialShape::unknown(), more));
        attrs.set("output_shapes", AttrValue::List(AttrList::Shape(shapes)));
    }
}

/// Attributes that say how the node is to run, handed on to the node of its gradient.
fn copy_hints(from: &Node, attrs: &mut Attrs) {
    for name in ["_lower_using_switch_merge", "parallel_iterations"] {
        if let Some(value) = from.attrs.get(name) {
            attrs.set(name, value.clone());
        }
    }
}

impl Graph {
    /// Adds a function to the library.
    pub fn define(&mut self, def: pb::FunctionDef) -> Result<()> {
        let more = pb::FunctionDefLibrary {
            function: vec![def],
            ..pb::FunctionDefLibrary::default()
        };
        let library = self.library().merged(&more, self.registry())?;
        self.set_library(Arc::new(library));
        Ok(())
    }

    /// Replaces attributes and inputs of a node. Outputs may only be added: others may read those it has.
    fn rewrite(&mut self, id: NodeId, attrs: Attrs, inputs: SmallVec<[Output; 2]>) -> Result<()> {
        let node = &mut self.nodes[id.index()];
        node.attrs = check::attrs(&node.name, &node.op, attrs)?;
        node.input_types = port_types(&node.op.signature.inputs, &node.attrs)?;
        node.output_types = port_types(&node.op.signature.outputs, &node.attrs)?;
        node.inputs = inputs;
        check::inputs(self, self.node(id))
    }
}
