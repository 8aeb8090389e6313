//! The client side: a channel that connects when it is needed and again when it broke.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use http::{HeaderValue, Request, header};
use prost::Message;
use tensorfleet_status::{Code, Result, Status, deadline_exceeded, internal, unavailable};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::{CONTENT_TYPE, Limits, message, status, timeout};

/// Between attempts of a call that waits for its server.
const RETRY_FIRST: Duration = Duration::from_millis(20);
const RETRY_MOST: Duration = Duration::from_secs(1);

/// A host that says nothing for so long is taken for gone.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// How a call is made.
#[derive(Clone, Debug, Default)]
pub struct CallOptions {
    /// Give up then.
    pub deadline: Option<Instant>,
    /// Keep trying to connect instead of failing at once.
    pub wait_for_ready: bool,
}

/// Calls to one server. Clones share the connection.
#[derive(Clone)]
pub struct Channel(Arc<Inner>);

struct Inner {
    address: String,
    token: Option<HeaderValue>,
    limits: Limits,
    connection: Mutex<Option<SendRequest<Bytes>>>,
    /// Whether the server was on this machine when it was last connected.
    same_host: AtomicBool,
    /// One connects, the others wait for it.
    connecting: tokio::sync::Mutex<()>,
}

impl Channel {
    /// A channel to `host:port`; nothing is opened before the first call.
    pub fn new(address: impl Into<String>, limits: Limits) -> Channel {
        Channel::with_token(address, limits, None)
    }

    /// A channel whose calls carry a bearer token.
    pub fn with_token(address: impl Into<String>, limits: Limits, token: Option<&str>) -> Channel {
        let token = token.and_then(|token| HeaderValue::from_str(&format!("Bearer {token}")).ok());
        Channel(Arc::new(Inner {
            address: address.into(),
            token,
            limits,
            connection: Mutex::new(None),
            same_host: AtomicBool::new(false),
            connecting: tokio::sync::Mutex::new(()),
        }))
    }

    /// Where it leads.
    pub fn address(&self) -> &str {
        &self.0.address
    }

    /// Whether the server is on this machine; `false` as long as that is not known.
    pub fn is_same_host(&self) -> bool {
        self.0.same_host.load(Ordering::Relaxed)
    }

    /// Makes a unary call. Dropping the future cancels the call.
    pub async fn unary<Q: Message, A: Message + Default>(
        &self,
        path: &'static str,
        request: &Q,
        options: &CallOptions,
    ) -> Result<A> {
        let encoded = message::encode(request, self.0.limits.max_message_bytes)?;
        let call = async {
            let sender = self.ready(options).await?;
            self.exchange(sender, path, encoded, options).await
        };
        let Some(deadline) = options.deadline else {
            return call.await;
        };
        tokio::time::timeout_at(deadline, call)
            .await
            .unwrap_or_else(|_| Err(deadline_exceeded!("Deadline Exceeded")))
    }

    /// A connection that takes calls.
    async fn ready(&self, options: &CallOptions) -> Result<SendRequest<Bytes>> {
        let mut pause = RETRY_FIRST;
        loop {
            match self.connected().await {
                Ok(sender) => return Ok(sender),
                Err(error) if !options.wait_for_ready => return Err(error),
                Err(error) => tracing::debug!("{} is not there yet: {error}", self.0.address),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(RETRY_MOST);
        }
    }

    async fn connected(&self) -> Result<SendRequest<Bytes>> {
        if let Some(sender) = self.current() {
            // A connection that broke says so here.
            if let Ok(sender) = sender.ready().await {
                return Ok(sender);
            }
        }
        let _one = self.0.connecting.lock().await;
        if let Some(sender) = self.current()
            && let Ok(sender) = sender.ready().await
        {
            return Ok(sender);
        }
        let sender = self.connect().await?;
        *self.lock() = Some(sender.clone());
        sender
            .ready()
            .await
            .map_err(|error| status::from_h2(&error))
    }

    async fn connect(&self) -> Result<SendRequest<Bytes>> {
        let address = &self.0.address;
        let failed = |error: &dyn std::fmt::Display| {
            unavailable!(
                "failed to connect to all addresses; last error: UNAVAILABLE: {address}: {error}"
            )
        };
        let stream = tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(address))
            .await
            .map_err(|_| failed(&format_args!("no answer within {CONNECT_TIMEOUT:?}")))?
            .map_err(|error| failed(&error))?;
        let same_host = match (stream.local_addr(), stream.peer_addr()) {
            (Ok(ours), Ok(theirs)) => ours.ip() == theirs.ip(),
            _ => false,
        };
        self.0.same_host.store(same_host, Ordering::Relaxed);
        // It fails only on sockets that are closed already.
        let _ = stream.set_nodelay(true);
        let (sender, connection) = h2::client::Builder::new()
            .initial_window_size(self.0.limits.stream_window)
            .initial_connection_window_size(self.0.limits.connection_window)
            .max_frame_size(self.0.limits.max_frame_bytes)
            .enable_push(false)
            .handshake(stream)
            .await
            .map_err(|error| failed(&error))?;
        let peer = address.clone();
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!("the connection to {peer} ended: {error}");
            }
        });
        Ok(sender)
    }

    async fn exchange<A: Message + Default>(
        &self,
        mut sender: SendRequest<Bytes>,
        path: &'static str,
        encoded: tensorfleet_tensor::Segments,
        options: &CallOptions,
    ) -> Result<A> {
        let request = self.request(path, options)?;
        let broken = |error: h2::Error| status::from_h2(&error);
        let (response, mut stream) = sender.send_request(request, false).map_err(broken)?;
        let mut pieces = encoded.into_pieces();
        while let Some(piece) = pieces.pop_front() {
            stream.send_data(piece, pieces.is_empty()).map_err(broken)?;
        }
        let (head, mut body) = response.await.map_err(broken)?.into_parts();
        if !head.status.is_success() {
            return Err(Status::new(
                Code::Unknown,
                format!(
                    "{} answered with HTTP status {}",
                    self.0.address, head.status
                ),
            ));
        }
        if head.headers.contains_key("grpc-status") {
            status::read(&head.headers)?;
            return Err(internal!("the answer has a status but no message"));
        }
        let encoding = head.headers.get("grpc-encoding");
        let encoding = encoding.map(HeaderValue::as_bytes);
        let frames = message::read(&mut body, self.0.limits.max_message_bytes, encoding).await;
        let trailers = body.trailers().await.map_err(broken)?;
        status::read(&trailers.unwrap_or_default())?;
        message::decode(frames?)
    }

    fn request(&self, path: &'static str, options: &CallOptions) -> Result<Request<()>> {
        let mut request = Request::post(format!("http://{}{path}", self.0.address))
            .body(())
            .map_err(|error| internal!("{}: {error}", self.0.address))?;
        let headers = request.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE));
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
        if let Some(token) = &self.0.token {
            headers.insert(header::AUTHORIZATION, token.clone());
        }
        if let Some(deadline) = options.deadline {
            let left = deadline.saturating_duration_since(Instant::now());
            if let Ok(value) = HeaderValue::from_str(&timeout::print(left)) {
                headers.insert("grpc-timeout", value);
            }
        }
        Ok(request)
    }

    fn current(&self) -> Option<SendRequest<Bytes>> {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<SendRequest<Bytes>>> {
        self.0
            .connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
