//! The extension for skills: one skill of two files, one of them in a folder of its own.

use mcp::ErrorObject;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::answers::Answer;

pub(super) const SKILLS: &str = "io.modelcontextprotocol/skills";

const NAME: &str = "tidy-notes";
const DESCRIPTION: &str = "Sorts notes into folders";
const FOLDER: &str = "skill://tidy-notes";
const SUBFOLDER: &str = "skill://tidy-notes/references";

struct File {
    uri: &'static str,
    name: &'static str,
    description: &'static str,
    text: &'static str,
}

/// The first one says what the skill is.
const FILES: [File; 2] = [
    File {
        uri: "skill://tidy-notes/SKILL.md",
        name: NAME,
        description: DESCRIPTION,
        text: "---\nname: tidy-notes\ndescription: Sorts notes into folders\n---\n\n\
               Put every note into the folder of its topic.\n",
    },
    File {
        uri: "skill://tidy-notes/references/FOLDERS.md",
        name: "FOLDERS.md",
        description: "The folders there are",
        text: "Work, home, garden.\n",
    },
];

pub(super) fn list() -> Value {
    json!({"skills": [skill()]})
}

pub(super) fn get(params: &Value) -> Answer {
    if params["uri"] == FILES[0].uri {
        return Ok(json!({"skill": skill()}));
    }
    Err(ErrorObject::invalid_params("there is no such skill"))
}

/// What is directly in a folder.
pub(super) fn directory(params: &Value) -> Answer {
    let subfolder = json!({"uri": SUBFOLDER, "name": "references", "mimeType": "inode/directory"});
    let children = match params["uri"].as_str() {
        Some(FOLDER) => vec![FILES[0].resource(), subfolder],
        Some(SUBFOLDER) => vec![FILES[1].resource()],
        _ => return Err(ErrorObject::invalid_params("this is no folder")),
    };
    Ok(json!({"resources": children}))
}

pub(super) fn resources() -> impl Iterator<Item = Value> {
    FILES.iter().map(File::resource)
}

/// The content of a file of the skill.
pub(super) fn read(uri: &str) -> Option<Value> {
    let file = FILES.iter().find(|file| file.uri == uri)?;
    Some(json!({"mimeType": "text/markdown", "text": file.text}))
}

fn skill() -> Value {
    let resources = FILES.each_ref().map(|file| {
        let digest = Sha256::digest(file.text);
        let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        json!({"uri": file.uri, "digest": format!("sha256:{digits}"), "size": file.text.len()})
    });
    json!({
        "uri": FILES[0].uri,
        "frontmatter": {"name": NAME, "description": DESCRIPTION},
        "resources": resources,
    })
}

impl File {
    fn resource(&self) -> Value {
        json!({
            "uri": self.uri,
            "name": self.name,
            "description": self.description,
            "mimeType": "text/markdown",
        })
    }
}
