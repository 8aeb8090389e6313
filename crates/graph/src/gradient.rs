//! Reverse-mode differentiation over graphs: the driver, and what an op's gradient rule sees.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use tensorfleet_kernel::{AttrValue, Attrs};
use tensorfleet_status::{Result, invalid_argument, unimplemented};
use tensorfleet_tensor::{DType, Tensor};

use crate::builder::GraphBuilder;
use crate::def::Gradient;
use crate::flow_gradient;
use crate::graph::{NodeId, Output};

/// The gradient of one tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Grad {
    /// A tensor of the same shape.
    Dense(Output),
    /// Only some rows (TensorFlow's IndexedSlices): `values[i]` belongs to row `indices[i]`.
    Rows {
        /// The rows' gradients.
        values: Output,
        /// Which rows.
        indices: Output,
        /// The shape of the whole.
        dense_shape: Output,
    },
}

/// The gradients of a node's inputs; `None` where nothing flows.
pub type InputGrads = Vec<Option<Grad>>;

/// What a gradient rule sees: the node, the gradients of its outputs, and a builder to add nodes with.
pub struct GradCtx<'a> {
    builder: &'a mut GraphBuilder,
    node: NodeId,
    output_grads: &'a [Option<Output>],
}

impl GradCtx<'_> {
    /// The builder.
    pub fn builder(&mut self) -> &mut GraphBuilder {
        self.builder
    }

    /// Input `index` of the node.
    pub fn input(&self, index: usize) -> Output {
        self.builder.graph().node(self.node).inputs[index]
    }

    /// The number of inputs.
    pub fn num_inputs(&self) -> usize {
        self.builder.graph().node(self.node).inputs.len()
    }

    /// The number of outputs.
    pub fn num_outputs(&self) -> usize {
        self.output_grads.len()
    }

    /// Output `index` of the node.
    pub fn output(&self, index: usize) -> Output {
        self.node.output(index)
    }

    /// The attributes of the node.
    pub fn attrs(&self) -> &Attrs {
        &self.builder.graph().node(self.node).attrs
    }

    /// One attribute, cloned: to be set on a gradient node.
    pub fn attr(&self, name: &str) -> Result<AttrValue> {
        let found = self.attrs().get(name).cloned();
        found.ok_or_else(|| invalid_argument!("no attr named '{name}' in node"))
    }

    /// The dtype of a tensor.
    pub fn dtype(&self, output: Output) -> DType {
        self.builder
            .graph()
            .output_type(output)
            .map_or(DType::F32, |port| port.dtype)
    }

    /// The gradient of output `index`; `None` if nothing depends on it.
    pub fn grad_or_none(&self, index: usize) -> Option<Output> {
        self.output_grads.get(index).copied().flatten()
    }

    /// The gradient of output `index`, zeros if nothing depends on it.
    pub fn grad(&mut self, index: usize) -> Result<Output> {
        match self.grad_or_none(index) {
            Some(grad) => Ok(grad),
            None => {
                let output = self.output(index);
                self.builder.apply("ZerosLike", &[output])
            }
        }
    }

    /// A node with single inputs and no attributes to set.
    pub fn apply(&mut self, op: &str, inputs: &[Output]) -> Result<Output> {
        self.builder.apply(op, inputs)
    }

    /// A scalar constant of this dtype.
    pub fn constant(&mut self, value: f64, dtype: DType) -> Result<Output> {
        let wide = self.builder.constant(Tensor::scalar(value))?;
        if dtype == DType::F64 {
            return Ok(wide);
        }
        self.cast(wide, dtype)
    }

    /// An int32 scalar or vector constant.
    pub fn ints(&mut self, values: &[i32]) -> Result<Output> {
        self.builder.constant(Tensor::vector(values))
    }

    /// `Cast` to a dtype, or the tensor itself if it has it.
    pub fn cast(&mut self, value: Output, dtype: DType) -> Result<Output> {
        if self.dtype(value) == dtype {
            return Ok(value);
        }
        self.builder
            .op("Cast")
            .input(value)
            .attr("DstT", dtype)
            .output()
    }

    /// `Shape` as int32.
    pub fn shape(&mut self, value: Output) -> Result<Output> {
        self.builder.apply("Shape", &[value])
    }

    /// `Reshape` to the shape of another tensor.
    pub fn reshape_like(&mut self, value: Output, like: Output) -> Result<Output> {
        let shape = self.shape(like)?;
        self.builder.apply("Reshape", &[value, shape])
    }

    /// Sums a gradient that was broadcast back to the shapes of inputs 0 and 1.
    pub fn unbroadcast(&mut self, grads: [Output; 2]) -> Result<InputGrads> {
        let shapes = [self.shape(self.input(0))?, self.shape(self.input(1))?];
        let args = self
            .builder
            .op("BroadcastGradientArgs")
            .input(shapes[0])
            .input(shapes[1])
            .build()?;
        let mut out = Vec::with_capacity(2);
        for (index, grad) in grads.into_iter().enumerate() {
            let summed = self.builder.apply("Sum", &[grad, args.output(index)])?;
            out.push(Some(Grad::Dense(
                self.builder.apply("Reshape", &[summed, shapes[index]])?,
            )));
        }
        Ok(out)
    }
}

/// A dense gradient for the only input.
pub fn dense(grad: Output) -> Result<InputGrads> {
    Ok(vec![Some(Grad::Dense(grad))])
}

/// Adds nodes that compute d(sum of `ys`)/d`xs`. `grad_ys` replaces the ones that start the flow.
///
/// `None` for an `x` that no `y` depends on. Gradients that meet are summed; rows stay rows where all
/// that meet are rows.
pub fn gradients(
    builder: &mut GraphBuilder,
    ys: &[Output],
    xs: &[Output],
    grad_ys: &[Option<Output>],
) -> Result<InputGrads> {
    let needed = nodes_between(builder, ys, xs);
    let mut pending: FxHashMap<Output, Vec<Grad>> = FxHashMap::default();
    for (index, y) in ys.iter().enumerate() {
        let start = match grad_ys.get(index).copied().flatten() {
            Some(grad) => grad,
            None => builder.apply("OnesLike", &[*y])?,
        };
        pending.entry(*y).or_default().push(Grad::Dense(start));
    }
    // Walk backwards in topological order: by the time a node is met, all its consumers were.
    let order = builder.graph().topological_order()?;
    let mut results: BTreeMap<Output, Grad> = BTreeMap::new();
    for id in order.into_iter().rev().filter(|id| needed.contains(id)) {
        let outputs = builder.graph().node(id).output_types.len();
        let mut sums = Vec::with_capacity(outputs);
        for port in 0..outputs {
            let output = id.output(port);
            let sum = match pending.remove(&output) {
                Some(parts) => Some(aggregate(builder, parts)?),
                None => None,
            };
            if let Some(sum) = sum
                && xs.contains(&output)
            {
                results.insert(output, sum);
            }
            sums.push(sum);
        }
        if sums.iter().all(Option::is_none)
            || !builder
                .graph()
                .node(id)
                .inputs
                .iter()
                .any(|input| needed.contains(&input.node))
        {
            continue;
        }
        let input_grads = node_gradient(builder, id, &sums, &needed)?;
        let inputs = builder.graph().node(id).inputs.clone();
        for (input, grad) in inputs.into_iter().zip(input_grads) {
            if let Some(grad) = grad {
                pending.entry(input).or_default().push(grad);
            }
        }
    }
    Ok(xs.iter().map(|x| results.get(x).copied()).collect())
}

/// Ops whose only input has the gradient of the only output, rows included: what stands between a variable
/// and a lookup in it.
const HANDS_ON: &[&str] = &["Identity", "ReadVariableOp"];

fn node_gradient(
    builder: &mut GraphBuilder,
    id: NodeId,
    sums: &[Option<Grad>],
    needed: &FxHashSet<NodeId>,
) -> Result<InputGrads> {
    let node = builder.graph().node(id);
    if let ([Some(rows @ Grad::Rows { .. })], true) = (sums, HANDS_ON.contains(&node.op_name())) {
        return Ok(vec![Some(*rows)]);
    }
    let (name, op) = (node.name.clone(), node.op.clone());
    let count = node.inputs.len();
    let wanted = node.inputs.iter();
    let wanted: Vec<bool> = wanted.map(|input| needed.contains(&input.node)).collect();
    let mut dense = Vec::with_capacity(sums.len());
    for sum in sums {
        dense.push(match sum {
            Some(grad) => Some(densify(builder, *grad)?),
            None => None,
        });
    }
    if let Some(grads) = flow_gradient::gradient(builder, id, &dense, &wanted) {
        return grads.map_err(|status| status.context(format!("gradient of '{name}'")));
    }
    let rule = match op.def.map(|def| def.gradient) {
        Some(Gradient::Rule(rule)) => rule,
        Some(Gradient::Stop(_)) => return Ok(vec![None; count]),
        Some(Gradient::None(why)) => {
            return Err(unimplemented!(
                "no gradient defined for op {} (node '{name}'): {why}",
                op.name
            ));
        }
        None => {
            return Err(unimplemented!(
                "no gradient through function {} (node '{name}')",
                op.name
            ));
        }
    };
    let mut ctx = GradCtx {
        builder,
        node: id,
        output_grads: &dense,
    };
    let grads = rule(&mut ctx)
        .map_err(|status| status.context(format!("gradient of '{name}' ({})", op.name)))?;
    if grads.len() != count {
        return Err(invalid_argument!(
            "the gradient rule of {} gives {} gradients for {count} inputs",
            op.name,
            grads.len()
        ));
    }
    Ok(grads)
}

/// Nodes on a path from some `x` to some `y`.
fn nodes_between(builder: &GraphBuilder, ys: &[Output], xs: &[Output]) -> FxHashSet<NodeId> {
    let graph = builder.graph();
    let mut upstream: FxHashSet<NodeId> = FxHashSet::default();
    let mut stack: Vec<NodeId> = ys.iter().map(|y| y.node).collect();
    while let Some(id) = stack.pop() {
        if upstream.insert(id) {
            stack.extend(graph.node(id).inputs.iter().map(|input| input.node));
        }
    }
    let consumers = graph.consumers();
    let mut between = FxHashSet::default();
    stack.extend(xs.iter().map(|x| x.node));
    while let Some(id) = stack.pop() {
        if upstream.contains(&id) && between.insert(id) {
            stack.extend(
                consumers[id.index()]
                    .iter()
                    .filter(|(_, port)| port.is_some())
                    .map(|(node, _)| *node),
            );
        }
    }
    between
}

/// The sum of gradients that meet at one tensor.
fn aggregate(builder: &mut GraphBuilder, parts: Vec<Grad>) -> Result<Grad> {
    if let [only] = parts.as_slice() {
        return Ok(*only);
    }
    if parts.iter().all(|part| matches!(part, Grad::Rows { .. })) {
        return concat_rows(builder, &parts);
    }
    let mut outputs = Vec::with_capacity(parts.len());
    for part in parts {
        outputs.push(densify(builder, part)?);
    }
    Ok(Grad::Dense(builder.op("AddN").list(&outputs).output()?))
}

fn concat_rows(builder: &mut GraphBuilder, parts: &[Grad]) -> Result<Grad> {
    let mut all_values = Vec::new();
    let mut all_indices = Vec::new();
    let mut shape = None;
    for part in parts {
        if let Grad::Rows {
            values,
            indices,
            dense_shape,
        } = part
        {
            all_values.push(*values);
            all_indices.push(*indices);
            shape.get_or_insert(*dense_shape);
        }
    }
    let axis = builder.constant(Tensor::scalar(0i32))?;
    let values = builder
        .op("ConcatV2")
        .list(&all_values)
        .input(axis)
        .output()?;
    let indices = builder
        .op("ConcatV2")
        .list(&all_indices)
        .input(axis)
        .output()?;
    match shape {
        Some(dense_shape) => Ok(Grad::Rows {
            values,
            indices,
            dense_shape,
        }),
        None => Err(invalid_argument!("no gradients to add")),
    }
}

/// The gradient as one tensor of the full shape.
pub fn densify(builder: &mut GraphBuilder, grad: Grad) -> Result<Output> {
    match grad {
        Grad::Dense(output) => Ok(output),
        Grad::Rows {
            values,
            indices,
            dense_shape,
        } => {
            let one = builder.constant(Tensor::vector(&[1i32]))?;
            let begin = builder.constant(Tensor::vector(&[0i32]))?;
            let first = builder
                .op("StridedSlice")
                .input(dense_shape)
                .input(begin)
                .input(one)
                .input(one)
                .attr("shrink_axis_mask", 1i64)
                .output()?;
            builder.apply("UnsortedSegmentSum", &[values, indices, first])
        }
    }
}
