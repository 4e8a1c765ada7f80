//! `mcpproxy upstream logs [-f]`.

use std::time::Duration;

use config::Settings;
use serde_json::Value;

use super::path;
use crate::api::Api;
use crate::commands::parse;
use crate::escape;
use crate::exit::{Exit, Failure, Outcome};
use crate::printer::{Format, Printer};

/// The pause between two looks at a log that is followed.
const PAUSE: Duration = Duration::from_millis(300);

pub(super) struct What<'a> {
    pub(super) name: &'a str,
    pub(super) lines: u16,
}

pub(super) async fn run(
    what: &What<'_>,
    follow: bool,
    settings: &Settings,
    printer: &Printer,
) -> Outcome {
    if follow {
        // Nothing is written where no daemon runs.
        let api = Api::daemon(settings).await?;
        return tokio::select! {
            outcome = follow_log(what, &api, printer) => outcome,
            _ = tokio::signal::ctrl_c() => Ok(Exit::Ok),
        };
    }
    let api = Api::start(settings).await?;
    let page = look(what, &api, None).await;
    let page = page?;
    match printer.format {
        Format::Table => print(&page, printer),
        _ => printer.data(&page, Some("lines")),
    }
    if lines(&page).next().is_none() {
        printer.note(&format!(
            "'{}' has written nothing",
            escape::line(what.name)
        ));
    }
    Ok(Exit::Ok)
}

async fn follow_log(what: &What<'_>, api: &Api, printer: &Printer) -> Outcome {
    let mut cursor: Option<String> = None;
    while printer.is_heard() {
        let page = look(what, api, cursor.as_deref()).await?;
        print(&page, printer);
        cursor = page["cursor"].as_str().map(str::to_owned);
        if lines(&page).next().is_none() {
            tokio::time::sleep(PAUSE).await;
        }
    }
    Ok(Exit::Ok)
}

async fn look(what: &What<'_>, api: &Api, after: Option<&str>) -> Result<Value, Failure> {
    let after = after.map(|cursor| format!("&after={cursor}"));
    let query = format!("?lines={}{}", what.lines, after.unwrap_or_default());
    parse(&api.get(&format!("{}/logs{query}", path(what.name))).await?)
}

/// For people as text, otherwise one JSON string a line, so that it can be piped as it grows.
fn print(page: &Value, printer: &Printer) {
    for line in lines(page) {
        match printer.format {
            Format::Table => printer.text(&format!("{}\n", escape::line(line))),
            _ => printer.text(&format!(
                "{}\n",
                escape::json(&Value::from(line).to_string())
            )),
        }
    }
}

fn lines(page: &Value) -> impl Iterator<Item = &str> {
    page["lines"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}
