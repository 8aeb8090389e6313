//! A few ops with obvious kernels, and a way to run a graph of them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::ThreadId;
use std::time::Duration;

use tensorfleet_exec::{KernelCache, Plan, PlanOptions, StepReport, resume_here, start};
use tensorfleet_graph::{Cost, Graph, GraphBuilder, NodeId, OpDef, Output, Registry, cpu, text};
use tensorfleet_kernel::{
    AnyKernel, AsyncCtx, CallDone, CallFrame, CancelToken, Clock, Device, DeviceType, FuncRef,
    FunctionRuntime, KernelCtx, LocalRendezvous, NodeInfo, ResourceManager, StepEnv, SystemClock,
};
use tensorfleet_math::par::{Pool, Watched};
use tensorfleet_status::{Result, Status, invalid_argument, unimplemented};
use tensorfleet_tensor::Tensor;

/// Integer ops of the tests: `TestAdd`, `TestLess`, `TestPanic`, `TestFail`, `TestWait`, `TestLater`,
/// `TestBring`, `TestSlow`, `TestSleep`, `TestHalf`, `TestEndless`.
static OPS: [OpDef; 11] = [
    OpDef {
        name: "TestAdd",
        kernels: &[cpu(&[], add)],
        ..BINARY
    },
    OpDef {
        name: "TestSlow",
        kernels: &[cpu(&[], add)],
        cost: Cost::Expensive,
        ..BINARY
    },
    OpDef {
        name: "TestSleep",
        kernels: &[cpu(&[], sleeps)],
        cost: Cost::Expensive,
        ..BINARY
    },
    OpDef {
        name: "TestEndless",
        kernels: &[cpu(&[], endless)],
        ..BINARY
    },
    OpDef {
        name: "TestLess",
        outputs: &["z: bool"],
        kernels: &[cpu(&[], less)],
        ..BINARY
    },
    OpDef {
        name: "TestPanic",
        kernels: &[cpu(&[], panics)],
        ..BINARY
    },
    OpDef {
        name: "TestFail",
        kernels: &[cpu(&[], fails)],
        ..BINARY
    },
    OpDef {
        name: "TestWait",
        kernels: &[cpu(&[], waits)],
        ..BINARY
    },
    OpDef {
        name: "TestLater",
        kernels: &[cpu(&[], later)],
        ..BINARY
    },
    OpDef {
        name: "TestBring",
        kernels: &[cpu(&[], brings)],
        ..BINARY
    },
    // Never sets its second output.
    OpDef {
        name: "TestHalf",
        outputs: &["z: int32", "rest: int32"],
        kernels: &[cpu(&[], add)],
        ..BINARY
    },
];

const BINARY: OpDef = OpDef {
    inputs: &["x: int32", "y: int32"],
    outputs: &["z: int32"],
    ..OpDef::BLANK
};

fn operands(ctx: &KernelCtx<'_>) -> Result<(i32, i32)> {
    Ok((ctx.scalar::<i32>(0)?, ctx.scalar::<i32>(1)?))
}

fn add(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let (x, y) = operands(ctx)?;
        ctx.set(0, Tensor::scalar(x + y));
        Ok(())
    })
}

/// Adds after the answers that come a little later.
fn sleeps(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        std::thread::sleep(Duration::from_millis(15));
        let (x, y) = operands(ctx)?;
        ctx.set(0, Tensor::scalar(x + y));
        Ok(())
    })
}

/// Computes for as long as anybody wants the result.
fn endless(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        loop {
            ctx.poll();
            std::thread::yield_now();
        }
    })
}

fn less(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let (x, y) = operands(ctx)?;
        ctx.set(0, Tensor::scalar(x < y));
        Ok(())
    })
}

#[allow(clippy::panic)]
fn panics(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|_: &mut KernelCtx<'_>| -> Result<()> { panic!("as asked") })
}

fn fails(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::sync(|ctx: &mut KernelCtx<'_>| {
        let (x, y) = operands(ctx)?;
        Err(invalid_argument!("{x} and {y} are no good"))
    })
}

/// Waits until the step is cancelled.
fn waits(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::later(|ctx: AsyncCtx| {
        let cancel = ctx.env().cancel.clone();
        let waiting = Arc::new(Mutex::new(Some(ctx)));
        let guard = cancel.on_cancel({
            let waiting = waiting.clone();
            move |reason: &Status| {
                if let Some(ctx) = waiting.lock().unwrap().take() {
                    ctx.fail(reason.clone());
                }
            }
        });
        guard.detach();
    })
}

/// Adds on another thread, a little later.
fn later(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::later(|ctx: AsyncCtx| {
        std::thread::spawn(move || finish_later(ctx));
    })
}

/// Adds on another thread, on which the step may go on.
fn brings(_: &NodeInfo) -> Result<AnyKernel> {
    AnyKernel::later(|ctx: AsyncCtx| {
        std::thread::spawn(move || resume_here(|| finish_later(ctx)));
    })
}

fn finish_later(mut ctx: AsyncCtx) {
    let operands = ctx.view(|view| operands(view));
    std::thread::sleep(Duration::from_millis(5));
    match operands {
        Ok((x, y)) => ctx.finish_with([Tensor::scalar(x + y)]),
        Err(status) => ctx.fail(status),
    }
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

pub(crate) fn registry() -> Arc<Registry> {
    Arc::new(Registry::new(tensorfleet_ops::all().chain(OPS.iter())).unwrap())
}

/// A compiled graph with its environment.
pub(crate) struct Harness {
    pub(crate) plan: Arc<Plan>,
    pool: Arc<Pool>,
    pub(crate) cancel: CancelToken,
    clock: Arc<dyn Clock>,
}

/// A clock that stands still: on it nothing takes long.
struct Stopped;

impl Clock for Stopped {
    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }

    fn wall(&self) -> Duration {
        Duration::ZERO
    }

    fn after(&self, _: Duration, _: Box<dyn FnOnce() + Send>) {}
}

impl Harness {
    /// Parses and compiles a graph.
    pub(crate) fn new(graph: &str) -> Harness {
        let mut builder = GraphBuilder::new(registry());
        text::parse_graph(&mut builder, graph).unwrap();
        Harness::of(&builder.finish()).unwrap()
    }

    pub(crate) fn of(graph: &Graph) -> Result<Harness> {
        let kernels = KernelCache::new();
        let options = PlanOptions {
            kernels: &kernels,
            scope: "",
            device: DeviceType::Cpu,
        };
        Ok(Harness {
            plan: Arc::new(Plan::compile(graph, &options)?),
            pool: Arc::new(Pool::new(2)),
            cancel: CancelToken::new(),
            clock: Arc::new(SystemClock::default()),
        })
    }

    /// The same on a clock that stands still.
    pub(crate) fn without_time(self) -> Harness {
        Harness {
            clock: Arc::new(Stopped),
            ..self
        }
    }

    /// The same plan with a switch that was not thrown: recycled state, new step.
    pub(crate) fn again(&self) -> Harness {
        Harness {
            plan: self.plan.clone(),
            pool: self.pool.clone(),
            cancel: CancelToken::new(),
            clock: self.clock.clone(),
        }
    }

    /// Runs to the end; the integer results, `None` where a result's node was dead.
    pub(crate) fn run(&self, results: usize) -> Result<Vec<Option<i32>>> {
        self.start(results)
            .recv_timeout(Duration::from_secs(20))
            .expect("the step never ended")
    }

    /// Starts a step; its results come through the channel.
    pub(crate) fn start(&self, results: usize) -> mpsc::Receiver<Result<Vec<Option<i32>>>> {
        self.start_with(Vec::new(), results)
    }

    /// Starts a step with these arguments.
    pub(crate) fn start_with(
        &self,
        args: Vec<Tensor>,
        results: usize,
    ) -> mpsc::Receiver<Result<Vec<Option<i32>>>> {
        let frame = Arc::new(CallFrame::new(args, results));
        let env = self.env(&frame);
        let (sender, receiver) = mpsc::channel();
        let calls = AtomicUsize::new(0);
        let done = move |result: Result<StepReport>| {
            assert_eq!(
                calls.fetch_add(1, Ordering::Relaxed),
                0,
                "done was called twice"
            );
            let values = result.map(|_| {
                frame
                    .take_rets()
                    .into_iter()
                    .map(|ret| ret.map(|t| t.to_scalar::<i32>().unwrap()))
                    .collect()
            });
            let _ = sender.send(values);
        };
        start(self.plan.clone(), env, false, Box::new(done));
        receiver
    }

    /// Runs to the end; the times of every node, and who called back.
    pub(crate) fn record(&self, results: usize) -> (StepReport, ThreadId) {
        let frame = Arc::new(CallFrame::new(Vec::new(), results));
        let (sender, receiver) = mpsc::channel();
        let done = move |result: Result<StepReport>| {
            let _ = sender.send((result.unwrap(), std::thread::current().id()));
        };
        start(self.plan.clone(), self.env(&frame), true, Box::new(done));
        let ended = receiver.recv_timeout(Duration::from_secs(20));
        ended.expect("the step never ended")
    }

    fn env(&self, frame: &Arc<CallFrame>) -> Arc<StepEnv> {
        Arc::new(StepEnv {
            step_id: 1,
            device: Arc::new(Device::cpu("localhost", 0, 0, 1)),
            resources: Arc::new(ResourceManager::new()),
            step_resources: Arc::new(ResourceManager::new()),
            rendezvous: Arc::new(LocalRendezvous::new()),
            cancel: self.cancel.clone(),
            pool: self.pool.clone(),
            par: Watched::new(self.pool.clone(), self.cancel.clone()),
            functions: Arc::new(NoFunctions),
            clock: self.clock.clone(),
            call_frame: frame.clone(),
        })
    }
}

/// Builds a graph from text in which `NextIteration` lines may name later nodes: they are connected at the end.
pub(crate) fn graph(text: &str, back_edges: &[(&str, &str)]) -> Graph {
    let mut builder = GraphBuilder::new(registry());
    text::parse_graph(&mut builder, text).unwrap();
    let mut graph = builder.finish();
    for (merge, next) in back_edges {
        let merge: NodeId = graph.find(merge).unwrap();
        let next: NodeId = graph.find(next).unwrap();
        graph.set_input(merge, 1, Output::from(next)).unwrap();
    }
    graph
}

/// `i` from 0 while `i < limit`, `acc` from `start` adding `i` each time.
pub(crate) fn counting_loop(limit: i32, parallel: i32) -> Harness {
    let text = format!(
        "zero = int32[]{{0}}
         one = int32[]{{1}}
         limit = int32[]{{{limit}}}
         i_in = Enter(zero) {{frame_name='loop', parallel_iterations={parallel}}}
         acc_in = Enter(zero) {{frame_name='loop', parallel_iterations={parallel}}}
         limit_c = Enter(limit) {{frame_name='loop', is_constant=true, parallel_iterations={parallel}}}
         one_c = Enter(one) {{frame_name='loop', is_constant=true, parallel_iterations={parallel}}}
         i = Merge([i_in, i_in])
         acc = Merge([acc_in, acc_in])
         less = TestLess(i, limit_c)
         cond = LoopCond(less)
         i_sw = Switch(i, cond)
         acc_sw = Switch(acc, cond)
         acc_more = TestAdd(acc_sw:1, i_sw:1)
         i_more = TestAdd(i_sw:1, one_c)
         i_next = NextIteration(i_more)
         acc_next = NextIteration(acc_more)
         i_out = Exit(i_sw)
         acc_out = Exit(acc_sw)
         r0 = _Retval(i_out) {{index=0}}
         r1 = _Retval(acc_out) {{index=1}}"
    );
    Harness::of(&graph(&text, &[("i", "i_next"), ("acc", "acc_next")])).unwrap()
}
