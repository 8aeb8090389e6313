//! Pooling.

use crate::ops;
use crate::output::{Operand, Output};

use super::conv::Padding;

/// The largest value of each window of images `[batch, height, width, channels]`.
///
/// ```
/// use tensorfleet_client::{DType, Graph, layers};
///
/// let g = Graph::new();
/// let images = g.placeholder(DType::F32, &[-1, 28, 28, 8]);
/// let y = layers::max_pooling2d(&images, [2, 2]).output();
/// assert_eq!(y.shape().dims(), Some(&[-1, 14, 14, 8][..]));
/// # g.check()?;
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
pub fn max_pooling2d(input: impl Operand, pool_size: [i64; 2]) -> Pool2D {
    Pool2D::new(Kind::Max, input, pool_size)
}

/// The mean of each window of images `[batch, height, width, channels]`.
pub fn average_pooling2d(input: impl Operand, pool_size: [i64; 2]) -> Pool2D {
    Pool2D::new(Kind::Average, input, pool_size)
}

enum Kind {
    Max,
    Average,
}

/// [`max_pooling2d`] or [`average_pooling2d`] in the making.
#[must_use = "nothing is added to the graph before `output`"]
pub struct Pool2D {
    kind: Kind,
    input: Output,
    pool_size: [i64; 2],
    strides: [i64; 2],
    padding: Padding,
    name: Option<String>,
}

impl Pool2D {
    fn new(kind: Kind, input: impl Operand, pool_size: [i64; 2]) -> Pool2D {
        Pool2D {
            kind,
            input: input.to_output(),
            pool_size,
            strides: pool_size,
            padding: Padding::Valid,
            name: None,
        }
    }

    /// How far the window moves; by its own size by default.
    pub fn strides(mut self, strides: [i64; 2]) -> Self {
        self.strides = strides;
        self
    }

    /// What happens at the edges; `Valid` by default.
    pub fn padding(mut self, padding: Padding) -> Self {
        self.padding = padding;
        self
    }

    /// The name of its scope.
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Adds the layer.
    #[track_caller]
    pub fn output(self) -> Output {
        let window = [1, self.pool_size[0], self.pool_size[1], 1];
        let strides = [1, self.strides[0], self.strides[1], 1];
        let padding = self.padding.attr();
        let default = match self.kind {
            Kind::Max => "max_pooling2d",
            Kind::Average => "average_pooling2d",
        };
        let g = self.input.graph().clone();
        let _scope = g.name_scope(self.name.as_deref().unwrap_or(default));
        match self.kind {
            Kind::Max => ops::max_pool(&self.input, &window, &strides, padding).output(),
            Kind::Average => ops::avg_pool(&self.input, &window, &strides, padding).output(),
        }
    }
}
