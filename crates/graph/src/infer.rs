//! Shape rules: what is known of a node's outputs before it runs.
//!
//! A rule reads input shapes and, where it must, values of inputs that are constants, and sets the
//! output shapes. What it leaves unset is unknown. Rules are advisory: passes use them, kernels check
//! for themselves.

use smallvec::SmallVec;
use tensorfleet_kernel::Attrs;
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{DType, Dims, PartialShape, Tensor, UNKNOWN_DIM};

use crate::graph::{Graph, Node};

/// What a shape rule sees.
pub struct InferCtx<'a> {
    node: &'a Node,
    inputs: &'a [PartialShape],
    constants: &'a [Option<Tensor>],
    outputs: Vec<PartialShape>,
}

impl<'a> InferCtx<'a> {
    /// A context over these input shapes and known input values.
    pub fn new(
        node: &'a Node,
        inputs: &'a [PartialShape],
        constants: &'a [Option<Tensor>],
    ) -> InferCtx<'a> {
        InferCtx {
            node,
            inputs,
            constants,
            outputs: vec![PartialShape::unknown(); node.output_types.len()],
        }
    }

    /// The attributes.
    pub fn attrs(&self) -> &'a Attrs {
        &self.node.attrs
    }

    /// The number of data inputs.
    pub fn num_inputs(&self) -> usize {
        self.inputs.len()
    }

    /// The number of outputs.
    pub fn num_outputs(&self) -> usize {
        self.outputs.len()
    }

    /// The shape of input `index`; unknown if there is no such input.
    pub fn input(&self, index: usize) -> &'a PartialShape {
        const UNKNOWN: &PartialShape = &PartialShape::unknown();
        self.inputs.get(index).unwrap_or(UNKNOWN)
    }

    /// The value of input `index` if it is a constant.
    pub fn constant(&self, index: usize) -> Option<&'a Tensor> {
        self.constants.get(index)?.as_ref()
    }

    /// The value of an int32 or int64 input if it is a constant.
    pub fn constant_ints(&self, index: usize) -> Option<SmallVec<[i64; 8]>> {
        let tensor = self.constant(index)?;
        match tensor.dtype() {
            DType::I32 => Some(
                tensor
                    .slice::<i32>()
                    .ok()?
                    .iter()
                    .map(|v| i64::from(*v))
                    .collect(),
            ),
            DType::I64 => Some(tensor.slice::<i64>().ok()?.iter().copied().collect()),
            _ => None,
        }
    }

    /// The shape that input `index` holds as a vector of dimensions, as far as known.
    pub fn shape_from(&self, index: usize) -> PartialShape {
        match (self.constant_ints(index), self.input(index).dim(0)) {
            (Some(dims), _) => PartialShape::new(&dims),
            (None, Some(rank)) if self.input(index).rank() == Some(1) => {
                PartialShape::of_rank(rank as usize)
            }
            _ => PartialShape::unknown(),
        }
    }

    /// Sets the shape of output `index`.
    pub fn set(&mut self, index: usize, shape: PartialShape) {
        if let Some(slot) = self.outputs.get_mut(index) {
            *slot = shape;
        }
    }

    /// The shapes set so far.
    pub fn finish(self) -> Vec<PartialShape> {
        self.outputs
    }
}

/// Nothing is known.
pub fn unknown(_: &mut InferCtx<'_>) -> Result<()> {
    Ok(())
}

/// Every output is a scalar.
pub fn scalar(ctx: &mut InferCtx<'_>) -> Result<()> {
    for index in 0..ctx.num_outputs() {
        ctx.set(index, PartialShape::scalar());
    }
    Ok(())
}

/// Every output has the shape of the first input.
pub fn same_as_first(ctx: &mut InferCtx<'_>) -> Result<()> {
    for index in 0..ctx.num_outputs() {
        ctx.set(index, ctx.input(0).clone());
    }
    Ok(())
}

/// All inputs have one shape, and so has the output.
pub fn all_same(ctx: &mut InferCtx<'_>) -> Result<()> {
    let mut shape = PartialShape::unknown();
    for index in 0..ctx.num_inputs() {
        shape = shape.merge(ctx.input(index))?;
    }
    for index in 0..ctx.num_outputs() {
        ctx.set(index, shape.clone());
    }
    Ok(())
}

/// The output has the shape whose dimensions are the elements of input `INPUT`.
pub fn shape_in<const INPUT: usize>(ctx: &mut InferCtx<'_>) -> Result<()> {
    ctx.set(0, ctx.shape_from(INPUT));
    Ok(())
}

/// The output has the `shape` attribute's shape.
pub fn from_shape_attr(ctx: &mut InferCtx<'_>) -> Result<()> {
    ctx.set(0, ctx.attrs().shape("shape")?.clone());
    Ok(())
}

/// The output is the first two inputs broadcast against each other.
pub fn broadcast(ctx: &mut InferCtx<'_>) -> Result<()> {
    let shape = broadcast_shapes(ctx.input(0), ctx.input(1))?;
    ctx.set(0, shape);
    Ok(())
}

/// The shape of two shapes broadcast against each other.
pub fn broadcast_shapes(a: &PartialShape, b: &PartialShape) -> Result<PartialShape> {
    let (Some(left), Some(right)) = (a.dims(), b.dims()) else {
        return Ok(PartialShape::unknown());
    };
    let rank = left.len().max(right.len());
    let at = |dims: &[i64], axis: usize| match (axis + dims.len()).checked_sub(rank) {
        Some(index) => dims[index],
        None => 1,
    };
    let mut out = Dims::new();
    for axis in 0..rank {
        out.push(match (at(left, axis), at(right, axis)) {
            (l, r) if l == r => l,
            (1, r) => r,
            (l, 1) => l,
            (UNKNOWN_DIM, r) => r,
            (l, UNKNOWN_DIM) => l,
            (l, r) => {
                return Err(invalid_argument!(
                    "incompatible shapes: {a} vs. {b} (dimension {axis}: {l} and {r})"
                ));
            }
        });
    }
    Ok(PartialShape::new(&out))
}

/// The known output shapes of every node. Nodes in loops and nodes whose rule objects stay unknown.
pub fn infer_shapes(graph: &Graph) -> Result<Vec<Vec<PartialShape>>> {
    let mut shapes: Vec<Vec<PartialShape>> = graph
        .nodes()
        .map(|(_, node)| vec![PartialShape::unknown(); node.output_types.len()])
        .collect();
    for id in graph.topological_order()? {
        let node = graph.node(id);
        let Some(def) = node.op.def else { continue };
        let inputs: Vec<PartialShape> = node
            .inputs
            .iter()
            .map(|input| shapes[input.node.index()][input.port as usize].clone())
            .collect();
        let constants: Vec<Option<Tensor>> = node
            .inputs
            .iter()
            .map(|input| {
                let source = graph.node(input.node);
                (source.op_name() == "Const")
                    .then(|| source.attrs.tensor("value").ok().cloned())
                    .flatten()
            })
            .collect();
        let mut ctx = InferCtx::new(node, &inputs, &constants);
        if (def.infer)(&mut ctx).is_ok() {
            shapes[id.index()] = ctx.finish();
        }
    }
    Ok(shapes)
}
