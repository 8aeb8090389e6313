//! [`TensorSlice`]: a box cut out of a tensor, and the text form that SaveV2 and RestoreV2 take.
//!
//! Text of a slice: `start,length` per dimension, joined by `:`; `-` stands for a whole dimension.
//! Text of a partition: the dimensions of the full tensor, then the slice, all separated by blanks,
//! such as `5 2 0,3:-` for rows 0 to 2 of a tensor of shape `[5,2]`.

use std::fmt;

use tensorfleet_status::{Result, internal, invalid_argument};

/// A range of one dimension; no length means all of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Extent {
    /// First index.
    pub start: i64,
    /// How many, or all.
    pub length: Option<i64>,
}

impl Extent {
    /// The whole dimension.
    pub const FULL: Extent = Extent {
        start: 0,
        length: None,
    };

    /// `length` indices from `start` on.
    pub fn part(start: i64, length: i64) -> Extent {
        Extent {
            start,
            length: Some(length),
        }
    }
}

/// One [`Extent`] per dimension.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct TensorSlice {
    extents: Vec<Extent>,
}

/// A slice with its numbers filled in: `(start, length)` per dimension, inside the full shape.
pub(crate) type Ranges = Vec<(i64, i64)>;

impl TensorSlice {
    /// A slice with these extents; starts must not be negative, lengths must be positive.
    pub fn new(extents: Vec<Extent>) -> Result<TensorSlice> {
        for extent in &extents {
            if extent.start < 0 || extent.length.is_some_and(|length| length <= 0) {
                return Err(bad_extent(extent.start, extent.length.unwrap_or(-1)));
            }
        }
        Ok(TensorSlice { extents })
    }

    /// The slice that is all of a tensor of this rank.
    pub fn full(rank: usize) -> TensorSlice {
        TensorSlice {
            extents: vec![Extent::FULL; rank],
        }
    }

    /// Parses text such as `0,3:-`.
    pub fn parse(text: &str) -> Result<TensorSlice> {
        let mut extents = Vec::new();
        for part in text.split(':').filter(|part| !part.is_empty()) {
            if part == "-" {
                extents.push(Extent::FULL);
                continue;
            }
            let pair = part.split_once(',').and_then(|(start, length)| {
                Some((
                    start.trim().parse::<i64>().ok()?,
                    length.trim().parse::<i64>().ok()?,
                ))
            });
            let Some((start, length)) = pair else {
                return Err(invalid_argument!(
                    "Expected a pair of numbers or '-' but got '{part}': string = {text}"
                ));
            };
            if start < 0 || length <= 0 {
                return Err(bad_extent(start, length).append(format_args!(": string = {text}")));
            }
            extents.push(Extent {
                start,
                length: Some(length),
            });
        }
        Ok(TensorSlice { extents })
    }

    /// The extents.
    pub fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.extents.len()
    }

    /// The slice's place inside a tensor of these dimensions.
    pub(crate) fn ranges(&self, dims: &[i64]) -> Result<Ranges> {
        if dims.len() != self.rank() {
            return Err(internal!(
                "Mismatching ranks: shape = {}, slice = {self}",
                DimList(dims)
            ));
        }
        let mut ranges = Vec::with_capacity(dims.len());
        for (axis, (extent, &dim)) in self.extents.iter().zip(dims).enumerate() {
            let range = match extent.length {
                None => (0, dim),
                Some(length) => (extent.start, length),
            };
            if range.0.checked_add(range.1).is_none_or(|end| end > dim) {
                return Err(internal!(
                    "Extent in dimension {axis} out of bounds: shape = {}, slice = {self}",
                    DimList(dims)
                ));
            }
            ranges.push(range);
        }
        Ok(ranges)
    }

    /// Whether this is all of a tensor of these dimensions.
    pub fn covers(&self, dims: &[i64]) -> bool {
        self.rank() == dims.len()
            && self.extents.iter().zip(dims).all(|(extent, dim)| {
                extent
                    .length
                    .is_none_or(|length| extent.start == 0 && length == *dim)
            })
    }
}

impl fmt::Display for TensorSlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (axis, extent) in self.extents.iter().enumerate() {
            if axis > 0 {
                f.write_str(":")?;
            }
            match extent.length {
                None => f.write_str("-")?,
                Some(length) => write!(f, "{},{length}", extent.start)?,
            }
        }
        Ok(())
    }
}

/// A slice of a tensor together with the full tensor's dimensions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShapeAndSlice {
    /// Dimensions of the full tensor.
    pub full_dims: Vec<i64>,
    /// The part of it.
    pub slice: TensorSlice,
}

impl ShapeAndSlice {
    /// Parses a `shape_and_slices` element; the empty string, a whole tensor, is `None`.
    pub fn parse(text: &str) -> Result<Option<ShapeAndSlice>> {
        if text.is_empty() {
            return Ok(None);
        }
        let Some((dims, slice)) = text.rsplit_once(' ') else {
            return Err(invalid_argument!(
                "Need least two elements in shape_and_slice specification: {text}"
            ));
        };
        let mut full_dims = Vec::new();
        for dim in dims.split(' ') {
            match dim.parse::<i64>() {
                Ok(dim) if dim >= 0 => full_dims.push(dim),
                _ => {
                    return Err(invalid_argument!(
                        "Non numerical dimension in shape_and_slice: {text}"
                    ));
                }
            }
        }
        let parsed = ShapeAndSlice {
            full_dims,
            slice: TensorSlice::parse(slice)?,
        };
        parsed.slice.ranges(&parsed.full_dims)?;
        Ok(Some(parsed))
    }

    /// The dimensions of the part.
    pub fn dims(&self) -> Result<Vec<i64>> {
        Ok(self
            .slice
            .ranges(&self.full_dims)?
            .into_iter()
            .map(|(_, length)| length)
            .collect())
    }
}

/// Dimensions as TensorFlow prints them: `[2,3]`.
pub(crate) struct DimList<'a>(pub(crate) &'a [i64]);

impl fmt::Display for DimList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (axis, dim) in self.0.iter().enumerate() {
            write!(f, "{}{dim}", if axis > 0 { "," } else { "" })?;
        }
        f.write_str("]")
    }
}

fn bad_extent(start: i64, length: i64) -> tensorfleet_status::Status {
    invalid_argument!(
        "Expected non-negative start and positive length but got start = {start}, length = {length}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensorfleet_status::Code;

    #[test]
    fn partitions_parse() {
        let parsed = ShapeAndSlice::parse("5 2 0,3:-").unwrap().unwrap();
        assert_eq!(parsed.full_dims, [5, 2]);
        assert_eq!(parsed.slice.to_string(), "0,3:-");
        assert_eq!(parsed.dims().unwrap(), [3, 2]);
        assert!(!parsed.slice.covers(&[5, 2]));
        assert!(TensorSlice::parse("-:0,2").unwrap().covers(&[5, 2]));
        assert_eq!(ShapeAndSlice::parse("").unwrap(), None);
    }

    #[test]
    fn bad_text_gives_tensorflows_errors() {
        let check = |text: &str, code: Code, message: &str| {
            let error = ShapeAndSlice::parse(text).unwrap_err();
            assert_eq!(
                (error.code(), error.message()),
                (code, message),
                "for {text:?}"
            );
        };
        use Code::{Internal, InvalidArgument};
        check(
            "abc",
            InvalidArgument,
            "Need least two elements in shape_and_slice specification: abc",
        );
        check(
            "2 a -:-",
            InvalidArgument,
            "Non numerical dimension in shape_and_slice: 2 a -:-",
        );
        check(
            "2 2  -:-",
            InvalidArgument,
            "Non numerical dimension in shape_and_slice: 2 2  -:-",
        );
        check(
            " ",
            InvalidArgument,
            "Non numerical dimension in shape_and_slice:  ",
        );
        check(
            "-2 2 -:-",
            InvalidArgument,
            "Non numerical dimension in shape_and_slice: -2 2 -:-",
        );
        check(
            "2 2 0,2",
            Internal,
            "Mismatching ranks: shape = [2,2], slice = 0,2",
        );
        check(
            "2 2 0,3:0,2",
            Internal,
            "Extent in dimension 0 out of bounds: shape = [2,2], slice = 0,3:0,2",
        );
        check(
            "2 2 x,2:-",
            InvalidArgument,
            "Expected a pair of numbers or '-' but got 'x,2': string = x,2:-",
        );
        check(
            "2 2 0,2,3:-",
            InvalidArgument,
            "Expected a pair of numbers or '-' but got '0,2,3': string = 0,2,3:-",
        );
        check(
            "2 2 0,0:-",
            InvalidArgument,
            "Expected non-negative start and positive length but got start = 0, length = 0: string = 0,0:-",
        );
        check(
            "9223372036854775807 9223372036854775807,9223372036854775807",
            Internal,
            "Extent in dimension 0 out of bounds: shape = [9223372036854775807], slice = 9223372036854775807,9223372036854775807",
        );
    }
}
