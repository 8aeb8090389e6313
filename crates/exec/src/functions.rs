//! [`Functions`]: instantiates the functions of a library once and calls them within steps.

use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;
use tensorfleet_graph::{FunctionBody, Graph, Library, NodeId, Registry};
use tensorfleet_kernel::{CallDone, DeviceType, FuncRef, FunctionRuntime, StepEnv};
use tensorfleet_math::par::Pool;
use tensorfleet_status::{Result, internal, invalid_argument, resource_exhausted};
use tensorfleet_tensor::{PortType, Tensor};

use crate::kernels::KernelCache;
use crate::plan::{Plan, PlanOptions};
use crate::step;

/// Improves a graph before it is compiled; the nodes given must still run.
pub type Optimize = Arc<dyn Fn(Graph, &[NodeId]) -> Result<Graph> + Send + Sync>;

/// Calls the functions of one library on one device.
pub struct Functions {
    registry: Arc<Registry>,
    library: Arc<Library>,
    kernels: Arc<KernelCache>,
    device: DeviceType,
    optimize: Optimize,
    instances: Mutex<FxHashMap<String, Arc<Instance>>>,
}

struct Instance {
    plan: Arc<Plan>,
    arg_types: Vec<PortType>,
    results: usize,
}

impl Functions {
    /// A runtime for this library.
    pub fn new(
        registry: Arc<Registry>,
        library: Arc<Library>,
        kernels: Arc<KernelCache>,
        device: DeviceType,
        optimize: Optimize,
    ) -> Functions {
        Functions {
            registry,
            library,
            kernels,
            device,
            optimize,
            instances: Mutex::new(FxHashMap::default()),
        }
    }

    fn instance(&self, func: &FuncRef) -> Result<Arc<Instance>> {
        // Few functions have attributes; those that do are told apart by their text.
        let key = if func.attrs.is_empty() {
            func.name.to_string()
        } else {
            format!("{}{:?}", func.name, func.attrs)
        };
        let mut instances = self
            .instances
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(instance) = instances.get(&key) {
            return Ok(instance.clone());
        }
        let function = self.library.find(&func.name)?;
        let body = FunctionBody::instantiate(function, &func.attrs, &self.registry, &self.library)?;
        let roots = must_run(&body);
        let graph = (self.optimize)(body.graph, &roots)?;
        let plan = Plan::compile(
            &graph,
            &PlanOptions {
                kernels: &self.kernels,
                scope: &key,
                device: self.device,
            },
        )?;
        let instance = Arc::new(Instance {
            plan: Arc::new(plan),
            arg_types: body.arg_types,
            results: body.ret_types.len(),
        });
        instances.insert(key, instance.clone());
        Ok(instance)
    }
}

/// Results, control results, and everything with effects.
fn must_run(body: &FunctionBody) -> Vec<NodeId> {
    let effects = body
        .graph
        .nodes()
        .filter(|(_, node)| node.is_stateful() && node.op_name() != "_Arg")
        .map(|(id, _)| id);
    body.rets
        .iter()
        .chain(&body.control_rets)
        .copied()
        .chain(effects)
        .collect()
}

impl FunctionRuntime for Functions {
    fn call(&self, func: &FuncRef, args: Vec<Tensor>, env: &Arc<StepEnv>, done: CallDone) {
        let instance = match self
            .instance(func)
            .and_then(|instance| check_args(func, &instance, &args).map(|()| instance))
        {
            Ok(instance) => instance,
            Err(status) => return done(Err(status)),
        };
        if env.call_frame.depth() >= DEEPEST {
            return done(Err(resource_exhausted!(
                "function {} is called within {DEEPEST} other calls: does it call itself without end?",
                func.name
            )));
        }
        let frame = Arc::new(env.call_frame.nested(args, instance.results));
        let call_env = Arc::new(env.for_call(frame.clone()));
        let (name, pool) = (func.name.clone(), env.pool.clone());
        let finished = move |result: Result<crate::StepReport>| {
            let result = result.and_then(|_| {
                let rets = frame.take_rets();
                let all: Option<Vec<Tensor>> = rets.into_iter().collect();
                all.ok_or_else(|| internal!("function {name} ended without all of its results"))
            });
            on_shallow_stack(&pool, move || done(result));
        };
        let plan = instance.plan.clone();
        on_shallow_stack(&env.pool, move || {
            step::start(plan, call_env, false, Box::new(finished));
        });
    }

    fn apart(&self) -> Arc<dyn FunctionRuntime> {
        Arc::new(Functions::new(
            self.registry.clone(),
            self.library.clone(),
            Arc::new(KernelCache::new()),
            self.device,
            self.optimize.clone(),
        ))
    }
}

/// Calls within calls before one is refused: what a graph can ask for must have an end.
const DEEPEST: usize = 10_000;

/// Calls that are begun or ended within each other on one thread's stack, each of which takes some kilobytes of it.
const STACKED: u32 = 16;

thread_local! {
    static NESTED: Cell<u32> = const { Cell::new(0) };
}

/// Runs `body` at once, or, where the stack has grown by many calls within each other, on a stack of its own.
fn on_shallow_stack(pool: &Pool, body: impl FnOnce() + Send + 'static) {
    /// Counts down, even if a kernel panics.
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            NESTED.set(NESTED.get() - 1);
        }
    }
    if NESTED.get() >= STACKED {
        return pool.spawn(Box::new(body));
    }
    NESTED.set(NESTED.get() + 1);
    let _leave = Leave;
    body();
}

fn check_args(func: &FuncRef, instance: &Instance, args: &[Tensor]) -> Result<()> {
    if args.len() != instance.arg_types.len() {
        return Err(invalid_argument!(
            "Function takes {} argument(s) but {} argument(s) were passed: {}",
            instance.arg_types.len(),
            args.len(),
            func.name
        ));
    }
    for (index, (arg, wanted)) in args.iter().zip(&instance.arg_types).enumerate() {
        if arg.dtype() != wanted.dtype {
            return Err(invalid_argument!(
                "argument {index} of function {} must be {wanted}, got {}",
                func.name,
                arg.dtype()
            ));
        }
    }
    Ok(())
}
