//! Changes to the config file that leave everything else in it as it was.

mod document;
mod entry;
mod text;
mod write;

pub use document::Document;
pub(crate) use entry::{Audience, server_entry};
pub(crate) use text::pretty;
pub use write::write_new;

use std::io;
use std::path::PathBuf;

use crate::error::LoadError;

/// Why a change was not saved. The file is then as it was before.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    #[error("the config file {} cannot be written", file.display())]
    Write {
        file: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the config file {} was changed by somebody else meanwhile; try again", file.display())]
    ChangedMeanwhile { file: PathBuf },
    #[error("the changed config would not be valid")]
    Invalid(#[source] LoadError),
}
