//! From a loss for each value to one loss: weights and reduction.

use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::DType;

use crate::collection::keys;
use crate::graph::Graph;
use crate::operators::number_like;
use crate::ops;
use crate::output::{Operand, Output};

/// How many losses become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reduction {
    /// They stay.
    None,
    /// Their sum.
    Sum,
    /// Their sum over the sum of weights.
    Mean,
    /// Their sum over the number of values.
    SumOverBatchSize,
    /// Their sum over the number of values whose weight is not zero. TensorFlow's default.
    #[default]
    SumByNonzeroWeights,
}

/// A loss in the making.
#[must_use = "nothing is added to the graph before `output`"]
pub struct Loss {
    graph: Graph,
    name: String,
    losses: Box<dyn FnOnce() -> Output>,
    weights: Option<Output>,
    reduction: Reduction,
    collection: Option<String>,
}

/// Weighs and reduces losses of one's own making.
pub fn compute_weighted_loss(losses: impl Operand) -> Loss {
    let losses = losses.to_output();
    Loss::new("weighted_loss", losses.graph().clone(), move || losses)
}

impl Loss {
    pub(super) fn new(name: &str, graph: Graph, losses: impl FnOnce() -> Output + 'static) -> Loss {
        Loss {
            graph,
            name: name.to_owned(),
            losses: Box::new(losses),
            weights: None,
            reduction: Reduction::default(),
            collection: Some(keys::LOSSES.to_owned()),
        }
    }

    /// A weight for each value; or one for all; or of the losses' rank, with 1 for axes along which it is the same.
    pub fn weights(mut self, weights: impl Operand) -> Self {
        self.weights = Some(weights.to_output());
        self
    }

    /// How many losses become one.
    pub fn reduction(mut self, reduction: Reduction) -> Self {
        self.reduction = reduction;
        self
    }

    /// The collection it is added to instead of the losses; none with `None`.
    pub fn collection(mut self, key: Option<&str>) -> Self {
        self.collection = key.map(str::to_owned);
        self
    }

    /// The name of its scope.
    pub fn name(mut self, name: &str) -> Self {
        self.name = name.to_owned();
        self
    }

    /// Adds the loss.
    #[track_caller]
    pub fn output(self) -> Output {
        let g = self.graph;
        let _scope = g.name_scope(&self.name);
        let losses = (self.losses)();
        if losses.is_void() {
            return losses;
        }
        if let Some(Err(status)) = self.weights.as_ref().map(|w| check_weights(w, &losses)) {
            return g.fail(status);
        }
        let loss = reduce(&losses, self.weights.as_ref(), self.reduction);
        if let Some(key) = &self.collection {
            g.add_to_collection(key, &loss);
        }
        loss
    }
}

/// Weights may be a scalar, or of the same rank with the same axes or axes of size 1.
fn check_weights(weights: &Output, losses: &Output) -> Result<()> {
    let (given, wanted) = (weights.shape(), losses.shape());
    let (Some(given), Some(wanted)) = (given.dims(), wanted.dims()) else {
        return Ok(());
    };
    let fits =
        |(given, wanted): (&i64, &i64)| *given == 1 || given == wanted || *given < 0 || *wanted < 0;
    let agrees =
        given.is_empty() || (given.len() == wanted.len() && given.iter().zip(wanted).all(fits));
    if agrees {
        return Ok(());
    }
    Err(invalid_argument!(
        "weights of shape {} cannot be broadcast to losses of shape {}",
        weights.shape(),
        losses.shape()
    ))
}

fn reduce(losses: &Output, weights: Option<&Output>, reduction: Reduction) -> Output {
    let dtype = losses.dtype();
    let losses = losses.cast(DType::F32);
    let weights = weights.map(|weights| weights.cast(DType::F32));
    let weighted = match &weights {
        Some(weights) => &losses * weights,
        None => losses.clone(),
    };
    if reduction == Reduction::None {
        return weighted.cast(dtype);
    }
    let sum = weighted.sum(&[]);
    let count = match (reduction, &weights) {
        (Reduction::None | Reduction::Sum, _) => None,
        (Reduction::Mean, Some(weights)) => Some((losses.ones_like() * weights).sum(&[])),
        (Reduction::SumByNonzeroWeights, Some(weights)) => Some(present(&losses, weights)),
        _ => Some(losses.size().cast(DType::F32)),
    };
    let loss = match count {
        Some(count) => ops::div_no_nan(sum, count).name("value").output(),
        None => sum,
    };
    loss.cast(dtype)
}

/// How many losses have a weight that is not zero.
fn present(losses: &Output, weights: &Output) -> Output {
    let g = losses.graph();
    let _scope = g.name_scope("num_present");
    let zero = number_like(weights, 0.0);
    let counts = weights.not_equal(zero).cast(DType::F32);
    (counts * losses.ones_like()).sum(&[])
}
