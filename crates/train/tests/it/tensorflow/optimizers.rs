//! Every optimizer, dense and sparse, on references and resources: the same variables after five steps,
//! and the same names, so that checkpoints fit.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tensorfleet_client::{Graph, Session, Shape, Tensor, Variable, init};
use tensorfleet_train::{
    Adadelta, Adagrad, AdagradDA, Adam, Ftrl, GradientDescent, Minimize, Momentum, Optimizer,
    ProximalAdagrad, ProximalGradientDescent, RmsProp, get_or_create_global_step,
};

use super::{ask, differences, values_by_name};

const STEPS: usize = 5;

type Make = fn(&Variable) -> Box<dyn Optimizer>;

/// TensorFlow's class, its arguments, ours.
fn optimizers() -> Vec<(&'static str, Value, Make)> {
    vec![
        (
            "GradientDescentOptimizer",
            json!({"learning_rate": 0.1}),
            |_| Box::new(GradientDescent::new(0.1)),
        ),
        (
            "MomentumOptimizer",
            json!({"learning_rate": 0.05, "momentum": 0.9}),
            |_| Box::new(Momentum::new(0.05, 0.9)),
        ),
        (
            "MomentumOptimizer",
            json!({"learning_rate": 0.05, "momentum": 0.9, "use_nesterov": true, "name": "Mine"}),
            |_| Box::new(Momentum::new(0.05, 0.9).nesterov().named("Mine")),
        ),
        (
            "AdagradOptimizer",
            json!({"learning_rate": 0.2, "initial_accumulator_value": 0.3}),
            |_| Box::new(Adagrad::new(0.2).initial_accumulator(0.3)),
        ),
        (
            "AdagradDAOptimizer",
            json!({"learning_rate": 0.2, "global_step": "global_step",
                "l1_regularization_strength": 0.01, "l2_regularization_strength": 0.02}),
            |step| Box::new(AdagradDA::new(0.2, step).regularization(0.01, 0.02)),
        ),
        (
            "AdadeltaOptimizer",
            json!({"learning_rate": 0.5, "rho": 0.9, "epsilon": 1e-3}),
            |_| Box::new(Adadelta::new(0.5).rho(0.9).epsilon(1e-3)),
        ),
        (
            "AdamOptimizer",
            json!({"learning_rate": 0.1, "beta1": 0.8}),
            |_| Box::new(Adam::new(0.1).beta1(0.8)),
        ),
        (
            "RMSPropOptimizer",
            json!({"learning_rate": 0.05, "momentum": 0.5}),
            |_| Box::new(RmsProp::new(0.05).momentum(0.5)),
        ),
        (
            "RMSPropOptimizer",
            json!({"learning_rate": 0.05, "decay": 0.8, "centered": true}),
            |_| Box::new(RmsProp::new(0.05).decay(0.8).centered()),
        ),
        (
            "FtrlOptimizer",
            json!({"learning_rate": 0.3, "l1_regularization_strength": 0.01,
                "l2_regularization_strength": 0.02}),
            |_| Box::new(Ftrl::new(0.3).regularization(0.01, 0.02)),
        ),
        (
            "FtrlOptimizer",
            json!({"learning_rate": 0.3, "l2_shrinkage_regularization_strength": 0.1,
                "learning_rate_power": -0.6, "beta": 0.5}),
            |_| {
                let ftrl = Ftrl::new(0.3).l2_shrinkage(0.1);
                Box::new(ftrl.learning_rate_power(-0.6).beta(0.5))
            },
        ),
        (
            "ProximalAdagradOptimizer",
            json!({"learning_rate": 0.2, "l1_regularization_strength": 0.01,
                "l2_regularization_strength": 0.02}),
            |_| Box::new(ProximalAdagrad::new(0.2).regularization(0.01, 0.02)),
        ),
        (
            "ProximalGradientDescentOptimizer",
            json!({"learning_rate": 0.1, "l1_regularization_strength": 0.01,
                "l2_regularization_strength": 0.02}),
            |_| Box::new(ProximalGradientDescent::new(0.1).regularization(0.01, 0.02)),
        ),
    ]
}

/// The variables of our graph after the steps, by name.
fn train(make: Make, resource: bool, sparse: bool) -> BTreeMap<String, Vec<f64>> {
    let g = Graph::new();
    let step = get_or_create_global_step(&g).unwrap();
    let variable = |name: &str, dims: &[i64], values: Vec<f32>| {
        let shape = Shape::new(dims).unwrap();
        let value = Tensor::from_vec(shape, values).unwrap();
        let builder = g.variable(name, dims).initializer(init::tensor(value));
        if resource {
            builder.build()
        } else {
            builder.as_ref_variable().build()
        }
    };
    let w = variable(
        "w",
        &[4, 3],
        (0..12).map(|i| 0.1 * i as f32 - 0.5).collect(),
    );
    let b = variable("b", &[3], vec![0.5, -0.3, 0.2]);
    let rows = if sparse {
        w.gather(g.constant([1i32, 3, 1]))
    } else {
        w.read()
    };
    let loss = (rows + &b - 0.33).square().sum(&[]);
    let update = make(&step)
        .minimize_with(&loss, &Minimize::step(&step))
        .unwrap();
    let session = Session::new(&g).unwrap();
    session.run(&g.global_variables_initializer()).unwrap();
    for _ in 0..STEPS {
        session.run(&update).unwrap();
    }
    values_by_name(&g, &session)
}

#[test]
fn optimizers_agree_with_tensorflow() {
    let mut cases = Vec::new();
    for (name, args, make) in optimizers() {
        for (resource, sparse) in [(true, false), (true, true), (false, false), (false, true)] {
            let request = json!({"optimizer": name, "args": args, "resource": resource,
                "sparse": sparse, "steps": STEPS});
            cases.push((request, make, resource, sparse));
        }
    }
    let requests = cases.iter().map(|(request, ..)| request.clone()).collect();
    let Some(answers) = ask("optimizer", requests) else {
        return;
    };
    let mut wrong = Vec::new();
    for ((request, make, resource, sparse), theirs) in cases.iter().zip(&answers) {
        let ours = train(*make, *resource, *sparse);
        let theirs = theirs.as_object().unwrap();
        let our_names: Vec<&String> = ours.keys().collect();
        let their_names: Vec<&String> = theirs
            .keys()
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .collect();
        if our_names != their_names {
            wrong.push(format!(
                "{request}: {our_names:?}, TensorFlow's {their_names:?}"
            ));
            continue;
        }
        for (name, values) in &ours {
            if let Some(text) = differences(values, &theirs[name], 1e-5) {
                wrong.push(format!("{request}: {name}: {text}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
