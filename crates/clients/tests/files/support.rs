//! A home directory with files in it.

use std::path::PathBuf;

use clients::{Approval, Client, Endpoint, Places, Plan, Platform, Receipts, connect, undo};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) struct Home {
    folder: TempDir,
    pub(crate) places: Places,
    pub(crate) receipts: Receipts,
}

impl Home {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut places = Places::new(folder.path(), Platform::Linux);
        places.system = folder.path().join("system");
        let places = places.with_project(Some(&folder.path().join("project")));
        let receipts = Receipts::new(&folder.path().join("data"));
        Self {
            folder,
            places,
            receipts,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(name)).unwrap()
    }

    /// Connects with these and returns what was planned.
    pub(crate) fn connect(&self, client: Client, endpoint: &Endpoint, approval: Approval) -> Plan {
        let plan = connect(client, &self.places, endpoint, approval, &[]).unwrap();
        plan.apply(&self.receipts).unwrap();
        plan
    }

    pub(crate) fn undo(&self, client: Client) -> Plan {
        let plan = undo(client, &self.receipts).unwrap();
        plan.apply(&self.receipts).unwrap();
        plan
    }

    /// Every file below the home directory but our own notes, with its content.
    pub(crate) fn files(&self) -> Vec<(PathBuf, String)> {
        let mut files = Vec::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() && !path.ends_with("data") {
                    folders.push(path);
                } else if path.is_file() {
                    let text = std::fs::read_to_string(&path).unwrap();
                    files.push((path, text));
                }
            }
        }
        files.sort();
        files
    }
}

pub(crate) fn http() -> Endpoint {
    Endpoint::Http {
        url: "http://127.0.0.1:8080/mcp".into(),
        needs_key: false,
    }
}

pub(crate) fn stdio() -> Endpoint {
    Endpoint::Stdio {
        command: "/opt/mcpproxy".into(),
        args: vec!["stdio".into()],
    }
}

/// The endpoint a client can use.
pub(crate) fn endpoint_of(client: Client) -> Endpoint {
    match client {
        Client::ClaudeDesktop => stdio(),
        _ => http(),
    }
}
