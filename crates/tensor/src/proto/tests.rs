use half::{bf16, f16};
use num_complex::{Complex32, Complex64};
use tensorfleet_proto::TensorShapeProto;
use tensorfleet_proto::tensor_shape_proto::Dim;

use super::*;
use crate::{Element, HandleData, PartialShape, ResourceHandle, TString, TensorList, Variant};

fn dims(sizes: &[i64]) -> Option<TensorShapeProto> {
    let dim = sizes
        .iter()
        .map(|size| Dim {
            size: *size,
            name: String::new(),
        })
        .collect();
    Some(TensorShapeProto {
        dim,
        unknown_rank: false,
    })
}

fn proto(dtype: DType, sizes: &[i64]) -> TensorProto {
    TensorProto {
        dtype: dtype.number(),
        tensor_shape: dims(sizes),
        ..TensorProto::default()
    }
}

fn check_round_trip<T: Element + PartialEq + std::fmt::Debug>(values: &[T]) {
    let tensor = Tensor::vector(values);
    for encoded in [tensor.to_proto().unwrap(), tensor.to_typed_proto().unwrap()] {
        let decoded = Tensor::from_proto(&encoded).unwrap();
        assert_eq!(decoded.shape(), tensor.shape());
        assert_eq!(decoded.slice::<T>().unwrap(), values);
    }
}

#[test]
fn every_element_type_survives_both_encodings() {
    check_round_trip(&[1.5f32, -0.0, 3.0]);
    check_round_trip(&[1.5f64, 2.0, 2.0]);
    check_round_trip(&[f16::from_f32(1.5), f16::from_f32(-2.0)]);
    check_round_trip(&[bf16::from_f32(1.5), bf16::from_f32(-2.0)]);
    check_round_trip(&[-1i8, 7]);
    check_round_trip(&[-1i16, 7]);
    check_round_trip(&[-1i32, 7]);
    check_round_trip(&[-1i64, 7]);
    check_round_trip(&[255u8, 7]);
    check_round_trip(&[65535u16, 7]);
    check_round_trip(&[u32::MAX, 7]);
    check_round_trip(&[u64::MAX, 7]);
    check_round_trip(&[true, false, true]);
    check_round_trip(&[Complex32::new(1.0, -2.0), Complex32::new(0.0, 3.0)]);
    check_round_trip(&[Complex64::new(1.0, -2.0), Complex64::new(0.0, 3.0)]);
    check_round_trip(&[
        TString::from("q"),
        TString::new(),
        TString::from(vec![b'x'; 300]),
    ]);
}

#[test]
fn the_last_typed_value_repeats_and_none_means_zero() {
    let mut half_given = proto(DType::F32, &[4]);
    half_given.float_val = vec![1.0, 2.0];
    assert_eq!(
        Tensor::from_proto(&half_given)
            .unwrap()
            .slice::<f32>()
            .unwrap(),
        &[1.0, 2.0, 2.0, 2.0]
    );
    let none = Tensor::from_proto(&proto(DType::String, &[2])).unwrap();
    assert_eq!(
        none.slice::<TString>().unwrap(),
        &[TString::new(), TString::new()]
    );
    let mut too_many = proto(DType::I32, &[1]);
    too_many.int_val = vec![1, 2];
    let first = Tensor::from_proto(&too_many).unwrap();
    assert_eq!(first.slice::<i32>().unwrap(), &[1]);
    let mut nowhere = proto(DType::String, &[0]);
    nowhere.string_val = vec!["".into()];
    assert!(Tensor::from_proto(&nowhere).unwrap().is_empty());
}

#[test]
fn strings_use_lengths_first() {
    let encoded = Tensor::vector(&[TString::from("a"), TString::from("bc")])
        .to_proto()
        .unwrap();
    assert_eq!(&encoded.tensor_content[..], &[1, 2, b'a', b'b', b'c']);
}

#[test]
fn plain_content_is_shared_both_ways() {
    let tensor = Tensor::vector(&[1.0f32; 64]);
    let encoded = tensor.to_proto().unwrap();
    assert_eq!(
        encoded.tensor_content.as_ptr(),
        tensor.bytes().unwrap().as_ptr()
    );
    let decoded = Tensor::from_proto(&encoded).unwrap();
    assert!(decoded.shares_memory_with(&tensor));
}

#[test]
fn storage_only_types_travel() {
    for dtype in [
        DType::QI8,
        DType::QU8,
        DType::QI32,
        DType::QI16,
        DType::QU16,
        DType::F8E5M2,
        DType::I4,
    ] {
        let size = dtype.size().unwrap();
        let bytes: Vec<u8> = (0..20 * size as u8).collect();
        let tensor = Tensor::from_bytes(dtype, Shape::vector(20), bytes.clone().into()).unwrap();
        let decoded = Tensor::from_proto(&tensor.to_proto().unwrap()).unwrap();
        assert_eq!(
            (decoded.dtype(), decoded.bytes().unwrap()),
            (dtype, bytes.as_slice())
        );
    }
    let mut quantized = proto(DType::QU8, &[2]);
    quantized.int_val = vec![200];
    assert_eq!(
        Tensor::from_proto(&quantized).unwrap().bytes().unwrap(),
        &[200, 200]
    );
}

#[test]
fn lists_and_handles_travel_as_variants_and_resources() {
    let mut list = TensorList::new(DType::F32, PartialShape::new(&[-1]));
    list.items = vec![
        Some(Tensor::vector(&[1.0f32, 2.0])),
        None,
        Some(Tensor::vector(&[3.0f32])),
    ];
    let tensor = Tensor::scalar(Variant::List(std::sync::Arc::new(list)));
    let decoded = Tensor::from_proto(&tensor.to_proto().unwrap()).unwrap();
    let back = decoded.slice::<Variant>().unwrap()[0]
        .as_list()
        .unwrap()
        .clone();
    assert_eq!(back.items.len(), 3);
    assert!(back.items[1].is_none());
    assert_eq!(
        back.items[2].as_ref().unwrap().slice::<f32>().unwrap(),
        &[3.0]
    );
    assert_eq!(back.element_shape, PartialShape::new(&[-1]));
    assert_eq!(back.max_num_elements, -1);

    let handle = ResourceHandle::new(HandleData {
        device: "/job:ps/replica:0/task:0/device:CPU:0".into(),
        container: "ps".into(),
        name: "w".into(),
        dtypes_and_shapes: vec![(DType::F32, PartialShape::unknown())],
        ..HandleData::default()
    });
    let decoded = Tensor::from_proto(&Tensor::scalar(handle).to_proto().unwrap()).unwrap();
    let back = &decoded.slice::<ResourceHandle>().unwrap()[0];
    assert_eq!((back.container.as_str(), back.name.as_str()), ("ps", "w"));
    assert_eq!(
        back.dtypes_and_shapes,
        vec![(DType::F32, PartialShape::unknown())]
    );
}

#[test]
fn hostile_protos_are_refused() {
    let mut cases = vec![
        proto(DType::F32, &[-1]),
        proto(DType::F32, &[i64::MAX, 8]),
        proto(DType::F32, &[1 << 40, 1 << 10]),
        TensorProto {
            dtype: 0,
            ..TensorProto::default()
        },
        TensorProto {
            dtype: 77,
            ..TensorProto::default()
        },
    ];
    for (dtype, sizes, content) in [
        (DType::F32, vec![3], vec![0u8; 11]),
        (DType::String, vec![1_000_000_000], vec![1u8, 2]),
        (DType::String, vec![2], vec![1u8, 200, 1, b'a']),
        (DType::String, vec![1], vec![1u8, b'a', b'b']),
        (DType::Variant, vec![1], vec![3u8, 255, 255, 255]),
    ] {
        cases.push(TensorProto {
            tensor_content: content.into(),
            ..proto(dtype, &sizes)
        });
    }
    let unknown_rank = TensorShapeProto {
        dim: Vec::new(),
        unknown_rank: true,
    };
    cases.push(TensorProto {
        tensor_shape: Some(unknown_rank),
        ..proto(DType::F32, &[])
    });
    for case in cases {
        assert!(Tensor::from_proto(&case).is_err(), "{case:?}");
    }
}

#[test]
fn deep_nesting_is_refused() {
    let mut tensor = Tensor::scalar(1.0f32);
    for _ in 0..40 {
        let mut list = TensorList::new(tensor.dtype(), PartialShape::scalar());
        list.items.push(Some(tensor));
        tensor = Tensor::scalar(Variant::List(std::sync::Arc::new(list)));
    }
    assert!(Tensor::from_proto(&tensor.to_proto().unwrap()).is_err());
}
