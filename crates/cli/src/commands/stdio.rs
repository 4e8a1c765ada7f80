//! `mcpproxy stdio`: MCP on stdin and stdout, through the daemon, which is started where none runs.

mod relay;

use std::path::PathBuf;
use std::time::Duration;

use config::{Config, Settings};

use crate::api::Api;
use crate::background;
use crate::exit::{Exit, Outcome};

/// How long an unused connection to the daemon is kept at most.
const IDLE: Duration = Duration::from_mins(1);

pub(crate) async fn run(settings: &Settings) -> Outcome {
    let socket = Api::socket(settings).await?;
    // A daemon that runs goes on with the last good config, and so does its client.
    let config = crate::settings::load(settings).map(|loaded| loaded.config);
    let options = options(&config.unwrap_or_default(), socket, settings);
    // What keeps it from starting is told to the client in answer to its first request.
    if let Err(failure) = background::ensure(settings, options.data_dir()).await {
        tracing::warn!("{}", failure.one_line());
    }
    relay::run(&options, tokio::io::stdin(), tokio::io::stdout()).await?;
    Ok(Exit::Ok)
}

fn options(config: &Config, socket: PathBuf, settings: &Settings) -> relay::Options {
    let limits = &config.limits;
    relay::Options {
        socket,
        starts_daemon: Some(settings.clone()),
        request_bytes: limits.request_bytes,
        // What an upstream said, and what the daemon adds to it.
        event_bytes: limits.upstream_message_bytes.saturating_mul(2),
        reconnect: limits.reconnect_time.get(),
        // Closed by us before the daemon closes them, so that no request meets a closing one.
        idle: (limits.idle_timeout.get() / 2).min(IDLE),
        grace: config.shutdown_grace,
    }
}
