//! What reached a scripted upstream, written down so that a test can compare.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One thing that happened to an upstream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    Started {
        pid: u32,
        grandchild: Option<u32>,
    },
    /// A message, exactly as it arrived.
    Received {
        pid: u32,
        text: String,
    },
}

/// The file of one upstream's events, one JSON a line, over all the times it was started.
#[derive(Debug, Clone)]
pub struct Record {
    path: PathBuf,
}

/// The writing end.
#[derive(Debug)]
pub(super) struct Recorder {
    file: Mutex<File>,
}

impl Record {
    pub(crate) fn at(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }

    pub fn events(&self) -> Vec<Event> {
        let text = std::fs::read_to_string(&self.path).unwrap_or_default();
        // The last line may be half written at the moment of reading.
        text.split_inclusive('\n')
            .filter(|line| line.ends_with('\n'))
            .map(|line| serde_json::from_str(line).expect("an event is JSON"))
            .collect()
    }

    /// The messages that arrived, with this method.
    pub fn received(&self, method: &str) -> Vec<Value> {
        let mut messages = self.messages();
        messages.retain(|message| message["method"] == method);
        messages
    }

    /// The `params` of the calls that arrived.
    pub fn calls(&self) -> Vec<Value> {
        self.received("tools/call")
            .iter()
            .map(|message| message["params"].clone())
            .collect()
    }

    /// The messages that arrived and are answers.
    pub fn answers(&self) -> Vec<Value> {
        let mut messages = self.messages();
        messages.retain(|message| message.get("method").is_none());
        messages
    }

    /// How often the upstream was started, and as which processes.
    pub fn pids(&self) -> Vec<u32> {
        self.starts().map(|(pid, _)| pid).collect()
    }

    pub fn grandchildren(&self) -> Vec<u32> {
        self.starts()
            .filter_map(|(_, grandchild)| grandchild)
            .collect()
    }

    fn starts(&self) -> impl Iterator<Item = (u32, Option<u32>)> {
        self.events().into_iter().filter_map(|event| match event {
            Event::Started { pid, grandchild } => Some((pid, grandchild)),
            Event::Received { .. } => None,
        })
    }

    fn messages(&self) -> Vec<Value> {
        self.events()
            .into_iter()
            .filter_map(|event| match event {
                Event::Received { text, .. } => serde_json::from_str(&text).ok(),
                Event::Started { .. } => None,
            })
            .collect()
    }
}

impl Recorder {
    pub(super) fn append_to(path: &Path) -> Self {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .expect("the record can be written");
        Self {
            file: Mutex::new(file),
        }
    }

    pub(super) fn started(&self, grandchild: Option<u32>) {
        let pid = std::process::id();
        self.write(&Event::Started { pid, grandchild });
    }

    pub(super) fn received(&self, text: &str) {
        self.write(&Event::Received {
            pid: std::process::id(),
            text: text.to_owned(),
        });
    }

    fn write(&self, event: &Event) {
        let mut line = serde_json::to_vec(event).expect("an event can be written");
        line.push(b'\n');
        // One write, so that processes that append to the same file do not mix their lines.
        let mut file = self.file.lock().expect("nobody panicked while writing");
        file.write_all(&line).expect("the record can be written");
    }
}
