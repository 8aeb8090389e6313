//! [`Shape`], the fully known dimensions of a tensor, and [`PartialShape`], what is known before it runs.

use std::fmt;
use std::ops::Deref;

use smallvec::SmallVec;
use tensorfleet_status::{Result, invalid_argument};

/// TensorFlow's limit on the number of dimensions.
pub const MAX_RANK: usize = 254;

/// Dimension storage: ranks to four stay inline.
pub type Dims = SmallVec<[i64; 4]>;

/// The dimensions of a tensor: none negative, their product an `i64`. Dereferences to `[i64]`.
#[derive(PartialEq, Eq, Hash, Default)]
pub struct Shape(Dims);

// Scalars are cloned per edge of a graph: nothing to copy for them, and a plain copy for the rest.
impl Clone for Shape {
    #[inline]
    fn clone(&self) -> Shape {
        if self.0.is_empty() {
            Shape(Dims::new())
        } else {
            Shape(Dims::from_slice(&self.0))
        }
    }
}

impl Shape {
    /// The shape with these dimensions; negative ones, too many, or an overflowing product are errors.
    pub fn new(dims: &[i64]) -> Result<Shape> {
        if dims.len() > MAX_RANK {
            return Err(invalid_argument!(
                "shape has {} dimensions, at most {MAX_RANK} are allowed",
                dims.len()
            ));
        }
        let mut elements: i64 = 1;
        for &dim in dims {
            if dim < 0 {
                return Err(invalid_argument!(
                    "dimension {dim} must be >= 0 in shape {}",
                    DimList(dims)
                ));
            }
            // TensorFlow multiplies all dimensions, so [0, huge, huge] overflows there too.
            elements = match elements.checked_mul(dim.max(1)) {
                Some(product) => product,
                None => {
                    return Err(invalid_argument!(
                        "Encountered overflow when multiplying the dimensions of shape {}",
                        DimList(dims)
                    ));
                }
            };
        }
        Ok(Shape(Dims::from_slice(dims)))
    }

    /// The rank-0 shape.
    #[inline]
    pub fn scalar() -> Shape {
        Shape::default()
    }

    /// A rank-1 shape of `len` elements.
    pub fn vector(len: usize) -> Shape {
        Shape(Dims::from_slice(&[len as i64]))
    }

    /// A rank-2 shape.
    pub fn matrix(rows: usize, columns: usize) -> Result<Shape> {
        Shape::new(&[rows as i64, columns as i64])
    }

    /// The dimensions.
    pub fn dims(&self) -> &[i64] {
        &self.0
    }

    /// The number of dimensions.
    #[inline]
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// Dimension `axis` as a length; 1 beyond the rank.
    pub fn dim(&self, axis: usize) -> usize {
        self.0.get(axis).map_or(1, |dim| *dim as usize)
    }

    /// The number of elements.
    pub fn elements(&self) -> usize {
        self.0.iter().product::<i64>() as usize
    }

    /// The product of the dimensions in `range` (clamped to the rank).
    pub fn elements_in(&self, range: std::ops::Range<usize>) -> usize {
        let end = range.end.min(self.rank());
        self.0[range.start.min(end)..end].iter().product::<i64>() as usize
    }

    /// Resolves an axis that may count from the end.
    pub fn axis(&self, axis: i64) -> Result<usize> {
        let rank = self.rank() as i64;
        if axis < -rank || axis >= rank {
            return Err(invalid_argument!(
                "axis {axis} is out of range for shape {self}, expected [{}, {rank})",
                -rank
            ));
        }
        Ok((if axis < 0 { axis + rank } else { axis }) as usize)
    }

    /// Element strides of the row-major layout.
    pub fn strides(&self) -> SmallVec<[usize; 4]> {
        let mut strides = SmallVec::from_elem(1, self.rank());
        for axis in (0..self.rank().saturating_sub(1)).rev() {
            strides[axis] = strides[axis + 1] * self.dim(axis + 1);
        }
        strides
    }

    /// A copy with dimension `axis` replaced.
    pub fn with_dim(&self, axis: usize, dim: i64) -> Result<Shape> {
        let mut dims = self.0.clone();
        match dims.get_mut(axis) {
            Some(slot) => *slot = dim,
            None => {
                return Err(invalid_argument!(
                    "axis {axis} is out of range for shape {self}"
                ));
            }
        }
        Shape::new(&dims)
    }

    /// `self` followed by `other`.
    pub fn concat(&self, other: &[i64]) -> Result<Shape> {
        let mut dims = self.0.clone();
        dims.extend_from_slice(other);
        Shape::new(&dims)
    }
}

impl Deref for Shape {
    type Target = [i64];
    fn deref(&self) -> &[i64] {
        &self.0
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        DimList(&self.0).fmt(f)
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Prints dimensions as TensorFlow does: `[2,3]`, unknown ones as `?`.
struct DimList<'a>(&'a [i64]);

impl fmt::Display for DimList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (index, dim) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            if *dim < 0 {
                write!(f, "{comma}?")?;
            } else {
                write!(f, "{comma}{dim}")?;
            }
        }
        f.write_str("]")
    }
}

/// What is known of a shape: nothing, its rank, or some of its dimensions.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct PartialShape(Option<Dims>);

/// An unknown dimension in a [`PartialShape`], as on the wire.
pub const UNKNOWN_DIM: i64 = -1;

impl PartialShape {
    /// Unknown rank.
    pub const fn unknown() -> PartialShape {
        PartialShape(None)
    }

    /// Known rank; any negative dimension is unknown.
    pub fn new(dims: &[i64]) -> PartialShape {
        PartialShape(Some(
            dims.iter().map(|dim| (*dim).max(UNKNOWN_DIM)).collect(),
        ))
    }

    /// Known rank, no dimension known.
    pub fn of_rank(rank: usize) -> PartialShape {
        PartialShape(Some(Dims::from_elem(UNKNOWN_DIM, rank)))
    }

    /// The rank-0 shape.
    pub fn scalar() -> PartialShape {
        PartialShape::new(&[])
    }

    /// The dimensions if the rank is known, unknown ones as [`UNKNOWN_DIM`].
    pub fn dims(&self) -> Option<&[i64]> {
        self.0.as_deref()
    }

    /// The rank if known.
    pub fn rank(&self) -> Option<usize> {
        self.0.as_ref().map(SmallVec::len)
    }

    /// Dimension `axis` if rank and dimension are known.
    pub fn dim(&self, axis: usize) -> Option<i64> {
        self.0.as_ref()?.get(axis).copied().filter(|dim| *dim >= 0)
    }

    /// The shape if every dimension is known.
    pub fn to_shape(&self) -> Option<Shape> {
        let dims = self.0.as_ref()?;
        if dims.iter().any(|dim| *dim < 0) {
            return None;
        }
        Shape::new(dims).ok()
    }

    /// Whether `shape` is one of the shapes this describes.
    pub fn admits(&self, shape: &[i64]) -> bool {
        match &self.0 {
            None => true,
            Some(dims) => {
                dims.len() == shape.len()
                    && dims
                        .iter()
                        .zip(shape)
                        .all(|(want, got)| *want < 0 || want == got)
            }
        }
    }

    /// The knowledge of both together; an error where they contradict.
    pub fn merge(&self, other: &PartialShape) -> Result<PartialShape> {
        let (Some(left), Some(right)) = (&self.0, &other.0) else {
            return Ok(if self.0.is_some() {
                self.clone()
            } else {
                other.clone()
            });
        };
        if left.len() != right.len() {
            return Err(invalid_argument!(
                "shapes must be equal rank, but are {} and {}: {self} and {other}",
                left.len(),
                right.len()
            ));
        }
        let mut dims = Dims::new();
        for (a, b) in left.iter().zip(right) {
            if *a >= 0 && *b >= 0 && a != b {
                return Err(invalid_argument!(
                    "dimensions must be equal, but are {a} and {b}: {self} and {other}"
                ));
            }
            dims.push((*a).max(*b));
        }
        Ok(PartialShape(Some(dims)))
    }
}

impl From<&Shape> for PartialShape {
    fn from(shape: &Shape) -> PartialShape {
        PartialShape(Some(shape.0.clone()))
    }
}

impl fmt::Display for PartialShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(dims) => DimList(dims).fmt(f),
            None => f.write_str("<unknown>"),
        }
    }
}

impl fmt::Debug for PartialShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_negative_and_overflowing_dims() {
        assert!(Shape::new(&[-1]).is_err());
        assert!(Shape::new(&[i64::MAX, 2]).is_err());
        assert!(Shape::new(&[0, i64::MAX, i64::MAX]).is_err());
        assert!(Shape::new(&[1; MAX_RANK + 1]).is_err());
        assert_eq!(Shape::new(&[2, 0, 3]).unwrap().elements(), 0);
    }

    #[test]
    fn axes_count_from_both_ends() {
        let shape = Shape::new(&[2, 3]).unwrap();
        assert_eq!(shape.axis(-1).unwrap(), 1);
        assert_eq!(shape.axis(0).unwrap(), 0);
        assert!(shape.axis(2).is_err());
        assert!(shape.axis(-3).is_err());
        assert_eq!(shape.strides().as_slice(), &[3, 1]);
        assert_eq!(shape.to_string(), "[2,3]");
    }

    #[test]
    fn partial_shapes_merge_what_is_known() {
        let a = PartialShape::new(&[-1, 3]);
        let b = PartialShape::new(&[2, -1]);
        assert_eq!(a.merge(&b).unwrap(), PartialShape::new(&[2, 3]));
        assert_eq!(a.merge(&PartialShape::unknown()).unwrap(), a);
        assert!(a.merge(&PartialShape::new(&[2, 4])).is_err());
        assert!(a.merge(&PartialShape::new(&[2])).is_err());
        assert!(a.admits(&[7, 3]) && !a.admits(&[7, 4]));
        assert_eq!(a.to_string(), "[?,3]");
    }
}
