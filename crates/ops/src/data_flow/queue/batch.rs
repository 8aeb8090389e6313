//! Many tuples as one: each component with a new dimension 0, padded with zeros where shapes differ.

use tensorfleet_math::movement::View;
use tensorfleet_math::par::Par;
use tensorfleet_status::Result;
use tensorfleet_tensor::{Dims, PartialShape, Shape, Tensor};

use super::spec::{Spec, Tuple};
use crate::array::moves;

/// The components of all tuples, one behind the other.
pub(super) fn batch(par: &dyn Par, spec: &Spec, tuples: &[Tuple]) -> Result<Tuple> {
    let components = spec.dtypes.iter().enumerate().map(|(index, dtype)| {
        let parts: Vec<&Tensor> = tuples.iter().filter_map(|tuple| tuple.get(index)).collect();
        let element = largest(&parts, spec.shapes.get(index))?;
        let shape = Shape::new(&[parts.len() as i64])?.concat(&element)?;
        if shape.elements() == 0 {
            return Tensor::new(*dtype, shape);
        }
        if parts.iter().all(|part| *part.shape() == element) {
            let parts: Vec<_> = parts.iter().map(|part| (*part, part.elements())).collect();
            return moves::concat(par, *dtype, &parts, shape);
        }
        let mut out = Tensor::zeros(*dtype, shape)?;
        for (row, part) in parts
            .iter()
            .enumerate()
            .filter(|(_, part)| !part.is_empty())
        {
            let view = corner(out.shape(), row, part.shape());
            moves::paste_view(part, &view, &mut out)?;
        }
        Ok(out)
    });
    components.collect()
}

/// The smallest shape that holds all parts; what is known of it and not of any part counts as 0.
fn largest(parts: &[&Tensor], known: Option<&PartialShape>) -> Result<Shape> {
    let mut dims: Dims = match (parts.first(), known.and_then(PartialShape::dims)) {
        (_, Some(known)) => known.iter().map(|dim| (*dim).max(0)).collect(),
        (Some(first), None) => first.shape().iter().copied().collect(),
        (None, None) => Dims::new(),
    };
    for part in parts {
        for (dim, other) in dims.iter_mut().zip(part.shape().iter()) {
            *dim = (*dim).max(*other);
        }
    }
    Shape::new(&dims)
}

/// The first elements in every dimension of row `row` of a tensor of shape `whole`.
pub(crate) fn corner(whole: &Shape, row: usize, part: &Shape) -> View {
    let mut begin = vec![0; whole.rank()];
    let mut sizes = vec![1];
    sizes.extend(moves::extents(part));
    if let Some(first) = begin.first_mut() {
        *first = row;
    }
    View::sliced(
        &moves::extents(whole),
        &begin,
        &vec![1; whole.rank()],
        &sizes,
    )
}
