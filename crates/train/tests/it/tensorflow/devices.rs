//! Where `replica_device_setter` puts the nodes of a small training graph.

use serde_json::json;
use tensorfleet_client::{Graph, Variable, init};
use tensorfleet_train::{
    Adam, Minimize, Optimizer, ReplicaDeviceSetter, get_or_create_global_step,
};

use super::ask;

/// The same graph as `devices` in `tests/reference/training.py`.
fn build(setter: ReplicaDeviceSetter, resource: bool) -> Graph {
    let g = Graph::new();
    let variable = |name: &str| -> Variable {
        let builder = g.variable(name, &[2]).initializer(init::ones());
        if resource {
            builder.build()
        } else {
            builder.as_ref_variable().build()
        }
    };
    let _scope = g.device_function(setter.build().unwrap());
    let step = get_or_create_global_step(&g).unwrap();
    let a = variable("a");
    let b = g.device("/device:CPU:0").run(|| variable("b"));
    let c = g.device("/job:ps/task:1").run(|| variable("c"));
    let d = g.device("/job:other/task:7").run(|| variable("d"));
    let x = g.device("/device:GPU:1").run(|| {
        let x = g.named_constant("x", 1.0f32);
        g.op("Identity").name("y").input(x).output()
    });
    let e = variable("e");
    g.device("").run(|| g.named_constant("free", 1.0f32));
    let product = &a * &b * &c * &d * &e * &x;
    let axis = g.constant([0i32]);
    let loss = g.op("Sum").name("loss").input(product).input(axis).output();
    let adam = Adam::new(0.1);
    adam.minimize_with(&loss, &Minimize::step(&step)).unwrap();
    g
}

#[test]
fn devices_agree_with_tensorflow() {
    let cases = [
        (json!({"ps_tasks": 3}), true),
        (
            json!({"ps_tasks": 3, "worker_device": "/job:worker/task:2/device:CPU:0"}),
            false,
        ),
        (json!({"ps_tasks": 2, "merge_devices": false}), true),
        (
            json!({"ps_tasks": 2, "ps_device": "/job:ps/cpu:0", "worker_device": ""}),
            true,
        ),
        (json!({"ps_tasks": 2, "ps_device": ""}), true),
        (
            json!({"ps_tasks": 2, "ps_ops": ["VarHandleOp", "NoOp"]}),
            true,
        ),
        (
            json!({"cluster": {"ps": ["a:1", "b:1"], "worker": ["c:1"]}}),
            true,
        ),
        (json!({"cluster": {"worker": ["c:1"]}}), true),
    ];
    let requests = cases
        .iter()
        .map(|(args, resource)| json!({"args": args, "resource": resource}));
    let Some(answers) = ask("devices", requests.collect()) else {
        return;
    };
    for ((args, resource), theirs) in cases.iter().zip(&answers) {
        let mut setter = ReplicaDeviceSetter::new();
        if let Some(tasks) = args.get("ps_tasks") {
            setter = setter.ps_tasks(tasks.as_u64().unwrap() as usize);
        }
        if let Some(device) = args.get("ps_device") {
            setter = setter.ps_device(device.as_str().unwrap());
        }
        if let Some(device) = args.get("worker_device") {
            setter = setter.worker_device(device.as_str().unwrap());
        }
        if let Some(merge) = args.get("merge_devices") {
            setter = setter.merge_devices(merge.as_bool().unwrap());
        }
        if args.get("ps_ops").is_some() {
            setter = setter.ps_ops(&["VarHandleOp", "NoOp"]);
        }
        if let Some(cluster) = args.get("cluster") {
            let spec = tensorfleet_cluster::ClusterSpec::from_json(cluster).unwrap();
            setter = setter.cluster(&spec);
        }
        let g = build(setter, *resource);
        let mut compared = 0;
        for op in g.operations() {
            // Helper nodes of initial values and gradients have other names.
            if let Some(device) = theirs.get(op.name()) {
                assert_eq!(
                    op.device(),
                    device.as_str().unwrap(),
                    "{} with {args}",
                    op.name()
                );
                compared += 1;
            }
        }
        assert!(compared >= 40, "only {compared} nodes have the same names");
    }
}
