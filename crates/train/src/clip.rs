//! Gradients kept within bounds.

use tensorfleet_client::{Gradient, Output};
use tensorfleet_status::{Result, invalid_argument};

use crate::optimizer::{GradAndVar, Hyper};

/// The gradient with each element between two bounds. Of a sparse gradient only the rows it has.
pub fn clip_by_value(gradient: &Gradient, low: f64, high: f64) -> Gradient {
    let values = gradient.values();
    gradient.with_values(values.clip_by_value(low, high))
}

/// The gradient made shorter, if its length exceeds `norm`. Of a sparse gradient the rows' length, duplicates
/// not summed.
pub fn clip_by_norm(gradient: &Gradient, norm: impl Into<Hyper>) -> Gradient {
    let values = gradient.values();
    let g = values.graph();
    let _scope = g.name_scope("clip_by_norm");
    let norm = norm.into().tensor(g, "norm").cast(values.dtype());
    let norm = norm.maximum(norm.zeros_like());
    let squares = (values * values).sum(&[]);
    // The root of zero has no gradient: it is taken of one there.
    let some = squares.greater(squares.zeros_like());
    let select = |yes: &Output, no: &Output| {
        let node = g.op("SelectV2").input(&some);
        node.input(yes).input(no).output()
    };
    let safe = select(&squares, &squares.ones_like());
    let length = select(&safe.sqrt(), &squares);
    let clipped = values * &norm / length.maximum(norm);
    gradient.with_values(clipped.identity())
}

/// The length of all gradients as one vector; variables without a gradient are left out. Fails if there is
/// none at all.
pub fn global_norm(gradients: &[GradAndVar]) -> Result<Output> {
    let values: Vec<&Output> = gradients
        .iter()
        .filter_map(|(gradient, _)| gradient.as_ref().map(Gradient::values))
        .collect();
    let Some(first) = values.first() else {
        return Err(invalid_argument!(
            "there are no gradients to take the norm of"
        ));
    };
    let g = first.graph();
    let _scope = g.name_scope("global_norm");
    let halves: Vec<Output> = values
        .iter()
        .map(|value| {
            // Where the gradient is, so that only a scalar travels.
            let _near = g.colocate_with(&value.op());
            g.op("L2Loss").input(*value).output()
        })
        .collect();
    let sum = g.op("Pack").list(&halves).output().sum(&[]);
    Ok((sum * 2.0).sqrt())
}

/// The gradients, all made shorter by the same factor if their common length exceeds `norm`; and that
/// length. An infinite length makes all gradients NaN, to be noticed.
///
/// ```
/// use tensorfleet_client::{Graph, Session, init};
/// use tensorfleet_train::{GradientDescent, Minimize, Optimizer, clip_by_global_norm};
///
/// let g = Graph::new();
/// let w = g.variable("w", &[2]).initializer(init::constant(30.0)).build();
/// let optimizer = GradientDescent::new(1.0);
/// let gradients = optimizer.compute_gradients(&w.read().square().sum(&[]), &Minimize::default())?;
/// let (clipped, norm) = clip_by_global_norm(&gradients, 5.0)?;
/// let train = optimizer.apply_gradients(&clipped, &Minimize::default())?;
///
/// let session = Session::new(&g)?;
/// session.run(w.initializer())?;
/// let (norm, ()) = session.run((&norm, &train))?;
/// assert!((norm.to_scalar::<f32>()? - 60.0 * 2f32.sqrt()).abs() < 1e-3);
/// let moved = 30.0 - session.run(&w)?.slice::<f32>()?[0];
/// assert!((moved - 5.0 / 2f32.sqrt()).abs() < 1e-4);
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
pub fn clip_by_global_norm(
    gradients: &[GradAndVar],
    norm: impl Into<Hyper>,
) -> Result<(Vec<GradAndVar>, Output)> {
    let length = global_norm(gradients)?;
    let clipped = clip_by_this_norm(gradients, norm, &length);
    Ok((clipped, length))
}

/// Like [`clip_by_global_norm`] with a length that is known already, such as that of all towers.
pub fn clip_by_this_norm(
    gradients: &[GradAndVar],
    norm: impl Into<Hyper>,
    length: &Output,
) -> Vec<GradAndVar> {
    let g = length.graph();
    let _scope = g.name_scope("clip_by_global_norm");
    let norm = norm.into().tensor(g, "norm").cast(length.dtype());
    let scale = &norm * (1.0 / length).minimum(1.0 / &norm);
    // Zero, and NaN if the length is infinite.
    let finite = length * 0.0;
    let scale = scale + finite;
    let clip = |gradient: &Gradient| {
        let values = gradient.values();
        let _near = g.colocate_with(&values.op());
        gradient.with_values(values * scale.cast(values.dtype()))
    };
    gradients
        .iter()
        .map(|(gradient, variable)| (gradient.as_ref().map(clip), variable.clone()))
        .collect()
}
