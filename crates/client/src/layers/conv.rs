//! Convolutions.

use tensorfleet_status::Result;

use crate::ops;
use crate::output::{Operand, Output};

use super::common::{Common, Weights, common_options, known_dim, weight_options};

/// What happens at the edges of an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Padding {
    /// Windows that lie in the image alone: the output is smaller.
    Valid,
    /// Zeros around the image: with strides of 1 the output has the same size.
    Same,
}

impl Padding {
    pub(super) fn attr(self) -> &'static str {
        match self {
            Padding::Valid => "VALID",
            Padding::Same => "SAME",
        }
    }
}

/// A convolution of images `[batch, height, width, channels]` with `filters` kernels of this size.
///
/// ```
/// use tensorfleet_client::{DType, Graph, Output, layers, layers::Padding};
///
/// let g = Graph::new();
/// let images = g.placeholder(DType::F32, &[-1, 28, 28, 1]);
/// let y = layers::conv2d(&images, 32, [5, 5]).padding(Padding::Same).activation(Output::relu).output();
/// assert_eq!(y.shape().dims(), Some(&[-1, 28, 28, 32][..]));
/// # g.check()?;
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
pub fn conv2d(input: impl Operand, filters: i64, kernel_size: [i64; 2]) -> Conv2D {
    Conv2D {
        input: input.to_output(),
        filters,
        kernel_size,
        strides: [1, 1],
        dilations: [1, 1],
        padding: Padding::Valid,
        common: Common::new(),
        weights: Weights::new(),
    }
}

/// [`conv2d`] in the making.
#[must_use = "nothing is added to the graph before `output`"]
pub struct Conv2D {
    input: Output,
    filters: i64,
    kernel_size: [i64; 2],
    strides: [i64; 2],
    dilations: [i64; 2],
    padding: Padding,
    common: Common,
    weights: Weights,
}

common_options!(Conv2D);
weight_options!(Conv2D);

impl Conv2D {
    /// How far the window moves; 1 by default.
    pub fn strides(mut self, strides: [i64; 2]) -> Self {
        self.strides = strides;
        self
    }

    /// How far the kernel's points are apart; 1 by default.
    pub fn dilations(mut self, dilations: [i64; 2]) -> Self {
        self.dilations = dilations;
        self
    }

    /// What happens at the edges; `Valid` by default.
    pub fn padding(mut self, padding: Padding) -> Self {
        self.padding = padding;
        self
    }

    /// Adds the layer.
    #[track_caller]
    pub fn output(self) -> Output {
        self.common.layer(&self.input, "conv2d", || self.add())
    }

    fn add(&self) -> Result<Output> {
        let (common, weights) = (&self.common, &self.weights);
        let channels = known_dim("conv2d", &self.input, 3)?;
        let [height, width] = self.kernel_size;
        let dims = [height, width, channels, self.filters];
        let kernel = common.weight("kernel", &dims, &weights.kernel, &self.input);
        let bias = weights
            .use_bias
            .then(|| weights.bias(common, self.filters, &self.input));
        let [down, right] = self.strides;
        let [apart_down, apart_right] = self.dilations;
        let mut output = ops::conv2d(
            &self.input,
            &kernel,
            &[1, down, right, 1],
            self.padding.attr(),
        )
        .dilations(&[1, apart_down, apart_right, 1])
        .output();
        if let Some(bias) = bias {
            output = ops::bias_add(output, &bias).output();
        }
        Ok(weights.activate(output))
    }
}
