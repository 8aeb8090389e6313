//! What the ops that make datasets have in common.

use std::sync::Arc;

use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, ensure};
use tensorfleet_tensor::Element;

use super::value::{Dataset, Spec, Stage};

/// An op that makes a dataset.
pub(super) const DATASET: OpDef = OpDef {
    outputs: &["handle: variant"],
    infer: infer::scalar,
    gradient: Gradient::None("a dataset is no number"),
    exactness: Exactness::Bits,
    cost: Cost::Cheap,
    ..OpDef::BLANK
};

/// An op that makes a dataset of another, with these attributes and no input of its own.
pub(super) const UNARY: OpDef = OpDef {
    inputs: &["input_dataset: variant"],
    attrs: TYPES_AND_METADATA,
    ..DATASET
};

/// What most datasets say of their elements.
pub(super) const TYPES_AND_METADATA: &[&str] = &[
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
    "metadata: string = ''",
];

/// The same of the older and the experimental ones.
pub(super) const TYPES: &[&str] = &[
    "output_types: list(type) >= 1",
    "output_shapes: list(shape) >= 1",
];

/// What shape rule a node has whose attribute `output_shapes` says it.
pub(super) fn infer_output_shapes(ctx: &mut infer::InferCtx<'_>) -> Result<()> {
    let shapes = ctx.attrs().shapes("output_shapes")?.to_vec();
    for (index, shape) in shapes.into_iter().enumerate() {
        ctx.set(index, shape);
    }
    Ok(())
}

/// A kernel that makes a dataset whose elements are as the node says.
pub(super) fn build<S: Stage + 'static>(
    node: &NodeInfo,
    make: impl Fn(&mut KernelCtx<'_>) -> Result<S> + Send + Sync + 'static,
) -> Result<AnyKernel> {
    build_as(Spec::of(node)?, make)
}

/// A kernel that makes a dataset of such elements.
pub(super) fn build_as<S: Stage + 'static>(
    spec: Spec,
    make: impl Fn(&mut KernelCtx<'_>) -> Result<S> + Send + Sync + 'static,
) -> Result<AnyKernel> {
    let spec = Arc::new(spec);
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let stage = make(ctx)?;
        let dataset = Dataset::new(stage, spec.clone())?;
        ctx.set(0, dataset.to_tensor());
        Ok(())
    })
}

/// The one element of an input called `name`.
pub(super) fn scalar<T: Element>(ctx: &KernelCtx<'_>, index: usize, name: &str) -> Result<T> {
    let tensor = ctx.input(index)?;
    ensure!(
        tensor.rank() == 0,
        invalid_argument,
        "{name} must be a scalar"
    );
    tensor.to_scalar::<T>()
}
