//! Saving and restoring 400 MB, beside what the disk (or its cache) does with the bare bytes.
//!
//! ```text
//! cargo bench -p tensorfleet-checkpoint [-- --tf PYTHON] [--dir DIR] [--rounds N]
//! ```
//! With `--tf` a Python with TensorFlow does the same in turns. Rates are of the best and of the
//! median round; processor seconds are the mean of all rounds, which a busy machine disturbs least.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use tensorfleet_checkpoint::bundle::{RestoreItem, SaveItem, restore, save};
use tensorfleet_status::{Result, Status, unknown};
use tensorfleet_tensor::{DType, Shape, Tensor, release_recycled};

const BYTES: usize = 400 << 20;

/// TensorFlow's side: reads `save|restore COUNT`, answers with seconds.
const TF_PROGRAM: &str = r#"
import os, sys, time
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np, tensorflow as tf
directory, total = sys.argv[1], int(sys.argv[2])
values = {}
print("ready", flush=True)
for line in sys.stdin:
    what, count = line.split()
    count = int(count)
    if count not in values:
        size = total // 4 // count
        values[count] = [tf.constant(np.random.default_rng(i).standard_normal(size, np.float32)) for i in range(count)]
    names = [f"t{i}" for i in range(count)]
    prefix, blank = f"{directory}/tf{count}", [""] * count
    start, cpu = time.perf_counter(), time.process_time()
    if what == "save":
        tf.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=blank, tensors=values[count])
    else:
        out = tf.raw_ops.RestoreV2(prefix=prefix, tensor_names=names, shape_and_slices=blank, dtypes=[tf.float32] * count)
    print(time.perf_counter() - start, time.process_time() - cpu, flush=True)
"#;

struct TensorFlow {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl TensorFlow {
    fn start(python: &str, dir: &str) -> std::io::Result<TensorFlow> {
        let mut child = Command::new(python)
            .args(["-c", TF_PROGRAM, dir, &BYTES.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(std::io::Error::other("no pipes"));
        };
        let mut this = TensorFlow {
            child,
            input,
            output: BufReader::new(output),
        };
        this.line()?;
        Ok(this)
    }

    fn line(&mut self) -> std::io::Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line)
    }

    fn round(&mut self, what: &str, count: usize) -> std::io::Result<Round> {
        writeln!(self.input, "{what} {count}")?;
        let line = self.line()?;
        let mut numbers = line.split_whitespace().map(str::parse);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(wall)), Some(Ok(cpu))) => Ok(Round { wall, cpu }),
            _ => Err(std::io::Error::other(format!(
                "TensorFlow answered {line:?}"
            ))),
        }
    }
}

impl Drop for TensorFlow {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn io(error: std::io::Error) -> Status {
    unknown!("{error}")
}

/// Seconds of one round.
#[derive(Clone, Copy)]
struct Round {
    wall: f64,
    cpu: f64,
}

/// Processor seconds of this process so far, in the kernel and outside.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    ticks.filter_map(|n| n.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn timed<T>(run: impl FnOnce() -> Result<T>) -> Result<Round> {
    let (start, cpu) = (Instant::now(), cpu_seconds());
    let kept = run()?;
    let wall = start.elapsed().as_secs_f64();
    let cpu = cpu_seconds() - cpu;
    drop(kept);
    Ok(Round { wall, cpu })
}

/// Best and median rate in MB/s, mean processor seconds.
fn summary(mut rounds: Vec<Round>) -> String {
    if rounds.is_empty() {
        return String::new();
    }
    rounds.sort_by(|a, b| a.wall.total_cmp(&b.wall));
    let rate = |index: usize| {
        rounds
            .get(index)
            .map_or(0.0, |r| BYTES as f64 / 1e6 / r.wall)
    };
    let cpu = rounds.iter().map(|r| r.cpu).sum::<f64>() / rounds.len() as f64;
    format!("{:6.0} {:6.0} {cpu:6.2}", rate(0), rate(rounds.len() / 2))
}

fn bare_write(path: &str, bytes: &[u8]) -> Result<()> {
    let mut file = File::create(path).map_err(io)?;
    file.write_all(bytes).map_err(io)
}

fn bare_read(path: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(BYTES);
    File::open(path)
        .and_then(|mut file| file.read_to_end(&mut bytes))
        .map_err(io)?;
    Ok(bytes)
}

#[allow(clippy::print_stdout)]
fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let (mut python, mut dir, mut rounds) = (None, None, 5usize);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--tf" => python = args.next(),
            "--dir" => dir = args.next(),
            "--rounds" => rounds = args.next().and_then(|n| n.parse().ok()).unwrap_or(rounds),
            _ => {} // cargo passes --bench
        }
    }
    let parent = dir.map_or_else(std::env::temp_dir, Into::into);
    let temp = tempfile::tempdir_in(parent).map_err(io)?;
    let dir = temp.path().display().to_string();
    let mut tensorflow = python
        .map(|python| TensorFlow::start(&python, &dir))
        .transpose()
        .map_err(io)?;
    println!("{:24} | TensorFleet          | TensorFlow", "");
    println!("{:24} |   best median    cpu |   best median    cpu", "");
    let bare = vec![7u8; BYTES];
    let bare_path = format!("{dir}/bare");
    let (mut write, mut read) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        write.push(timed(|| bare_write(&bare_path, &bare))?);
        read.push(timed(|| bare_read(&bare_path))?);
    }
    drop(bare);
    std::fs::remove_file(&bare_path).map_err(io)?;
    println!("{:24} | {}", "bare write(2)", summary(write));
    println!("{:24} | {}", "bare read(2), one thread", summary(read));
    for count in [1, 100, 10_000] {
        let shape = Shape::vector(BYTES / 4 / count);
        let values: Vec<f32> = (0..shape.elements()).map(|i| (i as f32).sin()).collect();
        let names: Vec<String> = (0..count).map(|i| format!("t{i}")).collect();
        let tensors: Result<Vec<Tensor>> = names
            .iter()
            .map(|_| Tensor::from_slice(shape.clone(), &values))
            .collect();
        let tensors = tensors?;
        let items: Vec<SaveItem<'_>> = names
            .iter()
            .zip(&tensors)
            .map(|(name, tensor)| SaveItem {
                name: name.as_bytes(),
                shape_and_slice: "",
                tensor,
            })
            .collect();
        let wishes: Vec<RestoreItem<'_>> = names
            .iter()
            .map(|name| RestoreItem {
                name: name.as_bytes(),
                shape_and_slice: "",
                dtype: DType::F32,
            })
            .collect();
        // What the case before left must not crowd out the memory that this one could use again.
        release_recycled();
        let prefix = format!("{dir}/ours{count}");
        for what in ["save", "restore"] {
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            for round in 0..rounds {
                // Who goes first changes: the second may find memory that the first has just freed.
                for side in [round % 2, (round + 1) % 2] {
                    match (side, &mut tensorflow) {
                        (0, _) if what == "save" => ours.push(timed(|| save(&prefix, &items))?),
                        (0, _) => ours.push(timed(|| restore(&prefix, &wishes))?),
                        (_, Some(tf)) => theirs.push(tf.round(what, count).map_err(io)?),
                        (_, None) => {}
                    }
                }
            }
            let name = format!("{what}, {count} tensors");
            println!("{name:24} | {} | {}", summary(ours), summary(theirs));
        }
    }
    Ok(())
}
