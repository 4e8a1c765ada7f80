//! Follows the config file: every edit that can be read becomes the new config, and one that
//! cannot is reported while the old config stays.

mod follow;
mod links;

use std::sync::Arc;

use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use crate::error::LoadError;
use crate::load::Loaded;
use crate::model::Config;
use crate::settings::Settings;
use crate::warning::Warning;

/// Watches a config file for as long as it lives. Needs a tokio runtime.
#[derive(Debug)]
pub struct ConfigWatcher {
    config: watch::Receiver<Arc<Config>>,
    report: watch::Receiver<ReloadReport>,
    task: JoinHandle<()>,
}

/// How the last look at the file went.
#[derive(Debug, Clone, Default)]
pub struct ReloadReport {
    /// Why the file is not what is running, if it is not.
    pub error: Option<Arc<LoadError>>,
    /// What is doubtful about the file that is running.
    pub warnings: Arc<[Warning]>,
}

impl ConfigWatcher {
    /// Starts from a config that was just loaded with the same settings.
    pub fn start(settings: Settings, loaded: Loaded) -> Self {
        let (config_sender, config) = watch::channel(Arc::new(loaded.config));
        let (report_sender, report) = watch::channel(ReloadReport {
            error: None,
            warnings: loaded.warnings.into(),
        });
        let wake = Arc::new(Notify::new());
        let follower = follow::Follower::new(settings, wake, config_sender, report_sender);
        Self {
            config,
            report,
            task: tokio::spawn(follower.run()),
        }
    }

    /// The config that applies; changes only when the config differs, not with every save.
    pub fn config(&self) -> watch::Receiver<Arc<Config>> {
        self.config.clone()
    }

    /// How the last reload went.
    pub fn report(&self) -> watch::Receiver<ReloadReport> {
        self.report.clone()
    }
}

impl Drop for ConfigWatcher {
    fn drop(&mut self) {
        self.task.abort();
    }
}
