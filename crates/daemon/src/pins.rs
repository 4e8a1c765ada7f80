//! The pins of tools on the disk: one file per upstream, replaced as a whole, so that whoever reads
//! it finds the old pins or the new ones.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use catalog::{ServerPins, ToolDefinition};
use policy::ServerName;
use serde::{Deserialize, Serialize};
use upstream::KnownTools;

const DIRECTORY: &str = "pins";
const VERSION: u32 = 1;

#[derive(Debug, thiserror::Error)]
pub enum PinsError {
    #[error("the pins in {} cannot be used", path.display())]
    Unusable { path: PathBuf, source: io::Error },
    #[error(
        "the pins in {} were written by a newer mcpproxy (version {found}, this one knows {VERSION})",
        path.display()
    )]
    Newer { path: PathBuf, found: u32 },
}

impl PinsError {
    pub fn path(&self) -> &Path {
        match self {
            Self::Unusable { path, .. } | Self::Newer { path, .. } => path,
        }
    }
}

/// What is remembered of the tools of every upstream that was ever seen, and where.
#[derive(Debug, Default)]
pub struct Pins {
    directory: Option<PathBuf>,
    pub(crate) servers: HashMap<ServerName, ServerPins>,
    /// Upstreams whose pins could not be read any more.
    pub(crate) lost: Vec<ServerName>,
}

/// Where pins are written.
#[derive(Debug, Clone)]
pub(crate) struct PinFiles {
    directory: Option<PathBuf>,
}

/// What a file holds.
#[derive(Serialize)]
struct Written<'a> {
    version: u32,
    server: &'a ServerName,
    pins: &'a ServerPins,
}

#[derive(Deserialize)]
struct Header {
    version: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Read {
    #[serde(rename = "version")]
    _version: u32,
    server: ServerName,
    pins: ServerPins,
}

impl Pins {
    /// Reads the pins in the data directory. A file that is damaged is kept aside.
    pub fn open(data_dir: &Path) -> Result<Self, PinsError> {
        let directory = data_dir.join(DIRECTORY);
        let mut pins = Self::default();
        for path in files_in(&directory)? {
            let unusable = |source| PinsError::Unusable {
                path: path.clone(),
                source,
            };
            let text = fs::read_to_string(&path).map_err(unusable)?;
            match parse(&text) {
                Ok(Read {
                    server, pins: read, ..
                }) => drop(pins.servers.insert(server, read)),
                Err(Unread::Newer(found)) => return Err(PinsError::Newer { path, found }),
                Err(Unread::Damaged(error)) => {
                    let aside = path.with_extension("damaged");
                    fs::rename(&path, &aside).map_err(unusable)?;
                    tracing::error!(
                        %error,
                        kept_as = %aside.display(),
                        "the pins of a server are damaged; they are kept aside"
                    );
                    let stem = path.file_stem().and_then(|stem| stem.to_str());
                    pins.lost.extend(stem.and_then(|stem| stem.parse().ok()));
                }
            }
        }
        pins.directory = Some(directory);
        Ok(pins)
    }

    /// Whether [`Pins::open`] would succeed. Nothing is touched, not even what is damaged.
    pub fn check(data_dir: &Path) -> Result<(), PinsError> {
        for path in files_in(&data_dir.join(DIRECTORY))? {
            let unusable = |source| PinsError::Unusable {
                path: path.clone(),
                source,
            };
            let text = fs::read_to_string(&path).map_err(unusable)?;
            if let Err(Unread::Newer(found)) = parse(&text) {
                return Err(PinsError::Newer { path, found });
            }
        }
        Ok(())
    }

    /// Pins that are forgotten at the end, for an upstream that is only visited.
    pub fn forgetful() -> Self {
        Self::default()
    }

    /// The tools that upstreams had when they were last seen, as far as pins tell: what was removed
    /// since is among them, and what waits for approval is not.
    pub(crate) fn known_tools(&self) -> KnownTools {
        let of_server = |(server, pins): (&ServerName, &ServerPins)| {
            let pins = pins.tools.values().filter(|pin| pin.pending.is_none());
            let tools = pins.filter_map(|pin| {
                let tool = ToolDefinition::parse(server, pin.definition.clone());
                tool.ok().map(Arc::new)
            });
            (server.clone(), tools.collect())
        };
        self.servers.iter().map(of_server).collect()
    }

    pub(crate) fn files(&self) -> PinFiles {
        PinFiles {
            directory: self.directory.clone(),
        }
    }
}

impl PinFiles {
    /// Replaces the file of an upstream; the pins are on the disk when this returns.
    pub(crate) fn write(&self, server: &ServerName, pins: &ServerPins) -> Result<(), PinsError> {
        let Some(directory) = &self.directory else {
            return Ok(());
        };
        let path = directory.join(format!("{server}.json"));
        let attempt = || -> io::Result<()> {
            let text = serde_json::to_string(&Written {
                version: VERSION,
                server,
                pins,
            })?;
            make_private(directory)?;
            let new = path.with_extension("new");
            let mut file = create_private(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, &path)?;
            File::open(directory)?.sync_all()
        };
        attempt().map_err(|source| PinsError::Unusable {
            path: path.clone(),
            source,
        })
    }
}

enum Unread {
    Newer(u32),
    Damaged(serde_json::Error),
}

fn parse(text: &str) -> Result<Read, Unread> {
    match serde_json::from_str::<Header>(text) {
        Ok(header) if header.version > VERSION => return Err(Unread::Newer(header.version)),
        _ => {}
    }
    serde_json::from_str(text).map_err(Unread::Damaged)
}

fn files_in(directory: &Path) -> Result<Vec<PathBuf>, PinsError> {
    let unusable = |source| PinsError::Unusable {
        path: directory.to_owned(),
        source,
    };
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(unusable)?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(unusable)?.path();
        // What else is here is unfinished or set aside.
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            files.push(path);
        }
    }
    Ok(files)
}

/// An empty file for its owner alone, also where an unfinished one was left behind.
fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}

fn make_private(directory: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(data_dir: &Path) -> PathBuf {
        let pins = Pins::open(data_dir).unwrap();
        let server: ServerName = "notes".parse().unwrap();
        let quarantined = ServerPins {
            quarantined: true,
            ..ServerPins::default()
        };
        pins.files().write(&server, &quarantined).unwrap();
        data_dir.join(DIRECTORY).join("notes.json")
    }

    #[test]
    fn what_was_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        written(folder.path());
        let pins = Pins::open(folder.path()).unwrap();
        assert!(pins.servers[&"notes".parse::<ServerName>().unwrap()].quarantined);
        assert!(pins.lost.is_empty());
    }

    #[test]
    fn pins_are_for_their_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join(DIRECTORY);
        make_private(&directory).unwrap();
        // What an earlier attempt left behind is not better known than what takes its place.
        let unfinished = directory.join("notes.new");
        fs::write(&unfinished, "").unwrap();
        fs::set_permissions(&unfinished, Permissions::from_mode(0o644)).unwrap();
        let path = written(folder.path());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&directory), 0o700);
        assert_eq!(mode(&path), 0o600);
    }

    #[test]
    fn a_damaged_file_is_kept_aside_and_told_of() {
        let folder = tempfile::tempdir().unwrap();
        let path = written(folder.path());
        for damaged in ["", "{\"version\":1", "{\"version\":1,\"server\":\"notes\"}"] {
            fs::write(&path, damaged).unwrap();
            let pins = Pins::open(folder.path()).unwrap();
            assert_eq!(pins.lost, ["notes".parse().unwrap()], "{damaged}");
            assert!(pins.servers.is_empty());
            let aside = fs::read_to_string(path.with_extension("damaged")).unwrap();
            assert_eq!(aside, damaged);
        }
    }

    #[test]
    fn a_newer_file_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = written(folder.path());
        fs::write(&path, r#"{"version": 2, "anything": true}"#).unwrap();
        let error = Pins::open(folder.path()).unwrap_err();
        assert!(matches!(error, PinsError::Newer { found: 2, .. }));
        assert!(path.exists());
    }

    #[test]
    fn a_visit_leaves_nothing_behind() {
        let server: ServerName = "notes".parse().unwrap();
        let files = Pins::forgetful().files();
        files.write(&server, &ServerPins::default()).unwrap();
    }
}
