//! [`SessionFunctions`]: calls of functions, here or, for `RemoteCall`, on devices of other tasks.
//!
//! A function that is called elsewhere is registered there once per session, as a graph that receives the arguments, calls, and
//! sends the results. Both are handed over with the run itself, under keys from the device to itself, as TensorFlow's workers
//! do it among each other.

use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;
use tensorfleet_exec::{Functions, resume_here};
use tensorfleet_graph::{Graph, GraphBuilder, Library, Registry};
use tensorfleet_kernel::{AttrValue, CallDone, FuncRef, FunctionRuntime, StepEnv};
use tensorfleet_proto as pb;
use tensorfleet_status::{Code, Result, Status, internal, invalid_argument};
use tensorfleet_tensor::{DType, Tensor};
use tokio::sync::OnceCell;

use super::env::WorkerEnv;
use super::session::WorkerSession;
use crate::api::{Peers, WorkerApi};
use crate::cancelled::cancelled;
use crate::task::TaskName;

/// The incarnation in the keys of arguments and results, which no device has to check.
const INCARNATION: i64 = 1;

/// The functions of a graph on one device of a session.
pub(super) struct SessionFunctions {
    local: Functions,
    registry: Arc<Registry>,
    library: Arc<Library>,
    env: Arc<WorkerEnv>,
    session: Arc<str>,
    peers: Arc<dyn Peers>,
    /// The handles of what others keep for us.
    remote: Mutex<FxHashMap<String, Arc<OnceCell<String>>>>,
}

impl SessionFunctions {
    pub(super) fn new(
        session: &WorkerSession,
        graph: &Graph,
        local: Functions,
    ) -> SessionFunctions {
        SessionFunctions {
            local,
            registry: graph.registry().clone(),
            library: graph.library().clone(),
            env: session.env.clone(),
            session: session.handle.clone(),
            peers: session.peers.clone(),
            remote: Mutex::default(),
        }
    }

    /// What the other task is asked for, and whom to ask.
    fn prepare(&self, device: &str, func: &FuncRef, types: &CallTypes) -> Result<RemoteFunction> {
        let task = TaskName::of_device(device)
            .ok_or_else(|| invalid_argument!("RemoteCall to {device}, which names no task"))?;
        let worker = self.peers.worker(&task).ok_or_else(|| {
            invalid_argument!("RemoteCall to {device}: the cluster has no {task}")
        })?;
        let key = format!("{device} {} {:?} {types:?}", func.name, func.attrs);
        let handle = {
            let mut remote = self.remote.lock().unwrap_or_else(PoisonError::into_inner);
            remote.entry(key).or_default().clone()
        };
        let graph = match handle.get() {
            Some(_) => None,
            None => Some(self.graph(device, func, types)?),
        };
        Ok(RemoteFunction {
            worker,
            handle,
            graph,
            session: self.session.clone(),
            device: device.to_owned(),
            step_id: self.env.ids.step_id(),
            request_id: self.env.ids.request_id(),
        })
    }

    /// Receives the arguments, calls the function, sends the results.
    fn graph(&self, device: &str, func: &FuncRef, types: &CallTypes) -> Result<pb::GraphDef> {
        let mut builder = GraphBuilder::new(self.registry.clone());
        builder.graph_mut().set_library(self.library.clone());
        builder.set_device(device);
        let mut args = Vec::with_capacity(types.args.len());
        for (index, dtype) in types.args.iter().enumerate() {
            let recv = builder.op("_Recv").attr("tensor_type", *dtype);
            let recv = recv.attr("tensor_name", argument(index).as_str());
            let recv = recv.attr("send_device", device).attr("recv_device", device);
            let recv = recv.attr("send_device_incarnation", INCARNATION);
            args.push(recv.attr("client_terminated", true).output()?);
        }
        let op = match self.library.find(&func.name)?.is_stateful() {
            true => "StatefulPartitionedCall",
            false => "PartitionedCall",
        };
        let call = builder.op(op).list(&args);
        let call = call.attr("f", AttrValue::Func(func.clone()));
        let call = call.attr("Tin", types.args.clone());
        let call = call.attr("Tout", types.results.clone()).build()?;
        for index in 0..types.results.len() {
            let send = builder.op("_Send").input(call.output(index));
            let send = send.attr("tensor_name", result(index).as_str());
            let send = send.attr("send_device", device).attr("recv_device", device);
            let send = send.attr("send_device_incarnation", INCARNATION);
            send.attr("client_terminated", true).build()?;
        }
        builder.finish().export()
    }
}

impl FunctionRuntime for SessionFunctions {
    fn call(&self, func: &FuncRef, args: Vec<Tensor>, env: &Arc<StepEnv>, done: CallDone) {
        self.local.call(func, args, env, done);
    }

    fn call_on(
        &self,
        device: &str,
        func: &FuncRef,
        args: Vec<Tensor>,
        results: &[DType],
        env: &Arc<StepEnv>,
        done: CallDone,
    ) {
        let types = CallTypes {
            args: args.iter().map(Tensor::dtype).collect(),
            results: results.to_vec(),
        };
        let remote = match self.prepare(device, func, &types) {
            Ok(remote) => remote,
            Err(status) => return done(Err(status)),
        };
        let cancel = env.cancel.clone();
        self.env.runtime.spawn(async move {
            let answer = tokio::select! {
                biased;
                answer = remote.run(&args, &types) => answer,
                reason = cancelled(&cancel) => Err(reason.derived()),
            };
            resume_here(|| done(answer));
        });
    }

    /// Without the functions of other tasks: these are registered there for as long as the session lives.
    fn apart(&self) -> Arc<dyn FunctionRuntime> {
        self.local.apart()
    }
}

#[derive(Debug)]
struct CallTypes {
    args: Vec<DType>,
    results: Vec<DType>,
}

/// One call of a function that another task keeps, or is to keep.
struct RemoteFunction {
    worker: Arc<dyn WorkerApi>,
    handle: Arc<OnceCell<String>>,
    /// Unless it was there already.
    graph: Option<pb::GraphDef>,
    session: Arc<str>,
    device: String,
    step_id: i64,
    request_id: i64,
}

impl RemoteFunction {
    async fn run(mut self, args: &[Tensor], types: &CallTypes) -> Result<Vec<Tensor>> {
        let graph = self.graph.take();
        let handle = self.handle.get_or_try_init(|| self.register(graph)).await?;
        let mut send = Vec::with_capacity(args.len());
        for (index, arg) in args.iter().enumerate() {
            send.push(pb::NamedTensorProto {
                name: self.key(&argument(index)),
                tensor: Some(arg.to_proto()?),
            });
        }
        let recv_key = (0..types.results.len()).map(|index| self.key(&result(index)));
        let answer = self.worker.run_graph(pb::RunGraphRequest {
            session_handle: self.session.to_string(),
            create_worker_session_called: !self.session.is_empty(),
            graph_handle: handle.clone(),
            step_id: self.step_id,
            request_id: self.request_id,
            exec_opts: Some(pb::ExecutorOpts::default()),
            send,
            recv_key: recv_key.collect(),
            ..pb::RunGraphRequest::default()
        });
        let answer = answer.await;
        let cleanup = pb::CleanupGraphRequest {
            step_id: self.step_id,
        };
        // What it left behind is forgotten with the session at the latest.
        let _ = self.worker.cleanup_graph(cleanup).await;
        let answer = answer?;
        if answer.status_code != 0 {
            let code = Code::from_number(answer.status_code);
            return Err(Status::new(code, answer.status_error_message));
        }
        let mut results = Vec::with_capacity(types.results.len());
        for (index, dtype) in types.results.iter().enumerate() {
            let key = self.key(&result(index));
            let named = answer.recv.iter().find(|named| named.name == key);
            let proto = named
                .and_then(|named| named.tensor.as_ref())
                .ok_or_else(|| internal!("{} sent no result {index}", self.device))?;
            let tensor = Tensor::from_proto(proto)?;
            if tensor.dtype() != *dtype {
                return Err(internal!(
                    "result {index} of {} is {}, not {dtype}",
                    self.device,
                    tensor.dtype()
                ));
            }
            results.push(tensor);
        }
        Ok(results)
    }

    async fn register(&self, graph: Option<pb::GraphDef>) -> Result<String> {
        let request = pb::RegisterGraphRequest {
            session_handle: self.session.to_string(),
            create_worker_session_called: !self.session.is_empty(),
            graph_def: graph,
            ..pb::RegisterGraphRequest::default()
        };
        Ok(self.worker.register_graph(request).await?.graph_handle)
    }

    fn key(&self, name: &str) -> String {
        let device = &self.device;
        format!("{device};{INCARNATION:016x};{device};{name};0:0")
    }
}

fn argument(index: usize) -> String {
    format!("arg_{index}")
}

fn result(index: usize) -> String {
    format!("ret_{index}")
}
