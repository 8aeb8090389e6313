//! [`Picture`]: what a file of images holds, before it becomes a tensor.

use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{DType, Shape, Tensor};

/// Samples of 8 or 16 bits.
pub(super) enum Samples {
    Bytes(Vec<u8>),
    Words(Vec<u16>),
}

/// One or more frames of the same size, one behind the other, channels last.
pub(super) struct Picture {
    /// How many, of formats that have several.
    pub(super) frames: Option<usize>,
    pub(super) height: usize,
    pub(super) width: usize,
    pub(super) channels: usize,
    pub(super) samples: Samples,
}

impl Picture {
    /// The picture as uint8, uint16 or float, the latter from 0 to 1; with a dimension for frames if told.
    pub(super) fn into_tensor(self, dtype: DType, with_frames: bool) -> Result<Tensor> {
        let dims = [self.height, self.width, self.channels].map(|dim| dim as i64);
        let frames = self.frames.unwrap_or(1) as i64;
        let shape = if with_frames {
            Shape::new(&[&[frames], &dims[..]].concat())?
        } else {
            Shape::new(&dims)?
        };
        match (dtype, self.samples) {
            (DType::U8, Samples::Bytes(bytes)) => Tensor::from_vec(shape, bytes),
            (DType::U8, Samples::Words(words)) => Tensor::from_vec(
                shape,
                words
                    .iter()
                    .map(|word| (word >> 8) as u8)
                    .collect::<Vec<_>>(),
            ),
            (DType::U16, Samples::Bytes(bytes)) => {
                let words = bytes.iter().map(|byte| u16::from(*byte) * 256);
                Tensor::from_vec(shape, words.collect::<Vec<_>>())
            }
            (DType::U16, Samples::Words(words)) => Tensor::from_vec(shape, words),
            (DType::F32, Samples::Bytes(bytes)) => {
                let scale = (1.0f64 / 255.0) as f32;
                let floats = bytes.iter().map(|byte| f32::from(*byte) * scale);
                Tensor::from_vec(shape, floats.collect::<Vec<_>>())
            }
            (DType::F32, Samples::Words(words)) => {
                let scale = (1.0f64 / 65535.0) as f32;
                let floats = words.iter().map(|word| f32::from(*word) * scale);
                Tensor::from_vec(shape, floats.collect::<Vec<_>>())
            }
            (other, _) => Err(invalid_argument!("images are not decoded to {other}")),
        }
    }
}
