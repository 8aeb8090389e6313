//! [`Paths`]: which files, as one path, several, or patterns.

use tensorfleet_status::{Result, invalid_argument};

use super::place;

/// Files by path or by pattern (`*`, `?`, `[a-z]`), in order; those of a pattern come sorted.
///
/// A path may have a scheme: `file://…`, and with the feature `object-store` also `s3://bucket/…`, `gs://bucket/…`,
/// `http://…`, `https://…` and those of stores that are registered.
///
/// ```
/// use tensorfleet_input::{Dataset, Paths};
///
/// let one: Paths = "data/train.csv".into();
/// let several: Paths = ["data/a.csv", "data/b-*.csv"].into();
/// let error = Dataset::from_files(several).err().unwrap();
/// assert!(error.message().contains("data/a.csv"));
/// ```
#[derive(Clone, Debug)]
pub struct Paths(Vec<String>);

impl Paths {
    /// The files there are; none at all is an error, and so is one that is not there.
    pub(crate) fn resolve(&self) -> Result<Vec<String>> {
        let mut files = Vec::new();
        for path in &self.0 {
            files.extend(place::find(path)?);
        }
        if files.is_empty() {
            return Err(invalid_argument!("no files given"));
        }
        Ok(files)
    }
}

impl From<&str> for Paths {
    fn from(path: &str) -> Paths {
        Paths(vec![path.to_owned()])
    }
}

impl From<String> for Paths {
    fn from(path: String) -> Paths {
        Paths(vec![path])
    }
}

impl From<&String> for Paths {
    fn from(path: &String) -> Paths {
        Paths(vec![path.clone()])
    }
}

impl<S: Into<String>> From<Vec<S>> for Paths {
    fn from(paths: Vec<S>) -> Paths {
        Paths(paths.into_iter().map(Into::into).collect())
    }
}

impl<S: Into<String> + Clone> From<&Vec<S>> for Paths {
    fn from(paths: &Vec<S>) -> Paths {
        paths.as_slice().into()
    }
}

impl<S: Into<String> + Clone> From<&[S]> for Paths {
    fn from(paths: &[S]) -> Paths {
        Paths(paths.iter().cloned().map(Into::into).collect())
    }
}

impl<S: Into<String>, const N: usize> From<[S; N]> for Paths {
    fn from(paths: [S; N]) -> Paths {
        Paths(paths.into_iter().map(Into::into).collect())
    }
}

#[cfg(test)]
mod tests {
    use tensorfleet_checkpoint::fs;
    use tensorfleet_status::Code;

    use super::*;

    #[test]
    fn paths_lists_and_patterns() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().display().to_string();
        for name in ["b-1", "b-0", "a", "odd[name]"] {
            std::fs::write(temp.path().join(name), "x").unwrap();
        }
        std::fs::create_dir(temp.path().join("b-dir")).unwrap();
        let resolved = |paths: Vec<String>| {
            let files = Paths::from(paths).resolve().unwrap();
            let names = files.iter().map(|file| fs::base_name(file).to_owned());
            names.collect::<Vec<_>>()
        };
        let at = |name: &str| format!("{dir}/{name}");
        assert_eq!(resolved(vec![at("b-*"), at("a")]), ["b-0", "b-1", "a"]);
        assert_eq!(resolved(vec![format!("file://{}", at("a"))]), ["a"]);
        assert_eq!(resolved(vec![at("odd[name]")]), ["odd[name]"]);
        let check = |path: String, code: Code, words: &[&str]| {
            let error = Paths::from(path).resolve().unwrap_err();
            assert_eq!(error.code(), code, "{error}");
            for word in words {
                assert!(error.message().contains(word), "{error}");
            }
        };
        check(at("c*"), Code::NotFound, &["no file matches", "c*"]);
        check(at("c"), Code::NotFound, &["/c;"]);
        check(dir.clone(), Code::FailedPrecondition, &["directory", "/*"]);
        let words = ["'hdfs'", "not implemented"];
        check("hdfs://host/x".into(), Code::Unimplemented, &words);
        #[cfg(not(feature = "object-store"))]
        for scheme in ["s3", "gs", "http", "https", "memory"] {
            let url = format!("{scheme}://data/x-*");
            let words = [url.as_str(), "not built in", "`object-store`"];
            check(url.clone(), Code::Unimplemented, &words);
        }
        assert!(Paths::from(Vec::<String>::new()).resolve().is_err());
    }
}
