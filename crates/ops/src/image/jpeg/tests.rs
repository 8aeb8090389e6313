//! Files that are read as they should be, and damaged ones, which must not end anything but themselves.

use jpeg_encoder::{ColorType, Encoder, SamplingFactor};

use super::{Reading, decode};
use crate::image::picture::Samples;

const READING: Reading = Reading {
    channels: 0,
    ratio: 1,
    is_fast: false,
    fancy: true,
    recover: false,
    crop: None,
};

/// Waves of colours.
fn pixels(height: usize, width: usize) -> Vec<u8> {
    let pixel = |at: usize| {
        let (y, x) = ((at / width) as f64, (at % width) as f64);
        let wave = |a: f64, b: f64| (128.0 + 100.0 * (a * x + b * y).sin()) as u8;
        [wave(0.1, 0.02), wave(0.03, 0.08), wave(-0.05, 0.06)]
    };
    (0..height * width).flat_map(pixel).collect()
}

fn file(height: usize, width: usize, sampling: SamplingFactor, progressive: bool) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out, 95);
    encoder.set_sampling_factor(sampling);
    encoder.set_progressive(progressive);
    encoder.set_restart_interval(3);
    let pixels = pixels(height, width);
    encoder
        .encode(&pixels, width as u16, height as u16, ColorType::Rgb)
        .unwrap();
    out
}

fn bytes(file: &[u8], reading: Reading) -> Vec<u8> {
    match decode(file, reading).unwrap().samples {
        Samples::Bytes(bytes) => bytes,
        _ => Vec::new(),
    }
}

#[test]
fn pictures_come_back_nearly_as_they_were() {
    for (height, width) in [(1, 1), (3, 2), (16, 16), (33, 47), (50, 9)] {
        for sampling in [
            SamplingFactor::F_1_1,
            SamplingFactor::F_2_1,
            SamplingFactor::F_1_2,
            SamplingFactor::F_2_2,
            SamplingFactor::F_4_1,
        ] {
            for progressive in [false, true] {
                let found = bytes(&file(height, width, sampling, progressive), READING);
                let wanted = pixels(height, width);
                assert_eq!(found.len(), wanted.len());
                let differences = found.iter().zip(&wanted).map(|(a, b)| a.abs_diff(*b));
                let most = differences.max().unwrap();
                assert!(
                    most < 40,
                    "{height} by {width}, {sampling:?}, {progressive}: {most}"
                );
            }
        }
    }
}

#[test]
fn shrunk_pictures_have_fewer_pixels() {
    let file = file(33, 47, SamplingFactor::F_2_2, false);
    for ratio in [1, 2, 4, 8] {
        let found = bytes(&file, Reading { ratio, ..READING });
        assert_eq!(
            found.len(),
            33usize.div_ceil(ratio) * 47usize.div_ceil(ratio) * 3
        );
    }
}

#[test]
fn a_window_is_the_same_as_in_the_whole_picture() {
    let file = file(64, 64, SamplingFactor::F_1_1, true);
    let whole = bytes(&file, READING);
    let crop = Some([5, 17, 20, 30]);
    let window = bytes(&file, Reading { crop, ..READING });
    for (row, line) in window.chunks_exact(30 * 3).enumerate() {
        let begin = ((row + 5) * 64 + 17) * 3;
        assert_eq!(line, &whole[begin..begin + 30 * 3]);
    }
    for crop in [
        [-1, 0, 2, 2],
        [0, 0, 0, 2],
        [60, 0, 5, 5],
        [0, 1, 1, i64::MAX],
    ] {
        let crop = Some(crop);
        assert!(decode(&file, Reading { crop, ..READING }).is_err());
    }
}

#[test]
fn files_that_end_early_are_read_only_if_that_is_wanted() {
    let file = file(64, 64, SamplingFactor::F_2_2, false);
    for length in 0..file.len() {
        assert!(decode(&file[..length], READING).is_err(), "{length}");
    }
    let recover = Reading {
        recover: true,
        ..READING
    };
    let whole = bytes(&file, READING);
    let half = bytes(&file[..file.len() / 2], recover);
    assert_eq!(half[..12 * 3], whole[..12 * 3]);
    assert_eq!(half[half.len() - 3..], [128; 3]);
}

#[test]
fn no_damage_goes_too_far() {
    let mut seed = 7u32;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) as usize % below
    };
    for (progressive, sampling) in [
        (false, SamplingFactor::F_2_2),
        (true, SamplingFactor::F_2_2),
        (false, SamplingFactor::F_1_1),
    ] {
        let good = file(24, 40, sampling, progressive);
        for _ in 0..300 {
            let mut bad = good.clone();
            for _ in 0..1 + random(4) {
                let at = random(bad.len());
                bad[at] = random(256) as u8;
            }
            bad.truncate(bad.len() - random(3) * random(bad.len()) / 3);
            for recover in [false, true] {
                // Any answer will do.
                let _ = decode(&bad, Reading { recover, ..READING });
            }
        }
    }
}
