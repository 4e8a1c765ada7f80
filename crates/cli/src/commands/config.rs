//! `mcpproxy config path|show|check|schema`.

use config::Settings;
use serde_json::json;

use super::count;
use crate::args::ConfigCommand;
use crate::exit::{Exit, Outcome};
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
    }
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
