//! `mcpproxy stdio`: MCP on stdin and stdout, through the daemon where one runs.

mod relay;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use config::{Config, Settings};
use daemon::{AgentEndpoint, DataDir, Engine};
use mcp::server::{LineOptions, serve_lines};
use platform::Watchdog;
use tokio::net::UnixStream;

use crate::api::{log_failure, open_pins};
use crate::exit::{Exit, Failure, Outcome};

/// How long an unused connection to the daemon is kept at most.
const IDLE: Duration = Duration::from_mins(1);

pub(crate) async fn run(settings: &Settings) -> Outcome {
    let config = crate::settings::load(settings)?.config;
    let data_dir = settings.data_dir(&config);
    let socket = DataDir::socket(&data_dir);
    if UnixStream::connect(&socket).await.is_ok() {
        let options = relay_options(&config, socket);
        relay::run(&options, tokio::io::stdin(), tokio::io::stdout()).await?;
        return Ok(Exit::Ok);
    }
    let data_dir = DataDir::prepare(&data_dir).map_err(|error| {
        Failure::from_error(Exit::Failed, "the data directory cannot be used", &error)
    })?;
    let launch_context = daemon::launch_context(&data_dir, Watchdog::of_this_program(), &config);
    let redactor = &launch_context.redactor;
    let activity = daemon::open_activity(data_dir.path(), &config, redactor).await;
    let activity = activity.map_err(|error| log_failure(&error))?.activity;
    let pins = open_pins(&data_dir)?;
    let lines = LineOptions {
        line_limit: config.limits.request_bytes,
        session_bytes: config.limits.session_bytes,
        grace: config.shutdown_grace,
        ..LineOptions::default()
    };
    let engine = Engine::start(Arc::new(config), launch_context, activity, pins).await;
    let endpoint = Arc::new(AgentEndpoint::new(Arc::clone(&engine)));
    let outcome = serve_lines(endpoint, tokio::io::stdin(), tokio::io::stdout(), lines).await;
    engine.shutdown().await;
    engine.activity().close().await.map_err(|error| {
        Failure::from_error(Exit::Failed, "the activity log is not complete", &error)
    })?;
    outcome.map_err(|error| Failure::from_error(Exit::Failed, "the client is gone", &error))?;
    Ok(Exit::Ok)
}

fn relay_options(config: &Config, socket: PathBuf) -> relay::Options {
    let limits = &config.limits;
    relay::Options {
        socket,
        request_bytes: limits.request_bytes,
        // What an upstream said, and what the daemon adds to it.
        event_bytes: limits.upstream_message_bytes.saturating_mul(2),
        reconnect: limits.reconnect_time.get(),
        // Closed by us before the daemon closes them, so that no request meets a closing one.
        idle: (limits.idle_timeout.get() / 2).min(IDLE),
        grace: config.shutdown_grace,
    }
}
