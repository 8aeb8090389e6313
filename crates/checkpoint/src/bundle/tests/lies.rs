//! Indices whose checksums are right and whose entries are not.

use proptest::prelude::*;
use prost::Message;
use tensorfleet_proto::BundleHeaderProto;
use tensorfleet_status::Code;
use tensorfleet_tensor::{DType, Shape};

use super::super::entry::Entry;
use super::super::*;
use super::Dir;
use crate::slice::TensorSlice;
use crate::table::TableWriter;

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
