//! Round trips through the filesystem, merging, and every kind of damage.

use bytes::Bytes;
use proptest::prelude::*;
use prost::Message;
use tensorfleet_proto::BundleHeaderProto;
use tensorfleet_status::{Code, Result};
use tensorfleet_tensor::{DType, PartialShape, Shape, Tensor, TensorList, Variant};

use super::entry::Entry;
use super::*;
use crate::slice::TensorSlice;
use crate::table::TableWriter;

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

#[test]
fn every_kind_of_tensor_round_trips() {
    let dir = Dir::new();
    let prefix = dir.path("sub/model");
    let strings = Tensor::vector(&[
        Bytes::from("ab"),
        Bytes::new(),
        Bytes::from(vec![7; 300_000]),
    ]);
    let mut list = TensorList::new(DType::F32, PartialShape::unknown());
    list.items.push(Some(floats(&[2])));
    let variant = Tensor::vector(&[Variant::List(list.into()), Variant::Empty]);
    let scalar = Tensor::scalar(7i64);
    let bools = Tensor::vector(&[true, false, true]);
    // Larger than the thresholds of gathering, of threads and of chunks, and not a multiple of any.
    let large = floats(&[3, 1_000_003]);
    let items = [
        item("s", "", &strings),
        item("v", "", &variant),
        item("b", "", &bools),
        item("l", "", &large),
        item("n", "", &scalar),
    ];
    save(&prefix, &items).unwrap();
    let wishes: Vec<RestoreItem<'_>> = items
        .iter()
        .map(|i| RestoreItem {
            name: i.name,
            shape_and_slice: "",
            dtype: i.tensor.dtype(),
        })
        .collect();
    let restored = restore(&prefix, &wishes).unwrap();
    assert_eq!(
        restored[0].slice::<Bytes>().unwrap(),
        strings.slice::<Bytes>().unwrap()
    );
    let variants = restored[1].slice::<Variant>().unwrap();
    assert_eq!(variants[0].as_list().unwrap().items.len(), 1);
    assert!(matches!(variants[1], Variant::Empty));
    assert_eq!(restored[2].slice::<bool>().unwrap(), [true, false, true]);
    assert!(restored[3].bytes() == large.bytes());
    assert_eq!(restored[4].to_scalar::<i64>().unwrap(), 7);
    let report = verify(&BundleReader::open(&prefix).unwrap());
    assert_eq!((report.tensors, report.damage), (5, vec![]));
}

#[test]
fn dropped_writer_leaves_nothing() {
    let dir = Dir::new();
    let mut writer = BundleWriter::create(&dir.path("m")).unwrap();
    writer.add(b"w", &floats(&[1 << 18])).unwrap();
    assert_eq!(dir.files().len(), 1);
    drop(writer);
    assert!(dir.files().is_empty());
    fails(
        save(
            &dir.path("m"),
            &[item("w", "", &floats(&[2])), item("w", "", &floats(&[2]))],
        ),
        Code::InvalidArgument,
        "Adding duplicate key: w",
    );
    assert!(dir.files().is_empty());
}

#[test]
fn wrong_requests_give_tensorflows_errors() {
    use Code::{Internal, InvalidArgument, NotFound};
    let dir = Dir::new();
    let (prefix, w) = (dir.path("m"), floats(&[2, 2]));
    let s = Tensor::vector(&[Bytes::from("x"), Bytes::from("y")]);
    let five = floats(&[5, 2]);
    let [first, second, middle] =
        [(0, 3), (3, 2), (2, 2)].map(|(start, count)| five.rows(start, count).unwrap());
    let items = [
        item("w", "", &w),
        item("z", "", &s),
        item("pv", "5 2 0,3:0,2", &first),
        item("pv", "5 2 3,2:0,2", &second),
        item("over", "5 2 0,3:0,2", &first),
        item("over", "5 2 2,2:0,2", &middle),
        item("gap", "5 2 0,3:-", &first),
        item("ps", "3 0,2", &s),
    ];
    save(&prefix, &items).unwrap();
    let get = |name: &str, spec: &str, dtype| {
        restore(&prefix, &[wish(name, spec, dtype)]).map(|t| t[0].clone())
    };
    let f = DType::F32;
    fails(get("q", "", f), NotFound, "Key q not found in checkpoint");
    fails(get("", "", f), NotFound, "Key  not found in checkpoint");
    fails(
        get("w", "", DType::I32),
        InvalidArgument,
        "tensor_name = w; expected dtype int32 does not equal original dtype float",
    );
    fails(
        restore(&prefix, &[wish("z", "", f), wish("w", "", DType::I32)]),
        InvalidArgument,
        "tensor_name = w; expected dtype int32 does not equal original dtype float\n\
         tensor_name = z; expected dtype float does not equal original dtype string",
    );
    fails(
        restore("/nodir/nope", &[wish("w", "", f)]),
        NotFound,
        "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for /nodir/nope",
    );
    fails(
        get("pv", "6 2 2,2:-", f),
        InvalidArgument,
        "tensor_name = pv; shape in shape_and_slice spec [6,2] does not match the shape stored in checkpoint: [5,2]",
    );
    let overlap = "Overlapping slices: existing slice = 0,3:0,2, new slice = 2,2:0,2";
    fails(get("over", "", f), Internal, overlap);
    fails(get("over", "5 2 1,2:1,1", f), Internal, overlap);
    fails(
        get("gap", "", f),
        InvalidArgument,
        "Does not have sufficient slices for partitioned tensor gap to restore in slice_spec: -:-",
    );
    fails(
        get("z", "2 1,1", DType::String),
        InvalidArgument,
        "Dtype string not supported.",
    );
    fails(
        get("ps", "", DType::String),
        InvalidArgument,
        "Dtype string not supported.",
    );
    assert_eq!(get("pv", "", f).unwrap().bytes(), five.bytes());
    assert_eq!(
        get("pv", "5 2 2,2:-", f).unwrap().slice::<f32>().unwrap(),
        [4.0, 5.0, 6.0, 7.0]
    );
    assert_eq!(
        get("w", "2 2 1,1:-", f).unwrap().slice::<f32>().unwrap(),
        [2.0, 3.0]
    );
    assert_eq!(
        get("w", "2 2 -:1,1", f).unwrap().slice::<f32>().unwrap(),
        [1.0, 3.0]
    );
    let put = |items: &[SaveItem<'_>]| save(&dir.path("bad"), items);
    fails(
        put(&[item("w", "2 2 0,1:0,2", &w)]),
        InvalidArgument,
        "Slice in shape_and_slice specification does not match the shape of the tensor to  save: 2 2 0,1:0,2, tensor: [2,2]",
    );
    fails(
        put(&[item("", "", &w)]),
        InvalidArgument,
        "a tensor in a checkpoint needs a name",
    );
    fails(
        put(&[item("p", "4 2 0,2:-", &w), item("p", "5 2 2,2:-", &w)]),
        InvalidArgument,
        "slices of p disagree: float[4,2] and float[5,2]",
    );
    fails(
        put(&[item("p", "4 2 0,2:-", &w), item("p", "4 2 0,2:-", &w)]),
        InvalidArgument,
        "Adding duplicate key: slice of p (0,2:-)",
    );
    fails(
        put(&[item("p", "", &w), item("p", "4 2 0,2:-", &w)]),
        InvalidArgument,
        "Adding duplicate key: p",
    );
    assert!(!dir.files().iter().any(|name| name.starts_with("bad")));
}

#[test]
fn damage_is_reported_with_key_and_file() {
    let dir = Dir::new();
    let (prefix, data) = (dir.path("m"), "m.data-00000-of-00001");
    let w = Tensor::vector(&[1.0f32, 2.0, 3.0, 4.0]);
    let s = Tensor::vector(&[Bytes::from("ab"), Bytes::new()]);
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

/// An index with right checksums whose entries lie must not make us allocate or panic.
#[test]
fn lying_entries_are_refused() {
    let dir = Dir::new();
    let prefix = dir.path("m");
    std::fs::write(dir.path("m.data-00000-of-00001"), [0; 64]).unwrap();
    let honest = Entry {
        dtype: DType::F32,
        shape: Shape::new(&[4]).unwrap(),
        shard: 0,
        offset: 0,
        size: 16,
        crc32c: 0,
        slices: vec![],
    };
    let huge = Shape::new(&[1 << 60]).unwrap();
    let slices = |texts: &[&str]| {
        texts
            .iter()
            .map(|text| TensorSlice::parse(text).unwrap())
            .collect::<Vec<_>>()
    };
    let lies = [
        Entry {
            shape: huge.clone(),
            size: 1 << 62,
            ..honest.clone()
        },
        Entry {
            shape: huge.clone(),
            ..honest.clone()
        },
        Entry {
            offset: u64::MAX >> 1,
            ..honest.clone()
        },
        Entry {
            offset: 60,
            ..honest.clone()
        },
        Entry {
            shard: 1,
            ..honest.clone()
        },
        Entry {
            dtype: DType::String,
            shape: huge.clone(),
            size: 64,
            ..honest.clone()
        },
        Entry {
            dtype: DType::Variant,
            shape: huge.clone(),
            size: 64,
            ..honest.clone()
        },
        Entry {
            dtype: DType::Resource,
            size: 64,
            ..honest.clone()
        },
        Entry {
            slices: slices(&["0,2", "2,2"]),
            ..honest.clone()
        },
        Entry {
            shape: huge,
            slices: slices(&["-"]),
            ..honest.clone()
        },
        Entry {
            slices: slices(&["3,2"]),
            ..honest.clone()
        },
        Entry {
            slices: slices(&["0,2:0,1"]),
            ..honest
        },
    ];
    for lie in lies {
        let entries = [(b"w".to_vec(), lie.clone())].into_iter().collect();
        let index = index::encode_index(1, &entries).unwrap();
        std::fs::write(dir.path("m.index"), index).unwrap();
        let reader = BundleReader::open(&prefix).unwrap();
        let status = reader.read(b"w").expect_err(&format!("{lie:?}"));
        assert!(
            matches!(status.code(), Code::DataLoss | Code::InvalidArgument),
            "{lie:?}: {status}"
        );
        let _ = reader.list();
        assert_eq!(verify(&reader).damage.len(), 1, "{lie:?}");
    }
}

#[test]
fn merge_joins_renames_and_cleans_up() {
    let dir = Dir::new();
    let (a, b, to) = (
        dir.path("m_temp/part-0"),
        dir.path("m_temp/part-1"),
        dir.path("m"),
    );
    let (w, four) = (floats(&[2, 2]), floats(&[4]));
    let halves = [four.rows(0, 2).unwrap(), four.rows(2, 2).unwrap()];
    let setup = || {
        save(&a, &[item("w", "", &w), item("pv", "4 0,2", &halves[0])]).unwrap();
        save(&b, &[item("z", "", &w), item("pv", "4 2,2", &halves[1])]).unwrap();
    };
    setup();
    merge(&[&a, &b], &to, MergeOptions::default()).unwrap();
    assert_eq!(
        dir.files(),
        ["m.data-00000-of-00002", "m.data-00001-of-00002", "m.index"]
    );
    let reader = BundleReader::open(&to).unwrap();
    assert_eq!(reader.read(b"pv").unwrap().bytes(), four.bytes());
    assert_eq!(reader.read(b"z").unwrap().bytes(), w.bytes());
    let listed = reader.list().unwrap();
    let names: Vec<String> = listed.iter().map(ListedTensor::name).collect();
    assert_eq!(names, ["pv", "w", "z"]);
    assert_eq!(
        (
            listed[0].slices.len(),
            listed[0].slices[1].shard,
            listed[0].size
        ),
        (2, 1, 16)
    );
    assert!(verify(&reader).damage.is_empty());
    merge(&[&to], &to, MergeOptions::default()).unwrap();
    assert!(BundleReader::open(&to).unwrap().read(b"w").is_ok());

    setup();
    let missing = dir.path("m_temp/part-9");
    fails(
        merge(&[&a, &missing], &to, MergeOptions::default()),
        Code::InvalidArgument,
        &format!(
            "allow_missing_files was set to false and {missing} did not exist.NOT_FOUND: {missing} not found"
        ),
    );
    let tolerant = MergeOptions {
        allow_missing_files: true,
        ..MergeOptions::default()
    };
    for none in [&[&missing[..]][..], &[]] {
        fails(
            merge(none, &to, tolerant),
            Code::InvalidArgument,
            "At least one prefix checkpoint file must exist, but none existed.",
        );
    }
    merge(&[&missing, &a], &dir.path("half"), tolerant).unwrap();
    assert!(
        BundleReader::open(&dir.path("half"))
            .unwrap()
            .contains(b"w")
            .unwrap()
    );
    assert!(
        dir.files().contains(&"m_temp".to_owned()),
        "part-1 is still there"
    );
    merge(
        &[&b],
        &dir.path("rest"),
        MergeOptions {
            delete_old_dirs: false,
            ..tolerant
        },
    )
    .unwrap();
    assert!(dir.files().contains(&"m_temp".to_owned()));
}

#[test]
fn conflicting_merges_change_nothing() {
    let dir = Dir::new();
    let (w, four) = (floats(&[2, 2]), floats(&[4]));
    let half = four.rows(0, 2).unwrap();
    let ints = Tensor::vector(&[1i32, 2]);
    let clash = |first: SaveItem<'_>, second: SaveItem<'_>, code, message: &str| {
        let (a, b) = (dir.path("t/a"), dir.path("t/b"));
        save(&a, &[first]).unwrap();
        save(&b, &[second]).unwrap();
        let status = merge(&[&a, &b], &dir.path("t/to"), MergeOptions::default()).unwrap_err();
        assert_eq!(
            (status.code(), status.message()),
            (code, message.replace("B", &b).as_str())
        );
        assert!(
            BundleReader::open(&a).unwrap().list().is_ok()
                && BundleReader::open(&b).unwrap().list().is_ok()
        );
        assert!(BundleReader::open(&dir.path("t/to")).is_err());
    };
    use Code::{Internal, InvalidArgument};
    clash(
        item("w", "", &w),
        item("w", "", &w),
        InvalidArgument,
        "Duplicate tensor keyed by w encountered, when merging prefix: B",
    );
    clash(
        item("w", "4 0,2", &half),
        item("w", "", &four),
        Internal,
        "Duplicate tensor keyed by w; attempting to merge in a non-slice bundle entry",
    );
    clash(
        item("w", "4 0,2", &half),
        item("w", "5 2,2", &half),
        InvalidArgument,
        "slices of w disagree: float[4] and float[5], when merging prefix: B",
    );
    clash(
        item("w", "4 0,2", &half),
        item("w", "4 2,2", &ints),
        InvalidArgument,
        "slices of w disagree: float[4] and int32[4], when merging prefix: B",
    );
    clash(
        item("w", "4 0,2", &half),
        item("w", "4 0,2", &half),
        InvalidArgument,
        "Duplicate tensor keyed by slice of w encountered, when merging prefix: B",
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// Entries of random bytes, and good entries with random changes, under right table checksums.
    #[test]
    fn random_entries_never_panic(
        noise in proptest::collection::vec(any::<u8>(), 0..60),
        changes in proptest::collection::vec((0usize..60, any::<u8>()), 0..4),
    ) {
        let dir = Dir::new();
        std::fs::write(dir.path("m.data-00000-of-00001"), [1; 100]).unwrap();
        let entry = |slices: &[&str]| Entry {
            dtype: DType::I16,
            shape: Shape::new(&[4, 3]).unwrap(),
            shard: 0,
            offset: 4,
            size: 24,
            crc32c: 1,
            slices: slices.iter().map(|text| TensorSlice::parse(text).unwrap()).collect(),
        };
        let mut values = [entry(&[]).encode(), entry(&["0,2:-", "2,2:0,3"]).encode()];
        for (at, byte) in changes {
            for value in &mut values {
                let at = at % value.len();
                value[at] = byte;
            }
        }
        let header = BundleHeaderProto { num_shards: 1, ..BundleHeaderProto::default() };
        let mut table = TableWriter::new();
        table.add(b"", &header.encode_to_vec()).unwrap();
        table.add(b"noise", &noise).unwrap();
        table.add(b"sliced", &values[1]).unwrap();
        table.add(b"whole", &values[0]).unwrap();
        std::fs::write(dir.path("m.index"), table.finish()).unwrap();
        let reader = BundleReader::open(&dir.path("m")).unwrap();
        let _ = (reader.list(), verify(&reader));
        for key in [&b"noise"[..], b"sliced", b"whole"] {
            let _ = reader.read(key);
            let _ = reader.read_slice(key, &TensorSlice::parse("1,2:0,1").unwrap());
        }
    }
}

#[test]
fn checksum_beside_the_write_is_the_same() {
    let dir = Dir::new();
    let mut large = Tensor::zeros(DType::F32, Shape::vector((64 << 18) + 1001)).unwrap();
    large.slice_mut::<f32>().unwrap()[16_000_000] = 3.5;
    save(
        &dir.path("m"),
        &[item("a", "", &floats(&[7])), item("w", "", &large)],
    )
    .unwrap();
    let restored = BundleReader::open(&dir.path("m"))
        .unwrap()
        .read(b"w")
        .unwrap();
    assert!(restored.bytes() == large.bytes());
}
