use super::*;

#[test]
fn strings_of_all_lengths_are_their_bytes() {
    for len in [0, 1, 21, 22, 23, 24, 1023, 1024, 1025, 5000] {
        let bytes: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
        let shared = Bytes::from(bytes.clone());
        for string in [
            TString::copy_from_slice(&bytes),
            TString::from(bytes.clone()),
            TString::from(shared.clone()),
            TString::from(&shared),
            bytes.iter().copied().collect(),
        ] {
            assert_eq!(string, bytes, "length {len}");
            assert_eq!(string.clone(), string);
            assert_eq!(Bytes::from(&string), shared);
            assert_eq!(string.slice(..), string);
            let mut other = TString::from("another");
            other.assign(&string);
            assert_eq!(other, bytes, "length {len}");
            other.assign_part(&string, &string[len / 2..]);
            assert_eq!(other, bytes[len / 2..]);
            other.clone_from(&string);
            other.make_mut().reverse();
            assert!(other.iter().eq(bytes.iter().rev()));
            assert_eq!(string, bytes, "length {len}");
            assert_eq!(
                string.slice(len / 3..len - len / 3),
                shared.slice(len / 3..len - len / 3)
            );
        }
    }
}

#[test]
fn large_strings_are_shared_and_small_parts_of_them_are_not() {
    let large = Bytes::from(vec![7; 2 * SHARE_FROM]);
    let string = TString::from(large.clone());
    assert_eq!(string.as_ptr(), large.as_ptr());
    assert_eq!(string.clone().as_ptr(), large.as_ptr());
    assert_eq!(Bytes::from(&string).as_ptr(), large.as_ptr());
    assert_eq!(string.slice(3..).as_ptr(), large[3..].as_ptr());
    assert_ne!(string.slice(3..500).as_ptr(), large[3..].as_ptr());
    let vec = vec![1; SHARE_FROM];
    let at = vec.as_ptr();
    assert_eq!(TString::from(vec).as_ptr(), at);
}

#[test]
fn order_and_hash_are_those_of_the_bytes() {
    let mut words = ["b", "", "a longer string than fits inside", "a"].map(TString::from);
    words.sort();
    assert_eq!(words, ["", "a", "a longer string than fits inside", "b"]);
    let set: std::collections::HashSet<TString> = words.into_iter().collect();
    assert!(set.contains(b"b".as_slice()));
    assert!(set.contains(b"a longer string than fits inside".as_slice()));
    assert_eq!(format!("{:?}", TString::from("a\"\n")), r#"b"a\"\n""#);
}
