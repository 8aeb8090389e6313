//! [`Paths`]: which files, as one path, several, or patterns.

use tensorfleet_checkpoint::fs;
use tensorfleet_status::{Result, failed_precondition, invalid_argument, not_found};

/// Files by path or by pattern (`*`, `?`, `[a-z]`), in order; those of a pattern come sorted.
///
/// A path may have a scheme, `file://…`; those of object stores are refused until they are built in.
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
            let system = fs::for_path(path)?;
            match system.stat(path) {
                Ok(stat) if stat.is_dir => {
                    return Err(failed_precondition!(
                        "{path} is a directory: write {} for the files in it",
                        fs::join(path, "*")
                    ));
                }
                Ok(_) => files.push(path.clone()),
                Err(status) if !fs::is_pattern(path) => return Err(status),
                Err(_) => {
                    let mut found = system.glob(path)?;
                    found.retain(|file| system.stat(file).is_ok_and(|stat| !stat.is_dir));
                    if found.is_empty() {
                        return Err(not_found!(
                            "no file matches \"{path}\"; relative paths start at {}",
                            std::env::current_dir().unwrap_or_default().display()
                        ));
                    }
                    files.extend(found);
                }
            }
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
        let words = ["'gs'", "not built in", "local paths"];
        check("gs://bucket/x".into(), Code::Unimplemented, &words);
        assert!(Paths::from(Vec::<String>::new()).resolve().is_err());
    }
}
