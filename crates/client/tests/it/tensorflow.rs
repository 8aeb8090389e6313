//! Losses, metrics, layers and lookups give what TensorFlow's give. Skipped, loudly, where there is none.

use serde_json::{Value, json};
use tensorfleet_client::layers::{self, Padding, Training};
use tensorfleet_client::losses::{self, Reduction};
use tensorfleet_client::{
    Combiner, DType, Gradient, Graph, Output, Session, Shape, SparseIds, Strategy, Tensor,
    embedding_lookup, embedding_lookup_sparse, fixed_size_partitioner, gradients, init, keys,
    metrics,
};
use tensorfleet_testkit::reference;

/// A function of TensorFlow's and ours: the inputs of each batch, and what builds our graph on placeholders.
struct Case {
    function: &'static str,
    batches: Vec<Vec<Tensor>>,
    build: fn(&Graph, &[Output], &[Tensor]) -> Vec<Output>,
}

fn case(
    function: &'static str,
    batches: &[&[Tensor]],
    build: fn(&Graph, &[Output], &[Tensor]) -> Vec<Output>,
) -> Case {
    Case {
        function,
        batches: batches.iter().map(|batch| batch.to_vec()).collect(),
        build,
    }
}

fn floats(dims: &[i64], values: &[f32]) -> Tensor {
    Tensor::from_slice(Shape::new(dims).unwrap(), values).unwrap()
}

/// Numbers that look random: both signs, no two alike.
fn ramp(dims: &[i64], step: f32) -> Tensor {
    let count: i64 = dims.iter().product();
    let values: Vec<f32> = (0..count)
        .map(|i| (i as f32 * step * 7.3).sin() * 2.0)
        .collect();
    floats(dims, &values)
}

fn ints(dims: &[i64], values: &[i64]) -> Tensor {
    Tensor::from_slice(Shape::new(dims).unwrap(), values).unwrap()
}

fn gradient_of(y: &Output, x: &Output) -> Output {
    let grads = gradients(&[y], &[x]).unwrap();
    grads[0].as_ref().unwrap().to_dense()
}

fn with_gradient(y: Output, x: &Output) -> Vec<Output> {
    let grad = gradient_of(&y, x);
    vec![y, grad]
}

/// As JSON for the script.
fn to_json(tensor: &Tensor) -> Value {
    let (dtype, values) = match tensor.dtype() {
        DType::F32 => ("float32", json!(tensor.slice::<f32>().unwrap())),
        DType::I64 => ("int64", json!(tensor.slice::<i64>().unwrap())),
        DType::Bool => ("bool", json!(tensor.slice::<bool>().unwrap())),
        other => panic!("{other}"),
    };
    json!({"dtype": dtype, "shape": tensor.shape().dims(), "values": values})
}

fn ours(case: &Case) -> Vec<Vec<Vec<f32>>> {
    let g = Graph::new();
    let first = &case.batches[0];
    let inputs: Vec<Output> = first
        .iter()
        .map(|tensor| g.placeholder(tensor.dtype(), tensor.shape().dims()))
        .collect();
    let results = (case.build)(&g, &inputs, first);
    let session = Session::new(&g).unwrap();
    let init = (
        g.global_variables_initializer(),
        g.local_variables_initializer(),
    );
    session
        .run(init)
        .unwrap_or_else(|status| panic!("{}: {status}", case.function));
    let run = |batch: &Vec<Tensor>, result: &Output| -> Vec<f32> {
        let feeds: Vec<(&Output, Tensor)> = inputs.iter().zip(batch.iter().cloned()).collect();
        let value = session.run_fed(&feeds, result);
        let value = value.unwrap_or_else(|status| panic!("{}: {status}", case.function));
        value.slice::<f32>().unwrap().to_vec()
    };
    let batches = case.batches.iter();
    batches
        .map(|batch| results.iter().map(|result| run(batch, result)).collect())
        .collect()
}

fn check(cases: &[Case]) {
    let Some(python) = reference::python() else {
        return;
    };
    let requests: Vec<Value> = cases
        .iter()
        .map(|case| {
            let batches: Vec<Vec<Value>> = case
                .batches
                .iter()
                .map(|batch| batch.iter().map(to_json).collect())
                .collect();
            json!({"function": case.function, "batches": batches})
        })
        .collect();
    let answers = reference::ask(&python, "models.py", &requests).unwrap();
    assert_eq!(answers.len(), cases.len());
    let mut wrong = Vec::new();
    for (case, answer) in cases.iter().zip(&answers) {
        let theirs: Vec<Vec<Vec<f32>>> = serde_json::from_value(answer.clone()).unwrap();
        let ours = ours(case);
        let near = |a: &f32, b: &f32| (a - b).abs() <= 1e-5 * (1.0 + b.abs());
        let same = |a: &Vec<f32>, b: &Vec<f32>| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| near(a, b))
        };
        for (index, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            for (result, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
                if !same(ours, theirs) {
                    wrong.push(format!(
                        "{} batch {index} result {result}:\n  ours   {ours:?}\n  theirs {theirs:?}",
                        case.function
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn models_are_tensorflows() {
    // All in one go: starting TensorFlow takes longest.
    let mut cases = losses_cases();
    cases.extend(reduction_cases());
    cases.extend(metrics_cases());
    cases.extend(layers_cases());
    cases.extend(lookup_cases());
    check(&cases);
}

fn losses_cases() -> Vec<Case> {
    let (labels, predictions) = (ramp(&[3, 4], 1.0), ramp(&[3, 4], 2.0));
    let weights = floats(&[3, 1], &[0.5, 0.0, 2.0]);
    let yes_no = floats(&[2, 3], &[1.0, 0.0, 1.0, 0.0, 0.0, 1.0]);
    let logits = ramp(&[2, 3], 3.0);
    let onehot = floats(&[2, 3], &[0.0, 1.0, 0.0, 1.0, 0.0, 0.0]);
    let probabilities = floats(&[2, 3], &[0.9, 0.2, 0.5, 0.0, 0.99, 0.7]);
    let pair = [labels.clone(), predictions.clone()];
    let weighted = [labels, predictions, weights];
    vec![
        case("mean_squared_error", &[&pair], |_, i, _| {
            with_gradient(losses::mean_squared_error(&i[0], &i[1]).output(), &i[1])
        }),
        case("mean_squared_error", &[&weighted], |_, i, _| {
            let loss = losses::mean_squared_error(&i[0], &i[1]).weights(&i[2]);
            with_gradient(loss.output(), &i[1])
        }),
        case("absolute_difference", &[&weighted], |_, i, _| {
            let loss = losses::absolute_difference(&i[0], &i[1]).weights(&i[2]);
            with_gradient(loss.output(), &i[1])
        }),
        case("huber_loss", &[&pair], |_, i, _| {
            with_gradient(losses::huber_loss(&i[0], &i[1], 0.5).output(), &i[1])
        }),
        case(
            "log_loss",
            &[&[yes_no.clone(), probabilities]],
            |_, i, _| with_gradient(losses::log_loss(&i[0], &i[1]).output(), &i[1]),
        ),
        case(
            "hinge_loss",
            &[&[yes_no.clone(), logits.clone()]],
            |_, i, _| with_gradient(losses::hinge_loss(&i[0], &i[1]).output(), &i[1]),
        ),
        case(
            "sigmoid_cross_entropy",
            &[&[yes_no.clone(), logits.clone()]],
            |_, i, _| with_gradient(losses::sigmoid_cross_entropy(&i[0], &i[1]).output(), &i[1]),
        ),
        case(
            "softmax_cross_entropy",
            &[&[onehot.clone(), logits.clone()]],
            |_, i, _| with_gradient(losses::softmax_cross_entropy(&i[0], &i[1]).output(), &i[1]),
        ),
        case("smooth_softmax", &[&[onehot, logits.clone()]], |_, i, _| {
            let labels = losses::smooth_onehot(&i[0], 0.1);
            with_gradient(losses::softmax_cross_entropy(labels, &i[1]).output(), &i[1])
        }),
        case("smooth_sigmoid", &[&[yes_no, logits.clone()]], |_, i, _| {
            let labels = losses::smooth_binary(&i[0], 0.1);
            with_gradient(losses::sigmoid_cross_entropy(labels, &i[1]).output(), &i[1])
        }),
        case(
            "sparse_softmax_cross_entropy",
            &[&[ints(&[2], &[2, 0]), logits]],
            |_, i, _| {
                with_gradient(
                    losses::sparse_softmax_cross_entropy(&i[0], &i[1]).output(),
                    &i[1],
                )
            },
        ),
        case(
            "sparse_softmax_cross_entropy",
            &[&[ints(&[2, 2], &[2, 0, 1, 1]), ramp(&[2, 2, 3], 1.5)]],
            |_, i, _| {
                with_gradient(
                    losses::sparse_softmax_cross_entropy(&i[0], &i[1]).output(),
                    &i[1],
                )
            },
        ),
        case("total_loss", &[&pair], |g, i, _| {
            losses::mean_squared_error(&i[0], &i[1]).output();
            losses::absolute_difference(&i[0], &i[1]).output();
            vec![losses::get_total_loss(g)]
        }),
    ]
}

fn reduction_cases() -> Vec<Case> {
    fn reduced(i: &[Output], reduction: Reduction) -> Vec<Output> {
        let loss = losses::mean_squared_error(&i[0], &i[1]).weights(&i[2]);
        with_gradient(loss.reduction(reduction).output(), &i[1])
    }
    let weights = floats(&[3, 1], &[0.5, 0.0, 2.0]);
    let inputs = [ramp(&[3, 4], 1.0), ramp(&[3, 4], 2.0), weights];
    vec![
        case("reduction_none", &[&inputs], |_, i, _| {
            reduced(i, Reduction::None)
        }),
        case("reduction_sum", &[&inputs], |_, i, _| {
            reduced(i, Reduction::Sum)
        }),
        case("reduction_mean", &[&inputs], |_, i, _| {
            reduced(i, Reduction::Mean)
        }),
        case("reduction_batch", &[&inputs], |_, i, _| {
            reduced(i, Reduction::SumOverBatchSize)
        }),
    ]
}

fn metrics_cases() -> Vec<Case> {
    fn ends(metric: metrics::MetricBuilder) -> Vec<Output> {
        let metric = metric.build();
        vec![metric.update, metric.value]
    }
    let first = [ints(&[4], &[1, 0, 1, 1]), ints(&[4], &[1, 1, 0, 1])];
    let second = [ints(&[4], &[0, 0, 1, 0]), ints(&[4], &[1, 0, 1, 0])];
    let weights = floats(&[4], &[1.0, 0.5, 0.0, 2.0]);
    let weigh = |batch: &[Tensor; 2]| [batch[0].clone(), batch[1].clone(), weights.clone()];
    let chances = |batch: &[Tensor; 2], values: &[f32]| [batch[0].clone(), floats(&[4], values)];
    let scores = [
        chances(&first, &[0.9, 0.4, 0.35, 0.8]),
        chances(&second, &[0.1, 0.5, 0.6, 1.0]),
    ];
    let (weighted_first, weighted_second) = (weigh(&first), weigh(&second));
    vec![
        case(
            "mean",
            &[&[ramp(&[4], 1.0)], &[ramp(&[4], 2.0)]],
            |_, i, _| ends(metrics::mean(&i[0])),
        ),
        case("accuracy", &[&first, &second], |_, i, _| {
            ends(metrics::accuracy(&i[0], &i[1]))
        }),
        case(
            "weighted_accuracy",
            &[&weighted_first, &weighted_second],
            |_, i, _| ends(metrics::accuracy(&i[0], &i[1]).weights(&i[2])),
        ),
        case("precision", &[&first, &second], |_, i, _| {
            ends(metrics::precision(&i[0], &i[1]))
        }),
        case("recall", &[&first, &second], |_, i, _| {
            ends(metrics::recall(&i[0], &i[1]))
        }),
        case("auc_roc", &[&scores[0], &scores[1]], |_, i, _| {
            ends(metrics::auc(&i[0], &i[1], metrics::Curve::Roc))
        }),
        case("auc_pr", &[&scores[0], &scores[1]], |_, i, _| {
            ends(metrics::auc(&i[0], &i[1], metrics::Curve::PrecisionRecall))
        }),
    ]
}

fn layers_cases() -> Vec<Case> {
    fn normalised(g: &Graph, x: &Output, training: impl Into<Training>) -> Vec<Output> {
        let y = layers::batch_norm(x).training(training).output();
        let grad = gradient_of(&(&y * &y * &y), x);
        let updates = g.operations_in(keys::UPDATE_OPS);
        let _after = g.control_dependencies(&updates);
        let moving: Vec<Output> = g.global_variables()[2..].iter().map(|v| v.read()).collect();
        // Together: every run updates them.
        let moving = g.op("Pack").list(&moving).output();
        vec![y, moving, grad]
    }
    let (images, vectors) = (ramp(&[2, 5, 4, 3], 0.7), ramp(&[5, 3], 0.9));
    let (yes, no) = (Tensor::scalar(true), Tensor::scalar(false));
    vec![
        case(
            "dense",
            &[&[ramp(&[2, 3, 4], 1.0), ramp(&[4, 2], 2.0), ramp(&[2], 3.0)]],
            |_, i, t| {
                let layer = layers::dense(&i[0], 2)
                    .kernel_initializer(init::tensor(t[1].clone()))
                    .bias_initializer(init::tensor(t[2].clone()));
                with_gradient(layer.activation(Output::relu).output(), &i[0])
            },
        ),
        case(
            "conv2d",
            &[&[images.clone(), ramp(&[3, 2, 3, 2], 2.0), ramp(&[2], 3.0)]],
            |_, i, t| {
                let layer = layers::conv2d(&i[0], 2, [3, 2])
                    .strides([2, 2])
                    .padding(Padding::Same)
                    .kernel_initializer(init::tensor(t[1].clone()))
                    .bias_initializer(init::tensor(t[2].clone()));
                vec![layer.activation(Output::tanh).output()]
            },
        ),
        case("pooling", &[std::slice::from_ref(&images)], |_, i, _| {
            let average = layers::average_pooling2d(&i[0], [3, 2]).strides([1, 2]);
            vec![
                layers::max_pooling2d(&i[0], [2, 2]).output(),
                average.padding(Padding::Same).output(),
            ]
        }),
        case("dropout", &[std::slice::from_ref(&images)], |g, i, _| {
            g.set_random_seed(7);
            vec![layers::dropout(&i[0], 0.3).training(true).seed(3).output()]
        }),
        case(
            "dropout_decided",
            &[
                &[images.clone(), yes.clone()],
                &[images.clone(), no.clone()],
            ],
            |g, i, _| {
                g.set_random_seed(7);
                let layer = layers::dropout(&i[0], 0.3).training(&i[1]);
                with_gradient(layer.seed(3).output(), &i[0])
            },
        ),
        case("batch_norm", &[std::slice::from_ref(&images)], |g, i, _| {
            normalised(g, &i[0], true)
        }),
        case(
            "batch_norm_of_vectors",
            &[std::slice::from_ref(&vectors)],
            |g, i, _| normalised(g, &i[0], true),
        ),
        // Training, evaluating with the averages of before, training again.
        case(
            "batch_norm_decided",
            &[
                &[images.clone(), yes.clone()],
                &[images.clone(), no.clone()],
                &[images, yes.clone()],
            ],
            |g, i, _| normalised(g, &i[0], &i[1]),
        ),
        case(
            "batch_norm_decided",
            &[
                &[vectors.clone(), yes.clone()],
                &[vectors.clone(), no],
                &[vectors, yes],
            ],
            |g, i, _| normalised(g, &i[0], &i[1]),
        ),
    ]
}

fn lookup_cases() -> Vec<Case> {
    fn looked_up(g: &Graph, ids: &Output, table: &Tensor, strategy: Strategy) -> Vec<Output> {
        let parts = g
            .get_variable("table", table.shape().dims())
            .initializer(init::tensor(table.clone()))
            .partitioner(fixed_size_partitioner(3, 0))
            .build();
        let rows = embedding_lookup(&parts, ids).strategy(strategy).output();
        let grads = gradients(&[&rows.square()], parts.parts()).unwrap();
        let grads: Vec<Output> = grads.iter().flatten().map(Gradient::to_dense).collect();
        let all = g
            .op("ConcatV2")
            .list(&grads)
            .input(g.constant(0i32))
            .output();
        vec![rows, all]
    }
    fn combined(i: &[Output], combiner: Combiner, weighted: bool) -> Vec<Output> {
        let ids = SparseIds {
            indices: i[1].clone(),
            values: i[2].clone(),
        };
        let mut lookup = embedding_lookup_sparse(&i[0], &ids).combiner(combiner);
        if weighted {
            lookup = lookup.weights(&i[3]);
        }
        let rows = lookup.output();
        let grad = gradient_of(&rows.square(), &i[0]);
        vec![rows, grad]
    }
    let table = ramp(&[10, 2], 1.3);
    let inputs = [table.clone(), ints(&[2, 3], &[9, 0, 4, 3, 7, 9])];
    let indices = ints(&[5, 2], &[0, 0, 0, 2, 1, 0, 2, 1, 2, 3]);
    let sparse = [
        table,
        indices,
        ints(&[5], &[3, 9, 3, 0, 1]),
        ramp(&[5], 2.0),
    ];
    vec![
        case("lookup_mod", &[&inputs], |g, i, t| {
            looked_up(g, &i[1], &t[0], Strategy::Mod)
        }),
        case("lookup_div", &[&inputs], |g, i, t| {
            looked_up(g, &i[1], &t[0], Strategy::Div)
        }),
        case("sparse_sum", &[&sparse], |_, i, _| {
            combined(i, Combiner::Sum, false)
        }),
        case("sparse_mean", &[&sparse], |_, i, _| {
            combined(i, Combiner::Mean, false)
        }),
        case("sparse_sqrtn", &[&sparse], |_, i, _| {
            combined(i, Combiner::SqrtN, false)
        }),
        case("sparse_sum_weighted", &[&sparse], |_, i, _| {
            combined(i, Combiner::Sum, true)
        }),
        case("sparse_mean_weighted", &[&sparse], |_, i, _| {
            combined(i, Combiner::Mean, true)
        }),
        case("sparse_sqrtn_weighted", &[&sparse], |_, i, _| {
            combined(i, Combiner::SqrtN, true)
        }),
    ]
}
