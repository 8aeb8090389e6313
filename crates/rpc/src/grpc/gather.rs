//! [`Gather`]: a message that is mostly one tensor, put together while it comes in.
//!
//! What a connection hands over is copied at once, while it is in the cache, and its memory goes back
//! to the connection, which reads the next bytes into it. Keeping all of it until the message is whole
//! costs fresh pages for every byte and a second pass over cold memory.

use bytes::{Buf, Bytes};
use tensorfleet_status::{Result, resource_exhausted};
use tensorfleet_tensor::{ALIGNMENT, Buffer};

use super::frames::Frames;

/// Smaller messages stay in the pieces they came in.
const GATHER_FROM: usize = 128 << 10;

/// So much of a message must be here before memory for all of it is taken.
const HERE_FIRST: usize = 16;

/// A tensor's content is found this deep in the messages that carry one.
const DEPTH: usize = 4;

/// `TensorProto.tensor_content`.
const CONTENT_FIELD: u64 = 4;

/// A message under way.
pub(super) struct Gather {
    buffer: Buffer,
    filled: usize,
}

impl Gather {
    /// Takes over a message of `len` bytes of which `frames` came, if it is mostly one tensor. An error without memory
    /// for it.
    pub(super) fn start(frames: &mut Frames, len: usize) -> Result<Option<Gather>> {
        if len < GATHER_FROM || frames.remaining() < len / HERE_FIRST {
            return Ok(None);
        }
        let Some(content) = content_offset(frames.chunk(), len) else {
            return Ok(None);
        };
        let begin = content.wrapping_neg() % ALIGNMENT;
        let buffer = Buffer::try_new(begin + len).ok_or_else(|| {
            resource_exhausted!("there is no memory for a message of {len} bytes")
        })?;
        Ok(Gather::fill(buffer, begin, frames, len))
    }

    /// Moves what came into a buffer, from `begin` on.
    fn fill(buffer: Buffer, begin: usize, frames: &mut Frames, len: usize) -> Option<Gather> {
        let mut gather = Gather {
            buffer,
            filled: begin,
        };
        while frames.has_remaining() {
            let count = gather.push(frames.chunk());
            frames.advance(count);
            if count == 0 {
                return None;
            }
        }
        // What is left out in front makes the content aligned.
        gather.buffer = gather.buffer.slice(begin, len)?;
        gather.filled -= begin;
        Some(gather)
    }

    /// Adds a piece; how much of it belonged to the message.
    pub(super) fn push(&mut self, piece: &[u8]) -> usize {
        let Some(room) = self.buffer.bytes_mut() else {
            return 0;
        };
        let room = &mut room[self.filled..];
        let count = piece.len().min(room.len());
        room[..count].copy_from_slice(&piece[..count]);
        self.filled += count;
        count
    }

    /// How much of the message is here.
    pub(super) fn len(&self) -> usize {
        self.filled
    }

    /// The message.
    pub(super) fn finish(self) -> Bytes {
        self.buffer.to_shared()
    }
}

/// Where the content of a tensor begins that makes up most of a message of `len` bytes.
fn content_offset(head: &[u8], len: usize) -> Option<usize> {
    let mut at = 0;
    for _ in 0..DEPTH {
        loop {
            let tag = varint(head, &mut at)?;
            let size = match tag & 7 {
                0 => {
                    varint(head, &mut at)?;
                    0
                }
                1 => 8,
                2 => usize::try_from(varint(head, &mut at)?).ok()?,
                5 => 4,
                _ => return None,
            };
            if size > len / 4 * 3 {
                if tag >> 3 == CONTENT_FIELD {
                    return Some(at);
                }
                break;
            }
            at = at.checked_add(size)?;
        }
    }
    None
}

fn varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut rest = bytes.get(*at..)?;
    let before = rest.len();
    let value = prost::encoding::decode_varint(&mut rest).ok()?;
    *at += before - rest.len();
    Some(value)
}

#[cfg(test)]
mod tests {
    use prost::Message;
    use tensorfleet_proto as pb;

    use super::*;

    fn tensor(len: usize) -> pb::TensorProto {
        pb::TensorProto {
            dtype: 1,
            tensor_shape: Some(pb::TensorShapeProto::default()),
            tensor_content: (0..len).map(|byte| byte as u8).collect::<Vec<_>>().into(),
            ..pb::TensorProto::default()
        }
    }

    /// Feeds a message in pieces; what is put together.
    fn gathered(message: &[u8], piece: usize) -> Option<Bytes> {
        let mut frames = Frames::default();
        let mut pieces = message.chunks(piece);
        let mut gather = loop {
            frames.push(Bytes::copy_from_slice(pieces.next()?));
            if let Some(gather) = Gather::start(&mut frames, message.len()).unwrap() {
                break gather;
            }
        };
        for piece in pieces {
            assert_eq!(gather.push(piece), piece.len());
        }
        assert_eq!(gather.push(b"more"), 0);
        Some(gather.finish())
    }

    #[test]
    fn content_comes_out_aligned_whatever_it_is_in() {
        let named = pb::NamedTensorProto {
            name: "x:0".into(),
            tensor: Some(tensor(1 << 20)),
        };
        let received = pb::RecvTensorResponse {
            tensor: named.tensor.clone(),
            send_start_micros: 5,
            ..pb::RecvTensorResponse::default()
        };
        let step = pb::RunStepRequest {
            session_handle: "handle".into(),
            feed: vec![named],
            ..pb::RunStepRequest::default()
        };
        for message in [received.encode_to_vec(), step.encode_to_vec()] {
            for piece in [1 << 10, 1 << 16, 1 << 21] {
                let whole = gathered(&message, piece).unwrap();
                assert_eq!(whole, message);
                let content = content_offset(&whole, whole.len()).unwrap();
                assert!(whole[content..].as_ptr().addr().is_multiple_of(ALIGNMENT));
            }
        }
    }

    #[test]
    fn leaves_other_messages_alone() {
        let several = pb::RunStepRequest {
            feed: vec![
                pb::NamedTensorProto {
                    name: "x:0".into(),
                    tensor: Some(tensor(1 << 20)),
                };
                2
            ],
            ..pb::RunStepRequest::default()
        };
        assert_eq!(gathered(&several.encode_to_vec(), 1 << 16), None);
        assert_eq!(gathered(&tensor(1 << 10).encode_to_vec(), 1 << 16), None);
        assert_eq!(gathered(&[0xff; 1 << 20], 1 << 16), None);
        // A large message announced, little of it sent.
        let mut frames = Frames::default();
        frames.push(tensor(1 << 12).encode_to_vec().into());
        assert!(Gather::start(&mut frames, 1 << 30).unwrap().is_none());
    }
}
