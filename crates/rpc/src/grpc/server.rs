//! The server side: one task per connection, one per call.

use std::borrow::Cow;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use tensorfleet_status::{Result, Status, deadline_exceeded, internal, panic_text};
use tensorfleet_tensor::Segments;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::cork::Cork;
use super::frames::Frames;
use super::progress::Progress;
use super::socket::tune;
use super::{CONTENT_TYPE, Limits, message, status, timeout};

/// A connection that has not even said that it speaks HTTP/2 by then is closed.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(20);

/// While the server stops: a connection without calls that takes no bytes for this long is closed.
const STALLED: Duration = Duration::from_millis(500);

/// One unary call as it came in.
pub struct Call {
    /// `/service/method`.
    pub path: Cow<'static, str>,
    /// The request's message.
    pub message: Frames,
    /// The request's headers.
    pub headers: HeaderMap,
    /// Who calls.
    pub peer: SocketAddr,
    /// When the client gives up.
    pub deadline: Option<Instant>,
}

/// Answers unary calls. A call whose client went away or whose deadline passed is dropped where it waits.
pub trait Service: Send + Sync + 'static {
    /// Answers one call with an encoded message.
    fn call(
        self: &Arc<Self>,
        call: Call,
    ) -> impl Future<Output = Result<Segments>> + Send + 'static;
}

/// Accepts connections until `stop` says so, then lets running calls end. Dropping the future cuts all off.
pub async fn serve<S: Service>(
    listener: TcpListener,
    service: Arc<S>,
    limits: Limits,
    mut stop: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    while !*stop.borrow_and_update() {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            changed = stop.changed() => if changed.is_ok() { continue } else { break },
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of file descriptors, most likely: what is open may close soon.
                tracing::warn!("a connection could not be accepted: {error}");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        tune(&stream);
        let connection = Connection {
            service: service.clone(),
            limits: limits.clone(),
            peer,
        };
        connections.spawn(connection.run(stream, stop.clone()));
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

struct Connection<S> {
    service: Arc<S>,
    limits: Limits,
    peer: SocketAddr,
}

impl<S: Service> Connection<S> {
    async fn run<T>(self, stream: T, mut stop: watch::Receiver<bool>)
    where
        T: AsyncRead + AsyncWrite + Unpin,
    {
        let peer = self.peer;
        let mut builder = h2::server::Builder::new();
        builder
            .initial_window_size(self.limits.stream_window)
            .initial_connection_window_size(self.limits.connection_window)
            .max_frame_size(self.limits.max_frame_bytes)
            .max_header_list_size(64 << 10);
        let (stream, traffic) = Progress::new(Cork::new(stream));
        let handshake = builder.handshake::<_, Bytes>(stream);
        let handshake = tokio::select! {
            done = tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake) => done,
            // Nothing was asked yet, so nothing is owed.
            _ = stop.wait_for(|stop| *stop) => return,
        };
        let mut connection = match handshake {
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) => {
                tracing::debug!("{peer} does not speak gRPC: {error}");
                return;
            }
            Err(_) => {
                tracing::debug!("{peer} connected and said nothing");
                return;
            }
        };
        let connection_data = Arc::new(self);
        // Calls end with their connection: nobody is there to take the answer.
        let mut calls = JoinSet::new();
        let mut stopping = false;
        let mut seen = 0;
        loop {
            if !stopping && *stop.borrow_and_update() {
                stopping = true;
                connection.graceful_shutdown();
            }
            tokio::select! {
                accepted = connection.accept() => match accepted {
                    Some(Ok((request, respond))) => {
                        calls.spawn(connection_data.clone().answer(request, respond));
                    }
                    Some(Err(error)) => {
                        tracing::debug!("connection of {peer} failed: {error}");
                        break;
                    }
                    None => break,
                },
                Some(_) = calls.join_next(), if !calls.is_empty() => {}
                changed = stop.changed(), if !stopping => if changed.is_err() { stopping = true },
                // Idle clients may never answer to the good-bye; slow ones still take what they asked for.
                () = tokio::time::sleep(STALLED), if stopping && calls.is_empty() => {
                    let now = traffic.written();
                    if now == seen {
                        break;
                    }
                    seen = now;
                }
            }
        }
    }

    async fn answer(
        self: Arc<Self>,
        request: Request<h2::RecvStream>,
        mut respond: SendResponse<Bytes>,
    ) {
        let (head, mut body) = request.into_parts();
        if head.method != Method::POST {
            return refuse(&mut respond, StatusCode::METHOD_NOT_ALLOWED);
        }
        let is_grpc = head
            .headers
            .get(header::CONTENT_TYPE)
            .is_some_and(|value| value.as_bytes().starts_with(CONTENT_TYPE.as_bytes()));
        if !is_grpc {
            return refuse(&mut respond, StatusCode::UNSUPPORTED_MEDIA_TYPE);
        }
        let deadline = head
            .headers
            .get("grpc-timeout")
            .and_then(|value| timeout::parse(value.to_str().ok()?))
            .and_then(|timeout| Instant::now().checked_add(timeout));
        let limit = self.limits.max_message_bytes;
        let (service, peer) = (self.service.clone(), self.peer);
        let call = async move {
            let encoding = head.headers.get("grpc-encoding");
            let encoding = encoding.map(HeaderValue::as_bytes);
            let message = message::read(&mut body, limit, encoding).await?;
            let path = head.uri.path().to_owned().into();
            let headers = head.headers;
            service
                .call(Call {
                    path,
                    message,
                    headers,
                    peer,
                    deadline,
                })
                .await
        };
        let result = tokio::select! {
            biased;
            result = guarded(call) => result,
            // The client cancelled or is gone: whatever the call waits for is dropped with it.
            _ = poll_fn(|context| respond.poll_reset(context)) => return,
            () = expired(deadline) => Err(deadline_exceeded!("Deadline Exceeded")),
        };
        // Fails only if the client is gone.
        let _ = match result {
            Ok(message) => send(&mut respond, message),
            Err(status) => send_error(&mut respond, &status),
        };
    }
}

/// A call whose panic fails that call only.
pub(crate) async fn guarded<T>(call: impl Future<Output = Result<T>>) -> Result<T> {
    let mut call = pin!(call);
    poll_fn(|context| catch(|| call.as_mut().poll(context))).await
}

fn catch<T>(poll: impl FnOnce() -> Poll<Result<T>>) -> Poll<Result<T>> {
    catch_unwind(AssertUnwindSafe(poll)).unwrap_or_else(|panic| {
        let text = panic_text(&*panic);
        tracing::error!("a call panicked: {text}");
        Poll::Ready(Err(internal!("the server failed to answer: {text}")))
    })
}

async fn expired(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

fn refuse(respond: &mut SendResponse<Bytes>, code: StatusCode) {
    let mut response = Response::new(());
    *response.status_mut() = code;
    // Fails only if the client is gone.
    let _ = respond.send_response(response, true);
}

fn head() -> Response<()> {
    let mut response = Response::new(());
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE));
    response
}

fn send(respond: &mut SendResponse<Bytes>, message: Segments) -> Result<(), h2::Error> {
    let mut stream = respond.send_response(head(), false)?;
    for piece in message.into_pieces() {
        stream.send_data(piece, false)?;
    }
    let mut trailers = HeaderMap::new();
    status::write(&mut trailers, None);
    stream.send_trailers(trailers)
}

fn send_error(respond: &mut SendResponse<Bytes>, error: &Status) -> Result<(), h2::Error> {
    let mut response = head();
    status::write(response.headers_mut(), Some(error));
    respond.send_response(response, true).map(drop)
}
