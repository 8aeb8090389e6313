//! Planes of fewer samples than the picture has pixels, made larger: by weights of three quarters and one quarter ("fancy"), or by
//! repetition.
//!
//! A window is enlarged as if the picture began and ended where its units do, as libjpeg does when it crops.

use tensorfleet_status::Result;

use super::decode::Plane;
use super::invalid;
use super::segments::Frame;

/// How a plane is made larger.
#[derive(Clone, Copy, PartialEq)]
enum Method {
    Weighted,
    /// How often a sample is repeated.
    Repeated,
}

struct Source<'p> {
    plane: &'p Plane,
    /// How many pixels a sample is wide and high.
    factors: [usize; 2],
    method: Method,
    /// The first sample of the window's units, and how many there are in a line.
    first: usize,
    width: usize,
    /// Lines that mean something.
    height: usize,
}

/// The components of a window, line by line as large as the picture.
pub(super) struct Upsampled<'p> {
    sources: Vec<Source<'p>>,
    /// Pixels between the first of the units and the first of the window.
    pub(super) margin: usize,
    pub(super) width: usize,
}

impl<'p> Upsampled<'p> {
    /// `window`: top, left, height and width.
    pub(super) fn new(
        frame: &Frame,
        planes: &'p [Plane],
        window: [usize; 4],
        ratio: usize,
        fancy: bool,
    ) -> Result<Upsampled<'p>> {
        let smallest = 8 / ratio;
        let fancy = fancy && smallest > 1;
        let unit = match planes.len() {
            1 => smallest,
            _ => smallest * frame.largest[0],
        };
        let begin = window[1] / unit * unit;
        let width = window[1] + window[3] - begin;
        let full = frame.width.div_ceil(ratio);
        let mut sources = Vec::with_capacity(planes.len());
        for (plane, channel) in planes.iter().zip(&frame.channels) {
            let sampling = [0, 1].map(|axis| channel.sampling[axis] * plane.size);
            let most = [0, 1].map(|axis| frame.largest[axis] * smallest);
            if (0..2).any(|axis| !most[axis].is_multiple_of(sampling[axis])) {
                return Err(invalid());
            }
            let factors = [0, 1].map(|axis| most[axis] / sampling[axis]);
            let samples = |pixels: usize| (pixels * sampling[0]).div_ceil(most[0]);
            let own = samples(width);
            let is_wide = match (samples(full), own) {
                (whole, own) if whole >= 2 && own < 2 => own > 2,
                (whole, _) => whole > 2,
            };
            let weighted = match factors {
                [2, 1] | [2, 2] => fancy && is_wide,
                [1, 2] => fancy,
                _ => false,
            };
            sources.push(Source {
                plane,
                factors,
                method: if weighted {
                    Method::Weighted
                } else {
                    Method::Repeated
                },
                first: begin / factors[0],
                width: own,
                height: (frame.height * channel.sampling[1] * plane.size)
                    .div_ceil(frame.largest[1] * 8),
            });
        }
        Ok(Upsampled {
            sources,
            margin: window[1] - begin,
            width,
        })
    }

    /// Line `row` of the picture in component `channel`: as many pixels as the window's units, and perhaps some more.
    pub(super) fn line(&self, channel: usize, row: usize, out: &mut Vec<u8>) {
        let source = &self.sources[channel];
        let at = row / source.factors[1];
        let near = source.line(at);
        out.clear();
        match (source.method, source.factors) {
            (Method::Weighted, [2, 1]) => across(near, out),
            (Method::Weighted, [1, _]) => {
                let (far, bias) = match row % 2 {
                    0 => (source.line(at.saturating_sub(1)), 1),
                    _ => (source.line(at + 1), 2),
                };
                let pairs = near.iter().zip(far);
                let value = |(near, far): (&u8, &u8)| {
                    ((u16::from(*near) * 3 + u16::from(*far) + bias) >> 2) as u8
                };
                out.extend(pairs.map(value));
            }
            (Method::Weighted, _) => {
                let far = match row % 2 {
                    0 => source.line(at.saturating_sub(1)),
                    _ => source.line(at + 1),
                };
                both(near, far, out);
            }
            (Method::Repeated, [1, _]) => out.extend_from_slice(near),
            (Method::Repeated, [times, _]) => {
                for sample in near {
                    out.extend(std::iter::repeat_n(*sample, times));
                }
            }
        }
        // Never less than what is asked for, whatever the sizes say.
        let last = out.last().copied().unwrap_or(128);
        if out.len() < self.width {
            out.resize(self.width, last);
        }
    }
}

impl Source<'_> {
    /// Line `at` of the samples, the last one where there is none.
    fn line(&self, at: usize) -> &[u8] {
        let stride = self.plane.stride();
        let at = at.min(self.height.saturating_sub(1));
        let line = self.plane.samples.get(at * stride..(at + 1) * stride);
        let line = line.unwrap_or_default();
        let begin = self.first.min(line.len());
        &line[begin..(begin + self.width).min(line.len())]
    }
}

/// A line twice as long.
fn across(samples: &[u8], out: &mut Vec<u8>) {
    let wide = |at: usize| u16::from(samples[at]);
    let last = samples.len() - 1;
    for at in 0..samples.len() {
        let own = 3 * wide(at);
        let left = match at {
            0 => wide(0),
            _ => (own + wide(at - 1) + 1) >> 2,
        };
        let right = match at {
            _ if at == last => wide(last),
            _ => (own + wide(at + 1) + 2) >> 2,
        };
        out.extend([left as u8, right as u8]);
    }
}

/// A line twice as long, between two lines of samples, nearer to one of them.
fn both(near: &[u8], far: &[u8], out: &mut Vec<u8>) {
    let sum = |at: usize| 3 * u16::from(near[at]) + u16::from(far[at]);
    let last = near.len() - 1;
    for at in 0..near.len() {
        let own = sum(at);
        let left = match at {
            0 => (4 * own + 8) >> 4,
            _ => (3 * own + sum(at - 1) + 8) >> 4,
        };
        let right = match at {
            _ if at == last => (4 * own + 7) >> 4,
            _ => (3 * own + sum(at + 1) + 7) >> 4,
        };
        out.extend([left as u8, right as u8]);
    }
}
