//! `TensorShapeProto` ↔ [`Shape`] and [`PartialShape`].

use tensorfleet_proto::{TensorShapeProto, tensor_shape_proto::Dim};
use tensorfleet_status::{Result, invalid_argument};

use crate::shape::{Dims, MAX_RANK, PartialShape, Shape};

impl Shape {
    /// Decodes a fully known shape.
    pub fn from_proto(proto: &TensorShapeProto) -> Result<Shape> {
        if proto.unknown_rank {
            return Err(invalid_argument!(
                "a shape of unknown rank was given where every dimension must be known"
            ));
        }
        let dims: Dims = proto.dim.iter().map(|dim| dim.size).collect();
        Shape::new(&dims)
    }

    /// Encodes the dimensions.
    pub fn to_proto(&self) -> TensorShapeProto {
        encode(self)
    }
}

impl PartialShape {
    /// Decodes a shape that may be partly known.
    pub fn from_proto(proto: &TensorShapeProto) -> Result<PartialShape> {
        if proto.unknown_rank {
            if !proto.dim.is_empty() {
                return Err(invalid_argument!(
                    "a shape of unknown rank lists {} dimensions",
                    proto.dim.len()
                ));
            }
            return Ok(PartialShape::unknown());
        }
        if proto.dim.len() > MAX_RANK {
            return Err(invalid_argument!(
                "shape has {} dimensions, at most {MAX_RANK} are allowed",
                proto.dim.len()
            ));
        }
        let mut dims = Dims::new();
        for dim in &proto.dim {
            if dim.size < -1 {
                return Err(invalid_argument!(
                    "shape has dimension {}, which must be >= -1",
                    dim.size
                ));
            }
            dims.push(dim.size);
        }
        Ok(PartialShape::new(&dims))
    }

    /// Encodes what is known.
    pub fn to_proto(&self) -> TensorShapeProto {
        match self.dims() {
            Some(dims) => encode(dims),
            None => TensorShapeProto {
                dim: Vec::new(),
                unknown_rank: true,
            },
        }
    }
}

fn encode(dims: &[i64]) -> TensorShapeProto {
    let dim = dims
        .iter()
        .map(|size| Dim {
            size: *size,
            name: String::new(),
        })
        .collect();
    TensorShapeProto {
        dim,
        unknown_rank: false,
    }
}
