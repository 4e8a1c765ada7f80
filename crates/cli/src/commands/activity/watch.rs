//! `mcpproxy activity watch`: records as they are made, until Ctrl-C.

use std::time::Duration;

use axum::body::Body;
use config::Settings;
use http_body_util::BodyExt;
use jiff::Timestamp;
use mcp::sse::{Event, EventParser};
use serde_json::Value;

use super::list::row;
use crate::api::{Api, lost};
use crate::args::ActivityFilter;
use crate::exit::{Exit, Failure, Outcome};
use crate::printer::{Format, Printer};

/// The longest event that is taken.
const EVENT_LIMIT: usize = 16 * 1024 * 1024;

/// The pause before looking for a daemon that went away.
const RETRY: Duration = Duration::from_secs(1);

pub(super) async fn run(
    settings: &Settings,
    filter: &ActivityFilter,
    printer: &Printer,
) -> Outcome {
    // The first connection must work; after that, a daemon may be started again.
    let api = Api::daemon(settings).await?;
    let path = format!("/events{}", super::query(filter, []));
    let first = api.events(&path, None).await?;
    printer.note("watching; end with Ctrl-C");
    tokio::select! {
        outcome = follow(settings, &path, first, printer) => outcome,
        _ = tokio::signal::ctrl_c() => Ok(Exit::Ok),
    }
}

async fn follow(settings: &Settings, path: &str, first: Body, printer: &Printer) -> Outcome {
    let mut last_id = None;
    let mut body = first;
    loop {
        // A stream that breaks off is taken up again where it broke.
        let broken = print_all(body, &mut last_id, printer).await;
        if let Err(failure) = broken {
            printer.note(&format!("warning: {}", failure.what));
        }
        printer.note("the daemon is gone; waiting for it to come back");
        body = loop {
            tokio::time::sleep(RETRY).await;
            let Ok(api) = Api::daemon(settings).await else {
                continue;
            };
            match api.events(path, last_id.as_deref()).await {
                Ok(body) => break body,
                Err(failure) if failure.exit == Exit::Unreachable => {}
                Err(failure) => return Err(failure),
            }
        };
    }
}

async fn print_all(
    mut body: Body,
    last_id: &mut Option<String>,
    printer: &Printer,
) -> Result<(), Failure> {
    let mut parser = EventParser::new(EVENT_LIMIT);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|error| lost(&error))?.into_data() else {
            continue;
        };
        parser.push(&data);
        while let Some(event) = parser.next_event() {
            let event = event.map_err(|error| lost(&error))?;
            print(&event, printer)?;
            if event.id.is_some() {
                *last_id = event.id;
            }
        }
    }
    Ok(())
}

fn print(event: &Event, printer: &Printer) -> Result<(), Failure> {
    let name = event.event.as_deref().unwrap_or_default();
    if name == "place_lost" {
        printer.note("warning: some records were missed; see them with `mcpproxy activity list`");
        return Ok(());
    }
    if !name.starts_with("activity.") {
        return Ok(());
    }
    let record: Value = serde_json::from_slice(&event.data)
        .map_err(|error| Failure::from_error(Exit::Failed, "an event is not understood", &error))?;
    match printer.format {
        Format::Table => printer.table(&[], vec![row(&record, Timestamp::now())]),
        Format::Yaml => printer.text(&format!("---\n{}", crate::yaml::to_yaml(&record))),
        // One value a line, so that it can be piped.
        Format::Json | Format::Jsonl => printer.text(&format!("{record}\n")),
    }
    Ok(())
}
