//! `mcpproxy call tool-read|tool-write|tool-destructive`.

use std::io::Read;

use config::Settings;
use mcp::RawValue;
use policy::{DataSensitivity, ToolVariant};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::api::Api;
use crate::args::{CallArgs, CallCommand};
use crate::exit::{Exit, Failure, Outcome};
use crate::printer::{Format, Printer};
use crate::{escape, shell};

/// How a call of a tool that nobody has is answered.
const FOR_AGENTS: &str = " Find tools with retrieve_tools.";

/// What an agent is told to ask for, which a person does.
const FOR_OPERATORS: &str = "; ask the operator to run ";

/// Bytes of an option's value that are repeated in a command to copy.
const MOST_REPEATED: usize = 500;

#[derive(Deserialize)]
struct CallData {
    result: Box<RawValue>,
}

/// What is shown of a result.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolResult {
    #[serde(default)]
    content: Vec<Value>,
    structured_content: Option<Value>,
    #[serde(default)]
    is_error: bool,
}

pub(crate) async fn run(command: CallCommand, settings: &Settings, printer: &Printer) -> Outcome {
    let (variant, args) = match command {
        CallCommand::Read(args) => (ToolVariant::Read, args),
        CallCommand::Write(args) => (ToolVariant::Write, args),
        CallCommand::Destructive(args) => (ToolVariant::Destructive, args),
    };
    let body = json!({"tool_variant": variant, "arguments": arguments(variant, &args)?});
    let again = again(&args, settings);
    let api = Api::start(settings).await?;
    let answer = api.post("/tools/call", &body).await;
    let answer = answer.map_err(|failure| for_people(failure, &again))?;
    let data: CallData =
        serde_json::from_str(answer.get()).map_err(|error| not_understood(&error))?;
    print(&data.result, printer)
}

/// The parts of this command line, to be run again on another lane.
struct Again {
    program: String,
    arguments: String,
}

fn again(args: &CallArgs, settings: &Settings) -> Again {
    let tool = args.tool.as_deref().or(args.tool_name.as_deref());
    let mut arguments = shell::word(tool.unwrap_or_default());
    let options = [
        ("--args", args.args.as_deref()),
        ("--reason", args.reason.as_deref()),
        (
            "--sensitivity",
            args.sensitivity.map(DataSensitivity::as_str),
        ),
    ];
    for (name, value) in options {
        let value = value.map(shell::word);
        if let Some(value) = value {
            let value = if value.len() <= MOST_REPEATED {
                &value
            } else {
                "…"
            };
            arguments.push_str(&format!(" {name} {value}"));
        }
    }
    Again {
        program: shell::program(settings),
        arguments,
    }
}

/// The engine speaks to agents, of tools and members; a person has commands and options.
fn for_people(mut failure: Failure, again: &Again) -> Failure {
    let variant = failure.what.rsplit_once("use ").map(|(_, name)| name);
    if let Some(variant) = variant.and_then(ToolVariant::from_name) {
        let Again { program, arguments } = again;
        let operation = variant.operation_type();
        return failure.advice(format!(
            "if that is meant, run `{program} call tool-{operation} {arguments}`"
        ));
    }
    if let Some((what, command)) = failure.what.split_once(FOR_OPERATORS) {
        let (what, advice) = (what.to_owned(), format!("run {command}"));
        failure.what = what;
        return failure.advice(advice);
    }
    if failure.what.ends_with(FOR_AGENTS) {
        failure.what = failure.what.replace(FOR_AGENTS, "");
        return failure.advice("find tools with `mcpproxy tools search` or `mcpproxy tools list`");
    }
    if failure.code.as_deref() == Some("INVALID_ARGS") {
        let what = failure.what.replace("args_json", "--args");
        failure.what = what.replace("expected ident", "expected value");
        return failure.advice("give one JSON object, as --args '{\"title\": \"Hello\"}'");
    }
    failure
}

/// The arguments of `call_tool_*`, with the intent that the choice of command declares.
fn arguments(variant: ToolVariant, args: &CallArgs) -> Result<Value, Failure> {
    let mut intent = Map::new();
    intent.insert("operation_type".into(), json!(variant.operation_type()));
    if let Some(sensitivity) = args.sensitivity {
        intent.insert(
            "data_sensitivity".into(),
            DataSensitivity::as_str(sensitivity).into(),
        );
    }
    if let Some(reason) = &args.reason {
        intent.insert("reason".into(), reason.as_str().into());
    }
    let mut arguments = Map::new();
    let tool = args.tool.as_deref().or(args.tool_name.as_deref());
    arguments.insert("name".into(), tool.unwrap_or_default().into());
    if let Some(text) = tool_arguments(args.args.as_deref())? {
        arguments.insert("args_json".into(), text.into());
    }
    arguments.insert("intent".into(), Value::Object(intent));
    Ok(Value::Object(arguments))
}

/// The text of the tool's own arguments: as given, from stdin, or from a file.
fn tool_arguments(given: Option<&str>) -> Result<Option<String>, Failure> {
    let unreadable = |source: &str, error: &dyn std::error::Error| {
        Failure::from_error(
            Exit::Usage,
            format!("the arguments cannot be read from {source}"),
            error,
        )
        .advice("give a JSON object, `-` for stdin, or `@FILE`")
    };
    match given {
        None => Ok(None),
        Some("-") => {
            let mut text = String::new();
            let read = std::io::stdin().read_to_string(&mut text);
            read.map_err(|error| unreadable("stdin", &error))?;
            Ok(Some(text))
        }
        Some(text) => match text.strip_prefix('@') {
            Some(file) => {
                let read = std::fs::read_to_string(file);
                read.map(Some).map_err(|error| unreadable(file, &error))
            }
            None => Ok(Some(text.to_owned())),
        },
    }
}

/// Data is printed as the upstream wrote it; for people, the text in it.
fn print(result: &RawValue, printer: &Printer) -> Outcome {
    let shown = serde_json::from_str::<ToolResult>(result.get());
    match (printer.format, &shown) {
        // A person gets the same in escapes, where something in it would act on the terminal.
        (Format::Json | Format::Jsonl, _) if printer.is_terminal() => {
            printer.text(&format!("{}\n", escape::json(result.get())));
        }
        (Format::Json | Format::Jsonl, _) => printer.text(&format!("{}\n", result.get())),
        (Format::Yaml, _) => printer.data(&super::parse(result)?, None),
        (Format::Table, Ok(shown)) => printer.text(&readable(shown)),
        (Format::Table, Err(error)) => return Err(not_understood(error)),
    }
    let failed = shown.is_ok_and(|shown| shown.is_error);
    Ok(if failed { Exit::Failed } else { Exit::Ok })
}

fn readable(result: &ToolResult) -> String {
    if let (true, Some(structured)) = (result.content.is_empty(), &result.structured_content) {
        return escape::lines(&format!("{structured:#}\n"));
    }
    result.content.iter().map(readable_block).collect()
}

/// Text as it is; of anything else, what it is, where it is and how large it is.
fn readable_block(block: &Value) -> String {
    let word = |value: &Value, member: &str| value[member].as_str().map(str::to_owned);
    let kind = block["type"].as_str().unwrap_or("unknown content");
    if let ("text", Some(text)) = (kind, block["text"].as_str()) {
        return format!("{}\n", escape::lines(text));
    }
    // An embedded resource keeps its members one level deeper.
    let inner = match kind {
        "resource" => &block["resource"],
        _ => block,
    };
    let size = inner["size"].as_u64().or_else(|| {
        let data = inner["data"].as_str().or(inner["blob"].as_str())?;
        Some(decoded_length(data))
    });
    let about = [
        word(inner, "uri"),
        word(inner, "title").or_else(|| word(inner, "name")),
        word(inner, "mimeType"),
        size.map(|size| format!("{size} bytes")),
    ];
    let about: Vec<String> = about.into_iter().flatten().collect();
    let head = match about.as_slice() {
        [] => kind.to_owned(),
        about => format!("{kind}: {}", about.join(", ")),
    };
    let text = inner["text"].as_str().map(escape::lines);
    let text = text.map(|text| format!("{text}\n")).unwrap_or_default();
    format!("[{}]\n{text}", escape::line(&head))
}

/// The number of bytes that base64 text decodes to.
fn decoded_length(base64: &str) -> u64 {
    let digits = base64
        .bytes()
        .filter(|byte| !matches!(byte, b'=' | b'\n' | b'\r'));
    digits.count() as u64 * 3 / 4
}

fn not_understood(error: &serde_json::Error) -> Failure {
    Failure::from_error(Exit::Failed, "the result is not understood", error)
        .advice("see it as it is with `-o json`")
}
