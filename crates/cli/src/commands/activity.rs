//! `mcpproxy activity …`: what happened, from the log.

mod export;
mod list;
mod row;
mod show;
mod simulate;
mod summary;
mod verify;
mod watch;

use config::Settings;
use url::form_urlencoded;

use crate::api::Api;
use crate::args::{ActivityCommand, ActivityFilter};
use crate::exit::{Exit, Failure, Outcome};
use crate::printer::Printer;

pub(crate) async fn run(
    command: ActivityCommand,
    settings: &Settings,
    printer: &Printer,
) -> Outcome {
    if let ActivityCommand::Watch { filter } = &command {
        return watch::run(settings, filter, printer).await;
    }
    check(&command, printer)?;
    let api = Api::for_log(settings).await?;
    let outcome = match &command {
        ActivityCommand::List {
            filter,
            limit,
            offset,
            cursor,
        } => {
            let place = [
                ("limit", limit.map(|number| number.to_string())),
                ("offset", offset.map(|number| number.to_string())),
                ("cursor", cursor.clone()),
            ];
            list::run(&api, filter, place, printer).await
        }
        ActivityCommand::Show { id } => show::run(&api, id, printer).await,
        ActivityCommand::Summary { period, by } => summary::run(&api, period, by, printer).await,
        ActivityCommand::Export {
            filter,
            format,
            include_bodies,
            limit,
            file,
        } => {
            let what = export::What {
                filter,
                format: export::format(format.as_deref(), printer)?,
                include_bodies: *include_bodies,
                limit: *limit,
            };
            export::run(&api, &what, file.as_deref(), printer).await
        }
        ActivityCommand::Simulate { settings, filter } => {
            simulate::run(&api, settings, filter, printer).await
        }
        ActivityCommand::Verify { head } => verify::run(&api, head.as_deref(), printer).await,
        // Handled above: it may have to reach somebody more than once.
        ActivityCommand::Watch { .. } => Ok(Exit::Failed),
    };
    api.close().await;
    outcome
}

/// Refuses what makes no sense, before anything is opened for it.
fn check(command: &ActivityCommand, printer: &Printer) -> Result<(), Failure> {
    match command {
        ActivityCommand::Show { id } if id.is_empty() => {
            Err(Failure::new(Exit::Usage, "an id is needed")
                .why("the one that was given is empty")
                .advice("take one that `mcpproxy activity list` shows"))
        }
        ActivityCommand::Export { format, .. } => {
            export::format(format.as_deref(), printer).map(|_| ())
        }
        _ => Ok(()),
    }
}

/// A query string with what is given; empty if nothing is.
fn query(
    filter: &ActivityFilter,
    more: impl IntoIterator<Item = (&'static str, Option<String>)>,
) -> String {
    let pairs = filter.pairs().into_iter().chain(more);
    let mut query = form_urlencoded::Serializer::new(String::from("?"));
    for (name, value) in pairs {
        if let Some(value) = value {
            query.append_pair(name, &value);
        }
    }
    query.finish()
}
