//! The directories a config file depends on, through every symbolic link on the way.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// More links than any system follows.
const MOST_LINKS: usize = 40;

/// The names under which a file is reached: itself, and each target of a link.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Names(BTreeSet<PathBuf>);

impl Names {
    /// Follows `file` as far as it goes; a link into nothing is followed, too, because its target
    /// may appear.
    pub(super) fn of(file: &Path) -> Self {
        let mut names = BTreeSet::new();
        let mut current = with_real_directory(file);
        while names.len() < MOST_LINKS && names.insert(current.clone()) {
            let Ok(target) = std::fs::read_link(&current) else {
                break;
            };
            let directory = current.parent().unwrap_or(Path::new("/"));
            current = with_real_directory(&directory.join(target));
        }
        Self(names)
    }

    pub(super) fn contains(&self, path: &Path) -> bool {
        self.0.contains(path)
    }

    pub(super) fn directories(&self) -> BTreeSet<PathBuf> {
        self.0
            .iter()
            .filter_map(|name| name.parent().map(Path::to_owned))
            .collect()
    }
}

/// Events name files under the directory that is watched, so that has to be free of links.
fn with_real_directory(file: &Path) -> PathBuf {
    match (file.parent().map(Path::canonicalize), file.file_name()) {
        (Some(Ok(directory)), Some(name)) => directory.join(name),
        _ => file.to_owned(),
    }
}
