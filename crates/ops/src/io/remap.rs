//! `GenerateVocabRemapping`, `LoadAndRemapMatrix`: rows of a checkpoint for another vocabulary.
//!
//! TensorFlow: GenerateVocabRemapping(new_vocab_file: string, old_vocab_file: string) -> (remapping: int64, num_present:
//! int32), where each new word is in the old file or -1, with attrs new_vocab_offset, num_new_vocab: int and old_vocab_size:
//! int = -1; LoadAndRemapMatrix(ckpt_path: string, old_tensor_name: string, row_remapping: int64, col_remapping: int64,
//! initializing_values: float) -> output_matrix: float, with attrs num_rows, num_cols: int and max_rows_in_memory: int = -1.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;
use tensorfleet_checkpoint::bundle::BundleReader;
use tensorfleet_checkpoint::slice::{Extent, TensorSlice};
use tensorfleet_graph::example::script;
use tensorfleet_graph::infer::InferCtx;
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, ensure, failed_precondition, invalid_argument, unimplemented};
use tensorfleet_tensor::{DType, PartialShape, Shape, TString, Tensor};

use super::lines::Lines;
use super::text;

const REMAP: OpDef = OpDef {
    gradient: Gradient::Stop("files are not differentiated"),
    cost: Cost::Expensive,
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

// Scripts can only show failures: where files may be written, only a test can say.
pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "GenerateVocabRemapping",
        inputs: &["new_vocab_file: string", "old_vocab_file: string"],
        outputs: &["remapping: int64", "num_present: int32"],
        attrs: &[
            "new_vocab_offset: int >= 0",
            "num_new_vocab: int >= 0",
            "old_vocab_size: int >= -1 = -1",
        ],
        infer: infer_remapping,
        kernels: &[cpu(&[], build_remapping)],
        scripts: &[script(
            "missing files",
            "n = string[]{no/such/new}
             o = string[]{no/such/old}
             e = string[]{''}
             r = GenerateVocabRemapping(n, o) {new_vocab_offset=0, num_new_vocab=1}
             s = GenerateVocabRemapping(e, o) {new_vocab_offset=0, num_new_vocab=1}",
            &[
                "fetch r:0 fails NOT_FOUND no/such/new",
                "fetch s:0 fails INVALID_ARGUMENT new vocab filename cannot be empty.",
            ],
        )],
        ..REMAP
    },
    OpDef {
        name: "LoadAndRemapMatrix",
        inputs: &[
            "ckpt_path: string",
            "old_tensor_name: string",
            "row_remapping: int64",
            "col_remapping: int64",
            "initializing_values: float",
        ],
        outputs: &["output_matrix: float"],
        attrs: &[
            "num_rows: int >= 0",
            "num_cols: int >= 1",
            "max_rows_in_memory: int = -1",
        ],
        stateful: true,
        infer: infer_matrix,
        kernels: &[cpu(&[], build_matrix)],
        scripts: &[script(
            "missing files, wrong sizes",
            "p = string[]{no/such/checkpoint}
             t = string[]{w}
             rows = int64[2]{0, 1}
             none = int64[0]{}
             init = float[0]{}
             m = LoadAndRemapMatrix(p, t, rows, none, init) {num_rows=2, num_cols=1}
             n = LoadAndRemapMatrix(p, t, rows, none, init) {num_rows=3, num_cols=1}
             o = LoadAndRemapMatrix(p, t, rows, rows, init) {num_rows=2, num_cols=1}",
            &[
                "fetch m fails NOT_FOUND no/such/checkpoint",
                "fetch n fails INVALID_ARGUMENT ",
                "fetch o fails INVALID_ARGUMENT Provided col_remapping, but its size is 2 instead of being equal to num_cols=1",
            ],
        )],
        ..REMAP
    },
];

fn infer_remapping(ctx: &mut InferCtx<'_>) -> Result<()> {
    ctx.set(0, PartialShape::new(&[ctx.attrs().int("num_new_vocab")?]));
    ctx.set(1, PartialShape::scalar());
    Ok(())
}

fn infer_matrix(ctx: &mut InferCtx<'_>) -> Result<()> {
    let dims = [ctx.attrs().int("num_rows")?, ctx.attrs().int("num_cols")?];
    ctx.set(0, PartialShape::new(&dims));
    Ok(())
}

fn build_remapping(node: &NodeInfo) -> Result<AnyKernel> {
    let count = |name: &str| {
        let count = node.attrs.int(name)?;
        usize::try_from(count).map_err(|_| invalid_argument!("{name} must be >= 0, got {count}"))
    };
    let (offset, count) = (count("new_vocab_offset")?, count("num_new_vocab")?);
    let old_size = usize::try_from(node.attrs.int("old_vocab_size")?).ok();
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let new_words = words(&file(ctx, 0, "new_vocab_file")?, None)?;
        let wanted = offset
            .checked_add(count)
            .and_then(|end| new_words.get(offset..end));
        let Some(wanted) = wanted else {
            return Err(invalid_argument!(
                "lookup table size must be larger than last new vocab entry's line"
            ));
        };
        let old_words = words(&file(ctx, 1, "old_vocab_file")?, old_size)?;
        let mut ids: FxHashMap<&[u8], i64> = FxHashMap::default();
        for (id, word) in old_words.iter().enumerate() {
            match ids.entry(word) {
                Entry::Vacant(slot) => {
                    slot.insert(id as i64);
                }
                Entry::Occupied(slot) => {
                    return Err(failed_precondition!(
                        "HashTable has different value for same key. Key {} has {} and trying to add value {id}",
                        String::from_utf8_lossy(word),
                        slot.get()
                    ));
                }
            }
        }
        let remapping: Vec<i64> = wanted
            .iter()
            .map(|word| ids.get(word.as_slice()).copied().unwrap_or(-1))
            .collect();
        let present = remapping.iter().filter(|id| **id >= 0).count();
        ctx.set(0, Tensor::vector(&remapping));
        ctx.set(
            1,
            Tensor::scalar(i32::try_from(present).unwrap_or(i32::MAX)),
        );
        Ok(())
    })
}

/// The name of a file.
fn file(ctx: &KernelCtx<'_>, index: usize, input: &str) -> Result<TString> {
    let name = ctx.input(index)?;
    ensure!(
        name.rank() == 0,
        invalid_argument,
        "{input} should be a single string, but got {}",
        name.shape()
    );
    let name = name.to_scalar::<TString>()?;
    ensure!(
        !name.is_empty(),
        invalid_argument,
        "new vocab filename cannot be empty."
    );
    Ok(name)
}

/// The lines of a file: all, or the first `count`.
fn words(path: &TString, count: Option<usize>) -> Result<Vec<Vec<u8>>> {
    let mut lines = Lines::open(&text(path)?)?;
    let mut words = Vec::new();
    while count.is_none_or(|count| words.len() < count)
        && let Some(line) = lines.next_line()?
    {
        words.push(line);
    }
    if let Some(count) = count {
        ensure!(
            words.len() == count,
            invalid_argument,
            "Invalid vocab_size in {}: expected {count} but got {}",
            String::from_utf8_lossy(path),
            words.len()
        );
    }
    Ok(words)
}

fn build_matrix(node: &NodeInfo) -> Result<AnyKernel> {
    let rows = node.attrs.int("num_rows")?;
    let columns = node.attrs.int("num_cols")?;
    // At most so many rows of the old matrix at a time.
    let most = node.attrs.int("max_rows_in_memory")?;
    let most = if most <= 0 { i64::MAX } else { most };
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let row_map = ctx.input(2)?;
        ensure!(
            row_map.rank() == 1,
            invalid_argument,
            "The `row_remapping` tensor must be 1-D, got a tensor of shape {}",
            row_map.shape()
        );
        let (row_map, column_map) = (row_map.slice::<i64>()?, ctx.input(3)?.slice::<i64>()?);
        ensure!(
            row_map.len() as i64 == rows,
            invalid_argument,
            "Size of row_remapping is {} instead of being equal to num_rows={rows}",
            row_map.len()
        );
        ensure!(
            column_map.is_empty() || column_map.len() as i64 == columns,
            invalid_argument,
            "Provided col_remapping, but its size is {} instead of being equal to num_cols={columns}",
            column_map.len()
        );
        let path = one_text(ctx, 0, "ckpt_path")?;
        let name = one_text(ctx, 1, "old_tensor_name")?;
        let reader = BundleReader::open(&path)?;
        let (old_rows, old_columns) = old_size(&reader, &name)?;
        let new_rows = Inverse::of(row_map, old_rows, "Row", "rows")?;
        // Only checked: columns are copied by the map itself.
        Inverse::of(column_map, old_columns, "Col", "columns")?;
        ensure!(
            !column_map.is_empty() || columns == old_columns,
            invalid_argument,
            "Tensor {name} has shape [{old_rows},{old_columns}], where the size of its 2nd dimension is {old_columns} instead of being equal to num_cols={columns}"
        );

        let mut out = Tensor::new(DType::F32, Shape::new(&[rows, columns])?)?;
        let width = columns as usize;
        let target = out.slice_mut::<f32>()?;
        let (mut first, end) = (new_rows.first, new_rows.end);
        while first < end {
            let count = most.min(end - first);
            let slice = TensorSlice::new(vec![Extent::part(first, count), Extent::FULL])?;
            let loaded = reader.read_slice(name.as_bytes(), &slice)?;
            let old = loaded.slice::<f32>()?;
            for (values, row) in old.chunks_exact(old_columns.max(1) as usize).zip(first..) {
                let Some(new_row) = new_rows.ids.get(&row) else {
                    continue;
                };
                let place = new_row * width..(new_row + 1) * width;
                let Some(target) = target.get_mut(place) else {
                    continue;
                };
                if column_map.is_empty() {
                    // INVARIANT: without a map, there are as many columns as before.
                    target.copy_from_slice(values);
                }
                for (target, old) in target.iter_mut().zip(column_map) {
                    let value = usize::try_from(*old).ok().and_then(|old| values.get(old));
                    if let Some(value) = value {
                        *target = *value;
                    }
                }
            }
            first += count;
        }
        fill(
            target,
            row_map,
            column_map,
            width,
            ctx.input(4)?.slice::<f32>()?,
        )?;
        ctx.set(0, out);
        Ok(())
    })
}

/// The one text in input `index`.
fn one_text(ctx: &KernelCtx<'_>, index: usize, input: &str) -> Result<String> {
    let tensor = ctx.input(index)?;
    match tensor.slice::<TString>()? {
        [one] => text(one),
        _ => Err(invalid_argument!(
            "The `{input}` tensor must have exactly one element, got tensor of shape {}",
            tensor.shape()
        )),
    }
}

/// The rows and columns of the tensor in the checkpoint.
fn old_size(reader: &BundleReader, name: &str) -> Result<(i64, i64)> {
    let (dtype, shape) = reader.dtype_and_shape(name.as_bytes())?;
    ensure!(
        dtype == DType::F32,
        invalid_argument,
        "Tensor {name} has invalid type {dtype} instead of expected type float"
    );
    match shape.dims() {
        [rows, columns] => Ok((*rows, *columns)),
        dims => Err(invalid_argument!(
            "Tensor {name} has shape {shape} of invalid rank {} instead of expected shape of rank 2.",
            dims.len()
        )),
    }
}

/// Where old rows or columns go.
struct Inverse {
    ids: FxHashMap<i64, usize>,
    /// The first old one that is used, and the one behind the last.
    first: i64,
    end: i64,
}

impl Inverse {
    fn of(map: &[i64], limit: i64, what: &str, plural: &str) -> Result<Inverse> {
        let mut inverse = Inverse {
            ids: FxHashMap::default(),
            first: i64::MAX,
            end: 0,
        };
        for (new, old) in map.iter().enumerate().filter(|(_, old)| **old >= 0) {
            ensure!(
                *old < limit,
                invalid_argument,
                "{what} remapping index {old} is out of bounds for old tensor with {limit} {plural}."
            );
            if let Some(other) = inverse.ids.insert(*old, new) {
                return Err(unimplemented!(
                    "Old ID {old} is mapped to both new ID {other} and {new}, which is not supported."
                ));
            }
            inverse.first = inverse.first.min(*old);
            inverse.end = inverse.end.max(old + 1);
        }
        Ok(inverse)
    }
}

/// Fills what has no old value, in order; all of the values must be needed.
fn fill(
    target: &mut [f32],
    row_map: &[i64],
    column_map: &[i64],
    width: usize,
    values: &[f32],
) -> Result<()> {
    let mut left = values.iter();
    for (row, old_row) in target.chunks_exact_mut(width.max(1)).zip(row_map) {
        for (column, target) in row.iter_mut().enumerate() {
            let has_column = column_map.get(column).is_none_or(|old| *old >= 0);
            if *old_row >= 0 && has_column {
                continue;
            }
            match left.next() {
                Some(value) => *target = *value,
                None => {
                    return Err(invalid_argument!(
                        "initializing_values contained {} elements, but more missing values remain.",
                        values.len()
                    ));
                }
            }
        }
    }
    let rest = left.len();
    ensure!(
        rest == 0,
        invalid_argument,
        "initializing_values contained {} elements, but only {} elements were used to fill in missing values.",
        values.len(),
        values.len() - rest
    );
    Ok(())
}
