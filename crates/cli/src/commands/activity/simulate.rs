//! `mcpproxy activity simulate`.

use serde_json::{Map, Value, json};

use crate::api::Api;
use crate::args::ActivityFilter;
use crate::commands::parse;
use crate::escape;
use crate::exit::{Exit, Failure, Outcome};
use crate::printer::{Entry, Format, Printer};

pub(super) async fn run(
    api: &Api,
    settings: &[String],
    filter: &ActivityFilter,
    printer: &Printer,
) -> Outcome {
    let set: Map<String, Value> = settings
        .iter()
        .map(|setting| read(setting))
        .collect::<Result<_, _>>()?;
    let pairs = filter.pairs().into_iter();
    let filter: Map<String, Value> = pairs
        .filter_map(|(name, value)| Some((name.to_owned(), value?.into())))
        .collect();
    let body = json!({"set": set, "filter": filter});
    let answer = parse(&api.post("/policy/simulate", &body).await?)?;
    if printer.format != Format::Table {
        printer.data(&answer, Some("tools"));
        return Ok(Exit::Ok);
    }
    print(&answer, printer);
    Ok(Exit::Ok)
}

/// `path=value`, where the value is JSON or, if it is none, a text.
fn read(setting: &str) -> Result<(String, Value), Failure> {
    // A pattern has no equals sign in it, and a value may.
    let Some((path, value)) = setting.split_once('=') else {
        let what = format!("'{setting}' is not a setting");
        return Err(Failure::new(Exit::Usage, escape::line(&what))
            .why("it has no value")
            .advice("write it as path=value, as in intent_declaration.unannotated=infer"));
    };
    let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
    Ok((path.to_owned(), value))
}

fn print(answer: &Value, printer: &Printer) {
    let number = |member: &str| answer[member].as_u64().unwrap_or_default();
    let mut rows: Vec<Vec<Entry>> = Vec::new();
    let mut messages = String::new();
    for tool in answer["tools"].as_array().into_iter().flatten() {
        let name = tool["tool"].as_str().unwrap_or("-");
        for change in tool["changes"].as_array().into_iter().flatten() {
            let examples = change["examples"].as_array().into_iter().flatten();
            let examples: Vec<_> = examples.filter_map(Value::as_str).collect();
            rows.push(vec![
                name.into(),
                format!("{} of {}", change["calls"], tool["calls"]).into(),
                ending(change, "from", "from_code").into(),
                ending(change, "to", "to_code").into(),
                examples.join(" ").into(),
            ]);
            if let Some(message) = change["message"].as_str() {
                messages.push_str(&format!("{}\n", escape::line(message)));
            }
        }
    }
    if !rows.is_empty() {
        printer.table(&["TOOL", "CALLS", "WAS", "WOULD BE", "EXAMPLES"], rows);
        printer.text(&format!("\n{messages}"));
    }
    printer.note(&format!(
        "{} calls: {} as they were, {} refused, {} warned about, {} allowed instead; {} were never decided",
        number("calls"),
        number("unchanged"),
        number("refused"),
        number("warned"),
        number("allowed"),
        number("not_decided"),
    ));
}

fn ending(change: &Value, verdict: &str, code: &str) -> String {
    let verdict = change[verdict].as_str().unwrap_or("-");
    match change[code].as_str() {
        Some(code) => format!("{verdict} {code}"),
        None => verdict.to_owned(),
    }
}
