//! The area under a curve of right and wrong answers over all thresholds.

use tensorfleet_tensor::DType;

use crate::graph::Graph;
use crate::operation::Operation;
use crate::output::{Operand, Output};
use crate::variable::Variable;

use super::{Metric, MetricBuilder, ratio_of, state};

/// Which curve the area is under.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Curve {
    /// True positives over false positives.
    #[default]
    Roc,
    /// Precision over recall.
    PrecisionRecall,
}

/// How many thresholds stand for all of them, as in TensorFlow.
const THRESHOLDS: usize = 200;
/// Puts the first threshold below 0 and the last above 1.
const MARGIN: f32 = 1e-7;
/// Keeps rates from dividing by zero.
const EPSILON: f64 = 1e-6;

/// The area under the curve, by trapezoids between 200 thresholds. Predictions are probabilities, labels are
/// taken as bools.
pub fn auc(labels: impl Operand, predictions: impl Operand, curve: Curve) -> MetricBuilder {
    let (labels, predictions) = (labels.to_output(), predictions.to_output());
    let g = predictions.graph().clone();
    MetricBuilder::new("auc", &g.clone(), move |weights| {
        let counts = Counts::new(&g, &labels, &predictions, weights);
        counts.metric(&g, curve)
    })
}

/// Answers by threshold.
struct Counts {
    true_positives: Variable,
    false_negatives: Variable,
    true_negatives: Variable,
    false_positives: Variable,
    updates: Vec<Operation>,
}

fn thresholds() -> Vec<f32> {
    let last = (THRESHOLDS - 1) as f64;
    let inner = (1..THRESHOLDS - 1).map(|index| (index as f64 / last) as f32);
    let mut all = vec![-MARGIN];
    all.extend(inner);
    all.push(1.0 + MARGIN);
    all
}

impl Counts {
    fn new(g: &Graph, labels: &Output, predictions: &Output, weights: Option<Output>) -> Counts {
        // One row for each threshold, one column for each prediction.
        let row = predictions.cast(DType::F32).reshape(&[1, -1]);
        let said = row.greater(g.constant(thresholds()).reshape(&[-1, 1]));
        let label = labels.cast(DType::Bool).reshape(&[1, -1]);
        let weights =
            weights.map(|w| (predictions.cast(DType::F32).ones_like() * w).reshape(&[1, -1]));
        let mut updates = Vec::new();
        let mut count = |name: &str, which: Output| {
            let variable = state(g, name, &[THRESHOLDS as i64]);
            let mut values = which.cast(DType::F32);
            if let Some(weights) = &weights {
                values = values * weights;
            }
            updates.push(variable.assign_add(values.sum(&[1])));
            variable
        };
        let (not_said, not_label) = (said.logical_not(), label.logical_not());
        Counts {
            true_positives: count("true_positives", label.logical_and(&said)),
            false_negatives: count("false_negatives", label.logical_and(&not_said)),
            true_negatives: count("true_negatives", not_label.logical_and(&not_said)),
            false_positives: count("false_positives", not_label.logical_and(&said)),
            updates,
        }
    }

    fn metric(&self, g: &Graph, curve: Curve) -> Metric {
        ratio_of(g, &self.updates, |name| {
            let _scope = g.name_scope(name);
            let (tp, fnn) = (self.true_positives.to_output(), &self.false_negatives);
            let recall = (&tp + EPSILON) / (&tp + fnn + EPSILON);
            let (x, y) = match curve {
                Curve::Roc => {
                    let fp = self.false_positives.to_output();
                    let all = &fp + &self.true_negatives + EPSILON;
                    (fp / all, recall)
                }
                Curve::PrecisionRecall => {
                    let all = &tp + &self.false_positives + EPSILON;
                    (recall, (&tp + EPSILON) / all)
                }
            };
            area(&x, &y)
        })
    }
}

/// The area of the trapezoids between neighbours; x falls as the threshold rises.
fn area(x: &Output, y: &Output) -> Output {
    let inner = THRESHOLDS as i32 - 1;
    let first = |tensor: &Output| tensor.slice(&[0], &[inner]);
    let second = |tensor: &Output| tensor.slice(&[1], &[inner]);
    let width = first(x) - second(x);
    let height = (first(y) + second(y)) / 2.0;
    (width * height).sum(&[])
}
