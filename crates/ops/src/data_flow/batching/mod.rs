//! Batching: tensors of steps that run at the same time are put together, worked on as one, and handed back.
//!
//! ```text
//! Batch ─► one step gets all rows and an index of whose they are, the others get none ─► … ─► Unbatch: each gets its own
//! BatchFunction ─► a function is called with all rows, each step gets its rows of the results
//! ```
//!
//! A batch is ready when it is full or when its first rows have waited for as long as they may. Nobody holds a thread
//! meanwhile: who waits is in a [`batcher`] or a table, and the step's clock calls back.

pub(crate) mod batch;
mod batcher;
pub(crate) mod function;
mod options;
mod task;
pub(crate) mod unbatch;
pub(crate) mod unbatch_grad;
mod work;

use tensorfleet_kernel::AsyncCtx;
use tensorfleet_math::par::Par;
use tensorfleet_status::{Result, ensure, internal};
use tensorfleet_tensor::Tensor;

use crate::array::moves;

/// The tensors in inputs `from..to`, copies of the handles.
fn tensors(ctx: &mut AsyncCtx, from: usize, to: usize) -> Result<Vec<Tensor>> {
    ctx.view(|view| (from..to).map(|input| view.input(input).cloned()).collect())
}

/// All rows of all parts, one behind the other, in TensorFlow's words where they do not fit.
fn join(par: &dyn Par, parts: &[&Tensor]) -> Result<Tensor> {
    let Some(first) = parts.first() else {
        return Err(internal!("there is nothing to put together"));
    };
    let mut rows = 0i64;
    for (place, part) in parts.iter().enumerate() {
        ensure!(
            part.rank() == first.rank() && part.rank() > 0,
            invalid_argument,
            "Ranks of all input tensors should match: shape[0] = {} vs. shape[{place}] = {}",
            first.shape(),
            part.shape()
        );
        ensure!(
            part.shape().dims().get(1..) == first.shape().dims().get(1..),
            invalid_argument,
            "Dimensions of inputs should match: shape[0] = {} vs. shape[{place}] = {}",
            first.shape(),
            part.shape()
        );
        ensure!(
            part.dtype() == first.dtype(),
            invalid_argument,
            "tensors of {} and {} meet in one batch",
            first.dtype(),
            part.dtype()
        );
        rows = rows.saturating_add(part.shape().dim(0) as i64);
    }
    if let [only] = parts {
        return Ok((*only).clone());
    }
    let shape = first.shape().with_dim(0, rows)?;
    let filled: Vec<(&Tensor, usize)> = parts
        .iter()
        .filter(|part| !part.is_empty())
        .map(|part| (*part, part.elements()))
        .collect();
    if filled.is_empty() {
        return Tensor::new(first.dtype(), shape);
    }
    moves::concat(par, first.dtype(), &filled, shape)
}
