//! `mcpproxy upstream remove|enable|disable|restart`.

use config::Settings;
use mcp::RawValue;
use serde_json::json;

use super::path;
use crate::api::{Api, Needs};
use crate::commands::parse;
use crate::escape;
use crate::exit::{Exit, Failure, Outcome};
use crate::printer::{Format, Printer};

pub(super) async fn remove(name: &str, settings: &Settings, printer: &Printer) -> Outcome {
    let api = Api::reach(settings, Needs::Config).await?;
    let answer = api.delete(&path(name)).await;
    api.close().await;
    confirm(answer, &format!("'{name}' is removed"), printer)
}

pub(super) async fn switch(
    name: &str,
    enabled: bool,
    settings: &Settings,
    printer: &Printer,
) -> Outcome {
    let (verb, state) = if enabled {
        ("enable", "on")
    } else {
        ("disable", "off")
    };
    let api = Api::reach(settings, Needs::Config).await?;
    let answer = api
        .post(&format!("{}/{verb}", path(name)), &json!({}))
        .await;
    api.close().await;
    confirm(answer, &format!("'{name}' is {state}"), printer)
}

/// Only a daemon has anything to restart.
pub(super) async fn restart(name: &str, settings: &Settings, printer: &Printer) -> Outcome {
    let api = Api::daemon(settings).await?;
    let answer = api
        .post(&format!("{}/restart", path(name)), &json!({}))
        .await;
    confirm(answer, &format!("'{name}' is being connected"), printer)
}

fn confirm(answer: Result<Box<RawValue>, Failure>, what: &str, printer: &Printer) -> Outcome {
    let answer = parse(&answer?)?;
    match printer.format {
        Format::Table => printer.text(&format!("{}\n", escape::line(what))),
        _ => printer.data(&answer, None),
    }
    Ok(Exit::Ok)
}
