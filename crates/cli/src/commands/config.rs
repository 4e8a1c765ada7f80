//! `mcpproxy config path|show|check|schema|set`.

use config::{Document, Settings, WarningKind};
use serde_json::{Value, json};

use super::count;
use crate::args::ConfigCommand;
use crate::exit::{Exit, Failure, Outcome};
use crate::printer::{Format, Printer};
use crate::settings::{config_failure, load};

pub(crate) fn run(command: &ConfigCommand, settings: &Settings, printer: &Printer) -> Outcome {
    match command {
        ConfigCommand::Path => {
            path(settings, printer);
            Ok(Exit::Ok)
        }
        ConfigCommand::Show => show(settings, printer),
        ConfigCommand::Check => check(settings, printer),
        ConfigCommand::Schema => {
            printer.data(&config::json_schema(), None);
            Ok(Exit::Ok)
        }
        ConfigCommand::Set { path, value } => set(path, value, settings, printer),
    }
}

fn set(path: &str, value: &str, settings: &Settings, printer: &Printer) -> Outcome {
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
    change(settings, path, &value)?;
    if printer.format == Format::Table {
        printer.text(&format!("{path} is {value}\n"));
    } else {
        printer.data(&json!({"path": path, "value": value}), None);
    }
    Ok(Exit::Ok)
}

/// Changes one setting. Sections whose members are named by the operator have commands of their own.
pub(in crate::commands) fn change(
    settings: &Settings,
    path: &str,
    value: &Value,
) -> Result<(), Failure> {
    let (section, key) = match path.split_once('.') {
        Some((section, key)) => (Some(section), key),
        None => (None, path),
    };
    let other = match section.unwrap_or(key) {
        "mcpServers" => Some("mcpproxy upstream"),
        "tool_overrides" => Some("mcpproxy tools override"),
        _ => None,
    };
    if let Some(other) = other {
        return Err(
            Failure::new(Exit::Usage, format!("{path} is not set this way"))
                .advice(format!("use `{other}`")),
        );
    }
    crate::settings::edit(settings, |document| {
        let before = unknown_keys(document, settings);
        document.set_setting(section, key, value.clone());
        match unknown_keys(document, settings)
            .into_iter()
            .find(|it| !before.contains(it))
        {
            None => Ok(()),
            Some(unknown) => Err(Failure::new(Exit::Usage, unknown)
                .advice("see all settings with `mcpproxy config show`")),
        }
    })
}

/// What the file has and nothing reads. A value of the wrong kind is told when the file is saved.
fn unknown_keys(document: &Document, settings: &Settings) -> Vec<String> {
    let parsed = config::parse(document.to_text().as_bytes(), settings.config_file());
    let warnings = parsed.map(|parsed| parsed.warnings).unwrap_or_default();
    let unknown = warnings
        .iter()
        .filter(|warning| matches!(warning.kind, WarningKind::UnknownKey { .. }));
    unknown
        .map(|warning| format!("there is no setting `{}`", warning.path))
        .collect()
}

fn path(settings: &Settings, printer: &Printer) {
    let path = settings.config_file();
    match printer.format {
        Format::Table => printer.text(&format!("{}\n", path.display())),
        _ => printer.data(&json!({"path": path, "exists": path.exists()}), None),
    }
}

fn show(settings: &Settings, printer: &Printer) -> Outcome {
    let loaded = load(settings)?;
    for warning in &loaded.warnings {
        printer.note(&format!("warning: {warning}"));
    }
    printer.data(&loaded.config.to_masked_json(), None);
    Ok(Exit::Ok)
}

fn check(settings: &Settings, printer: &Printer) -> Outcome {
    let loaded = settings.load().map_err(|error| config_failure(&error))?;
    let (file, servers) = (settings.config_file(), loaded.config.mcp_servers.len());
    let warnings: Vec<_> = loaded.warnings.iter().map(ToString::to_string).collect();
    if printer.format != Format::Table {
        let report = json!({"valid": true, "file": file, "servers": servers, "warnings": warnings});
        printer.data(&report, None);
        return Ok(Exit::Ok);
    }
    for warning in &warnings {
        printer.note(&format!("warning: {warning}"));
    }
    let servers = count(servers as u64, "server");
    let warnings = count(warnings.len() as u64, "warning");
    let file = file.display();
    printer.text(&format!("{file} is valid: {servers}, {warnings}\n"));
    Ok(Exit::Ok)
}
