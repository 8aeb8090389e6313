//! Variables in parts, each of which may lie on another task.

use std::sync::Arc;

use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::DType;

use crate::graph::Graph;
use crate::ops;
use crate::output::{Operand, Output};
use crate::variable::{Part, Variable, VariableBuilder};

/// Decides into how many parts a variable is cut.
pub trait Partitioner: Send + Sync {
    /// The number of parts along each axis; more than one along at most one axis.
    fn parts(&self, dims: &[i64], dtype: DType) -> Result<Vec<i64>>;
}

impl<F: Fn(&[i64], DType) -> Result<Vec<i64>> + Send + Sync> Partitioner for F {
    fn parts(&self, dims: &[i64], dtype: DType) -> Result<Vec<i64>> {
        self(dims, dtype)
    }
}

impl Partitioner for Arc<dyn Partitioner> {
    fn parts(&self, dims: &[i64], dtype: DType) -> Result<Vec<i64>> {
        (**self).parts(dims, dtype)
    }
}

/// Always this many parts, at most one for each slice.
pub fn fixed_size_partitioner(shards: i64, axis: usize) -> impl Partitioner + Clone {
    move |dims: &[i64], _: DType| along(dims, axis, |slices, _| shards.min(slices))
}

/// As few parts as keep each below `max_shard_bytes`, but no more than `max_shards`.
pub fn variable_axis_size_partitioner(
    max_shard_bytes: i64,
    axis: usize,
    max_shards: Option<i64>,
) -> impl Partitioner + Clone {
    move |dims: &[i64], dtype: DType| {
        along(dims, axis, |slices, elements| {
            let slice_bytes = elements / slices.max(1) * bytes_of(dtype);
            let slices_per_part = (max_shard_bytes / slice_bytes.max(1)).max(1);
            let parts = slices.div_euclid(slices_per_part)
                + i64::from(slices.rem_euclid(slices_per_part) > 0);
            parts.min(max_shards.unwrap_or(parts))
        })
    }
}

/// As many parts as have at least `min_slice_bytes` each, but no more than `max_partitions`. TensorFlow's
/// default for the least size is 256 KiB.
pub fn min_max_variable_partitioner(
    max_partitions: i64,
    axis: usize,
    min_slice_bytes: i64,
) -> impl Partitioner + Clone {
    move |dims: &[i64], dtype: DType| {
        along(dims, axis, |slices, elements| {
            let bytes = elements * bytes_of(dtype);
            let least = min_slice_bytes.max(1);
            let wanted = bytes / least + i64::from(bytes % least > 0);
            slices.min(max_partitions).min(wanted)
        })
    }
}

/// What TensorFlow reckons a string with.
const STRING_BYTES: i64 = 16;

fn bytes_of(dtype: DType) -> i64 {
    dtype.size().map_or(STRING_BYTES, |size| size as i64)
}

/// Parts along one axis; `count` gets the number of slices along it and of all elements.
fn along(dims: &[i64], axis: usize, count: impl FnOnce(i64, i64) -> i64) -> Result<Vec<i64>> {
    let Some(slices) = dims.get(axis) else {
        return Err(invalid_argument!(
            "a variable of shape {dims:?} cannot be partitioned along axis {axis}"
        ));
    };
    let mut parts = vec![1; dims.len()];
    if let Some(here) = parts.get_mut(axis) {
        *here = count(*slices, dims.iter().product()).max(1);
    }
    Ok(parts)
}

/// A variable in parts. Wherever a tensor is wanted it stands for the parts joined.
///
/// ```
/// use tensorfleet_client::{Graph, Session, fixed_size_partitioner, init};
///
/// let g = Graph::new();
/// let table = g
///     .get_variable("table", &[5, 2])
///     .initializer(init::ones())
///     .partitioner(fixed_size_partitioner(2, 0))
///     .build();
/// assert_eq!(table.parts()[0].name(), "table/part_0");
/// assert_eq!((table.parts()[0].dims(), table.parts()[1].dims()), (&[3, 2][..], &[2, 2][..]));
///
/// let whole = table.concat();
/// let session = Session::new(&g)?;
/// session.run(&g.global_variables_initializer())?;
/// assert_eq!(session.run(&whole)?.slice::<f32>()?, [1.0; 10]);
/// # Ok::<(), tensorfleet_client::Status>(())
/// ```
#[derive(Clone, Debug)]
pub struct PartitionedVariable {
    graph: Graph,
    name: String,
    dims: Vec<i64>,
    axis: usize,
    parts: Vec<Variable>,
}

impl PartitionedVariable {
    /// The name of the whole, under which checkpoints have it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The shape of the whole.
    pub fn dims(&self) -> &[i64] {
        &self.dims
    }

    /// The axis along which it is cut.
    pub fn axis(&self) -> usize {
        self.axis
    }

    /// The parts in order.
    pub fn parts(&self) -> &[Variable] {
        &self.parts
    }

    /// All of it as one tensor, read here.
    #[track_caller]
    pub fn concat(&self) -> Output {
        match self.parts.as_slice() {
            [] => Output::new(&self.graph, None),
            [only] => only.read(),
            parts => {
                let axis = self.graph.constant(self.axis as i32);
                let _scope = self.graph.name_scope(&format!("{}/", self.name));
                ops::concat_v2(parts, axis)
                    .name("ConcatPartitions")
                    .output()
            }
        }
    }
}

impl Operand for PartitionedVariable {
    fn to_output(&self) -> Output {
        self.concat()
    }
}

/// A partitioned variable in the making. Made by [`VariableBuilder::partitioner`].
#[must_use = "nothing is added to the graph before `build`"]
pub struct PartitionedBuilder {
    builder: VariableBuilder,
    partitioner: Arc<dyn Partitioner>,
}

impl VariableBuilder {
    /// Cuts the variable into parts, which are found or made in the open variable scopes.
    pub fn partitioner(self, partitioner: impl Partitioner + 'static) -> PartitionedBuilder {
        PartitionedBuilder {
            builder: self,
            partitioner: Arc::new(partitioner),
        }
    }
}

impl PartitionedBuilder {
    /// Adds the parts, or finds them.
    #[track_caller]
    pub fn build(self) -> PartitionedVariable {
        let (graph, name, dims, dtype) = self.builder.target();
        let mut whole = PartitionedVariable {
            graph: graph.clone(),
            name: graph.variable_name(name),
            dims: dims.to_vec(),
            axis: 0,
            parts: Vec::new(),
        };
        let counts = self.partitioner.parts(dims, dtype);
        match counts.and_then(|counts| cut(dims, &counts)) {
            Err(status) => whole.graph.note(status.context(&whole.name)),
            Ok((axis, pieces)) => {
                whole.axis = axis;
                whole.parts = pieces
                    .into_iter()
                    .enumerate()
                    .map(|(index, piece)| self.part(&whole, index, piece))
                    .collect();
            }
        }
        whole
    }

    #[track_caller]
    fn part(&self, whole: &PartitionedVariable, index: usize, piece: Piece) -> Variable {
        let (_, name, ..) = self.builder.target();
        let mut builder = self
            .builder
            .resized(&format!("{name}/part_{index}"), &piece.dims);
        builder.shared = true;
        let part = Part {
            whole_name: whole.name.clone(),
            whole_dims: whole.dims.clone(),
            offset: piece.offset,
        };
        builder.part(part).build()
    }
}

/// Where a part is in the whole.
struct Piece {
    offset: Vec<i64>,
    dims: Vec<i64>,
}

/// The axis and the pieces. The first ones are longer by one where the axis does not divide evenly.
fn cut(dims: &[i64], counts: &[i64]) -> Result<(usize, Vec<Piece>)> {
    let mut cuts = counts.iter().enumerate().filter(|(_, count)| **count != 1);
    let first = cuts.next();
    if let Some((second, _)) = cuts.next() {
        return Err(invalid_argument!(
            "a variable can be partitioned along one axis only, not also along {second}: {counts:?}"
        ));
    }
    let (axis, count) = first.map_or((0, 1), |(axis, count)| (axis, *count));
    let length = dims.get(axis).copied().unwrap_or(1);
    if counts.len() != dims.len() || count < 1 || count > length.max(1) {
        return Err(invalid_argument!(
            "a variable of shape {dims:?} cannot be cut into {counts:?} parts"
        ));
    }
    let mut at = 0;
    let pieces = (0..count).map(|index| {
        let here = length / count + i64::from(index < length % count);
        let along_axis = |value: i64, otherwise: &dyn Fn(usize) -> i64| -> Vec<i64> {
            let axes = 0..dims.len();
            axes.map(|i| if i == axis { value } else { otherwise(i) })
                .collect()
        };
        let piece = Piece {
            offset: along_axis(at, &|_| 0),
            dims: along_axis(here, &|i| dims.get(i).copied().unwrap_or(0)),
        };
        at += here;
        piece
    });
    Ok((axis, pieces.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(partitioner: &dyn Partitioner, dims: &[i64]) -> Vec<i64> {
        partitioner.parts(dims, DType::F32).unwrap()
    }

    /// The numbers are what TensorFlow's partitioners give.
    #[test]
    fn partitioners_count_as_in_tensorflow() {
        assert_eq!(parts(&fixed_size_partitioner(3, 0), &[10, 4]), [3, 1]);
        assert_eq!(parts(&fixed_size_partitioner(30, 1), &[10, 4]), [1, 4]);
        let by_size = variable_axis_size_partitioner(64, 0, None);
        assert_eq!(parts(&by_size, &[10, 4]), [3, 1]);
        let at_most = variable_axis_size_partitioner(64, 0, Some(2));
        assert_eq!(parts(&at_most, &[10, 4]), [2, 1]);
        let min_max = min_max_variable_partitioner(16, 0, 256 << 10);
        assert_eq!(parts(&min_max, &[1024, 1024]), [16, 1]);
        assert_eq!(parts(&min_max, &[100, 100]), [1, 1]);
        assert!(
            fixed_size_partitioner(2, 2)
                .parts(&[3], DType::F32)
                .is_err()
        );
    }

    #[test]
    fn first_pieces_are_the_longer_ones() {
        let (axis, pieces) = cut(&[2, 7], &[1, 3]).unwrap();
        let found: Vec<(i64, i64)> = pieces.iter().map(|p| (p.offset[1], p.dims[1])).collect();
        assert_eq!((axis, found), (1, vec![(0, 3), (3, 2), (5, 2)]));
        assert!(cut(&[4, 4], &[2, 2]).is_err());
    }
}
