//! Where the config is and what overrules it: flag over environment over file.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::error::LoadError;
use crate::load::{self, Loaded};
use crate::model::Config;
use crate::secret::Secret;

const FOLDER: &str = ".mcpproxy";
const FILE: &str = "mcp_config.json";

/// What flags and environment say. The caller merges the two, a flag over a variable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// `--config` or `MCPPROXY_CONFIG`.
    pub config: Option<PathBuf>,
    /// `--data-dir` or `MCPPROXY_DATA_DIR`.
    pub data_dir: Option<PathBuf>,
    /// `--listen` or `MCPPROXY_LISTEN`.
    pub listen: Option<SocketAddr>,
    /// `MCPPROXY_API_KEY`.
    pub api_key: Option<Secret>,
}

/// The command line, with the paths it leads to.
#[derive(Debug, Clone)]
pub struct Settings {
    command_line: CommandLine,
    home: Option<PathBuf>,
    config_file: PathBuf,
}

/// Why the config file or the data directory cannot be located.
#[derive(Debug, thiserror::Error)]
pub enum LocateError {
    #[error(
        "there is no home directory to look for {FOLDER}/{FILE}; name the config file with --config"
    )]
    NoHome,
    #[error("the path {} cannot be made absolute", path.display())]
    Path {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl Settings {
    /// Locates the config file: the one that was named, or the one in the home directory. The
    /// current directory is never searched, because whoever wrote a folder that is visited must
    /// not choose which programs start.
    pub fn locate(command_line: CommandLine, home: Option<PathBuf>) -> Result<Self, LocateError> {
        let home = home.filter(|path| path.is_absolute());
        let config_file = match (not_empty(command_line.config.as_deref()), &home) {
            (Some(named), _) => absolute(named)?,
            (None, Some(home)) => home.join(FOLDER).join(FILE),
            (None, None) => return Err(LocateError::NoHome),
        };
        Ok(Self {
            command_line: CommandLine {
                data_dir: not_empty(command_line.data_dir.as_deref())
                    .map(absolute)
                    .transpose()?,
                ..command_line
            },
            home,
            config_file,
        })
    }

    /// What flags and environment said.
    pub fn command_line(&self) -> &CommandLine {
        &self.command_line
    }

    /// The config file, as an absolute path. It need not exist.
    pub fn config_file(&self) -> &Path {
        &self.config_file
    }

    /// Where data lives when this config applies: what the command line says, then what the file
    /// says, then `~/.mcpproxy`. Without a home directory, beside the config file.
    pub fn data_dir(&self, config: &Config) -> PathBuf {
        let beside_config = self.config_file.parent().unwrap_or(Path::new("/"));
        if let Some(named) = &self.command_line.data_dir {
            return named.clone();
        }
        match (&config.data_dir, &self.home) {
            (Some(written), Some(home)) => match written.strip_prefix("~") {
                Ok(rest) => home.join(rest),
                Err(_) => beside_config.join(written),
            },
            (Some(written), None) => beside_config.join(written),
            (None, Some(home)) => home.join(FOLDER),
            (None, None) => beside_config.to_owned(),
        }
    }

    /// Reads the config file and lets the command line overrule it.
    pub fn load(&self) -> Result<Loaded, LoadError> {
        self.overrule(load::load(&self.config_file)?)
    }

    /// Like [`Settings::load`], for content that was read already.
    pub fn parse(&self, content: &[u8]) -> Result<Loaded, LoadError> {
        self.overrule(load::parse(content, &self.config_file)?)
    }

    fn overrule(&self, loaded: Loaded) -> Result<Loaded, LoadError> {
        let Loaded { config, warnings } = loaded;
        let config = Config {
            listen: self.command_line.listen.unwrap_or(config.listen),
            data_dir: Some(self.data_dir(&config)),
            api_key: self.command_line.api_key.clone().or(config.api_key),
            ..config
        };
        // Only here is it known which address counts. Checked on every reload, too, so that a
        // daemon that others can reach cannot be opened up by an edit.
        if !config.listen.ip().is_loopback() && !config.require_mcp_auth {
            return Err(LoadError::Exposed {
                file: self.config_file.clone(),
                listen: config.listen,
            });
        }
        Ok(Loaded { config, warnings })
    }
}

/// An empty variable counts as one that is not set.
fn not_empty(path: Option<&Path>) -> Option<&Path> {
    path.filter(|path| !path.as_os_str().is_empty())
}

fn absolute(path: &Path) -> Result<PathBuf, LocateError> {
    std::path::absolute(path).map_err(|source| LocateError::Path {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(command_line: CommandLine) -> Settings {
        Settings::locate(command_line, Some("/home/ada".into())).unwrap()
    }

    fn named(config: &str) -> CommandLine {
        CommandLine {
            config: Some(config.into()),
            ..CommandLine::default()
        }
    }

    #[test]
    fn the_file_in_the_home_directory_is_the_default() {
        for command_line in [CommandLine::default(), named("")] {
            let settings = settings(command_line);
            assert_eq!(
                settings.config_file(),
                Path::new("/home/ada/.mcpproxy/mcp_config.json")
            );
            assert_eq!(
                settings.data_dir(&Config::default()),
                Path::new("/home/ada/.mcpproxy")
            );
        }
    }

    #[test]
    fn a_named_file_needs_no_home_directory() {
        let located = Settings::locate(named("/etc/m.json"), None).unwrap();
        assert_eq!(located.config_file(), Path::new("/etc/m.json"));
        assert_eq!(located.data_dir(&Config::default()), Path::new("/etc"));
        let error = Settings::locate(CommandLine::default(), None).unwrap_err();
        assert!(matches!(error, LocateError::NoHome));
        // A relative home would make the current directory choose the config.
        let error = Settings::locate(CommandLine::default(), Some("".into())).unwrap_err();
        assert!(matches!(error, LocateError::NoHome));
    }

    #[test]
    fn a_relative_path_becomes_absolute() {
        let settings = settings(named("some/m.json"));
        assert!(settings.config_file().is_absolute());
        assert!(settings.config_file().ends_with("some/m.json"));
    }

    #[test]
    fn the_command_line_overrules_the_file() {
        let text =
            br#"{"listen": "127.0.0.1:1", "data_dir": "/file", "api_key": "the key in a file"}"#;
        let from_file = settings(named("/c/m.json")).parse(text).unwrap().config;
        assert_eq!(from_file.listen.port(), 1);
        assert_eq!(from_file.data_dir.as_deref(), Some(Path::new("/file")));
        assert_eq!(from_file.api_key, Some("the key in a file".into()));
        let overruled = settings(CommandLine {
            config: Some("/c/m.json".into()),
            data_dir: Some("/flag".into()),
            listen: Some(([127, 0, 0, 1], 2).into()),
            api_key: Some("flag".into()),
        });
        let overruled = overruled.parse(text).unwrap().config;
        assert_eq!(overruled.listen.port(), 2);
        assert_eq!(overruled.data_dir.as_deref(), Some(Path::new("/flag")));
        assert_eq!(overruled.api_key, Some("flag".into()));
    }

    #[test]
    fn a_data_directory_in_the_file_is_relative_to_it() {
        let located = |written: &str| {
            let text = format!(r#"{{"data_dir": "{written}"}}"#);
            settings(named("/c/m.json"))
                .parse(text.as_bytes())
                .unwrap()
                .config
                .data_dir
        };
        assert_eq!(located("data"), Some("/c/data".into()));
        assert_eq!(located("/data"), Some("/data".into()));
        assert_eq!(located("~/data"), Some("/home/ada/data".into()));
    }

    #[test]
    fn an_open_address_needs_authentication() {
        let public = CommandLine {
            listen: Some(([0, 0, 0, 0], 8080).into()),
            ..named("m.json")
        };
        let error = settings(public.clone()).parse(b"{}").unwrap_err();
        assert!(matches!(error, LoadError::Exposed { .. }), "{error}");
        assert!(
            settings(public)
                .parse(br#"{"require_mcp_auth": true}"#)
                .is_ok()
        );
        assert!(
            settings(named("m.json"))
                .parse(br#"{"listen": "[::1]:1"}"#)
                .is_ok()
        );
        let written = settings(named("m.json")).parse(br#"{"listen": "192.0.2.1:1"}"#);
        assert!(matches!(written, Err(LoadError::Exposed { .. })));
    }
}
