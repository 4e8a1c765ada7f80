//! `mcpproxy audit`: what the tools of servers really do, judged by what they say.

use std::path::Path;

use config::{ServerConfig, Settings, Transport};
use http_body_util::BodyExt;
use mcp::RawValue;
use policy::ServerName;
use serde::Deserialize;
use serde_json::{Value, json};
use url::form_urlencoded;

use super::{count, parse};
use crate::api::{Api, lost};
use crate::args::{AuditArgs, AuditFormat};
use crate::escape;
use crate::exit::{Exit, Failure, Outcome};
use crate::printer::{Entry, Format, Printer};

/// What a server is called that is not in the config.
const VISITOR: &str = "server";

/// A saved answer to `tools/list`, with or without its envelope.
#[derive(Deserialize)]
struct SavedList {
    tools: Option<Vec<Box<RawValue>>>,
    result: Option<SavedResult>,
}

#[derive(Deserialize)]
struct SavedResult {
    tools: Vec<Box<RawValue>>,
}

pub(crate) async fn run(args: AuditArgs, settings: &Settings, printer: &Printer) -> Outcome {
    let body = body(&args)?;
    let api = reach(&args, settings).await?;
    let outcome = audit(&args, &api, &body, printer).await;
    api.close().await;
    outcome
}

async fn reach(args: &AuditArgs, settings: &Settings) -> Result<Api, Failure> {
    let visitor = |transport| -> Result<ServerConfig, Failure> {
        let name: ServerName = VISITOR.parse().map_err(|error: policy::ServerNameError| {
            Failure::from_error(Exit::Failed, "the server cannot be named", &error)
        })?;
        Ok(ServerConfig::new(name, transport))
    };
    match (&args.url, args.command.as_slice()) {
        (Some(url), _) => {
            let transport = Transport::http(url).map_err(|error| {
                Failure::from_error(Exit::Usage, format!("'{url}' cannot be used"), &error)
                    .advice("give an address that begins with http:// or https://")
            })?;
            Api::visit(settings, visitor(transport)?).await
        }
        (None, [command, arguments @ ..]) => {
            let arguments = arguments.iter().map(String::as_str);
            Api::visit(settings, visitor(Transport::program(command, arguments))?).await
        }
        (None, []) if args.tools.is_some() => Api::for_log(settings).await,
        (None, []) => {
            let api = Api::start(settings).await?;
            api.tools_known(args.server.as_deref()).await?;
            Ok(api)
        }
    }
}

/// What is sent along: a saved list, a manifest, or nothing.
fn body(args: &AuditArgs) -> Result<Value, Failure> {
    let mut body = json!({});
    if let Some(file) = &args.tools {
        body["tools"] = saved_tools(file)?;
    }
    if let Some(file) = &args.manifest {
        body["manifest"] = read(file)?.into();
    }
    Ok(body)
}

fn saved_tools(file: &Path) -> Result<Value, Failure> {
    let text = read(file)?;
    let tools = if let Ok(tools) = serde_json::from_str::<Vec<Box<RawValue>>>(&text) {
        Some(tools)
    } else {
        let saved: SavedList = serde_json::from_str(&text).map_err(|error| {
            let what = format!("{} is not a list of tools", file.display());
            Failure::from_error(Exit::Usage, what, &error)
                .advice("save the answer to tools/list as JSON")
        })?;
        saved.tools.or(saved.result.map(|result| result.tools))
    };
    let tools = tools.ok_or_else(|| {
        Failure::new(Exit::Usage, format!("{} has no tools", file.display()))
            .why("it has no member `tools`, nor has its `result`")
            .advice("save the answer to tools/list as JSON")
    })?;
    let server = file
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned());
    Ok(json!({"server": server, "definitions": tools}))
}

fn read(file: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(file).map_err(|error| {
        Failure::from_error(
            Exit::Usage,
            format!("{} cannot be read", file.display()),
            &error,
        )
        .advice("name a file that can be read")
    })
}

async fn audit(args: &AuditArgs, api: &Api, body: &Value, printer: &Printer) -> Outcome {
    let query = |format: &str| {
        let mut query = form_urlencoded::Serializer::new(String::from("/audit?"));
        query.append_pair("format", format);
        query.append_pair("fail_on", &args.fail_on);
        query.extend_pairs(args.server.iter().map(|server| ("server", server)));
        query.finish()
    };
    let report = parse(&api.post(&query("json"), body).await?)?;
    if args.url.is_some() || !args.command.is_empty() {
        visited(api).await?;
    }
    let unreachable = failed_servers(api, args, printer).await?;
    if let Some(file) = &args.write_manifest {
        let text = text(api, &query("manifest"), body).await?;
        std::fs::write(file, text).map_err(|error| {
            Failure::from_error(
                Exit::Failed,
                format!("{} cannot be written", file.display()),
                &error,
            )
        })?;
        printer.note(&format!("written to {}", file.display()));
    }
    match args.format {
        Some(format) => {
            let text = text(api, &query(format.as_str()), body).await?;
            printer.text(&for_reader(text, format, printer));
        }
        None if printer.format == Format::Table => print(&report, printer),
        None => printer.data(&report, Some("tools")),
    }
    Ok(if report["failed"] == true {
        Exit::Findings
    } else if unreachable {
        Exit::Failed
    } else {
        Exit::Ok
    })
}

async fn text(api: &Api, path: &str, body: &Value) -> Result<String, Failure> {
    let answer = api.post_for_body(path, body).await?;
    let bytes = answer
        .collect()
        .await
        .map_err(|error| lost(&error))?
        .to_bytes();
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A server that is not in the config is the only one, and without it there is nothing to say.
async fn visited(api: &Api) -> Result<(), Failure> {
    let server = parse(&api.get(&format!("/servers/{VISITOR}")).await?)?;
    match server["last_error"].as_str() {
        None => Ok(()),
        Some(error) => Err(Failure::new(Exit::Failed, "the server cannot be audited")
            .why(error)
            .advice("correct the command or the address, and try again")),
    }
}

/// A report goes into files byte for byte, and to a terminal without anything that acts on it.
fn for_reader(text: String, format: AuditFormat, printer: &Printer) -> String {
    match format {
        _ if !printer.is_terminal() => text,
        AuditFormat::Sarif => escape::json(&text),
        AuditFormat::Markdown | AuditFormat::Junit => escape::lines(&text),
    }
}

/// Says which servers could not be audited; the others are all the same.
async fn failed_servers(api: &Api, args: &AuditArgs, printer: &Printer) -> Result<bool, Failure> {
    if args.tools.is_some() {
        return Ok(false);
    }
    super::tools::note_failed_servers(api, args.server.as_deref(), printer).await
}

fn print(report: &Value, printer: &Printer) {
    let tools = report["tools"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let tier = |tool: &Value, member: &str| tool[member].as_str().unwrap_or("-").to_owned();
    let rows = tools
        .iter()
        .map(|tool| -> Vec<Entry> {
            let confidence = tool["confidence"].as_f64().unwrap_or_default();
            vec![
                tier(tool, "name").into(),
                tier(tool, "declared_tier").into(),
                tier(tool, "audited_tier").into(),
                tier(tool, "effective_tier").into(),
                format!("{confidence:.2}").into(),
                tool["clients"]["claude-code"]["default"]
                    .as_str()
                    .unwrap_or("-")
                    .into(),
                tier(tool, "reason").into(),
            ]
        })
        .collect();
    let headers = [
        "TOOL",
        "DECLARED",
        "AUDITED",
        "EFFECTIVE",
        "SURE",
        "CLAUDE CODE",
        "WHY",
    ];
    if !tools.is_empty() {
        printer.table(&headers, rows);
    }
    let mut out = String::new();
    for tool in tools {
        for finding in tool["findings"].as_array().into_iter().flatten() {
            let (severity, code) = (tier(finding, "severity"), tier(finding, "code"));
            let line = format!(
                "{severity} {code} {}: {}",
                tier(tool, "name"),
                tier(finding, "message")
            );
            out.push_str(&format!("{}\n", escape::line(&line)));
        }
    }
    for violation in report["violations"].as_array().into_iter().flatten() {
        let line = format!(
            "error {}: {}",
            tier(violation, "code"),
            tier(violation, "message")
        );
        out.push_str(&format!("{}\n", escape::line(&line)));
    }
    if !out.is_empty() {
        printer.text(&format!("\n{out}"));
    }
    let found = |severity: &str| {
        let number = report["summary"]["findings"][severity].as_u64();
        count(number.unwrap_or_default(), severity)
    };
    let mut total = format!(
        "{}: {}, {}, {}",
        count(tools.len() as u64, "tool"),
        found("error"),
        found("warning"),
        found("note")
    );
    if let Some(violations) = report["violations"].as_array().filter(|it| !it.is_empty()) {
        let violations = count(violations.len() as u64, "violation");
        total.push_str(&format!("; {violations} of the manifest"));
    }
    printer.note(&total);
}

impl AuditFormat {
    fn as_str(self) -> &'static str {
        match self {
            Self::Markdown => "markdown",
            Self::Sarif => "sarif",
            Self::Junit => "junit",
        }
    }
}
