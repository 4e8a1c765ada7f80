//! `mcpproxy status`: what the daemon is doing.

use config::Settings;
use serde_json::Value;

use crate::api::Api;
use crate::exit::{Exit, Outcome};
use crate::printer::{Format, Printer};
use crate::time::rough;

pub(crate) async fn run(settings: &Settings, printer: &Printer) -> Outcome {
    let api = Api::daemon(settings).await?;
    let status = super::parse(&api.get("/status").await?)?;
    if printer.format != Format::Table {
        printer.data(&status, None);
        return Ok(Exit::Ok);
    }
    let text = |name: &str| status.get(name).map(Value::to_string).unwrap_or_default();
    let servers: Vec<String> = status["servers"]
        .as_object()
        .map(|states| {
            states
                .iter()
                .map(|(state, count)| format!("{count} {state}"))
                .collect()
        })
        .unwrap_or_default();
    let listen = status["listen"].as_str().unwrap_or_default();
    printer.text(&format!(
        "mcpproxy {version} runs as process {pid} on http://{listen}/mcp, for {uptime}\nservers: {servers}\ntools:   {tools}\n",
        version = status["version"].as_str().unwrap_or_default(),
        pid = text("pid"),
        uptime = rough(status["uptime_seconds"].as_i64().unwrap_or_default()),
        servers = if servers.is_empty() { "none".to_owned() } else { servers.join(", ") },
        tools = text("tools"),
    ));
    Ok(Exit::Ok)
}
