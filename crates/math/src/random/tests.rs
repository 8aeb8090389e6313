use half::{bf16, f16};

use super::normal::box_muller_f32;
use super::*;
use crate::par::{Par, Pool, Serial};

const GOLDEN: &str = include_str!("golden/random.txt");

/// Something with little-endian bytes, for digests.
trait Bytes {
    fn bytes(&self) -> Vec<u8>;
}

macro_rules! bytes {
    ($($ty:ty),*) => {
        $(impl Bytes for $ty {
            fn bytes(&self) -> Vec<u8> {
                self.to_le_bytes().to_vec()
            }
        })*
    };
}

bytes!(f16, bf16, f32, f64, i32, u32, i64, u64);

fn digest<T: Bytes>(values: &[T]) -> String {
    let fnv = values
        .iter()
        .flat_map(Bytes::bytes)
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
    format!("{fnv:016x}")
}

struct Case<'a> {
    op: &'a str,
    dtype: &'a str,
    count: usize,
    args: Vec<i64>,
    digests: Vec<&'a str>,
}

fn cases() -> impl Iterator<Item = Case<'static>> {
    GOLDEN.lines().map(|line| {
        let (left, right) = line.split_once(" = ").unwrap();
        let mut words = left.split(' ');
        Case {
            op: words.next().unwrap(),
            dtype: words.next().unwrap(),
            count: words.next().unwrap().parse().unwrap(),
            args: words.map(|arg| arg.parse().unwrap()).collect(),
            digests: right.split(' ').collect(),
        }
    })
}

fn floats<T>(par: &dyn Par, case: &Case<'_>) -> Vec<String>
where
    T: UniformFloat + Normal + FromDrawn + Bytes + Default + Into<f64> + Sync,
{
    let mut stream = match case.op.starts_with("stateless") {
        true => Philox::stateless([case.args[0], case.args[1]]),
        false => Philox::new(case.args[0], case.args[1]),
    };
    let calls = case.digests.iter().map(|_| {
        let mut out = vec![T::default(); case.count];
        match case.op.trim_start_matches("stateless_") {
            "uniform" => fill_uniform(par, stream.reserve_outputs(case.count), &mut out),
            "normal" => fill_normal(par, stream.reserve_outputs(case.count), &mut out),
            "truncated" => {
                fill_truncated_normal(par, stream.reserve_outputs(case.count), &mut out);
            }
            "multinomial" => {
                let infinite = f64::INFINITY;
                #[rustfmt::skip]
                let logits = [
                    0.1, -1.0, 2.5, -infinite,
                    1.0, 1.0, 1.0, 1.0,
                    -3.0, 0.0, infinite, 0.5,
                ]
                .map(T::from_drawn);
                let mut out = vec![0_i64; 3 * case.count];
                let philox = stream.reserve_outputs(multinomial_outputs(3, case.count));
                fill_multinomial(par, philox, &logits, 4, case.count, &mut out);
                return digest(&out);
            }
            "gamma" | "poisson" => {
                out = vec![T::default(); 4 * case.count];
                let philox = stream.reserve_outputs(4 * case.count);
                let rounded = |x: f64| -> f64 { T::from_drawn(x).into() };
                match case.op {
                    "gamma" => {
                        fill_gamma(par, philox, &[0.3, 1.0, 2.5, 40.0].map(rounded), &mut out);
                    }
                    _ => fill_poisson(par, philox, &[0.5, 4.0, 12.0, 300.0], &mut out),
                }
            }
            other => panic!("unknown op {other}"),
        }
        digest(&out)
    });
    calls.collect()
}

fn ints<T>(par: &dyn Par, case: &Case<'_>, low: T, high: T) -> Vec<String>
where
    T: UniformInt + FullInt + Bytes + Default + Sync,
{
    let mut stream = Philox::new(case.args[0], case.args[1]);
    let calls = case.digests.iter().map(|_| {
        let mut out = vec![T::default(); case.count];
        let philox = stream.reserve_outputs(case.count);
        fill_uniform_int(par, philox, low, high, &mut out);
        digest(&out)
    });
    calls.collect()
}

fn full_ints<T: FullInt + Bytes + Default>(par: &dyn Par, case: &Case<'_>) -> Vec<String> {
    let mut out = vec![T::default(); case.count];
    let philox = Philox::stateless([case.args[0], case.args[1]]);
    fill_full_int(par, philox, &mut out);
    vec![digest(&out)]
}

fn run(par: &dyn Par, case: &Case<'_>) -> Vec<String> {
    match (case.op, case.dtype) {
        ("key_counter", _) => {
            let philox = Philox::stateless([case.args[0], case.args[1]]);
            let [low, high] = philox.counter();
            vec![digest(&[philox.key(), low, high])]
        }
        ("shuffle", _) => {
            let mut stream = Philox::new(case.args[0], case.args[1]);
            let calls = case.digests.iter().map(|_| {
                let philox = stream.reserve_samples(shuffle_samples(case.count));
                let order = shuffle_order(philox, case.count);
                digest(&order.iter().map(|&row| row as i64).collect::<Vec<_>>())
            });
            calls.collect()
        }
        ("uniform_int", "int32") => ints(par, case, case.args[2] as i32, case.args[3] as i32),
        ("uniform_int", _) => ints(par, case, case.args[2], case.args[3]),
        ("stateless_full_int", "int32") => full_ints::<i32>(par, case),
        ("stateless_full_int", "uint32") => full_ints::<u32>(par, case),
        ("stateless_full_int", "int64") => full_ints::<i64>(par, case),
        ("stateless_full_int", _) => full_ints::<u64>(par, case),
        (_, "half") => floats::<f16>(par, case),
        (_, "bfloat16") => floats::<bf16>(par, case),
        (_, "float32") => floats::<f32>(par, case),
        _ => floats::<f64>(par, case),
    }
}

#[test]
fn draws_what_tensorflow_draws() {
    let mut failures = Vec::new();
    for case in cases() {
        let got = run(&Serial, &case);
        if got != case.digests {
            failures.push(format!(
                "{} {} {} {:?}",
                case.op, case.dtype, case.count, case.args
            ));
        }
    }
    assert!(
        failures.is_empty(),
        "{} differ: {failures:#?}",
        failures.len()
    );
}

#[test]
fn vector_normals_have_the_bits_of_the_c_library() {
    // All radii and all angles the generator can produce: 2^23 of each.
    let mut words = [0; 32];
    let mut out = [0.0_f32; 32];
    for base in (0..1 << 23).step_by(16) {
        for i in 0..16 {
            words[2 * i] = base + i as u32;
            words[2 * i + 1] = (base + i as u32).wrapping_mul(0x9e37_79b1);
        }
        Drawn::draw(&words, &mut out);
        for i in 0..16 {
            let [a, b] = box_muller_f32(words[2 * i], words[2 * i + 1]);
            let got = [out[2 * i], out[2 * i + 1]];
            assert_eq!(
                got.map(f32::to_bits),
                [a, b].map(f32::to_bits),
                "{words:x?}"
            );
        }
    }
}

#[test]
fn fills_do_not_depend_on_threads() {
    let pool = Pool::new(3);
    for count in [0, 1, 3, 4, 5, 63, 64, 65, 4095, 100_003] {
        let philox = Philox::new(3, 9);
        let check = |fill: &dyn Fn(&dyn Par, &mut [f32])| {
            let mut serial = vec![0.0; count];
            let mut parallel = vec![1.0; count];
            fill(&Serial, &mut serial);
            fill(&pool, &mut parallel);
            assert_eq!(digest(&serial), digest(&parallel), "{count}");
        };
        check(&|par, out| fill_uniform(par, philox, out));
        check(&|par, out| fill_normal(par, philox, out));
        check(&|par, out| fill_truncated_normal(par, philox, out));
        if count < 5000 {
            check(&|par, out| fill_gamma(par, philox, &[0.5], out));
            check(&|par, out| fill_poisson(par, philox, &[20.0], out));
        }
    }
}

#[test]
fn words_are_those_of_single_samples() {
    // The second stream wraps its lowest counter word in the middle of the fill.
    for philox in [
        Philox::new(-7, 1),
        Philox::from_key_counter(77, [u64::from(u32::MAX) - 20, 5]),
        Philox::from_key_counter(77, [u64::MAX - 20, u64::MAX]),
    ] {
        for len in [0, 1, 4, 31, 32, 33, 130, 511] {
            let mut words = vec![0; len];
            philox.fill_words(&mut words);
            let mut strided = vec![0; len];
            philox.fill_strided(&mut strided, 256);
            for i in 0..len {
                let sample = i as u64 / 4;
                assert_eq!(words[i], philox.sample_at(sample)[i % 4]);
                assert_eq!(strided[i], philox.sample_at(sample * 256)[i % 4]);
            }
        }
    }
}

#[test]
fn hopeless_rates_end() {
    let mut ints = [1_i32; 4];
    fill_poisson(
        &Serial,
        Philox::new(1, 1),
        &[1e30, f64::INFINITY, f64::NAN, -3.0],
        &mut ints,
    );
    assert_eq!(ints, [i32::MAX, 0, 0, 0]);
    let mut halves = [f16::ZERO; 2];
    fill_poisson(
        &Serial,
        Philox::new(1, 1),
        &[1e9, f64::INFINITY],
        &mut halves,
    );
    assert_eq!(halves, [f16::MAX, f16::INFINITY]);
    fill_gamma::<f32>(&Serial, Philox::new(1, 1), &[], &mut []);
}
