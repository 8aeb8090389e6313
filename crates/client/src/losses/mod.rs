//! Losses: scalars to minimise, collected in [`keys::LOSSES`].
//!
//! ```
//! use tensorfleet_client::{Graph, Session, losses};
//!
//! let g = Graph::new();
//! let labels = g.constant([1.0f32, 2.0, 3.0]);
//! let predictions = g.constant([1.0f32, 4.0, 3.0]);
//! let loss = losses::mean_squared_error(&labels, &predictions).output();
//! let weighted = losses::mean_squared_error(&labels, &predictions)
//!     .weights(&g.constant([1.0f32, 0.5, 0.0]))
//!     .output();
//! let (loss, weighted) = Session::new(&g)?.run((&loss, &weighted))?;
//! assert_eq!(loss.to_scalar::<f32>()?, 4.0 / 3.0);
//! assert_eq!(weighted.to_scalar::<f32>()?, 1.0); // 2 over the two whose weight is not zero
//! # Ok::<(), tensorfleet_client::Status>(())
//! ```
//!
//! [`keys::LOSSES`]: crate::keys::LOSSES

mod weighted;

use crate::collection::keys;
use crate::graph::Graph;
use crate::operators::number_like;
use crate::ops;
use crate::output::{Operand, Output};

pub use weighted::{Loss, Reduction, compute_weighted_loss};

use tensorfleet_tensor::DType;

/// Both as float, which TensorFlow computes these losses in.
fn floats(labels: impl Operand, predictions: impl Operand) -> (Output, Output) {
    let (labels, predictions) = (labels.to_output(), predictions.to_output());
    (labels.cast(DType::F32), predictions.cast(DType::F32))
}

/// `(p - y)²`.
#[track_caller]
pub fn mean_squared_error(labels: impl Operand, predictions: impl Operand) -> Loss {
    let (labels, predictions) = (labels.to_output(), predictions.to_output());
    Loss::new(
        "mean_squared_error",
        predictions.graph().clone(),
        move || {
            let (labels, predictions) = floats(labels, predictions);
            predictions.squared_difference(labels)
        },
    )
}

/// `|p - y|`.
#[track_caller]
pub fn absolute_difference(labels: impl Operand, predictions: impl Operand) -> Loss {
    let (labels, predictions) = (labels.to_output(), predictions.to_output());
    Loss::new(
        "absolute_difference",
        predictions.graph().clone(),
        move || {
            let (labels, predictions) = floats(labels, predictions);
            (predictions - labels).abs()
        },
    )
}

/// `½ d²` for `d = |p - y|` up to `delta`, and `delta · (d - ½ delta)` beyond; TensorFlow's default is 1.
#[track_caller]
pub fn huber_loss(labels: impl Operand, predictions: impl Operand, delta: f64) -> Loss {
    let (labels, predictions) = (labels.to_output(), predictions.to_output());
    Loss::new("huber_loss", predictions.graph().clone(), move || {
        let (labels, predictions) = floats(labels, predictions);
        let distance = (predictions - labels).abs();
        let near = distance.minimum(number_like(&distance, delta));
        let far = &distance - &near;
        near.square() * 0.5 + far * delta
    })
}

/// `-y · log(p) - (1 - y) · log(1 - p)` for probabilities, kept from infinity by 1e-7.
#[track_caller]
pub fn log_loss(labels: impl Operand, predictions: impl Operand) -> Loss {
    const EPSILON: f64 = 1e-7;
    let (labels, predictions) = (labels.to_output(), predictions.to_output());
    Loss::new("log_loss", predictions.graph().clone(), move || {
        let (labels, predictions) = floats(labels, predictions);
        let positive = &labels * (&predictions + EPSILON).log();
        let negative = (1.0 - labels) * (1.0 - predictions + EPSILON).log();
        -positive - negative
    })
}

/// `max(0, 1 - s · logits)` with `s` -1 for labels 0 and 1 for labels 1.
#[track_caller]
pub fn hinge_loss(labels: impl Operand, logits: impl Operand) -> Loss {
    let (labels, logits) = (labels.to_output(), logits.to_output());
    Loss::new("hinge_loss", logits.graph().clone(), move || {
        let (labels, logits) = floats(labels, logits);
        (1.0 - (labels * 2.0 - 1.0) * logits).relu()
    })
}

/// The cross entropy of independent yes-or-no labels with the sigmoids of the logits.
#[track_caller]
pub fn sigmoid_cross_entropy(labels: impl Operand, logits: impl Operand) -> Loss {
    let (labels, logits) = (labels.to_output(), logits.to_output());
    Loss::new(
        "sigmoid_cross_entropy_loss",
        logits.graph().clone(),
        move || sigmoid_cross_entropy_with_logits(labels.cast(logits.dtype()), &logits),
    )
}

/// `max(x, 0) - x · y + log(1 + e⁻|x|)`: the cross entropy of each label with the sigmoid of its logit.
#[track_caller]
pub fn sigmoid_cross_entropy_with_logits(labels: impl Operand, logits: impl Operand) -> Output {
    let (labels, logits) = (labels.to_output(), logits.to_output());
    let _scope = logits.graph().name_scope("logistic_loss");
    // By selection, not by maximum and absolute value: the gradient at zero is TensorFlow's.
    let positive = logits.greater_equal(logits.zeros_like());
    let relu = ops::select_v2(&positive, &logits, logits.zeros_like()).output();
    let negated = ops::select_v2(&positive, -&logits, &logits).output();
    let rest = ops::log1p(negated.exp()).output();
    relu - &logits * labels + rest
}

/// The cross entropy of class probabilities along the last axis with the softmax of the logits. No gradient
/// flows to the labels.
#[track_caller]
pub fn softmax_cross_entropy(onehot_labels: impl Operand, logits: impl Operand) -> Loss {
    let (labels, logits) = (onehot_labels.to_output(), logits.to_output());
    Loss::new(
        "softmax_cross_entropy_loss",
        logits.graph().clone(),
        move || {
            softmax_cross_entropy_with_logits(labels.cast(logits.dtype()).stop_gradient(), &logits)
        },
    )
}

/// The cross entropy along the last axis of tensors of any rank.
#[track_caller]
pub fn softmax_cross_entropy_with_logits(labels: impl Operand, logits: impl Operand) -> Output {
    let (labels, logits) = (labels.to_output(), logits.to_output());
    if logits.shape().rank() == Some(2) {
        let both = ops::softmax_cross_entropy_with_logits(&logits, &labels);
        return both.name("xentropy").outputs().loss;
    }
    let both = ops::softmax_cross_entropy_with_logits(as_rows(&logits), as_rows(&labels));
    without_classes(both.name("xentropy").outputs().loss, &logits)
}

/// The cross entropy of class numbers with the softmax of the logits along the last axis.
#[track_caller]
pub fn sparse_softmax_cross_entropy(labels: impl Operand, logits: impl Operand) -> Loss {
    let (labels, logits) = (labels.to_output(), logits.to_output());
    Loss::new(
        "sparse_softmax_cross_entropy_loss",
        logits.graph().clone(),
        move || {
            let ranks = (labels.shape().rank(), logits.shape().rank());
            let labels = match ranks {
                (Some(rank), Some(logits)) if rank == logits => labels.squeeze(&[-1]),
                _ => labels,
            };
            sparse_softmax_cross_entropy_with_logits(labels, &logits)
        },
    )
}

/// The cross entropy of class numbers with logits of one rank more.
#[track_caller]
pub fn sparse_softmax_cross_entropy_with_logits(
    labels: impl Operand,
    logits: impl Operand,
) -> Output {
    let (labels, logits) = (labels.to_output(), logits.to_output());
    if logits.shape().rank() == Some(2) {
        let both = ops::sparse_softmax_cross_entropy_with_logits(&logits, &labels);
        return both.name("xentropy").outputs().loss;
    }
    let labels = labels.reshape(&[-1]);
    let both = ops::sparse_softmax_cross_entropy_with_logits(as_rows(&logits), labels);
    without_classes(both.name("xentropy").outputs().loss, &logits)
}

/// Logits or labels as a matrix with a row for each example.
fn as_rows(tensor: &Output) -> Output {
    let g = tensor.graph();
    let last = tensor.shape().rank().unwrap_or(1) as i32 - 1;
    let classes = tensor.shape_tensor().slice(&[last], &[1]);
    let dims = ops::concat_v2(&[g.constant([-1i32]), classes], g.constant(0i32)).output();
    ops::reshape(tensor, dims).output()
}

/// A loss per row in the shape of the logits without their last axis.
fn without_classes(losses: Output, logits: &Output) -> Output {
    let shape = logits.shape();
    let Some([outer @ .., _]) = shape.dims() else {
        return losses;
    };
    let dims = logits.shape_tensor().slice(&[0], &[outer.len() as i32]);
    let losses = ops::reshape(losses, dims).output();
    losses.set_shape(outer);
    losses
}

/// Probabilities of classes `smoothing` nearer to even: `y · (1 - s) + s / classes`.
#[track_caller]
pub fn smooth_onehot(labels: impl Operand, smoothing: f64) -> Output {
    let labels = labels.to_output();
    let rank = labels.shape().rank().unwrap_or(1) as i32;
    let classes = labels.shape_tensor().slice(&[rank - 1], &[1]).squeeze(&[0]);
    let classes = classes.cast(labels.dtype());
    let even = number_like(&labels, smoothing) / classes;
    labels * (1.0 - smoothing) + even
}

/// Yes-or-no labels `smoothing` nearer to a half: `y · (1 - s) + ½ s`.
#[track_caller]
pub fn smooth_binary(labels: impl Operand, smoothing: f64) -> Output {
    labels.to_output() * (1.0 - smoothing) + 0.5 * smoothing
}

/// The sum of all losses and all penalties on weights; zero if there are none.
#[track_caller]
pub fn get_total_loss(graph: &Graph) -> Output {
    let mut all = graph.outputs_in(keys::LOSSES);
    all.extend(graph.outputs_in(keys::REGULARIZATION_LOSSES));
    match all.as_slice() {
        [] => graph.named_constant("total_loss", 0.0f32),
        all => ops::add_n(all).name("total_loss").output(),
    }
}
