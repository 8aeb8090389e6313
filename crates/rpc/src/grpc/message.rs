//! gRPC's framing: one flag byte and the length before every message.

use std::io::Read;

use bytes::{Buf, BufMut, Bytes};
use flate2::read::{GzDecoder, ZlibDecoder};
use h2::RecvStream;
use prost::Message;
use tensorfleet_status::{Result, Status, internal, resource_exhausted, unimplemented};
use tensorfleet_tensor::Segments;

use super::frames::Frames;
use super::gather::Gather;
use super::status::from_h2;

/// What TensorFlow says to a message that is none.
const UNPARSABLE: &str = "Unable to parse request";

/// Flag and length.
pub(crate) const PREFIX: usize = 5;

/// Compressed messages of this size may become a thousand times larger: inflating them would keep other
/// calls waiting too long.
const INFLATE_HERE: usize = 1 << 10;

/// The encoded message with its prefix, payloads shared.
pub fn encode<M: Message>(message: &M, limit: usize) -> Result<Segments> {
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
    M::decode(frames).map_err(|error| {
        tracing::debug!("a message could not be parsed: {error}");
        internal!("{UNPARSABLE}")
    })
}

/// Decodes a message that came whole, with its prefix.
pub(crate) fn decode_whole<M: Message + Default>(message: Bytes, limit: usize) -> Result<M> {
    decode(unwrap(message, limit)?)
}

/// Takes the prefix off a message that came whole and is not compressed.
pub(crate) fn unwrap(message: Bytes, limit: usize) -> Result<Frames> {
    let mut frames = Frames::default();
    frames.push(message);
    if frames.remaining() < PREFIX
        || read_prefix(&mut frames, limit)? != (false, frames.remaining())
    {
        return Err(internal!("{UNPARSABLE}"));
    }
    Ok(frames)
}

/// Reads the one message of a unary call, which came in this `grpc-encoding`.
pub(crate) async fn read(
    stream: &mut RecvStream,
    limit: usize,
    encoding: Option<&[u8]>,
) -> Result<Frames> {
    let mut frames = Frames::default();
    let mut prefix = None;
    let mut gather = None::<Gather>;
    while let Some(piece) = stream.data().await {
        let piece = piece.map_err(|error| from_h2(&error))?;
        // The sender may go on: what was received is in our hands now.
        let _ = stream.flow_control().release_capacity(piece.len());
        if let Some(gather) = &mut gather {
            if gather.push(&piece) < piece.len() {
                return Err(internal!("{UNPARSABLE}"));
            }
            continue;
        }
        frames.push(piece);
        if prefix.is_none() && frames.remaining() >= PREFIX {
            prefix = Some(read_prefix(&mut frames, limit)?);
        }
        if prefix.is_some_and(|(_, len)| frames.remaining() > len) {
            return Err(internal!("{UNPARSABLE}"));
        }
        if let Some((false, len)) = prefix {
            gather = Gather::start(&mut frames, len)?;
        }
    }
    if let (Some(gather), Some((_, len))) = (gather, prefix)
        && gather.len() == len
    {
        frames.push(gather.finish());
    }
    match prefix {
        Some((false, len)) if frames.remaining() == len => Ok(frames),
        Some((true, len)) if frames.remaining() == len => {
            let encoding = encoding.map(<[u8]>::to_vec);
            inflate_elsewhere(frames, encoding, limit).await
        }
        _ => Err(internal!("{UNPARSABLE}")),
    }
}

/// Whether the message is compressed, and its length.
fn read_prefix(frames: &mut Frames, limit: usize) -> Result<(bool, usize)> {
    let compressed = frames.get_u8() != 0;
    let len = frames.get_u32() as usize;
    if len > limit {
        return Err(too_large(len, limit));
    }
    Ok((compressed, len))
}

/// Inflates on another thread what is large.
async fn inflate_elsewhere(
    frames: Frames,
    encoding: Option<Vec<u8>>,
    limit: usize,
) -> Result<Frames> {
    let is_small = frames.remaining() < INFLATE_HERE;
    let inflate = move || inflate(frames, encoding.as_deref(), limit);
    if is_small {
        return inflate();
    }
    tokio::task::spawn_blocking(inflate)
        .await
        .unwrap_or_else(|error| Err(internal!("a message was not inflated: {error}")))
}

fn inflate(frames: Frames, encoding: Option<&[u8]>, limit: usize) -> Result<Frames> {
    let source = frames.reader();
    let mut out = Vec::new();
    // One byte more than allowed shows that there is more.
    let most = limit as u64 + 1;
    let read = match encoding {
        Some(b"gzip") => GzDecoder::new(source).take(most).read_to_end(&mut out),
        Some(b"deflate") => ZlibDecoder::new(source).take(most).read_to_end(&mut out),
        other => {
            return Err(unimplemented!(
                "messages compressed by {} are not supported: use gzip, deflate or identity",
                String::from_utf8_lossy(other.unwrap_or(b"nothing known"))
            ));
        }
    };
    read.map_err(|_| internal!("{UNPARSABLE}"))?;
    if out.len() > limit {
        return Err(too_large(out.len(), limit));
    }
    let mut frames = Frames::default();
    frames.push(out.into());
    Ok(frames)
}

/// What a message that is too large is refused with.
pub(crate) fn too_large(len: usize, limit: usize) -> Status {
    resource_exhausted!("Received message larger than max ({len} vs. {limit})")
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    #[test]
    fn other_calls_go_on_while_a_large_message_is_inflated() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&vec![0; 16 << 20]).unwrap();
        let mut frames = Frames::default();
        frames.push(encoder.finish().unwrap().into());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let mut others = 0;
        let inflated = runtime.block_on(async {
            let mut inflated =
                std::pin::pin!(inflate_elsewhere(frames, Some(b"gzip".to_vec()), 1 << 30));
            loop {
                tokio::select! {
                    biased;
                    inflated = &mut inflated => return inflated,
                    () = tokio::task::yield_now() => others += 1,
                }
            }
        });
        assert_eq!(inflated.unwrap().remaining(), 16 << 20);
        assert!(others > 0);
    }
}
