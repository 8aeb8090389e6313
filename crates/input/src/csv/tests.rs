use proptest::prelude::*;
use tensorfleet_status::Code;
use tensorfleet_tensor::TString;

use super::*;
use crate::element::Element;

/// The elements of a file with this text, or the error without the file's folder.
fn read(text: impl AsRef<[u8]>, csv: Csv) -> Result<Vec<Element>, String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.csv");
    std::fs::write(&path, text).unwrap();
    let elements = Dataset::from_csv(path.display().to_string(), csv)
        .and_then(|data| data.iter().collect::<Result<Vec<Element>>>());
    elements.map_err(|status| {
        let known = [Code::InvalidArgument, Code::NotFound, Code::DataLoss];
        assert!(known.contains(&status.code()), "{status}");
        let folder = format!("{}/", dir.path().display());
        status.message().replace(&folder, "")
    })
}

/// Columns `a`, `b`, … of strings, empty fields as they are.
fn strings(count: u8) -> Csv {
    let names = (b'a'..).take(count.into());
    names.fold(Csv::new().without_header(), |csv, name| {
        csv.column_or(char::from(name).to_string(), TString::new())
    })
}

fn texts(elements: &[Element]) -> Vec<Vec<TString>> {
    let text = |tensor: &Tensor| tensor.to_scalar::<TString>().unwrap();
    let texts = |element: &Element| element.tensors().iter().map(text).collect();
    elements.iter().map(texts).collect()
}

#[test]
fn fields_are_those_of_rfc_4180() {
    let cases: &[(&str, &[[&str; 2]])] = &[
        ("", &[]),
        ("a,b", &[["a", "b"]]),
        ("a,b\nc,d\n", &[["a", "b"], ["c", "d"]]),
        ("a,b\r\nc,d\r\n", &[["a", "b"], ["c", "d"]]),
        ("a,b\rc,d\r", &[["a", "b"], ["c", "d"]]),
        ("\n\na,b\n\n\r\nc,d\n\n", &[["a", "b"], ["c", "d"]]),
        ("\"a\",\"b\"\n", &[["a", "b"]]),
        ("\"a,b\",\"c\r\nd\"\r\n", &[["a,b", "c\r\nd"]]),
        ("\"a\"\"b\",\"\"\"\"\n", &[["a\"b", "\""]]),
        (",\n", &[["", ""]]),
        ("\"\",\n", &[["", ""]]),
        ("a,", &[["a", ""]]),
        (" a , b ", &[[" a ", " b "]]),
        ("\u{feff}a,ä\n", &[["a", "ä"]]),
    ];
    for (text, expected) in cases {
        let elements = read(text, strings(2)).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        assert_eq!(texts(&elements), *expected, "{text:?}");
    }
    let tabs = read("a\tb,c\n", strings(2).delimiter('\t')).unwrap();
    assert_eq!(texts(&tabs), [["a", "b,c"]]);
}

#[test]
fn columns_have_types_and_defaults() {
    let csv = Csv::new()
        .column("d", DType::F64)
        .column("b", DType::Bool)
        .column_or("i", 7i32)
        .column_or("f", f32::NAN)
        .column("l", DType::I64)
        .na_value("NA");
    let text = "l,i,unused,b,f,d\n-9, 3 ,x,true,1e3,.5\n1,NA,,0,,inf\n";
    let elements = read(text, csv).unwrap();
    let first = &elements[0];
    assert_eq!(first.names().unwrap(), ["d", "b", "i", "f", "l"]);
    assert_eq!(first.get("d").unwrap().to_scalar::<f64>().unwrap(), 0.5);
    assert!(first.get("b").unwrap().to_scalar::<bool>().unwrap());
    assert_eq!(first.get("i").unwrap().to_scalar::<i32>().unwrap(), 3);
    assert_eq!(first.get("f").unwrap().to_scalar::<f32>().unwrap(), 1000.0);
    assert_eq!(first.get("l").unwrap().to_scalar::<i64>().unwrap(), -9);
    let second = &elements[1];
    assert_eq!(second.get("i").unwrap().to_scalar::<i32>().unwrap(), 7);
    assert!(
        second
            .get("f")
            .unwrap()
            .to_scalar::<f32>()
            .unwrap()
            .is_nan()
    );
    let csv = Csv::new()
        .without_header()
        .ignored()
        .column("x", DType::I64);
    let elements = read("no number,5\n", csv).unwrap();
    assert_eq!(elements[0].get("x").unwrap().to_scalar::<i64>().unwrap(), 5);
}

#[test]
fn errors_name_file_line_and_column() {
    let typed = || Csv::new().column("x", DType::I64).column_or("y", 0.0f32);
    let cases: &[(&str, Csv, &[&str])] = &[
        (
            "x,y\n1,2\nabc,3\n",
            typed(),
            &[
                "x.csv:3: column 1 (\"x\")",
                "\"abc\" is no int64",
                "as string",
            ],
        ),
        (
            "x,y\n1,2\n,3\n",
            typed(),
            &["x.csv:3: column 1 (\"x\")", "empty", "column_or"],
        ),
        (
            "x,y\n99999999999999999999,3\n",
            typed(),
            &["x.csv:2: column 1", "no int64"],
        ),
        (
            "x,y\n1\n",
            typed(),
            &["x.csv:2: the record has 1 fields, the header has 2"],
        ),
        ("x,y\n1,2,3\n", typed(), &["x.csv:2", "3 fields"]),
        (
            "x,z\n1,2\n",
            typed(),
            &["x.csv:1: column \"y\"", "\"x\", \"z\"", "without_header"],
        ),
        ("x,y,x\n1,2,3\n", typed(), &["column \"x\"", "twice"]),
        (
            "a,b\nc,\"d",
            strings(2),
            &["x.csv:2: column 2", "never closed"],
        ),
        (
            "\"a\nb\nc\",\"d\n\n",
            strings(2),
            &["x.csv:3: column 2", "never closed"],
        ),
        ("a,b\"c\n", strings(2), &["x.csv:1: column 2", "not quoted"]),
        (
            "a,\"b\"c\n",
            strings(2),
            &["x.csv:1: column 2", "closing quote"],
        ),
        ("a\n", strings(2), &["the Csv describes 2"]),
        ("", Csv::new(), &["no columns"]),
        (
            "",
            Csv::new().column("x", DType::C64),
            &["\"x\" is asked for as complex64"],
        ),
        (
            "",
            Csv::new().column("x", DType::F32).ignored(),
            &["without_header"],
        ),
        ("", strings(1).delimiter('"'), &["cannot part fields"]),
        (
            "",
            strings(1).compression(Compression::Gzip),
            &["cannot be unpacked"],
        ),
    ];
    for (text, csv, words) in cases {
        let error = read(text, csv.clone()).unwrap_err();
        for word in *words {
            assert!(error.contains(word), "{text:?}: {error}");
        }
    }
    // An empty file has no header, and no records either.
    assert_eq!(read("", typed()).unwrap().len(), 0);
}

#[test]
fn records_that_swallow_a_file_are_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.csv").display().to_string();
    for (start, filling) in [("a\n\"", b'x'), ("a\n", b',')] {
        let mut text = start.as_bytes().to_vec();
        text.resize(fields::MOST_BYTES + 100, filling);
        std::fs::write(&path, text).unwrap();
        let data = Dataset::from_csv(&path, strings(1)).unwrap();
        let error = data.iter().nth(1).unwrap().unwrap_err();
        assert_eq!(error.code(), Code::ResourceExhausted);
        assert!(error.message().contains("x.csv:2"), "{error}");
    }
}

proptest! {
    #[test]
    fn whatever_is_quoted_comes_back(rows in prop::collection::vec(prop::collection::vec("[a\",\r\n é]{0,6}", 3), 0..5)) {
        let mut text = String::new();
        for row in &rows {
            let quoted: Vec<String> = row.iter().map(|f| format!("\"{}\"", f.replace('"', "\"\""))).collect();
            text.push_str(&quoted.join(","));
            text.push_str("\r\n");
        }
        prop_assert_eq!(texts(&read(&text, strings(3)).unwrap()), rows);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(prop::sample::select(b"a1,\"\r\n\xff ".to_vec()), 0..40)) {
        let _ = read(&bytes, Csv::new().column("a", DType::F32).column_or("1", true));
        let _ = read(&bytes, strings(2));
    }
}
