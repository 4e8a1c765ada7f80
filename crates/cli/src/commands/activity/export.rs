//! `mcpproxy activity export`: streamed, so that a large log takes no memory.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use http_body_util::BodyExt;

use crate::api::{Api, lost};
use crate::args::ActivityFilter;
use crate::commands::parse;
use crate::exit::{Exit, Failure, Outcome};
use crate::printer::Printer;

/// What to export.
pub(super) struct What<'a> {
    pub filter: &'a ActivityFilter,
    pub format: &'a str,
    pub include_bodies: bool,
    pub limit: Option<u64>,
}

pub(super) async fn run(
    api: &Api,
    what: &What<'_>,
    file: Option<&Path>,
    printer: &Printer,
) -> Outcome {
    let parameters = [
        ("format", Some(what.format.to_owned())),
        ("include_bodies", Some(what.include_bodies.to_string())),
        ("limit", what.limit.map(|limit| limit.to_string())),
    ];
    let path = format!("/activity/export{}", super::query(what.filter, parameters));
    let mut body = api.stream(&path).await?;
    let mut target: Box<dyn Write + Send> = match file {
        Some(file) => Box::new(File::create(file).map_err(|error| unwritable(file, &error))?),
        None => Box::new(io::stdout()),
    };
    let name = file.unwrap_or(Path::new("stdout"));
    // On a terminal the export itself would be torn apart by its progress.
    let mut progress = printer.progress(file.is_some(), expected(api, what).await?);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|error| lost(&error))?.into_data() else {
            continue;
        };
        match target.write_all(&data) {
            Ok(()) => {}
            // Whoever reads may have enough, as `head` does.
            Err(error) if file.is_none() && error.kind() == io::ErrorKind::BrokenPipe => {
                return Ok(Exit::Ok);
            }
            Err(error) => return Err(unwritable(name, &error)),
        }
        // Every format has a line per record.
        progress.advance(data.split(|byte| *byte == b'\n').count() as u64 - 1);
    }
    target.flush().map_err(|error| unwritable(name, &error))?;
    progress.finish();
    if let Some(file) = file {
        printer.note(&format!("written to {}", file.display()));
    }
    Ok(Exit::Ok)
}

/// How many records there will be, for the progress bar.
async fn expected(api: &Api, what: &What<'_>) -> Result<u64, Failure> {
    let query = super::query(what.filter, [("limit", Some("1".to_owned()))]);
    let page = parse(&api.get(&format!("/activity{query}")).await?)?;
    let total = page["total"].as_u64().unwrap_or_default();
    Ok(what.limit.map_or(total, |limit| total.min(limit)))
}

fn unwritable(file: &Path, error: &io::Error) -> Failure {
    let what = format!("the export cannot be written to {}", file.display());
    Failure::from_error(Exit::Failed, what, error).advice("choose another place with --output FILE")
}
