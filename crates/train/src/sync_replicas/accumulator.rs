//! Accumulators: where the gradients of one variable meet.

use tensorfleet_client::{
    DType, Gradient, IndexedSlices, Operation, Output, PartialShape, Variable,
};

use super::on;

/// The accumulator of one variable's gradients, on the variable's device, shared by all workers through its name.
pub(super) struct Accumulator {
    /// The name of the variable.
    pub(super) variable: String,
    /// How many gradients it holds.
    pub(super) count: Output,
    handle: Output,
    sparse: bool,
    dtype: DType,
    device: String,
}

impl Accumulator {
    /// The accumulator for gradients like this one.
    pub(super) fn of(gradient: &Gradient, variable: &Variable) -> Accumulator {
        let sparse = matches!(gradient, Gradient::Sparse(_));
        let dtype = gradient.values().dtype();
        let device = variable.device();
        let g = variable.graph();
        let (op, name, shape) = if sparse {
            // Which rows come is not known.
            let any = PartialShape::unknown();
            (
                "SparseConditionalAccumulator",
                "sparse_conditional_accumulator",
                any,
            )
        } else {
            let shape = PartialShape::new(variable.dims());
            (
                "ResourceConditionalAccumulator",
                "conditional_accumulator",
                shape,
            )
        };
        let near = on(g, &device);
        let shared_name = format!("{}:0/grad_accum", variable.name());
        let handle = g
            .op(op)
            .name(name)
            .attr("dtype", dtype)
            .attr("shape", shape)
            .attr("reduction_type", "MEAN")
            .attr("shared_name", shared_name.as_str())
            .output();
        let count = if sparse {
            "AccumulatorNumAccumulated"
        } else {
            "ResourceAccumulatorNumAccumulated"
        };
        let count = g.op(count).input(&handle).output();
        drop(near);
        Accumulator {
            variable: variable.name().to_owned(),
            count,
            handle,
            sparse,
            dtype,
            device,
        }
    }

    fn near<T>(&self, build: impl FnOnce() -> T) -> T {
        let _near = on(self.handle.graph(), &self.device);
        build()
    }

    /// Adds a gradient that was computed at `local_step`; dropped if the accumulator is further on.
    pub(super) fn apply(&self, gradient: &Gradient, local_step: &Variable) -> Operation {
        let g = self.handle.graph();
        self.near(|| match gradient {
            Gradient::Dense(gradient) => g
                .op("ResourceAccumulatorApplyGradient")
                .input(&self.handle)
                .input(local_step)
                .input(gradient)
                .build(),
            Gradient::Sparse(rows) => g
                .op("SparseAccumulatorApplyGradient")
                .input(&self.handle)
                .input(local_step)
                .input(rows.indices.cast(DType::I64))
                .input(&rows.values)
                .input(rows.dense_shape.cast(DType::I64))
                .attr("has_known_shape", true)
                .build(),
        })
    }

    /// The mean of all gradients, once there are `count`; the accumulator moves on to the next step.
    pub(super) fn take(&self, count: u32) -> Gradient {
        let g = self.handle.graph();
        self.near(|| {
            let count = g.constant(i32::try_from(count).unwrap_or(i32::MAX));
            let op = if self.sparse {
                "SparseAccumulatorTakeGradient"
            } else {
                "ResourceAccumulatorTakeGradient"
            };
            let node = g.op(op).input(&self.handle).input(count);
            let taken = node.attr("dtype", self.dtype).build();
            if self.sparse && !taken.is_void() {
                return Gradient::Sparse(IndexedSlices {
                    indices: taken.output(0),
                    values: taken.output(1),
                    dense_shape: taken.output(2),
                });
            }
            Gradient::Dense(taken.output(0))
        })
    }

    /// Sets the step that gradients must have reached.
    pub(super) fn set_global_step(&self, step: &Variable) -> Operation {
        let g = self.handle.graph();
        self.near(|| {
            let op = if self.sparse {
                "AccumulatorSetGlobalStep"
            } else {
                "ResourceAccumulatorSetGlobalStep"
            };
            let node = g.op(op).name("SetGlobalStep").input(&self.handle);
            node.input(step.read()).build()
        })
    }
}
