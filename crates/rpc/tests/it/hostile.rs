//! Bad input on the port: whoever sends it gets an answer or is cut off, and nobody else notices.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use tensorfleet_proto as pb;
use tensorfleet_proto::services::master as path;
use tensorfleet_rpc::grpc::Limits;
use tensorfleet_rpc::{Server, ServerOptions, Session};
use tensorfleet_session::RunOptions;
use tensorfleet_status::Code;
use tensorfleet_tensor::Tensor;

use crate::common::{
    Raw, assert_status, queue, run, server, server_with, session, value, wait_until,
};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A server with a running session: a step that waits, and counted steps meanwhile.
fn undisturbed(attack: impl FnOnce(&Server)) {
    let server = server();
    let session = session(server.target(), &queue("undisturbed"));
    run(&session, "init").unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| session.run(&[], &["got:0"], &["started"]));
        wait_until("the step", || value(&session, "count:0").unwrap() == 1.0);
        attack(&server);
        assert!(!waiting.is_finished());
        run(&session, "started").unwrap();
        crate::common::put(&session, 5.0).unwrap();
        let fetched = waiting.join().unwrap().unwrap();
        assert_eq!(fetched[0].to_scalar::<f32>().unwrap(), 5.0);
        assert_eq!(value(&session, "count:0").unwrap(), 2.0);
    });
    // New clients are welcome too.
    let next = Session::connect(server.target()).unwrap();
    next.close().unwrap();
}

fn connect(server: &Server) -> TcpStream {
    let port = server.target().rsplit_once(':').unwrap().1.parse().unwrap();
    let stream = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], port))).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    stream
}

/// Sends bytes; what comes back before the end or the time-out.
fn throw(server: &Server, bytes: &[u8]) -> Vec<u8> {
    let mut stream = connect(server);
    let mut got = Vec::new();
    // The server may close at any byte.
    let _ = stream.write_all(bytes);
    let _ = stream.read_to_end(&mut got);
    got
}

/// An HTTP/2 frame.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

fn http2(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = PREFACE.to_vec();
    bytes.extend(frame(4, 0, 0, &[]));
    bytes.extend(frames.concat());
    bytes
}

#[test]
fn garbage_and_other_protocols() {
    undisturbed(|server| {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        for len in [1, 9, 24, 100, 5000] {
            let noise: Vec<u8> = (0..len)
                .map(|_| {
                    state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
                    (state >> 56) as u8
                })
                .collect();
            throw(server, &noise);
            throw(server, &http2(&[noise]));
        }
        let answer = throw(server, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(!answer.starts_with(b"HTTP/1.1 200"));
        throw(server, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03");
    });
}

#[test]
fn truncated_and_oversized_frames() {
    undisturbed(|server| {
        throw(server, &PREFACE[..10]);
        // Headers that promise more than comes, a frame beyond any limit, data of no stream.
        throw(
            server,
            &http2(&[frame(1, 4, 1, &[0x82; 40])[..20].to_vec()]),
        );
        throw(server, &http2(&[vec![0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1]]));
        throw(server, &http2(&[frame(0, 1, 3, b"\0\0\0\0\x05hello")]));
        throw(server, &http2(&[frame(3, 0, 0, &[0; 4])]));
        throw(server, &http2(&[frame(8, 0, 0, &[0; 3])]));
    });
}

#[test]
fn unknown_methods_and_messages_that_are_none() {
    undisturbed(|server| {
        let raw = Raw::new(server.target());
        let empty = pb::ListDevicesRequest::default();
        for unknown in ["/", "/tensorflow.MasterService/No", "/no.Service/RunStep"] {
            let answer = raw.unary::<_, pb::ListDevicesResponse>(unknown, &empty);
            assert_status(answer, Code::Unimplemented, "");
        }
        // A field of the wrong wire type.
        let odd = pb::ListDevicesRequest {
            session_handle: "x".repeat(200),
        };
        let answer = raw.unary::<_, pb::ListDevicesResponse>(path::CREATE_SESSION, &odd);
        assert_status(answer, Code::Internal, "");
    });
}

#[test]
fn three_hundred_idle_connections() {
    undisturbed(|server| {
        let mut idle: Vec<TcpStream> = (0..300).map(|_| connect(server)).collect();
        for stream in idle.iter_mut().skip(150) {
            stream.write_all(&http2(&[])).unwrap();
        }
        let raw = Raw::new(server.target());
        assert_eq!(raw.status().sessions, 1);
        drop(idle);
    });
}

#[test]
fn idle_connections_do_not_delay_the_end() {
    let server = server();
    let mut idle: Vec<TcpStream> = (0..20).map(|_| connect(&server)).collect();
    for stream in idle.iter_mut().skip(10) {
        stream.write_all(&http2(&[])).unwrap();
    }
    let session = session(server.target(), "c = float[]{1}");
    assert!(value(&session, "c:0").is_ok());
    let begin = Instant::now();
    server.stop();
    server.join();
    assert!(
        begin.elapsed() < Duration::from_secs(5),
        "{:?}",
        begin.elapsed()
    );
}

#[test]
fn messages_over_the_limit() {
    let server = server_with(ServerOptions {
        limits: Limits {
            max_message_bytes: 1 << 20,
            ..Limits::default()
        },
        ..ServerOptions::default()
    });
    let session = session(
        server.target(),
        "x = Placeholder() {dtype=DT_FLOAT}
         n = Neg(x)
         dims = int32[1]{400000}
         one = float[]{1}
         big = Fill(dims, one)",
    );
    let large = Tensor::vector(&vec![1f32; 400_000]);
    let small = Tensor::vector(&vec![1f32; 200_000]);
    assert_status(
        session.run(&[("x:0", large)], &["n:0"], &[]),
        Code::ResourceExhausted,
        "larger than max",
    );
    assert_status(
        session.run(&[], &["big:0"], &[]),
        Code::ResourceExhausted,
        "",
    );
    let fetched = session.run(&[("x:0", small)], &["n:0"], &[]).unwrap();
    assert_eq!(fetched[0].elements(), 200_000);
}

/// A kernel that was quick so far runs on the thread that reads the network. Other numbers make it long: others are answered
/// meanwhile, and it ends at its deadline.
#[test]
fn a_kernel_that_was_quick_keeps_nobody_waiting() {
    let text = "n = Placeholder() {dtype=DT_INT64}
         zero = int32[]{0}
         dims = ExpandDims(n, zero)
         one = float[]{1}
         ones = Fill(dims, one)
         x = Cumsum(ones, zero)";
    let server = server();
    let busy = session(server.target(), text);
    let other = session(server.target(), "c = float[]{2}");
    let quick = ("n:0", Tensor::scalar(3i64));
    for _ in 0..6 {
        busy.run(std::slice::from_ref(&quick), &[], &["x"]).unwrap();
    }
    let options = RunOptions {
        timeout: Some(Duration::from_millis(200)),
        ..RunOptions::default()
    };
    thread::scope(|scope| {
        let late = scope.spawn(|| {
            let long = ("n:0", Tensor::scalar(200_000_000i64));
            busy.run_with(&options, &[long], &[], &["x"]).map(drop)
        });
        while !late.is_finished() {
            let asked = Instant::now();
            assert_eq!(value(&other, "c:0").unwrap(), 2.0);
            assert!(asked.elapsed() < Duration::from_secs(10));
        }
        let status = late.join().unwrap().unwrap_err();
        assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
    });
}
