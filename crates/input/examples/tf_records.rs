//! Reads the files that `tests/check_with_tf.py` lets TensorFlow write, and writes them as Examples for it to read.
//!
//! ```text
//! tf_records examples FROM TO   Examples one by one
//! tf_records batches FROM TO    Examples in batches of 4, every layout
//! tf_records csv FROM TO        a CSV file
//! ```

use tensorfleet_input::{Csv, Dataset, ExampleSpec, write_examples};
use tensorfleet_status::{Result, invalid_argument};
use tensorfleet_tensor::{DType, TString, Tensor};

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let (data, to) = match args[..] {
        ["examples", from, to] => (Dataset::from_examples(from, singles())?, to),
        ["batches", from, to] => {
            let records = Dataset::from_records(from)?.batch(4, false);
            (records.parse_examples(layouts())?, to)
        }
        ["csv", from, to] => (Dataset::from_csv(from, columns())?, to),
        _ => {
            return Err(invalid_argument!(
                "usage: tf_records examples|batches|csv FROM TO"
            ));
        }
    };
    write_examples(to, data.prefetch(4).iter())?;
    Ok(())
}

fn singles() -> ExampleSpec {
    ExampleSpec::new()
        .fixed("x", DType::F32, &[2, 2])
        .fixed_or("weight", Tensor::scalar(0.5f32))
        .padded("ids", DType::I64)
        .padded("words", DType::String)
}

fn layouts() -> ExampleSpec {
    singles()
        .sparse("tags", DType::String)
        .sparse("scores", DType::F32)
}

fn columns() -> Csv {
    Csv::new()
        .column("name", DType::String)
        .column_or("count", -1i64)
        .column_or("share", 0.25f32)
        .column_or("note", TString::from_static(b"none"))
}
