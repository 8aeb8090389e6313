//! Reading a JPEG file: scans into blocks, blocks into planes, planes into pixels.
//!
//! A file with one scan goes through planes at once; one with several has all its coefficients in memory until the last of them.

use tensorfleet_status::Result;

use super::colors::Lines;
use super::idct::Transform;
use super::scan::{self, Block, Blocks, Member};
use super::segments::{Colors, Frame, Header, Scan};
use super::upsample::Upsampled;
use super::{Reading, invalid};
use crate::image::picture::{Picture, Samples};

/// Pixels that a byte of a file may stand for: a block of 64 takes at least one bit.
const LARGEST_RATIO: usize = 512;
/// TensorFlow reads no larger picture.
const MOST_SAMPLES: usize = 1 << 29;

/// A component on its way from bits to samples.
pub(super) struct Plane {
    /// Samples of a block, in each direction.
    pub(super) size: usize,
    /// Blocks that show, in each direction.
    blocks: [usize; 2],
    pub(super) samples: Vec<u8>,
    /// All blocks of whole units, if there is more than one scan.
    coefficients: Option<Vec<Block>>,
    transform: Transform,
}

impl Plane {
    pub(super) fn stride(&self) -> usize {
        self.blocks[0] * self.size
    }

    fn show(&mut self, [x, y]: [usize; 2], block: &Block) {
        if x < self.blocks[0] && y < self.blocks[1] {
            let stride = self.stride();
            let begin = (y * stride + x) * self.size;
            self.transform
                .run(block, &mut self.samples[begin..], stride);
        }
    }
}

struct Planes<'p> {
    planes: &'p mut [Plane],
    /// Blocks of whole units in a row of each plane.
    strides: Vec<usize>,
}

impl Blocks for Planes<'_> {
    fn with(
        &mut self,
        channel: usize,
        [x, y]: [usize; 2],
        read: impl FnOnce(&mut Block) -> Result<()>,
    ) -> Result<()> {
        let (plane, stride) = (&mut self.planes[channel], self.strides[channel]);
        match plane.coefficients.as_mut() {
            Some(all) => read(&mut all[y * stride + x]),
            None => {
                let mut block = [0; 64];
                read(&mut block)?;
                plane.show([x, y], &block);
                Ok(())
            }
        }
    }
}

/// Blocks and units of a component, and whether a scan has others, too.
struct Layout {
    /// Units of the frame, horizontally and vertically.
    units: [usize; 2],
    /// Blocks of each component that show.
    blocks: Vec<[usize; 2]>,
}

impl Layout {
    fn new(frame: &Frame) -> Layout {
        let size = [frame.width, frame.height];
        let units = [0, 1].map(|axis| size[axis].div_ceil(8 * frame.largest[axis]));
        let blocks = frame.channels.iter().map(|channel| {
            let count = |axis: usize| {
                let samples = size[axis] * channel.sampling[axis];
                samples.div_ceil(8 * frame.largest[axis])
            };
            [count(0), count(1)]
        });
        Layout {
            units,
            blocks: blocks.collect(),
        }
    }
}

/// Height, width and channels of a file: what libjpeg would show of it.
pub(super) fn size(file: &[u8]) -> Result<[usize; 3]> {
    let (header, frame, _) = Header::open(file, false)?;
    let channels = match header.colors(&frame) {
        Colors::Gray => 1,
        Colors::Rgb | Colors::YCbCr => 3,
        Colors::Cmyk | Colors::Ycck => 4,
        Colors::Unknown => frame.channels.len(),
    };
    Ok([frame.height, frame.width, channels])
}

/// Reads a picture.
pub(super) fn decode(file: &[u8], reading: Reading) -> Result<Picture> {
    let (mut header, mut frame, first) = Header::open(file, reading.recover)?;
    let channels = match reading.channels {
        0 => frame.channels.len().min(3),
        wanted => wanted,
    };
    let lines = Lines::new(header.colors(&frame), channels, header.has_adobe())?;
    ensure_size(&frame, file.len(), reading.ratio)?;
    let layout = Layout::new(&frame);
    let planes = planes(&mut header, &mut frame, &layout, first, reading)?;
    let [height, width] = [frame.height, frame.width].map(|side| side.div_ceil(reading.ratio));
    let window = match reading.crop {
        Some(crop) => inside(crop, [height, width]).ok_or_else(invalid)?,
        None => [0, 0, height, width],
    };
    let upsampled = Upsampled::new(&frame, &planes, window, reading.ratio, reading.fancy)?;
    let samples = lines.pixels(&upsampled, window);
    Ok(Picture {
        frames: None,
        height: window[2],
        width: window[3],
        channels,
        samples: Samples::Bytes(samples),
    })
}

fn ensure_size(frame: &Frame, bytes: usize, ratio: usize) -> Result<()> {
    let pixels = frame.height * frame.width;
    let shown = frame.height.div_ceil(ratio) * frame.width.div_ceil(ratio);
    let is_believed = pixels <= bytes.saturating_mul(LARGEST_RATIO);
    if is_believed && shown * frame.channels.len() < MOST_SAMPLES {
        return Ok(());
    }
    Err(invalid())
}

/// Top, left, height and width as places in a picture, if they are.
fn inside(crop: [i64; 4], [height, width]: [usize; 2]) -> Option<[usize; 4]> {
    let [top, left, rows, columns] = crop.map(|value| usize::try_from(value).ok());
    let (top, left, rows, columns) = (top?, left?, rows?, columns?);
    let fits = rows > 0
        && columns > 0
        && top.checked_add(rows)? <= height
        && left.checked_add(columns)? <= width;
    fits.then_some([top, left, rows, columns])
}

/// Samples of a block of each component where the smallest are `8 / ratio`: a component of fewer samples is shrunk less.
fn block_sizes(frame: &Frame, ratio: usize) -> Vec<usize> {
    let smallest = 8 / ratio;
    let size = |sampling: [usize; 2]| {
        let mut size = smallest;
        let is_whole = |size: usize| {
            (0..2).all(|axis| {
                (frame.largest[axis] * smallest).is_multiple_of(sampling[axis] * size * 2)
            })
        };
        while size < 8 && is_whole(size) {
            size *= 2;
        }
        size
    };
    frame
        .channels
        .iter()
        .map(|channel| size(channel.sampling))
        .collect()
}

/// Reads all scans.
fn planes(
    header: &mut Header<'_>,
    frame: &mut Frame,
    layout: &Layout,
    first: Scan,
    reading: Reading,
) -> Result<Vec<Plane>> {
    let is_single = !frame.progressive && first.channels.len() == frame.channels.len();
    let whole = |channel: usize| {
        [0, 1].map(|axis| layout.units[axis] * frame.channels[channel].sampling[axis])
    };
    let sizes = block_sizes(frame, reading.ratio);
    let mut planes: Vec<Plane> = (0..frame.channels.len())
        .map(|channel| {
            let blocks = layout.blocks[channel];
            let [across, down] = whole(channel);
            Plane {
                size: sizes[channel],
                blocks,
                samples: vec![128; blocks[0] * blocks[1] * sizes[channel] * sizes[channel]],
                coefficients: (!is_single).then(|| vec![[0; 64]; across * down]),
                transform: Transform::new(None, sizes[channel], false),
            }
        })
        .collect();
    let strides: Vec<usize> = (0..planes.len()).map(|channel| whole(channel)[0]).collect();
    let mut next = Some(first);
    while let Some(scan) = next {
        for (channel, _) in &scan.channels {
            let own = &mut frame.channels[*channel];
            header.latch(own)?;
            let table = own.quantisation.as_ref();
            planes[*channel].transform = Transform::new(table, sizes[*channel], reading.is_fast);
        }
        read_scan(header, frame, layout, &scan, &mut planes, &strides)?;
        next = header.next_scan(Some(frame))?;
        if is_single && next.is_some() {
            return Err(invalid());
        }
    }
    for (plane, stride) in planes.iter_mut().zip(&strides) {
        let Some(all) = plane.coefficients.take() else {
            continue;
        };
        for (y, row) in all.chunks_exact(*stride).enumerate() {
            row.iter()
                .enumerate()
                .for_each(|(x, block)| plane.show([x, y], block));
        }
    }
    Ok(planes)
}

fn read_scan(
    header: &mut Header<'_>,
    frame: &Frame,
    layout: &Layout,
    scan: &Scan,
    planes: &mut [Plane],
    strides: &[usize],
) -> Result<()> {
    let is_alone = scan.channels.len() == 1;
    let mut members = Vec::with_capacity(scan.channels.len());
    for (channel, codes) in &scan.channels {
        let sampling = frame.channels[*channel].sampling;
        members.push(Member {
            channel: *channel,
            codes: *codes,
            unit: if is_alone { [1, 1] } else { sampling },
        });
    }
    let blocks = members.iter().map(|member| member.unit[0] * member.unit[1]);
    // libjpeg's limit.
    if blocks.sum::<usize>() > 10 {
        return Err(invalid());
    }
    let units = match members.as_slice() {
        [alone] => layout.blocks[alone.channel],
        _ => layout.units,
    };
    let mut blocks = Planes {
        planes,
        strides: strides.to_vec(),
    };
    scan::decode(
        header,
        scan,
        frame.progressive,
        &members,
        units,
        &mut blocks,
    )
}
