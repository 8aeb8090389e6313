//! [`LocalFileSystem`]: the disk of this machine.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::UNIX_EPOCH;

use tensorfleet_status::{Result, out_of_range};

use super::glob::{is_pattern, matches};
use super::{FileStat, FileSystem, ReadFile, WriteFile, io_status, join, split_scheme};

/// Files of this machine; `file://` before a path is allowed.
#[derive(Clone, Copy, Default, Debug)]
pub struct LocalFileSystem;

/// The path as the system knows it.
fn plain(path: &str) -> &str {
    match split_scheme(path) {
        ("file", rest) => rest,
        _ => path,
    }
}

impl FileSystem for LocalFileSystem {
    fn open(&self, path: &str) -> Result<Box<dyn ReadFile>> {
        let file = File::open(plain(path)).map_err(|error| io_status(path, &error))?;
        Ok(Box::new(LocalReadFile {
            file,
            path: path.to_owned(),
        }))
    }

    fn create(&self, path: &str) -> Result<Box<dyn WriteFile>> {
        let file = File::create(plain(path)).map_err(|error| io_status(path, &error))?;
        Ok(Box::new(LocalWriteFile {
            file,
            path: path.to_owned(),
        }))
    }

    fn append(&self, path: &str) -> Result<Box<dyn WriteFile>> {
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(plain(path))
            .map_err(|error| io_status(path, &error))?;
        Ok(Box::new(LocalWriteFile {
            file,
            path: path.to_owned(),
        }))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        fs::rename(plain(from), plain(to)).map_err(|error| io_status(from, &error))
    }

    fn delete_file(&self, path: &str) -> Result<()> {
        fs::remove_file(plain(path)).map_err(|error| io_status(path, &error))
    }

    fn delete_dir(&self, path: &str) -> Result<()> {
        fs::remove_dir(plain(path)).map_err(|error| io_status(path, &error))
    }

    fn create_dir(&self, path: &str) -> Result<()> {
        match fs::create_dir(plain(path)) {
            Err(error) if !Path::new(plain(path)).is_dir() && !plain(path).is_empty() => {
                Err(io_status(path, &error))
            }
            _ => Ok(()),
        }
    }

    fn create_dir_all(&self, path: &str) -> Result<()> {
        if plain(path).is_empty() {
            return Ok(());
        }
        fs::create_dir_all(plain(path)).map_err(|error| io_status(path, &error))
    }

    fn stat(&self, path: &str) -> Result<FileStat> {
        let meta = fs::metadata(plain(path)).map_err(|error| io_status(path, &error))?;
        let modified = meta
            .modified()
            .ok()
            .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Ok(FileStat {
            len: if meta.is_dir() { 0 } else { meta.len() },
            is_dir: meta.is_dir(),
            modified_nanos: modified.map_or(0, |since| {
                i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
            }),
        })
    }

    fn list(&self, dir: &str) -> Result<Vec<String>> {
        let local = if plain(dir).is_empty() {
            "."
        } else {
            plain(dir)
        };
        let mut names = Vec::new();
        for entry in fs::read_dir(local).map_err(|error| io_status(dir, &error))? {
            let entry = entry.map_err(|error| io_status(dir, &error))?;
            // Names that are no text cannot be asked for in this interface either.
            if let Ok(name) = entry.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn glob(&self, pattern: &str) -> Result<Vec<String>> {
        let rest = plain(pattern);
        let scheme = pattern
            .get(..pattern.len() - rest.len())
            .unwrap_or_default();
        let root = if rest.starts_with('/') { "/" } else { "" };
        let mut found = vec![format!("{scheme}{root}")];
        let mut parts = rest.split('/').filter(|part| !part.is_empty()).peekable();
        while let Some(part) = parts.next() {
            let is_last = parts.peek().is_none();
            let mut next = Vec::new();
            for dir in &found {
                if !is_pattern(part) {
                    let path = join(dir, part);
                    if !is_last || self.exists(&path) {
                        next.push(path);
                    }
                    continue;
                }
                // A directory that cannot be read has no matches.
                for name in self.list(dir).unwrap_or_default() {
                    if matches(part, &name) {
                        next.push(join(dir, &name));
                    }
                }
            }
            found = next;
        }
        found.sort_unstable();
        Ok(found)
    }
}

struct LocalReadFile {
    file: File,
    path: String,
}

impl ReadFile for LocalReadFile {
    fn read_at(&self, offset: u64, target: &mut [u8]) -> Result<()> {
        let wanted = target.len();
        let read = self.read_some_at(offset, target)?;
        if read < wanted {
            return Err(out_of_range!(
                "{}; Read less bytes than requested: {read} of {wanted} at offset {offset}",
                self.path
            ));
        }
        Ok(())
    }

    fn read_some_at(&self, offset: u64, target: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        while let Some(rest) = target.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let at = offset.saturating_add(done as u64);
            match self.file.read_at(rest, at) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(io_status(&self.path, &error)),
            }
        }
        Ok(done)
    }

    fn len(&self) -> Result<u64> {
        let meta = self
            .file
            .metadata()
            .map_err(|error| io_status(&self.path, &error))?;
        Ok(meta.len())
    }
}

struct LocalWriteFile {
    file: File,
    path: String,
}

impl WriteFile for LocalWriteFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file
            .write_all(bytes)
            .map_err(|error| io_status(&self.path, &error))
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.file
            .sync_data()
            .map_err(|error| io_status(&self.path, &error))
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensorfleet_status::Code;

    #[test]
    fn files_are_written_read_listed_and_deleted() {
        let temp = tempfile::tempdir().unwrap();
        let dir = format!("file://{}/a/b", temp.path().display());
        let fs = super::super::for_path(&dir).unwrap();
        fs.create_dir_all(&dir).unwrap();
        fs.create_dir_all(&dir).unwrap();
        let path = join(&dir, "x.data-0");
        let mut file = fs.create(&path).unwrap();
        file.append(b"hello ").unwrap();
        file.close().unwrap();
        let mut file = fs.append(&path).unwrap();
        file.append(b"world").unwrap();
        file.sync().unwrap();
        file.close().unwrap();
        assert_eq!(fs.read(&path, 100).unwrap(), b"hello world");
        assert_eq!(
            fs.read(&path, 3).unwrap_err().code(),
            Code::ResourceExhausted
        );
        let mut tail = [0; 5];
        fs.open(&path).unwrap().read_at(6, &mut tail).unwrap();
        assert_eq!(&tail, b"world");
        let error = fs.open(&path).unwrap().read_at(7, &mut tail).unwrap_err();
        assert_eq!(error.code(), Code::OutOfRange);
        assert_eq!(fs.stat(&path).unwrap().len, 11);
        fs.write_atomic(&join(&dir, "y"), b"1").unwrap();
        fs.write_atomic(&join(&dir, "y"), b"2").unwrap();
        assert_eq!(fs.list(&dir).unwrap(), ["x.data-0", "y"]);
        assert_eq!(
            fs.glob(&join(&dir, "*.data-?")).unwrap(),
            std::slice::from_ref(&path)
        );
        let up = format!("file://{}/*/b/[xy]*", temp.path().display());
        assert_eq!(fs.glob(&up).unwrap().len(), 2);
        assert!(fs.glob(&join(&dir, "nope")).unwrap().is_empty());
        fs.rename(&path, &join(&dir, "z")).unwrap();
        assert!(!fs.exists(&path));
        assert_eq!(
            fs.delete_dir(&dir).unwrap_err().code(),
            Code::FailedPrecondition
        );
        fs.delete_file(&join(&dir, "y")).unwrap();
        fs.delete_file(&join(&dir, "z")).unwrap();
        fs.delete_dir(&dir).unwrap();
    }

    #[test]
    fn errors_name_the_path() {
        let error = LocalFileSystem.open("/no/such/file").err().unwrap();
        assert_eq!(error.code(), Code::NotFound);
        assert_eq!(error.message(), "/no/such/file; No such file or directory");
        let error = super::super::for_path("s3://bucket/x").err().unwrap();
        assert_eq!(error.code(), Code::Unimplemented);
        let text = "File system scheme 's3' not implemented (file: 's3://bucket/x'): object stores";
        assert!(error.message().starts_with(text), "{error}");
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().display().to_string();
        assert_eq!(
            LocalFileSystem.create(&dir).err().unwrap().code(),
            Code::FailedPrecondition
        );
        assert_eq!(
            LocalFileSystem.list(&join(&dir, "q")).unwrap_err().code(),
            Code::NotFound
        );
    }
}
