//! One Rust file as the rules see it: code without comments and literals, comments
//! without code, and which lines are test code.
//!
//! Not a parser. It knows exactly as much of Rust's tokens as is needed to tell these
//! three apart; masked bytes become spaces, so offsets and lines stay as in the file.

/// A Rust file, taken apart.
pub(super) struct Source {
    /// The file with the insides of comments, strings and characters blanked.
    pub(super) code: String,
    /// The file with everything but comments blanked.
    pub(super) comments: String,
    /// For each line (from 0), whether it is only compiled for tests.
    pub(super) test: Vec<bool>,
}

impl Source {
    /// Takes a file apart. `path` decides whether all of it is test code.
    pub(super) fn new(path: &str, text: &str) -> Self {
        let (code, comments) = split(text);
        let mut test = vec![is_test_file(path); text.lines().count()];
        for (first, last) in test_regions(&code) {
            for line in first..=last {
                if let Some(flag) = test.get_mut(line) {
                    *flag = true;
                }
            }
        }
        Self {
            code,
            comments,
            test,
        }
    }

    /// `(line from 0, code, comment)` of each line outside test code.
    pub(super) fn product_lines(&self) -> impl Iterator<Item = (usize, &str, &str)> {
        self.lines().filter(|(line, ..)| !self.test[*line])
    }

    /// `(line from 0, code, comment)` of each line.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &str, &str)> {
        let pairs = self.code.lines().zip(self.comments.lines());
        pairs
            .enumerate()
            .map(|(i, (code, comment))| (i, code, comment))
    }
}

/// Whether the whole file is test code by its place in the tree.
pub(super) fn is_test_file(path: &str) -> bool {
    let folders = ["tests", "benches", "examples"];
    path.ends_with("/tests.rs") || path.split('/').any(|part| folders.contains(&part))
}

/// Whether `word` stands in `code` as a whole word.
pub(super) fn has_word(code: &str, word: &str) -> bool {
    word_at(code, word).is_some()
}

/// Where `word` stands in `code` as a whole word.
pub(super) fn word_at(code: &str, word: &str) -> Option<usize> {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).map(|(at, _)| at).find(|&at| {
        let before = code[..at].chars().next_back();
        let after = code[at + word.len()..].chars().next();
        !before.is_some_and(part_of_word) && !after.is_some_and(part_of_word)
    })
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Code,
    Comment,
    Literal,
}

/// The text with only code, and the text with only comments.
fn split(text: &str) -> (String, String) {
    let bytes = text.as_bytes();
    let mut kinds = vec![Kind::Code; bytes.len()];
    let mut at = 0;
    while at < bytes.len() {
        let (kind, end) = token(bytes, at);
        for slot in &mut kinds[at..end] {
            *slot = kind;
        }
        at = end;
    }
    let keep = |wanted: Kind| {
        let kept: Vec<u8> = bytes
            .iter()
            .zip(&kinds)
            .map(|(&byte, &kind)| {
                if kind == wanted || byte == b'\n' {
                    byte
                } else {
                    b' '
                }
            })
            .collect();
        String::from_utf8_lossy(&kept).into_owned()
    };
    (keep(Kind::Code), keep(Kind::Comment))
}

/// The kind and the end of the token that starts at `at`.
fn token(bytes: &[u8], at: usize) -> (Kind, usize) {
    let rest = &bytes[at..];
    if rest.starts_with(b"//") {
        let length = rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
        return (Kind::Comment, at + length);
    }
    if rest.starts_with(b"/*") {
        return (Kind::Comment, at + block_comment(rest));
    }
    if rest[0] == b'"' {
        return (Kind::Literal, at + quoted(rest, b'"'));
    }
    if rest[0] == b'\'' {
        return match character(rest) {
            Some(length) => (Kind::Literal, at + length),
            None => (Kind::Code, at + 1),
        };
    }
    if rest[0].is_ascii_alphabetic() || rest[0] == b'_' {
        let word = rest
            .iter()
            .take_while(|b| b.is_ascii_alphanumeric() || **b == b'_')
            .count();
        if let (b"r" | b"br" | b"cr", Some(length)) = (&rest[..word], raw_string(&rest[word..])) {
            return (Kind::Literal, at + word + length);
        }
        return (Kind::Code, at + word);
    }
    (Kind::Code, at + 1)
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest[at..].starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// The length of a literal that starts and ends with `quote`.
fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// The length of a character literal, or `None` for a lifetime.
fn character(rest: &[u8]) -> Option<usize> {
    if rest.get(1) == Some(&b'\\') {
        return Some(quoted(rest, b'\''));
    }
    let text = std::str::from_utf8(&rest[1..rest.len().min(6)]);
    let valid = match &text {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&rest[1..1 + error.valid_up_to()]).ok()?,
    };
    let length = 1 + valid.chars().next()?.len_utf8();
    (rest.get(length) == Some(&b'\'')).then_some(length + 1)
}

/// The length of `#"…"#` with any number of signs, if it is that.
fn raw_string(rest: &[u8]) -> Option<usize> {
    let signs = rest.iter().take_while(|b| **b == b'#').count();
    if rest.get(signs) != Some(&b'"') {
        return None;
    }
    let mut end = vec![b'"'];
    end.resize(signs + 1, b'#');
    let body = &rest[signs + 1..];
    let length = body.windows(end.len()).position(|window| window == end);
    Some(length.map_or(rest.len(), |length| signs + 1 + length + end.len()))
}

/// First and last line (from 0) of each item under `#[cfg(test)]` or `#[test]`.
fn test_regions(code: &str) -> Vec<(usize, usize)> {
    let line_of = |at: usize| code[..at].bytes().filter(|b| *b == b'\n').count();
    let mut regions = Vec::new();
    let mut from = 0;
    while let Some(start) = code[from..].find("#[").map(|at| from + at) {
        let end = closing(code, start + 1);
        let attribute: String = code[start..end].split_whitespace().collect();
        from = end;
        let for_tests = attribute == "#[test]"
            || (attribute.starts_with("#[cfg(")
                && has_word(&attribute, "test")
                && !attribute.contains("not(test)"));
        if for_tests {
            from = item_end(code, end);
            regions.push((line_of(start), line_of(from.saturating_sub(1))));
        }
    }
    regions
}

/// One past the bracket that closes the one at `open`.
fn closing(code: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    code.len()
}

/// One past the end of the item that starts at or after `from`: its `;` or its closing brace.
fn item_end(code: &str, from: usize) -> usize {
    let bytes = code.as_bytes();
    let mut at = from;
    while at < bytes.len() {
        match bytes[at] {
            b';' => return at + 1,
            b'{' => return closing(code, at),
            b'(' | b'[' => at = closing(code, at),
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_comments_and_literals() {
        let text = r##"let a = "unsafe \" x"; // unsafe
let b = r#"unsafe "quoted" "#; /* unsafe /* nested */ still */ let c = 'u'; let d = '\''; fn f<'a>(x: &'a u8) {}
let e = b"unsafe"; let real = unsafe { 1 };"##;
        let (code, comments) = split(text);
        assert_eq!(code.len(), text.len());
        assert_eq!(code.matches("unsafe").count(), 1, "{code}");
        assert!(code.contains("fn f<'a>(x: &'a u8) {}"), "{code}");
        assert!(code.contains("let c =    ; let d =     ;"), "{code}");
        assert_eq!(comments.matches("unsafe").count(), 2, "{comments}");
        assert!(comments.contains("still */") && !comments.contains("let"));
    }

    #[test]
    fn tells_characters_from_lifetimes() {
        for literal in ["'a'", "'é'", "'\u{1F600}'", "'\\n'", "'\\u{41}'", "'\"'"] {
            let text = format!("x({literal}); y");
            let (code, _) = split(&text);
            assert!(code.trim_end().ends_with("); y"), "{literal}: {code}");
            assert!(!code.contains('\''), "{literal}: {code}");
        }
        let (code, _) = split("impl<'de> X<'de> for &'static str {}");
        assert_eq!(code, "impl<'de> X<'de> for &'static str {}");
    }

    #[test]
    fn finds_test_lines() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n#[cfg(test)]\nmod more;\nfn d() {}\n";
        let source = Source::new("crates/x/src/lib.rs", text);
        let test = [false, true, true, true, true, false, true, true, false];
        assert_eq!(source.test, test);
        let source = Source::new("crates/x/src/lib.rs", "#[cfg(not(test))]\nfn a() {}\n");
        assert_eq!(source.test, [false, false]);
        let source = Source::new(
            "crates/x/src/lib.rs",
            "#[test]\n#[ignore = \"why\"]\nfn a() {\n}\nfn b() {}\n",
        );
        assert_eq!(source.test, [true, true, true, true, false]);
    }

    #[test]
    fn takes_test_folders_whole() {
        assert!(is_test_file("crates/x/tests/it/main.rs"));
        assert!(is_test_file("crates/x/src/foo/tests.rs"));
        assert!(!is_test_file("crates/testkit/src/lib.rs"));
        assert!(!is_test_file("xtask/src/test.rs"));
    }

    #[test]
    fn finds_whole_words() {
        assert!(has_word("a unsafe {", "unsafe"));
        assert!(!has_word("unsafe_code not_unsafe", "unsafe"));
        assert_eq!(word_at("xtodo!(); todo!()", "todo!"), Some(10));
    }
}
