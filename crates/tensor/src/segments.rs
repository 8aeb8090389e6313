//! [`Segments`]: an output of a protobuf encoder that takes large byte fields over instead of copying them.

use std::collections::VecDeque;

use bytes::buf::UninitSlice;
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Fields from this size on stay where they are; smaller ones are cheaper to copy than to track.
const SHARE_FROM: usize = 4 << 10;

/// An encoded message as a row of byte strings: headers written here, payloads shared with their tensors.
///
/// Encoders hand a `Bytes` field over by [`BufMut::put`]; taking a `Bytes` out of a `Bytes` costs a
/// reference count, so a 100 MB tensor is encoded without touching its memory.
#[derive(Default)]
pub struct Segments {
    sealed: VecDeque<Bytes>,
    sealed_len: usize,
    tail: BytesMut,
}

impl Segments {
    /// An empty output with room for `headers` bytes that are not shared.
    pub fn with_capacity(headers: usize) -> Segments {
        Segments {
            tail: BytesMut::with_capacity(headers),
            ..Segments::default()
        }
    }

    /// All bytes written.
    pub fn len(&self) -> usize {
        self.sealed_len + self.tail.len()
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pieces in order, none of them empty.
    pub fn into_pieces(mut self) -> VecDeque<Bytes> {
        self.seal();
        self.sealed
    }

    fn seal(&mut self) {
        if !self.tail.is_empty() {
            self.sealed_len += self.tail.len();
            self.sealed.push_back(self.tail.split().freeze());
        }
    }
}

// SAFETY: `chunk_mut` and `advance_mut` are those of the `BytesMut` that holds the tail, and no other
// method changes the tail in between in a way that would move its end.
unsafe impl BufMut for Segments {
    fn remaining_mut(&self) -> usize {
        usize::MAX - self.len()
    }

    unsafe fn advance_mut(&mut self, count: usize) {
        // SAFETY: the caller initialised `count` bytes of `chunk_mut`, which is the tail's.
        unsafe { self.tail.advance_mut(count) };
    }

    fn chunk_mut(&mut self) -> &mut UninitSlice {
        self.tail.chunk_mut()
    }

    fn put<T: Buf>(&mut self, mut source: T) {
        let len = source.remaining();
        if len >= SHARE_FROM {
            self.seal();
            self.sealed_len += len;
            self.sealed.push_back(source.copy_to_bytes(len));
        } else {
            self.tail.put(source);
        }
    }

    fn put_slice(&mut self, source: &[u8]) {
        self.tail.put_slice(source);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_what_is_large_and_copies_what_is_small() {
        let large = Bytes::from(vec![7u8; SHARE_FROM]);
        let mut out = Segments::with_capacity(16);
        out.put_u8(1);
        out.put(Bytes::from_static(b"ab"));
        out.put(large.clone());
        out.put_slice(b"end");
        assert_eq!(out.len(), 1 + 2 + SHARE_FROM + 3);
        let pieces = out.into_pieces();
        assert_eq!(pieces.len(), 3);
        assert_eq!(&pieces[0][..], b"\x01ab");
        assert_eq!(pieces[1].as_ptr(), large.as_ptr());
        assert_eq!(&pieces[2][..], b"end");
    }

    #[test]
    fn encodes_a_tensor_without_copying_it() {
        use prost::Message;
        let proto = tensorfleet_proto::TensorProto {
            dtype: 1,
            tensor_content: Bytes::from(vec![1u8; 1 << 16]),
            ..Default::default()
        };
        let mut out = Segments::default();
        proto.encode(&mut out).expect("room is unlimited");
        let pieces = out.into_pieces();
        let shared = pieces
            .iter()
            .any(|piece| piece.as_ptr() == proto.tensor_content.as_ptr());
        assert!(shared);
        let whole: Vec<u8> = pieces.iter().flat_map(|piece| piece.to_vec()).collect();
        assert_eq!(whole, proto.encode_to_vec());
    }
}
