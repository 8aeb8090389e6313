use super::*;
use crate::by_word;

fn shape(dims: &[i64]) -> Shape {
    Shape::new(dims).unwrap()
}

#[test]
fn clones_share_until_written() {
    let mut a = Tensor::from_slice(shape(&[100]), &[1i32; 100]).unwrap();
    let b = a.clone();
    assert!(a.shares_memory_with(&b));
    assert!(!a.is_unique());
    a.slice_mut::<i32>().unwrap()[5] = 2;
    assert!(!a.shares_memory_with(&b));
    assert_eq!(b.slice::<i32>().unwrap()[5], 1);
}

#[test]
fn wrong_types_and_counts_are_errors() {
    let a = Tensor::scalar(1.0f32);
    assert!(a.slice::<f64>().is_err());
    assert!(Tensor::from_slice(shape(&[3]), &[1i64]).is_err());
    assert!(a.clone().reshaped(shape(&[2])).is_err());
    assert_eq!(a.reshaped(shape(&[1, 1])).unwrap().rank(), 2);
}

#[test]
fn absurd_sizes_are_refused_not_allocated() {
    let huge = shape(&[1 << 30, 1 << 30]);
    assert_eq!(
        Tensor::new(DType::F32, huge.clone()).unwrap_err().code(),
        tensorfleet_status::Code::ResourceExhausted
    );
    assert_eq!(
        Tensor::new(DType::String, huge).unwrap_err().code(),
        tensorfleet_status::Code::ResourceExhausted
    );
}

#[test]
fn memory_that_the_system_does_not_give_is_an_error() {
    assert!(crate::Buffer::try_new(1 << 47).is_none());
    assert!(crate::Buffer::try_zeroed(usize::MAX - 8).is_none());
    // Whether a system lends so much that is not written to is its own affair.
    if let Err(status) = Tensor::new(DType::F32, shape(&[1 << 38])) {
        assert_eq!(status.code(), tensorfleet_status::Code::ResourceExhausted);
        assert!(
            status
                .message()
                .contains("shape[274877906944] and type float")
        );
    }
}

#[test]
fn raw_bools_are_normalised() {
    let t = Tensor::from_bytes(DType::Bool, shape(&[3]), Bytes::from_static(&[0, 1, 7])).unwrap();
    assert_eq!(t.slice::<bool>().unwrap(), &[false, true, true]);
    assert!(t.clone().bytes_mut().is_none());
    assert!(Tensor::from_bytes(DType::F32, shape(&[3]), Bytes::from_static(&[0; 11])).is_err());
}

#[test]
fn rows_share_plain_memory_and_copy_strings() {
    let a = Tensor::from_vec(shape(&[4, 8]), (0..32).map(|v| v as f32).collect()).unwrap();
    let middle = a.rows(1, 2).unwrap();
    assert_eq!(middle.shape().dims(), &[2, 8]);
    assert_eq!(middle.slice::<f32>().unwrap()[0], 8.0);
    assert!(a.rows(3, 2).is_err());
    let s = Tensor::from_vec(shape(&[2]), vec![TString::from("a"), TString::from("b")]).unwrap();
    assert_eq!(
        s.rows(1, 1).unwrap().slice::<TString>().unwrap(),
        &[TString::from("b")]
    );
}

#[test]
fn words_move_any_dtype_by_size() {
    fn reverse(t: &Tensor) -> Tensor {
        let mut out = t.clone();
        by_word!(t.dtype(), W => out.words_mut::<W>().unwrap().reverse());
        out
    }
    assert_eq!(
        reverse(&Tensor::vector(&[1.0f64, 2.0]))
            .slice::<f64>()
            .unwrap(),
        &[2.0, 1.0]
    );
    assert_eq!(
        reverse(&Tensor::vector(&[true, false]))
            .slice::<bool>()
            .unwrap(),
        &[false, true]
    );
    let s = Tensor::vector(&[TString::from("a"), TString::from("b")]);
    assert_eq!(
        reverse(&s).slice::<TString>().unwrap()[0],
        TString::from("b")
    );
    assert!(Tensor::scalar(true).words::<u8>().is_err());
}
