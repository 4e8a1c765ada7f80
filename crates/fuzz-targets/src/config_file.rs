//! The config file: what can be read can be edited, and edits touch nothing else.

use std::path::Path;

use config::{Config, Document};
use policy::Tier;

const FILE: &str = "mcp_config.json";
const OVERRIDE: &str = "zz-fuzz:*";

pub(crate) fn check(input: &[u8]) {
    let loaded = match config::parse(input, Path::new(FILE)) {
        Ok(loaded) => loaded,
        Err(error) => {
            let said = [error.what(), error.why(), error.help()];
            assert!(said.iter().all(|text| !text.is_empty()), "{error}");
            return;
        }
    };
    let mut document = Document::parse(input, Path::new(FILE)).expect("the same was read before");
    let untouched = document.to_text();
    assert_eq!(read(&untouched), loaded.config, "writing changes nothing");
    for server in &loaded.config.mcp_servers {
        document.set_server(server);
    }
    assert_eq!(
        document.to_text(),
        untouched,
        "what is set is there already"
    );
    if document.remove_override(OVERRIDE) {
        return;
    }
    document
        .set_override(OVERRIDE, Tier::Write)
        .expect("a pattern");
    assert_ne!(document.to_text(), untouched);
    assert!(document.remove_override(OVERRIDE));
    assert_eq!(read(&document.to_text()), loaded.config, "taken back");
    for server in &loaded.config.mcp_servers {
        assert!(document.remove_server(&server.name));
    }
    assert!(read(&document.to_text()).mcp_servers.is_empty());
}

fn read(text: &str) -> Config {
    let loaded = config::parse(text.as_bytes(), Path::new(FILE));
    loaded.expect("what is saved can be read").config
}
