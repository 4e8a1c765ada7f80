//! The daemon's start on behalf of a request.

use std::path::PathBuf;

use config::Settings;
use tokio::sync::Mutex;

use super::Options;
use super::link::Failed;
use crate::background;

/// A daemon that ended, or was ended, is started again only for a request of the client's.
#[derive(Debug)]
pub(super) struct Daemon {
    settings: Option<Settings>,
    data_dir: PathBuf,
    /// Held by the one request that starts it; the others wait.
    starting: Mutex<()>,
}

impl Daemon {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            settings: options.starts_daemon.clone(),
            data_dir: options.data_dir().to_owned(),
            starting: Mutex::default(),
        }
    }

    /// Starts a daemon if none answers.
    pub(super) async fn start(&self) -> Result<(), Failed> {
        let Some(settings) = &self.settings else {
            return Ok(());
        };
        let _one_at_a_time = self.starting.lock().await;
        background::ensure(settings, &self.data_dir)
            .await
            .map_err(|failure| Failed::Unsent(failure.one_line()))
    }
}
