//! `Print`, `PrintV2`: write tensors or text to standard error or output.
//!
//! TensorFlow: Print(input: T, data: U...) -> output: T, with message, first_n, summarize; PrintV2(input: string), with
//! output_stream and end. Streams `log(info)`, `log(warning)`, `log(error)` go to standard error; `file://` appends to a file.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::atomic::{AtomicI64, Ordering};

use tensorfleet_checkpoint::fs::io_status;
use tensorfleet_graph::example::script;
use tensorfleet_graph::gradient::{Grad, GradCtx, InputGrads};
use tensorfleet_graph::{Cost, Exactness, Gradient, OpDef, cpu, infer};
use tensorfleet_kernel::{AnyKernel, KernelCtx, NodeInfo};
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{TString, summarize};

const PRINT: OpDef = OpDef {
    stateful: true,
    cost: Cost::Cheap,
    exactness: Exactness::Bits,
    ..OpDef::BLANK
};

pub(crate) static OPS: [OpDef; 2] = [
    OpDef {
        name: "Print",
        inputs: &["input: T", "data: U"],
        outputs: &["output: T"],
        attrs: &[
            "T: type",
            "U: list(type) >= 0",
            "message: string = ''",
            "first_n: int = -1",
            "summarize: int = 3",
        ],
        infer: infer::same_as_first,
        gradient: Gradient::Rule(gradient),
        kernels: &[cpu(&[], build)],
        scripts: &[script(
            "passes its input",
            "x = float[2]{1, 2}\np = Print(x, [x]) {message='x: ', first_n=0}",
            &["fetch p => float[2]{1, 2}"],
        )],
        ..PRINT
    },
    OpDef {
        name: "PrintV2",
        inputs: &["input: string"],
        attrs: &["output_stream: string = 'stderr'", "end: string = '\\n'"],
        gradient: Gradient::Stop("it has no outputs"),
        kernels: &[cpu(&[], build_v2)],
        scripts: &[script(
            "a vector is refused",
            "x = string[2]{a, b}\np = PrintV2(x)",
            &["run p fails INVALID_ARGUMENT "],
        )],
        ..PRINT
    },
];

fn gradient(g: &mut GradCtx<'_>) -> Result<InputGrads> {
    let grad = g.grad(0)?;
    let mut grads: InputGrads = vec![None; g.num_inputs()];
    if let Some(first) = grads.first_mut() {
        *first = Some(Grad::Dense(grad));
    }
    Ok(grads)
}

fn build(node: &NodeInfo) -> Result<AnyKernel> {
    let message = String::from_utf8_lossy(node.attrs.bytes("message")?).into_owned();
    let limit = usize::try_from(node.attrs.int("summarize")?).unwrap_or(usize::MAX);
    let first_n = node.attrs.int("first_n")?;
    let calls = AtomicI64::new(0);
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        if first_n < 0 || calls.fetch_add(1, Ordering::Relaxed) < first_n {
            let mut text = message.clone();
            for index in 1..ctx.num_inputs() {
                text.push('[');
                let _ = summarize(ctx.input(index)?, limit, &mut text);
                let _ = write!(text, "]");
            }
            text.push('\n');
            write_to(&mut std::io::stderr(), text.as_bytes(), "stderr")?;
        }
        let value = ctx.take(0)?;
        ctx.set(0, value);
        Ok(())
    })
}

fn write_to(stream: &mut dyn std::io::Write, text: &[u8], name: &str) -> Result<()> {
    stream
        .write_all(text)
        .map_err(|error| io_status(name, &error))
}

fn build_v2(node: &NodeInfo) -> Result<AnyKernel> {
    let stream = node.attrs.str("output_stream")?.to_owned();
    let end = node.attrs.bytes("end")?.clone();
    let known = [
        "stdout",
        "stderr",
        "log(info)",
        "log(warning)",
        "log(error)",
    ];
    if !known.contains(&stream.as_str()) && !stream.starts_with("file://") {
        return Err(invalid_argument!("Unknown output stream: {stream}"));
    }
    AnyKernel::sync(move |ctx: &mut KernelCtx<'_>| {
        let input = ctx.input(0)?;
        if input.rank() != 0 {
            return Err(invalid_argument!(
                "Input is expected to be scalar, but got {}",
                input.shape()
            ));
        }
        let mut text = input.to_scalar::<TString>()?.to_vec();
        text.extend_from_slice(&end);
        match stream.strip_prefix("file://") {
            Some(path) => {
                let mut file = std::fs::OpenOptions::new()
                    .append(true)
                    .create(true)
                    .open(path)
                    .map_err(|error| io_status(path, &error))?;
                write_to(&mut file, &text, path)
            }
            None if stream == "stdout" => write_to(&mut std::io::stdout(), &text, "stdout")
                .and_then(|()| {
                    std::io::stdout()
                        .flush()
                        .map_err(|error| io_status("stdout", &error))
                }),
            None => write_to(&mut std::io::stderr(), &text, "stderr"),
        }
    })
}
