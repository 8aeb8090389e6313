//! Metrics over many batches: each keeps local variables, a value, and an update that takes the batch in.
//!
//! ```
//! use tensorfleet_client::{DType, Graph, Session, Tensor, metrics};
//!
//! let g = Graph::new();
//! let labels = g.placeholder(DType::I64, &[-1]);
//! let predictions = g.placeholder(DType::I64, &[-1]);
//! let accuracy = metrics::accuracy(&labels, &predictions).build();
//! let session = Session::new(&g)?;
//! session.run(&g.local_variables_initializer())?;
//! for guess in [[1i64, 2], [1, 1]] {
//!     let feeds = [(&labels, Tensor::vector(&[1i64, 2])), (&predictions, Tensor::vector(&guess))];
//!     session.run_fed(&feeds, &accuracy.update)?;
//! }
//! assert_eq!(session.run(&accuracy.value)?.to_scalar::<f32>()?, 0.75);
//! # Ok::<(), tensorfleet_client::Status>(())
//! ```

mod auc;
mod counts;

use tensorfleet_tensor::DType;

use crate::graph::Graph;
use crate::operation::Operation;
use crate::operators::number_like;
use crate::ops;
use crate::output::{Operand, Output};
use crate::scope::Scope;
use crate::variable::Variable;
use crate::variable_scope::Reuse;

pub use auc::{Curve, auc};
pub use counts::{precision, recall};

/// A metric's ends.
#[derive(Clone, Debug)]
pub struct Metric {
    /// What it is now.
    pub value: Output,
    /// Takes a batch in; what it is then.
    pub update: Output,
}

/// A metric in the making.
#[must_use = "nothing is added to the graph before `build`"]
pub struct MetricBuilder {
    graph: Graph,
    kind: &'static str,
    name: Option<String>,
    weights: Option<Output>,
    make: Box<dyn FnOnce(Option<Output>) -> Metric>,
}

impl MetricBuilder {
    fn new(
        kind: &'static str,
        graph: &Graph,
        make: impl FnOnce(Option<Output>) -> Metric + 'static,
    ) -> MetricBuilder {
        MetricBuilder {
            graph: graph.clone(),
            kind,
            name: None,
            weights: None,
            make: Box::new(make),
        }
    }

    /// A weight for each value; 1 by default.
    pub fn weights(mut self, weights: impl Operand) -> Self {
        self.weights = Some(weights.to_output());
        self
    }

    /// The name of its scope; by default its kind with a number that is free.
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Adds the metric.
    #[track_caller]
    pub fn build(self) -> Metric {
        let _scope: Scope = match &self.name {
            Some(name) => self.graph.variable_scope(name, Reuse::Never),
            None => self.graph.unique_variable_scope(self.kind),
        };
        (self.make)(self.weights.map(|weights| weights.cast(DType::F32)))
    }
}

/// The mean of all values.
pub fn mean(values: impl Operand) -> MetricBuilder {
    let values = values.to_output();
    let graph = values.graph().clone();
    MetricBuilder::new("mean", &graph, move |weights| {
        running_mean(&values, weights)
    })
}

/// How often predictions are the labels.
pub fn accuracy(labels: impl Operand, predictions: impl Operand) -> MetricBuilder {
    let (labels, predictions) = (labels.to_output(), predictions.to_output());
    let graph = predictions.graph().clone();
    MetricBuilder::new("accuracy", &graph, move |weights| {
        let right = predictions.equal(labels.cast(predictions.dtype()));
        running_mean(&right.cast(DType::F32), weights)
    })
}

fn running_mean(values: &Output, weights: Option<Output>) -> Metric {
    let g = values.graph();
    let values = values.cast(DType::F32);
    let (total, count) = (state(g, "total", &[]), state(g, "count", &[]));
    let (values, number) = match weights {
        None => (values.clone(), values.size().cast(DType::F32)),
        Some(weights) => {
            let weights = &values.ones_like() * weights;
            (values * &weights, weights.sum(&[]))
        }
    };
    let updates = [total.assign_add(values.sum(&[])), count.assign_add(number)];
    ratio_of(g, &updates, |name| {
        let count = count.to_output();
        let count = count.maximum(number_like(&count, 0.0));
        ops::div_no_nan(&total, count).name(name).output()
    })
}

/// A local variable of a metric.
fn state(g: &Graph, name: &str, dims: &[i64]) -> Variable {
    let builder = g.variable(name, dims).trainable(false);
    builder
        .collections(&[crate::keys::LOCAL_VARIABLES, crate::keys::METRIC_VARIABLES])
        .build()
}

/// The metric that `compute` finds from the variables: as they are, and after the updates.
fn ratio_of(g: &Graph, updates: &[Operation], compute: impl Fn(&str) -> Output) -> Metric {
    let value = compute("value");
    let update = {
        let _after = g.control_dependencies(updates);
        compute("update_op")
    };
    Metric { value, update }
}
