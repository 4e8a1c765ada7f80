//! `mcpproxy stdio`: MCP on stdin and stdout, through the daemon where one runs.

mod relay;

use std::sync::Arc;

use config::Settings;
use daemon::{AgentDoor, DataDir, Engine};
use mcp::server::{LineOptions, serve_lines};
use tokio::net::UnixStream;

use crate::api::{guardian, log_failure, open_pins};
use crate::exit::{Exit, Failure, Outcome};

pub(crate) async fn run(settings: &Settings) -> Outcome {
    let config = crate::settings::load(settings)?.config;
    let data_dir = settings.data_dir(&config);
    let socket = DataDir::socket(&data_dir);
    if UnixStream::connect(&socket).await.is_ok() {
        relay::run(socket).await?;
        return Ok(Exit::Ok);
    }
    let data_dir = DataDir::prepare(&data_dir).map_err(|error| {
        Failure::from_error(Exit::Failed, "the data directory cannot be used", &error)
    })?;
    let surroundings = daemon::surroundings(&data_dir, guardian());
    let activity = daemon::open_activity(data_dir.path(), &config).await;
    let activity = activity.map_err(|error| log_failure(&error))?.activity;
    let pins = open_pins(&data_dir)?;
    let options = LineOptions {
        line_limit: config.limits.request_bytes,
        session_bytes: config.limits.session_bytes,
        ..LineOptions::default()
    };
    let engine = Engine::start(Arc::new(config), surroundings, activity, pins).await;
    let door = Arc::new(AgentDoor::new(Arc::clone(&engine)));
    let served = serve_lines(door, tokio::io::stdin(), tokio::io::stdout(), options);
    let outcome = served.await;
    engine.shutdown().await;
    engine.activity().close().await.map_err(|error| {
        Failure::from_error(Exit::Failed, "the activity log is not complete", &error)
    })?;
    outcome.map_err(|error| Failure::from_error(Exit::Failed, "the client is gone", &error))?;
    Ok(Exit::Ok)
}
