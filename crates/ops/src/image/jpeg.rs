//! JPEG files, read and written.
//!
//! Pixels may differ from TensorFlow's by a little: what a file says is the same, how it is rounded is not.

use jpeg_encoder::{ColorType, Encoder, PixelDensity, PixelDensityUnit, SamplingFactor};
use tensorfleet_status::{Result, Status, ensure, internal, invalid_argument};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::picture::{Picture, Samples};

/// Pixels that a byte of a file may stand for: a block of 64 takes at least one bit.
const LARGEST_RATIO: usize = 512;

type Decoder<'a> = JpegDecoder<ZCursor<&'a [u8]>>;

fn invalid() -> Status {
    invalid_argument!("jpeg::Uncompress failed. Invalid JPEG data or crop window.")
}

/// How a file is read.
#[derive(Clone, Copy)]
pub(super) struct Reading {
    /// 0 for as many as the file has.
    pub(super) channels: usize,
    /// Pixels of the file for one of the picture, in each direction.
    pub(super) ratio: usize,
    /// Whether a file that ends too early is read as far as it goes.
    pub(super) recover: bool,
    /// Top, left, height and width of what is wanted.
    pub(super) crop: Option<[i64; 4]>,
}

/// The headers of a file: a decoder, and height, width and channels.
fn open(file: &[u8], reading: Reading) -> Result<(Decoder<'_>, [usize; 3])> {
    let sides = u16::MAX as usize;
    let options = DecoderOptions::default()
        .set_strict_mode(!reading.recover)
        .set_max_width(sides)
        .set_max_height(sides);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(file), options);
    decoder.decode_headers().map_err(|_| invalid())?;
    let info = decoder.info().ok_or_else(invalid)?;
    let found = match decoder.input_colorspace() {
        Some(ColorSpace::Luma) => 1,
        _ => 3,
    };
    let channels = if reading.channels == 0 {
        found
    } else {
        reading.channels
    };
    let size = [usize::from(info.height), usize::from(info.width), channels];
    ensure!(
        size[0] * size[1] <= file.len().saturating_mul(LARGEST_RATIO),
        invalid_argument,
        "jpeg::Uncompress failed. Invalid JPEG data or crop window."
    );
    Ok((decoder, size))
}

/// Whether a sequential file has its channels, of which some are smaller than others, in scans of their own. The decoder does
/// not put these together rightly.
fn has_separate_scans(file: &[u8]) -> bool {
    let (mut at, mut channels, mut sampled) = (2, 0, false);
    while let Some(&[0xff, marker, high, low]) = file.get(at..at + 4) {
        let segment = file.get(at + 4..).unwrap_or_default();
        match marker {
            0xff => {
                at += 1;
                continue;
            }
            // Frames: precision, height, width, then three bytes for each channel, the second being its sampling.
            0xc0 | 0xc1 => {
                channels = segment.get(5).copied().unwrap_or(0);
                let samplings = segment.get(7..).unwrap_or_default().iter().step_by(3);
                let mut samplings = samplings.take(usize::from(channels));
                sampled = samplings.any(|sampling| *sampling != 0x11);
            }
            0xda => return sampled && segment.first().is_some_and(|count| *count < channels),
            _ => {}
        }
        at += 2 + usize::from(u16::from_be_bytes([high, low]));
    }
    false
}

/// Height, width and channels of a file.
pub(super) fn size(file: &[u8]) -> Result<[usize; 3]> {
    let reading = Reading {
        channels: 0,
        ratio: 1,
        recover: true,
        crop: None,
    };
    open(file, reading).map(|(_, size)| size)
}

/// Reads a picture.
pub(super) fn decode(file: &[u8], reading: Reading) -> Result<Picture> {
    ensure!(
        reading.channels != 4,
        invalid_argument,
        "JPEG does not support 4 channels"
    );
    let (mut decoder, [height, width, channels]) = open(file, reading)?;
    ensure!(
        !has_separate_scans(file),
        unimplemented,
        "sequential JPEG files with a scan for each channel are not decoded"
    );
    let space = if channels == 1 {
        ColorSpace::Luma
    } else {
        ColorSpace::RGB
    };
    decoder.set_options(decoder.options().jpeg_set_out_colorspace(space));
    let pixels = decoder.decode().map_err(|_| invalid())?;
    ensure!(
        pixels.len() == height * width * channels,
        internal,
        "a picture of {height} by {width} has {} samples",
        pixels.len()
    );
    let (mut size, mut pixels) = ([height, width], pixels);
    if reading.ratio > 1 {
        (size, pixels) = shrunk(&pixels, size, channels, reading.ratio);
    }
    if let Some([top, left, rows, columns]) = reading.crop {
        let fits = |begin: i64, length: i64, size: usize| {
            begin >= 0
                && length > 0
                && begin
                    .checked_add(length)
                    .is_some_and(|end| end <= size as i64)
        };
        if !fits(top, rows, size[0]) || !fits(left, columns, size[1]) {
            return Err(invalid());
        }
        let [top, left, rows, columns] = [top, left, rows, columns].map(|value| value as usize);
        let lines = pixels.chunks_exact(size[1] * channels).skip(top).take(rows);
        let span = left * channels..(left + columns) * channels;
        pixels = lines
            .flat_map(|line| &line[span.clone()])
            .copied()
            .collect();
        size = [rows, columns];
    }
    Ok(Picture {
        frames: None,
        height: size[0],
        width: size[1],
        channels,
        samples: Samples::Bytes(pixels),
    })
}

/// The means of squares of pixels.
fn shrunk(
    pixels: &[u8],
    [height, width]: [usize; 2],
    channels: usize,
    ratio: usize,
) -> ([usize; 2], Vec<u8>) {
    let size = [height.div_ceil(ratio), width.div_ceil(ratio)];
    let mut out = Vec::with_capacity(size[0] * size[1] * channels);
    for row in 0..size[0] {
        for column in 0..size[1] {
            let rows = row * ratio..height.min((row + 1) * ratio);
            let columns = column * ratio..width.min((column + 1) * ratio);
            let count = rows.len() * columns.len();
            for c in 0..channels {
                let line = |y: usize| columns.clone().map(move |x| (y * width + x) * channels + c);
                let places = rows.clone().flat_map(line);
                let sum: usize = places.map(|place| usize::from(pixels[place])).sum();
                out.push(((sum + count / 2) / count) as u8);
            }
        }
    }
    (size, out)
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
