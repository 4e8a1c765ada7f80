//! Changes to the config file on behalf of the operator.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use config::{Document, SaveError, Settings};
use tokio::sync::Mutex;

use crate::engine::Engine;
use crate::rest::ApiError;

/// How long the running config may take to follow the file.
const PATIENCE: Duration = Duration::from_secs(3);

/// The config file of this process, edited by one request at a time.
#[derive(Debug, Clone)]
pub(crate) struct ConfigEditor {
    settings: Settings,
    /// Whether a file that is missing is an empty one, because there has been none since the start.
    /// One that is gone leaves the last good config in force, which an edit must not throw away.
    creates: Arc<AtomicBool>,
    editing: Arc<Mutex<()>>,
}

impl ConfigEditor {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            creates: Arc::new(AtomicBool::new(!settings.config_file().exists())),
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
        if self.creates.load(Ordering::Relaxed) {
            if !self.file().exists() {
                config::write_new(&self.file(), "{}\n").map_err(|error| not_saved(&error))?;
            }
            self.creates.store(false, Ordering::Relaxed);
        }
        let mut document = Document::load(&self.file()).map_err(|error| invalid(&error))?;
        change(&mut document)?;
        document.save().map_err(|error| not_saved(&error))?;
        // The watcher will have the same file reloaded, which changes nothing.
        let reloading = engine.reload(self.settings.clone());
        match tokio::time::timeout(PATIENCE, reloading).await {
            Ok(Some(reloaded)) => reloaded.map_err(|error| invalid(&error)),
            Ok(None) | Err(_) => Err(ApiError::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "CONFIG_NOT_APPLIED",
                "the config file is changed, and the daemon is slow to follow",
            )),
        }
    }
}

fn not_saved(error: &SaveError) -> ApiError {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    let message = format!("{error}{}", cause.unwrap_or_default());
    ApiError::conflict("CONFIG_NOT_SAVED", message).hint("look at the config file and try again")
}

fn invalid(error: &config::LoadError) -> ApiError {
    ApiError::new(
        StatusCode::CONFLICT,
        "CONFIG_INVALID",
        format!("{}: {}", error.what(), error.why()),
    )
    .hint(error.help())
}
