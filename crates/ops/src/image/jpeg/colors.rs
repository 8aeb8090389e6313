//! Components into gray, or red, green and blue, in libjpeg's integers.

use tensorfleet_status::Result;

use super::invalid;
use super::segments::Colors;
use super::upsample::Upsampled;

/// How lines of components become lines of pixels.
pub(super) struct Lines {
    colors: Colors,
    channels: usize,
    /// Inks of files that Adobe's programs wrote are the other way round.
    has_adobe: bool,
}

/// Binary digits behind the point.
const DIGITS: i32 = 16;
const HALF: i32 = 1 << (DIGITS - 1);

const fn fixed(value: f64) -> i32 {
    (value * (1 << DIGITS) as f64 + 0.5) as i32
}

fn clamped(value: i32) -> u8 {
    value.clamp(0, 255) as u8
}

/// Red, green and blue of a brightness and two differences.
fn rgb(y: u8, blue: u8, red: u8) -> [u8; 3] {
    let (y, blue, red) = (i32::from(y), i32::from(blue) - 128, i32::from(red) - 128);
    let green = HALF - fixed(0.34414) * blue - fixed(0.71414) * red;
    [
        clamped(y + ((fixed(1.402) * red + HALF) >> DIGITS)),
        clamped(y + (green >> DIGITS)),
        clamped(y + ((fixed(1.772) * blue + HALF) >> DIGITS)),
    ]
}

impl Lines {
    /// Files of inks cannot be read as gray, and those of unknown colours not at all.
    pub(super) fn new(colors: Colors, channels: usize, has_adobe: bool) -> Result<Lines> {
        let is_known = match channels {
            1 => matches!(colors, Colors::Gray | Colors::Rgb | Colors::YCbCr),
            3 => colors != Colors::Unknown,
            _ => false,
        };
        if !is_known {
            return Err(invalid());
        }
        Ok(Lines {
            colors,
            channels,
            has_adobe,
        })
    }

    /// The pixels of a window: top, left, height and width.
    pub(super) fn pixels(&self, from: &Upsampled<'_>, window: [usize; 4]) -> Vec<u8> {
        let [top, _, height, width] = window;
        let mut out = Vec::with_capacity(height * width * self.channels);
        let needed = match (self.colors, self.channels) {
            (Colors::Gray, _) | (Colors::YCbCr, 1) => 1,
            (Colors::Rgb | Colors::YCbCr, _) => 3,
            _ => 4,
        };
        let mut lines = vec![Vec::new(); needed];
        for row in top..top + height {
            for (channel, line) in lines.iter_mut().enumerate() {
                from.line(channel, row, line);
            }
            let line = |channel: usize| &lines[channel][from.margin..from.margin + width];
            match (self.colors, self.channels) {
                (Colors::Gray | Colors::YCbCr, 1) => out.extend_from_slice(line(0)),
                (Colors::Gray, _) => out.extend(line(0).iter().flat_map(|gray| [*gray; 3])),
                _ => {
                    let pairs = line(0).iter().zip(line(1)).zip(line(2));
                    let parts = pairs.map(|((a, b), c)| [*a, *b, *c]);
                    match (self.colors, self.channels) {
                        (Colors::YCbCr, _) => out.extend(parts.flat_map(|[y, b, r]| rgb(y, b, r))),
                        (Colors::Rgb, 1) => out.extend(parts.map(gray)),
                        (Colors::Rgb, _) => out.extend(parts.flatten()),
                        _ => {
                            let inks = parts.zip(line(3));
                            out.extend(inks.flat_map(|(parts, black)| self.inks(parts, *black)));
                        }
                    }
                }
            }
        }
        out
    }

    fn inks(&self, [a, b, c]: [u8; 3], black: u8) -> [u8; 3] {
        let inks = match self.colors {
            Colors::Ycck => rgb(a, b, c).map(|light| 255 - light),
            _ => [a, b, c],
        };
        let black = u16::from(black);
        inks.map(|ink| {
            let product = match self.has_adobe {
                true => black * u16::from(ink),
                false => (255 - black) * (255 - u16::from(ink)),
            };
            (product / 255) as u8
        })
    }
}

fn gray([red, green, blue]: [u8; 3]) -> u8 {
    let [red, green, blue] = [red, green, blue].map(i32::from);
    let sum = fixed(0.299) * red + fixed(0.587) * green + fixed(0.114) * blue + HALF;
    (sum >> DIGITS) as u8
}
