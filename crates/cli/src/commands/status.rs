//! `mcpproxy status`: what the daemon is doing.

use config::Settings;
use serde_json::Value;

use crate::api::Api;
use crate::escape;
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
    printer.text(&format!("started: {}\n", started(&status["started_by"])));
    if let Some(wanted) = status["listen_wanted"].as_str() {
        printer.text(&format!(
            "port:    {wanted} was taken when the daemon started, so clients that use HTTP do not find it there\n"
        ));
    }
    if let Some(text) = undecided_tools(&status["undecided_tools"]) {
        printer.text(&format!("lanes:   {text}; decide with `{DECIDE}`\n"));
    }
    if let Some(problem) = log_problem(&status["activity"]) {
        printer.text(&format!("log:     {problem}\n"));
    }
    Ok(Exit::Ok)
}

/// Who started the daemon, which says whose environment its servers have.
fn started(by: &Value) -> String {
    match by["kind"].as_str() {
        Some("command") => format!(
            "in the background by `mcpproxy {}` (process {}), with its environment",
            by["command"].as_str().unwrap_or_default(),
            by["pid"]
        ),
        Some("service") => "by the service manager, with its environment".to_owned(),
        Some("terminal") => "by `mcpproxy serve`, with its environment".to_owned(),
        _ => "by an earlier version".to_owned(),
    }
}

/// How the operator decides about tools without hints.
pub(super) const DECIDE: &str = "mcpproxy config set intent_declaration.unannotated infer";

/// Which tools may run on any lane because nobody has decided about tools without hints.
pub(super) fn undecided_tools(undecided: &Value) -> Option<String> {
    let count = undecided["count"].as_u64().filter(|count| *count > 0)?;
    let examples = undecided["examples"].as_array().into_iter().flatten();
    let examples: Vec<&str> = examples.filter_map(Value::as_str).collect();
    let more = match count.saturating_sub(examples.len() as u64) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let (tools, look, change) = match count {
        1 => ("1 tool".to_owned(), "looks", "it changes"),
        several => (format!("{several} tools"), "look", "they change"),
    };
    Some(format!(
        "{tools} without hints {look} as if {change} something, and may run on the lane for reading: {}{more}",
        escape::line(&examples.join(", "))
    ))
}

/// What is wrong with the activity log, if anything is.
pub(super) fn log_problem(activity: &Value) -> Option<String> {
    let state = activity["state"].as_str().unwrap_or("good");
    let missed = &activity["not_recorded"];
    if state == "good" && missed.is_null() {
        return None;
    }
    let number = |name: &str| missed[name].as_u64().unwrap_or(0);
    let mut problem = match state {
        "full" => "there is no space to write the activity log".to_owned(),
        _ => "the activity log cannot be written".to_owned(),
    };
    if !missed.is_null() {
        problem.push_str(&format!(
            "; not recorded since {}: {} calls, {} refused calls, {} changes",
            missed["from"].as_str().unwrap_or("-"),
            number("calls"),
            number("refusals"),
            number("changes"),
        ));
    }
    Some(problem)
}
