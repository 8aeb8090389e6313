//! Runs whole and partitioned graphs and compares; watches the rendezvous while the parts run.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::time::Duration;

use tensorfleet_exec::{KernelCache, Plan, PlanOptions, start};
use tensorfleet_graph::{Graph, GraphBuilder, NodeId, Registry, text};
use tensorfleet_kernel::{
    CallDone, CallFrame, CancelToken, Device, DeviceType, FuncRef, FunctionRuntime,
    LocalRendezvous, Received, RecvDone, Rendezvous, ResourceManager, StepEnv, SystemClock,
};
use tensorfleet_math::par::{self, Pool};
use tensorfleet_passes::{Part, PartDevice, PartitionOptions, partition};
use tensorfleet_status::{Result, Status, unimplemented};
use tensorfleet_tensor::Tensor;

pub(crate) fn registry() -> Arc<Registry> {
    static REGISTRY: OnceLock<Arc<Registry>> = OnceLock::new();
    let make = || Arc::new(Registry::new(tensorfleet_ops::all()).unwrap());
    REGISTRY.get_or_init(make).clone()
}

/// Parses a graph; `back_edges` are (Merge, NextIteration).
pub(crate) fn parse(text: &str, back_edges: &[(&str, &str)]) -> Graph {
    let mut builder = GraphBuilder::new(registry());
    text::parse_graph(&mut builder, text).unwrap();
    let mut graph = builder.finish();
    for (merge, next) in back_edges {
        let (merge, next) = (graph.find(merge).unwrap(), graph.find(next).unwrap());
        graph.set_input(merge, 1, next.output(0)).unwrap();
    }
    graph
}

/// CPU `index` of `tasks` tasks; every task is a part.
pub(crate) fn devices(tasks: u32, per_task: u32) -> Vec<PartDevice> {
    (0..tasks)
        .flat_map(|task| (0..per_task).map(move |cpu| (task, cpu)))
        .map(|(task, cpu)| PartDevice {
            name: format!("/job:worker/replica:0/task:{task}/device:CPU:{cpu}").into(),
            incarnation: 0x8000_0000_0000_0000 + u64::from(task * per_task + cpu),
            part: task,
        })
        .collect()
}

/// Splits by task with these devices.
pub(crate) fn split(graph: Graph, devices: &[PartDevice], placed: &[u32]) -> Result<Vec<Part>> {
    split_with(graph, devices, placed, |_| {})
}

/// As [`split`], with other options.
pub(crate) fn split_with(
    graph: Graph,
    devices: &[PartDevice],
    placed: &[u32],
    change: impl FnOnce(&mut PartitionOptions<'_>),
) -> Result<Vec<Part>> {
    let counter = AtomicU64::new(0);
    let device_of = |id: NodeId| placed[id.index()];
    let mut options = PartitionOptions {
        devices,
        device_of: &device_of,
        suffix: "_S",
        counter: &counter,
        control_flow_added: false,
        floats_as_bfloat16: false,
        copied_constant_bytes: 0,
    };
    change(&mut options);
    partition(graph, &options)
}

/// Splits parts again by device, as a worker does.
pub(crate) fn split_again(parts: Vec<Part>, devices: &[PartDevice]) -> Result<Vec<Part>> {
    let by_device: Vec<PartDevice> = devices
        .iter()
        .zip(0..)
        .map(|(device, part)| PartDevice {
            part,
            ..device.clone()
        })
        .collect();
    let counter = AtomicU64::new(0);
    let mut all = Vec::new();
    for part in parts {
        let placed: Vec<u32> = part
            .graph
            .nodes()
            .map(|(_, node)| {
                let found = devices.iter().position(|device| device.name == node.device);
                found.expect("every node has a device") as u32
            })
            .collect();
        let options = PartitionOptions {
            devices: &by_device,
            device_of: &|id: NodeId| placed[id.index()],
            suffix: "_G",
            counter: &counter,
            control_flow_added: true,
            floats_as_bfloat16: false,
            copied_constant_bytes: 0,
        };
        all.extend(partition(part.graph, &options)?);
    }
    Ok(all)
}

struct NoFunctions;

impl FunctionRuntime for NoFunctions {
    fn call(&self, _: &FuncRef, _: Vec<Tensor>, _: &Arc<StepEnv>, done: CallDone) {
        done(Err(unimplemented!("no functions here")));
    }

    fn apart(&self) -> Arc<dyn FunctionRuntime> {
        Arc::new(NoFunctions)
    }
}

/// Counts sends and receives by key.
#[derive(Default)]
pub(crate) struct Watched {
    inner: LocalRendezvous,
    counts: Mutex<BTreeMap<String, (u32, u32)>>,
}

impl Rendezvous for Watched {
    fn send(&self, key: &str, value: Received) -> Result<()> {
        self.counts
            .lock()
            .unwrap()
            .entry(key.to_owned())
            .or_default()
            .0 += 1;
        self.inner.send(key, value)
    }

    fn recv(&self, key: &str, done: RecvDone) {
        self.counts
            .lock()
            .unwrap()
            .entry(key.to_owned())
            .or_default()
            .1 += 1;
        self.inner.recv(key, done);
    }

    fn abort(&self, status: Status) {
        self.inner.abort(status);
    }
}

/// What a run gave.
#[derive(Debug)]
pub(crate) struct Ran {
    /// The results; `None` for dead ones.
    pub(crate) results: Vec<Option<String>>,
    /// All rendezvous keys.
    pub(crate) keys: Vec<String>,
}

/// Runs graphs at the same time with one rendezvous. What is sent must be received, once.
pub(crate) fn run(graphs: &[&Graph], results: usize) -> Result<Ran> {
    let pool = Arc::new(Pool::new(2));
    let rendezvous = Arc::new(Watched::default());
    let cancel = CancelToken::new();
    let frame = Arc::new(CallFrame::new(Vec::new(), results));
    let (sender, receiver) = mpsc::channel();
    for (index, graph) in graphs.iter().enumerate() {
        let kernels = KernelCache::new();
        let options = PlanOptions {
            kernels: &kernels,
            scope: "",
            device: DeviceType::Cpu,
        };
        let plan = Arc::new(Plan::compile(graph, &options)?);
        let env = Arc::new(StepEnv {
            step_id: 1,
            device: Arc::new(Device::cpu("worker", index, 0, 1)),
            resources: Arc::new(ResourceManager::new()),
            step_resources: Arc::new(ResourceManager::new()),
            rendezvous: rendezvous.clone(),
            cancel: cancel.clone(),
            pool: pool.clone(),
            par: par::Watched::new(pool.clone(), cancel.clone()),
            functions: Arc::new(NoFunctions),
            clock: Arc::new(SystemClock::default()),
            call_frame: frame.clone(),
        });
        let sender = sender.clone();
        let done = move |result: Result<_>| {
            let _ = sender.send(result.map(|_| ()));
        };
        start(plan, env, false, Box::new(done));
    }
    for _ in graphs {
        match receiver.recv_timeout(Duration::from_secs(20)) {
            Ok(result) => result.inspect_err(|status| {
                rendezvous.abort(status.clone());
                cancel.cancel(status.clone());
            })?,
            Err(_) => {
                let counts = rendezvous.counts.lock().unwrap().clone();
                let open: Vec<_> = counts.iter().filter(|(_, (s, r))| s != r).collect();
                panic!("the step never ended; unmatched: {open:#?}");
            }
        }
    }
    let counts = rendezvous.counts.lock().unwrap().clone();
    for (key, count) in &counts {
        assert_eq!(*count, (1, 1), "sends and receives of {key}");
    }
    Ok(Ran {
        results: frame
            .take_rets()
            .into_iter()
            .map(|ret| ret.map(|tensor| format!("{tensor:?}")))
            .collect(),
        keys: counts.into_keys().collect(),
    })
}

/// Runs the whole graph and its parts, split once and split again; all must agree.
pub(crate) fn check(graph: &Graph, devices: &[PartDevice], placed: &[u32], results: usize) -> Ran {
    let whole = run(&[graph], results).unwrap();
    let agree = |parts: &[Part]| {
        let graphs: Vec<&Graph> = parts.iter().map(|part| &part.graph).collect();
        let ran = run(&graphs, results).unwrap();
        assert_eq!(ran.results, whole.results, "{placed:?}\n{graph:?}");
        ran
    };
    agree(
        &split_with(graph.clone(), devices, placed, |options| {
            options.copied_constant_bytes = 64;
        })
        .unwrap(),
    );
    let parts = split(graph.clone(), devices, placed).unwrap();
    let ran = agree(&parts);
    let mut pairs = devices.iter().zip(devices.iter().skip(1));
    if pairs.any(|(a, b)| a.part == b.part) {
        return agree(&split_again(parts, devices).unwrap());
    }
    ran
}
