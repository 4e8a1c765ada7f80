//! `mcpproxy demo-server`: the built-in upstream on stdin and stdout.

use std::path::PathBuf;

use config::{Config, Settings};

use crate::exit::{Exit, Failure, Outcome};

/// The name of the file that keeps the notes, in the data directory.
const STORE: &str = "demo-notes.db";

pub(crate) async fn run(store: Option<PathBuf>, settings: &Settings) -> Outcome {
    let store = store.unwrap_or_else(|| default_store(settings));
    demo::serve(store, tokio::io::stdin(), tokio::io::stdout())
        .await
        .map_err(|error| {
            Failure::from_error(Exit::Failed, "the demo server stopped", &error)
                .advice("name a file that can be written, as in --store notes.sqlite")
        })?;
    Ok(Exit::Ok)
}

/// Where the notes are unless told otherwise.
pub(super) fn default_store(settings: &Settings) -> PathBuf {
    settings.data_dir(&Config::default()).join(STORE)
}
