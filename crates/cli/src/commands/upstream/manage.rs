//! `mcpproxy upstream remove|enable|disable|restart`.
//!
//! The daemon answers at once; what comes of it shows in the state of the server, which is watched
//! for a while.

use std::time::{Duration, Instant};

use config::Settings;
use mcp::RawValue;
use serde::Deserialize;
use serde_json::json;

use super::path;
use crate::api::Api;
use crate::args::ServerChange;
use crate::commands::{count, parse, parse_as};
use crate::escape;
use crate::exit::{Exit, Failure, Outcome};
use crate::printer::{Format, Printer};

/// How long the outcome is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(100);

/// How a server is, as far as it matters here.
#[derive(Debug, Deserialize)]
struct Server {
    state: String,
    tools: u64,
    last_error: Option<String>,
    advice: Option<String>,
}

/// What the daemon answered, and how far the server has come.
struct Change {
    answer: Box<RawValue>,
    /// None if nothing was waited for, or the server is gone.
    server: Option<Server>,
}

pub(super) async fn remove(
    change: &ServerChange,
    settings: &Settings,
    printer: &Printer,
) -> Outcome {
    let name = &change.server.name;
    let api = Api::start(settings).await?;
    let removed = async {
        let answer = api.delete(&path(name)).await?;
        let server = watch(&api, change).await?.map(|(server, _)| server);
        Ok(Change { answer, server })
    };
    let removed = removed.await;
    let removed = removed?;
    check_stopped(&removed, name)?;
    confirm(&removed.answer, &format!("'{name}' is removed"), printer)
}

pub(super) async fn switch(
    change: &ServerChange,
    enabled: bool,
    settings: &Settings,
    printer: &Printer,
) -> Outcome {
    let name = &change.server.name;
    let api = Api::start(settings).await?;
    let verb = if enabled { "enable" } else { "disable" };
    let switched = post(&api, change, verb).await;
    let switched = switched?;
    if enabled {
        let connected = check_connected(&switched, &format!("'{name}' is on"), name)?;
        let what = connected.unwrap_or_else(|| format!("'{name}' is on"));
        return confirm(&switched.answer, &what, printer);
    }
    check_stopped(&switched, name)?;
    confirm(&switched.answer, &format!("'{name}' is off"), printer)
}

pub(super) async fn restart(
    change: &ServerChange,
    settings: &Settings,
    printer: &Printer,
) -> Outcome {
    let name = &change.server.name;
    let api = Api::start(settings).await?;
    let restarted = post(&api, change, "restart").await?;
    let connected = check_connected(&restarted, &format!("'{name}' is restarted"), name)?;
    let what = connected.unwrap_or_else(|| format!("'{name}' is being connected"));
    confirm(&restarted.answer, &what, printer)
}

async fn post(api: &Api, change: &ServerChange, verb: &str) -> Result<Change, Failure> {
    let path = format!("{}/{verb}", path(&change.server.name));
    let answer = api.post(&path, &json!({})).await?;
    Ok(match watch(api, change).await? {
        Some((server, answer)) => Change {
            answer,
            server: Some(server),
        },
        None => Change {
            answer,
            server: None,
        },
    })
}

/// Waits until the server has come to rest, and returns how it is then. None if there is nothing to
/// wait for: no wish to wait, or no server any more.
async fn watch(
    api: &Api,
    change: &ServerChange,
) -> Result<Option<(Server, Box<RawValue>)>, Failure> {
    if change.no_wait {
        return Ok(None);
    }
    let deadline = Instant::now() + PATIENCE;
    loop {
        tokio::time::sleep(PAUSE).await;
        let answer = match api.get(&path(&change.server.name)).await {
            Err(failure) if failure.exit == Exit::NotFound => return Ok(None),
            answer => answer?,
        };
        let server: Server = parse_as(&answer)?;
        let is_moving = matches!(server.state.as_str(), "connecting" | "stopping");
        if !is_moving || Instant::now() >= deadline {
            return Ok(Some((server, answer)));
        }
    }
}

/// What to say of a server that is connected; none if it was not waited for. `done` is what was
/// done to it.
fn check_connected(change: &Change, done: &str, name: &str) -> Result<Option<String>, Failure> {
    let Some(server) = &change.server else {
        return Ok(None);
    };
    if server.state == "connecting" {
        let seconds = PATIENCE.as_secs();
        let what = format!("{done}, but still being connected after {seconds} s");
        return Err(Failure::new(Exit::Failed, what).advice(
            "see how it goes on with `mcpproxy upstream list`, and what it writes with `mcpproxy upstream logs`",
        ));
    }
    if let Some(error) = &server.last_error {
        let failure = Failure::new(Exit::Failed, format!("{done}, but not connected")).why(error);
        return Err(match &server.advice {
            Some(advice) => failure.advice(advice),
            None => failure,
        });
    }
    let tools = count(server.tools, "tool");
    Ok(Some(format!("'{name}' is connected: {tools}")))
}

fn check_stopped(change: &Change, name: &str) -> Result<(), Failure> {
    let server = change.server.as_ref();
    if server.is_none_or(|server| server.state != "stopping") {
        return Ok(());
    }
    let seconds = PATIENCE.as_secs();
    let what = format!("the process of '{name}' is still running after {seconds} s");
    Err(Failure::new(Exit::Failed, what)
        .advice("the config is changed; look at the process with `ps`, and end it if need be"))
}

fn confirm(answer: &RawValue, what: &str, printer: &Printer) -> Outcome {
    let answer = parse(answer)?;
    match printer.format {
        Format::Table => printer.text(&format!("{}\n", escape::line(what))),
        _ => printer.data(&answer, None),
    }
    Ok(Exit::Ok)
}
