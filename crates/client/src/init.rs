//! Initial values of variables.
//!
//! ```
//! use tensorfleet_client::{Graph, Session, init};
//!
//! let g = Graph::new();
//! g.set_random_seed(42);
//! let w = g.variable("w", &[784, 10]).initializer(init::glorot_uniform()).build();
//! let session = Session::new(&g)?;
//! session.run(w.initializer())?;
//! let limit = (6.0f32 / 794.0).sqrt();
//! assert!(session.run(&w)?.slice::<f32>()?.iter().all(|value| value.abs() <= limit));
//! # Ok::<(), tensorfleet_client::Status>(())
//! ```

use std::sync::Arc;

use tensorfleet_tensor::{DType, Shape, Tensor};

use crate::graph::Graph;
use crate::operators::number;
use crate::ops;
use crate::output::Output;

/// What an initial value is made for.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The shape wanted.
    pub dims: &'a [i64],
    /// The shape of the whole variable of which this is a part; the same if it is not partitioned.
    pub whole: &'a [i64],
    /// Where the part begins in the whole; empty if it is not partitioned.
    pub offset: &'a [i64],
    /// The dtype.
    pub dtype: DType,
}

/// Makes a variable's initial value as part of the graph.
pub trait Initializer: Send + Sync {
    /// The initial value.
    fn initial_value(&self, g: &Graph, request: Request<'_>) -> Output;
}

impl<F: Fn(&Graph, Request<'_>) -> Output + Send + Sync> Initializer for F {
    fn initial_value(&self, g: &Graph, request: Request<'_>) -> Output {
        self(g, request)
    }
}

impl Initializer for Arc<dyn Initializer> {
    fn initial_value(&self, g: &Graph, request: Request<'_>) -> Output {
        (**self).initial_value(g, request)
    }
}

/// All zero.
pub fn zeros() -> impl Initializer + Clone {
    constant(0.0)
}

/// All one.
pub fn ones() -> impl Initializer + Clone {
    constant(1.0)
}

/// All the same.
pub fn constant(value: f64) -> impl Initializer + Clone {
    move |g: &Graph, request: Request<'_>| {
        let value = match number(request.dtype, value) {
            Ok(value) => g.named_constant("value", value),
            Err(status) => g.fail(status),
        };
        let dims = shape_constant(g, request.dims);
        g.op("Fill").name("fill").input(dims).input(value).output()
    }
}

/// This very tensor, which must have the variable's shape. Parts of a partitioned variable get theirs.
pub fn tensor(value: Tensor) -> impl Initializer + Clone {
    move |g: &Graph, request: Request<'_>| {
        let value = g.constant(&value);
        if request.offset.is_empty() {
            return value;
        }
        let (begin, size) = (g.constant(request.offset), g.constant(request.dims));
        ops::slice(value, begin, size).output()
    }
}

/// Evenly between two bounds.
pub fn uniform(low: f64, high: f64) -> Random {
    Random::new(Law::Uniform { low, high })
}

/// Normally distributed.
pub fn normal(mean: f64, stddev: f64) -> Random {
    Random::new(Law::Normal { mean, stddev })
}

/// Normally distributed, with nothing further than two standard deviations from the mean.
pub fn truncated_normal(mean: f64, stddev: f64) -> Random {
    Random::new(Law::TruncatedNormal { mean, stddev })
}

/// Uniform, with variance 2 / (inputs + outputs): Glorot's, the default of most layers.
pub fn glorot_uniform() -> Random {
    Random::new(Law::Scaled {
        scale: 1.0,
        fan: Fan::Average,
        normal: false,
    })
}

/// Truncated normal, with variance 2 / (inputs + outputs).
pub fn glorot_normal() -> Random {
    Random::new(Law::Scaled {
        scale: 1.0,
        fan: Fan::Average,
        normal: true,
    })
}

/// Uniform, with variance 2 / inputs: He's, for relu.
pub fn he_uniform() -> Random {
    Random::new(Law::Scaled {
        scale: 2.0,
        fan: Fan::In,
        normal: false,
    })
}

/// Truncated normal, with variance 2 / inputs.
pub fn he_normal() -> Random {
    Random::new(Law::Scaled {
        scale: 2.0,
        fan: Fan::In,
        normal: true,
    })
}

/// Rows or columns (whichever are fewer) at right angles to each other, times `gain`.
pub fn orthogonal(gain: f64) -> Random {
    Random::new(Law::Orthogonal { gain })
}

/// A random initial value.
#[derive(Clone, Copy, Debug)]
pub struct Random {
    law: Law,
    seed: Option<i64>,
}

#[derive(Clone, Copy, Debug)]
enum Law {
    Uniform { low: f64, high: f64 },
    Normal { mean: f64, stddev: f64 },
    TruncatedNormal { mean: f64, stddev: f64 },
    Scaled { scale: f64, fan: Fan, normal: bool },
    Orthogonal { gain: f64 },
}

#[derive(Clone, Copy, Debug)]
enum Fan {
    In,
    Average,
}

impl Random {
    fn new(law: Law) -> Random {
        Random { law, seed: None }
    }

    /// A seed of its own, beside the graph's.
    #[must_use]
    pub fn seed(mut self, seed: i64) -> Random {
        self.seed = Some(seed);
        self
    }

    fn draw(&self, g: &Graph, op: &str, dims: &[i64], dtype: DType) -> Output {
        let (seed, seed2) = g.next_seeds(self.seed);
        let shape = shape_constant(g, dims);
        g.op(op)
            .input(shape)
            .attr("dtype", dtype)
            .attr("seed", seed)
            .attr("seed2", seed2)
            .output()
    }
}

impl Initializer for Random {
    fn initial_value(&self, g: &Graph, request: Request<'_>) -> Output {
        let Request {
            dims, whole, dtype, ..
        } = request;
        match self.law {
            Law::Uniform { low, high } => {
                self.draw(g, "RandomUniform", dims, dtype) * (high - low) + low
            }
            Law::Normal { mean, stddev } => {
                self.draw(g, "RandomStandardNormal", dims, dtype) * stddev + mean
            }
            Law::TruncatedNormal { mean, stddev } => {
                self.draw(g, "TruncatedNormal", dims, dtype) * stddev + mean
            }
            Law::Scaled { scale, fan, normal } => {
                let (fan_in, fan_out) = fans(whole);
                let fan = match fan {
                    Fan::In => fan_in,
                    Fan::Average => (fan_in + fan_out) / 2.0,
                };
                let variance = scale / fan.max(1.0);
                if normal {
                    // What is cut off makes the rest narrower; this restores the variance.
                    const NARROWED: f64 = 0.879_625_661_034_239_8;
                    let stddev = variance.sqrt() / NARROWED;
                    self.draw(g, "TruncatedNormal", dims, dtype) * stddev
                } else {
                    let limit = (3.0 * variance).sqrt();
                    self.draw(g, "RandomUniform", dims, dtype) * (2.0 * limit) - limit
                }
            }
            Law::Orthogonal { gain } => self.orthogonal(g, dims, dtype, gain),
        }
    }
}

impl Random {
    fn orthogonal(&self, g: &Graph, dims: &[i64], dtype: DType, gain: f64) -> Output {
        let Some((columns, rows)) = dims.split_last().filter(|(_, rows)| !rows.is_empty()) else {
            return g.fail(tensorfleet_status::invalid_argument!(
                "an orthogonal initial value needs two dimensions or more, not {dims:?}"
            ));
        };
        let (rows, columns) = (rows.iter().product::<i64>(), *columns);
        let tall = [rows.max(columns), rows.min(columns)];
        let drawn = self.draw(g, "RandomStandardNormal", &tall, dtype);
        // The orthogonal factor of the polar decomposition: as evenly distributed as the draws.
        let svd = g.op("Svd").input(drawn).build();
        let mut q = svd.output(1).matmul_with(svd.output(2), false, true);
        if rows < columns {
            q = q.transpose(&[1, 0]);
        }
        q.reshape(dims) * gain
    }
}

/// Inputs and outputs of a layer with weights of this shape: the last two axes, times the window of a
/// convolution.
fn fans(dims: &[i64]) -> (f64, f64) {
    let at = |dim: &i64| *dim as f64;
    match dims {
        [] => (1.0, 1.0),
        [only] => (at(only), at(only)),
        [window @ .., inputs, outputs] => {
            let window: f64 = window.iter().map(at).product();
            (at(inputs) * window, at(outputs) * window)
        }
    }
}

fn shape_constant(g: &Graph, dims: &[i64]) -> Output {
    match Shape::new(dims) {
        Ok(_) => {
            let small: Result<Vec<i32>, _> = dims.iter().map(|dim| i32::try_from(*dim)).collect();
            match small {
                Ok(dims) => g.named_constant("shape", dims),
                Err(_) => g.named_constant("shape", dims),
            }
        }
        Err(status) => g.fail(status),
    }
}
