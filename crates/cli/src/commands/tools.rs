//! `mcpproxy tools list|search|show`.

mod hits;

use config::Settings;
use daemon::LONGEST_QUERY;
use policy::{OperationType, ToolVariant};
use serde_json::Value;
use url::form_urlencoded;

use super::{count, parse};
use crate::api::{Api, segment};
use crate::args::{OverrideCommand, ToolsCommand};
use crate::escape;
use crate::exit::{Exit, Failure, Outcome};
use crate::printer::{Entry, Format, Printer};

/// How a tool is marked whose server is not connected.
const STALE: &str = "stale";

/// Characters of a description in a table.
const SUMMARY: usize = 80;

pub(crate) async fn run(command: ToolsCommand, settings: &Settings, printer: &Printer) -> Outcome {
    let api = Api::start(settings).await?;
    match &command {
        ToolsCommand::List { server, .. } | ToolsCommand::Search { server, .. } => {
            api.tools_known(server.as_deref()).await?;
        }
        ToolsCommand::Show { tool } => {
            api.tools_known(tool.split_once(':').map(|(server, _)| server))
                .await?;
        }
        // A pattern that matches nothing is met with the names there are.
        ToolsCommand::Override(OverrideCommand::Set { pattern, .. }) => {
            let server = pattern.split_once(':').map(|(server, _)| server);
            api.tools_known(server).await?;
        }
        ToolsCommand::Override(OverrideCommand::List | OverrideCommand::Clear { .. }) => {}
    }
    show(&command, &api, printer).await
}

async fn show(command: &ToolsCommand, api: &Api, printer: &Printer) -> Outcome {
    match command {
        ToolsCommand::List { server, lane } => {
            let query = query(&[
                ("server", server.as_deref()),
                ("lane", lane.map(OperationType::as_str)),
            ]);
            let found = parse(&api.get(&format!("/tools{query}")).await?)?;
            note_starting(&found, printer);
            note_failed_servers(api, server.as_deref(), printer).await?;
            print_list(&found, printer);
        }
        ToolsCommand::Search {
            query: words,
            limit,
            server,
            lane,
            explain,
        } => {
            let limit = limit.to_string();
            let words = words.join(" ");
            let query = query(&[
                ("q", Some(within_a_url(&words, printer))),
                ("limit", Some(&limit)),
                ("server", server.as_deref()),
                ("lane", lane.map(OperationType::as_str)),
                ("explain", explain.then_some("true")),
            ]);
            let found = parse(&api.get(&format!("/tools/search{query}")).await?)?;
            note_failed_servers(api, server.as_deref(), printer).await?;
            hits::print(&found, printer);
        }
        ToolsCommand::Show { tool } => {
            let found = parse(&api.get(&format!("/tools/{}", segment(tool))).await?)?;
            print_tool(&found, printer);
        }
        ToolsCommand::Override(command) => {
            return super::overrides::run(command, api, printer).await;
        }
    }
    Ok(Exit::Ok)
}

/// As much of a query as the search reads. More would not fit into a URL.
fn within_a_url<'a>(words: &'a str, printer: &Printer) -> &'a str {
    let read = &words[..words.floor_char_boundary(LONGEST_QUERY)];
    if read.len() < words.len() {
        printer.note(&format!(
            "note: only the first {LONGEST_QUERY} bytes of the query count"
        ));
    }
    read
}

fn query(parameters: &[(&str, Option<&str>)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::from("?"));
    for (name, value) in parameters {
        if let Some(value) = value {
            query.append_pair(name, value);
        }
    }
    query.finish()
}

/// A list without the tools of a server that is down looks complete and is not. Tells whether any
/// is down.
pub(super) async fn note_failed_servers(
    api: &Api,
    only: Option<&str>,
    printer: &Printer,
) -> Result<bool, Failure> {
    let servers = parse(&api.get("/servers").await?)?;
    let mut any = false;
    for server in servers["servers"].as_array().into_iter().flatten() {
        let wanted = only.is_none_or(|name| server["name"] == name);
        if let (true, Some(error)) = (wanted, server["last_error"].as_str()) {
            any = true;
            let state = match text(server, "state") {
                "failed" => "has failed".to_owned(),
                state => format!("is {state}"),
            };
            let (name, advice) = (text(server, "name"), text(server, "advice"));
            let text = format!("warning: {name} {state}: {error}; {advice}");
            printer.note(&escape::line(&text));
        }
    }
    Ok(any)
}

/// Servers whose tools are those of an earlier run, or not known yet.
fn note_starting(found: &Value, printer: &Printer) {
    let starting = found["starting"].as_array().into_iter().flatten();
    let starting: Vec<&str> = starting.filter_map(Value::as_str).collect();
    if !starting.is_empty() {
        let names = starting.join(", ");
        printer.note(&escape::line(&format!(
            "still starting: {names}; their tools are those they last had"
        )));
    }
}

fn print_list(found: &Value, printer: &Printer) {
    if printer.format != Format::Table {
        return printer.data(found, Some("tools"));
    }
    if entries(found).next().is_none() {
        let text = if found["starting"].is_array() {
            "no such tools are known yet"
        } else {
            "there are no such tools; `mcpproxy upstream list` shows the servers"
        };
        return printer.note(text);
    }
    let rows = entries(found).map(|tool| {
        vec![
            text(tool, "name").into(),
            lane_entry(tool),
            tool["effective_tier"].as_str().unwrap_or("-").into(),
            source(tool).into(),
            summary(tool).into(),
        ]
    });
    printer.table(
        &["TOOL", "LANE", "TIER", "FROM", "DESCRIPTION"],
        rows.collect(),
    );
    let total = found["total"].as_u64().unwrap_or_default();
    printer.note(&count(total, "tool"));
}

/// Where the tier comes from, or what is in the way; and whether the server is not there to ask.
fn source(tool: &Value) -> String {
    let source = tool["hold"].as_str().unwrap_or(text(tool, "provenance"));
    match tool["stale"].as_bool() {
        Some(true) => format!("{source}, {STALE}"),
        _ => source.to_owned(),
    }
}

fn print_tool(tool: &Value, printer: &Printer) {
    if printer.format != Format::Table {
        return printer.data(tool, None);
    }
    let mut out = format!("{}\n", escape::line(text(tool, "name")));
    let mut line = |label: &str, value: &str| {
        if !value.is_empty() {
            out.push_str(&format!("  {label:<12} {}\n", escape::line(value)));
        }
    };
    line("title", text(tool, "title"));
    line("lane", text(tool, "call_with"));
    line(
        "tier",
        tool["effective_tier"].as_str().unwrap_or("not known"),
    );
    line("why", text(tool, "reason"));
    if tool["hold"].is_string() {
        let (server, name) = text(tool, "name").split_once(':').unwrap_or_default();
        line(
            "approve",
            &format!("mcpproxy upstream approve {server} {name}"),
        );
    }
    line("annotations", &tool["annotations"].to_string());
    if tool["stale"] == true {
        line(
            "stale",
            "the server is not connected; this is what it last announced",
        );
    }
    out.push('\n');
    out.push_str(&escape::lines(text(tool, "description")));
    let schema = &tool["definition"]["inputSchema"];
    out.push_str(&escape::lines(&format!("\n\ninput schema:\n{schema:#}\n")));
    printer.text(&out);
}

fn entries(found: &Value) -> impl Iterator<Item = &Value> {
    found["tools"].as_array().into_iter().flatten()
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap_or_default()
}

pub(super) fn lane_entry(tool: &Value) -> Entry {
    match ToolVariant::from_name(text(tool, "call_with")) {
        Some(variant) => Entry::Lane(variant.operation_type()),
        None => "-".into(),
    }
}

pub(super) fn summary(tool: &Value) -> String {
    let mut lines = text(tool, "description").lines().map(str::trim);
    let first_line = lines.find(|line| !line.is_empty()).unwrap_or_default();
    match first_line.char_indices().nth(SUMMARY) {
        Some((end, _)) => format!("{}…", &first_line[..end]),
        None => first_line.to_owned(),
    }
}
