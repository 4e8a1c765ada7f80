//! What `connect --approve read` says about tools without hints: the lane for reading, which now runs
//! unasked, may call them until the operator decides.

use config::{Config, Settings};
use serde_json::Value;

use crate::api::Api;
use crate::args::ConnectArgs;
use crate::commands::status::undecided_tools;
use crate::commands::{config as config_command, parse};
use crate::consent;
use crate::exit::Failure;
use crate::printer::Printer;

const SETTING: &str = "intent_declaration.unannotated";

pub(super) async fn decide(
    args: &ConnectArgs,
    settings: &Settings,
    config: &Config,
    printer: &Printer,
) -> Result<(), Failure> {
    if let Some(rule) = args.unannotated {
        if !args.consent.dry_run {
            set(settings, rule.as_str(), printer)?;
        }
        return Ok(());
    }
    let has_servers = config.mcp_servers.iter().any(|server| server.enabled);
    if config.unannotated_is_decided || !has_servers {
        return Ok(());
    }
    let Some(text) = undecided(settings).await else {
        return Ok(());
    };
    printer.note(&format!("warning: {text}"));
    let question = "Decide their lanes by what they look like?";
    if consent::recommend(args.consent, question, printer) {
        return set(settings, "infer", printer);
    }
    printer.note(&format!(
        "decide with `mcpproxy config set {SETTING} infer`, or `trust` to leave it so"
    ));
    Ok(())
}

/// The tools that nobody has decided about, in words. None if there are none, or if they cannot be asked for:
/// the client is connected all the same, and `mcpproxy doctor` tells it later.
async fn undecided(settings: &Settings) -> Option<String> {
    let api = Api::start(settings).await.ok()?;
    api.tools_known(None).await.ok()?;
    let status = parse(&api.get("/status").await.ok()?).ok()?;
    undecided_tools(&status["undecided_tools"])
}

fn set(settings: &Settings, rule: &str, printer: &Printer) -> Result<(), Failure> {
    config_command::change(settings, SETTING, &Value::from(rule))?;
    printer.note(&format!("{SETTING} is now \"{rule}\""));
    Ok(())
}
