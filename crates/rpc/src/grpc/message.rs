//! gRPC's framing: one flag byte and the length before every message.

use bytes::{Buf, BufMut};
use h2::RecvStream;
use prost::Message;
use tensorfleet_status::{Result, internal, invalid_argument, resource_exhausted, unimplemented};
use tensorfleet_tensor::Segments;

use super::frames::Frames;
use super::status::from_h2;

/// Flag and length.
const PREFIX: usize = 5;

/// The encoded message with its prefix, payloads shared.
pub(crate) fn encode<M: Message>(message: &M, limit: usize) -> Result<Segments> {
    let len = message.encoded_len();
    if len > limit {
        return Err(resource_exhausted!(
            "a message of {len} bytes is larger than the limit of {limit} bytes; raise the limit or send less at once"
        ));
    }
    let mut out = Segments::with_capacity(PREFIX + len.min(16 << 10));
    out.put_u8(0);
    out.put_u32(
        u32::try_from(len).map_err(|_| internal!("a message of {len} bytes does not fit"))?,
    );
    message
        .encode(&mut out)
        .map_err(|error| internal!("message could not be encoded: {error}"))?;
    Ok(out)
}

/// Decodes a received message.
pub(crate) fn decode<M: Message + Default>(frames: Frames) -> Result<M> {
    M::decode(frames).map_err(|error| invalid_argument!("the message could not be parsed: {error}"))
}

/// Reads the one message of a unary call.
pub(crate) async fn read(stream: &mut RecvStream, limit: usize) -> Result<Frames> {
    let mut frames = Frames::default();
    let mut expected = None;
    while let Some(piece) = stream.data().await {
        let piece = piece.map_err(|error| from_h2(&error))?;
        // The sender may go on: what was received is in our hands now.
        let _ = stream.flow_control().release_capacity(piece.len());
        frames.push(piece);
        if expected.is_none() && frames.remaining() >= PREFIX {
            expected = Some(prefix(&mut frames, limit)?);
        }
        if expected.is_some_and(|len| frames.remaining() > len) {
            return Err(internal!("more than one message came for a unary call"));
        }
    }
    match expected {
        Some(len) if frames.remaining() == len => Ok(frames),
        Some(len) => Err(internal!(
            "the stream ended after {} of the message's {len} bytes",
            frames.remaining()
        )),
        None => Err(internal!("the stream ended before a message came")),
    }
}

fn prefix(frames: &mut Frames, limit: usize) -> Result<usize> {
    let compressed = frames.get_u8();
    let len = frames.get_u32() as usize;
    if compressed != 0 {
        return Err(unimplemented!(
            "the message is compressed, which is not supported: send it with encoding identity"
        ));
    }
    if len > limit {
        return Err(resource_exhausted!(
            "Received message larger than max ({len} vs. {limit})"
        ));
    }
    Ok(len)
}
