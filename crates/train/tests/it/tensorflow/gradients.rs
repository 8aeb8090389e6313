//! Clipping and averages.

use serde_json::json;
use tensorfleet_client::{Gradient, Graph, IndexedSlices, Session, init};
use tensorfleet_train::{
    ExponentialMovingAverage, clip_by_global_norm, clip_by_norm, clip_by_value,
};

use super::{ask, differences, values_by_name};

#[test]
fn clipping_agrees_with_tensorflow() {
    let norms = [0.5, 3.0, 100.0];
    let requests = norms.iter().map(
        |norm| json!({"values": [[0.3, -0.7, 0.1], [[1.0, 2.0], [-0.5, 0.25]]], "norm": norm}),
    );
    let Some(answers) = ask("clip", requests.collect()) else {
        return;
    };
    for (norm, theirs) in norms.into_iter().zip(&answers) {
        let g = Graph::new();
        let (v, w) = (
            g.variable("v", &[3]).build(),
            g.variable("w", &[4, 2]).build(),
        );
        let dense = Gradient::Dense(g.constant([0.3f32, -0.7, 0.1]));
        let sparse = Gradient::Sparse(IndexedSlices {
            values: g.constant([[1.0f32, 2.0], [-0.5, 0.25]]),
            indices: g.constant([2i32, 0]),
            dense_shape: g.constant([4i32, 2]),
        });
        let zeros = Gradient::Dense(g.constant([0.0f32, 0.0]));
        let gradients = [
            (Some(dense.clone()), v.clone()),
            (Some(sparse.clone()), w),
            (None, v),
        ];
        let (clipped, length) = clip_by_global_norm(&gradients, norm).unwrap();
        assert!(clipped[2].0.is_none());
        let value = |gradient: &Gradient| gradient.values().clone();
        let fetches = vec![
            value(clipped[0].0.as_ref().unwrap()),
            value(clipped[1].0.as_ref().unwrap()),
            length,
            value(&clip_by_norm(&dense, norm)),
            value(&clip_by_norm(&sparse, norm)),
            value(&clip_by_norm(&zeros, norm)),
            value(&clip_by_value(&dense, -0.5, 0.25)),
        ];
        let ours = Session::new(&g).unwrap().run(&fetches).unwrap();
        for (index, ours) in ours.iter().enumerate() {
            let difference = differences(&super::numbers(ours), &theirs[index], 1e-6);
            assert_eq!(difference, None, "norm {norm}, value {index}");
        }
    }
}

#[test]
fn moving_averages_agree_with_tensorflow() {
    let cases = [(false, false), (true, false), (true, true)];
    let requests = cases
        .iter()
        .map(|(updates, debias)| json!({"num_updates": updates, "zero_debias": debias}));
    let Some(answers) = ask("moving_average", requests.collect()) else {
        return;
    };
    for ((num_updates, zero_debias), theirs) in cases.into_iter().zip(&answers) {
        let g = Graph::new();
        let start = tensorfleet_client::Tensor::vector(&[1.0f32, 2.0]);
        let w = g
            .variable("w", &[2])
            .initializer(init::tensor(start))
            .build();
        let count = g.variable("count", &[]).trainable(false);
        let count = count.dtype(tensorfleet_client::DType::I32).build();
        let more = g.constant([1.0f32, 1.0]);
        let grow = [w.assign_add(&more), count.assign_add(g.constant(1i32))];
        let grow = g.group("grow", &grow);
        let tripled = g
            .op("Identity")
            .name("tripled")
            .input(w.read() * 3.0)
            .output();
        let mut averages = ExponentialMovingAverage::new(0.9);
        if num_updates {
            averages = averages.num_updates(&count);
        }
        if zero_debias {
            averages = averages.zero_debias();
        }
        let updates = [
            averages.apply(std::slice::from_ref(&w)).unwrap(),
            averages.apply_outputs(&[tripled]).unwrap(),
        ];
        let session = Session::new(&g).unwrap();
        session.run(&g.global_variables_initializer()).unwrap();
        for _ in 0..4 {
            session.run(&grow).unwrap();
            session.run(&updates[..]).unwrap();
        }
        let ours = values_by_name(&g, &session);
        for (name, values) in &ours {
            let difference = differences(values, &theirs[name], 1e-6);
            assert_eq!(difference, None, "{name} {num_updates} {zero_debias}");
        }
        let to_restore = averages.variables_to_restore(&g);
        let to_restore = to_restore
            .iter()
            .map(|(name, v)| (name.clone(), v.name().into()));
        let to_restore: serde_json::Map<String, serde_json::Value> = to_restore.collect();
        assert_eq!(serde_json::Value::from(to_restore), theirs["to_restore"]);
        assert_eq!(ours.len() + 1, theirs.as_object().unwrap().len());
    }
}
