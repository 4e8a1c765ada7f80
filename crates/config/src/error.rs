//! Why a config file was not taken, in three lines: what, why, what to do.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::fault::Fault;

/// Why there is no config.
#[derive(Debug)]
pub enum LoadError {
    Unreadable {
        file: PathBuf,
        source: io::Error,
    },
    Invalid {
        file: PathBuf,
        fault: Fault,
    },
    /// Others could reach the MCP endpoint, and it would not ask them for a key.
    Exposed {
        file: PathBuf,
        listen: SocketAddr,
    },
}

impl LoadError {
    /// One line: which file, and which part of it.
    pub fn what(&self) -> String {
        match self {
            Self::Unreadable { file, .. } => {
                format!("the config file {} cannot be read", file.display())
            }
            Self::Invalid { file, fault } if fault.path.is_root() => {
                format!("the config file {} is not valid", file.display())
            }
            Self::Invalid { file, fault } => {
                format!(
                    "the config file {} is not valid at {}",
                    file.display(),
                    fault.path
                )
            }
            Self::Exposed { file, listen } => format!(
                "the config file {} does not allow listening on {listen}",
                file.display()
            ),
        }
    }

    /// One line: line and column, and the reason.
    pub fn why(&self) -> String {
        match self {
            Self::Unreadable { source, .. } => source.to_string(),
            Self::Invalid { fault, .. } => fault.to_string(),
            Self::Exposed { .. } => {
                "the address is reachable from other machines and `require_mcp_auth` is false"
                    .to_owned()
            }
        }
    }

    /// One line: what to do about it.
    pub fn help(&self) -> String {
        match self {
            Self::Unreadable { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => {
                    "run `mcpproxy serve` to write a first one, or name another with --config"
                }
                io::ErrorKind::PermissionDenied => "let the user who runs mcpproxy read it",
                _ => "check that the path names a file",
            }
            .to_owned(),
            Self::Invalid { fault, .. } => fault.problem.help(),
            Self::Exposed { .. } => {
                "set `require_mcp_auth` to true, or listen on 127.0.0.1".to_owned()
            }
        }
    }

    /// Whether there is simply no such file.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Unreadable { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{}\n{}\n{}",
            self.what(),
            self.why(),
            self.help()
        )
    }
}

impl std::error::Error for LoadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreadable { source, .. } => Some(source),
            Self::Invalid { fault, .. } => Some(fault),
            Self::Exposed { .. } => None,
        }
    }
}
