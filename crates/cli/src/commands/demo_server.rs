//! `mcpproxy demo-server`: the built-in upstream on stdin and stdout.

use std::path::PathBuf;

use crate::exit::{Exit, Failure, Outcome};

pub(crate) async fn run(store: PathBuf) -> Outcome {
    demo::serve(store, tokio::io::stdin(), tokio::io::stdout())
        .await
        .map_err(|error| {
            Failure::from_error(Exit::Failed, "the demo server stopped", &error)
                .advice("name a file that can be written, as in --store notes.sqlite")
        })?;
    Ok(Exit::Ok)
}
