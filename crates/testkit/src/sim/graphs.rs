//! [`Graphs`]: what clients run: counters on parameter servers, read and changed from all over the cluster.

use std::sync::Arc;

use tensorfleet_graph::{GraphBuilder, Output, Registry, text};
use tensorfleet_proto as pb;
use tensorfleet_status::Result;
use tensorfleet_tensor::Tensor;

use super::process::Process;
use super::setup::Setup;

/// Elements of a counter: the life and one for each step that adds.
pub(super) const SLOTS: usize = 64;

/// How many extensions there are.
pub(super) const EXTENSIONS: usize = 2;

/// The graphs of one world.
pub(super) struct Graphs {
    /// What sessions begin with.
    pub(super) base: pb::GraphDef,
    /// What they add, one after the other: `ext0`, `ext1`.
    pub(super) extensions: Vec<pb::GraphDef>,
}

impl Graphs {
    pub(super) fn build(setup: &Setup, registry: &Arc<Registry>) -> Result<Graphs> {
        let mut builder = GraphBuilder::new(registry.clone());
        text::parse_graph(&mut builder, &base(setup))?;
        for counter in 0..setup.ps {
            builder.set_device(far(setup, counter));
            add_loop(&mut builder, counter)?;
            builder.set_device("");
        }
        let base = builder.graph().export()?;
        let mut extensions = Vec::new();
        let mut known = base.node.len();
        for number in 0..EXTENSIONS {
            let device = far(setup, number % setup.ps);
            let line = format!("ext{number} = AddV2(read0, ones) @{device}");
            text::parse_graph(&mut builder, &line)?;
            let mut def = builder.graph().export()?;
            def.node.drain(..known);
            known += def.node.len();
            extensions.push(def);
        }
        Ok(Graphs { base, extensions })
    }

    /// Gives a new process its counter, as the program that started it would: nobody else can call it yet.
    pub(super) async fn initialize(&self, process: &Process, ps: usize) -> Result<()> {
        let life = &process.life;
        if life.task >= ps {
            return Ok(());
        }
        let config = pb::ConfigProto {
            device_filters: vec![life.name.to_string()],
            allow_soft_placement: true,
            ..pb::ConfigProto::default()
        };
        let mut def = self.base.clone();
        let (own, first) = (format!("c{}", life.task), format!("init{}", life.task));
        def.node
            .retain(|node| [own.as_str(), "first", first.as_str()].contains(&node.name.as_str()));
        let master = &process.master;
        let opened = master
            .create_session(pb::CreateSessionRequest {
                graph_def: Some(def),
                config: Some(config),
                ..pb::CreateSessionRequest::default()
            })
            .await?;
        let mut values = vec![0; SLOTS];
        values[0] = life.number as i32;
        master
            .run_step(pb::RunStepRequest {
                session_handle: opened.session_handle.clone(),
                feed: vec![feed("first:0", &Tensor::vector(&values))?],
                target: vec![first],
                ..pb::RunStepRequest::default()
            })
            .await?;
        let session_handle = opened.session_handle;
        let close = pb::CloseSessionRequest { session_handle };
        master.close_session(close).await.map(drop)
    }
}

/// A fed tensor.
pub(super) fn feed(name: &str, tensor: &Tensor) -> Result<pb::NamedTensorProto> {
    Ok(pb::NamedTensorProto {
        name: name.to_owned(),
        tensor: Some(tensor.to_proto()?),
    })
}

/// The device of a task other than the counter's, if there is one.
fn far(setup: &Setup, counter: usize) -> String {
    let last = setup.tasks.len() - 1;
    let task = if counter == last { 0 } else { last };
    format!("{}/device:CPU:0", setup.tasks[task])
}

fn base(setup: &Setup) -> String {
    let mut text = format!(
        "ones = int32[{SLOTS}]{{1}}
         one = int32[]{{1}}
         zero = int32[]{{0}}
         slot = Placeholder() {{dtype=DT_INT32, shape=[{SLOTS}]}}
         first = Placeholder() {{dtype=DT_INT32, shape=[{SLOTS}]}}
         more = Placeholder() {{dtype=DT_INT32, shape=[]}}
         trips = Placeholder() {{dtype=DT_INT32, shape=[]}}
         pred = Placeholder() {{dtype=DT_BOOL, shape=[]}}\n"
    );
    for (counter, resource) in setup.resource.iter().enumerate() {
        text += &counter_text(counter, *resource, &far(setup, counter));
    }
    let reads: Vec<String> = (0..setup.ps).map(|i| format!("read{i}")).collect();
    let last = far(setup, 0);
    text += &format!("sum = AddN([{}]) @{last}\n", reads.join(", "));
    let ps = "/job:ps/task:0";
    text += &format!(
        "q = FIFOQueueV2() {{component_types=[DT_INT32], shapes=[[]], shared_name='q'}} @{ps}
         got = QueueDequeueV2(q) {{component_types=[DT_INT32]}} @{ps}
         waited = Identity(got) @{last}
         late = VarHandleOp() {{dtype=DT_INT32, shape=[{SLOTS}], shared_name='late'}} @{ps}
         late_init = AssignVariableOp(late, ones) @{ps}
         late_read = ReadVariableOp(late) {{dtype=DT_INT32}} @{ps}
         neg = Neg(more) @{last}\n"
    );
    text
}

/// One counter: added to at once (`add`) or in a branch (`cadd`), read near (`read`) and far (`echo`).
fn counter_text(i: usize, resource: bool, far: &str) -> String {
    let ps = format!("/job:ps/task:{i}");
    let shape = format!("dtype=DT_INT32, shape=[{SLOTS}], shared_name='c{i}'");
    let state = if resource {
        format!(
            "c{i} = VarHandleOp() {{{shape}}} @{ps}
             init{i} = AssignVariableOp(c{i}, first) @{ps}
             read{i} = ReadVariableOp(c{i}) {{dtype=DT_INT32}} @{ps}
             add{i} = AssignAddVariableOp(c{i}, slot) @{ps}
             after{i} = ReadVariableOp(c{i}, ^add{i}) {{dtype=DT_INT32}} @{ps}
             sw{i} = Switch(slot, pred) @{far}
             cadd{i} = AssignAddVariableOp(c{i}, sw{i}:1) @{ps}
             cafter{i} = ReadVariableOp(c{i}, ^cadd{i}) {{dtype=DT_INT32}} @{ps}\n"
        )
    } else {
        format!(
            "c{i} = VariableV2() {{{shape}}} @{ps}
             init{i} = Assign(c{i}, first) @{ps}
             read{i} = Identity(c{i}) @{ps}
             add{i} = AssignAdd(c{i}, slot) @{ps}
             after{i} = Identity(add{i}) @{ps}
             sw{i} = Switch(slot, pred) @{far}
             cadd{i} = AssignAdd(c{i}, sw{i}:1) @{ps}
             cafter{i} = Identity(cadd{i}) @{ps}\n"
        )
    };
    state
        + &format!(
            "echo{i} = Identity(read{i}) @{far}
             cno{i} = Identity(sw{i}:0) @{ps}
             both{i} = Merge([cno{i}, cafter{i}]) @{far}
             cond{i} = Identity(both{i})\n"
        )
}

/// `loop<i>`: the counter plus one as often as `trips` says, with the sum far from the counter and from the condition.
fn add_loop(builder: &mut GraphBuilder, counter: usize) -> Result<()> {
    let find = |builder: &GraphBuilder, name: &str| {
        let found = builder.graph().find_output(name);
        found.ok_or_else(|| tensorfleet_status::internal!("there is no {name}"))
    };
    let frame = format!("loop{counter}");
    let enter = |builder: &mut GraphBuilder, name: &str, constant: bool| {
        let value = find(builder, name)?;
        let enter = builder.op("Enter").input(value);
        enter
            .attr("frame_name", frame.as_str())
            .attr("is_constant", constant)
            .attr("parallel_iterations", 4i64)
            .output()
    };
    let ps = format!("/job:ps/task:{counter}");
    let limit = enter(builder, "trips", true)?;
    let one = enter(builder, "one", true)?;
    let ones = enter(builder, "ones", true)?;
    let starts = [
        enter(builder, "zero", false)?,
        enter(builder, &format!("read{counter}"), false)?,
    ];
    let mut merges: Vec<Output> = Vec::new();
    for start in starts {
        merges.push(builder.op("Merge").list(&[start, start]).output()?);
    }
    let less = builder.apply("Less", &[merges[0], limit])?;
    let condition = builder.op("LoopCond").input(less).device(ps).output()?;
    let mut ends = Vec::new();
    for (merge, step) in merges.into_iter().zip([one, ones]) {
        let switch = builder.apply("Switch", &[merge, condition])?.node;
        let inside = builder.apply("Identity", &[switch.output(1)])?;
        let sum = builder.apply("AddV2", &[inside, step])?;
        let next = builder.apply("NextIteration", &[sum])?;
        builder.graph_mut().set_input(merge.node, 1, next)?;
        ends.push(builder.apply("Exit", &[switch.output(0)])?);
    }
    let result = builder.op("Identity").name(format!("loop{counter}"));
    result.input(ends[1]).build().map(drop)
}
