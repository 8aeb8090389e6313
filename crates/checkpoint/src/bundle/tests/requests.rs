//! What cannot be saved or restored is refused in TensorFlow's words.

use tensorfleet_status::Code;
use tensorfleet_tensor::{DType, TString, Tensor};

use super::super::*;
use super::{Dir, fails, floats, item, wish};

#[test]
fn a_checkpoint_makes_its_own_directory_but_not_those_above() {
    let dir = Dir::new();
    let w = floats(&[2, 2]);
    save(&dir.path("new/m"), &[item("w", "", &w)]).unwrap();
    let nested = dir.path("gone/deeper/m");
    let status = save(&nested, &[item("w", "", &w)]).unwrap_err();
    assert_eq!(status.code(), Code::NotFound, "{status}");
}

#[test]
fn wrong_requests_give_tensorflows_errors() {
    use Code::{Internal, InvalidArgument, NotFound};
    let dir = Dir::new();
    let (prefix, w) = (dir.path("m"), floats(&[2, 2]));
    let s = Tensor::vector(&[TString::from("x"), TString::from("y")]);
    let five = floats(&[5, 2]);
    let [first, second, middle] =
        [(0, 3), (3, 2), (2, 2)].map(|(start, count)| five.rows(start, count).unwrap());
    let items = [
        item("w", "", &w),
        item("z", "", &s),
        item("pv", "5 2 0,3:0,2", &first),
        item("pv", "5 2 3,2:0,2", &second),
        item("over", "5 2 0,3:0,2", &first),
        item("over", "5 2 2,2:0,2", &middle),
        item("gap", "5 2 0,3:-", &first),
        item("ps", "3 0,2", &s),
    ];
    save(&prefix, &items).unwrap();
    let get = |name: &str, spec: &str, dtype| {
        restore(&prefix, &[wish(name, spec, dtype)]).map(|t| t[0].clone())
    };
    let f = DType::F32;
    fails(get("q", "", f), NotFound, "Key q not found in checkpoint");
    fails(get("", "", f), NotFound, "Key  not found in checkpoint");
    fails(
        get("w", "", DType::I32),
        InvalidArgument,
        "tensor_name = w; expected dtype int32 does not equal original dtype float",
    );
    fails(
        restore(&prefix, &[wish("z", "", f), wish("w", "", DType::I32)]),
        InvalidArgument,
        "tensor_name = w; expected dtype int32 does not equal original dtype float\n\
         tensor_name = z; expected dtype float does not equal original dtype string",
    );
    fails(
        restore("/nodir/nope", &[wish("w", "", f)]),
        NotFound,
        "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for /nodir/nope",
    );
    fails(
        get("pv", "6 2 2,2:-", f),
        InvalidArgument,
        "tensor_name = pv; shape in shape_and_slice spec [6,2] does not match the shape stored in checkpoint: [5,2]",
    );
    let overlap = "Overlapping slices: existing slice = 0,3:0,2, new slice = 2,2:0,2";
    fails(get("over", "", f), Internal, overlap);
    fails(get("over", "5 2 1,2:1,1", f), Internal, overlap);
    fails(
        get("gap", "", f),
        InvalidArgument,
        "Does not have sufficient slices for partitioned tensor gap to restore in slice_spec: -:-",
    );
    fails(
        get("z", "2 1,1", DType::String),
        InvalidArgument,
        "Dtype string not supported.",
    );
    fails(
        get("ps", "", DType::String),
        InvalidArgument,
        "Dtype string not supported.",
    );
    assert_eq!(get("pv", "", f).unwrap().bytes(), five.bytes());
    assert_eq!(
        get("pv", "5 2 2,2:-", f).unwrap().slice::<f32>().unwrap(),
        [4.0, 5.0, 6.0, 7.0]
    );
    assert_eq!(
        get("w", "2 2 1,1:-", f).unwrap().slice::<f32>().unwrap(),
        [2.0, 3.0]
    );
    assert_eq!(
        get("w", "2 2 -:1,1", f).unwrap().slice::<f32>().unwrap(),
        [1.0, 3.0]
    );
    let put = |items: &[SaveItem<'_>]| save(&dir.path("bad"), items);
    fails(
        put(&[item("w", "2 2 0,1:0,2", &w)]),
        InvalidArgument,
        "Slice in shape_and_slice specification does not match the shape of the tensor to  save: 2 2 0,1:0,2, tensor: [2,2]",
    );
    fails(
        put(&[item("", "", &w)]),
        InvalidArgument,
        "a tensor in a checkpoint needs a name",
    );
    fails(
        put(&[item("p", "4 2 0,2:-", &w), item("p", "5 2 2,2:-", &w)]),
        InvalidArgument,
        "slices of p disagree: float[4,2] and float[5,2]",
    );
    fails(
        put(&[item("p", "4 2 0,2:-", &w), item("p", "4 2 0,2:-", &w)]),
        InvalidArgument,
        "Adding duplicate key: slice of p (0,2:-)",
    );
    fails(
        put(&[item("p", "", &w), item("p", "4 2 0,2:-", &w)]),
        InvalidArgument,
        "Adding duplicate key: p",
    );
    assert!(!dir.files().iter().any(|name| name.starts_with("bad")));
}
