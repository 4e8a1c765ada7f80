//! A tool among all upstreams, written `server:tool`.

use std::str::FromStr;
use std::sync::Arc;

use super::{ServerName, ServerNameError, ToolName, ToolNameError, text_type};

/// A tool of a named upstream, written and parsed as `server:tool`.
///
/// The text is split at the first colon: a server's name cannot contain one, a tool's name may.
#[derive(Clone)]
pub struct ToolId(Arc<Parts>);

struct Parts {
    server: ServerName,
    tool: ToolName,
    text: Box<str>,
}

/// Why a text is not a `server:tool`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolIdError {
    #[error("tool {text:?} does not name its server; write it as server:tool")]
    NoServer { text: String },
    #[error(transparent)]
    Server(#[from] ServerNameError),
    #[error(transparent)]
    Tool(#[from] ToolNameError),
}

text_type!(ToolId);

impl ToolId {
    pub fn new(server: ServerName, tool: ToolName) -> Self {
        let text = format!("{server}:{tool}").into_boxed_str();
        Self(Arc::new(Parts { server, tool, text }))
    }

    pub fn server(&self) -> &ServerName {
        &self.0.server
    }

    pub fn tool(&self) -> &ToolName {
        &self.0.tool
    }

    pub fn as_str(&self) -> &str {
        &self.0.text
    }
}

impl FromStr for ToolId {
    type Err = ToolIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some((server, tool)) = text.split_once(':') else {
            // An agent can send a megabyte here; an error is no place to repeat it.
            let text = text.chars().take(ToolName::MAX_LENGTH).collect();
            return Err(ToolIdError::NoServer { text });
        };
        Ok(Self::new(server.parse()?, tool.parse()?))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn splits_at_the_first_colon() {
        let id: ToolId = "github:ns:create_issue".parse().unwrap();
        assert_eq!(id.server().as_str(), "github");
        assert_eq!(id.tool().as_str(), "ns:create_issue");
        assert_eq!(id.to_string(), "github:ns:create_issue");
    }

    #[test]
    fn faults_say_which_half_is_wrong() {
        let fault = |text: &str| text.parse::<ToolId>().unwrap_err();
        assert!(matches!(
            fault("create_issue"),
            ToolIdError::NoServer { .. }
        ));
        assert_eq!(fault(":get"), ToolIdError::Server(ServerNameError::Empty));
        assert_eq!(fault("github:"), ToolIdError::Tool(ToolNameError::Empty));
        assert!(fault(&"x".repeat(1 << 20)).to_string().len() < 300);
    }

    #[test]
    fn a_map_can_be_asked_with_plain_text() {
        let id: ToolId = "github:get".parse().unwrap();
        assert_eq!(HashMap::from([(id, 1)]).get("github:get"), Some(&1));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn what_parses_prints_the_same(text in "[a-z._-]{0,4}:?\\PC{0,8}") {
            if let Ok(id) = text.parse::<ToolId>() {
                prop_assert_eq!(id.as_str(), &text);
                let json = serde_json::to_string(&id).unwrap();
                prop_assert_eq!(serde_json::from_str::<ToolId>(&json).unwrap(), id);
            }
        }
    }
}
