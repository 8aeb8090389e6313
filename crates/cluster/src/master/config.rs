//! What a session's ConfigProto and a run's RunOptions mean here.

use std::time::Duration;

use prost::Message;
use tensorfleet_passes::PassOptions;
use tensorfleet_proto::rewriter_config::Toggle;
use tensorfleet_proto::{ConfigProto, optimizer_options};
use tensorfleet_status::{Result, invalid_argument};

/// The request's config over the server's, field by field as protocol buffers merge.
pub(super) fn merged(server: &ConfigProto, request: ConfigProto) -> Result<ConfigProto> {
    if *server == ConfigProto::default() {
        return Ok(request);
    }
    let mut config = server.clone();
    config
        .merge(request.encode_to_vec().as_slice())
        .map_err(|error| invalid_argument!("the session's config cannot be merged: {error}"))?;
    Ok(config)
}

/// Refuses what a server cannot do, in TensorFlow's words.
pub(super) fn check(config: &ConfigProto) -> Result<()> {
    if config.use_per_session_threads || !config.session_inter_op_thread_pool.is_empty() {
        return Err(invalid_argument!(
            "Distributed session does not support session thread pool options."
        ));
    }
    let options = config.graph_options.as_ref();
    if options.is_some_and(|options| options.place_pruned_graph) {
        tracing::warn!(
            "Distributed session does not support the place_pruned_graph option: the whole graph is placed"
        );
    }
    Ok(())
}

/// Which rewrites the client allows: off means off.
pub(super) fn passes(config: &ConfigProto) -> PassOptions {
    let mut passes = PassOptions::ALL;
    // TensorFlow's executor of that name knows no frames.
    let experimental = config.experimental.as_ref();
    passes.lower =
        experimental.is_none_or(|options| options.executor_type != "SINGLE_THREADED_EXECUTOR");
    let Some(options) = &config.graph_options else {
        return passes;
    };
    if let Some(optimizer) = &options.optimizer_options
        && optimizer.opt_level == optimizer_options::Level::L0 as i32
    {
        passes.fold = false;
        passes.dedupe = false;
        passes.unread = false;
    }
    if let Some(rewrite) = &options.rewrite_options {
        let off = |toggle: i32| toggle == Toggle::Off as i32;
        if rewrite.disable_meta_optimizer {
            return PassOptions::NONE;
        }
        passes.fold &= !off(rewrite.constant_folding);
        passes.dedupe &=
            !off(rewrite.common_subgraph_elimination) && !off(rewrite.arithmetic_optimization);
        passes.inline &= !off(rewrite.function_optimization);
        passes.unread &= !off(rewrite.dependency_optimization);
    }
    passes
}

/// After which time an operation is given up, if its message says so.
pub(super) fn timeout(millis: i64) -> Option<Duration> {
    u64::try_from(millis)
        .ok()
        .filter(|millis| *millis > 0)
        .map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensorfleet_proto::{GraphOptions, OptimizerOptions, RewriterConfig, config_proto};

    fn with_rewrite(rewrite: RewriterConfig) -> ConfigProto {
        ConfigProto {
            graph_options: Some(GraphOptions {
                rewrite_options: Some(rewrite),
                ..GraphOptions::default()
            }),
            ..ConfigProto::default()
        }
    }

    #[test]
    fn the_request_wins_over_the_server() {
        let server = ConfigProto {
            operation_timeout_in_ms: 5,
            allow_soft_placement: true,
            ..ConfigProto::default()
        };
        let request = ConfigProto {
            operation_timeout_in_ms: 7,
            ..ConfigProto::default()
        };
        let config = merged(&server, request).unwrap();
        assert!(config.allow_soft_placement);
        assert_eq!(config.operation_timeout_in_ms, 7);
    }

    #[test]
    fn off_means_off() {
        assert_eq!(passes(&ConfigProto::default()), PassOptions::ALL);
        let off = Toggle::Off as i32;
        let config = with_rewrite(RewriterConfig {
            constant_folding: off,
            ..RewriterConfig::default()
        });
        assert!(!passes(&config).fold && passes(&config).dedupe);
        let config = with_rewrite(RewriterConfig {
            disable_meta_optimizer: true,
            ..RewriterConfig::default()
        });
        assert_eq!(passes(&config), PassOptions::NONE);
        let config = ConfigProto {
            graph_options: Some(GraphOptions {
                optimizer_options: Some(OptimizerOptions {
                    opt_level: optimizer_options::Level::L0 as i32,
                    ..OptimizerOptions::default()
                }),
                ..GraphOptions::default()
            }),
            ..ConfigProto::default()
        };
        assert!(!passes(&config).fold && passes(&config).inline);
    }

    #[test]
    fn an_executor_without_frames_gets_none() {
        let config = ConfigProto {
            experimental: Some(config_proto::Experimental {
                executor_type: "SINGLE_THREADED_EXECUTOR".to_owned(),
                ..config_proto::Experimental::default()
            }),
            ..ConfigProto::default()
        };
        assert!(!passes(&config).lower && passes(&config).inline);
    }

    #[test]
    fn only_positive_timeouts_count() {
        assert_eq!(timeout(5), Some(Duration::from_millis(5)));
        assert_eq!((timeout(0), timeout(-1)), (None, None));
    }
}
