//! Towers: the same model on several devices of one graph, each with its part of the batch, and their
//! gradients averaged.

use tensorfleet_client::{Gradient, Graph, IndexedSlices, Output, Reuse};
use tensorfleet_status::{Result, invalid_argument};

use crate::optimizer::GradAndVar;

/// Builds the model once for each device, in name scopes `tower_0`, `tower_1`, …. Variables found with
/// `get_variable` are made by the first tower and shared by the others.
///
/// ```
/// use tensorfleet_client::{Graph, Session, init};
/// use tensorfleet_train::{GradientDescent, Minimize, Optimizer, average_gradients, towers};
///
/// let g = Graph::new();
/// let optimizer = GradientDescent::new(0.5);
/// let devices = ["/cpu:0", "/cpu:0"];
/// let gradients = towers(&g, &devices, |tower| {
///     let w = g.get_variable("w", &[]).initializer(init::zeros()).build();
///     let part_of_the_batch = if tower == 0 { 1.0 } else { 3.0 };
///     let loss = (w.read() - part_of_the_batch).square();
///     optimizer.compute_gradients(&loss, &Minimize::default())
/// })?;
/// let train = optimizer.apply_gradients(&average_gradients(&gradients)?, &Minimize::default())?;
///
/// let session = Session::new(&g)?;
/// session.run(&g.global_variables_initializer())?;
/// session.run(&train)?;
/// let w = &g.global_variables()[0];
/// assert_eq!((w.name(), session.run(w)?.to_scalar::<f32>()?), ("w", 2.0));
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
pub fn towers<T>(
    g: &Graph,
    devices: &[&str],
    mut build: impl FnMut(usize) -> Result<T>,
) -> Result<Vec<T>> {
    let mut built = Vec::with_capacity(devices.len());
    for (index, device) in devices.iter().enumerate() {
        let reuse = if index == 0 {
            Reuse::Auto
        } else {
            Reuse::Always
        };
        let _shared = g.reuse_variables(reuse);
        let _device = g.device(device);
        let _name = g.name_scope(&format!("tower_{index}"));
        built.push(build(index)?);
    }
    g.check()?;
    Ok(built)
}

/// The mean of the towers' gradients, variable by variable. Sparse ones stay sparse: all rows, divided by
/// the number of towers. A variable is without a gradient only if all towers leave it so.
pub fn average_gradients(towers: &[Vec<GradAndVar>]) -> Result<Vec<GradAndVar>> {
    let Some((first, others)) = towers.split_first() else {
        return Err(invalid_argument!("there are no towers to average"));
    };
    let mut averaged = Vec::with_capacity(first.len());
    for (index, (gradient, variable)) in first.iter().enumerate() {
        let mut found: Vec<&Gradient> = gradient.iter().collect();
        for tower in others {
            let Some((gradient, _)) = tower.get(index).filter(|(_, v)| v.is(variable)) else {
                return Err(invalid_argument!(
                    "not all towers have variable '{}' at place {index}; make it with get_variable",
                    variable.name()
                ));
            };
            found.extend(gradient);
        }
        let _near = variable.graph().colocate_with(&variable.op());
        averaged.push((mean(&found, towers.len()), variable.clone()));
    }
    Ok(averaged)
}

fn mean(gradients: &[&Gradient], towers: usize) -> Option<Gradient> {
    let first = gradients.first()?;
    let g = first.values().graph();
    let count = towers as f64;
    let rows: Option<Vec<&IndexedSlices>> = gradients
        .iter()
        .map(|gradient| match gradient {
            Gradient::Sparse(rows) => Some(rows),
            Gradient::Dense(_) => None,
        })
        .collect();
    let Some(rows) = rows else {
        let dense: Vec<Output> = gradients.iter().map(|one| one.to_dense()).collect();
        let sum = g.op("AddN").list(&dense).output();
        return Some(Gradient::Dense(sum / count));
    };
    let concat = |part: fn(&IndexedSlices) -> &Output| {
        let parts: Vec<&Output> = rows.iter().map(|rows| part(rows)).collect();
        if let [only] = parts[..] {
            return only.clone();
        }
        let axis = g.constant(0i32);
        g.op("ConcatV2").list(&parts).input(axis).output()
    };
    Some(Gradient::Sparse(IndexedSlices {
        values: concat(|rows| &rows.values) / count,
        indices: concat(|rows| &rows.indices),
        dense_shape: rows.first()?.dense_shape.clone(),
    }))
}
