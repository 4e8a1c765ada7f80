//! What is kept in the data directory: the activity log and the pins of tools.

use std::path::Path;
use std::time::Duration;

use activity::StoreError;
use activity::sqlite::OpenError;
use config::Config;
use daemon::{ActivityLogError, Pins};
use jiff::Timestamp;

use super::check::{Area, Report, move_away, quoted};
use super::code::Code;
use crate::api::{Api, log_failure};
use crate::commands::parse;
use crate::commands::status::log_problem;
use crate::exit::Failure;

/// A large log takes its time, but a daemon that has lost its log takes for ever.
const PATIENCE: Duration = Duration::from_mins(1);

/// Whether the log can be read, where no daemon has it open. Opening it for writing would set a
/// damaged one aside, and nobody would hear of it.
pub(super) fn can_be_opened(data_dir: &Path, config: &Config, report: &mut Report) -> bool {
    let error = match daemon::read_activity(data_dir, config) {
        Ok(_) | Err(ActivityLogError::Open(OpenError::Missing(_))) => return true,
        Err(error) => error,
    };
    let folder = data_dir.join("activity");
    let fix = match &error {
        // The daemon keeps it aside and begins a new one.
        ActivityLogError::Open(OpenError::Store(StoreError::Corrupt(_))) => report.command("serve"),
        ActivityLogError::Open(OpenError::Newer { .. } | OpenError::Foreign(_)) => {
            move_away(&folder)
        }
        _ => format!("ls -la {}", quoted(&folder)),
    };
    let cause = log_failure(&error).one_line();
    report.problem(Area::Store, Code::StoreUnreadable, None, cause, fix);
    false
}

/// Whether the log is as it was written. Says of when its newest record is.
pub(super) async fn check(api: &Api, restart: &str, report: &mut Report) -> Option<Timestamp> {
    let verify = async { parse(&api.get("/activity/verify").await?) };
    let found = match tokio::time::timeout(PATIENCE, verify).await {
        Ok(found) => found.map_err(Failure::one_line),
        Err(_) => Err(format!("no answer within {} s", PATIENCE.as_secs())),
    };
    match found {
        Ok(found) if found["valid"] == true => {
            let mut detail = format!("{} records hold", found["records"]);
            if let Some(gaps) = found["gaps"].as_u64().filter(|gaps| *gaps > 0) {
                detail.push_str(&format!(
                    ", {gaps} of them for what was not recorded: mcpproxy activity list --type system --status error"
                ));
            }
            report.fine(Area::Store, None, detail);
        }
        Ok(found) => {
            let cause = match found["broken"]["id"].as_str() {
                Some(id) => format!("the chain of records breaks at {id}"),
                None if found["broken"].is_null() => {
                    "what lists and sums are made from does not agree with the records".to_owned()
                }
                None => "the chain of records breaks".to_owned(),
            };
            let fix = report.command("activity verify");
            report.problem(Area::Store, Code::StoreTampered, None, cause, fix);
        }
        Err(cause) => {
            report.problem(Area::Store, Code::StoreUnreadable, None, cause, restart);
            return None;
        }
    }
    if let Ok(status) = api.get("/status").await
        && let Ok(status) = parse(&status)
        && let Some(cause) = log_problem(&status["activity"])
    {
        report.problem(Area::Store, Code::StoreNotWritable, None, cause, "df -h");
    }
    let newest = parse(&api.get("/activity?limit=1").await.ok()?).ok()?;
    newest["activities"][0]["timestamp"].as_str()?.parse().ok()
}

/// Without its pins a daemon does not start.
pub(super) fn check_pins(data_dir: &Path, report: &mut Report) {
    if let Err(error) = Pins::check(data_dir) {
        let cause = error.to_string();
        let fix = move_away(error.path());
        report.problem(Area::Store, Code::PinsUnreadable, None, cause, fix);
    }
}
