//! Precision and recall, from counts of right and wrong answers.

use tensorfleet_tensor::DType;

use crate::ops;
use crate::output::{Operand, Output};

use super::{MetricBuilder, ratio_of, state};

/// How many of the positive answers are right. Labels and predictions are taken as bools.
pub fn precision(labels: impl Operand, predictions: impl Operand) -> MetricBuilder {
    counted(
        "precision",
        "false_positives",
        labels,
        predictions,
        |label, answer| label.logical_not().logical_and(answer),
    )
}

/// How many of the positive labels are found. Labels and predictions are taken as bools.
pub fn recall(labels: impl Operand, predictions: impl Operand) -> MetricBuilder {
    counted(
        "recall",
        "false_negatives",
        labels,
        predictions,
        |label, answer| label.logical_and(answer.logical_not()),
    )
}

/// True positives over true positives and the wrong ones that `wrong` tells.
fn counted(
    kind: &'static str,
    wrong_name: &'static str,
    labels: impl Operand,
    predictions: impl Operand,
    wrong: fn(&Output, &Output) -> Output,
) -> MetricBuilder {
    let (labels, predictions) = (labels.to_output(), predictions.to_output());
    let g = labels.graph().clone();
    MetricBuilder::new(kind, &g.clone(), move |weights| {
        let (labels, predictions) = (labels.cast(DType::Bool), predictions.cast(DType::Bool));
        let count = |name: &str, which: Output| {
            let _scope = g.name_scope(name);
            let counted = state(&g, "count", &[]);
            let mut values = which.cast(DType::F32);
            if let Some(weights) = &weights {
                values = values * weights;
            }
            let update = counted.assign_add(values.sum(&[]));
            (counted, update)
        };
        let (right, add_right) = count("true_positives", labels.logical_and(&predictions));
        let (wrong, add_wrong) = count(wrong_name, wrong(&labels, &predictions));
        ratio_of(&g, &[add_right, add_wrong], |name| -> Output {
            let right = right.to_output();
            let all = &right + &wrong;
            ops::div_no_nan(right, all).name(name).output()
        })
    })
}
