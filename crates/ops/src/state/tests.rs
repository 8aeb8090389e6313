//! What scripts cannot show: containers that are cleaned up, updates at the same time, memory that is or is not copied.

use std::sync::Arc;

use tensorfleet_kernel::{
    AnyKernel, AttrValue, Attrs, CallDone, CallFrame, CancelToken, Device, FuncRef,
    FunctionRuntime, KernelCtx, LocalRendezvous, NodeInfo, RefVar, ResourceManager, StepEnv,
    SystemClock, Value,
};
use tensorfleet_math::par::{Pool, Watched};
use tensorfleet_status::{Code, Result, unimplemented};
use tensorfleet_tensor::{DType, PartialShape, PortType, Shape, Tensor};

/// A node of the registry with its kernel.
pub(crate) struct Op {
    node: NodeInfo,
    kernel: AnyKernel,
}

impl Op {
    pub(crate) fn new(op: &str, attrs: &[(&str, AttrValue)], inputs: &[PortType]) -> Op {
        Op::try_new(op, attrs, inputs).unwrap()
    }

    pub(crate) fn try_new(
        op: &str,
        attrs: &[(&str, AttrValue)],
        inputs: &[PortType],
    ) -> Result<Op> {
        let def = crate::all().find(|def| def.name == op).unwrap();
        let mut node = NodeInfo {
            name: "node".to_owned(),
            op: op.to_owned(),
            input_types: inputs.to_vec(),
            output_types: vec![DType::F32.into()],
            ..NodeInfo::default()
        };
        node.attrs = attrs.iter().fold(Attrs::new(), |mut all, (name, value)| {
            all.set(*name, value.clone());
            all
        });
        let kernel = (def.kernels[0].build)(&node)?;
        Ok(Op { node, kernel })
    }

    pub(crate) fn run(&self, env: &Arc<StepEnv>, inputs: &[Value]) -> Result<Value> {
        let [output] = self.outputs(env, inputs)?;
        Ok(output)
    }

    pub(crate) fn outputs<const N: usize>(
        &self,
        env: &Arc<StepEnv>,
        inputs: &[Value],
    ) -> Result<[Value; N]> {
        let mut inputs = inputs.to_vec();
        let mut outputs = [(); N].map(|()| Value::Empty);
        let mut ctx = KernelCtx::new(&self.node, env, &mut inputs, &mut outputs);
        match &self.kernel {
            AnyKernel::Sync(kernel) => kernel.compute(&mut ctx)?,
            AnyKernel::Async(_) => panic!("a kernel that waits"),
        }
        Ok(outputs)
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

pub(crate) fn env() -> Arc<StepEnv> {
    let device = Arc::new(Device::cpu("localhost", 0, 0, 1));
    let (cancel, pool) = (CancelToken::new(), Arc::new(Pool::new(2)));
    Arc::new(StepEnv {
        step_id: 1,
        resources: device.resources.clone(),
        device,
        step_resources: Arc::new(ResourceManager::new()),
        rendezvous: Arc::new(LocalRendezvous::new()),
        par: Watched::new(pool.clone(), cancel.clone()),
        cancel,
        pool,
        functions: Arc::new(NoFunctions),
        clock: Arc::new(SystemClock::default()),
        call_frame: Arc::new(CallFrame::default()),
    })
}

pub(crate) fn tensor(value: Value) -> Tensor {
    match value {
        Value::Tensor(tensor) => tensor,
        _ => panic!("no tensor"),
    }
}

fn variable_attrs(name: &str) -> [(&'static str, AttrValue); 4] {
    [
        ("dtype", DType::F32.into()),
        ("shape", PartialShape::unknown().into()),
        ("container", "".into()),
        ("shared_name", name.into()),
    ]
}

fn resource_op(op: &str) -> Op {
    let attrs = [
        ("dtype", DType::F32.into()),
        ("validate_shape", false.into()),
    ];
    Op::new(op, &attrs, &[DType::Resource.into(), DType::F32.into()])
}

#[test]
fn handles_find_their_variable_anew_after_a_cleanup() {
    let env = env();
    let handles = Op::new("VarHandleOp", &variable_attrs("v"), &[]);
    let assign = resource_op("AssignVariableOp");
    let read = resource_op("ReadVariableOp");
    let one: Value = Tensor::scalar(1.0f32).into();
    let two: Value = Tensor::scalar(2.0f32).into();

    let old = handles.run(&env, &[]).unwrap();
    assign.run(&env, &[old.clone(), one]).unwrap();
    assert!(read.run(&env, std::slice::from_ref(&old)).is_ok());
    env.resources.cleanup("localhost");
    let gone = read.run(&env, std::slice::from_ref(&old)).err().unwrap();
    assert_eq!(gone.code(), Code::FailedPrecondition);

    let new = handles.run(&env, &[]).unwrap();
    assign.run(&env, &[new, two]).unwrap();
    // The handle of before has the same name, so it means the new variable.
    let value = tensor(read.run(&env, &[old]).unwrap());
    assert_eq!(value.to_scalar::<f32>().unwrap(), 2.0);
}

#[test]
fn references_are_to_a_new_variable_after_a_cleanup() {
    let env = env();
    let variables = Op::new("VariableV2", &variable_attrs(""), &[]);
    let var = || match variables.run(&env, &[]).unwrap() {
        Value::Ref(var) => var,
        _ => panic!("no reference"),
    };
    let first = var();
    assert!(Arc::ptr_eq(&first, &var()));
    env.resources.cleanup("localhost");
    assert!(!Arc::ptr_eq(&first, &var()));
}

#[test]
fn updates_that_share_variables_in_any_order_all_happen() {
    let env = env();
    let float = PortType::reference(DType::F32);
    let attrs = [
        ("T", DType::F32.into()),
        ("use_locking", true.into()),
        ("use_nesterov", false.into()),
    ];
    let inputs = [
        float,
        float,
        DType::F32.into(),
        DType::F32.into(),
        DType::F32.into(),
    ];
    let momentum = Op::new("ApplyMomentum", &attrs, &inputs);
    let vars = ["a", "b"].map(|name| {
        let var = RefVar::new(name, DType::F32);
        *var.write() = Some(Tensor::vector(&[0.0f32; 64]));
        Arc::new(var)
    });
    // accum = accum + 1, var -= 0: each run adds one to the second variable.
    let run = |first: usize, second: usize| {
        let scalars = [0.0f32, 1.0].map(|value| Value::from(Tensor::scalar(value)));
        let grad = Value::from(Tensor::vector(&[1.0f32; 64]));
        let [lr, decay] = scalars;
        let inputs = [
            Value::Ref(vars[first].clone()),
            Value::Ref(vars[second].clone()),
            lr,
            grad,
            decay,
        ];
        momentum.run(&env, &inputs).unwrap();
    };
    std::thread::scope(|scope| {
        scope.spawn(|| (0..500).for_each(|_| run(0, 1)));
        scope.spawn(|| (0..500).for_each(|_| run(1, 0)));
    });
    for var in &vars {
        assert_eq!(var.get().unwrap().slice::<f32>().unwrap(), &[500.0; 64]);
    }
    let same = [0, 0].map(|index: usize| Value::Ref(vars[index].clone()));
    let scalar: Value = Tensor::scalar(0.0f32).into();
    let grad: Value = Tensor::vector(&[1.0f32; 64]).into();
    let [first, second] = same;
    let status = momentum.run(&env, &[first, second, scalar.clone(), grad, scalar]);
    assert_eq!(status.err().unwrap().code(), Code::InvalidArgument);
}

#[test]
fn rows_are_written_in_place_unless_somebody_holds_the_table() {
    let env = env();
    let attrs = [
        ("T", DType::F32.into()),
        ("Tindices", DType::I32.into()),
        ("use_locking", false.into()),
    ];
    let inputs = [
        PortType::reference(DType::F32),
        DType::I32.into(),
        DType::F32.into(),
    ];
    let add = Op::new("ScatterAdd", &attrs, &inputs);
    let var = Arc::new(RefVar::new("table", DType::F32));
    let shape = Shape::matrix(1 << 16, 8).unwrap();
    *var.write() = Some(Tensor::zeros(DType::F32, shape).unwrap());
    let address = || {
        let value = var.read();
        value
            .as_ref()
            .unwrap()
            .slice::<f32>()
            .unwrap()
            .as_ptr()
            .addr()
    };
    let run = || {
        let rows: Value = Tensor::vector(&[3i32, 3]).into();
        let one: Value = Tensor::scalar(1.0f32).into();
        add.run(&env, &[Value::Ref(var.clone()), rows, one])
            .unwrap();
    };
    let before = address();
    run();
    assert_eq!(address(), before);

    let held = var.get().unwrap();
    run();
    assert_ne!(address(), before);
    assert_eq!(held.slice::<f32>().unwrap()[3 * 8], 2.0);
    assert_eq!(var.get().unwrap().slice::<f32>().unwrap()[3 * 8], 4.0);
}
