//! Set operations: the last dimension of a tensor holds sets, the others say which.
//!
//! TensorFlow: DenseToDenseSetOperation, DenseToSparseSetOperation, SparseToSparseSetOperation (set1, set2) ->
//! (result_indices: int64, result_values: T, result_shape: int64), with set_operation `a-b`, `b-a`, `intersection` or
//! `union`; SetSize(set_indices, set_values, set_shape) -> size: int32. Values of a result are sorted within their set.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use tensorfleet_graph::example::{Example, ex, ex_attrs, ex_err, i32s, i64s, of, strs, x};
use tensorfleet_graph::{Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Code, Result, ensure, internal, invalid_argument};
use tensorfleet_tensor::{DType, Shape, TString, Tensor};

use super::parts::unravel;
use crate::math::cast::{from_integers, integers};
use crate::types::{SIGNED, dtypes};

const TYPES: &[DType] = dtypes![SIGNED, &[DType::U8, DType::U16, DType::String]];

const T: &str = "T: {int8, int16, int32, int64, uint8, uint16, string}";

const SET: OpDef = OpDef {
    outputs: &[
        "result_indices: int64",
        "result_values: T",
        "result_shape: int64",
    ],
    attrs: &["set_operation: string", "validate_indices: bool = true", T],
    gradient: Gradient::Stop("sets are not differentiated"),
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

const UNION: (&str, &str) = ("set_operation", "'union'");
const UNCHECKED: &[(&str, &str)] = &[("validate_indices", "false")];
const INTERSECTION: (&str, &str) = ("set_operation", "'intersection'");

const DENSE: &[Example] = &[
    ex_attrs(
        "intersection",
        &[INTERSECTION],
        &[
            x(&[2, 3], &[1.0, 2.0, 2.0, 3.0, 4.0, 1.0]),
            x(&[2, 2], &[2.0, 3.0, 4.0, 4.0]),
        ],
        &[
            i64s(&[2, 2], &[0, 0, 1, 0]),
            x(&[2], &[2.0, 4.0]),
            i64s(&[2], &[2, 1]),
        ],
    ),
    ex_attrs(
        "union of strings",
        &[UNION],
        &[strs(&[1, 2], &["b", "a"]), strs(&[1, 3], &["c", "a", "c"])],
        &[
            i64s(&[3, 2], &[0, 0, 0, 1, 0, 2]),
            strs(&[3], &["a", "b", "c"]),
            i64s(&[2], &[1, 3]),
        ],
    ),
    ex_attrs(
        "first without second",
        &[("set_operation", "'a-b'")],
        &[
            i32s(&[2, 3], &[1, 2, 2, 3, 4, 1]),
            i32s(&[2, 2], &[2, 3, 4, 4]),
        ],
        &[
            i64s(&[3, 2], &[0, 0, 1, 0, 1, 1]),
            i32s(&[3], &[1, 1, 3]),
            i64s(&[2], &[2, 2]),
        ],
    ),
    ex_attrs(
        "second without first",
        &[("set_operation", "'b-a'")],
        &[
            i32s(&[2, 3], &[1, 2, 2, 3, 4, 1]),
            i32s(&[2, 2], &[2, 3, 4, 4]),
        ],
        &[
            i64s(&[1, 2], &[0, 0]),
            i32s(&[1], &[3]),
            i64s(&[2], &[2, 1]),
        ],
    ),
    ex_attrs(
        "empty",
        &[INTERSECTION],
        &[i32s(&[2, 0], &[]), i32s(&[2, 3], &[0])],
        &[i64s(&[0, 2], &[]), i32s(&[0], &[]), i64s(&[2], &[2, 0])],
    ),
    ex_err(
        "groups differ",
        &[UNION],
        &[i32s(&[2, 3], &[0]), i32s(&[1, 2], &[0])],
        Code::InvalidArgument,
        "Mismatched shapes [2] vs [1]",
    ),
    ex_err(
        "rank",
        &[UNION],
        &[i32s(&[3], &[0]), i32s(&[2], &[0])],
        Code::InvalidArgument,
        "Shape [3] has rank 1 < 2",
    ),
    ex_err(
        "no such operation",
        &[("set_operation", "'x'")],
        &[i32s(&[1, 3], &[0]), i32s(&[1, 2], &[0])],
        Code::InvalidArgument,
        "Invalid set_operation x.",
    ),
];

pub(crate) static OPS: [OpDef; 4] = [
    OpDef {
        name: "DenseToDenseSetOperation",
        inputs: &["set1: T", "set2: T"],
        kernels: &[cpu(&[("T", TYPES)], |node| build(node, [false, false]))],
        examples: DENSE,
        ..SET
    },
    OpDef {
        name: "DenseToSparseSetOperation",
        inputs: &[
            "set1: T",
            "set2_indices: int64",
            "set2_values: T",
            "set2_shape: int64",
        ],
        kernels: &[cpu(&[("T", TYPES)], |node| build(node, [false, true]))],
        examples: &[
            ex_attrs(
                "intersection",
                &[INTERSECTION],
                &[
                    x(&[2, 3], &[1.0, 2.0, 2.0, 3.0, 4.0, 1.0]),
                    i64s(&[2, 2], &[0, 0, 1, 0]),
                    x(&[2], &[2.0, 4.0]),
                    i64s(&[2], &[2, 1]),
                ],
                &[
                    i64s(&[2, 2], &[0, 0, 1, 0]),
                    x(&[2], &[2.0, 4.0]),
                    i64s(&[2], &[2, 1]),
                ],
            ),
            ex_err(
                "order",
                &[UNION],
                &[
                    i32s(&[2, 3], &[0]),
                    i64s(&[2, 2], &[1, 0, 0, 0]),
                    i32s(&[2], &[2, 4]),
                    i64s(&[2], &[2, 1]),
                ],
                Code::InvalidArgument,
                "indices[1] = [0,0] is out of order",
            ),
            ex_err(
                "bounds",
                &[UNION],
                &[
                    i32s(&[2, 3], &[0]),
                    i64s(&[2, 2], &[0, 0, 1, 3]),
                    i32s(&[2], &[2, 4]),
                    i64s(&[2], &[2, 1]),
                ],
                Code::InvalidArgument,
                "indices[1] = [1,3] is out of bounds: need 0 <= index < [2,1]",
            ),
            ex_attrs(
                "sets outside of the shape, not validated",
                &[UNION, ("validate_indices", "false")],
                &[
                    i32s(&[2, 1], &[1, 3]),
                    i64s(&[2, 2], &[0, 0, 5, 0]),
                    i32s(&[2], &[7, 8]),
                    i64s(&[2], &[2, 3]),
                ],
                &[
                    i64s(&[3, 2], &[0, 0, 0, 1, 1, 0]),
                    i32s(&[3], &[1, 7, 3]),
                    i64s(&[2], &[2, 2]),
                ],
            ),
        ],
        ..SET
    },
    OpDef {
        name: "SetSize",
        inputs: &["set_indices: int64", "set_values: T", "set_shape: int64"],
        outputs: &["size: int32"],
        attrs: &["validate_indices: bool = true", T],
        kernels: &[cpu(&[("T", TYPES)], build_size)],
        examples: &[
            ex(
                "doubles count once",
                &[
                    i64s(&[3, 2], &[0, 0, 0, 1, 1, 0]),
                    x(&[3], &[1.0, 1.0, 2.0]),
                    i64s(&[2], &[3, 4]),
                ],
                &[of(DType::I32, &[3], &[1.0, 1.0, 0.0])],
            ),
            ex_attrs(
                "below the shape, not validated",
                UNCHECKED,
                &[
                    i64s(&[2, 2], &[0, -7, 1, 0]),
                    i32s(&[2], &[1]),
                    i64s(&[2], &[2, 3]),
                ],
                &[i32s(&[2], &[1, 1])],
            ),
            ex_err(
                "above the shape, not validated",
                UNCHECKED,
                &[
                    i64s(&[3, 2], &[0, 0, 1, 0, 1, 7]),
                    i32s(&[3], &[1]),
                    i64s(&[2], &[2, 3]),
                ],
                Code::Internal,
                "indices[1, 1] expected < 3, got 7.",
            ),
            ex_err(
                "scalar shape",
                &[],
                &[i64s(&[], &[1]), i32s(&[2], &[1]), i64s(&[], &[1])],
                Code::InvalidArgument,
                "Shape must be a 1D tensor.",
            ),
            ex_err(
                "rank of indices",
                &[],
                &[i64s(&[2, 2], &[0]), i32s(&[2], &[1]), i64s(&[3], &[2])],
                Code::InvalidArgument,
                "Order length must be SparseTensor rank.",
            ),
        ],
        ..SET
    },
    OpDef {
        name: "SparseToSparseSetOperation",
        inputs: &[
            "set1_indices: int64",
            "set1_values: T",
            "set1_shape: int64",
            "set2_indices: int64",
            "set2_values: T",
            "set2_shape: int64",
        ],
        kernels: &[cpu(&[("T", TYPES)], |node| build(node, [true, true]))],
        examples: &[ex_attrs(
            "union",
            &[UNION],
            &[
                i64s(&[2, 2], &[0, 0, 1, 0]),
                x(&[2], &[2.0, 5.0]),
                i64s(&[2], &[2, 1]),
                i64s(&[2, 2], &[0, 0, 1, 0]),
                x(&[2], &[2.0, 4.0]),
                i64s(&[2], &[2, 1]),
            ],
            &[
                i64s(&[3, 2], &[0, 0, 1, 0, 1, 1]),
                x(&[3], &[2.0, 4.0, 5.0]),
                i64s(&[2], &[2, 2]),
            ],
        )],
        ..SET
    },
];

/// What sets are made of: strings, or integers of any type as int64.
trait Member: Ord + Clone + 'static {
    /// The elements of a tensor.
    fn of(tensor: &Tensor) -> Result<Cow<'_, [Self]>>;

    /// A vector of `dtype`.
    fn vector(members: Vec<Self>, dtype: DType) -> Result<Tensor>;
}

impl Member for i64 {
    fn of(tensor: &Tensor) -> Result<Cow<'_, [i64]>> {
        match tensor.dtype() {
            DType::I64 => Ok(Cow::Borrowed(tensor.slice()?)),
            _ => Ok(Cow::Owned(integers(tensor)?)),
        }
    }

    fn vector(members: Vec<i64>, dtype: DType) -> Result<Tensor> {
        from_integers(&members, dtype, Shape::vector(members.len()))
    }
}

impl Member for TString {
    fn of(tensor: &Tensor) -> Result<Cow<'_, [TString]>> {
        Ok(Cow::Borrowed(tensor.slice()?))
    }

    fn vector(members: Vec<TString>, _: DType) -> Result<Tensor> {
        Tensor::from_vec(Shape::vector(members.len()), members)
    }
}

#[derive(Clone, Copy)]
enum Operation {
    FirstOnly,
    SecondOnly,
    Intersection,
    Union,
}

impl Operation {
    fn apply<V: Ord + Clone>(self, a: &BTreeSet<V>, b: &BTreeSet<V>) -> Vec<V> {
        match self {
            Operation::FirstOnly => a.difference(b).cloned().collect(),
            Operation::SecondOnly => b.difference(a).cloned().collect(),
            Operation::Intersection => a.intersection(b).cloned().collect(),
            Operation::Union => a.union(b).cloned().collect(),
        }
    }
}

/// Sets by the row-major position of their group.
struct Sets<V> {
    groups: Vec<i64>,
    by_group: BTreeMap<usize, BTreeSet<V>>,
}

fn build(node: &NodeInfo, is_sparse: [bool; 2]) -> Result<AnyKernel> {
    let operation = match node.attrs.str("set_operation")?.to_lowercase().as_str() {
        "a-b" => Operation::FirstOnly,
        "b-a" => Operation::SecondOnly,
        "intersection" => Operation::Intersection,
        "union" => Operation::Union,
        other => return Err(invalid_argument!("Invalid set_operation {other}.")),
    };
    let strays = match node.attrs.bool("validate_indices")? {
        true => Strays::Found,
        false if is_sparse[0] => Strays::Met,
        false => Strays::LeftOut,
    };
    let dtype = node.attrs.dtype("T")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| match dtype {
        DType::String => combine::<TString>(ctx, operation, is_sparse, strays, dtype),
        _ => combine::<i64>(ctx, operation, is_sparse, strays, dtype),
    })
}

/// What becomes of indices outside of the shape.
#[derive(Clone, Copy, PartialEq)]
enum Strays {
    /// All indices are checked beforehand, their order as well.
    Found,
    /// Without that, sets are checked when they are used, but not for negative indices.
    Met,
    /// The same, but sets outside of the shape are never used.
    LeftOut,
}

fn combine<V: Member>(
    ctx: &mut KernelCtx<'_>,
    operation: Operation,
    is_sparse: [bool; 2],
    strays: Strays,
    dtype: DType,
) -> Result<()> {
    let [first, second] = is_sparse;
    let a = read::<V>(ctx, 0, first, strays)?;
    let b = read::<V>(ctx, if first { 3 } else { 1 }, second, strays)?;
    if a.groups != b.groups {
        return Err(invalid_argument!(
            "Mismatched shapes {} vs {}",
            Shape::new(&a.groups)?,
            Shape::new(&b.groups)?
        ));
    }
    let none = BTreeSet::new();
    let keys: BTreeSet<usize> = a
        .by_group
        .keys()
        .chain(b.by_group.keys())
        .copied()
        .collect();
    let (mut indices, mut values, mut longest) = (Vec::new(), Vec::new(), 0);
    for key in keys {
        let (x, y) = (a.by_group.get(&key), b.by_group.get(&key));
        let result = operation.apply(x.unwrap_or(&none), y.unwrap_or(&none));
        longest = longest.max(result.len());
        let group = unravel(key, &a.groups);
        for (place, value) in result.into_iter().enumerate() {
            indices.extend_from_slice(&group);
            indices.push(place as i64);
            values.push(value);
        }
    }
    let rank = a.groups.len() + 1;
    let shape = [a.groups.as_slice(), &[longest as i64]].concat();
    ctx.set(
        0,
        Tensor::from_vec(Shape::matrix(values.len(), rank)?, indices)?,
    );
    ctx.set(1, V::vector(values, dtype)?);
    ctx.set(2, Tensor::vector(&shape));
    Ok(())
}

/// The sets that begin at input `first`.
fn read<V: Member>(
    ctx: &KernelCtx<'_>,
    first: usize,
    is_sparse: bool,
    strays: Strays,
) -> Result<Sets<V>> {
    if is_sparse {
        return read_sparse(ctx, first, strays);
    }
    let tensor = ctx.input(first)?;
    let groups = groups_of(tensor.shape())?;
    let mut by_group: BTreeMap<usize, BTreeSet<V>> = BTreeMap::new();
    let width = tensor.shape().dim(groups.len());
    for (group, set) in V::of(tensor)?.chunks_exact(width.max(1)).enumerate() {
        by_group.insert(group, set.iter().cloned().collect());
    }
    Ok(Sets { groups, by_group })
}

/// All dimensions but the last.
fn groups_of(shape: &Shape) -> Result<Vec<i64>> {
    ensure!(
        shape.rank() >= 2,
        invalid_argument,
        "Shape {shape} has rank {} < 2",
        shape.rank()
    );
    Ok(shape.dims()[..shape.rank() - 1].to_vec())
}

fn read_sparse<V: Member>(ctx: &KernelCtx<'_>, first: usize, strays: Strays) -> Result<Sets<V>> {
    let (indices, values) = (ctx.input(first)?, ctx.input(first + 1)?);
    ensure!(
        ctx.input(first + 2)?.rank() == 1,
        invalid_argument,
        "Shape must be a 1D tensor."
    );
    let shape = Shape::new(&ctx.ints(first + 2)?)?;
    let groups = groups_of(&shape)?;
    let rank = shape.rank();
    ensure!(
        indices.rank() == 2,
        invalid_argument,
        "indices must be a matrix, but got: {}",
        indices.shape()
    );
    ensure!(
        indices.shape().dim(1) == rank,
        invalid_argument,
        "Order length must be SparseTensor rank."
    );
    ensure!(
        values.rank() == 1,
        invalid_argument,
        "vals must be a vec, but got: {}",
        values.shape()
    );
    ensure!(
        values.elements() == indices.shape().dim(0),
        invalid_argument,
        "indices and values rows (indexing dimension) must match. (indices = {}, values = {})",
        indices.shape().dim(0),
        values.elements()
    );
    let rows = indices.slice::<i64>()?.chunks_exact(rank);
    let mut by_group: BTreeMap<usize, BTreeSet<V>> = BTreeMap::new();
    let (mut previous, mut begin): (Option<&[i64]>, usize) = (None, 0);
    for (at, (row, value)) in rows.zip(V::of(values)?.iter()).enumerate() {
        let group = &row[..groups.len()];
        if previous.is_some_and(|previous| &previous[..groups.len()] != group) {
            begin = at;
        }
        if strays == Strays::Found {
            check_row(at, row, previous, &shape)?;
        } else {
            let is_group = group.iter().zip(&groups).all(|(i, dim)| i < dim);
            if is_group || strays == Strays::Met {
                check_above(at - begin, row, &shape)?;
            }
        }
        previous = Some(row);
        let exists = |(i, dim): (&i64, &i64)| (0..*dim).contains(i);
        if !group.iter().zip(&groups).all(exists) {
            continue;
        }
        let places = row.iter().zip(groups.iter());
        let group = places.fold(0usize, |group, (i, dim)| {
            group * *dim as usize + *i as usize
        });
        by_group.entry(group).or_default().insert(value.clone());
    }
    Ok(Sets { groups, by_group })
}

fn check_row(at: usize, row: &[i64], previous: Option<&[i64]>, shape: &Shape) -> Result<()> {
    let is_inside = row
        .iter()
        .zip(shape.iter())
        .all(|(i, dim)| (0..*dim).contains(i));
    let list = |row: &[i64]| {
        let numbers: Vec<String> = row.iter().map(ToString::to_string).collect();
        numbers.join(",")
    };
    ensure!(
        is_inside,
        invalid_argument,
        "indices[{at}] = [{}] is out of bounds: need 0 <= index < {shape}",
        list(row)
    );
    match previous {
        Some(previous) if row < previous => Err(invalid_argument!(
            "indices[{at}] = [{}] is out of order. Many sparse ops require sorted indices.\n    Use `tf.sparse.reorder` to create a correctly ordered copy.\n\n",
            list(row)
        )),
        Some(previous) if row == previous => Err(invalid_argument!(
            "indices[{at}] = [{}] is repeated",
            list(row)
        )),
        _ => Ok(()),
    }
}

/// Refuses a row, the `at`-th of its set, that is above the shape.
fn check_above(at: usize, row: &[i64], shape: &Shape) -> Result<()> {
    for (dim, (index, size)) in row.iter().zip(shape.iter()).enumerate() {
        if index >= size {
            return Err(internal!(
                "indices[{at}, {dim}] expected < {size}, got {index}."
            ));
        }
    }
    Ok(())
}

fn build_size(node: &NodeInfo) -> Result<AnyKernel> {
    let strays = match node.attrs.bool("validate_indices")? {
        true => Strays::Found,
        false => Strays::Met,
    };
    let dtype = node.attrs.dtype("T")?;
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| match dtype {
        DType::String => sizes::<TString>(ctx, strays),
        _ => sizes::<i64>(ctx, strays),
    })
}

fn sizes<V: Member>(ctx: &mut KernelCtx<'_>, strays: Strays) -> Result<()> {
    let sets = read_sparse::<V>(ctx, 0, strays)?;
    let mut sizes = Tensor::zeros(DType::I32, Shape::new(&sets.groups)?)?;
    let slots = sizes.slice_mut::<i32>()?;
    for (group, set) in &sets.by_group {
        if let Some(slot) = slots.get_mut(*group) {
            *slot = i32::try_from(set.len()).unwrap_or(i32::MAX);
        }
    }
    ctx.set(0, sizes);
    Ok(())
}
