//! Paths as text, with their schemes.

/// Splits `gs://bucket/x` into `gs` and `bucket/x`; no scheme gives an empty one.
pub fn split_scheme(path: &str) -> (&str, &str) {
    match path.split_once("://") {
        Some((scheme, rest))
            if scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'.' || b == b'+' || b == b'-') =>
        {
            (scheme, rest)
        }
        _ => ("", path),
    }
}

/// The path up to its last `/`, without it; empty if there is none.
pub fn dir_name(path: &str) -> &str {
    match split_at_slash(path) {
        Some((0, _)) => "/",
        Some((slash, _)) => path.get(..slash).unwrap_or_default(),
        None => path
            .get(..path.len() - split_scheme(path).1.len())
            .unwrap_or_default(),
    }
}

/// What follows the last `/`.
pub fn base_name(path: &str) -> &str {
    match split_at_slash(path) {
        Some((_, base)) => base,
        None => split_scheme(path).1,
    }
}

/// Joins two paths with one `/`; an absolute second path is appended all the same, as TensorFlow does.
pub fn join(dir: &str, name: &str) -> String {
    if dir.is_empty() {
        return name.to_owned();
    }
    if name.is_empty() {
        return dir.to_owned();
    }
    format!(
        "{}/{}",
        dir.strip_suffix('/').unwrap_or(dir),
        name.strip_prefix('/').unwrap_or(name)
    )
}

/// Position of the last slash behind the scheme, and what follows it.
fn split_at_slash(path: &str) -> Option<(usize, &str)> {
    let rest = split_scheme(path).1;
    let slash = rest.rfind('/')?;
    Some((
        path.len() - rest.len() + slash,
        rest.get(slash + 1..).unwrap_or_default(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_split() {
        let check = |path: &str, dir: &str, base: &str| {
            assert_eq!((dir_name(path), base_name(path)), (dir, base), "{path}");
        };
        check("/a/b/c", "/a/b", "c");
        check("/a", "/", "a");
        check("a", "", "a");
        check("a/", "a", "");
        check("file:///a/b", "file:///a", "b");
        check("gs://bucket/x", "gs://bucket", "x");
        check("gs://bucket", "gs://", "bucket");
        assert_eq!(split_scheme("/a://b"), ("", "/a://b"));
        assert_eq!(split_scheme("s3://b/c"), ("s3", "b/c"));
        assert_eq!(join("/a/", "/b"), "/a/b");
        assert_eq!(join("", "b"), "b");
        assert_eq!(join("a", ""), "a");
    }
}
