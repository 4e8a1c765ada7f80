//! Commands that a person copies into a shell.

use std::net::SocketAddr;
use std::path::Path;

use config::{CommandLine, Settings};

/// `mcpproxy` with the options that chose config, data directory and address, so that the command
/// that follows means the same ones.
pub(crate) fn program(settings: &Settings) -> String {
    program_at(settings, settings.command_line().listen)
}

/// The same for a daemon at another address, or without a word about it.
pub(crate) fn program_at(settings: &Settings, listen: Option<SocketAddr>) -> String {
    let CommandLine {
        config, data_dir, ..
    } = settings.command_line();
    let mut program = "mcpproxy".to_owned();
    if config.is_some() {
        program.push_str(&format!(" --config {}", quoted(settings.config_file())));
    }
    if let Some(data_dir) = data_dir {
        program.push_str(&format!(" --data-dir {}", quoted(data_dir)));
    }
    if let Some(listen) = listen {
        program.push_str(&format!(" --listen {}", word(&listen.to_string())));
    }
    program
}

/// A path as one word of a command.
pub(crate) fn quoted(path: &Path) -> String {
    word(&path.to_string_lossy())
}

/// A text as one word of a command, whatever a hostile server put into it.
pub(crate) fn word(text: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-~+:".contains(letter);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}
