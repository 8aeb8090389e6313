//! Golden checkpoints.

use std::fs;

use tensorfleet_checkpoint::bundle::{
    BundleReader, BundleWriter, ListedTensor, MergeOptions, merge, verify,
};
use tensorfleet_checkpoint::slice::TensorSlice;
use tensorfleet_tensor::{Complex32, Complex64, DType, TString, Tensor, Variant, bf16, f16};

use crate::golden;

fn open(name: &str) -> BundleReader {
    let reader = BundleReader::open(&golden(name)).unwrap();
    assert_eq!(
        verify(&reader).damage.len(),
        usize::from(name == "parts"),
        "{name}"
    );
    reader
}

fn names(reader: &BundleReader) -> Vec<String> {
    reader
        .list()
        .unwrap()
        .iter()
        .map(ListedTensor::name)
        .collect()
}

/// Checks a tensor against the formula of `make_golden.py`.
fn check_sample(dtype: DType, tensor: &Tensor) {
    assert_eq!(tensor.dtype(), dtype);
    let count = tensor.elements();
    let halves = |i: usize| (i as f32 - 5.0) / 2.0;
    macro_rules! values {
        ($ty:ty, $value:expr) => {{
            let expected: Vec<$ty> = (0..count).map($value).collect();
            assert_eq!(tensor.slice::<$ty>().unwrap(), expected, "{dtype}");
        }};
    }
    let raw = |expected: Vec<u8>| assert_eq!(tensor.bytes().unwrap(), expected, "{dtype}");
    match dtype {
        DType::F32 => values!(f32, halves),
        DType::F64 => values!(f64, |i| f64::from(halves(i))),
        DType::F16 => values!(f16, |i| f16::from_f32(halves(i))),
        DType::BF16 => values!(bf16, |i| bf16::from_f32(halves(i))),
        DType::I8 => values!(i8, |i| i as i8 - 5),
        DType::I16 => values!(i16, |i| i as i16 - 5),
        DType::I32 => values!(i32, |i| i as i32 - 5),
        DType::I64 => values!(i64, |i| i as i64 - 5),
        DType::U8 => values!(u8, |i| i as u8),
        DType::U16 => values!(u16, |i| i as u16),
        DType::U32 => values!(u32, |i| i as u32),
        DType::U64 => values!(u64, |i| i as u64),
        DType::Bool => values!(bool, |i| i % 2 == 1),
        DType::C64 => values!(Complex32, |i| Complex32::new(halves(i), i as f32)),
        DType::C128 => values!(Complex64, |i| Complex64::new(halves(i).into(), i as f64)),
        DType::String => values!(TString, |i| {
            let mut text = format!("s{i}").repeat(i % 4).into_bytes();
            if i == 5 {
                text.extend_from_slice(&[0, 0xff]);
            }
            TString::from(text)
        }),
        DType::QU8 | DType::U4 => raw((0..count).map(|i| i as u8).collect()),
        DType::QI8 => raw((0..count)
            .map(|i| i as u8)
            .map(|i| i.wrapping_sub(5))
            .collect()),
        DType::QI16 => raw((0..count)
            .flat_map(|i| (i as i16 - 5).to_le_bytes())
            .collect()),
        DType::QU16 => raw((0..count).flat_map(|i| (i as u16).to_le_bytes()).collect()),
        DType::QI32 => raw((0..count)
            .flat_map(|i| (i as i32 - 5).to_le_bytes())
            .collect()),
        // Sign, exponent and fraction of -2.5 … 3.
        DType::F8E5M2 => {
            raw(vec![
                0xc1, 0xc0, 0xbe, 0xbc, 0xb8, 0, 0x38, 0x3c, 0x3e, 0x40, 0x41, 0x42,
            ]);
        }
        DType::F8E4M3Fn => {
            raw(vec![
                0xc2, 0xc0, 0xbc, 0xb8, 0xb0, 0, 0x30, 0x38, 0x3c, 0x40, 0x42, 0x44,
            ]);
        }
        // The upper half of the byte is not part of the value.
        DType::I4 => {
            let low = |bytes: &[u8]| bytes.iter().map(|b| b & 15).collect::<Vec<u8>>();
            let expected: Vec<u8> = (0..count).map(|i| (i as u8).wrapping_sub(5)).collect();
            assert_eq!(low(tensor.bytes().unwrap()), low(&expected));
        }
        other => panic!("no sample of {other}"),
    }
}

#[test]
fn every_dtype_is_read() {
    let reader = open("whole");
    let mut dtypes = 0;
    for listed in reader.list().unwrap() {
        if !listed.name().starts_with("t/") {
            continue;
        }
        let tensor = reader.read(&listed.key).unwrap();
        assert_eq!(tensor.shape().dims(), [3, 4]);
        check_sample(listed.dtype, &tensor);
        dtypes += 1;
    }
    assert_eq!(dtypes, 25);
    assert_eq!(
        reader.read(b"scalar").unwrap().to_scalar::<i64>().unwrap(),
        7
    );
    assert_eq!(reader.read(b"empty").unwrap().shape().dims(), [0, 3]);
    assert_eq!(
        reader
            .read(b"text")
            .unwrap()
            .to_scalar::<TString>()
            .unwrap(),
        "hi"
    );
    for i in 0..40 {
        let tensor = reader
            .read(format!("layer_{i}/kernel/Adam_{}", i % 3).as_bytes())
            .unwrap();
        assert_eq!(tensor.slice::<f32>().unwrap(), [i as f32]);
    }
}

#[test]
fn variants_are_read() {
    let tensor = open("variant").read(b"lists").unwrap();
    let variants = tensor.slice::<Variant>().unwrap();
    let list = |i: usize| variants[i].as_list().unwrap();
    let item = |i: usize, j: usize| list(i).items[j].as_ref().unwrap();
    assert_eq!(
        (list(0).element_dtype, list(0).items.len()),
        (DType::F32, 3)
    );
    assert_eq!(
        (list(1).element_dtype, list(1).items.len()),
        (DType::I32, 2)
    );
    assert_eq!(item(0, 2).to_scalar::<f32>().unwrap(), 3.0);
    assert_eq!(item(1, 1).to_scalar::<i32>().unwrap(), 8);
}

#[test]
fn partitioned_tensors_are_put_together() {
    let reader = open("parts");
    assert_eq!(names(&reader), ["cut", "flags", "full", "grid", "rows"]);
    check_sample(DType::F32, &reader.read(b"rows").unwrap());
    check_sample(DType::I16, &reader.read(b"grid").unwrap());
    check_sample(DType::Bool, &reader.read(b"flags").unwrap());
    check_sample(DType::F32, &reader.read(b"full").unwrap());
    assert!(reader.read(b"cut").is_err());
    let part = |key: &[u8], text: &str| {
        reader
            .read_slice(key, &TensorSlice::parse(text).unwrap())
            .unwrap()
    };
    assert_eq!(
        part(b"rows", "2,2:5,2").slice::<f32>().unwrap(),
        [7.0, 7.5, 10.5, 11.0]
    );
    assert_eq!(
        part(b"grid", "1,2:2,2:1,2").slice::<i16>().unwrap(),
        [14, 15, 17, 18, 26, 27, 29, 30]
    );
    assert_eq!(part(b"cut", "1,2").slice::<i64>().unwrap(), [-4, -3]);
    assert_eq!(part(b"full", "1,1:-").slice::<f32>().unwrap(), [-1.5, -1.0]);
    let rows = reader.list().unwrap().pop().unwrap();
    assert_eq!(rows.slices.len(), 3);
    assert_eq!(
        (rows.size, rows.slices[1].slice.to_string()),
        (280, "3,6:0,7".to_owned())
    );
}

#[test]
fn sharded_checkpoint_is_read() {
    let reader = open("merged");
    assert_eq!(reader.num_shards(), 2);
    assert_eq!(names(&reader), ["a1", "b1", "names", "table", "w0"]);
    check_sample(DType::F64, &reader.read(b"a1").unwrap());
    check_sample(DType::String, &reader.read(b"names").unwrap());
    let table = reader.read(b"table").unwrap();
    assert_eq!(table.shape().dims(), [6, 2]);
    check_sample(DType::F32, &table);
}

/// Saves what TensorFlow saved, in the order in which it lies in the data file.
fn rewrite(name: &str, target: &str) {
    enum Step {
        Whole(Vec<u8>),
        Slice(Vec<u8>, Vec<i64>, TensorSlice),
    }
    // Not verified: the inputs of a merge lack the slices of each other.
    let reader = BundleReader::open(&golden(name)).unwrap();
    let mut steps = Vec::new();
    for listed in reader.list().unwrap() {
        for slice in &listed.slices {
            let step = Step::Slice(
                listed.key.clone(),
                listed.shape.dims().to_vec(),
                slice.slice.clone(),
            );
            steps.push((slice.offset, slice.size, step));
        }
        if listed.slices.is_empty() {
            steps.push((listed.offset, listed.size, Step::Whole(listed.key)));
        }
    }
    steps.sort_by_key(|(offset, size, _)| (*offset, *size));
    let mut writer = BundleWriter::create(target).unwrap();
    for (_, _, step) in steps {
        match step {
            Step::Whole(key) => writer.add(&key, &reader.read(&key).unwrap()).unwrap(),
            Step::Slice(key, dims, slice) => {
                let tensor = reader.read_slice(&key, &slice).unwrap();
                writer.add_slice(&key, &dims, &slice, &tensor).unwrap();
            }
        }
    }
    writer.finish().unwrap();
}

#[track_caller]
fn same_bytes(ours: &str, theirs: &str) {
    assert!(
        fs::read(ours).unwrap() == fs::read(theirs).unwrap(),
        "{ours} differs from {theirs}"
    );
}

#[test]
fn rewritten_checkpoints_are_byte_for_byte_tensorflows() {
    let temp = tempfile::tempdir().unwrap();
    let inputs = [
        "whole",
        "parts",
        "merge_input/part-00000-of-00002",
        "merge_input/part-00001-of-00002",
    ];
    for name in inputs {
        let target = temp.path().join(name).display().to_string();
        rewrite(name, &target);
        for suffix in [".data-00000-of-00001", ".index"] {
            same_bytes(
                &format!("{target}{suffix}"),
                &golden(&format!("{name}{suffix}")),
            );
        }
    }
}

#[test]
fn merge_gives_byte_for_byte_tensorflows_result() {
    let temp = tempfile::tempdir().unwrap();
    let parts = temp.path().join("m_temp");
    fs::create_dir(&parts).unwrap();
    for entry in fs::read_dir(golden("merge_input")).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), parts.join(entry.file_name())).unwrap();
    }
    let prefixes =
        ["part-00000-of-00002", "part-00001-of-00002"].map(|p| parts.join(p).display().to_string());
    let target = temp.path().join("merged").display().to_string();
    merge(
        &[&prefixes[0], &prefixes[1]],
        &target,
        MergeOptions::default(),
    )
    .unwrap();
    assert!(!parts.exists());
    for suffix in [".data-00000-of-00002", ".data-00001-of-00002", ".index"] {
        same_bytes(
            &format!("{target}{suffix}"),
            &golden(&format!("merged{suffix}")),
        );
    }
}
