use super::*;
use crate::par::{Pool, Serial};

fn of<D: Clone + Default>(x: Slice<'_>) -> Vec<D>
where
    for<'a> SliceMut<'a>: From<&'a mut [D]>,
{
    let mut out = vec![D::default(); x.len()];
    cast(&Serial, x, out.as_mut_slice().into(), false);
    out
}

/// Values of TensorFlow 2.21's vector code.
#[test]
fn floats_to_integers_as_tensorflow() {
    let x = [
        0.5f32,
        -0.5,
        1.9,
        -1.9,
        127.5,
        128.0,
        255.9,
        300.0,
        -129.0,
        40000.0,
        70000.0,
        2_147_483_648.0,
        -1e10,
        f32::NAN,
    ];
    let wide: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
    let low = i32::MIN;
    let ints = [
        0, 0, 1, -1, 127, 128, 255, 300, -129, 40000, 70000, low, low, low,
    ];
    let bytes = [
        0, 0, 1, -1, 127, 127, 127, 127, -128, 127, 127, -128, -128, -128i8,
    ];
    let unsigned = [0, 0, 1, 0, 127, 128, 255, 255, 0, 255, 255, 0, 0, 0u8];
    for x in [Slice::F32(&x), Slice::F64(&wide)] {
        assert_eq!(of::<i32>(x), ints);
        assert_eq!(of::<i8>(x), bytes);
        assert_eq!(of::<u8>(x), unsigned);
        assert_eq!(of::<i16>(x)[9..12], [32767, 32767, -32768]);
        assert_eq!(of::<u16>(x)[8..12], [0, 40000, 65535, 0]);
        assert_eq!(of::<u32>(x)[..4], [0, 0, 1, u32::MAX]);
        assert_eq!(
            of::<i64>(x)[11..],
            [2_147_483_648, -10_000_000_000, i64::MIN]
        );
        let flags = of::<bool>(x);
        assert!(flags.iter().all(|&flag| flag));
    }
    let large = [
        9.2e18f64,
        9.3e18,
        -9.3e18,
        1.8e19,
        1.9e19,
        -1.0,
        f64::INFINITY,
    ];
    let two63 = 1u64 << 63;
    let want = [
        9_200_000_000_000_000_000,
        9_300_000_000_000_000_000,
        two63,
        18_000_000_000_000_000_000,
        two63,
        u64::MAX,
        two63,
    ];
    assert_eq!(of::<u64>(Slice::F64(&large)), want);
    assert_eq!(
        of::<i64>(Slice::F64(&large))[..2],
        [9_200_000_000_000_000_000, i64::MIN]
    );
    assert_eq!(of::<i32>(Slice::BF16(&[bf16::from_f32(-1.9)])), [-1]);
}

#[test]
fn integers_wrap() {
    let x = [
        0i64,
        -1,
        128,
        65_535,
        1 << 31,
        (1 << 53) + 1,
        i64::MAX,
        i64::MIN,
        16_777_217,
    ];
    let x = Slice::I64(&x);
    assert_eq!(of::<i8>(x), [0, -1, -128, -1, 0, 1, -1, 0, 1]);
    assert_eq!(of::<u16>(x), [0, 65_535, 128, 65_535, 0, 1, 65_535, 0, 1]);
    assert_eq!(
        of::<i32>(x),
        [0, -1, 128, 65_535, i32::MIN, 1, -1, 0, 16_777_217]
    );
    assert_eq!(of::<f32>(x)[8], 16_777_216.0);
    assert_eq!(of::<f64>(x)[8], 16_777_217.0);
    assert_eq!(of::<f16>(x)[3], f16::INFINITY);
    assert_eq!(of::<bf16>(x)[3].to_f32(), 65_536.0);
    assert_eq!(of::<Complex<f32>>(x)[2], Complex::new(128.0, 0.0));
    let y = Slice::U64(&[u64::MAX, 1 << 63, 3]);
    assert_eq!(
        of::<f32>(y),
        [
            18_446_744_073_709_551_616.0,
            9_223_372_036_854_775_808.0,
            3.0
        ]
    );
    assert_eq!(of::<f64>(y)[0], 18_446_744_073_709_551_616.0);
    assert_eq!(of::<i64>(y), [-1, i64::MIN, 3]);
    assert_eq!(of::<f32>(Slice::U32(&[u32::MAX])), [4_294_967_296.0]);
    assert_eq!(of::<u32>(Slice::I8(&[-1])), [u32::MAX]);
}

#[test]
fn complex_and_bool() {
    let x = [
        Complex::new(1.5f32, 2.0),
        Complex::new(-3.9, 0.0),
        Complex::new(0.0, 1.0),
    ];
    let x = Slice::C64(&x);
    assert_eq!(of::<f32>(x), [1.5, -3.9, 0.0]);
    assert_eq!(of::<i32>(x), [1, -3, 0]);
    assert_eq!(of::<bool>(x), [true, true, false]);
    assert_eq!(of::<Complex<f64>>(x)[0], Complex::new(1.5, 2.0));
    let flags = Slice::Bool(&[true, false]);
    assert_eq!(of::<f32>(flags), [1.0, 0.0]);
    assert_eq!(of::<f16>(flags), [f16::ONE, f16::ZERO]);
    assert_eq!(of::<Complex<f64>>(flags), [Complex::ONE, Complex::ZERO]);
}

#[test]
fn narrow_floats_round_or_truncate() {
    let x = [
        1.003_906_2f32,
        1.007_812_5,
        1.011_718_8,
        f32::NAN,
        65_520.0,
        3.4e38,
        -1.011_718_8,
    ];
    let run = |truncate| {
        let mut out = [bf16::ZERO; 7];
        cast(&Serial, Slice::F32(&x), SliceMut::BF16(&mut out), truncate);
        assert!(out[3].is_nan());
        out.map(bf16::to_f32)
    };
    assert_eq!(run(false)[..3], [1.0, 1.007_812_5, 1.015_625]);
    assert_eq!(run(false)[5], f32::INFINITY);
    assert_eq!(run(true)[..3], [1.0, 1.007_812_5, 1.007_812_5]);
    assert_eq!(run(true)[4..], [65_280.0, 3.389_531_4e38, -1.007_812_5]);
    let mut out = [f16::ZERO; 7];
    cast(&Serial, Slice::F32(&x), SliceMut::F16(&mut out), true);
    assert_eq!(out[4].to_f32(), 65_504.0);
    assert_eq!(out[5], f16::INFINITY);
    let mut out = [0f32];
    cast(
        &Serial,
        Slice::F64(&[1.0 + 1.9 * f64::from(f32::EPSILON)]),
        SliceMut::F32(&mut out),
        true,
    );
    assert_eq!(out, [1.0 + f32::EPSILON]);
    let twice = Slice::F64(&[1.0 + 2f64.powi(-8) + 2f64.powi(-40)]);
    assert_eq!(of::<bf16>(twice), [bf16::ONE]);
}

/// Small whole numbers survive any chain of conversions, at any length.
#[test]
fn every_pair_keeps_small_numbers() {
    for n in [0usize, 1, 7, 511, 512, 513, 70_000] {
        let base: Vec<u8> = (0..n).map(|i| (i % 100) as u8).collect();
        macro_rules! types {
            ($($variant:ident $blank:expr;)*) => {
                vec![$(
                    (stringify!($variant), (|x: Slice<'_>, again: &mut [u8]| {
                        let mut out = vec![$blank; x.len()];
                        cast(&Pool::new(2), x, SliceMut::$variant(&mut out), false);
                        cast(&Serial, Slice::$variant(&out), SliceMut::U8(again), false);
                    }) as fn(Slice<'_>, &mut [u8])),
                )*]
            };
        }
        let types = types! {
            I8 0; I16 0; I32 0; I64 0; U8 0; U16 0; U32 0; U64 0; F16 f16::ZERO; BF16 bf16::ZERO; F32 0.0; F64 0.0;
            C64 Complex::ZERO; C128 Complex::ZERO;
        };
        macro_rules! sources {
            ($($variant:ident $blank:expr;)*) => {$(
                let mut source = vec![$blank; n];
                cast(&Serial, Slice::U8(&base), SliceMut::$variant(&mut source), false);
                for (name, through) in &types {
                    let mut again = vec![0; n];
                    through(Slice::$variant(&source), &mut again);
                    assert_eq!(again, base, "{} to {name}", stringify!($variant));
                }
            )*};
        }
        sources! {
            I8 0; I16 0; I32 0; I64 0; U8 0; U16 0; U32 0; U64 0; F16 f16::ZERO; BF16 bf16::ZERO; F32 0.0; F64 0.0;
            C64 Complex::ZERO; C128 Complex::ZERO;
        }
    }
}
