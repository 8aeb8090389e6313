//! JPEG files, read and written.
//!
//! Files are read here, pixel by pixel as libjpeg reads them for TensorFlow: [`segments`] has the headers, [`scan`] and [`entropy`] the
//! bits, [`idct`] blocks of samples, [`upsample`] and [`colors`] the pixels. They are written by a crate.

mod colors;
mod decode;
mod entropy;
mod idct;
mod scan;
mod segments;
#[cfg(test)]
mod tests;
mod upsample;

use jpeg_encoder::{ColorType, Encoder, PixelDensity, PixelDensityUnit, SamplingFactor};
use tensorfleet_status::{Result, Status, ensure, internal, invalid_argument};

use super::picture::Picture;

fn invalid() -> Status {
    invalid_argument!("jpeg::Uncompress failed. Invalid JPEG data or crop window.")
}

/// How a file is read.
#[derive(Clone, Copy)]
pub(super) struct Reading {
    /// 0 for as many as the file has.
    pub(super) channels: usize,
    /// Pixels of the file for one of the picture, in each direction: 1, 2, 4 or 8.
    pub(super) ratio: usize,
    /// Whether blocks are transformed fast, or accurately.
    pub(super) is_fast: bool,
    /// Whether colours of fewer samples than the picture has pixels are blended, or repeated.
    pub(super) fancy: bool,
    /// Whether a file that ends too early is read as far as it goes.
    pub(super) recover: bool,
    /// Top, left, height and width of what is wanted.
    pub(super) crop: Option<[i64; 4]>,
}

/// Height, width and channels of a file.
pub(super) fn size(file: &[u8]) -> Result<[usize; 3]> {
    decode::size(file)
}

/// Reads a picture.
pub(super) fn decode(file: &[u8], reading: Reading) -> Result<Picture> {
    ensure!(
        reading.channels != 4,
        invalid_argument,
        "JPEG does not support 4 channels"
    );
    decode::decode(file, reading)
}

/// How a file is written.
pub(super) struct Writing<'a> {
    pub(super) quality: i64,
    pub(super) progressive: bool,
    pub(super) optimize_size: bool,
    pub(super) chroma_downsampling: bool,
    /// Dots per inch or centimetre.
    pub(super) density: Option<(bool, [u16; 2])>,
    pub(super) xmp: &'a [u8],
}

/// Writes a picture of one or three channels.
pub(super) fn encode(
    pixels: &[u8],
    [height, width, channels]: [usize; 3],
    writing: &Writing<'_>,
) -> Result<Vec<u8>> {
    let side = |size: usize| {
        let found = u16::try_from(size).ok().filter(|size| *size > 0);
        found.ok_or_else(|| invalid_argument!("JPEG encoding failed: a side of {size} pixels"))
    };
    let (height, width) = (side(height)?, side(width)?);
    let failed = |error: jpeg_encoder::EncodingError| internal!("JPEG encoding failed: {error}");
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out, writing.quality.clamp(1, 100) as u8);
    // Tables of its own a file has with a scan for each channel, which is what progressive ones have anyway.
    encoder.set_progressive(writing.progressive || writing.optimize_size);
    encoder.set_optimized_huffman_tables(writing.optimize_size);
    encoder.set_sampling_factor(if writing.chroma_downsampling {
        SamplingFactor::F_2_2
    } else {
        SamplingFactor::F_1_1
    });
    if let Some((by_inch, density)) = writing.density {
        let unit = if by_inch {
            PixelDensityUnit::Inches
        } else {
            PixelDensityUnit::Centimeters
        };
        encoder.set_density(PixelDensity {
            density: (density[0], density[1]),
            unit,
        });
    }
    if !writing.xmp.is_empty() {
        let segment = [b"http://ns.adobe.com/xap/1.0/\0", writing.xmp].concat();
        encoder.add_app_segment(1, segment).map_err(failed)?;
    }
    let color = if channels == 1 {
        ColorType::Luma
    } else {
        ColorType::Rgb
    };
    encoder
        .encode(pixels, width, height, color)
        .map_err(failed)?;
    Ok(out)
}
