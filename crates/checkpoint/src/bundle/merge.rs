//! [`merge`]: makes one checkpoint of several, by renaming data files (MergeV2Checkpoints).
//!
//! Order matters for whoever dies in between: the merged index is written to a temporary file, the
//! data files are renamed, the index appears under its name, and only then the old indexes go.

use std::collections::btree_map::Entry as Slot;
use std::collections::{BTreeMap, HashMap, HashSet};

use tensorfleet_status::{Code, Result, internal, invalid_argument};

use super::entry::Entry;
use super::index::{Index, encode_index};
use super::names::{data_file_name, index_file_name, printable};
use crate::fs::{FileSystem, dir_name, for_path, temp_path};

/// How [`merge`] treats its input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MergeOptions {
    /// Remove the directories of the merged checkpoints if nothing is left in them.
    pub delete_old_dirs: bool,
    /// Take absent checkpoints for empty ones, as long as there is one.
    pub allow_missing_files: bool,
}

impl Default for MergeOptions {
    fn default() -> MergeOptions {
        MergeOptions {
            delete_old_dirs: true,
            allow_missing_files: false,
        }
    }
}

/// Merges checkpoints into one with the prefix `destination`. The old ones are gone afterwards.
pub fn merge(prefixes: &[&str], destination: &str, options: MergeOptions) -> Result<()> {
    let fs = for_path(destination)?;
    let mut merged = Merged::default();
    let mut found = Vec::new();
    for &prefix in prefixes {
        match Index::open(fs.as_ref(), prefix) {
            Ok(index) => {
                merged.add(prefix, &index)?;
                found.push(prefix);
            }
            Err(status) if status.code() != Code::NotFound => return Err(status),
            Err(_) if options.allow_missing_files => {}
            Err(_) => {
                return Err(invalid_argument!(
                    "allow_missing_files was set to false and {prefix} did not exist.NOT_FOUND: {prefix} not found"
                ));
            }
        }
    }
    if found.is_empty() {
        return Err(invalid_argument!(
            "At least one prefix checkpoint file must exist, but none existed."
        ));
    }
    merged.publish(fs.as_ref(), destination)?;
    for prefix in &found {
        if *prefix != destination {
            fs.delete_file(&index_file_name(prefix))?;
        }
    }
    if options.delete_old_dirs {
        let dirs: HashSet<&str> = found.iter().map(|prefix| dir_name(prefix)).collect();
        for dir in dirs {
            if dir != dir_name(destination) {
                // A directory that still holds something stays.
                let _ = fs.delete_dir(dir);
            }
        }
    }
    Ok(())
}

/// Entries of all checkpoints so far, and the data files they use.
#[derive(Default)]
struct Merged {
    entries: BTreeMap<Vec<u8>, Entry>,
    /// Old names by new number, in order of first use.
    data_files: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Merged {
    fn add(&mut self, prefix: &str, index: &Index) -> Result<()> {
        for item in index.iter() {
            let (key, mut entry) = item?;
            match self.entries.entry(key) {
                Slot::Vacant(slot) => {
                    let old = data_file_name(prefix, entry.shard, index.num_shards);
                    let next = self.data_files.len() as u32;
                    entry.shard = *self.numbers.entry(old).or_insert_with_key(|old| {
                        self.data_files.push(old.clone());
                        next
                    });
                    slot.insert(entry);
                }
                Slot::Occupied(slot) => {
                    let key = printable(slot.key()).into_owned();
                    join_slices(&key, prefix, slot.into_mut(), entry)?;
                }
            }
        }
        Ok(())
    }

    fn publish(&self, fs: &dyn FileSystem, destination: &str) -> Result<()> {
        let count = self.data_files.len().max(1) as u32;
        let new_name = |number: usize| data_file_name(destination, number as u32, count);
        for (number, old) in self.data_files.iter().enumerate() {
            let new = new_name(number);
            if *old != new && self.numbers.contains_key(&new) {
                return Err(invalid_argument!(
                    "merging into {destination} would overwrite {new}, a part of what is merged"
                ));
            }
        }
        fs.create_dir(dir_name(destination))?;
        let index = encode_index(count, &self.entries)?;
        let path = index_file_name(destination);
        if !fs.has_atomic_rename() {
            self.rename_data(fs, new_name)?;
            return fs.write_atomic(&path, &index);
        }
        let temp = temp_path(&path, "tempstate");
        let published = fs
            .write_atomic(&temp, &index)
            .and_then(|()| self.rename_data(fs, new_name))
            .and_then(|()| fs.rename(&temp, &path));
        if published.is_err() {
            let _ = fs.delete_file(&temp);
        }
        published
    }

    fn rename_data(&self, fs: &dyn FileSystem, new_name: impl Fn(usize) -> String) -> Result<()> {
        for (number, old) in self.data_files.iter().enumerate() {
            let new = new_name(number);
            if *old != new {
                fs.rename(old, &new)?;
            }
        }
        Ok(())
    }
}

/// Adds the slices of another checkpoint to an entry that is already there.
fn join_slices(key: &str, prefix: &str, existing: &mut Entry, entry: Entry) -> Result<()> {
    if existing.slices.is_empty() {
        return Err(invalid_argument!(
            "Duplicate tensor keyed by {key} encountered, when merging prefix: {prefix}"
        ));
    }
    if entry.slices.is_empty() {
        return Err(internal!(
            "Duplicate tensor keyed by {key}; attempting to merge in a non-slice bundle entry"
        ));
    }
    if existing.dtype != entry.dtype || existing.shape != entry.shape {
        return Err(invalid_argument!(
            "slices of {key} disagree: {}{} and {}{}, when merging prefix: {prefix}",
            existing.dtype,
            existing.shape,
            entry.dtype,
            entry.shape
        ));
    }
    existing.slices.extend(entry.slices);
    Ok(())
}
