//! `mcpproxy upstream list`.

use config::Settings;
use serde_json::Value;

use crate::api::Api;
use crate::commands::{count, parse};
use crate::escape;
use crate::exit::{Exit, Outcome};
use crate::printer::{Entry, Format, Printer};

pub(super) async fn run(settings: &Settings, printer: &Printer) -> Outcome {
    let api = Api::start(settings).await?;
    let answer = api.get("/servers").await;
    let answer = parse(&answer?)?;
    if printer.format != Format::Table {
        printer.data(&answer, Some("servers"));
        return Ok(Exit::Ok);
    }
    let servers = answer["servers"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    if servers.is_empty() {
        printer.note("there are no servers; add one with `mcpproxy upstream add`");
        return Ok(Exit::Ok);
    }
    printer.table(
        &["SERVER", "STATE", "TOOLS", "READ", "WRITE", "DESTRUCTIVE"],
        servers.iter().map(row).collect(),
    );
    for server in servers {
        note_trouble(server, printer);
    }
    Ok(Exit::Ok)
}

fn row(server: &Value) -> Vec<Entry> {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let lanes = &server["lanes"];
    vec![
        text(&server["name"]).into(),
        text(&server["state"]).into(),
        server["tools"].to_string().into(),
        lanes["read"].to_string().into(),
        lanes["write"].to_string().into(),
        lanes["destructive"].to_string().into(),
    ]
}

/// The last error of a server and what to do about it, below the table: both are sentences.
fn note_trouble(server: &Value, printer: &Printer) {
    let text = |member: &str| escape::line(server[member].as_str().unwrap_or_default());
    if let Some(held) = server["held"].as_u64().filter(|held| *held > 0) {
        let name = text("name");
        printer.note(&format!(
            "\n{name}: {} to be approved\n  do: look with `mcpproxy upstream diff {name}`",
            count(held, "tool")
        ));
    }
    if server["last_error"].is_string() {
        printer.note(&format!(
            "\n{}: {}\n  do: {}",
            text("name"),
            text("last_error"),
            text("advice")
        ));
    }
}
