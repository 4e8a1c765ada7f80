//! `mcpproxy upstream add`: a look at the server first, then the config.

use config::Settings;
use serde_json::{Map, Value, json};

use crate::api::Api;
use crate::args::AddArgs;
use crate::commands::parse;
use crate::commands::tools::{lane_entry, summary};
use crate::exit::{Exit, Failure, Outcome};
use crate::printer::{Entry, Format, Printer};
use crate::{escape, shell};

pub(super) async fn run(args: &AddArgs, settings: &Settings, printer: &Printer) -> Outcome {
    let entry = entry(args);
    let api = Api::start(settings).await?;
    let added = add(args, &entry, &api, printer).await;
    let (server, check) = added?;
    if printer.format != Format::Table {
        let tools = &check["tools"];
        printer.data(&json!({"server": server, "tools": tools}), Some("tools"));
        return Ok(Exit::Ok);
    }
    print_tools(&check, printer);
    printer.text(&format!("'{}' is added\n", escape::line(&args.name)));
    Ok(Exit::Ok)
}

/// Adds the server and says what it was found to offer; that is `null` if nobody looked.
async fn add(
    args: &AddArgs,
    entry: &Value,
    api: &Api,
    printer: &Printer,
) -> Result<(Value, Value), Failure> {
    let mut check = Value::Null;
    if !args.no_check {
        printer.note(&format!("connecting to '{}' …", escape::line(&args.name)));
        let answer = api.post("/servers?dry_run=true", entry).await;
        let answer = answer.map_err(|failure| not_added(failure, args))?;
        check = parse(&answer)?;
    }
    let server = api.post("/servers", entry).await;
    let server = parse(&server.map_err(|failure| not_added(failure, args))?)?;
    Ok((server, check))
}

/// The server as an entry of `mcpServers`.
fn entry(args: &AddArgs) -> Value {
    let object = |pairs: &[(String, String)]| -> Value {
        let members = pairs
            .iter()
            .map(|(name, value)| (name.clone(), value.as_str().into()));
        Value::Object(members.collect::<Map<_, _>>())
    };
    let mut entry = json!({"name": args.name});
    if let Some(url) = &args.url {
        entry["url"] = url.as_str().into();
        if args.sse {
            entry["type"] = "sse".into();
        }
        if !args.header.is_empty() {
            entry["headers"] = object(&args.header);
        }
    }
    if let [command, arguments @ ..] = args.command.as_slice() {
        entry["command"] = command.as_str().into();
        if !arguments.is_empty() {
            entry["args"] = arguments.into();
        }
        if !args.env.is_empty() {
            entry["env"] = object(&args.env);
        }
        if let Some(directory) = &args.working_dir {
            entry["working_dir"] = directory.as_str().into();
        }
    }
    if let Some(timeout) = &args.timeout {
        entry["timeout"] = timeout.as_str().into();
    }
    entry
}

/// What failed is the look at the server; it can be added all the same.
fn not_added(failure: Failure, args: &AddArgs) -> Failure {
    if failure.code.as_deref() != Some("SERVER_UNAVAILABLE") {
        return Failure {
            what: without_place(&failure.what),
            ..failure
        };
    }
    let wants_credentials = ["HTTP 401", "HTTP 403"].iter();
    let wants_credentials = wants_credentials
        .into_iter()
        .any(|status| failure.what.contains(status));
    let advice = match &args.url {
        Some(url) if wants_credentials => format!(
            "run `mcpproxy upstream add {} --url {} --header 'Authorization=Bearer ${{env:TOKEN}}'` with \
             TOKEN set where mcpproxy starts, or add it as it is with `--no-check`",
            shell::word(&args.name),
            shell::word(url),
        ),
        _ => "put that right and add it again, or add it as it is with `--no-check`".to_owned(),
    };
    // Its own advice is about an entry that is there already.
    let why = failure.what.split("; set mcpServers.").next();
    Failure {
        what: format!("'{}' is not added", args.name),
        why: why.map(str::to_owned),
        advice: Some(advice),
        ..failure
    }
}

/// Without a line and a column of the entry, which nobody wrote.
fn without_place(text: &str) -> String {
    match text.split_once(" at line 1, column ") {
        Some((before, after)) => {
            format!(
                "{before}{}",
                after.trim_start_matches(|it: char| it.is_ascii_digit())
            )
        }
        None => text.to_owned(),
    }
}

fn print_tools(check: &Value, printer: &Printer) {
    let Some(tools) = check["tools"].as_array() else {
        return;
    };
    if tools.is_empty() {
        return printer.note("it offers no tools");
    }
    let rows = tools.iter().map(|tool| -> Vec<Entry> {
        let text = |member: &str| tool[member].as_str().unwrap_or("-").to_owned();
        vec![
            text("name").into(),
            lane_entry(tool),
            text("effective_tier").into(),
            text("provenance").into(),
            summary(tool).into(),
        ]
    });
    printer.table(
        &["TOOL", "LANE", "TIER", "FROM", "DESCRIPTION"],
        rows.collect(),
    );
}
