//! Which store an address belongs to: one that was registered, or one that is made from the environment.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::{ClientOptions, ObjectStore, RetryConfig};
use tensorfleet_checkpoint::fs;
use tensorfleet_status::{Result, invalid_argument, not_found};

use super::error::status;

/// By scheme and host, so that connections are used again.
static STORES: LazyLock<Mutex<HashMap<String, Arc<dyn ObjectStore>>>> =
    LazyLock::new(Mutex::default);

/// Reads addresses that begin with `base` (`memory://name`, `s3://bucket`) from this store: one in memory, one with
/// other credentials than the environment's, or one of another kind.
///
/// ```
/// use std::sync::Arc;
///
/// use tensorfleet_input::object_store::memory::InMemory;
/// use tensorfleet_input::{Dataset, register_object_store};
///
/// register_object_store("memory://empty", Arc::new(InMemory::new()))?;
/// let error = Dataset::from_files("memory://empty/train-*").err().unwrap();
/// assert!(error.message().contains("no object matches"));
/// # Ok::<(), tensorfleet_tensor::Status>(())
/// ```
pub fn register_object_store(base: &str, store: Arc<dyn ObjectStore>) -> Result<()> {
    let base = base.strip_suffix('/').unwrap_or(base);
    let (scheme, host) = fs::split_scheme(base);
    if scheme.is_empty() || scheme == "file" || host.contains('/') {
        return Err(invalid_argument!(
            "'{base}' cannot stand for a store: write scheme://name, as in memory://data or s3://bucket"
        ));
    }
    let mut stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
    stores.insert(base.to_owned(), store);
    Ok(())
}

/// The store of an address; `None` for schemes that are no store's.
pub(super) fn store_of(scheme: &str, base: &str) -> Result<Option<Arc<dyn ObjectStore>>> {
    let mut stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(store) = stores.get(base) {
        return Ok(Some(store.clone()));
    }
    let store: object_store::Result<Arc<dyn ObjectStore>> = match scheme {
        "s3" => {
            let builder = AmazonS3Builder::from_env().with_url(base);
            builder
                .with_retry(patience())
                .build()
                .map(|s| Arc::new(s) as _)
        }
        "gs" => {
            let builder = GoogleCloudStorageBuilder::from_env().with_url(base);
            builder
                .with_retry(patience())
                .build()
                .map(|s| Arc::new(s) as _)
        }
        "http" | "https" => {
            let options = ClientOptions::new().with_allow_http(scheme == "http");
            let builder = HttpBuilder::new().with_url(base).with_retry(patience());
            let builder = builder.with_client_options(options);
            builder.build().map(|s| Arc::new(s) as _)
        }
        "memory" => {
            return Err(not_found!(
                "there is no store {base}: register_object_store(\"{base}\", …) makes one known"
            ));
        }
        _ => return Ok(None),
    };
    let store = store.map_err(|error| status(base, "open the store", &error))?;
    stores.insert(base.to_owned(), store.clone());
    Ok(Some(store))
}

/// A store that is busy or restarts is asked again, a wrong address is said within half a minute.
fn patience() -> RetryConfig {
    RetryConfig {
        max_retries: 5,
        retry_timeout: Duration::from_secs(30),
        ..RetryConfig::default()
    }
}
