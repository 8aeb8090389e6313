//! Layers as small functions: a dense layer is `dense(&x, units)`, its options are methods, `output()`
//! ends it.
//!
//! Variables are found by name in a variable scope of the layer's name (`dense`, `dense_1`, … unless it is
//! given one), so that a model that is built again in a scope that reuses has the same weights:
//!
//! ```
//! use tensorfleet_client::{DType, Graph, Output, Reuse, layers};
//!
//! fn model(x: &Output) -> Output {
//!     let hidden = layers::dense(x, 64).activation(Output::relu).output();
//!     layers::dense(&hidden, 10).output()
//! }
//!
//! let g = Graph::new();
//! let x = g.placeholder(DType::F32, &[-1, 784]);
//! let train = g.variable_scope("model", Reuse::Never).run(|| model(&x));
//! let eval = g.variable_scope("model", Reuse::Always).run(|| model(&x));
//! assert_eq!(eval.shape().dims(), Some(&[-1, 10][..]));
//! let names: Vec<String> = g.trainable_variables().iter().map(|v| v.name().to_owned()).collect();
//! assert_eq!(names, ["model/dense/kernel", "model/dense/bias", "model/dense_1/kernel", "model/dense_1/bias"]);
//! # g.check()?;
//! # Ok::<(), tensorfleet_client::Status>(())
//! ```

mod common;
mod conv;
mod dense;
mod dropout;
mod embedding;
mod flatten;
mod norm;
mod pool;
mod training;

pub use common::Activation;
pub use conv::{Conv2D, Padding, conv2d};
pub use dense::{Dense, dense};
pub use dropout::{Dropout, dropout};
pub use embedding::{Embedding, embedding};
pub use flatten::flatten;
pub use norm::{BatchNorm, batch_norm};
pub use pool::{Pool2D, average_pooling2d, max_pooling2d};
pub use training::Training;
