//! PNG files, read and written.

use png::{BitDepth, ColorType, Compression, Decoder, Encoder, Limits, Transformations};
use tensorfleet_status::{Result, Status, ensure, internal, invalid_argument};

use super::picture::{Picture, Samples};

/// No stream of compressed bytes becomes more than this many times longer.
const LARGEST_RATIO: usize = 1100;

/// Reads a picture with this many channels, 0 for as many as the file has; samples have 16 bits if asked for.
pub(super) fn decode(file: &[u8], channels: usize, wide: bool) -> Result<Picture> {
    let invalid = || invalid_argument!("Invalid PNG data, size {}", file.len());
    let bound = file
        .len()
        .saturating_mul(LARGEST_RATIO)
        .saturating_add(1 << 16);
    let limits = Limits { bytes: bound };
    let mut decoder = Decoder::new_with_limits(std::io::Cursor::new(file), limits);
    decoder.set_transformations(Transformations::EXPAND);
    let mut reader = decoder
        .read_info()
        .map_err(|_| invalid_argument!("Invalid PNG. Failed to initialize decoder."))?;
    let (width, height) = (reader.info().width as usize, reader.info().height as usize);
    ensure!(
        width < 1 << 27 && height < 1 << 27 && width.saturating_mul(height) < 1 << 29,
        invalid_argument,
        "PNG size too large for int: {width} by {height}"
    );
    let (color, depth) = reader.output_color_type();
    let size = reader.output_buffer_size().filter(|size| *size <= bound);
    let mut bytes = vec![0; size.ok_or_else(invalid)?];
    reader.next_frame(&mut bytes).map_err(|_| invalid())?;
    let words = match depth {
        BitDepth::Sixteen => {
            let pairs = bytes.as_chunks::<2>().0.iter();
            pairs.map(|pair| u16::from_be_bytes(*pair)).collect()
        }
        _ => bytes.iter().map(|byte| u16::from(*byte)).collect(),
    };
    let is_wide = depth == BitDepth::Sixteen;
    let from = match color {
        ColorType::Grayscale | ColorType::Indexed => 1,
        ColorType::GrayscaleAlpha => 2,
        ColorType::Rgb => 3,
        ColorType::Rgba => 4,
    };
    let to = match (channels, reader.info().color_type) {
        (0, ColorType::Grayscale) => 1,
        (0, ColorType::GrayscaleAlpha) => 2,
        (0, ColorType::Rgb) => 3,
        (0, ColorType::Rgba) => 4,
        (0, ColorType::Indexed) => 3 + usize::from(reader.info().trns.is_some()),
        (channels, _) => channels,
    };
    // As in TensorFlow an alpha that is added has as many bits as the file's samples.
    let opaque = ((1u32 << reader.info().bit_depth as u32) - 1) as u16;
    let words = with_channels(words, from, to, opaque, is_wide);
    let samples = match (wide, is_wide) {
        (true, true) => Samples::Words(words),
        (true, false) => Samples::Words(words.iter().map(|word| word << 8 | word).collect()),
        (false, true) => Samples::Bytes(words.iter().map(|word| (word >> 8) as u8).collect()),
        (false, false) => Samples::Bytes(words.iter().map(|word| *word as u8).collect()),
    };
    Ok(Picture {
        frames: None,
        height,
        width,
        channels: to,
        samples,
    })
}

/// Grey becomes three equal channels, three channels become grey by their brightness, and a missing alpha is opaque.
fn with_channels(words: Vec<u16>, from: usize, to: usize, opaque: u16, is_wide: bool) -> Vec<u16> {
    if from == to {
        return words;
    }
    let mut out = Vec::with_capacity(words.len() / from * to);
    for pixel in words.chunks_exact(from) {
        match (from > 2, to > 2) {
            (true, true) => out.extend_from_slice(&pixel[..3]),
            (false, true) => out.extend([pixel[0]; 3]),
            (true, false) => out.push(grey([pixel[0], pixel[1], pixel[2]], is_wide)),
            (false, false) => out.push(pixel[0]),
        }
        if to.is_multiple_of(2) {
            out.push(if from.is_multiple_of(2) {
                pixel[from - 1]
            } else {
                opaque
            });
        }
    }
    out
}

/// As libpng rounds it: wide samples to the nearest, others down.
fn grey([red, green, blue]: [u16; 3], is_wide: bool) -> u16 {
    if red == green && green == blue {
        return red;
    }
    let round = if is_wide { 16384 } else { 0 };
    let sum = 9798 * u32::from(red) + 19235 * u32::from(green) + 3735 * u32::from(blue);
    ((sum + round) >> 15) as u16
}

/// Writes a picture; wide samples are big-endian pairs of bytes.
pub(crate) fn encode(
    size: [u32; 2],
    channels: usize,
    wide: bool,
    compression: i64,
    samples: &[u8],
) -> Result<Vec<u8>> {
    let failed = |error: png::EncodingError| -> Status {
        internal!("the image cannot be written as PNG: {error}")
    };
    let [height, width] = size;
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out, width, height);
    encoder.set_depth(if wide {
        BitDepth::Sixteen
    } else {
        BitDepth::Eight
    });
    encoder.set_color(match channels {
        1 => ColorType::Grayscale,
        2 => ColorType::GrayscaleAlpha,
        3 => ColorType::Rgb,
        _ => ColorType::Rgba,
    });
    encoder.set_compression(match compression {
        0 => Compression::NoCompression,
        1..=3 => Compression::Fast,
        7..=9 => Compression::High,
        _ => Compression::Balanced,
    });
    let mut writer = encoder.write_header().map_err(failed)?;
    writer.write_image_data(samples).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(out)
}
