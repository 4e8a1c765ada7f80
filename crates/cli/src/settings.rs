//! From flags and environment to the config in force.

use config::{CommandLine, Document, LoadError, Loaded, SaveError, Secret, Settings};

use crate::args::Global;
use crate::exit::{Exit, Failure};

const EMPTY_CONFIG: &str = "{\n  \"mcpServers\": {}\n}\n";

pub(crate) fn locate(global: &Global) -> Result<Settings, Failure> {
    let api_key = std::env::var("MCPPROXY_API_KEY")
        .ok()
        .filter(|key| !key.is_empty());
    let command_line = CommandLine {
        config: global.config.clone(),
        data_dir: global.data_dir.clone(),
        listen: global.listen,
        api_key: api_key.map(Secret::from),
    };
    Settings::locate(command_line, std::env::home_dir()).map_err(|error| {
        Failure::from_error(Exit::Config, "the config file cannot be found", &error)
    })
}

/// The config in force. A file that does not exist is as good as an empty one.
pub(crate) fn load(settings: &Settings) -> Result<Loaded, Failure> {
    if settings.config_file().exists() {
        settings.load().map_err(|error| config_failure(&error))
    } else {
        settings
            .parse(b"{}")
            .map_err(|error| config_failure(&error))
    }
}

/// Edits the config file in one step; one that does not exist is made.
pub(crate) fn edit(
    settings: &Settings,
    change: impl FnOnce(&mut Document) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let file = settings.config_file();
    let failed = |error: &SaveError| match error {
        SaveError::Invalid(error) => {
            Failure::new(Exit::Config, "the changed config would not be valid")
                .why(error.why())
                .advice(error.help())
        }
        error => Failure::from_error(Exit::Config, "the config file cannot be saved", error)
            .advice("see what is wrong with `mcpproxy config check`, and try again"),
    };
    if !file.exists() {
        config::write_new(file, EMPTY_CONFIG).map_err(|error| failed(&error))?;
    }
    let mut document = Document::load(file).map_err(|error| config_failure(&error))?;
    change(&mut document)?;
    document.save().map_err(|error| failed(&error))
}

pub(crate) fn config_failure(error: &LoadError) -> Failure {
    Failure::new(Exit::Config, error.what())
        .why(error.why())
        .advice(error.help())
}
