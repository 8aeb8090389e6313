//! One chief per checkpoint directory.

use std::fs::{File, TryLockError};
use std::io::{Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use tensorfleet_checkpoint::fs::split_scheme;
use tensorfleet_status::{Result, failed_precondition};

const NAME: &str = ".chief.lock";

/// How long a chief that was killed may take to be gone.
const PATIENCE: Duration = Duration::from_secs(2);

/// Held by the chief that writes into a directory; freed by the system when its process ends, however it does.
pub(super) struct ChiefLock {
    _file: File,
}

impl ChiefLock {
    /// Takes the lock of a local directory; `None` where files cannot be locked.
    pub(super) fn take(dir: &str) -> Result<Option<ChiefLock>> {
        let ("" | "file", path) = split_scheme(dir) else {
            return Ok(None);
        };
        let path = Path::new(path).join(NAME);
        let opened = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path);
        // Who cannot write here is told so by the hook that saves.
        let Ok(mut file) = opened else {
            return Ok(None);
        };
        let began = Instant::now();
        let mut tried = file.try_lock();
        while matches!(tried, Err(TryLockError::WouldBlock)) && began.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(50));
            tried = file.try_lock();
        }
        match tried {
            Ok(()) => {
                let _ = file.set_len(0);
                let _ = write!(file, "process {}", std::process::id());
                Ok(Some(ChiefLock { _file: file }))
            }
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = file.read_to_string(&mut holder);
                Err(failed_precondition!(
                    "another chief ({holder}) writes checkpoints into {dir}; only one task may be chief: check is_chief and --task_index, or give each training its own directory"
                ))
            }
            Err(TryLockError::Error(_)) => Ok(None),
        }
    }
}
