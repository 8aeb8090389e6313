//! Files that are damaged, cut off or gone.

use tensorfleet_status::Code;
use tensorfleet_tensor::{TString, Tensor};

use super::super::*;
use super::{Dir, fails, floats, item};

#[test]
fn damage_is_reported_with_key_and_file() {
    let dir = Dir::new();
    let (prefix, data) = (dir.path("m"), "m.data-00000-of-00001");
    let w = Tensor::vector(&[1.0f32, 2.0, 3.0, 4.0]);
    let s = Tensor::vector(&[TString::from("ab"), TString::new()]);
    save(
        &prefix,
        &[
            item("w", "", &w),
            item("z", "", &s),
            item("y", "", &floats(&[9])),
        ],
    )
    .unwrap();
    let good = std::fs::read(dir.path(data)).unwrap();
    let read = |key: &str| BundleReader::open(&prefix)?.read(key.as_bytes());
    dir.flip(data, 3);
    fails(
        read("w"),
        Code::DataLoss,
        &format!(
            "TensorBundle {prefix}.data-00000-of-00001 (key \"w\"): 16 bytes at offset 0: Checksum does not match: \
             stored 2663016714 vs. calculated on the restored bytes 2926072175"
        ),
    );
    dir.flip(data, 16);
    let status = read("z").unwrap_err();
    assert!(
        status
            .message()
            .contains("(key \"z\"): The length checksum does not match"),
        "{status}"
    );
    assert!(read("y").is_ok());
    let report = verify(&BundleReader::open(&prefix).unwrap());
    let keys: Vec<_> = report
        .damage
        .iter()
        .map(|damage| damage.key.clone().unwrap())
        .collect();
    assert_eq!(keys, [b"w".to_vec(), b"z".to_vec()]);
    assert_eq!((report.tensors, report.bytes), (3, 36));
    std::fs::write(dir.path(data), &good[..20]).unwrap();
    assert!(read("w").is_ok());
    assert_eq!(read("y").unwrap_err().code(), Code::DataLoss);
    std::fs::remove_file(dir.path(data)).unwrap();
    fails(
        read("w"),
        Code::NotFound,
        &format!("{prefix}.data-00000-of-00001; No such file or directory"),
    );
    dir.flip("m.index", 5);
    assert_eq!(read("w").unwrap_err().code(), Code::DataLoss);
    std::fs::write(dir.path("m.index"), "").unwrap();
    fails(
        read("w"),
        Code::DataLoss,
        &format!("{prefix}.index: file is too short to be an sstable"),
    );
}

#[test]
fn any_flipped_byte_of_the_index_is_survived() {
    let dir = Dir::new();
    let prefix = dir.path("m");
    let w = floats(&[2, 2]);
    save(
        &prefix,
        &[
            item("w", "", &w),
            item("p", "4 2 0,2:-", &w),
            item("p", "4 2 2,2:-", &w),
        ],
    )
    .unwrap();
    let index = std::fs::read(dir.path("m.index")).unwrap();
    for at in 0..index.len() {
        for flip in [1u8, 0x80, 0xff] {
            let mut bytes = index.clone();
            bytes[at] ^= flip;
            std::fs::write(dir.path("m.index"), &bytes).unwrap();
            if let Ok(reader) = BundleReader::open(&prefix) {
                let _ = (
                    reader.list(),
                    verify(&reader),
                    reader.read(b"p"),
                    reader.read(b"w"),
                );
            }
        }
    }
}
