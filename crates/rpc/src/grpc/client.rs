//! The client side: a channel that connects when it is needed and again when it broke.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use http::{HeaderValue, Request, header};
use prost::Message;
use tensorfleet_status::{Code, Result, Status, deadline_exceeded, internal, unavailable};
use tokio::time::Instant;

use super::connect::connect;
use super::keepalive::{KeepAlive, Watched, silent};
use super::{CONTENT_TYPE, Limits, message, status, timeout};

/// Between attempts of a call that waits for its server.
const RETRY_FIRST: Duration = Duration::from_millis(20);
const RETRY_MOST: Duration = Duration::from_secs(1);

/// The log says that a call waits for its server after this time, then rarer and rarer.
const SAY_AFTER: Duration = Duration::from_secs(5);

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
    keepalive: Option<KeepAlive>,
    connection: Mutex<Option<Link>>,
    /// Whether the server was on this machine when it was last connected.
    same_host: AtomicBool,
    /// One connects, the others wait for it.
    connecting: tokio::sync::Mutex<()>,
    /// Why the last attempt to connect failed.
    trouble: Mutex<Option<String>>,
    /// How often it was tried to connect.
    attempts: AtomicUsize,
}

fn unreachable(reason: &str) -> Status {
    unavailable!("failed to connect to all addresses; last error: UNAVAILABLE: {reason}")
}

/// A connection as its calls see it.
#[derive(Clone)]
struct Link {
    sender: SendRequest<Bytes>,
    /// How many calls wait for their answers.
    calls: Arc<AtomicUsize>,
    /// Why it was given up.
    gone: Arc<OnceLock<String>>,
}

impl Link {
    async fn ready(self) -> Result<Link, h2::Error> {
        let Link {
            sender,
            calls,
            gone,
        } = self;
        let sender = sender.ready().await?;
        Ok(Link {
            sender,
            calls,
            gone,
        })
    }
}

/// A call that waits for its answer.
struct Waits(Arc<AtomicUsize>);

impl Waits {
    fn new(calls: &Arc<AtomicUsize>) -> Waits {
        calls.fetch_add(1, Ordering::Relaxed);
        Waits(calls.clone())
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Channel {
    /// A channel to `host:port`; nothing is opened before the first call.
    pub fn new(address: impl Into<String>, limits: Limits) -> Channel {
        Channel::with_token(address, limits, None)
    }

    /// A channel whose calls carry a bearer token.
    pub fn with_token(address: impl Into<String>, limits: Limits, token: Option<&str>) -> Channel {
        let token = token.and_then(|token| HeaderValue::from_str(&format!("Bearer {token}")).ok());
        Channel::open(address.into(), limits, token, None)
    }

    /// A channel whose calls end when the server is gone without a word.
    pub fn with_keepalive(
        address: impl Into<String>,
        limits: Limits,
        keepalive: Option<KeepAlive>,
    ) -> Channel {
        Channel::open(address.into(), limits, None, keepalive)
    }

    fn open(
        address: String,
        limits: Limits,
        token: Option<HeaderValue>,
        keepalive: Option<KeepAlive>,
    ) -> Channel {
        Channel(Arc::new(Inner {
            address,
            token,
            limits,
            keepalive,
            connection: Mutex::default(),
            same_host: AtomicBool::new(false),
            connecting: tokio::sync::Mutex::new(()),
            trouble: Mutex::default(),
            attempts: AtomicUsize::new(0),
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
            let link = self.ready(options).await?;
            self.exchange(link, path, encoded, options).await
        };
        let Some(deadline) = options.deadline else {
            return call.await;
        };
        tokio::time::timeout_at(deadline, call)
            .await
            .unwrap_or_else(|_| {
                Err(match self.trouble() {
                    // It was never made: say why.
                    Some(reason) => deadline_exceeded!("Deadline Exceeded; last error: {reason}"),
                    None => deadline_exceeded!("Deadline Exceeded"),
                })
            })
    }

    /// A connection that takes calls.
    async fn ready(&self, options: &CallOptions) -> Result<Link> {
        let mut pause = RETRY_FIRST;
        let (began, mut patience) = (Instant::now(), SAY_AFTER);
        loop {
            match self.connected().await {
                Ok(link) => return Ok(link),
                Err(error) if !options.wait_for_ready => return Err(error),
                Err(error) if began.elapsed() < patience => {
                    tracing::debug!("{} is not there yet: {error}", self.0.address);
                }
                Err(error) => {
                    let waited = began.elapsed().as_secs();
                    tracing::warn!("waiting for {} for {waited} s: {error}", self.0.address);
                    patience *= 2;
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(RETRY_MOST);
        }
    }

    /// Why there is no connection, if the last attempt failed.
    pub fn trouble(&self) -> Option<String> {
        self.last_trouble().clone()
    }

    async fn connected(&self) -> Result<Link> {
        if let Some(link) = self.current().await {
            return Ok(link);
        }
        let attempts = self.0.attempts.load(Ordering::Relaxed);
        let _one = self.0.connecting.lock().await;
        if let Some(link) = self.current().await {
            return Ok(link);
        }
        // What failed while we waited for it would fail for us as well, and as slowly.
        if attempts != self.0.attempts.load(Ordering::Relaxed)
            && let Some(reason) = self.trouble()
        {
            return Err(unreachable(&reason));
        }
        let link = self.connect().await?;
        *self.lock() = Some(link.clone());
        link.ready().await.map_err(|error| status::from_h2(&error))
    }

    /// The connection there is, if it takes calls.
    async fn current(&self) -> Option<Link> {
        let link = self.lock().clone()?;
        // A connection that broke says so here.
        link.ready().await.ok()
    }

    async fn connect(&self) -> Result<Link> {
        let address = &self.0.address;
        let patience = self.0.keepalive.as_ref().map(|keepalive| keepalive.timeout);
        let connected = connect(address, &self.0.limits, patience).await;
        self.0.attempts.fetch_add(1, Ordering::Relaxed);
        let connected = connected.map_err(|reason| {
            let status = unreachable(&reason);
            *self.last_trouble() = Some(reason);
            status
        })?;
        *self.last_trouble() = None;
        let link = Link {
            sender: connected.sender,
            calls: Arc::default(),
            gone: Arc::default(),
        };
        self.0
            .same_host
            .store(connected.same_host, Ordering::Relaxed);
        let watched = connected.ping.map(|ping| Watched {
            ping,
            traffic: connected.traffic,
            calls: link.calls.clone(),
        });
        let (gone, channel) = (link.gone.clone(), Arc::downgrade(&self.0));
        let (peer, keepalive) = (address.clone(), self.0.keepalive.clone());
        tokio::spawn(async move {
            let until_gone = async {
                let (Some(watched), Some(keepalive)) = (watched, &keepalive) else {
                    return std::future::pending().await;
                };
                // It must not keep the connection open when nobody else does.
                let question = || {
                    let channel = Channel(channel.upgrade()?);
                    let sender = channel.lock().as_ref()?.sender.clone();
                    let request = channel.request(keepalive.path, &CallOptions::default());
                    Some((sender, request.ok()?))
                };
                watched.until_gone(keepalive.timeout, question).await;
                let reason = silent(&peer, keepalive.timeout);
                tracing::warn!("{reason}");
                // Nobody else sets it.
                let _ = gone.set(reason);
            };
            // Dropping the connection fails all its calls.
            tokio::select! {
                ended = connected.connection => if let Err(error) = ended {
                    tracing::debug!("the connection to {peer} ended: {error}");
                },
                () = until_gone => {}
            }
        });
        Ok(link)
    }

    async fn exchange<A: Message + Default>(
        &self,
        mut link: Link,
        path: &'static str,
        encoded: tensorfleet_tensor::Segments,
        options: &CallOptions,
    ) -> Result<A> {
        let request = self.request(path, options)?;
        let _waits = Waits::new(&link.calls);
        let gone = link.gone.clone();
        let broken = |error: h2::Error| match gone.get() {
            Some(reason) => unavailable!("{reason}"),
            None => status::from_h2(&error),
        };
        let (response, mut stream) = link.sender.send_request(request, false).map_err(broken)?;
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
        let trailers = match &frames {
            Ok(_) => body.trailers().await,
            // Trailers that are here may say why there is no message. Behind a message that was not read to its end they
            // would never come.
            Err(error) => match poll_fn(|context| Poll::Ready(body.poll_trailers(context))).await {
                Poll::Ready(trailers) => trailers,
                Poll::Pending => return Err(error.clone()),
            },
        };
        status::read(&trailers.map_err(broken)?.unwrap_or_default())?;
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

    fn lock(&self) -> MutexGuard<'_, Option<Link>> {
        let connection = &self.0.connection;
        connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn last_trouble(&self) -> MutexGuard<'_, Option<String>> {
        let trouble = &self.0.trouble;
        trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
