//! Optimizers, placement and towers: what does not need TensorFlow to be judged.

use tensorfleet_client::{
    AttrValue, Gradient, Graph, Reuse, Session, fixed_size_partitioner, init, keys,
};
use tensorfleet_kernel::AttrList;
use tensorfleet_train::{
    Adagrad, Adam, ExponentialMovingAverage, Ftrl, GradientDescent, GreedyLoadBalancing, Minimize,
    Momentum, Optimizer, RandomByName, ReplicaDeviceSetter, average_gradients,
    get_or_create_global_step, schedule, towers,
};

#[test]
fn slots_are_named_and_placed_like_their_variables() {
    let g = Graph::new();
    let setter = ReplicaDeviceSetter::new().ps_tasks(2).build().unwrap();
    let _scope = g.device_function(setter);
    let w = g.variable("w", &[2]).build();
    let b = g.variable("b", &[2]).build();
    let loss = (&w * &b).sum(&[]);
    let adam = Adam::new(0.1);
    adam.minimize(&loss).unwrap();
    let names: Vec<String> = adam
        .variables()
        .iter()
        .map(|v| v.name().to_owned())
        .collect();
    assert_eq!(
        names,
        [
            "beta1_power",
            "beta2_power",
            "w/Adam",
            "w/Adam_1",
            "b/Adam",
            "b/Adam_1"
        ]
    );
    let m = adam.slot(&b, "m").unwrap();
    assert_eq!((m.name(), m.device()), ("b/Adam", b.device()));
    assert_eq!(b.device(), "/job:ps/task:1");
    let class = m.op().attr("_class");
    let Some(AttrValue::List(AttrList::S(class))) = class else {
        panic!("{class:?}");
    };
    assert_eq!(class, ["loc:@b"]);
    assert!(!m.is_trainable());
    assert_eq!(g.global_variables().len(), 8);
    assert_eq!(g.trainable_variables().len(), 2);
    assert_eq!(g.operations_in(keys::TRAIN_OP).len(), 1);
}

#[test]
fn a_second_optimizer_has_slots_of_its_own() {
    let g = Graph::new();
    let w = g.variable("w", &[]).build();
    let loss = w.read().square();
    let (first, second) = (Momentum::new(0.1, 0.9), Momentum::new(0.1, 0.9));
    first.minimize(&loss).unwrap();
    first.minimize(&loss).unwrap();
    second.minimize(&loss).unwrap();
    assert_eq!(first.slot(&w, "momentum").unwrap().name(), "w/Momentum");
    assert_eq!(second.slot(&w, "momentum").unwrap().name(), "w/Momentum_1");
    assert_eq!(g.global_variables().len(), 3);
}

#[test]
fn variables_without_gradients_are_named() {
    let g = Graph::new();
    g.variable("w", &[]).build();
    g.variable("b", &[]).build();
    let status = Adam::new(0.1).minimize(&g.constant(1.0f32)).unwrap_err();
    assert!(status.message().contains("variables w, b;"), "{status}");
    let none = Graph::new();
    let status = Adam::new(0.1).minimize(&none.constant(1.0f32)).unwrap_err();
    assert!(status.message().contains("no variables"), "{status}");
}

#[test]
fn senseless_settings_are_refused() {
    let g = Graph::new();
    let w = g.variable("w", &[]).build();
    let loss = w.read().square();
    let refused = |optimizer: &dyn Optimizer| {
        let status = optimizer.minimize(&loss).unwrap_err();
        status.message().to_owned()
    };
    assert_eq!(
        refused(&Adagrad::new(0.1).initial_accumulator(0.0)),
        "initial_accumulator must be positive, not 0"
    );
    assert_eq!(
        refused(&Ftrl::new(0.1).regularization(-1.0, 0.0)),
        "l1 must be positive or zero, not -1"
    );
    assert_eq!(
        refused(&Ftrl::new(0.1).learning_rate_power(0.5)),
        "learning_rate_power 0.5 must be negative or zero"
    );
}

#[test]
fn only_the_variables_asked_for_move() {
    let g = Graph::new();
    let w = g.variable("w", &[]).initializer(init::ones()).build();
    let b = g.variable("b", &[]).initializer(init::ones()).build();
    let loss = (&w + &b).square();
    let grad_loss = g.constant(2.0f32);
    let options = Minimize::default()
        .variables(std::slice::from_ref(&w))
        .grad_loss(&grad_loss)
        .name("only_w");
    let train = GradientDescent::new(0.125)
        .minimize_with(&loss, &options)
        .unwrap();
    assert_eq!(train.name(), "only_w");
    let session = Session::new(&g).unwrap();
    session.run(&g.global_variables_initializer()).unwrap();
    session.run(&train).unwrap();
    let (w, b) = session.run((&w, &b)).unwrap();
    assert_eq!(w.to_scalar::<f32>().unwrap(), 0.0);
    assert_eq!(b.to_scalar::<f32>().unwrap(), 1.0);
}

#[test]
fn a_warm_up_leads_to_the_schedule() {
    let g = Graph::new();
    let step = get_or_create_global_step(&g).unwrap();
    let rate = g.constant(0.8f32);
    let warm = schedule::LinearWarmup {
        steps: 4.0,
        from: 0.5,
    }
    .at(&step, &rate);
    let session = Session::new(&g).unwrap();
    let mut seen = Vec::new();
    for at in [0i64, 2, 4, 9] {
        session.run(&step.assign(g.constant(at))).unwrap();
        seen.push(session.run(&warm).unwrap().to_scalar::<f32>().unwrap());
    }
    assert_eq!(seen, [0.4, 0.6, 0.8, 0.8]);
}

#[test]
fn strategies_spread_variables() {
    let place = |setter: ReplicaDeviceSetter, sizes: &[i64]| -> Vec<String> {
        let g = Graph::new();
        let _scope = g.device_function(setter.build().unwrap());
        let made = sizes.iter().map(|size| g.variable("v", &[*size]).build());
        made.map(|v| v.device().replace("/job:ps/task:", ""))
            .collect()
    };
    let setter = || ReplicaDeviceSetter::new().ps_tasks(3);
    let greedy = setter().ps_strategy(GreedyLoadBalancing::by_bytes(3));
    assert_eq!(
        place(greedy, &[100, 60, 50, 1, 20, 30]),
        ["0", "1", "2", "2", "2", "1"]
    );
    let same = GreedyLoadBalancing::new(3, |_| 1.0);
    assert_eq!(
        place(setter().ps_strategy(same), &[9, 1, 1, 1]),
        ["0", "1", "2", "0"]
    );
    let random = |seed| place(setter().ps_strategy(RandomByName::new(3, seed)), &[1; 40]);
    assert_eq!(random(1), random(1));
    assert_ne!(random(1), random(2));
    for task in ["0", "1", "2"] {
        assert!(random(1).iter().any(|chosen| chosen == task));
    }
}

#[test]
fn towers_average_dense_and_sparse_gradients() {
    let g = Graph::new();
    let optimizer = GradientDescent::new(1.0);
    let _model = g.variable_scope("model", Reuse::Never);
    let gradients = towers(&g, &["/cpu:0"; 4], |tower| {
        let bias = g
            .get_variable("bias", &[2])
            .initializer(init::zeros())
            .build();
        let table = g
            .get_variable("table", &[6, 2])
            .initializer(init::zeros())
            .build();
        let rows = table.gather(g.constant([tower as i32, 5]));
        let loss = (rows + &bias).sum(&[]);
        optimizer.compute_gradients(&loss, &Minimize::default())
    })
    .unwrap();
    let averaged = average_gradients(&gradients).unwrap();
    assert!(matches!(averaged[1].0, Some(Gradient::Sparse(_))));
    let train = optimizer
        .apply_gradients(&averaged, &Minimize::default())
        .unwrap();
    let names: Vec<String> = g
        .global_variables()
        .iter()
        .map(|v| v.name().to_owned())
        .collect();
    assert_eq!(names, ["model/bias", "model/table"]);
    let session = Session::new(&g).unwrap();
    session.run(&g.global_variables_initializer()).unwrap();
    session.run(&train).unwrap();
    let values = session.run(&g.global_variables()).unwrap();
    assert_eq!(values[0].slice::<f32>().unwrap(), [-2.0, -2.0]);
    let table: Vec<f32> = values[1]
        .slice::<f32>()
        .unwrap()
        .chunks(2)
        .map(|row| row[0])
        .collect();
    assert_eq!(table, [-0.25, -0.25, -0.25, -0.25, 0.0, -1.0]);
}

#[test]
fn an_average_begins_where_its_variable_is() {
    let g = Graph::new();
    let w = g.variable("w", &[2]).initializer(init::ones()).build();
    let averages = ExponentialMovingAverage::new(0.9);
    averages.apply(std::slice::from_ref(&w)).unwrap();
    let average = averages.average(&w).unwrap();
    let session = Session::new(&g).unwrap();
    let begin = || {
        session.run(average.initializer()).unwrap();
        let value = session.run(&average).unwrap();
        value.slice::<f32>().unwrap().to_vec()
    };
    assert_eq!(begin(), [1.0, 1.0]);
    // As if restored from a checkpoint that has no averages.
    session.run(&w.assign(g.constant([3.0f32, 4.0]))).unwrap();
    assert_eq!(begin(), [3.0, 4.0]);
}

#[test]
fn slots_of_parts_are_parts() {
    let g = Graph::new();
    let table = g.get_variable("table", &[6, 2]).initializer(init::ones());
    let table = table.partitioner(fixed_size_partitioner(2, 0)).build();
    let loss = table.concat().square().sum(&[]);
    let adagrad = Adagrad::new(0.1);
    adagrad.minimize(&loss).unwrap();
    let second = &table.parts()[1];
    let slot = adagrad.slot(second, "accumulator").unwrap();
    assert_eq!(slot.name(), format!("{}/Adagrad", second.name()));
    let (own, whole) = (slot.part().unwrap(), second.part().unwrap());
    assert_eq!(own.whole_name, "table/Adagrad");
    assert_eq!(
        (&own.offset, &own.whole_dims),
        (&whole.offset, &whole.whole_dims)
    );
}
