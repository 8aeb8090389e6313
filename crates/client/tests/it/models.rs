//! Layers, partitioned variables and what they leave in the graph.

use tensorfleet_client::layers::{self, Padding};
use tensorfleet_client::{
    DType, Gradient, Graph, NodeUnderPlacement, Output, Reuse, Session, embedding_lookup,
    fixed_size_partitioner, gradients, init, keys, losses, metrics, regularizers, summary,
};

fn names(g: &Graph) -> Vec<String> {
    let variables = g.global_variables();
    variables.iter().map(|v| v.name().to_owned()).collect()
}

/// The names that `tf.compat.v1.layers` gives.
#[test]
fn layers_number_themselves() {
    let g = Graph::new();
    let x = g.placeholder(DType::F32, &[-1, 8, 8, 1]);
    let x = layers::conv2d(&x, 4, [3, 3])
        .padding(Padding::Same)
        .output();
    let x = layers::conv2d(&x, 4, [3, 3]).use_bias(false).output();
    let x = layers::batch_norm(&x).output();
    let x = layers::max_pooling2d(&x, [2, 2]).output();
    let x = layers::flatten(&x);
    let x = layers::dropout(&x, 0.5).training(true).output();
    let y = layers::dense(&x, 10).name("logits").output();
    assert_eq!(y.shape().dims(), Some(&[-1, 10][..]));
    let expected = [
        "conv2d/kernel",
        "conv2d/bias",
        "conv2d_1/kernel",
        "batch_normalization/gamma",
        "batch_normalization/beta",
        "batch_normalization/moving_mean",
        "batch_normalization/moving_variance",
        "logits/kernel",
        "logits/bias",
    ];
    assert_eq!(names(&g), expected);
    assert_eq!(g.variables_in(keys::TRAINABLE_VARIABLES).len(), 7);
    g.check().unwrap();
}

#[test]
fn a_model_built_twice_has_its_weights_once() {
    let g = Graph::new();
    let x = g.placeholder(DType::F32, &[-1, 4]);
    let model = || {
        let hidden = layers::dense(&x, 3)
            .kernel_regularizer(regularizers::l2(0.1))
            .activation(Output::tanh);
        layers::dense(hidden.output(), 1).output()
    };
    let first = g.variable_scope("model", Reuse::Auto).run(model);
    let second = g.variable_scope("model", Reuse::Auto).run(model);
    assert_eq!(names(&g).len(), 4);
    assert_eq!(g.outputs_in(keys::REGULARIZATION_LOSSES).len(), 1);
    assert_ne!(first.name(), second.name());
    g.check().unwrap();
}

#[test]
fn unknown_features_are_a_mistake_that_names_the_layer() {
    let g = Graph::new();
    let x = g.placeholder(DType::F32, &[-1, -1]);
    assert!(layers::dense(&x, 3).output().is_void());
    let status = g.check().unwrap_err();
    assert!(status.message().contains("dense"), "{status}");
}

#[test]
fn parts_are_placed_one_by_one_and_stay_sparse() {
    let g = Graph::new();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let table = {
        let _spread = g.device_function(move |node: &NodeUnderPlacement<'_>| match node.op {
            "VarHandleOp" => {
                let task = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                format!("/job:ps/task:{}", task % 2)
            }
            _ => String::new(),
        });
        let builder = g.get_variable("table", &[7, 2]).initializer(init::ones());
        builder.partitioner(fixed_size_partitioner(3, 0)).build()
    };
    let found: Vec<(String, String, Vec<i64>)> = table
        .parts()
        .iter()
        .map(|part| {
            let offset = part.part().unwrap().offset.clone();
            (part.name().to_owned(), part.device(), offset)
        })
        .collect();
    let expected = [
        ("table/part_0", "/job:ps/task:0", vec![0, 0]),
        ("table/part_1", "/job:ps/task:1", vec![3, 0]),
        ("table/part_2", "/job:ps/task:0", vec![5, 0]),
    ];
    let expected = expected.map(|(name, device, at)| (name.to_owned(), device.to_owned(), at));
    assert_eq!(found, expected);
    let rows = embedding_lookup(&table, g.constant([1i64, 6])).output();
    for grad in gradients(&[&rows], table.parts()).unwrap() {
        assert!(matches!(grad, Some(Gradient::Sparse(_))), "{grad:?}");
    }
}

#[test]
fn a_partitioned_variable_is_found_again() {
    let g = Graph::new();
    let make = || {
        let builder = g.get_variable("w", &[4]);
        builder.partitioner(fixed_size_partitioner(2, 0)).build()
    };
    let first = g.variable_scope("s", Reuse::Never).run(make);
    let again = g.variable_scope("s", Reuse::Always).run(make);
    assert!(first.parts()[1].is(&again.parts()[1]));
    assert_eq!((again.name(), names(&g).len()), ("s/w", 2));
}

#[test]
fn losses_and_metrics_collect_themselves() {
    let g = Graph::new();
    let x = g.constant([1.0f32, 2.0]);
    losses::mean_squared_error(&x, &x).output();
    losses::hinge_loss(&x, &x).collection(None).output();
    assert_eq!(g.outputs_in(keys::LOSSES).len(), 1);
    metrics::mean(&x).build();
    let second = metrics::mean(&x).build();
    let local: Vec<String> = g
        .local_variables()
        .iter()
        .map(|v| v.name().to_owned())
        .collect();
    assert_eq!(
        local,
        ["mean/total", "mean/count", "mean_1/total", "mean_1/count"]
    );
    assert_eq!(second.value.name(), "mean_1/value:0");
    let bad = losses::mean_squared_error(&x, &x).weights(g.constant([1.0f32; 3]));
    assert!(bad.output().is_void());
    assert!(g.check().unwrap_err().message().contains("broadcast"));
}

#[test]
fn summaries_of_one_name_stay_apart() {
    let g = Graph::new();
    let loss = g.constant(2.0f32);
    let first = summary::scalar("my loss", &loss);
    let second = summary::scalar("my loss", &loss);
    summary::text("note", g.constant("hello"));
    assert_eq!(
        (first.name(), second.name()),
        ("my_loss:0".into(), "my_loss_1:0".into())
    );
    let all = summary::merge_all(&g).unwrap();
    let bytes = Session::new(&g).unwrap().run(&all).unwrap();
    let text = String::from_utf8_lossy(&bytes.slice::<tensorfleet_tensor::TString>().unwrap()[0])
        .into_owned();
    assert!(
        text.contains("my_loss_1") && text.contains("hello"),
        "{text}"
    );
}
