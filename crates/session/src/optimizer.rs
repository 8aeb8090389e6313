//! [`optimizer`]: the passes of a session, as functions and sessions share them.

use std::sync::Arc;

use tensorfleet_exec::Optimize;
use tensorfleet_kernel::{
    CallDone, CallFrame, CancelToken, Clock, Device, FuncRef, FunctionRuntime, LocalRendezvous,
    ResourceManager, StepEnv,
};
use tensorfleet_math::par::{Pool, Watched};
use tensorfleet_passes::{PassOptions, Roots, optimize};
use tensorfleet_status::internal;
use tensorfleet_tensor::Tensor;

/// The chosen passes. Folding runs kernels in a step of its own.
pub fn optimizer(
    passes: PassOptions,
    device: &Arc<Device>,
    pool: &Arc<Pool>,
    clock: &Arc<dyn Clock>,
) -> Optimize {
    let cancel = CancelToken::new();
    // Without the device's state: that may keep functions, which keep their passes.
    let resources = Arc::new(ResourceManager::new());
    let device = Device {
        name: device.name.clone(),
        default_container: device.default_container.clone(),
        resources: resources.clone(),
        ..**device
    };
    let env = Arc::new(StepEnv {
        step_id: 0,
        device: Arc::new(device),
        resources,
        step_resources: Arc::new(ResourceManager::new()),
        rendezvous: Arc::new(LocalRendezvous::new()),
        par: Watched::new(pool.clone(), cancel.clone()),
        cancel,
        pool: pool.clone(),
        functions: Arc::new(NoFunctions),
        clock: clock.clone(),
        call_frame: Arc::new(CallFrame::default()),
    });
    Arc::new(move |graph, ids| {
        let roots = Roots::of(&graph, ids.iter().copied());
        optimize(graph, &roots, passes, &env)
    })
}

/// Nothing that is folded calls functions.
struct NoFunctions;

impl FunctionRuntime for NoFunctions {
    fn call(&self, func: &FuncRef, _: Vec<Tensor>, _: &Arc<StepEnv>, done: CallDone) {
        done(Err(internal!(
            "function {} was called while folding constants",
            func.name
        )));
    }

    fn apart(&self) -> Arc<dyn FunctionRuntime> {
        Arc::new(NoFunctions)
    }
}
