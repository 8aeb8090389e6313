use proptest::prelude::*;

use super::*;
use crate::num::isa::Over2;
use crate::par::{Pool, Serial};

/// Reads the input for each output element by its indices.
fn naive(input: &[usize], out: &[usize], values: &[u32]) -> Vec<u32> {
    let lead = out.len() - input.len();
    (0..out.iter().product())
        .map(|at| {
            let (mut rest, mut offset, mut stride) = (at, 0, 1);
            for i in (0..out.len()).rev() {
                let index = rest % out[i];
                rest /= out[i];
                if i >= lead {
                    let own = input[i - lead];
                    if own != 1 {
                        offset += index * stride;
                    }
                    stride *= own;
                }
            }
            values[offset]
        })
        .collect()
}

fn check(a: &[usize], b: &[usize]) {
    let shape = out_shape(&[a, b]).unwrap();
    let values = |shape: &[usize], base: u32| {
        (0..shape.iter().product::<usize>() as u32)
            .map(|i| i + base)
            .collect::<Vec<_>>()
    };
    let (x, y) = (values(a, 0), values(b, 1_000_000));
    let (full_x, full_y) = (naive(a, &shape, &x), naive(b, &shape, &y));
    let want: Vec<u32> = full_x
        .iter()
        .zip(&full_y)
        .map(|(x, y)| x.wrapping_mul(31).wrapping_sub(*y))
        .collect();
    let f = |x: &[u32], y: &[u32], out: &mut [u32]| {
        assert!(x.len() == out.len() && y.len() == out.len());
        for ((out, x), y) in out.iter_mut().zip(x).zip(y) {
            *out = x.wrapping_mul(31).wrapping_sub(*y);
        }
    };
    fn over_lhs(x: &mut [u32], y: &[u32]) {
        assert_eq!(x.len(), y.len());
        for (x, y) in x.iter_mut().zip(y) {
            *x = x.wrapping_mul(31).wrapping_sub(*y);
        }
    }
    fn over_rhs(y: &mut [u32], x: &[u32]) {
        assert_eq!(x.len(), y.len());
        for (x, y) in x.iter().zip(y) {
            *y = x.wrapping_mul(31).wrapping_sub(*y);
        }
    }
    let plan = Broadcast::new(a, b).unwrap();
    assert_eq!(plan.len(), want.len());
    assert_eq!(
        plan.lhs.input_len(want.len()),
        if want.is_empty() && !plan.lhs_is_full() {
            plan.lhs.input_len(0)
        } else {
            x.len()
        }
    );
    let pool = Pool::new(2);
    for grain in [1 << 20, 97] {
        let mut out = vec![0; want.len()];
        run2(&pool, &plan, grain, (&x, &y), &mut out, f);
        assert_eq!(out, want, "{a:?} {b:?}");
        if plan.lhs_is_full() {
            for over in [None, Some(over_lhs as Over2<u32>)] {
                let mut x = x.clone();
                run2_lhs(&Serial, &plan, grain, (&mut x, &y), over, f);
                assert_eq!(x, want);
            }
        }
        if plan.rhs_is_full() {
            for over in [None, Some(over_rhs as Over2<u32>)] {
                let mut y = y.clone();
                run2_rhs(&pool, &plan, grain, (&x, &mut y), over, f);
                assert_eq!(y, want);
            }
        }
    }
}

#[test]
fn known_shapes() {
    for (a, b) in [
        (&[][..], &[][..]),
        (&[], &[5]),
        (&[5], &[]),
        (&[0], &[1]),
        (&[0, 3], &[3]),
        (&[4, 0, 2], &[1, 1, 2]),
        (&[7, 10], &[10]),
        (&[7, 10], &[7, 1]),
        (&[3, 1000], &[1000]),
        (&[1000, 3], &[1000, 1]),
        (&[2, 1, 3, 1, 2, 1, 2, 2], &[1, 3, 1, 2, 1, 2, 1, 2]),
        (&[2, 3, 4], &[3, 1]),
        (&[513], &[1]),
        (&[2, 600, 3], &[2, 1, 3]),
    ] {
        check(a, b);
    }
}

#[test]
fn refuses_incompatible_shapes() {
    assert!(Broadcast::new(&[2, 3], &[2]).is_err());
    assert!(Broadcast::new(&[0], &[2]).is_err());
    assert!(View::new(&[2, 3], &[3]).is_err());
    assert!(View::new(&[2], &[1]).is_err());
    assert!(out_shape(&[&[2, 1], &[1, 3], &[4, 1, 1]]).is_ok());
}

proptest! {
    #[test]
    fn any_shapes(dims in prop::collection::vec((0usize..6, 0u8..4), 0..7), drop_a in 0usize..3, drop_b in 0usize..3) {
        let a: Vec<usize> = dims.iter().map(|&(n, kind)| if kind == 1 { 1 } else { n }).skip(drop_a).collect();
        let b: Vec<usize> = dims.iter().map(|&(n, kind)| if kind == 2 { 1 } else { n }).skip(drop_b).collect();
        check(&a, &b);
    }
}
