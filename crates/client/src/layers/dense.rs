//! Dense layers.

use tensorfleet_status::Result;

use crate::ops;
use crate::output::{Operand, Output};

use super::common::{Common, Weights, common_options, known_dim, weight_options};

/// A layer in which every unit sees every feature: `activation(x · kernel + bias)` along the last axis.
///
/// ```
/// use tensorfleet_client::{DType, Graph, Output, init, layers};
///
/// let g = Graph::new();
/// let x = g.placeholder(DType::F32, &[-1, 20]);
/// let y = layers::dense(&x, 5)
///     .activation(Output::relu)
///     .kernel_initializer(init::he_normal())
///     .name("fc")
///     .output();
/// assert_eq!(y.name(), "fc/Relu:0");
/// # g.check()?;
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
pub fn dense(input: impl Operand, units: i64) -> Dense {
    Dense {
        input: input.to_output(),
        units,
        common: Common::new(),
        weights: Weights::new(),
    }
}

/// [`dense`] in the making.
#[must_use = "nothing is added to the graph before `output`"]
pub struct Dense {
    input: Output,
    units: i64,
    common: Common,
    weights: Weights,
}

common_options!(Dense);
weight_options!(Dense);

impl Dense {
    /// Adds the layer.
    #[track_caller]
    pub fn output(self) -> Output {
        self.common.layer(&self.input, "dense", || self.add())
    }

    fn add(&self) -> Result<Output> {
        let Dense {
            input,
            units,
            common,
            weights,
        } = self;
        let features = known_dim("dense", input, -1)?;
        let kernel = common.weight("kernel", &[features, *units], &weights.kernel, input);
        let bias = weights
            .use_bias
            .then(|| weights.bias(common, *units, input));
        let mut output = times(input, features, &kernel.to_output(), *units);
        if let Some(bias) = bias {
            output = ops::bias_add(output, &bias).output();
        }
        Ok(weights.activate(output))
    }
}

/// The matrix product along the last axis of a tensor of any rank.
fn times(input: &Output, features: i64, kernel: &Output, units: i64) -> Output {
    let shape = input.shape();
    let dims = shape.dims().unwrap_or_default();
    if dims.len() <= 2 {
        return input.matmul(kernel);
    }
    let g = input.graph();
    let _scope = g.name_scope("Tensordot");
    let rows = input.reshape(&[-1, features]).matmul(kernel);
    let outer = dims.len() as i32 - 1;
    let outer_dims = input.shape_tensor().slice(&[0], &[outer]);
    let parts = [outer_dims, g.constant([units as i32])];
    let out_dims = ops::concat_v2(&parts, g.constant(0i32)).output();
    let output = ops::reshape(rows, out_dims).output();
    let known: Vec<i64> = dims
        .iter()
        .take(dims.len() - 1)
        .copied()
        .chain([units])
        .collect();
    output.set_shape(&known);
    output
}
