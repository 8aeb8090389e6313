//! What is written on a line: a header of 16 bytes and, for most kinds, a payload.
//!
//! ```text
//! length of the payload: u32 | kind: u8 | method: u8 | 0: u16 | id: u64 | payload
//! ```
//!
//! Numbers are little-endian. The payload of calls and answers is a message with gRPC's prefix, so that
//! both ways of calling share encoders and decoders.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::Message;
use tensorfleet_proto::distributed_runtime::GrpcPayloadContainer;
use tensorfleet_proto::services::worker;
use tensorfleet_status::{Code, Result, Status, internal, invalid_argument};
use tensorfleet_tensor::Segments;

use crate::grpc::{message, status};

/// Bytes before the payload.
const HEADER: usize = 16;

/// No payload of any kind is longer.
const MOST: usize = i32::MAX as usize + message::PREFIX;

/// What can be called on a line: what tasks ask of each other in every step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    RunGraph = 1,
    RecvTensor = 2,
    CleanupGraph = 3,
    MarkRecvFinished = 4,
}

impl Method {
    /// Its name in gRPC.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Method::RunGraph => worker::RUN_GRAPH,
            Method::RecvTensor => worker::RECV_TENSOR,
            Method::CleanupGraph => worker::CLEANUP_GRAPH,
            Method::MarkRecvFinished => worker::MARK_RECV_FINISHED,
        }
    }

    fn from_number(number: u8) -> Option<Method> {
        [
            Method::RunGraph,
            Method::RecvTensor,
            Method::CleanupGraph,
            Method::MarkRecvFinished,
        ]
        .into_iter()
        .find(|method| *method as u8 == number)
    }
}

/// One record. The id is the caller's name for the call.
#[derive(Debug, PartialEq)]
pub(super) enum Record {
    Call {
        id: u64,
        method: Method,
        message: Bytes,
    },
    Answer {
        id: u64,
        message: Bytes,
    },
    Failure {
        id: u64,
        status: Status,
    },
    /// The caller no longer wants an answer.
    Cancel {
        id: u64,
    },
    /// A call or an answer whose `len` bytes, which follow, are more than is taken.
    TooLong {
        id: u64,
        is_answer: bool,
        len: usize,
    },
    /// Asks for a sign of life.
    Ping,
    Pong,
}

/// A status as a payload.
#[derive(Clone, PartialEq, Message)]
struct Failure {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    text: String,
    #[prost(message, optional, tag = "3")]
    details: Option<GrpcPayloadContainer>,
}

const CALL: u8 = 1;
const ANSWER: u8 = 2;
const FAILURE: u8 = 3;
const CANCEL: u8 = 4;
const PING: u8 = 5;
const PONG: u8 = 6;

pub(super) fn put_call(out: &mut Segments, id: u64, method: Method, message: Segments) {
    put(out, (CALL, method as u8), id, message);
}

pub(super) fn put_answer(out: &mut Segments, id: u64, result: Result<Segments>) {
    match result {
        Ok(message) => put(out, (ANSWER, 0), id, message),
        Err(status) => {
            let failure = Failure {
                code: status.code().number(),
                text: status.message().to_owned(),
                details: Some(status::details(&status)),
            };
            let mut payload = Segments::default();
            payload.put_slice(&failure.encode_to_vec());
            put(out, (FAILURE, 0), id, payload);
        }
    }
}

pub(super) fn put_cancel(out: &mut Segments, id: u64) {
    put(out, (CANCEL, 0), id, Segments::default());
}

pub(super) fn put_ping(out: &mut Segments) {
    put(out, (PING, 0), 0, Segments::default());
}

pub(super) fn put_pong(out: &mut Segments) {
    put(out, (PONG, 0), 0, Segments::default());
}

fn put(out: &mut Segments, (kind, method): (u8, u8), id: u64, payload: Segments) {
    // Messages are limited to less than 4 GiB where they are encoded.
    out.put_u32_le(payload.len() as u32);
    out.put_u8(kind);
    out.put_u8(method);
    out.put_u16_le(0);
    out.put_u64_le(id);
    for piece in payload.into_pieces() {
        out.put(piece);
    }
}

/// Takes the next record off what was read; `None` if it is not whole yet, and room is made for the rest.
pub(super) fn take(read: &mut BytesMut, limit: usize) -> Result<Option<Record>> {
    let Some(mut header) = read.get(..HEADER) else {
        return Ok(None);
    };
    let len = header.get_u32_le() as usize;
    let (kind, method) = (header.get_u8(), header.get_u8());
    header.advance(2);
    let id = header.get_u64_le();
    if len > limit.saturating_add(message::PREFIX) && [CALL, ANSWER].contains(&kind) {
        read.advance(HEADER);
        return Ok(Some(Record::TooLong {
            id,
            is_answer: kind == ANSWER,
            len,
        }));
    }
    if len > MOST {
        return Err(invalid_argument!(
            "a record of kind {kind} and {len} bytes is too long"
        ));
    }
    if read.len() < HEADER + len {
        read.reserve(HEADER + len - read.len());
        return Ok(None);
    }
    read.advance(HEADER);
    let message = read.split_to(len).freeze();
    let unknown = || invalid_argument!("a record of kind {kind}, method {method} is not known");
    Ok(Some(match kind {
        CALL => Record::Call {
            id,
            method: Method::from_number(method).ok_or_else(unknown)?,
            message,
        },
        ANSWER => Record::Answer { id, message },
        FAILURE => Record::Failure {
            id,
            status: failure(message)?,
        },
        CANCEL => Record::Cancel { id },
        PING => Record::Ping,
        PONG => Record::Pong,
        _ => return Err(unknown()),
    }))
}

fn failure(payload: Bytes) -> Result<Status> {
    let failure = Failure::decode(payload)
        .map_err(|error| internal!("a failure could not be read: {error}"))?;
    let status = Status::new(Code::from_number(failure.code), failure.text);
    Ok(status::with_details(
        status,
        failure.details.unwrap_or_default(),
    ))
}
