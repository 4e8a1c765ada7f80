//! A program that the system starts at login: a systemd user unit on Linux, a launchd agent on
//! macOS.

mod launchd;
mod systemd;

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

/// What the service runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// What it is, for people.
    pub description: String,
    pub program: PathBuf,
    pub arguments: Vec<String>,
    /// What the service manager's own environment lacks.
    pub environment: Vec<(String, String)>,
    /// Seconds that the program may take to end.
    pub stop_seconds: u64,
}

/// A service of this user, installed or not.
#[derive(Debug, Clone)]
pub struct Service {
    manager: Manager,
    name: String,
    home: PathBuf,
}

/// How far a service is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    pub installed: bool,
    /// What the service manager says, as `active`; `None` if there is none to ask.
    pub running: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manager {
    Systemd,
    Launchd,
}

#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    #[error("there is no home directory for the service's file")]
    NoHome,
    #[error("{} cannot be written", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("`{command}` cannot be run")]
    NoManager { command: String, source: io::Error },
    #[error("`{command}` failed: {output}")]
    Refused { command: String, output: String },
    #[error("{} is not a path that a service's file can hold", .0.display())]
    Path(PathBuf),
}

const MANAGER: Manager = if cfg!(target_os = "macos") {
    Manager::Launchd
} else {
    Manager::Systemd
};

// === impl Service ===

impl Service {
    /// The service of this name of the user whose home directory is given.
    pub fn of_user(name: &str, home: Option<&Path>) -> Result<Self, ServiceError> {
        Ok(Self {
            manager: MANAGER,
            name: name.to_owned(),
            home: home.ok_or(ServiceError::NoHome)?.to_owned(),
        })
    }

    /// The file that defines the service.
    pub fn file(&self) -> PathBuf {
        match self.manager {
            Manager::Systemd => self
                .home
                .join(".config/systemd/user")
                .join(format!("{}.service", self.name)),
            Manager::Launchd => self
                .home
                .join("Library/LaunchAgents")
                .join(format!("{}.plist", self.name)),
        }
    }

    /// Whether the service is installed and runs this program with these arguments.
    pub fn runs(&self, definition: &Definition) -> bool {
        let Ok(written) = std::fs::read_to_string(self.file()) else {
            return false;
        };
        let command = match self.manager {
            Manager::Systemd => systemd::command(definition),
            Manager::Launchd => launchd::command(definition),
        };
        command.is_ok_and(|command| written.contains(&command))
    }

    /// Writes the file, and has the service started now and at every login.
    pub async fn install(&self, definition: &Definition) -> Result<(), ServiceError> {
        let text = self.text(definition)?;
        let path = self.file();
        let write = || {
            std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
            std::fs::write(&path, text)
        };
        write().map_err(|source| ServiceError::File {
            path: path.clone(),
            source,
        })?;
        for command in self.commands(Step::Install) {
            command.run().await?;
        }
        Ok(())
    }

    /// Ends the service and removes its file. Says whether there was one.
    pub async fn uninstall(&self) -> Result<bool, ServiceError> {
        let path = self.file();
        if !path.exists() {
            return Ok(false);
        }
        // A service that does not run, or a manager that is not there, keeps nobody from removing
        // the file.
        for command in self.commands(Step::Stop) {
            let _ = command.run().await;
        }
        std::fs::remove_file(&path).map_err(|source| ServiceError::File { path, source })?;
        for command in self.commands(Step::Forget) {
            let _ = command.run().await;
        }
        Ok(true)
    }

    /// Starts a service that is installed.
    pub async fn start(&self) -> Result<(), ServiceError> {
        for command in self.commands(Step::Start) {
            command.run().await?;
        }
        Ok(())
    }

    pub async fn state(&self) -> State {
        let mut running = None;
        for command in self.commands(Step::Ask) {
            running = match command.run().await {
                Ok(()) => Some(true),
                Err(ServiceError::Refused { .. }) => Some(false),
                Err(_) => None,
            };
        }
        State {
            installed: self.file().exists(),
            running,
        }
    }

    fn text(&self, definition: &Definition) -> Result<String, ServiceError> {
        match self.manager {
            Manager::Systemd => systemd::unit(definition),
            Manager::Launchd => launchd::plist(&self.name, definition),
        }
    }

    fn commands(&self, step: Step) -> Vec<ManagerCommand> {
        match self.manager {
            Manager::Systemd => systemd::commands(&self.name, step),
            Manager::Launchd => launchd::commands(&self.name, &self.file(), step),
        }
    }
}

/// What is asked of a service manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Install,
    Start,
    Stop,
    /// The file is gone.
    Forget,
    /// Whether it runs.
    Ask,
}

/// One command of a service manager.
#[derive(Debug, PartialEq, Eq)]
struct ManagerCommand(Vec<String>);

impl ManagerCommand {
    fn of(words: &[&str]) -> Self {
        Self(words.iter().map(|word| (*word).to_owned()).collect())
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a command of the system that ends by itself and has no children"
    )]
    async fn run(self) -> Result<(), ServiceError> {
        let command = self.0.join(" ");
        let (program, arguments) = self
            .0
            .split_first()
            .map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
        let output = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await;
        let output = output.map_err(|source| ServiceError::NoManager {
            command: command.clone(),
            source,
        })?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(ServiceError::Refused {
            command,
            output: if said.is_empty() {
                output.status.to_string()
            } else {
                said
            },
        })
    }
}
