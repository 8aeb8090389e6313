//! A line between two ends in this process.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{BufMut, BytesMut};
use prost::Message;
use tensorfleet_proto as pb;
use tensorfleet_status::{Code, Result, Status, aborted};
use tensorfleet_tensor::Segments;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::sync::Notify;

use super::caller::Line;
use super::driver::drive;
use super::load::Load;
use super::record::{self, Method, Record};
use crate::grpc::{Call, Service, encode, message};

const LIMIT: usize = 1 << 20;

/// Answers a RecvTensor by its key: doubled, failed, never, or with a panic.
#[derive(Default)]
struct Echo {
    begun: Notify,
    dropped: Arc<AtomicUsize>,
}

struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Service for Echo {
    fn call(
        self: &Arc<Self>,
        call: Call,
    ) -> impl Future<Output = Result<Segments>> + Send + 'static {
        let echo = self.clone();
        async move {
            let _counted = Counted(echo.dropped.clone());
            let request: pb::RecvTensorRequest = message::decode(call.message)?;
            match request.rendezvous_key.as_str() {
                "fail" => return Err(aborted!("no ünit").with_payload("url", vec![1u8]).derived()),
                "never" => {
                    echo.begun.notify_one();
                    std::future::pending::<()>().await;
                }
                "panic" => panic!("on purpose"),
                "long" => {
                    let answer = pb::RecvTensorResponse {
                        tensor: Some(pb::TensorProto {
                            tensor_content: vec![0; 100_000].into(),
                            ..pb::TensorProto::default()
                        }),
                        ..pb::RecvTensorResponse::default()
                    };
                    return encode(&answer, LIMIT);
                }
                _ => {}
            }
            let answer = pb::RecvTensorResponse {
                send_start_micros: 2 * request.step_id,
                ..pb::RecvTensorResponse::default()
            };
            encode(&answer, LIMIT)
        }
    }
}

/// Two ends that are driven: calls on the first are answered by `echo`.
fn pair(echo: &Arc<Echo>, patience: Option<Duration>) -> (Arc<Line>, Arc<Line>) {
    let (here, there) = UnixStream::pair().unwrap();
    let ends = [here, there].map(|stream| {
        let line = Arc::new(Line::new("the other end".to_owned(), LIMIT));
        tokio::spawn(drive(
            line.clone(),
            stream,
            echo.clone(),
            Load::default(),
            patience,
        ));
        line
    });
    let [here, there] = ends;
    (here, there)
}

fn request(step_id: i64, key: &str) -> pb::RecvTensorRequest {
    pb::RecvTensorRequest {
        step_id,
        rendezvous_key: key.to_owned(),
        ..pb::RecvTensorRequest::default()
    }
}

async fn ask(line: &Arc<Line>, step_id: i64, key: &str) -> Result<i64> {
    let answer: pb::RecvTensorResponse = line
        .call(Method::RecvTensor, &request(step_id, key))
        .await?;
    Ok(answer.send_start_micros)
}

#[tokio::test]
async fn both_ends_call_at_the_same_time() {
    let (here, there) = pair(&Arc::default(), None);
    let calls = (0..100).map(|i| {
        let line = if i % 2 == 0 { &here } else { &there };
        let (line, key) = (line.clone(), "k".repeat(1000 * i as usize));
        tokio::spawn(async move { ask(&line, i, &key).await })
    });
    for (i, call) in calls.collect::<Vec<_>>().into_iter().enumerate() {
        assert_eq!(call.await.unwrap(), Ok(2 * i as i64));
    }
}

#[tokio::test]
async fn failures_and_panics_are_those_of_the_call() {
    let (here, _) = pair(&Arc::default(), None);
    let expected = aborted!("no ünit").with_payload("url", vec![1u8]).derived();
    assert_eq!(ask(&here, 1, "fail").await, Err(expected));
    let error = ask(&here, 1, "panic").await.unwrap_err();
    assert_eq!(error.code(), Code::Internal);
    assert!(error.message().contains("on purpose"), "{error}");
    assert_eq!(ask(&here, 4, "").await, Ok(8));
}

#[tokio::test]
async fn a_call_that_is_dropped_ends_at_the_other_end() {
    let echo = Arc::new(Echo::default());
    let (here, _) = pair(&echo, None);
    tokio::select! {
        _ = ask(&here, 1, "never") => panic!("it is never answered"),
        () = echo.begun.notified() => {}
    }
    while echo.dropped.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(ask(&here, 1, "").await, Ok(2));
}

#[tokio::test]
async fn what_waits_fails_when_the_line_breaks() {
    let echo = Arc::new(Echo::default());
    let (here, there) = pair(&echo, None);
    let waiting = tokio::spawn({
        let here = here.clone();
        async move { ask(&here, 1, "never").await }
    });
    echo.begun.notified().await;
    there.close("it stopped");
    let error = waiting.await.unwrap().unwrap_err();
    assert_eq!(error.code(), Code::Unavailable);
    assert!(error.message().starts_with("Socket closed"), "{error}");
    assert!(!here.is_open());
    let error = ask(&here, 1, "").await.unwrap_err();
    assert_eq!(error.code(), Code::Unavailable);
}

#[tokio::test]
async fn a_silent_peer_is_gone_only_while_something_waits() {
    let patience = Duration::from_millis(80);
    let (stream, _silent) = UnixStream::pair().unwrap();
    let line = Arc::new(Line::new("somebody".to_owned(), LIMIT));
    tokio::spawn(drive(
        line.clone(),
        stream,
        Arc::new(Echo::default()),
        Load::default(),
        Some(patience),
    ));
    tokio::time::sleep(2 * patience).await;
    assert!(line.is_open());
    let error = ask(&line, 1, "").await.unwrap_err();
    assert_eq!(error.code(), Code::Unavailable);
    assert!(error.message().contains("somebody has not answered"));
}

#[tokio::test]
async fn a_busy_peer_is_not_gone() {
    let echo = Arc::new(Echo::default());
    let patience = Duration::from_millis(400);
    let (here, _) = pair(&echo, Some(patience));
    let waited = tokio::time::timeout(3 * patience, ask(&here, 1, "never")).await;
    assert!(waited.is_err(), "{waited:?}");
    assert_eq!(ask(&here, 3, "").await, Ok(6));
}

#[tokio::test]
async fn a_server_that_stops_answers_what_it_began_and_begins_no_step() {
    let load = Load::default();
    let taken = load.take(Method::RunGraph).unwrap();
    let mut drained = std::pin::pin!(load.drain());
    let soon = Duration::from_millis(20);
    assert!(tokio::time::timeout(soon, &mut drained).await.is_err());
    let refused = load.take(Method::RunGraph).err();
    assert_eq!(refused.as_ref().map(Status::code), Some(Code::Unavailable));
    // Steps that run elsewhere still get their tensors.
    drop(load.take(Method::RecvTensor).unwrap());
    drop(taken);
    drained.await;
}

#[tokio::test]
async fn rubbish_ends_the_line() {
    for rubbish in [
        &[0xff; 64][..],
        &[0, 0, 0, 0, 77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    ] {
        let (stream, mut other) = UnixStream::pair().unwrap();
        let line = Arc::new(Line::new("somebody".to_owned(), LIMIT));
        let driven = drive(
            line.clone(),
            stream,
            Arc::new(Echo::default()),
            Load::default(),
            None,
        );
        other.write_all(rubbish).await.unwrap();
        driven.await;
        assert!(!line.is_open());
    }
}

#[test]
fn records_are_read_whole_whatever_the_pieces() {
    let mut out = Segments::default();
    let message = request(1, &"k".repeat(10_000));
    record::put_call(
        &mut out,
        7,
        Method::RunGraph,
        encode(&message, LIMIT).unwrap(),
    );
    record::put_cancel(&mut out, 8);
    record::put_answer(&mut out, 9, Err(aborted!("why")));
    record::put_ping(&mut out);
    let bytes = Vec::from(out.into_pieces()).concat();
    for size in [1, 15, 16, 17, 4096, bytes.len()] {
        let (mut read, mut records) = (BytesMut::new(), Vec::new());
        for piece in bytes.chunks(size) {
            read.put_slice(piece);
            while let Some(record) = record::take(&mut read, LIMIT).unwrap() {
                records.push(record);
            }
        }
        let Record::Call {
            id: 7,
            method: Method::RunGraph,
            message: got,
        } = &records[0]
        else {
            panic!("{records:?}");
        };
        let got = message::decode_whole::<pb::RecvTensorRequest>(got.clone(), LIMIT).unwrap();
        assert_eq!(got.encode_to_vec(), message.encode_to_vec());
        assert_eq!(
            records[1..],
            [
                Record::Cancel { id: 8 },
                Record::Failure {
                    id: 9,
                    status: aborted!("why")
                },
                Record::Ping
            ]
        );
    }
}

#[tokio::test]
async fn what_is_too_long_fails_its_call_only() {
    let echo = Arc::new(Echo::default());
    let (stream, other) = UnixStream::pair().unwrap();
    let lines = [(stream, LIMIT), (other, 1000)].map(|(stream, limit)| {
        let line = Arc::new(Line::new("the other end".to_owned(), limit));
        tokio::spawn(drive(
            line.clone(),
            stream,
            echo.clone(),
            Load::default(),
            None,
        ));
        line
    });
    let long = "k".repeat(LIMIT / 2);
    for _ in 0..3 {
        let error = ask(&lines[0], 1, &long).await.unwrap_err();
        assert_eq!(error.code(), Code::ResourceExhausted);
        assert_eq!(ask(&lines[0], 1, "").await, Ok(2));
    }
    // An answer that is too long for the caller.
    let error = ask(&lines[1], 1, "long").await.unwrap_err();
    assert_eq!(error.code(), Code::ResourceExhausted);
    assert_eq!(ask(&lines[1], 1, "").await, Ok(2));
}

#[tokio::test]
async fn a_call_is_over_when_its_answer_is_written() {
    let (stream, mut other) = UnixStream::pair().unwrap();
    let load = Load::default();
    let line = Arc::new(Line::new("somebody".to_owned(), LIMIT));
    tokio::spawn(drive(
        line.clone(),
        stream,
        Arc::new(Echo::default()),
        load.clone(),
        None,
    ));
    let mut out = Segments::default();
    for id in 1..=40 {
        let asked = encode(&request(1, "long"), LIMIT).unwrap();
        record::put_call(&mut out, id, Method::RecvTensor, asked);
    }
    for piece in out.into_pieces() {
        other.write_all(&piece).await.unwrap();
    }
    // Nobody reads the answers, which are more than a socket holds.
    let soon = Duration::from_millis(100);
    tokio::time::sleep(soon).await;
    assert!(tokio::time::timeout(soon, load.drain()).await.is_err());
    let mut answers = vec![0; 1 << 16];
    let mut drained = std::pin::pin!(load.drain());
    loop {
        tokio::select! {
            () = &mut drained => break,
            read = other.read(&mut answers) => assert!(read.unwrap() > 0),
        }
    }
}
