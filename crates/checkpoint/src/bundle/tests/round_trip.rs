//! What is written comes back, whatever its type and size.

use tensorfleet_status::Code;
use tensorfleet_tensor::{DType, PartialShape, Shape, TString, Tensor, TensorList, Variant};

use super::super::*;
use super::{Dir, fails, floats, item};

#[test]
fn every_kind_of_tensor_round_trips() {
    let dir = Dir::new();
    let prefix = dir.path("sub/model");
    let strings = Tensor::vector(&[
        TString::from("ab"),
        TString::new(),
        TString::from(vec![7; 300_000]),
    ]);
    let mut list = TensorList::new(DType::F32, PartialShape::unknown());
    list.items.push(Some(floats(&[2])));
    let variant = Tensor::vector(&[Variant::List(list.into()), Variant::Empty]);
    let scalar = Tensor::scalar(7i64);
    let bools = Tensor::vector(&[true, false, true]);
    // Larger than the thresholds of gathering, of threads and of chunks, and not a multiple of any.
    let large = floats(&[3, 1_000_003]);
    let items = [
        item("s", "", &strings),
        item("v", "", &variant),
        item("b", "", &bools),
        item("l", "", &large),
        item("n", "", &scalar),
    ];
    save(&prefix, &items).unwrap();
    let wishes: Vec<RestoreItem<'_>> = items
        .iter()
        .map(|i| RestoreItem {
            name: i.name,
            shape_and_slice: "",
            dtype: i.tensor.dtype(),
        })
        .collect();
    let restored = restore(&prefix, &wishes).unwrap();
    assert_eq!(
        restored[0].slice::<TString>().unwrap(),
        strings.slice::<TString>().unwrap()
    );
    let variants = restored[1].slice::<Variant>().unwrap();
    assert_eq!(variants[0].as_list().unwrap().items.len(), 1);
    assert!(matches!(variants[1], Variant::Empty));
    assert_eq!(restored[2].slice::<bool>().unwrap(), [true, false, true]);
    assert!(restored[3].bytes() == large.bytes());
    assert_eq!(restored[4].to_scalar::<i64>().unwrap(), 7);
    let report = verify(&BundleReader::open(&prefix).unwrap());
    assert_eq!((report.tensors, report.damage), (5, vec![]));
}

#[test]
fn dropped_writer_leaves_nothing() {
    let dir = Dir::new();
    let mut writer = BundleWriter::create(&dir.path("m")).unwrap();
    writer.add(b"w", &floats(&[1 << 18])).unwrap();
    assert_eq!(dir.files().len(), 1);
    drop(writer);
    assert!(dir.files().is_empty());
    fails(
        save(
            &dir.path("m"),
            &[item("w", "", &floats(&[2])), item("w", "", &floats(&[2]))],
        ),
        Code::InvalidArgument,
        "Adding duplicate key: w",
    );
    assert!(dir.files().is_empty());
}

#[test]
fn checksum_beside_the_write_is_the_same() {
    let dir = Dir::new();
    let mut large = Tensor::zeros(DType::F32, Shape::vector((64 << 18) + 1001)).unwrap();
    large.slice_mut::<f32>().unwrap()[16_000_000] = 3.5;
    save(
        &dir.path("m"),
        &[item("a", "", &floats(&[7])), item("w", "", &large)],
    )
    .unwrap();
    let restored = BundleReader::open(&dir.path("m"))
        .unwrap()
        .read(b"w")
        .unwrap();
    assert!(restored.bytes() == large.bytes());
}
