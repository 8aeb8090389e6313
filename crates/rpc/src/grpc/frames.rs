//! [`Frames`]: a received message as the network handed it over, read without joining it first.

use std::collections::VecDeque;

use bytes::{Buf, Bytes};
use tensorfleet_tensor::Buffer;

/// The pieces of a message in order.
///
/// A decoder that takes a byte field out of one piece shares it; one that spans pieces is put together
/// in recycled, aligned memory: the only copy a large tensor makes on its way in.
#[derive(Default)]
pub struct Frames {
    pieces: VecDeque<Bytes>,
    len: usize,
}

impl Frames {
    /// Adds a piece.
    pub fn push(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.len += piece.len();
            self.pieces.push_back(piece);
        }
    }

    /// Drops what lies behind the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        while self.len > len {
            let Some(mut last) = self.pieces.pop_back() else {
                return;
            };
            let before = self.len - last.len();
            self.len = before;
            if before < len {
                last.truncate(len - before);
                self.push(last);
            }
        }
    }
}

impl Buf for Frames {
    fn remaining(&self) -> usize {
        self.len
    }

    fn chunk(&self) -> &[u8] {
        self.pieces.front().map_or(&[], |piece| piece)
    }

    fn advance(&mut self, mut count: usize) {
        // Decoders ask for what remains before they advance.
        count = count.min(self.len);
        self.len -= count;
        while count > 0 {
            let Some(front) = self.pieces.front_mut() else {
                return;
            };
            if front.len() > count {
                front.advance(count);
                return;
            }
            count -= front.len();
            self.pieces.pop_front();
        }
    }

    fn copy_to_bytes(&mut self, len: usize) -> Bytes {
        let len = len.min(self.len);
        if let Some(front) = self.pieces.front_mut()
            && front.len() >= len
        {
            self.len -= len;
            let taken = front.split_to(len);
            if front.is_empty() {
                self.pieces.pop_front();
            }
            return taken;
        }
        let mut joined = Buffer::new(len);
        if let Some(target) = joined.bytes_mut() {
            self.copy_to_slice(target);
        }
        joined.to_shared()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(pieces: &[&'static [u8]]) -> Frames {
        let mut frames = Frames::default();
        for piece in pieces {
            frames.push(Bytes::from_static(piece));
        }
        frames
    }

    #[test]
    fn shares_within_a_piece_and_joins_across() {
        let whole = Bytes::from(vec![1u8, 2, 3, 4]);
        let mut message = Frames::default();
        message.push(whole.clone());
        message.push(Bytes::from_static(&[5, 6]));
        assert_eq!(message.copy_to_bytes(2).as_ptr(), whole.as_ptr());
        assert_eq!(&message.copy_to_bytes(3)[..], &[3, 4, 5]);
        assert_eq!(message.remaining(), 1);
        assert_eq!(message.get_u8(), 6);
        assert!(!message.has_remaining());
    }

    #[test]
    fn advances_and_truncates_over_pieces() {
        let mut message = frames(&[b"abc", b"def", b"ghi"]);
        message.advance(4);
        message.truncate(3);
        assert_eq!(&message.copy_to_bytes(3)[..], b"efg");
        assert_eq!(message.remaining(), 0);
        assert_eq!(message.copy_to_bytes(0).len(), 0);
    }
}
