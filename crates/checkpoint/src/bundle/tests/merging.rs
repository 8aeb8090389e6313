//! Several checkpoints become one.

use tensorfleet_status::Code;
use tensorfleet_tensor::Tensor;

use super::super::*;
use super::{Dir, fails, floats, item};

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
