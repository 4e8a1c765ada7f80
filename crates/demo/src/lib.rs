//! The built-in demo upstream: an MCP server over stdio that keeps notes in SQLite.
//!
//! It is there so that a first start has something to search and to call, and it is an honest
//! example of what an upstream should be: its tools come in all four tiers, each annotated as its
//! tier asks, errors say what to do, and long work reports progress and can be cancelled.

mod note;
mod progress;
mod service;
mod store;
mod tools;

use std::path::PathBuf;
use std::sync::Arc;

use mcp::server::{LineOptions, LinesError, serve_lines};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::service::DemoService;
use crate::store::Store;

pub use crate::store::OpenError;

#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    #[error("cannot open the notes in {}", path.display())]
    Open {
        path: PathBuf,
        #[source]
        source: OpenError,
    },
    #[error("the demo server was interrupted")]
    Interrupted(#[from] tokio::task::JoinError),
    #[error("the connection to the client broke")]
    Connection(#[from] LinesError),
}

/// Serves the notes in `store`, a file that is made if it does not exist, until `reader` ends.
pub async fn serve<R, W>(store: PathBuf, reader: R, writer: W) -> Result<(), DemoError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let opened = tokio::task::spawn_blocking(move || {
        Store::open(&store).map_err(|source| DemoError::Open {
            path: store,
            source,
        })
    })
    .await??;
    let service = Arc::new(DemoService::new(opened));
    Ok(serve_lines(service, reader, writer, LineOptions::default()).await?)
}
