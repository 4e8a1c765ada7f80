//! What clients do with our tools, read from their own files.

use std::path::PathBuf;

use crate::client::Client;
use crate::error::ClientFileError;
use crate::file;
use crate::places::Places;

/// One of the tools that clients see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnTool {
    pub name: &'static str,
    /// Whether it can change anything.
    pub reads: bool,
}

/// The tools that clients see, in their order.
pub const OWN_TOOLS: [OwnTool; 6] = [
    OwnTool::reading("retrieve_tools"),
    OwnTool::reading("describe_tool"),
    OwnTool::reading("call_tool_read"),
    OwnTool::changing("call_tool_write"),
    OwnTool::changing("call_tool_destructive"),
    OwnTool::reading("read_cache"),
];

/// What happens when an agent calls one of our tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It runs without a question.
    Silent,
    /// The client asks the person.
    Asks,
    /// The client refuses.
    Denied,
    /// No file says it; it is set in the client itself.
    Unknown,
}

/// One client's word on each of our tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permissions {
    /// In the order of [`OWN_TOOLS`].
    pub verdicts: [Verdict; 6],
    /// The files that were read.
    pub files: Vec<PathBuf>,
    /// Whether the client has an entry for us, and so sees the tools at all.
    pub connected: bool,
    /// Rules that do not do what they seem to, and what else is worth knowing.
    pub notes: Vec<String>,
}

impl OwnTool {
    const fn reading(name: &'static str) -> Self {
        Self { name, reads: true }
    }

    const fn changing(name: &'static str) -> Self {
        Self { name, reads: false }
    }
}

impl Verdict {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Silent => "silent",
            Self::Asks => "asks",
            Self::Denied => "denied",
            Self::Unknown => "unknown",
        }
    }
}

impl Permissions {
    /// The verdict on each tool, from a function of it.
    pub(crate) fn judge(verdict: impl Fn(OwnTool) -> Verdict) -> Self {
        Self {
            verdicts: OWN_TOOLS.map(verdict),
            files: Vec::new(),
            connected: false,
            notes: Vec::new(),
        }
    }

    #[must_use]
    pub(crate) fn read_from(mut self, files: impl IntoIterator<Item = PathBuf>) -> Self {
        self.files.extend(files);
        self
    }

    #[must_use]
    pub(crate) fn noting(mut self, notes: impl IntoIterator<Item = String>) -> Self {
        self.notes.extend(notes);
        self
    }

    /// The verdict on a tool by its name.
    pub fn verdict(&self, tool: &str) -> Verdict {
        let found = OWN_TOOLS.iter().zip(self.verdicts);
        let mut found = found.filter(|(own, _)| own.name == tool);
        found
            .next()
            .map_or(Verdict::Unknown, |(_, verdict)| verdict)
    }

    /// Whether something that may change data runs without a question.
    pub fn changes_silently(&self) -> bool {
        let mut pairs = OWN_TOOLS.iter().zip(self.verdicts);
        pairs.any(|(tool, verdict)| !tool.reads && verdict == Verdict::Silent)
    }
}

/// Reads what a client would do.
pub fn permissions(client: Client, places: &Places) -> Result<Permissions, ClientFileError> {
    let adapter = client.adapter();
    let mut permissions = adapter.permissions(places)?;
    let mut files = vec![adapter.main_file(places)];
    files.extend(adapter.other_files(places));
    for file in files {
        if let Some(document) = file::read_document(&file.path, file.syntax)? {
            let entry = document.get(&file.own_entry());
            let entry = entry.map_err(|source| ClientFileError::Shape {
                path: file.path.clone(),
                source,
            })?;
            permissions.connected |= entry.is_some();
        }
    }
    Ok(permissions)
}
