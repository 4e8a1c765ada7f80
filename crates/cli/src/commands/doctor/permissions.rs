//! `mcpproxy doctor permissions`: which lanes run silently in which client, and which ask.

use clients::{Client, ClientFileError, OWN_TOOLS, Permissions, Places, Verdict};
use serde_json::{Map, Value, json};

use crate::commands::connect::{client_failure, places};
use crate::escape;
use crate::exit::{Exit, Outcome};
use crate::printer::{Entry, Format, Printer};

/// The tools that lanes are.
const LANES: [&str; 3] = ["call_tool_read", "call_tool_write", "call_tool_destructive"];

type Read = (Client, Result<Permissions, ClientFileError>);

pub(super) fn run(printer: &Printer) -> Outcome {
    let places: Places = places()?;
    let read: Vec<Read> = Client::ALL
        .into_iter()
        .map(|client| (client, clients::permissions(client, &places)))
        .collect();
    if printer.format == Format::Table {
        print_table(&read, printer);
    } else {
        let clients: Vec<Value> = read.iter().map(to_json).collect();
        printer.data(&json!({"clients": clients}), Some("clients"));
    }
    let wrong = read.iter().any(|(_, found)| match found {
        Ok(found) => found.connected && found.changes_silently(),
        Err(_) => true,
    });
    Ok(if wrong { Exit::Failed } else { Exit::Ok })
}

fn print_table(read: &[Read], printer: &Printer) {
    let rows = read.iter().map(|(client, found)| -> Vec<Entry> {
        let mut row: Vec<Entry> = vec![client.as_str().into()];
        match found {
            Ok(found) => {
                row.push(if found.connected { "yes" } else { "no" }.into());
                row.extend(LANES.map(|lane| found.verdict(lane).as_str().into()));
            }
            Err(_) => row.extend(["?"; 4].map(Entry::from)),
        }
        row
    });
    printer.table(
        &["CLIENT", "CONNECTED", "READ", "WRITE", "DESTRUCTIVE"],
        rows.collect(),
    );
    for (client, found) in read {
        let notes = match found {
            Ok(found) if found.connected => notes(*client, found),
            Ok(_) => Vec::new(),
            Err(error) => vec![client_failure(error).one_line()],
        };
        for note in notes {
            printer.note(&escape::line(&format!("{client}: {note}")));
        }
    }
}

fn notes(client: Client, found: &Permissions) -> Vec<String> {
    let mut notes = found.notes.clone();
    if found.changes_silently() {
        notes.push(format!(
            "changes run without a question; `mcpproxy connect {client} --approve read` makes it ask"
        ));
    } else if found.verdict(LANES[0]) == Verdict::Asks {
        notes.push(format!(
            "reads ask, too; `mcpproxy connect {client} --approve read` lets them run"
        ));
    }
    notes
}

fn to_json((client, found): &Read) -> Value {
    let mut value = json!({"client": client.as_str(), "name": client.title()});
    match found {
        Ok(found) => {
            let tools: Map<String, Value> = OWN_TOOLS
                .iter()
                .map(|tool| {
                    (
                        tool.name.to_owned(),
                        found.verdict(tool.name).as_str().into(),
                    )
                })
                .collect();
            value["connected"] = found.connected.into();
            value["files"] = json!(found.files);
            value["tools"] = Value::Object(tools);
            value["notes"] = json!(found.notes);
        }
        Err(error) => {
            let failure = client_failure(error);
            value["error"] =
                json!({"message": failure.what, "cause": failure.why, "fix": failure.advice});
        }
    }
    value
}
