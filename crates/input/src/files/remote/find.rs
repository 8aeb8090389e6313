//! The objects of an address or a pattern.

use futures_util::TryStreamExt;
use object_store::ObjectStoreExt;
use tensorfleet_checkpoint::fs;
use tensorfleet_status::{Result, not_found};

use super::Location;
use super::error::status;
use super::net::Pending;
use crate::files::place::is_directory;

/// The addresses of all objects that a location names, sorted; none is an error.
pub(super) fn find(location: &Location) -> Result<Vec<String>> {
    if fs::is_pattern(&location.key) {
        return matching(location);
    }
    let (store, path) = (location.store.clone(), location.path()?);
    let found = Pending::start(async move {
        match store.head(&path).await {
            Err(error @ object_store::Error::NotFound { .. }) => {
                // Stores have no directories, only names that begin alike.
                let below = store.list(Some(&path)).try_next().await;
                Err((error, matches!(below, Ok(Some(_)))))
            }
            found => found.map_err(|error| (error, false)),
        }
    })?;
    match found.wait()? {
        Ok(_) => Ok(vec![location.url.clone()]),
        Err((_, true)) => Err(is_directory(&location.url)),
        Err((error, false)) => Err(status(&location.url, "find", &error)),
    }
}

fn matching(location: &Location) -> Result<Vec<String>> {
    let pattern = location.key.clone();
    let dir = location.path_of(literal_dir(&pattern))?;
    let store = location.store.clone();
    // Only names that match are kept, however many there are.
    let names = Pending::start(async move {
        let mut names = Vec::new();
        let mut objects = store.list(Some(&dir));
        while let Some(object) = objects.try_next().await? {
            let name = object.location.as_ref();
            if matches(&pattern, name) {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    })?;
    let names: object_store::Result<Vec<String>> = names.wait()?;
    let mut names = names.map_err(|error| status(&location.url, "list", &error))?;
    if names.is_empty() {
        return Err(not_found!(
            "no object matches \"{}\"; * stands for any name up to the next /",
            location.url
        ));
    }
    names.sort_unstable();
    let urls = names.iter().map(|name| format!("{}/{name}", location.base));
    Ok(urls.collect())
}

/// The part of a pattern that is a directory and no pattern.
fn literal_dir(pattern: &str) -> &str {
    let literal = pattern.split(['*', '?', '[', '\\']).next();
    let literal = literal.unwrap_or_default();
    literal.rsplit_once('/').map_or("", |(dir, _)| dir)
}

/// Part by part: nothing in a pattern stands for a `/`.
fn matches(pattern: &str, name: &str) -> bool {
    let (patterns, names) = (pattern.split('/'), name.split('/'));
    patterns.clone().count() == names.clone().count()
        && patterns
            .zip(names)
            .all(|(pattern, name)| fs::glob_matches(pattern, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_part_by_part() {
        assert_eq!(literal_dir("a/b/c-*.csv"), "a/b");
        assert_eq!(literal_dir("a/b?/c"), "a");
        assert_eq!(literal_dir("*.csv"), "");
        assert!(matches("a/*/c-?.csv", "a/b/c-1.csv"));
        assert!(!matches("a/*", "a/b/c"));
        assert!(!matches("a/*.csv", "a"));
    }
}
