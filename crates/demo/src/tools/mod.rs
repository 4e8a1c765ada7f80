//! The tools: [`TABLE`] lists them, one module per tier does their work.

mod destructive;
mod read;
mod reply;
mod schema;
mod soft_delete;
mod table;
mod tier;
mod write;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::note::TextError;
use crate::progress::{Cancelled, Progress};
use crate::store::{Store, StoreError};

pub(crate) use reply::Reply;
pub(crate) use table::TABLE;
use tier::Tier;

/// One row of the table.
#[derive(Debug)]
pub(crate) struct Tool {
    pub name: &'static str,
    title: &'static str,
    tier: Tier,
    description: &'static str,
    input_schema: fn() -> Value,
    run: fn(Value, &mut Store, &Progress) -> Result<Reply, ToolError>,
}

/// The arguments of a tool, and what the tool does with them.
trait Call: DeserializeOwned + JsonSchema {
    fn call(self, store: &mut Store, progress: &Progress) -> Result<Reply, ToolError>;
}

/// Why a tool did not do what it was asked. The client gets it as the result of the call, so that
/// a model can read it and try again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ToolError {
    #[error(transparent)]
    Arguments(#[from] serde_path_to_error::Error<serde_json::Error>),
    #[error("nothing to change: give `title`, `body` or both")]
    NothingToChange,
    #[error("nothing to import: `notes` is empty")]
    NothingToImport,
    #[error(transparent)]
    Text(#[from] TextError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

impl Tool {
    const fn new<Arguments: Call>(
        name: &'static str,
        title: &'static str,
        tier: Tier,
        description: &'static str,
    ) -> Self {
        Self {
            name,
            title,
            tier,
            description,
            input_schema: schema::input_schema::<Arguments>,
            run: |arguments, store, progress| {
                serde_path_to_error::deserialize::<_, Arguments>(arguments)?.call(store, progress)
            },
        }
    }

    /// The tool as `tools/list` shows it.
    pub(crate) fn definition(&self) -> Value {
        json!({
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": (self.input_schema)(),
            "annotations": self.tier.annotations(),
        })
    }

    /// Runs the tool. Its result as MCP has it, whether it went well or not.
    pub(crate) fn run(&self, arguments: Value, store: &mut Store, progress: &Progress) -> Value {
        match (self.run)(arguments, store, progress) {
            Ok(reply) => reply.into_result(),
            Err(error) => self.failure(&error),
        }
    }

    fn failure(&self, error: &ToolError) -> Value {
        let text = match error {
            ToolError::Arguments(_) => {
                let takes = schema::summary(&(self.input_schema)());
                format!("{}: {error}. Arguments: {takes}.", self.name)
            }
            _ => format!("{}: {error}.", self.name),
        };
        json!({ "content": [{ "type": "text", "text": text }], "isError": true })
    }
}
