//! Clusters of several tasks: ours, and workers that answer as a test wants.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use prost::Message;
use tensorfleet_cluster::{ClusterSpec, ServerSpec};
use tensorfleet_proto as pb;
use tensorfleet_proto::services::worker as path;
use tensorfleet_rpc::grpc::{Call, Limits, Service, serve};
use tensorfleet_rpc::{Server, ServerOptions, free_ports};
use tensorfleet_status::{Result, Status, unimplemented};
use tensorfleet_tensor::Segments;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use crate::common::wait_until;

/// An address nobody listens at. Somebody else may take it before it is used, but hardly ever does.
pub(crate) fn free_address() -> String {
    free_addresses(1).remove(0)
}

/// Several of them, all different.
fn free_addresses(count: usize) -> Vec<String> {
    let ports = free_ports("localhost", count).unwrap().into_iter();
    ports.map(|port| format!("localhost:{port}")).collect()
}

/// A job `worker` at these addresses.
pub(crate) fn workers(addresses: &[String]) -> ClusterSpec {
    ClusterSpec::from_jobs([("worker", addresses.to_vec())]).unwrap()
}

/// A started task of [`workers`].
pub(crate) fn task(addresses: &[String], index: u32) -> Server {
    task_with(addresses, index, ServerOptions::default())
}

/// A started task of [`workers`] with options.
pub(crate) fn task_with(addresses: &[String], index: u32, options: ServerOptions) -> Server {
    started(workers(addresses), "worker", index, options)
}

/// Started servers of one cluster, jobs in order, a task for each of their options.
pub(crate) fn cluster(jobs: &[(&str, Vec<ServerOptions>)]) -> Vec<Server> {
    let count = jobs.iter().map(|(_, tasks)| tasks.len()).sum();
    let mut free = free_addresses(count).into_iter();
    let addresses = jobs.iter().map(|(job, tasks)| {
        let addresses: Vec<String> = free.by_ref().take(tasks.len()).collect();
        (*job, addresses)
    });
    let cluster = ClusterSpec::from_jobs(addresses).unwrap();
    let mut servers = Vec::new();
    for (job, tasks) in jobs {
        for (index, options) in (0..).zip(tasks) {
            servers.push(started(cluster.clone(), job, index, options.clone()));
        }
    }
    servers
}

fn started(cluster: ClusterSpec, job: &str, index: u32, options: ServerOptions) -> Server {
    let spec = ServerSpec::new(cluster, Some(job), Some(index)).unwrap();
    let server = Server::new(spec, options).unwrap();
    server.start().unwrap();
    server
}

/// What a scripted worker does with a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script {
    /// Which method it is about.
    pub(crate) path: &'static str,
    /// How long it takes.
    pub(crate) delay: Duration,
    /// What it fails with.
    pub(crate) error: Option<Status>,
}

/// A worker without kernels: it says yes to everything but what its script says. It ends when dropped.
pub(crate) struct Scripted {
    calls: Arc<Mutex<Vec<(&'static str, String)>>>,
    _runtime: Runtime,
    _stop: watch::Sender<bool>,
}

struct Answers {
    device: String,
    script: Vec<Script>,
    calls: Arc<Mutex<Vec<(&'static str, String)>>>,
}

impl Scripted {
    /// Listens as a task of [`workers`].
    pub(crate) fn new(address: &str, index: usize, script: Vec<Script>) -> Scripted {
        let device = format!("/job:worker/replica:0/task:{index}/device:CPU:0");
        Scripted::with_device(address, device, script)
    }

    pub(crate) fn with_device(address: &str, device: String, script: Vec<Script>) -> Scripted {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let calls = Arc::default();
        let answers = Arc::new(Answers {
            device,
            script,
            calls: Arc::clone(&calls),
        });
        let (stop, stopping) = watch::channel(false);
        let listener = runtime
            .block_on(tokio::net::TcpListener::bind(address))
            .unwrap();
        runtime.spawn(serve(listener, answers, Limits::default(), stopping));
        Scripted {
            calls,
            _runtime: runtime,
            _stop: stop,
        }
    }

    /// How often a method was called, and went well, with something (a session, a graph).
    pub(crate) fn count(&self, path: &str, what: &str) -> usize {
        let calls = self.calls.lock().unwrap();
        let same = calls.iter().filter(|call| call.0 == path && call.1 == what);
        same.count()
    }

    /// What a method was called with so far.
    pub(crate) fn called(&self, path: &str) -> Vec<String> {
        let calls = self.calls.lock().unwrap();
        let same = calls.iter().filter(|call| call.0 == path);
        same.map(|call| call.1.clone()).collect()
    }

    /// What a method was called with first, as soon as it was.
    pub(crate) fn first(&self, path: &str) -> String {
        wait_until(path, || !self.called(path).is_empty());
        self.called(path).remove(0)
    }

    pub(crate) fn wait_for(&self, path: &str, what: &str) {
        wait_until(path, || self.count(path, what) > 0);
    }
}

impl Service for Answers {
    fn call(
        self: &Arc<Self>,
        call: Call,
    ) -> impl Future<Output = Result<Segments>> + Send + 'static {
        let answers = self.clone();
        async move {
            let script = answers
                .script
                .iter()
                .find(|script| script.path == call.path);
            let script = script.cloned().unwrap_or_default();
            tokio::time::sleep(script.delay).await;
            if let Some(error) = script.error {
                return Err(error);
            }
            answers.answer(call)
        }
    }
}

impl Answers {
    fn answer(&self, call: Call) -> Result<Segments> {
        match &*call.path {
            path::GET_STATUS => {
                let device = pb::DeviceAttributes {
                    name: self.device.clone(),
                    device_type: "CPU".to_owned(),
                    incarnation: 42,
                    ..pb::DeviceAttributes::default()
                };
                self.note(path::GET_STATUS, "");
                encoded(&pb::GetStatusResponse {
                    device_attributes: vec![device],
                })
            }
            path::CREATE_WORKER_SESSION => {
                let request = decoded::<pb::CreateWorkerSessionRequest>(call);
                self.note(path::CREATE_WORKER_SESSION, &request.session_handle);
                encoded(&pb::CreateWorkerSessionResponse {})
            }
            path::DELETE_WORKER_SESSION => {
                let request = decoded::<pb::DeleteWorkerSessionRequest>(call);
                self.note(path::DELETE_WORKER_SESSION, &request.session_handle);
                encoded(&pb::DeleteWorkerSessionResponse {})
            }
            path::REGISTER_GRAPH => {
                let request = decoded::<pb::RegisterGraphRequest>(call);
                self.note(path::REGISTER_GRAPH, &request.session_handle);
                let count = self.calls.lock().unwrap().len();
                encoded(&pb::RegisterGraphResponse {
                    graph_handle: format!("graph {count}"),
                })
            }
            path::DEREGISTER_GRAPH => {
                let request = decoded::<pb::DeregisterGraphRequest>(call);
                self.note(path::DEREGISTER_GRAPH, &request.session_handle);
                encoded(&pb::DeregisterGraphResponse {})
            }
            path::RUN_GRAPH => {
                self.note(path::RUN_GRAPH, "");
                encoded(&pb::RunGraphResponse::default())
            }
            path::CLEANUP_GRAPH => {
                self.note(path::CLEANUP_GRAPH, "");
                encoded(&pb::CleanupGraphResponse {})
            }
            path => Err(unimplemented!("{path}")),
        }
    }

    fn note(&self, path: &'static str, what: &str) {
        self.calls.lock().unwrap().push((path, what.to_owned()));
    }
}

fn decoded<M: Message + Default>(call: Call) -> M {
    M::decode(call.message).unwrap()
}

fn encoded<M: Message>(message: &M) -> Result<Segments> {
    use bytes::BufMut;
    let bytes = message.encode_to_vec();
    let mut out = Segments::with_capacity(bytes.len() + 5);
    out.put_u8(0);
    out.put_u32(bytes.len() as u32);
    out.put_slice(&bytes);
    Ok(out)
}
