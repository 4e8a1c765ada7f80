//! A log file of bounded size: when it is full, it becomes `FILE.1` and a new one is begun.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A file that is only appended to, readable by its owner alone.
#[derive(Debug)]
pub struct RotatedFile {
    path: PathBuf,
    file: File,
    size: u64,
    limit: u64,
}

impl RotatedFile {
    /// Goes on with the file at `path`, which holds at most `limit` bytes.
    pub fn open(path: PathBuf, limit: u64) -> io::Result<Self> {
        let file = Self::open_to_append(&path)?;
        let size = file.metadata()?.len();
        Ok(Self {
            path,
            file,
            size,
            limit,
        })
    }

    /// Opens the file as it is, for a process whose output is appended without rotation.
    pub fn open_to_append(path: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.create(true).append(true).mode(0o600).open(path)
    }

    /// Where the file is kept that was full before the present one.
    pub fn previous(path: &Path) -> PathBuf {
        let mut previous: OsString = path.into();
        previous.push(".1");
        previous.into()
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends without splitting `bytes` between two files.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.size > 0 && self.size + bytes.len() as u64 > self.limit {
            std::fs::rename(&self.path, Self::previous(&self.path))?;
            self.file = Self::open_to_append(&self.path)?;
            self.size = 0;
        }
        self.size += bytes.len() as u64;
        self.file.write_all(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_file_is_kept_beside_the_new_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.log");
        let mut file = RotatedFile::open(path.clone(), 10).unwrap();
        for line in ["one\n", "two\n", "three\n"] {
            file.append(line.as_bytes()).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "three\n");
        let previous = RotatedFile::previous(&path);
        assert_eq!(std::fs::read_to_string(previous).unwrap(), "one\ntwo\n");
        // The size of what was there before counts.
        let mut again = RotatedFile::open(path.clone(), 10).unwrap();
        again.append(b"four\nfive\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "four\nfive\n");
    }
}
