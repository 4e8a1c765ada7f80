//! Where other programs keep their files, given a home directory, a project and a platform.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The platforms whose folders differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Platform {
    Linux,
    MacOs,
}

/// The roots under which clients keep their files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    pub home: PathBuf,
    /// The folder a person works in, for configs that belong to a project.
    pub project: Option<PathBuf>,
    pub platform: Platform,
    /// What is above everything, for settings an administrator made.
    pub system: PathBuf,
    /// `CLAUDE_CONFIG_DIR`.
    claude: Option<PathBuf>,
    /// `CODEX_HOME`.
    codex: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`.
    xdg_config: Option<PathBuf>,
}

impl Platform {
    /// The platform this program was built for.
    pub fn current() -> Self {
        if cfg!(target_os = "macos") {
            Self::MacOs
        } else {
            Self::Linux
        }
    }
}

impl Places {
    /// The usual places below a home directory.
    pub fn new(home: &Path, platform: Platform) -> Self {
        Self {
            home: home.to_owned(),
            project: None,
            platform,
            system: PathBuf::from("/"),
            claude: None,
            codex: None,
            xdg_config: None,
        }
    }

    /// Follows the variables by which the clients let their folders be moved.
    #[must_use]
    pub fn with_environment(mut self, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let folder = |name: &str| {
            let folder = variable(name).map(PathBuf::from);
            folder.filter(|folder| folder.is_absolute())
        };
        self.claude = folder("CLAUDE_CONFIG_DIR");
        self.codex = folder("CODEX_HOME");
        self.xdg_config = folder("XDG_CONFIG_HOME");
        self
    }

    #[must_use]
    pub fn with_project(mut self, project: Option<&Path>) -> Self {
        // A home directory is not a project, and its files are read as the user's already.
        self.project = project
            .filter(|project| *project != self.home)
            .map(Path::to_owned);
        self
    }

    /// The folder of applications: `~/.config`, or `~/Library/Application Support`.
    pub(crate) fn applications(&self) -> PathBuf {
        match (self.platform, &self.xdg_config) {
            (Platform::MacOs, _) => self.home.join("Library/Application Support"),
            (Platform::Linux, Some(moved)) => moved.clone(),
            (Platform::Linux, None) => self.home.join(".config"),
        }
    }

    /// Where Claude Code keeps the list of its servers.
    pub(crate) fn claude_state(&self) -> PathBuf {
        self.claude
            .as_ref()
            .unwrap_or(&self.home)
            .join(".claude.json")
    }

    /// Where Claude Code keeps its settings.
    pub(crate) fn claude_folder(&self) -> PathBuf {
        match &self.claude {
            Some(moved) => moved.clone(),
            None => self.home.join(".claude"),
        }
    }

    pub(crate) fn codex_folder(&self) -> PathBuf {
        match &self.codex {
            Some(moved) => moved.clone(),
            None => self.home.join(".codex"),
        }
    }

    /// The folder of VS Code's settings.
    pub(crate) fn vs_code_user(&self) -> PathBuf {
        self.applications().join("Code/User")
    }

    /// A file of the project, where there is one.
    pub(crate) fn in_project(&self, path: &str) -> Option<PathBuf> {
        self.project.as_ref().map(|project| project.join(path))
    }
}
