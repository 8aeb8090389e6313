//! What a server does when nobody asks for anything: it closes idle sessions and gives memory back.

use std::sync::Arc;
use std::time::Duration;

use tensorfleet_tensor::trim_memory;

use crate::services::Services;

/// How often idle sessions and forgotten leases are looked for, at least.
const COLLECT_EVERY: Duration = Duration::from_secs(10);

/// A server without a call for so long gives back the memory it does not use.
const TRIM_AFTER: Duration = Duration::from_secs(10);

/// Lets go of what others left behind, again and again.
pub(crate) async fn collect(services: Arc<Services>, idle: Option<Duration>) {
    let idle = idle.unwrap_or(Duration::MAX);
    loop {
        tokio::time::sleep((idle / 4).clamp(Duration::from_millis(50), COLLECT_EVERY)).await;
        services.leases.end_old();
        services.master.collect_idle().await;
    }
}

/// Gives memory back after every quiet time.
pub(crate) async fn trim(services: Arc<Services>) {
    let mut calls = services.calls();
    loop {
        tokio::time::sleep(TRIM_AFTER).await;
        let now = services.calls();
        if now == calls {
            // It fails only when the server stops.
            let _ = tokio::task::spawn_blocking(trim_memory).await;
        }
        calls = now;
    }
}
