//! The way from the root of the document to a value.

use std::fmt;

/// A path such as `mcpServers.github.args[2]` or `tool_overrides["github:delete_*"]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JsonPath(Vec<Segment>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Key(String),
    Index(usize),
}

impl JsonPath {
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn key(&self, key: &str) -> Self {
        self.with(Segment::Key(key.to_owned()))
    }

    pub(crate) fn index(&self, index: usize) -> Self {
        self.with(Segment::Index(index))
    }

    fn with(&self, segment: Segment) -> Self {
        let mut segments = self.0.clone();
        segments.push(segment);
        Self(segments)
    }
}

impl fmt::Display for JsonPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (depth, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Index(index) => write!(formatter, "[{index}]")?,
                Segment::Key(key) if is_plain(key) => {
                    let dot = if depth == 0 { "" } else { "." };
                    write!(formatter, "{dot}{key}")?;
                }
                Segment::Key(key) => write!(formatter, "[{key:?}]")?,
            }
        }
        Ok(())
    }
}

fn is_plain(key: &str) -> bool {
    !key.is_empty()
        && key
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '$'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_keys_are_quoted() {
        let root = JsonPath::default();
        let server = root.key("mcpServers").key("github");
        assert_eq!(
            server.key("args").index(2).to_string(),
            "mcpServers.github.args[2]"
        );
        assert_eq!(
            root.key("tool_overrides")
                .key("github:delete_*")
                .to_string(),
            r#"tool_overrides["github:delete_*"]"#
        );
        assert_eq!(root.to_string(), "");
        assert_eq!(root.key("").to_string(), r#"[""]"#);
    }
}
