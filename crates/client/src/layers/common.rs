//! What layers with weights have in common: scope, weights, activation.

use std::sync::Arc;

use tensorfleet_status::{Result, invalid_argument};

use crate::graph::Graph;
use crate::init::Initializer;
use crate::output::Output;
use crate::regularizers::Regularizer;
use crate::scope::Scope;
use crate::variable::Variable;
use crate::variable_scope::Reuse;

/// What follows a layer: `Output::relu`, `Output::tanh`, or any function of a tensor.
pub type Activation = fn(&Output) -> Output;

/// Name, reuse, and whether optimizers change the weights.
pub(super) struct Common {
    pub(super) name: Option<String>,
    pub(super) reuse: Reuse,
    pub(super) trainable: bool,
}

/// Kernel, bias and activation, of layers that have them.
pub(super) struct Weights {
    pub(super) activation: Option<Activation>,
    pub(super) use_bias: bool,
    pub(super) kernel: Weight,
    pub(super) bias: Weight,
}

/// How a weight is made.
#[derive(Clone, Default)]
pub(super) struct Weight {
    pub(super) initializer: Option<Arc<dyn Initializer>>,
    pub(super) regularizer: Option<Arc<dyn Regularizer>>,
}

impl Common {
    pub(super) fn new() -> Common {
        Common {
            name: None,
            reuse: Reuse::Never,
            trainable: true,
        }
    }

    /// The layer's variable scope: of its own name, or of the first free one like `default`.
    fn open(&self, g: &Graph, default: &str) -> Scope {
        match &self.name {
            Some(name) => g.variable_scope(name, self.reuse),
            None => g.unique_variable_scope(default),
        }
    }

    /// Adds a layer in its variable scope: what `add` gives, a void tensor for a void input or a mistake.
    #[track_caller]
    pub(super) fn layer(
        &self,
        input: &Output,
        default: &str,
        add: impl FnOnce() -> Result<Output>,
    ) -> Output {
        if input.is_void() {
            return input.clone();
        }
        let g = input.graph();
        let _scope = self.open(g, default);
        match add() {
            Ok(output) => output,
            Err(status) => g.fail(status),
        }
    }

    /// A weight with the dtype of `like`.
    pub(super) fn weight(
        &self,
        name: &str,
        dims: &[i64],
        weight: &Weight,
        like: &Output,
    ) -> Variable {
        let mut builder = like.graph().get_variable(name, dims);
        builder = builder.dtype(like.dtype()).trainable(self.trainable);
        if let Some(initializer) = &weight.initializer {
            builder = builder.initializer(initializer.clone());
        }
        if let Some(regularizer) = &weight.regularizer {
            builder = builder.regularizer(regularizer.clone());
        }
        builder.build()
    }
}

impl Weights {
    pub(super) fn new() -> Weights {
        Weights {
            activation: None,
            use_bias: true,
            kernel: Weight::default(),
            bias: Weight::default(),
        }
    }

    /// A bias, zero unless told otherwise.
    pub(super) fn bias(&self, common: &Common, units: i64, like: &Output) -> Variable {
        let mut bias = self.bias.clone();
        bias.initializer
            .get_or_insert_with(|| Arc::new(crate::init::zeros()));
        common.weight("bias", &[units], &bias, like)
    }

    pub(super) fn activate(&self, output: Output) -> Output {
        match self.activation {
            Some(activation) => activation(&output),
            None => output,
        }
    }
}

/// The size of an axis that must be known; negative ones count from the end.
pub(super) fn known_dim(layer: &str, input: &Output, axis: i64) -> Result<i64> {
    let shape = input.shape();
    let dims = shape.dims().unwrap_or_default();
    let index = if axis < 0 {
        axis + dims.len() as i64
    } else {
        axis
    };
    let dim = usize::try_from(index)
        .ok()
        .and_then(|index| dims.get(index));
    match dim {
        Some(dim) if *dim >= 0 => Ok(*dim),
        _ => Err(invalid_argument!(
            "{layer}: axis {axis} of the input '{}' must be known, its shape is {shape}",
            input.name()
        )),
    }
}

/// The options in [`Common`], which is the layer's field `common`.
macro_rules! common_options {
    ($layer:ident) => {
        impl $layer {
            /// The name of its variable scope; by default the kind of layer with a number that is free.
            pub fn name(mut self, name: &str) -> Self {
                self.common.name = Some(name.to_owned());
                self
            }

            /// Whether a layer of this name is used again.
            pub fn reuse(mut self, reuse: crate::Reuse) -> Self {
                self.common.reuse = reuse;
                self
            }

            /// Whether optimizers change the weights; they do by default.
            pub fn trainable(mut self, trainable: bool) -> Self {
                self.common.trainable = trainable;
                self
            }
        }
    };
}
pub(super) use common_options;

/// The options in [`Weights`], which are the layer's field `weights`.
macro_rules! weight_options {
    ($layer:ident) => {
        impl $layer {
            /// What follows: nothing by default.
            pub fn activation(mut self, activation: crate::layers::Activation) -> Self {
                self.weights.activation = Some(activation);
                self
            }

            /// Whether a bias is added; it is by default.
            pub fn use_bias(mut self, use_bias: bool) -> Self {
                self.weights.use_bias = use_bias;
                self
            }

            /// The initial kernel; Glorot's uniform one by default.
            pub fn kernel_initializer(
                mut self,
                initializer: impl crate::init::Initializer + 'static,
            ) -> Self {
                self.weights.kernel.initializer = Some(std::sync::Arc::new(initializer));
                self
            }

            /// The initial bias; zero by default.
            pub fn bias_initializer(
                mut self,
                initializer: impl crate::init::Initializer + 'static,
            ) -> Self {
                self.weights.bias.initializer = Some(std::sync::Arc::new(initializer));
                self
            }

            /// A penalty on the kernel.
            pub fn kernel_regularizer(
                mut self,
                regularizer: impl crate::regularizers::Regularizer + 'static,
            ) -> Self {
                self.weights.kernel.regularizer = Some(std::sync::Arc::new(regularizer));
                self
            }

            /// A penalty on the bias.
            pub fn bias_regularizer(
                mut self,
                regularizer: impl crate::regularizers::Regularizer + 'static,
            ) -> Self {
                self.weights.bias.regularizer = Some(std::sync::Arc::new(regularizer));
                self
            }
        }
    };
}
pub(super) use weight_options;
