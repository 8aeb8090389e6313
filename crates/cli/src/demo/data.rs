//! The handwritten digits that the demo learns: 8×8 pixels, ten classes. Where they come from and under which
//! licence: `DIGITS.md` beside this file.

use std::io::Read;

use anyhow::{Context, Result, ensure};
use flate2::read::GzDecoder;
use tensorfleet::{Shape, Tensor};
/// Rows and columns of an image.
pub(super) const SIDE: usize = 8;
/// Pixels of an image.
pub(super) const PIXELS: usize = SIDE * SIDE;
/// Different digits.
pub(super) const CLASSES: usize = 10;

/// What a full pixel counts in the file.
const FULL: u8 = 16;
/// An image and its digit.
const RECORD: usize = PIXELS + 1;
const TRAINING: usize = 3823;
const TEST: usize = 1797;

const FILE: &[u8] = include_bytes!("digits.bin.gz");

/// All images: those to learn from, and those of other writers to be tested with.
pub(super) struct Digits {
    pub(super) training: Images,
    pub(super) test: Images,
}

/// Some images and the digits they show.
pub(super) struct Images {
    /// Image by image, row by row, from 0 (white) to 1 (black).
    pub(super) pixels: Vec<f32>,
    /// From 0 to 9.
    pub(super) labels: Vec<i64>,
}

impl Digits {
    /// Unpacks the images that are part of this binary.
    pub(super) fn load() -> Result<Digits> {
        let mut bytes = Vec::with_capacity((TRAINING + TEST) * RECORD);
        GzDecoder::new(FILE)
            .read_to_end(&mut bytes)
            .context("the digits in this binary are damaged")?;
        Digits::parse(&bytes)
    }

    fn parse(bytes: &[u8]) -> Result<Digits> {
        let wanted = (TRAINING + TEST) * RECORD;
        ensure!(
            bytes.len() == wanted,
            "the digits have {} bytes, not {wanted}",
            bytes.len()
        );
        let (training, test) = bytes.split_at(TRAINING * RECORD);
        Ok(Digits {
            training: Images::parse(training)?,
            test: Images::parse(test)?,
        })
    }
}

impl Images {
    /// `[N, 64]` and `[N]`.
    pub(super) fn tensors(&self) -> Result<(Tensor, Tensor)> {
        let count = self.len() as i64;
        let pixels = Tensor::from_slice(Shape::new(&[count, PIXELS as i64])?, &self.pixels)?;
        Ok((pixels, Tensor::vector(&self.labels)))
    }

    /// Every image five times: as it is, and moved by one pixel to each side. Writers differ in where they write,
    /// and there are few of them; so the network does not learn where exactly these wrote.
    pub(super) fn with_moved(&self) -> Images {
        let moves = [(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0)];
        let mut all = Images {
            pixels: Vec::with_capacity(self.pixels.len() * moves.len()),
            labels: Vec::with_capacity(self.labels.len() * moves.len()),
        };
        for (image, label) in self.pixels.chunks_exact(PIXELS).zip(&self.labels) {
            for (down, right) in moves {
                let moved = (0..PIXELS).map(|pixel| {
                    let row = (pixel / SIDE).checked_add_signed(-down);
                    let column = (pixel % SIDE).checked_add_signed(-right);
                    let (row, column) = (row?, column.filter(|column| *column < SIDE)?);
                    image.get(row * SIDE + column).copied()
                });
                all.pixels.extend(moved.map(Option::unwrap_or_default));
                all.labels.push(*label);
            }
        }
        all
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.labels.len()
    }

    fn parse(bytes: &[u8]) -> Result<Images> {
        let count = bytes.len() / RECORD;
        let mut images = Images {
            pixels: Vec::with_capacity(count * PIXELS),
            labels: Vec::with_capacity(count),
        };
        for (number, record) in bytes.chunks_exact(RECORD).enumerate() {
            let (pixels, label) = record.split_at(PIXELS);
            let label = label.first().copied().unwrap_or(u8::MAX);
            ensure!(
                usize::from(label) < CLASSES,
                "digit {number} claims to be a {label}"
            );
            let dark = pixels.iter().find(|pixel| **pixel > FULL);
            ensure!(
                dark.is_none(),
                "digit {number} has a pixel of {dark:?}, above {FULL}"
            );
            let scaled = pixels
                .iter()
                .map(|pixel| f32::from(*pixel) / f32::from(FULL));
            images.pixels.extend(scaled);
            images.labels.push(label.into());
        }
        Ok(images)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_all_images() {
        let digits = Digits::load().unwrap();
        assert_eq!(digits.training.len(), TRAINING);
        assert_eq!(digits.test.len(), TEST);
        for images in [&digits.training, &digits.test] {
            assert_eq!(images.pixels.len(), images.len() * PIXELS);
            assert!(images.pixels.iter().all(|p| (0.0..=1.0).contains(p)));
            // About a tenth of each.
            for digit in 0..10 {
                let count = images
                    .labels
                    .iter()
                    .filter(|label| **label == digit)
                    .count();
                assert!(
                    (8..13).contains(&(count * 100 / images.len())),
                    "{digit}: {count}"
                );
            }
        }
        // The first test image is a 0, white in the middle: row 3, column 3.
        assert_eq!(digits.test.labels[0], 0);
        assert_eq!(digits.test.pixels[3 * SIDE + 3], 0.0);
        assert_eq!(digits.test.pixels[3], 13.0 / 16.0);
    }

    #[test]
    fn moves_images_by_one_pixel() {
        let mut pixels = vec![0.0; PIXELS];
        pixels[0] = 0.5;
        pixels[3 * SIDE + 7] = 1.0;
        let labels = vec![4];
        let all = Images { pixels, labels }.with_moved();
        assert_eq!(all.labels, [4; 5]);
        let dark = |image: usize| -> Vec<usize> {
            let pixels = &all.pixels[image * PIXELS..(image + 1) * PIXELS];
            (0..PIXELS).filter(|pixel| pixels[*pixel] > 0.0).collect()
        };
        assert_eq!(dark(0), [0, 31]);
        assert_eq!(dark(1), [1], "to the right, and out of the picture");
        assert_eq!(dark(2), [30]);
        assert_eq!(dark(3), [8, 39]);
        assert_eq!(dark(4), [23]);
    }

    #[test]
    fn refuses_damaged_data() {
        let refused = |change: fn(&mut Vec<u8>)| {
            let mut bytes = vec![0; (TRAINING + TEST) * RECORD];
            change(&mut bytes);
            Digits::parse(&bytes).err().unwrap().to_string()
        };
        let short = refused(|bytes| bytes.truncate(100));
        assert!(short.contains("100 bytes"), "{short}");
        let label = refused(|bytes| bytes[RECORD + PIXELS] = 10);
        assert!(label.contains("digit 1 claims to be a 10"), "{label}");
        let pixel = refused(|bytes| bytes[5] = 17);
        assert!(pixel.contains("17"), "{pixel}");
    }
}
