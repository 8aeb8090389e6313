//! `bench-wire [--megabytes N] [--seconds S]`: how fast a call brings a tensor over loopback, by window and frame.
//!
//! One server and one client of `tensorfleet_rpc::grpc` in this process, each with an event loop of its own. Every
//! line is a setting of [`Limits`]; the settings are measured in turns, and the best round of each counts.

use std::future::Future;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tensorfleet_proto::{RecvTensorRequest, RecvTensorResponse, services::worker};
use tensorfleet_rpc::grpc::{Call, CallOptions, Channel, Limits, Service, encode, serve};
use tensorfleet_tensor::{Segments, Tensor, keep_freed_memory};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

const USAGE: &str = "usage: bench-wire [--megabytes N] [--seconds S]";
const WINDOWS: [u32; 4] = [1 << 20, 4 << 20, 16 << 20, 64 << 20];
const FRAMES: [u32; 4] = [16 << 10, 64 << 10, 256 << 10, 1 << 20];
const ROUNDS: usize = 3;

/// Answers every call with the same tensor.
struct Sender(RecvTensorResponse);

impl Service for Sender {
    fn call(
        self: &Arc<Self>,
        _: Call,
    ) -> impl Future<Output = tensorfleet_status::Result<Segments>> + Send + 'static {
        let sender = self.clone();
        async move { encode(&sender.0, i32::MAX as usize) }
    }
}

fn main() -> Result<()> {
    let (megabytes, round) = parse(std::env::args().skip(1))?;
    keep_freed_memory();
    let values = vec![1f32; megabytes << 18];
    let tensor = Tensor::vector(&values).to_proto()?;
    let answer = RecvTensorResponse {
        tensor: Some(tensor),
        ..RecvTensorResponse::default()
    };
    let sender = Arc::new(Sender(answer));
    let (servers, clients) = (event_loop()?, event_loop()?);
    let (_stop, stopping) = watch::channel(false);
    let mut settings = Vec::new();
    for stream_window in WINDOWS {
        for max_frame_bytes in FRAMES {
            let limits = Limits {
                stream_window,
                connection_window: 4 * stream_window.min(1 << 28),
                max_frame_bytes,
                ..Limits::default()
            };
            let listener = servers.block_on(TcpListener::bind("127.0.0.1:0"))?;
            let address = listener.local_addr()?.to_string();
            servers.spawn(serve(
                listener,
                sender.clone(),
                limits.clone(),
                stopping.clone(),
            ));
            settings.push((limits.clone(), Channel::new(address, limits), 0f64));
        }
    }
    for _ in 0..ROUNDS {
        for (_, channel, best) in &mut settings {
            let calls = clients.block_on(pull(channel, round))?;
            *best = best.max(calls * (megabytes << 20) as f64 / 1e9);
        }
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "| window | frame | GB/s |\n|---|---|---|")?;
    for (limits, _, best) in &settings {
        let (window, frame) = (limits.stream_window >> 20, limits.max_frame_bytes >> 10);
        writeln!(out, "| {window} MiB | {frame} KiB | {best:.2} |")?;
    }
    Ok(())
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<(usize, Duration)> {
    let (mut megabytes, mut round) = (100, Duration::from_millis(500));
    while let Some(arg) = args.next() {
        let value = args
            .next()
            .with_context(|| format!("{arg} needs a value\n{USAGE}"))?;
        match arg.as_str() {
            "--megabytes" => megabytes = value.parse()?,
            "--seconds" => round = Duration::try_from_secs_f64(value.parse()?)?,
            _ => bail!("unknown option {arg}\n{USAGE}"),
        }
    }
    Ok((megabytes, round))
}

fn event_loop() -> Result<Runtime> {
    Ok(Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?)
}

/// Calls for a while; calls per second.
async fn pull(channel: &Channel, round: Duration) -> Result<f64> {
    let request = RecvTensorRequest::default();
    let call = async || {
        channel
            .unary::<_, RecvTensorResponse>(worker::RECV_TENSOR, &request, &CallOptions::default())
            .await
    };
    call().await?;
    let (begin, mut calls) = (Instant::now(), 0);
    while begin.elapsed() < round {
        call().await?;
        calls += 1;
    }
    Ok(f64::from(calls) / begin.elapsed().as_secs_f64())
}
