//! Placements that TensorFlow's own server chose, and what only we promise.

use std::sync::LazyLock;
use std::time::Instant;

use smallvec::SmallVec;
use tensorfleet_graph::Registry;
use tensorfleet_kernel::{AttrList, AttrValue, Attrs};
use tensorfleet_status::Code;
use tensorfleet_tensor::{DType, PartialShape, Tensor};

use super::*;

/// Random graphs with the placements and errors of TensorFlow 2.21, on two ps and one worker with two
/// CPUs each and the worker as master. A case is `case soft|hard`, its nodes as
/// `name|op|inputs|device|classes` (after `extend` those added to the session later), then `= node:device …` or `! error`.
const GOLDEN: &str = include_str!("golden.txt");

fn cluster() -> Arc<DeviceSet> {
    let tasks = [("ps", 0), ("ps", 1), ("worker", 0)];
    let devices = tasks.iter().flat_map(|(job, task)| {
        (0..2).map(|cpu| PlaceDevice::new(DeviceName::full(job, 0, *task, "CPU", cpu)))
    });
    Arc::new(DeviceSet::new(devices.collect(), 4).unwrap())
}

fn local() -> Arc<DeviceSet> {
    let device = PlaceDevice::new(DeviceName::full("worker", 0, 0, "CPU", 0));
    Arc::new(DeviceSet::new(vec![device], 0).unwrap())
}

fn registry() -> Arc<Registry> {
    static REGISTRY: LazyLock<Arc<Registry>> =
        LazyLock::new(|| tensorfleet_ops::registry().unwrap());
    REGISTRY.clone()
}

/// The graph of lines `name|op|inputs|device|classes`; nodes may come before their inputs.
fn graph(lines: &[&str]) -> Graph {
    let fields: Vec<Vec<&str>> = lines.iter().map(|l| l.split('|').collect()).collect();
    let split = |list: &str| -> Vec<String> {
        let items = list.split(',').filter(|item| !item.is_empty());
        items.map(str::to_owned).collect()
    };
    let mut def = tensorfleet_proto::GraphDef::default();
    let registry = registry();
    // Built in any order, exported, put into the given order and imported again.
    let mut scratch = Graph::new(registry.clone());
    let mut left: Vec<usize> = (0..fields.len()).collect();
    while !left.is_empty() {
        let before = left.len();
        left.retain(|at| {
            let [name, op, inputs, device, classes] = fields[*at][..] else {
                panic!("{:?}", fields[*at]);
            };
            let find = |input: &String| scratch.find(input.trim_start_matches('^'));
            let inputs = split(inputs);
            if inputs.iter().any(|input| find(input).is_none()) {
                return true;
            }
            let is_control = |input: &&String| input.starts_with('^');
            let data = inputs.iter().filter(|i| !is_control(i)).flat_map(find);
            let control = inputs.iter().filter(is_control).flat_map(find);
            let data: SmallVec<_> = data.map(Into::into).collect();
            let control: SmallVec<_> = control.collect();
            let (op, attrs) = attrs(op, split(classes));
            let op = registry.find(op).unwrap().clone();
            scratch.add(name, op, attrs, data, control, device).unwrap();
            false
        });
        assert!(left.len() < before, "inputs missing: {lines:?}");
    }
    let exported = scratch.export().unwrap();
    for line in &fields {
        let node = exported.node.iter().find(|node| node.name == line[0]);
        def.node.push(node.unwrap().clone());
    }
    Graph::import(registry, &def).unwrap()
}

fn attrs(op: &str, classes: Vec<String>) -> (&str, Attrs) {
    let mut attrs = Attrs::new();
    let float = AttrValue::Type(DType::F32.into());
    match op {
        "Const" => {
            attrs.set("dtype", float);
            attrs.set("value", AttrValue::Tensor(Tensor::scalar(1.0f32)));
        }
        "VariableV2" | "VarHandleOp" => {
            attrs.set("dtype", float);
            attrs.set("shape", AttrValue::Shape(PartialShape::scalar()));
        }
        "ReadVariableOp" | "AssignVariableOp" => attrs.set("dtype", float),
        "IdentityR" => attrs.set("T", AttrValue::Type(DType::Resource.into())),
        "_Arg" | "_Retval" => {
            attrs.set("T", AttrValue::Type(DType::Resource.into()));
            attrs.set("index", AttrValue::I(0));
        }
        "NoOp" => {}
        _ => attrs.set("T", float),
    }
    if !classes.is_empty() {
        let classes = classes.into_iter().map(Into::into).collect();
        attrs.set("_class", AttrValue::List(AttrList::S(classes)));
    }
    (if op == "IdentityR" { "Identity" } else { op }, attrs)
}

/// `= node:device …` or `! error`. After a line `extend` come nodes that were added to a placed graph.
fn outcome(lines: &[&str], soft: bool) -> String {
    let devices = cluster();
    let mut options = PlaceOptions {
        allow_soft_placement: soft,
        ..PlaceOptions::new(&devices)
    };
    let mut lines = lines.to_vec();
    let kept;
    if let Some(at) = lines.iter().position(|line| *line == "extend") {
        let first = graph(&lines[..at]);
        kept = place(&first, &options).unwrap().stateful(&first);
        options.assigned = Some(&kept);
        lines.remove(at);
    }
    let graph = graph(&lines);
    match place(&graph, &options) {
        Ok(placement) => {
            let short = |id| {
                let device = placement.device_of(id).replace("/replica:0", "");
                device.replace("/device:", "/")
            };
            let nodes = graph.nodes();
            let mut nodes: Vec<String> = nodes
                .map(|(id, node)| format!("{}:{}", node.name, short(id)))
                .collect();
            nodes.sort();
            format!("= {}", nodes.join(" "))
        }
        Err(status) => {
            assert_eq!(status.code(), Code::InvalidArgument);
            // Our own addition to TensorFlow's text.
            let text = status.message();
            let text = match (text.find(" The nearest match is "), text.find("\n\t [[")) {
                (Some(from), Some(to)) => format!("{}{}", &text[..from], &text[to..]),
                _ => text.to_owned(),
            };
            format!("! {}", text.replace('\\', "\\\\").replace('\n', "\\n"))
        }
    }
}

#[test]
fn places_as_tensorflow_does() {
    let golden = match std::env::var("PLACE_GOLDEN") {
        Ok(path) => std::fs::read_to_string(path).unwrap(),
        Err(_) => GOLDEN.to_owned(),
    };
    let (mut cases, mut wrong) = (0, Vec::new());
    let mut nodes: Vec<&str> = Vec::new();
    let mut soft = false;
    for line in golden.lines() {
        if let Some(mode) = line.strip_prefix("case ") {
            soft = mode == "soft";
            nodes.clear();
        } else if line.starts_with("= ") || line.starts_with("! ") {
            let found = outcome(&nodes, soft);
            if found != line {
                let nodes = nodes.join("\n");
                wrong.push(format!(
                    "soft {soft}\n{nodes}\nfound  {found}\nwanted {line}\n"
                ));
            }
            cases += 1;
        } else {
            nodes.push(line);
        }
    }
    assert!(cases >= 100);
    assert!(
        wrong.is_empty(),
        "{} of {cases}: {}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn one_device_takes_all_that_name_it_or_nothing() {
    let devices = local();
    let lines = [
        "c|Const|||",
        "n|Neg|c|/job:worker/task:0/cpu:0|loc:@c",
        "s|Shape|n|/cpu:*|",
    ];
    let placement = place(&graph(&lines), &PlaceOptions::new(&devices)).unwrap();
    assert_eq!(placement.by_node(), [0, 0, 0]);
    let elsewhere = graph(&["c|Const||/job:ps|"]);
    let error = place(&elsewhere, &PlaceOptions::new(&devices)).unwrap_err();
    assert!(error.message().contains("was explicitly assigned to /job:ps but available devices are [ /job:worker/replica:0/task:0/device:CPU:0 ]"), "{error}");
}

#[test]
fn state_stays_where_it_was() {
    let devices = cluster();
    let first = graph(&["v|VariableV2||/job:ps/task:1|", "c|Const|||"]);
    let placement = place(&first, &PlaceOptions::new(&devices)).unwrap();
    let kept = placement.stateful(&first);
    assert_eq!(kept.len(), 1, "only the variable has state");
    // The same variable, asking for another device now, and a new reader.
    let grown = graph(&[
        "v|VariableV2||/job:ps/task:0|",
        "c|Const|||",
        "a|Assign|v,c||",
    ]);
    let options = PlaceOptions {
        assigned: Some(&kept),
        ..PlaceOptions::new(&devices)
    };
    let placement = place(&grown, &options).unwrap();
    for id in grown.ids() {
        assert_eq!(
            &**placement.device_of(id),
            "/job:ps/replica:0/task:1/device:CPU:0"
        );
    }
}

#[test]
fn names_the_nearest_device() {
    let found = graph(&["c|Const||/job:ps/task:7/cpu:1|"]);
    let error = place(&found, &PlaceOptions::new(&cluster())).unwrap_err();
    assert!(
        error
            .message()
            .contains(" The nearest match is /job:ps/replica:0/task:0/device:CPU:1."),
        "{error}"
    );
}

#[test]
fn malformed_devices_and_missing_kernels_are_told_in_tensorflows_words() {
    let found = graph(&["c|Const||rubbish|"]);
    let error = place(&found, &PlaceOptions::new(&cluster())).unwrap_err();
    let start = "Malformed device specification 'rubbish' in node: {name:'c' id:2 op device:{requested: 'rubbish', assigned: ''} def:{{{node c}} = Const[dtype=DT_FLOAT, value=";
    assert!(error.message().starts_with(start), "{error}");
    assert!(error.message().ends_with("\n\t [[c]]"), "{error}");

    let no_kernel = |device: &str| {
        let mut graph = graph(&["c|Const|||"]);
        let entry = registry().find("Neg").unwrap().clone();
        let bare: &'static tensorfleet_graph::OpDef = &tensorfleet_graph::OpDef {
            name: "Neg",
            ..tensorfleet_graph::OpDef::BLANK
        };
        let mut entry = (*entry).clone();
        entry.def = Some(bare);
        let (_, attrs) = attrs("Neg", Vec::new());
        let input = graph.find("c").unwrap().into();
        let inputs = SmallVec::from_slice(&[input]);
        let added = graph.add("x", Arc::new(entry), attrs, inputs, SmallVec::new(), device);
        added.unwrap();
        place(&graph, &PlaceOptions::new(&cluster()))
    };
    let error = no_kernel("").unwrap_err();
    assert_eq!(
        error.message(),
        "No OpKernel was registered to support Op 'Neg' used by {{node x}} with these attrs: [T=DT_FLOAT]\nRegistered devices: [CPU]\nRegistered kernels:\n  <no registered kernels>\n\n\t [[x]]"
    );
    assert!(no_kernel("/job:worker/task:0").is_err());
    assert!(
        no_kernel("/job:ps/task:0").is_ok(),
        "another task may know the kernel"
    );
}

#[test]
fn soft_placement_notes_what_it_ignored() {
    let found = graph(&[
        "h|VarHandleOp||/job:ps/task:1|",
        "r|ReadVariableOp|h|/job:worker|",
    ]);
    let devices = cluster();
    let options = PlaceOptions {
        log_device_placement: true,
        ..PlaceOptions::new(&devices)
    };
    let placement = place(&found, &options).unwrap();
    assert_eq!(placement.notes().len(), 1, "{:?}", placement.notes());
    assert!(
        placement.notes()[0].starts_with("Ignoring device specification /job:worker for node 'r'")
    );
    let lines: Vec<String> = placement.log_lines(&found).collect();
    assert_eq!(
        lines[1],
        "r: (ReadVariableOp): /job:ps/replica:0/task:1/device:CPU:0"
    );
    let mut written = found.clone();
    placement.write_to(&mut written);
    let id = written.find("r").unwrap();
    assert_eq!(
        &*written.node(id).device,
        "/job:ps/replica:0/task:1/device:CPU:0"
    );
}

/// Handles go to and from the client's device; the state and those who use it stay where they are.
#[test]
fn handles_are_fed_and_fetched_where_the_client_is() {
    let lines = [
        "h|VarHandleOp||/job:ps/task:1|",
        "f|_Retval|h|/job:worker/task:0|",
        "a|_Arg||/job:worker/task:0|",
        "r|ReadVariableOp|a|/job:ps/task:1|",
    ];
    let (client, ps) = ("/job:worker/task:0/CPU:0", "/job:ps/task:1/CPU:0");
    for soft in [false, true] {
        assert_eq!(
            outcome(&lines, soft),
            format!("= a:{client} f:{client} h:{ps} r:{ps}")
        );
    }
}

#[test]
fn a_gpu_among_the_devices_is_only_used_where_kernels_are() {
    let mut devices = vec![PlaceDevice::new(DeviceName::full("worker", 0, 0, "CPU", 0))];
    devices.push(PlaceDevice::new(DeviceName::full("worker", 0, 0, "GPU", 0)));
    let devices = Arc::new(DeviceSet::new(devices, 0).unwrap());
    let placed = |device: &str, soft: bool| {
        let line = format!("c|Const||{device}|");
        let options = PlaceOptions {
            allow_soft_placement: soft,
            ..PlaceOptions::new(&devices)
        };
        place(&graph(&[&line]), &options).map(|placement| placement.by_node()[0])
    };
    assert_eq!(placed("", false).unwrap(), 0);
    assert_eq!(placed("/gpu:0", true).unwrap(), 0);
    let error = placed("/gpu:0", false).unwrap_err();
    assert!(
        error.message().contains(
            "because no supported kernel for GPU devices is available.\nColocation Debug Info:"
        ),
        "{error}"
    );
    assert!(
        error
            .message()
            .contains("Registered kernels:\n  device='CPU'"),
        "{error}"
    );
}

#[test]
fn every_op_can_be_placed() {
    // An op without any kernel could only run on a foreign task.
    let without: Vec<&str> = registry()
        .iter()
        .filter(|op| op.def.is_some_and(|def| def.kernels.is_empty()))
        .map(|op| op.def.map_or("", |def| def.name))
        .collect();
    assert!(without.is_empty(), "{without:?}");
}

#[test]
fn refuses_useless_device_sets() {
    let cpu = || PlaceDevice::new(DeviceName::full("worker", 0, 0, "CPU", 0));
    assert!(DeviceSet::new(Vec::new(), 0).is_err());
    assert!(DeviceSet::new(vec![cpu()], 1).is_err());
    let partial = PlaceDevice::new(DeviceName::parse("/job:a").unwrap());
    assert!(DeviceSet::new(vec![cpu(), partial], 0).is_err());
    assert_eq!(cluster().find("/job:ps/task:1/cpu:1/replica:0"), Some(3));
}

/// 10,000 nodes in the manner of a training step. Run with `--release -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
#[allow(clippy::print_stdout)]
fn measure_ten_thousand_nodes() {
    let mut lines = Vec::new();
    for i in 0..1000 {
        let ps = format!("/job:ps/task:{}", i % 2);
        lines.push(format!("v{i}|VarHandleOp||{ps}|"));
        lines.push(format!("c{i}|Const|||loc:@v{i}"));
        lines.push(format!("r{i}|ReadVariableOp|v{i}|{ps}|"));
        lines.push(format!("i{i}|AssignVariableOp|v{i},c{i}|{ps}|"));
        for (name, input) in [("a", "r"), ("b", "a"), ("d", "b"), ("e", "d"), ("f", "e")] {
            lines.push(format!("{name}{i}|Neg|{input}{i}||"));
        }
        lines.push(format!("u{i}|AssignVariableOp|v{i},f{i}||loc:@v{i}"));
    }
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let several = graph(&lines);
    let bare: Vec<String> = lines
        .iter()
        .map(|line| {
            let fields: Vec<&str> = line.split('|').collect();
            format!("{}|{}|{}||{}", fields[0], fields[1], fields[2], fields[4])
        })
        .collect();
    let bare: Vec<&str> = bare.iter().map(String::as_str).collect();
    let bare = graph(&bare);
    for (what, graph, devices) in [
        ("6 devices", &several, cluster()),
        ("6 devices, none named", &bare, cluster()),
        ("1 device, none named", &bare, local()),
    ] {
        let times = (0..20).map(|_| {
            let start = Instant::now();
            place(graph, &PlaceOptions::new(&devices)).unwrap();
            start.elapsed()
        });
        println!("{} nodes, {what}: {:?}", graph.len(), times.min());
    }
}
