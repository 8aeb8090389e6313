//! BMP files, uncompressed, with 8, 24 or 32 bits for each pixel.

use tensorfleet_status::{Result, ensure, invalid_argument};

use super::picture::{Picture, Samples};

/// Reads a picture with this many channels, 0 for as many as the file has.
pub(super) fn decode(file: &[u8], channels: usize) -> Result<Picture> {
    ensure!(
        channels != 1,
        invalid_argument,
        "`channels` must be 0, 3 or 4 for BMP, but got {channels}"
    );
    let number = |at: usize| -> Result<i64> {
        let bytes = file.get(at..).and_then(|rest| rest.first_chunk::<4>());
        let bytes = bytes.filter(|_| file.len() >= 32).ok_or_else(|| {
            invalid_argument!(
                "Incomplete bmp content, requires at least 32 bytes to find the header size, width, height, and bpp, got {} bytes",
                file.len()
            )
        })?;
        Ok(i64::from(i32::from_le_bytes(*bytes)))
    };
    let (header, width, height) = (number(10)?, number(18)?, number(22)?);
    let bits = i64::from(number(28)? as i16);
    let found = bits / 8;
    ensure!(
        [1, 3, 4].contains(&found),
        invalid_argument,
        "Number of channels inherent in the image must be 1, 3 or 4, was {found}"
    );
    ensure!(width > 0, invalid_argument, "Width must be positive");
    ensure!(height != 0, invalid_argument, "Height must be nonzero");
    ensure!(
        header >= 0,
        invalid_argument,
        "header size must be nonnegative"
    );
    let rows = height.abs();
    ensure!(
        width * rows < i64::from(i32::MAX / 8),
        invalid_argument,
        "Total possible pixel bytes must be less than 2^30"
    );
    let row_size = (found * width + 3) / 4 * 4;
    let difference = file.len() as i64 - header - row_size * rows;
    ensure!(
        difference == 0,
        invalid_argument,
        "Input size should match (header_size + row_size * abs_height) but they differ by {difference}"
    );
    let (found, width, rows) = (found as usize, width as usize, rows as usize);
    let to = if channels == 0 { found } else { channels };
    // INVARIANT: the header and the rows are as long as the file.
    let lines = file[header as usize..].chunks_exact(row_size as usize);
    let mut bytes = Vec::with_capacity(width * rows * to);
    let mut read = |line: &[u8]| {
        for pixel in line.chunks_exact(found).take(width) {
            match *pixel {
                [grey] => bytes.extend([grey; 3].into_iter().take(to.min(3))),
                [blue, green, red] | [blue, green, red, _] => bytes.extend([red, green, blue]),
                _ => {}
            }
            if to == 4 {
                bytes.push(if found == 4 { pixel[3] } else { 255 });
            }
        }
    };
    if height < 0 {
        lines.for_each(&mut read);
    } else {
        lines.rev().for_each(&mut read);
    }
    Ok(Picture {
        frames: None,
        height: rows,
        width,
        channels: to,
        samples: Samples::Bytes(bytes),
    })
}
