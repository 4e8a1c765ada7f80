//! Edits change what they say and nothing else, and a file is never half written.

#![cfg(test)]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use config::{Document, SaveError, ServerConfig, Template, Transport};
use policy::Tier;
use tempfile::TempDir;

struct File {
    directory: TempDir,
}

impl File {
    fn with(text: &str) -> Self {
        let file = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        fs::write(file.path(), text).unwrap();
        file
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("mcp_config.json")
    }

    fn text(&self) -> String {
        fs::read_to_string(self.path()).unwrap()
    }

    /// The text after an edit was saved.
    fn edited(&self, edit: impl FnOnce(&mut Document)) -> String {
        let mut document = Document::load(&self.path()).unwrap_or_else(|error| panic!("{error}"));
        edit(&mut document);
        document.save().unwrap();
        self.text()
    }
}

fn program(name: &str) -> ServerConfig {
    ServerConfig::new(name.parse().unwrap(), Transport::program("run", ["me"]))
}

const OBJECT_FORM: &str = r#"{
    "theme": "dark",
    "mcpServers": {
        "github": {
            "autoApprove": ["x"],
            "httpUrl": "https://h/mcp",
            "disabled": true,
            "headers": {
                "Z": "${env:Z}",
                "A": "a"
            }
        }
    },
    "listen": "127.0.0.1:1"
}
"#;

#[test]
fn saving_without_an_edit_changes_nothing() {
    assert_eq!(File::with(OBJECT_FORM).edited(|_| ()), OBJECT_FORM);
    let tabs = OBJECT_FORM.replace("    ", "\t");
    assert_eq!(File::with(&tabs).edited(|_| ()), tabs);
}

#[test]
fn a_new_server_goes_to_the_end() {
    let text = File::with(OBJECT_FORM).edited(|document| document.set_server(&program("notes")));
    insta::assert_snapshot!(text, @r#"
    {
        "theme": "dark",
        "mcpServers": {
            "github": {
                "autoApprove": ["x"],
                "httpUrl": "https://h/mcp",
                "disabled": true,
                "headers": {
                    "Z": "${env:Z}",
                    "A": "a"
                }
            },
            "notes": {
                "command": "run",
                "args": [
                    "me"
                ]
            }
        },
        "listen": "127.0.0.1:1"
    }
    "#);
}

#[test]
fn a_changed_server_keeps_its_dialect_and_unknown_keys() {
    let text = File::with(OBJECT_FORM).edited(|document| {
        let mut server = document.server(&"github".parse().unwrap()).unwrap().clone();
        server.enabled = true;
        server.timeout = Duration::from_millis(1_500);
        let Transport::Http { url, headers, .. } = &mut server.transport else {
            panic!("a url");
        };
        *url = Template::literal("https://other/mcp");
        headers.remove("A");
        headers.insert("B".into(), "b".parse().unwrap());
        document.set_server(&server);
    });
    insta::assert_snapshot!(text, @r#"
    {
        "theme": "dark",
        "mcpServers": {
            "github": {
                "autoApprove": ["x"],
                "httpUrl": "https://other/mcp",
                "disabled": false,
                "headers": {
                    "Z": "${env:Z}",
                    "B": "b"
                },
                "timeout": "1500ms"
            }
        },
        "listen": "127.0.0.1:1"
    }
    "#);
}

#[test]
fn a_server_that_becomes_a_program_loses_its_url() {
    let text = File::with(OBJECT_FORM).edited(|document| {
        let mut server = program("github");
        server.enabled = false;
        document.set_server(&server);
    });
    insta::assert_snapshot!(text, @r#"
    {
        "theme": "dark",
        "mcpServers": {
            "github": {
                "autoApprove": ["x"],
                "disabled": true,
                "command": "run",
                "args": [
                    "me"
                ]
            }
        },
        "listen": "127.0.0.1:1"
    }
    "#);
}

#[test]
fn the_list_form_stays_a_list() {
    let file = File::with(r#"{"mcpServers": [{"note": 1, "name": "a", "command": "x"}]}"#);
    let text = file.edited(|document| {
        document.set_server(&program("b"));
        let mut server = program("a");
        server.max_concurrency = 1.try_into().unwrap();
        document.set_server(&server);
    });
    insta::assert_snapshot!(text, @r#"
    {
      "mcpServers": [
        {
          "note": 1,
          "name": "a",
          "command": "run",
          "args": [
            "me"
          ],
          "max_concurrency": 1
        },
        {
          "name": "b",
          "command": "run",
          "args": [
            "me"
          ]
        }
      ]
    }
    "#);
    let text = file.edited(|document| {
        assert!(document.remove_server(&"a".parse().unwrap()));
        assert!(!document.remove_server(&"a".parse().unwrap()));
        assert!(document.server(&"b".parse().unwrap()).is_some());
    });
    insta::assert_snapshot!(text, @r#"
    {
      "mcpServers": [
        {
          "name": "b",
          "command": "run",
          "args": [
            "me"
          ]
        }
      ]
    }
    "#);
}

#[test]
fn overrides_are_set_and_removed() {
    let file = File::with("{}");
    let text = file.edited(|document| {
        document
            .set_override("github:delete_*", Tier::Destructive)
            .unwrap();
        document.set_override("notes:search", Tier::Write).unwrap();
        document
            .set_override("notes:search", Tier::ReadOnly)
            .unwrap();
        assert!(document.set_override("nonsense", Tier::Write).is_err());
    });
    insta::assert_snapshot!(text, @r#"
    {
      "tool_overrides": {
        "github:delete_*": "destructive",
        "notes:search": "read_only"
      }
    }
    "#);
    let text = file.edited(|document| {
        assert!(document.remove_override("github:delete_*"));
        assert!(!document.remove_override("github:delete_*"));
    });
    insta::assert_snapshot!(text, @r#"
    {
      "tool_overrides": {
        "notes:search": "read_only"
      }
    }
    "#);
}

#[test]
fn secrets_are_saved_as_written() {
    let server = ServerConfig::new(
        "a".parse().unwrap(),
        Transport::Stdio {
            command: "x".parse().unwrap(),
            args: vec!["${env:B}".parse().unwrap()],
            env: BTreeMap::from([("TOKEN".into(), "Bearer ${env:C}".parse().unwrap())]),
            working_dir: None,
        },
    );
    let text = File::with("{}").edited(|document| {
        document.set_server(&server);
        assert!(!format!("{document:?}").contains("Bearer"));
    });
    assert!(text.contains(r#""TOKEN": "Bearer ${env:C}""#), "{text}");
}

#[test]
fn an_edit_by_somebody_else_is_not_overwritten() {
    let file = File::with("{}");
    let mut document = Document::load(&file.path()).unwrap();
    document.set_server(&program("a"));
    fs::write(file.path(), r#"{"listen": "127.0.0.1:2"}"#).unwrap();
    assert!(matches!(
        document.save(),
        Err(SaveError::ChangedMeanwhile { .. })
    ));
    assert_eq!(file.text(), r#"{"listen": "127.0.0.1:2"}"#);
}

#[test]
fn what_could_not_be_loaded_is_not_saved() {
    let file = File::with("{}");
    let mut document = Document::load(&file.path()).unwrap();
    let mut server = program("a");
    server.timeout = Duration::ZERO;
    document.set_server(&server);
    assert!(matches!(document.save(), Err(SaveError::Invalid(_))));
    assert_eq!(file.text(), "{}");
    let broken = File::with("{");
    assert!(Document::load(&broken.path()).is_err());
}

#[test]
fn nothing_is_left_beside_the_file() {
    let file = File::with("{}");
    file.edited(|document| document.set_server(&program("a")));
    let names: Vec<_> = fs::read_dir(file.directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["mcp_config.json"]);
}

#[cfg(unix)]
#[test]
fn a_saved_file_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let file = File::with("{}");
    fs::set_permissions(file.path(), fs::Permissions::from_mode(0o644)).unwrap();
    file.edited(|document| document.set_server(&program("a")));
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(file.path()), 0o600);

    let fresh = file.directory.path().join("new").join("mcp_config.json");
    config::write_new(&fresh, "{}").unwrap();
    assert_eq!(mode(fresh.clone()), 0o600);
    assert_eq!(mode(file.directory.path().join("new")), 0o700);
}

#[test]
fn a_first_file_replaces_nothing() {
    let file = File::with("{}");
    let error = config::write_new(&file.path(), "other").unwrap_err();
    let SaveError::Write { source, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(source.kind(), std::io::ErrorKind::AlreadyExists);
    assert_eq!(file.text(), "{}");
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link() {
    let file = File::with("{}");
    let target = file.directory.path().join("dotfiles.json");
    fs::rename(file.path(), &target).unwrap();
    std::os::unix::fs::symlink("dotfiles.json", file.path()).unwrap();
    file.edited(|document| document.set_server(&program("a")));
    assert!(fs::symlink_metadata(file.path()).unwrap().is_symlink());
    assert!(fs::read_to_string(target).unwrap().contains("\"run\""));
}

#[test]
fn the_first_config_is_valid_and_shows_what_can_be_set() {
    let demo = ServerConfig::new(
        "demo".parse().unwrap(),
        Transport::program("/usr/bin/mcpproxy", ["demo-server", "--data", "/d"]),
    );
    let text = config::starter(&demo);
    insta::assert_snapshot!(text, @r#"
    {
      "listen": "127.0.0.1:8080",
      "intent_declaration": {
        "mode": "two_key",
        "strict_server_validation": true
      },
      "tool_overrides": {},
      "activity": {
        "retention_days": 90,
        "max_records": 100000,
        "max_size_mb": 256,
        "max_response_bytes": 65536
      },
      "mcpServers": {
        "demo": {
          "command": "/usr/bin/mcpproxy",
          "args": [
            "demo-server",
            "--data",
            "/d"
          ]
        }
      }
    }
    "#);
    let loaded = config::parse(text.as_bytes(), "x".as_ref()).unwrap();
    assert_eq!(loaded.warnings, []);
    assert_eq!(loaded.config.mcp_servers, [demo]);
}
