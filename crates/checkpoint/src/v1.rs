//! TensorFlow's first checkpoint format, which the ops Save and Restore use: one table per file.
//!
//! Every value is a `SavedTensorSlices`. Under the empty key it lists all tensors with shapes, dtypes and slices; under the
//! [key of a slice](crate::ordered_code) it holds the elements, in the typed fields of a `TensorProto`. A checkpoint may be
//! several files, named by a pattern.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use prost::Message;
use tensorfleet_proto::{
    SavedSlice, SavedSliceMeta, SavedTensorSliceMeta, SavedTensorSlices, TensorProto, VersionDef,
};
use tensorfleet_status::{Result, data_loss, internal, invalid_argument, not_found, unimplemented};
use tensorfleet_tensor::{DType, PortType, Shape, TString, Tensor};

use crate::bundle::assemble::{copy_elements, copy_part, plan};
use crate::bundle::entry::{slice_from_proto, slice_to_proto};
use crate::bundle::{RestoreItem, SaveItem};
use crate::fs;
use crate::ordered_code::slice_key;
use crate::slice::{DimList, Ranges, ShapeAndSlice, TensorSlice};
use crate::table::{Table, TableWriter};

/// What TensorFlow writes, and the oldest reader that understands it.
const VERSIONS: VersionDef = VersionDef {
    producer: 1,
    min_consumer: 0,
    bad_consumers: Vec::new(),
};

/// No message may be longer.
const MAX_MESSAGE: usize = 1 << 31;

/// Writes tensors, or slices of them, into one file.
pub fn save(path: &str, items: &[SaveItem<'_>]) -> Result<()> {
    let mut metas: Vec<SavedSliceMeta> = Vec::new();
    let mut index: HashMap<&[u8], usize> = HashMap::new();
    let mut values = BTreeMap::new();
    let mut sorted: Vec<&SaveItem<'_>> = items.iter().collect();
    sorted.sort_by_key(|item| item.name);
    for item in sorted {
        let (shape, slice) = whole_and_slice(item)?;
        let name = String::from_utf8(item.name.to_vec())
            .map_err(|_| invalid_argument!("the name {:?} is not UTF-8", item.name))?;
        let dtype = item.tensor.dtype();
        let at = *index.entry(item.name).or_insert_with(|| {
            metas.push(SavedSliceMeta {
                name: name.clone(),
                shape: Some(shape.to_proto()),
                r#type: dtype.number(),
                slice: Vec::new(),
            });
            metas.len() - 1
        });
        let Some(meta) = metas.get_mut(at) else {
            return Err(internal!("the tensor {name} is not listed (save)"));
        };
        if meta.shape != Some(shape.to_proto()) || meta.r#type != dtype.number() {
            return Err(internal!(
                "Mismatching shapes or types: trying to add name {name}, shape = {shape}, type = {dtype}"
            ));
        }
        meta.slice.push(slice_to_proto(&slice));
        let mut data = item.tensor.to_typed_proto()?;
        (data.dtype, data.tensor_shape) = (0, None);
        spell_out(&mut data, dtype, item.tensor.elements());
        let saved = SavedTensorSlices {
            meta: None,
            data: Some(SavedSlice {
                name,
                slice: Some(slice_to_proto(&slice)),
                data: Some(data),
            }),
        };
        let size = saved.encoded_len();
        if size >= MAX_MESSAGE {
            return Err(invalid_argument!(
                "Tensor slice is too large to serialize (conservative estimate: {size} bytes)"
            ));
        }
        values.insert(slice_key(item.name, &slice), saved.encode_to_vec());
    }
    let meta = SavedTensorSlices {
        meta: Some(SavedTensorSliceMeta {
            tensor: metas,
            versions: Some(VERSIONS),
        }),
        data: None,
    };
    let mut table = TableWriter::new();
    table.add(b"", &meta.encode_to_vec())?;
    for (key, value) in &values {
        table.add(key, value)?;
    }
    fs::for_path(path)?.write_atomic(path, &table.finish())
}

/// The shape of the whole tensor, and which slice of it is saved.
fn whole_and_slice(item: &SaveItem<'_>) -> Result<(Shape, TensorSlice)> {
    if !can_be_saved(item.tensor.dtype()) {
        return Err(unimplemented!(
            "Saving data type {} not yet supported",
            item.tensor.dtype()
        ));
    }
    let Some(spec) = ShapeAndSlice::parse(item.shape_and_slice)? else {
        let shape = item.tensor.shape();
        return Ok((shape.clone(), TensorSlice::full(shape.rank())));
    };
    if spec.dims()? != item.tensor.shape().dims() {
        return Err(invalid_argument!(
            "Slice in shape_and_slice specification does not match the shape of the tensor to  save: {}, tensor: {}",
            item.shape_and_slice,
            item.tensor.shape()
        ));
    }
    Ok((Shape::new(&spec.full_dims)?, spec.slice))
}

fn can_be_saved(dtype: DType) -> bool {
    dtype.is_plain() || dtype == DType::String
}

/// Reads tensors, or slices of them, from all files that a pattern matches, in order of the items.
pub fn restore(pattern: &str, items: &[RestoreItem<'_>]) -> Result<Vec<Tensor>> {
    let reader = Reader::open(pattern)?;
    items.iter().map(|item| reader.read(item)).collect()
}

/// What the files of a checkpoint have of a tensor.
struct Stored {
    shape: Shape,
    dtype: DType,
    slices: Vec<TensorSlice>,
    /// For each slice the file that has it.
    files: Vec<usize>,
}

struct Reader {
    pattern: String,
    tables: Vec<(String, Table)>,
    tensors: HashMap<String, Stored>,
}

impl Reader {
    fn open(pattern: &str) -> Result<Reader> {
        let system = fs::for_path(pattern)?;
        let paths = system.glob(pattern).map_err(|status| {
            invalid_argument!(
                "Unsuccessful TensorSliceReader constructor: Failed to get matching files on {pattern}: {status}"
            )
        })?;
        if paths.is_empty() {
            return Err(not_found!(
                "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for {pattern}"
            ));
        }
        let mut reader = Reader {
            pattern: pattern.to_owned(),
            tables: Vec::new(),
            tensors: HashMap::new(),
        };
        for path in paths {
            let opened = system.read(&path, u64::MAX).and_then(|bytes| {
                Table::open(Bytes::from(bytes)).map_err(|status| {
                    status.context("perhaps your file is in a different file format and you need to use a different restore operator?")
                })
            });
            let table = opened
                .map_err(|status| data_loss!("Unable to open table file {path}: {status}"))?;
            reader.add(&path, &table)?;
            reader.tables.push((path, table));
        }
        Ok(reader)
    }

    /// Takes note of what the next file has.
    fn add(&mut self, path: &str, table: &Table) -> Result<()> {
        let file = self.tables.len();
        let meta = table
            .get(b"")?
            .and_then(|bytes| SavedTensorSlices::decode(bytes).ok())
            .ok_or_else(|| {
                internal!(
                    "Failed to find the saved tensor slices at the beginning of the checkpoint file: {path}"
                )
            })?;
        let meta = meta.meta.unwrap_or_default();
        let min_consumer = meta.versions.map_or(0, |versions| versions.min_consumer);
        if min_consumer > VERSIONS.producer {
            return Err(invalid_argument!(
                "Checkpoint version {min_consumer} is newer than what is known here: {path}"
            ));
        }
        for tensor in meta.tensor {
            let shape = Shape::from_proto(&tensor.shape.unwrap_or_default())?;
            let dtype = PortType::from_number(tensor.r#type)?.dtype;
            let name = tensor.name;
            let stored = self.tensors.entry(name).or_insert_with_key(|_| Stored {
                shape: shape.clone(),
                dtype,
                slices: Vec::new(),
                files: Vec::new(),
            });
            if stored.shape != shape || stored.dtype != dtype {
                return Err(internal!(
                    "Incompatible tensor shapes or types detected in {path}: {dtype} {shape} is {} {} elsewhere",
                    stored.dtype,
                    stored.shape
                ));
            }
            for slice in &tensor.slice {
                stored.slices.push(slice_from_proto(slice)?);
                stored.files.push(file);
            }
        }
        Ok(())
    }

    fn read(&self, item: &RestoreItem<'_>) -> Result<Tensor> {
        let name = String::from_utf8_lossy(item.name);
        let Some(stored) = self.tensors.get(&*name) else {
            return Err(not_found!(
                "Tensor name \"{name}\" not found in checkpoint files {}",
                self.pattern
            ));
        };
        if stored.dtype != item.dtype {
            return Err(invalid_argument!(
                "Expected to restore a tensor of type {}, got a tensor of type {} instead: tensor_name = {name}",
                item.dtype,
                stored.dtype
            ));
        }
        let dims = stored.shape.dims();
        let wanted = match ShapeAndSlice::parse(item.shape_and_slice)? {
            None => TensorSlice::full(dims.len()).ranges(dims)?,
            Some(spec) if spec.full_dims != dims => {
                return Err(invalid_argument!(
                    "Shape in shape_and_slice spec does not match the shape in the save file: {}, save file shape: {}",
                    DimList(&spec.full_dims),
                    stored.shape
                ));
            }
            Some(spec) => spec.slice.ranges(dims)?,
        };
        let lengths: Vec<i64> = wanted.iter().map(|(_, length)| *length).collect();
        let shape = Shape::new(&lengths)?;
        if shape.elements() == 0 {
            return Tensor::new(stored.dtype, shape);
        }
        let Some(shares) = plan(&stored.slices, dims, &wanted)? else {
            return Err(invalid_argument!("Error copying slice data"));
        };
        let mut target = None;
        for share in shares {
            let slice = stored.slices.get(share.index);
            let file = stored.files.get(share.index);
            let (Some(slice), Some(file)) = (slice, file) else {
                return Err(internal!("a slice of {name} is not listed (read)"));
            };
            let source_box = slice.ranges(dims)?;
            let source = self.slice(*file, item.name, slice, stored.dtype, &source_box)?;
            if share.part == wanted && source_box == wanted {
                return source.reshaped(shape);
            }
            let target = match &mut target {
                Some(target) => target,
                None => target.insert(Tensor::new(stored.dtype, shape.clone())?),
            };
            copy(&share.part, &source, &source_box, target, &wanted)?;
        }
        target.ok_or_else(|| internal!("no slice of {name} was read (read)"))
    }

    /// The elements of a slice.
    fn slice(
        &self,
        file: usize,
        name: &[u8],
        slice: &TensorSlice,
        dtype: DType,
        ranges: &Ranges,
    ) -> Result<Tensor> {
        let lost = |what: &str| {
            let path = self.tables.get(file).map_or("", |(path, _)| path.as_str());
            let name = String::from_utf8_lossy(name);
            data_loss!("{path}: slice {slice} of {name} {what}")
        };
        let Some((_, table)) = self.tables.get(file) else {
            return Err(lost("is in no file"));
        };
        let value = table.get(&slice_key(name, slice))?;
        let saved = value.ok_or_else(|| lost("is listed but not there"))?;
        let saved = SavedTensorSlices::decode(saved)
            .map_err(|error| lost(&format!("cannot be parsed: {error}")))?;
        let mut data = saved.data.and_then(|data| data.data).unwrap_or_default();
        let lengths: Vec<i64> = ranges.iter().map(|(_, length)| *length).collect();
        let shape = Shape::new(&lengths)?;
        if count(&mut data, dtype) != shape.elements() {
            return Err(lost("has another number of values than it should have"));
        }
        Tensor::from_proto(&TensorProto {
            dtype: dtype.number(),
            tensor_shape: Some(shape.to_proto()),
            ..data
        })
    }
}

/// Runs the same for the field that holds elements of a dtype, and how many numbers an element is.
macro_rules! field {
    ($data:expr, $dtype:expr, $field:ident, $each:ident => $body:expr) => {
        match $dtype {
            DType::F32 => field!(@ $data.float_val, 1, $field, $each, $body),
            DType::F64 => field!(@ $data.double_val, 1, $field, $each, $body),
            DType::F16 | DType::BF16 => field!(@ $data.half_val, 1, $field, $each, $body),
            DType::I64 => field!(@ $data.int64_val, 1, $field, $each, $body),
            DType::U64 => field!(@ $data.uint64_val, 1, $field, $each, $body),
            DType::U32 => field!(@ $data.uint32_val, 1, $field, $each, $body),
            DType::Bool => field!(@ $data.bool_val, 1, $field, $each, $body),
            DType::C64 => field!(@ $data.scomplex_val, 2, $field, $each, $body),
            DType::C128 => field!(@ $data.dcomplex_val, 2, $field, $each, $body),
            DType::String => field!(@ $data.string_val, 1, $field, $each, $body),
            _ => field!(@ $data.int_val, 1, $field, $each, $body),
        }
    };
    (@ $value:expr, $count:literal, $field:ident, $each:ident, $body:expr) => {{
        let ($field, $each) = (&mut $value, $count);
        $body
    }};
}

/// Protos leave out trailing elements that repeat; here all of them stand.
fn spell_out(data: &mut TensorProto, dtype: DType, elements: usize) {
    field!(data, dtype, values, each => {
        let last = values.len().saturating_sub(each);
        let last = values.get(last..).unwrap_or_default().to_vec();
        let missing = (elements * each).saturating_sub(values.len());
        values.extend(last.iter().cycle().take(missing).cloned());
    });
}

/// How many elements of a dtype there are.
fn count(data: &mut TensorProto, dtype: DType) -> usize {
    field!(data, dtype, values, each => values.len() / each)
}

/// Copies a part of one tensor into another.
fn copy(
    part: &Ranges,
    source: &Tensor,
    source_box: &Ranges,
    target: &mut Tensor,
    target_box: &Ranges,
) -> Result<()> {
    match source.dtype() {
        DType::String => {
            let source = source.slice::<TString>()?;
            return copy_elements(part, source, source_box, target.slice_mut()?, target_box);
        }
        DType::Bool => {
            let source = source.slice::<bool>()?;
            return copy_elements(part, source, source_box, target.slice_mut()?, target_box);
        }
        _ => {}
    }
    let element = source.dtype().size().unwrap_or(1);
    match (source.bytes(), target.bytes_mut()) {
        (Some(source), Some(target)) => {
            copy_part(part, source, source_box, target, target_box, element)
        }
        _ => Err(internal!("tensors have no bytes to copy (copy)")),
    }
}

#[cfg(test)]
mod tests {
    use tensorfleet_status::Code;
    use tensorfleet_tensor::f16;

    use super::*;

    fn item<'a>(name: &'a str, slice: &'a str, tensor: &'a Tensor) -> SaveItem<'a> {
        SaveItem {
            name: name.as_bytes(),
            shape_and_slice: slice,
            tensor,
        }
    }

    fn wanted<'a>(name: &'a str, slice: &'a str, dtype: DType) -> RestoreItem<'a> {
        RestoreItem {
            name: name.as_bytes(),
            shape_and_slice: slice,
            dtype,
        }
    }

    #[test]
    fn what_was_saved_is_restored() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ckpt").display().to_string();
        let texts = [TString::from("a"), TString::new(), TString::new()];
        let tensors = [
            Tensor::vector(&[1.5f32, 2.0, 2.0, 2.0]),
            Tensor::zeros(DType::I32, Shape::matrix(2, 3).unwrap()).unwrap(),
            Tensor::vector(&texts),
            Tensor::scalar(true),
            Tensor::vector(&[-1i8, 7, 7]),
            Tensor::vector(&[f16::from_f32(0.5); 3]),
            Tensor::vector(&[i64::MIN, 0]),
            Tensor::zeros(DType::F64, Shape::vector(0)).unwrap(),
        ];
        let names: Vec<String> = (0..tensors.len())
            .map(|index| format!("t{index}"))
            .collect();
        let items: Vec<SaveItem<'_>> = names
            .iter()
            .zip(&tensors)
            .map(|(name, tensor)| item(name, "", tensor))
            .collect();
        save(&path, &items).unwrap();
        let items: Vec<RestoreItem<'_>> = names
            .iter()
            .zip(&tensors)
            .map(|(name, tensor)| wanted(name, "", tensor.dtype()))
            .collect();
        for (restored, tensor) in restore(&path, &items).unwrap().iter().zip(&tensors) {
            assert_eq!(restored.to_proto().unwrap(), tensor.to_proto().unwrap());
        }
    }

    #[test]
    fn slices_of_several_files_are_put_together() {
        let dir = tempfile::tempdir().unwrap();
        let path = |part: usize| {
            dir.path()
                .join(format!("ckpt-{part}"))
                .display()
                .to_string()
        };
        let top = Tensor::from_vec(Shape::matrix(1, 2).unwrap(), vec![1.0f32, 2.0]).unwrap();
        let rest =
            Tensor::from_vec(Shape::matrix(2, 2).unwrap(), vec![3.0f32, 4.0, 5.0, 6.0]).unwrap();
        save(&path(0), &[item("w", "3 2 0,1:-", &top)]).unwrap();
        save(&path(1), &[item("w", "3 2 1,2:-", &rest)]).unwrap();
        let pattern = dir.path().join("ckpt-?").display().to_string();
        let read = |slice: &str| {
            let restored = restore(&pattern, &[wanted("w", slice, DType::F32)]).unwrap();
            restored[0].slice::<f32>().unwrap().to_vec()
        };
        assert_eq!(read(""), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(read("3 2 0,2:1,1"), [2.0, 4.0]);
        let code = |path: &str, name: &str, slice: &str, dtype: DType| {
            let restored = restore(path, &[wanted(name, slice, dtype)]);
            restored.err().unwrap().code()
        };
        assert_eq!(code(&pattern, "v", "", DType::F32), Code::NotFound);
        assert_eq!(code(&pattern, "w", "", DType::F64), Code::InvalidArgument);
        assert_eq!(
            code(&pattern, "w", "2 2 -:-", DType::F32),
            Code::InvalidArgument
        );
        // Half of it is missing.
        assert_eq!(code(&path(0), "w", "", DType::F32), Code::InvalidArgument);
        assert_eq!(code(&path(7), "w", "", DType::F32), Code::NotFound);
        std::fs::write(path(0), "no table at all").unwrap();
        assert_eq!(code(&path(0), "w", "", DType::F32), Code::DataLoss);
    }
}
