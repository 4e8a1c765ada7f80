//! Reading tool lists, the fixtures' and the development data's.

use std::path::PathBuf;

use auditor::ToolFacts;
use policy::Annotations;
use serde::Deserialize;
use serde_json::value::RawValue;

/// A tool as a line of a file has it.
#[derive(Debug, Deserialize)]
pub(crate) struct Tool {
    #[serde(default)]
    pub(crate) repo: String,
    #[serde(default)]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) server: String,
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    #[serde(rename = "inputSchema")]
    pub(crate) input_schema: Option<Box<RawValue>>,
    #[serde(default, deserialize_with = "hints")]
    pub(crate) annotations: Option<Annotations>,
}

impl Tool {
    pub(crate) fn facts(&self) -> ToolFacts<'_> {
        ToolFacts {
            server: &self.server,
            name: &self.name,
            title: self.title.as_deref(),
            description: self.description.as_deref().unwrap_or_default(),
            input_schema: self.input_schema.as_deref(),
            output_schema: None,
            annotations: self.annotations.as_ref(),
            pinned: None,
        }
    }
}

pub(crate) fn fixture(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name);
    std::fs::read_to_string(path).unwrap()
}

pub(crate) fn parse_lines(text: &str) -> Vec<Tool> {
    let lines = text.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// A file of the development data, which lies beside the repository and is not part of it.
pub(crate) fn development_data(file: &str) -> Option<Vec<Tool>> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    match std::fs::read_to_string(root.join(file)) {
        Ok(text) => Some(parse_lines(&text)),
        Err(error) => {
            println!("skipped: {file} is not there ({error})");
            None
        }
    }
}

fn hints<'de, D: serde::Deserializer<'de>>(input: D) -> Result<Option<Annotations>, D::Error> {
    let value = Option::<serde_json::Value>::deserialize(input)?;
    Ok(value.map(Annotations::from_value))
}
