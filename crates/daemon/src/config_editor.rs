//! Changes to the config file on behalf of the operator.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use config::{Document, Settings};
use tokio::sync::Mutex;

use crate::engine::Engine;
use crate::rest::ApiError;

/// How long the running config may take to follow the file.
const PATIENCE: Duration = Duration::from_secs(3);

/// The config file of this process, edited by one request at a time.
#[derive(Debug, Clone)]
pub(crate) struct ConfigEditor {
    settings: Settings,
    editing: Arc<Mutex<()>>,
}

impl ConfigEditor {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            settings,
            editing: Arc::default(),
        }
    }

    fn file(&self) -> PathBuf {
        self.settings.config_file().to_owned()
    }

    /// Edits the file and makes what it says now the config in force.
    pub(crate) async fn edit(
        &self,
        engine: &Engine,
        change: impl FnOnce(&mut Document) -> Result<(), ApiError>,
    ) -> Result<(), ApiError> {
        let _one_at_a_time = self.editing.lock().await;
        let mut document = Document::load(&self.file()).map_err(|error| invalid(&error))?;
        change(&mut document)?;
        document.save().map_err(|error| {
            ApiError::new(StatusCode::CONFLICT, "CONFIG_NOT_SAVED", error.to_string())
                .hint("look at the config file and try again")
        })?;
        let loaded = self.settings.load().map_err(|error| invalid(&error))?;
        // The watcher will find the same and have nothing left to do.
        let applying = engine.apply(Arc::new(loaded.config));
        tokio::time::timeout(PATIENCE, applying).await.map_err(|_| {
            ApiError::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "CONFIG_NOT_APPLIED",
                "the config file is changed, and the daemon is slow to follow",
            )
        })
    }
}

fn invalid(error: &config::LoadError) -> ApiError {
    ApiError::new(
        StatusCode::CONFLICT,
        "CONFIG_INVALID",
        format!("{}: {}", error.what(), error.why()),
    )
    .hint(error.help())
}
