use proptest::prelude::*;

use super::*;
use crate::par::{Pool, Serial};

#[test]
fn clips_as_tensorflow() {
    let nan = f32::NAN;
    let x = [1.0, nan, -5.0, 9.0];
    let check = |low: &[f32], high: &[f32], want: [f32; 4]| {
        let mut out = [0.0; 4];
        clip(&Serial, &x, low, high, &mut out);
        assert!(out[1].is_nan());
        assert_eq!([out[0], out[2], out[3]], [want[0], want[2], want[3]]);
    };
    check(&[0.0], &[3.0], [1.0, nan, 0.0, 3.0]);
    check(&[3.0], &[0.0], [3.0, nan, 3.0, 3.0]);
    check(&[nan], &[3.0], [1.0, nan, -5.0, 3.0]);
    check(&[0.0, 0.0, -6.0, 0.0], &[3.0], [1.0, nan, -5.0, 3.0]);
    clip::<i64>(&Serial, &[], &[1], &[2], &mut []);
}

fn full<T: Copy>(view: &View, x: &[T], len: usize) -> Vec<T> {
    let mut reader = Reader::new(view, x, len);
    (0..len).map(|at| reader.get(at, 1)[0]).collect()
}

proptest! {
    #[test]
    fn selects_with_broadcasting(dims in prop::collection::vec((1usize..5, 0u8..8), 0..5), wide in 1usize..700) {
        let shape = |bit: u8| -> Vec<usize> {
            let mut shape: Vec<usize> = dims.iter().map(|&(n, ones)| if ones >> bit & 1 == 1 { 1 } else { n }).collect();
            shape.push(if bit == 1 { 1 } else { wide });
            shape
        };
        let (mask_shape, yes_shape, no_shape) = (shape(0), shape(1), shape(2));
        let plan = Select::new(&mask_shape, &yes_shape, &no_shape).unwrap();
        let count = |shape: &[usize]| shape.iter().product::<usize>();
        let mask: Vec<bool> = (0..count(&mask_shape)).map(|i| i % 3 == 0).collect();
        let yes: Vec<u16> = (0..count(&yes_shape)).map(|i| i as u16).collect();
        let no: Vec<u16> = (0..count(&no_shape)).map(|i| 30_000 + i as u16 % 9999).collect();
        let n = plan.len();
        let mut out = vec![0; n];
        select(&Pool::new(2), &plan, &mask, &yes, &no, &mut out);
        let (mask, yes, no) = (full(&plan.mask, &mask, n), full(&plan.yes, &yes, n), full(&plan.no, &no, n));
        let want: Vec<u16> = (0..n).map(|i| if mask[i] { yes[i] } else { no[i] }).collect();
        prop_assert_eq!(out, want);
    }
}

#[test]
fn refuses_and_handles_nothing() {
    assert!(Select::new(&[2], &[3], &[3]).is_err());
    let plan = Select::new(&[0], &[1], &[]).unwrap();
    select::<u8>(&Serial, &plan, &[], &[1], &[2], &mut []);
}
