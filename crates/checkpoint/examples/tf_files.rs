//! Writes the files that `tests/check_with_tf.py` lets TensorFlow read, and rewrites those it wrote.
//!
//! ```text
//! tf_files write DIR         one file of every kind under DIR
//! tf_files rewrite FROM TO   reads checkpoint FROM, checks it, saves its tensors under prefix TO
//! tf_files merge TO FROM...  merges checkpoints into one
//! ```
//! Element `i` of every numeric tensor is `i` modulo 100.

use std::time::{Duration, UNIX_EPOCH};

use tensorfleet_checkpoint::bundle::{
    BundleReader, BundleWriter, MergeOptions, SaveItem, merge, save, sharded_file_name, verify,
};
use tensorfleet_checkpoint::events::{EventsOptions, EventsWriter};
use tensorfleet_checkpoint::fs::LocalFileSystem;
use tensorfleet_checkpoint::record::RecordWriter;
use tensorfleet_checkpoint::state::{STATE_FILE, state_of, write_state};
use tensorfleet_proto::{Event, Summary, event, summary};
use tensorfleet_status::{Result, data_loss, invalid_argument};
use tensorfleet_tensor::{
    Complex32, Complex64, Element, PartialShape, Shape, TString, Tensor, TensorList, Variant, bf16,
    f16,
};

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["write", dir] => write(dir),
        ["rewrite", from, to] => rewrite(from, to),
        ["merge", to, ref from @ ..] => merge(from, to, MergeOptions::default()),
        _ => Err(invalid_argument!(
            "usage: tf_files write DIR | rewrite FROM TO | merge TO FROM..."
        )),
    }
}

fn write(dir: &str) -> Result<()> {
    write_whole(&format!("{dir}/whole"))?;
    write_sharded(dir)?;
    write_many(&format!("{dir}/many"))?;
    write_records(dir)?;
    let prefix = format!("{dir}/whole");
    write_state(dir, STATE_FILE, &state_of(dir, &prefix, &[]))
}

fn sample<T: Element>(shape: &[i64], value: impl Fn(u8) -> T) -> Result<Tensor> {
    let shape = Shape::new(shape)?;
    let values: Vec<T> = (0..shape.elements())
        .map(|i| value((i % 100) as u8))
        .collect();
    Tensor::from_vec(shape, values)
}

fn write_whole(prefix: &str) -> Result<()> {
    let shape = [3, 4];
    let mut list = TensorList::new(f32::DTYPE, PartialShape::unknown());
    list.items = vec![Some(Tensor::scalar(1.5f32)), Some(Tensor::scalar(2.5f32))];
    let tensors = [
        ("float32", sample::<f32>(&shape, f32::from)?),
        ("float64", sample::<f64>(&shape, f64::from)?),
        (
            "float16",
            sample::<f16>(&shape, |i| f16::from_f32(i.into()))?,
        ),
        (
            "bfloat16",
            sample::<bf16>(&shape, |i| bf16::from_f32(i.into()))?,
        ),
        ("int8", sample::<i8>(&shape, |i| i as i8)?),
        ("int16", sample::<i16>(&shape, i16::from)?),
        ("int32", sample::<i32>(&shape, i32::from)?),
        ("int64", sample::<i64>(&shape, i64::from)?),
        ("uint8", sample::<u8>(&shape, |i| i)?),
        ("uint16", sample::<u16>(&shape, u16::from)?),
        ("uint32", sample::<u32>(&shape, u32::from)?),
        ("uint64", sample::<u64>(&shape, u64::from)?),
        ("bool", sample::<bool>(&shape, |i| i % 2 == 1)?),
        (
            "complex64",
            sample::<Complex32>(&shape, |i| Complex32::new(i.into(), -1.0))?,
        ),
        (
            "complex128",
            sample::<Complex64>(&shape, |i| Complex64::new(i.into(), -1.0))?,
        ),
        (
            "string",
            sample::<TString>(&shape, |i| TString::from("ab".repeat(usize::from(i) * 30)))?,
        ),
        ("scalar", Tensor::scalar(42i64)),
        ("empty", sample::<f32>(&[0, 3], f32::from)?),
        ("large", sample::<f32>(&[1_500, 1_001], f32::from)?),
        ("list", Tensor::scalar(Variant::List(list.into()))),
    ];
    let items: Vec<SaveItem<'_>> = tensors
        .iter()
        .map(|(name, tensor)| SaveItem {
            name: name.as_bytes(),
            shape_and_slice: "",
            tensor,
        })
        .collect();
    save(prefix, &items)
}

/// Three shards with slices of one tensor in each, merged; and the parts of another merge, left as they are.
fn write_sharded(dir: &str) -> Result<()> {
    let whole = sample::<f32>(&[9, 4], f32::from)?;
    for (base, do_merge) in [("merged_temp/part", true), ("unmerged_temp/part", false)] {
        let mut prefixes = Vec::new();
        for (shard, (start, count)) in [(0, 2), (2, 4), (6, 3)].into_iter().enumerate() {
            let prefix = format!("{dir}/{}", sharded_file_name(base, shard as i32, 3));
            let spec = format!("9 4 {start},{count}:-");
            let own = Tensor::scalar(shard as i64);
            let item = |name: &'static str, shape_and_slice, tensor| SaveItem {
                name: name.as_bytes(),
                shape_and_slice,
                tensor,
            };
            let name = ["a", "b", "c"][shard];
            save(
                &prefix,
                &[
                    item("table", &spec, &whole.rows(start, count)?),
                    item(name, "", &own),
                ],
            )?;
            prefixes.push(prefix);
        }
        if do_merge {
            let prefixes: Vec<&str> = prefixes.iter().map(String::as_str).collect();
            merge(&prefixes, &format!("{dir}/merged"), MergeOptions::default())?;
        }
    }
    Ok(())
}

/// Enough tensors for several blocks of the index.
fn write_many(prefix: &str) -> Result<()> {
    let mut writer = BundleWriter::create(prefix)?;
    for i in 0..20_000i32 {
        writer.add(
            format!("model/layer_{i}/kernel").as_bytes(),
            &Tensor::vector(&[i, i + 1]),
        )?;
    }
    writer.finish()
}

fn write_records(dir: &str) -> Result<()> {
    let mut records = RecordWriter::create(&LocalFileSystem, &format!("{dir}/records"))?;
    for i in 0..1000usize {
        records.write(&vec![i as u8; i * 7 % 1500])?;
    }
    records.close()?;
    let options = EventsOptions {
        started: UNIX_EPOCH + Duration::from_secs(1_700_000_000),
        host: "host".into(),
        ..EventsOptions::default()
    };
    let mut events = EventsWriter::create(&format!("{dir}/events"), &options)?;
    for step in 0..25 {
        let value = summary::Value {
            tag: "loss".into(),
            value: Some(summary::value::Value::SimpleValue(step as f32 / 2.0)),
            ..summary::Value::default()
        };
        events.write(&Event {
            wall_time: 1_700_000_000.5,
            step,
            what: Some(event::What::Summary(Summary { value: vec![value] })),
            ..Event::default()
        })?;
    }
    events.flush()
}

fn rewrite(from: &str, to: &str) -> Result<()> {
    let reader = BundleReader::open(from)?;
    if let Some(damage) = verify(&reader).damage.pop() {
        return Err(data_loss!("{}", damage.status));
    }
    let mut listed = reader.list()?;
    listed.sort_by_key(|tensor| (tensor.shard, tensor.offset, tensor.size));
    let mut writer = BundleWriter::create(to)?;
    for tensor in listed {
        writer.add(&tensor.key, &reader.read(&tensor.key)?)?;
    }
    writer.finish()
}
