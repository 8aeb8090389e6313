//! Round trips through the filesystem, merging, and every kind of damage.

mod damage;
mod lies;
mod merging;
mod requests;
mod round_trip;

use tensorfleet_status::{Code, Result};
use tensorfleet_tensor::{DType, Shape, Tensor};

use super::{RestoreItem, SaveItem};

struct Dir(tempfile::TempDir);

impl Dir {
    fn new() -> Dir {
        Dir(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn files(&self) -> Vec<String> {
        let fs = crate::fs::LocalFileSystem;
        crate::fs::FileSystem::list(&fs, &self.path("")).unwrap()
    }

    fn flip(&self, name: &str, at: usize) {
        let mut bytes = std::fs::read(self.path(name)).unwrap();
        bytes[at] ^= 1;
        std::fs::write(self.path(name), bytes).unwrap();
    }
}

fn floats(shape: &[i64]) -> Tensor {
    let shape = Shape::new(shape).unwrap();
    let values: Vec<f32> = (0..shape.elements()).map(|i| i as f32).collect();
    Tensor::from_slice(shape, &values).unwrap()
}

fn item<'a>(name: &'a str, shape_and_slice: &'a str, tensor: &'a Tensor) -> SaveItem<'a> {
    SaveItem {
        name: name.as_bytes(),
        shape_and_slice,
        tensor,
    }
}

fn wish<'a>(name: &'a str, shape_and_slice: &'a str, dtype: DType) -> RestoreItem<'a> {
    RestoreItem {
        name: name.as_bytes(),
        shape_and_slice,
        dtype,
    }
}

#[track_caller]
fn fails<T>(result: Result<T>, code: Code, message: &str) {
    let status = result.err().expect("an error");
    assert_eq!((status.code(), status.message()), (code, message));
}
