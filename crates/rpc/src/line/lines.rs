//! [`Lines`]: the lines of one server, opened by it or by others.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net as unix;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use tensorfleet_cluster::{TaskName, ids};
use tensorfleet_status::{Result, failed_precondition, unavailable};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::Instant;

use super::caller::Line;
use super::driver::drive;
use super::load::Load;
use crate::direct::host;
use crate::grpc::{CallOptions, Channel};
use crate::services::Services;

/// `Open`: where the server's socket is, for callers on the same machine.
pub(crate) const OPEN: &str = "/tensorfleet.Line/Open";

/// Asks for [`OpenResponse`].
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct OpenRequest {
    /// The caller's [`host`].
    #[prost(string, tag = "1")]
    host: String,
}

/// How to open a line.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct OpenResponse {
    /// The server's number.
    #[prost(fixed64, tag = "1")]
    server: u64,
    /// What a caller must know.
    #[prost(fixed64, tag = "2")]
    secret: u64,
    /// The name of its socket.
    #[prost(string, tag = "3")]
    name: String,
}

/// The first bytes in either direction.
const MAGIC: u64 = u64::from_le_bytes(*b"TFLEET/1");

/// Who has not opened a line by then does not.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);

/// No task is called by more bytes.
const LONGEST_NAME: u64 = 1 << 10;

/// The lines of one server.
pub(crate) struct Lines {
    /// What this server is known by.
    server: u64,
    /// What it is called in errors and logs.
    task: String,
    secret: u64,
    max_message_bytes: usize,
    patience: Option<Duration>,
    /// Who answers calls; weak because it keeps the lines.
    services: OnceLock<Weak<Services>>,
    /// The name of the own socket while it listens.
    name: Mutex<Option<String>>,
    /// With the number of the other server; two if both opened one at the same time.
    open: Mutex<Vec<(u64, Arc<Line>)>>,
    load: Load,
}

impl Lines {
    pub(crate) fn new(
        task: &TaskName,
        max_message_bytes: usize,
        patience: Option<Duration>,
    ) -> Lines {
        Lines {
            task: task.to_string(),
            server: ids::random(),
            secret: ids::random(),
            max_message_bytes,
            patience,
            services: OnceLock::new(),
            name: Mutex::default(),
            open: Mutex::default(),
            load: Load::default(),
        }
    }

    /// Names who answers calls. Only the first call has an effect.
    pub(crate) fn set_services(&self, services: &Arc<Services>) {
        let _ = self.services.set(Arc::downgrade(services));
    }

    /// Takes the lines that others open, until the future is dropped.
    pub(crate) async fn listen(self: Arc<Self>) {
        let name = format!("tensorfleet-{:016x}", self.server);
        let listener = match bind(&name) {
            Ok(listener) => listener,
            Err(error) => {
                tracing::debug!("no lines: the socket {name} cannot be had: {error}");
                return;
            }
        };
        *lock(&self.name) = Some(name);
        let _closes = Closes(&self);
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    tokio::spawn(self.clone().accept(stream));
                }
                Err(error) => {
                    tracing::warn!("a line could not be accepted: {error}");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }

    /// Tells a caller how to open a line.
    pub(crate) fn offer(&self, request: &OpenRequest) -> Result<OpenResponse> {
        if host().is_none_or(|host| host != request.host) {
            return Err(failed_precondition!("the caller is on another machine"));
        }
        let name = lock(&self.name).clone();
        let name = name.ok_or_else(|| failed_precondition!("there is no socket"))?;
        Ok(OpenResponse {
            server: self.server,
            secret: self.secret,
            name,
        })
    }

    /// A line to the server behind a channel: the one there is, or a new one.
    pub(crate) async fn open(self: &Arc<Self>, channel: &Channel) -> Result<Arc<Line>> {
        let host = host().ok_or_else(|| failed_precondition!("this machine has no name"))?;
        let request = OpenRequest {
            host: host.to_owned(),
        };
        let options = CallOptions {
            deadline: Some(Instant::now() + OPEN_TIMEOUT),
            wait_for_ready: false,
        };
        let offer: OpenResponse = channel.unary(OPEN, &request, &options).await?;
        if let Some(line) = self.current(offer.server) {
            return Ok(line);
        }
        let stream = tokio::time::timeout(OPEN_TIMEOUT, self.connect(&offer)).await;
        let stream = match stream {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(unavailable!("socket {}: {error}", offer.name)),
            Err(_) => return Err(unavailable!("socket {}: no answer", offer.name)),
        };
        self.start(offer.server, channel.address().to_owned(), stream)
            .ok_or_else(|| unavailable!("this server is stopping"))
    }

    async fn connect(&self, offer: &OpenResponse) -> io::Result<UnixStream> {
        // The first byte says that it is no file.
        let mut stream = UnixStream::connect(format!("\0{}", offer.name)).await?;
        let mut hello = Vec::new();
        for word in [MAGIC, offer.secret, self.server, self.task.len() as u64] {
            hello.extend(word.to_le_bytes());
        }
        hello.extend(self.task.as_bytes());
        stream.write_all(&hello).await?;
        if stream.read_u64_le().await? != MAGIC {
            return Err(io::Error::other("it is no server of ours"));
        }
        Ok(stream)
    }

    async fn accept(self: Arc<Self>, mut stream: UnixStream) {
        let welcome = async {
            let magic = stream.read_u64_le().await?;
            let secret = stream.read_u64_le().await?;
            let server = stream.read_u64_le().await?;
            if (magic, secret) != (MAGIC, self.secret) {
                return Err(io::Error::other("it does not know the secret"));
            }
            let len = stream.read_u64_le().await?;
            if len > LONGEST_NAME {
                return Err(io::Error::other("its name is too long"));
            }
            let mut task = vec![0; len as usize];
            stream.read_exact(&mut task).await?;
            stream.write_u64_le(MAGIC).await?;
            Ok((server, String::from_utf8_lossy(&task).into_owned()))
        };
        let (server, task) = match tokio::time::timeout(OPEN_TIMEOUT, welcome).await {
            Ok(Ok(peer)) => peer,
            Ok(Err(error)) => return tracing::debug!("a line was not opened: {error}"),
            Err(_) => return tracing::debug!("a line was not opened: the caller said nothing"),
        };
        self.start(server, task, stream);
    }

    /// Drives a new line in the background; `None` if this server is going away.
    fn start(self: &Arc<Self>, server: u64, peer: String, stream: UnixStream) -> Option<Arc<Line>> {
        let services = self.services.get()?.upgrade()?;
        let line = Arc::new(Line::new(peer, self.max_message_bytes));
        lock(&self.open).push((server, line.clone()));
        let (lines, driven) = (Arc::downgrade(self), line.clone());
        let (load, patience) = (self.load.clone(), self.patience);
        tokio::spawn(async move {
            drive(driven.clone(), stream, services, load, patience).await;
            if let Some(lines) = lines.upgrade() {
                lock(&lines.open).retain(|(_, line)| !Arc::ptr_eq(line, &driven));
            }
        });
        Some(line)
    }

    fn current(&self, server: u64) -> Option<Arc<Line>> {
        let open = lock(&self.open);
        let mut lines = open.iter().filter(|(other, _)| *other == server);
        lines.find_map(|(_, line)| line.is_open().then(|| line.clone()))
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        lock(&self.open).len()
    }

    /// Begins no more steps; returns when all calls on lines were answered.
    pub(crate) async fn drain(&self) {
        self.load.drain().await;
    }
}

/// Ends all lines when the server stops.
struct Closes<'a>(&'a Lines);

impl Drop for Closes<'_> {
    fn drop(&mut self) {
        lock(&self.0.name).take();
        let open = std::mem::take(&mut *lock(&self.0.open));
        for (_, line) in open {
            line.close("this server stopped");
        }
    }
}

fn bind(name: &str) -> io::Result<UnixListener> {
    let address = unix::SocketAddr::from_abstract_name(name)?;
    let listener = unix::UnixListener::bind_addr(&address)?;
    listener.set_nonblocking(true)?;
    UnixListener::from_std(listener)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
