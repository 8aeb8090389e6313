use half::bf16;
use proptest::prelude::*;

use super::*;
use crate::par::{Pool, Serial};

#[test]
fn leaky_relu_as_tensorflow() {
    let x = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, 1.0, -1.0];
    let mut y = [0.0; 6];
    leaky_relu(&Serial, &x, 0.2, &mut y);
    assert!(y[0].is_nan());
    assert_eq!(y[1..], [f32::INFINITY, f32::NEG_INFINITY, 0.0, 1.0, -0.2]);
    leaky_relu_grad(&Serial, &[1.0; 6], &x, 0.2, &mut y);
    assert_eq!(y, [0.2, 1.0, 0.2, 0.2, 1.0, 0.2]);
    let half = [bf16::from_f32(-2.0)];
    let mut out = [bf16::ZERO];
    leaky_relu(&Serial, &half, 0.5, &mut out);
    assert_eq!(out, [bf16::from_f32(-1.0)]);
}

proptest! {
    #[test]
    fn bias_in_both_layouts(outer in 0usize..40, count in 1usize..40, inner in 1usize..9) {
        let channels = Channels { count, inner };
        let x: Vec<i32> = (0..(outer * count * inner) as i32).collect();
        let bias: Vec<i32> = (0..count as i32).map(|i| 1000 * i).collect();
        let channel = |i: usize| i / inner % count;
        let want: Vec<i32> = x.iter().enumerate().map(|(i, x)| x + bias[channel(i)]).collect();
        let pool = Pool::new(2);
        let mut y = vec![0; x.len()];
        bias_add(&pool, channels, &x, &bias, &mut y);
        prop_assert_eq!(&y, &want);
        let mut y = x.clone();
        bias_add_in_place(&pool, channels, &mut y, &bias);
        prop_assert_eq!(&y, &want);
        let mut sums = vec![0; count];
        for (i, x) in x.iter().enumerate() {
            sums[channel(i)] += x;
        }
        let mut db = vec![7; count];
        bias_add_grad(&pool, channels, &x, &mut db);
        prop_assert_eq!(db, sums);
    }
}
