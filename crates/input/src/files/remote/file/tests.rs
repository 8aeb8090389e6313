use std::sync::Arc;

use object_store::memory::InMemory;
use object_store::path::Path;
use tensorfleet_status::Code;

use super::*;

/// An object in a store of its own.
fn put(name: &str, bytes: &[u8]) -> (Arc<InMemory>, Location) {
    let store = Arc::new(InMemory::new());
    let base = format!("memory://{name}");
    super::super::register_object_store(&base, store.clone()).unwrap();
    write(&store, bytes);
    let location = Location::of(&format!("{base}/x")).unwrap().unwrap();
    (store, location)
}

fn write(store: &Arc<InMemory>, bytes: &[u8]) {
    let (store, bytes) = (store.clone(), bytes.to_vec());
    let put = async move { store.put(&Path::from("x"), bytes.into()).await };
    Pending::start(put).unwrap().wait().unwrap().unwrap();
}

fn sample(len: u64) -> Vec<u8> {
    (0..len).map(|i| (i * 7 % 251) as u8).collect()
}

#[test]
fn any_part_is_read() {
    let bytes = sample(3 * BLOCK + 5);
    let (_store, location) = put("parts", &bytes);
    let file = open(&location).unwrap();
    assert_eq!(file.len().unwrap(), bytes.len() as u64);
    for (offset, len) in [
        (0, 10),
        (BLOCK - 1, 2),
        (5, 3 * BLOCK),
        (2 * BLOCK, BLOCK),
        (0, 3 * BLOCK + 5),
    ] {
        let mut read = vec![0; len as usize];
        file.read_at(offset, &mut read).unwrap();
        assert_eq!(read, bytes[offset as usize..][..len as usize], "{offset}");
    }
    let mut rest = [0; 100];
    assert_eq!(file.read_some_at(3 * BLOCK, &mut rest).unwrap(), 5);
    assert_eq!(file.read_some_at(u64::MAX, &mut rest).unwrap(), 0);
    let short = file.read_at(3 * BLOCK, &mut rest).unwrap_err();
    assert_eq!(short.code(), Code::OutOfRange, "{short}");
}

#[test]
fn an_empty_object_is_an_empty_file() {
    let (_store, location) = put("nothing", &[]);
    let file = open(&location).unwrap();
    assert!(file.is_empty().unwrap());
    assert_eq!(file.read_some_at(0, &mut [0; 4]).unwrap(), 0);
}

#[test]
fn an_object_that_changes_under_a_reader_is_said() {
    let (store, location) = put("changing", &sample(4 * BLOCK));
    let file = open(&location).unwrap();
    file.read_at(0, &mut [0; 4]).unwrap();
    write(&store, &sample(4 * BLOCK - 1));
    let error = file.read_at(3 * BLOCK, &mut [0; 4]).unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
    assert!(error.message().contains("memory://changing/x"), "{error}");
}

#[test]
fn reading_works_inside_of_a_runtime() {
    let (_store, location) = put("inside", b"hello");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut read = [0; 5];
        open(&location).unwrap().read_at(0, &mut read).unwrap();
        assert_eq!(&read, b"hello");
    });
}
