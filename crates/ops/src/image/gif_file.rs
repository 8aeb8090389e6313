//! GIF files: all frames as they are shown.

use gif::{ColorOutput, DecodeOptions, MemoryLimit};
use tensorfleet_status::{Result, ensure, invalid_argument};

use super::picture::{Picture, Samples};

/// Bytes that all frames of a file may take.
const LIMIT: usize = 1 << 30;

/// Reads the frames, or only the first.
pub(super) fn decode(file: &[u8], only_first: bool) -> Result<Picture> {
    let invalid = |error: &dyn std::fmt::Display| {
        invalid_argument!("Invalid GIF data (size {}), {error}", file.len())
    };
    let mut options = DecodeOptions::new();
    options.set_color_output(ColorOutput::Indexed);
    options.set_memory_limit(MemoryLimit::Bytes(
        std::num::NonZeroU64::new(LIMIT as u64).unwrap_or(std::num::NonZeroU64::MIN),
    ));
    let mut decoder = options.read_info(file).map_err(|error| invalid(&error))?;
    let (width, height) = (usize::from(decoder.width()), usize::from(decoder.height()));
    let (size, global) = (
        width * height * 3,
        decoder.global_palette().map(<[u8]>::to_vec),
    );
    ensure!(
        size > 0,
        invalid_argument,
        "Invalid GIF data (size {}), no pixels",
        file.len()
    );
    let mut frames: Vec<u8> = Vec::new();
    loop {
        let frame = match decoder.read_next_frame() {
            Ok(Some(frame)) => frame,
            Ok(None) => break,
            // What was read before the file broke off is shown.
            Err(error) if frames.is_empty() => return Err(invalid(&error)),
            Err(_) => break,
        };
        ensure!(
            frames.len() + size <= LIMIT,
            invalid_argument,
            "Invalid GIF data (size {}), its frames take more than {LIMIT} bytes",
            file.len()
        );
        let palette = frame.palette.as_deref().or(global.as_deref());
        let palette = palette.ok_or_else(|| invalid(&"missing color map for frame"))?;
        let mut canvas = match frames.len().checked_sub(size) {
            Some(last) => frames[last..].to_vec(),
            None => vec![0; size],
        };
        let (left, top) = (usize::from(frame.left), usize::from(frame.top));
        let lines = frame.buffer.chunks_exact(usize::from(frame.width).max(1));
        for (y, line) in (top..height).zip(lines) {
            for (x, &index) in (left..width).zip(line) {
                if frame.transparent == Some(index) {
                    continue;
                }
                let from = usize::from(index) * 3;
                let color = palette.get(from..from + 3);
                let color =
                    color.ok_or_else(|| invalid(&"found color index outside of color map"))?;
                canvas[(y * width + x) * 3..][..3].copy_from_slice(color);
            }
        }
        frames.extend_from_slice(&canvas);
        if only_first {
            break;
        }
    }
    ensure!(
        !frames.is_empty(),
        invalid_argument,
        "Invalid GIF data (size {}), gif file does not contain any image",
        file.len()
    );
    Ok(Picture {
        frames: Some(frames.len() / size),
        height,
        width,
        channels: 3,
        samples: Samples::Bytes(frames),
    })
}
