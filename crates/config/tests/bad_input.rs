//! Every way a config file can be wrong, with the exact words for it.

#![cfg(test)]

use std::path::Path;

use config::{Fault, LoadError, Problem};

/// The three lines for a file that is refused.
fn refusal(content: impl AsRef<[u8]>) -> String {
    match config::parse(content.as_ref(), Path::new("mcp_config.json")) {
        Ok(loaded) => panic!("accepted as {loaded:?}"),
        Err(error) => error.to_string(),
    }
}

/// The three lines for a file with one server.
fn server_refusal(entry: &str) -> String {
    refusal(format!(r#"{{"mcpServers": {{"github": {entry}}}}}"#))
}

#[test]
fn text_that_is_no_config() {
    insta::assert_snapshot!(refusal(""), @"
    the config file mcp_config.json is not valid
    line 1, column 1: the file is empty
    write at least {} into it
    ");
    insta::assert_snapshot!(refusal(" \n\n"), @"
    the config file mcp_config.json is not valid
    line 1, column 1: the file is empty
    write at least {} into it
    ");
    insta::assert_snapshot!(refusal("[]"), @"
    the config file mcp_config.json is not valid
    line 1, column 1: expected an object, found an array
    write an object here
    ");
    insta::assert_snapshot!(refusal("null"), @"
    the config file mcp_config.json is not valid
    line 1, column 1: expected an object, found null
    write an object here
    ");
    insta::assert_snapshot!(refusal(b"{\"listen\":\n \"\xff\"}"), @"
    the config file mcp_config.json is not valid
    line 2, column 3: the text is not UTF-8
    save the file as UTF-8
    ");
}

#[test]
fn broken_json() {
    insta::assert_snapshot!(refusal("{\n  \"listen\": \"127.0.0.1:8080\",\n}"), @"
    the config file mcp_config.json is not valid
    line 3, column 1: trailing comma
    remove the comma before the closing bracket
    ");
    insta::assert_snapshot!(refusal("{\n  \"listen\": \"127.0.0.1:8080\"\n"), @"
    the config file mcp_config.json is not valid
    line 3, column 1: EOF while parsing an object
    the file ends too early: close what is still open
    ");
    insta::assert_snapshot!(refusal("{\n  // where\n  \"listen\": 1}"), @"
    the config file mcp_config.json is not valid
    line 2, column 3: key must be a string
    correct the JSON at this place; comments and single quotes are not allowed
    ");
    insta::assert_snapshot!(refusal("{\"listen\" \"x\"}"), @"
    the config file mcp_config.json is not valid
    line 1, column 11: expected `:`
    correct the JSON at this place; comments and single quotes are not allowed
    ");
    insta::assert_snapshot!(refusal("{} {}"), @"
    the config file mcp_config.json is not valid
    line 1, column 4: trailing characters
    correct the JSON at this place; comments and single quotes are not allowed
    ");
    insta::assert_snapshot!(refusal(format!("{{\"a\": {}", "[".repeat(100_000))), @"
    the config file mcp_config.json is not valid
    line 1, column 133: recursion limit exceeded
    nest arrays and objects less deeply
    ");
}

#[test]
fn keys_given_twice() {
    insta::assert_snapshot!(refusal("{\n  \"listen\": \"127.0.0.1:1\",\n  \"listen\": \"127.0.0.1:2\"\n}"), @"
    the config file mcp_config.json is not valid at listen
    line 3, column 3: this key is given twice, first at line 2, column 3
    keep one of the two
    ");
    insta::assert_snapshot!(refusal(r#"{"unknown": [{"a": 1, "\u0061": 2}]}"#), @"
    the config file mcp_config.json is not valid at unknown[0].a
    line 1, column 23: this key is given twice, first at line 1, column 15
    keep one of the two
    ");
    insta::assert_snapshot!(refusal(r#"{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}"#), @"
    the config file mcp_config.json is not valid at mcpServers.a
    line 1, column 40: this key is given twice, first at line 1, column 17
    keep one of the two
    ");
}

#[test]
fn values_of_the_wrong_kind() {
    insta::assert_snapshot!(refusal(r#"{"listen": 8080}"#), @"
    the config file mcp_config.json is not valid at listen
    line 1, column 12: expected a string, found a number
    write a string here
    ");
    insta::assert_snapshot!(refusal(r#"{"listen": "localhost:8080"}"#), @r#"
    the config file mcp_config.json is not valid at listen
    line 1, column 12: "localhost:8080" is not an IP address with a port
    write an address such as 127.0.0.1:8080
    "#);
    insta::assert_snapshot!(refusal(r#"{"require_mcp_auth": "yes"}"#), @"
    the config file mcp_config.json is not valid at require_mcp_auth
    line 1, column 22: expected true or false, found a string
    write true or false here
    ");
    insta::assert_snapshot!(refusal(r#"{"tool_response_limit": "100"}"#), @"
    the config file mcp_config.json is not valid at tool_response_limit
    line 1, column 25: expected a whole number, found a string
    write a whole number here
    ");
    insta::assert_snapshot!(refusal(r#"{"tool_response_limit": -1}"#), @"
    the config file mcp_config.json is not valid at tool_response_limit
    line 1, column 25: -1 is not a whole number of at least 0
    write a whole number, without a sign or a fraction
    ");
    insta::assert_snapshot!(refusal(r#"{"tool_response_limit": 1.5}"#), @"
    the config file mcp_config.json is not valid at tool_response_limit
    line 1, column 25: 1.5 is not a whole number of at least 0
    write a whole number, without a sign or a fraction
    ");
    insta::assert_snapshot!(refusal(r#"{"tool_response_limit": 99999999999}"#), @"
    the config file mcp_config.json is not valid at tool_response_limit
    line 1, column 25: 99999999999 is out of range
    write a whole number from 0 to 4294967295
    ");
    insta::assert_snapshot!(refusal(r#"{"activity": []}"#), @"
    the config file mcp_config.json is not valid at activity
    line 1, column 14: expected an object, found an array
    write an object here
    ");
    insta::assert_snapshot!(refusal("{\"activity\": {\n  \"retention_days\": 400000}}"), @"
    the config file mcp_config.json is not valid at activity.retention_days
    line 2, column 21: 400000 is out of range
    write a whole number from 0 to 365000
    ");
    insta::assert_snapshot!(refusal(r#"{"activity": {"payloads": "some"}}"#), @r#"
    the config file mcp_config.json is not valid at activity.payloads
    line 1, column 27: unknown value "some"
    use one of: full, none
    "#);
    insta::assert_snapshot!(refusal(r#"{"intent_declaration": {"mode": "two-key"}}"#), @r#"
    the config file mcp_config.json is not valid at intent_declaration.mode
    line 1, column 33: unknown value "two-key"
    use one of: two_key, inferred
    "#);
    insta::assert_snapshot!(refusal(r#"{"intent_declaration": {"unannotated": true}}"#), @"
    the config file mcp_config.json is not valid at intent_declaration.unannotated
    line 1, column 40: expected a string, found a boolean
    write a string here
    ");
    insta::assert_snapshot!(refusal(r#"{"data_dir": ""}"#), @"
    the config file mcp_config.json is not valid at data_dir
    line 1, column 14: the text is empty
    write a text here, or leave the key out
    ");
    insta::assert_snapshot!(refusal(r#"{"mcpServers": "github"}"#), @"
    the config file mcp_config.json is not valid at mcpServers
    line 1, column 16: expected an object or an array of servers, found a string
    write an object or an array of servers here
    ");
}

#[test]
fn keys_that_anybody_could_guess() {
    insta::assert_snapshot!(refusal(r#"{"api_key": ""}"#), @"
    the config file mcp_config.json is not valid at api_key
    line 1, column 13: the text is empty
    write a text here, or leave the key out
    ");
    insta::assert_snapshot!(refusal(r#"{"api_key": "fifteen letters"}"#), @"
    the config file mcp_config.json is not valid at api_key
    line 1, column 13: a key of 15 characters can be guessed; 16 are the least
    leave it out, and mcpproxy makes one
    ");
    insta::assert_snapshot!(refusal(r#"{"api_key": "${env:KEY}"}"#), @"
    the config file mcp_config.json is not valid at api_key
    line 1, column 13: a key cannot be a reference
    leave it out and set the environment variable MCPPROXY_API_KEY instead
    ");
    insta::assert_snapshot!(refusal(r#"{"api_key": "${env:KEY"}"#), @"
    the config file mcp_config.json is not valid at api_key
    line 1, column 13: a key cannot be a reference
    leave it out and set the environment variable MCPPROXY_API_KEY instead
    ");
}

#[test]
fn overrides_that_match_nothing() {
    insta::assert_snapshot!(refusal("{\"tool_overrides\": {\n  \"github:get\": \"read_only\",\n  \"delete_*\": \"write\"}}"), @r#"
    the config file mcp_config.json is not valid at tool_overrides["delete_*"]
    line 3, column 3: it does not say which server; write it as server:tool, or *:tool for every server
    write server:tool, where * stands for any characters
    "#);
    insta::assert_snapshot!(refusal(r#"{"tool_overrides": {"github:": "write"}}"#), @r#"
    the config file mcp_config.json is not valid at tool_overrides["github:"]
    line 1, column 21: it names no tool; write server:* for every tool of a server
    write server:tool, where * stands for any characters
    "#);
    insta::assert_snapshot!(refusal(r#"{"tool_overrides": {"github:get": "harmless"}}"#), @r#"
    the config file mcp_config.json is not valid at tool_overrides["github:get"]
    line 1, column 35: unknown value "harmless"
    use one of: read_only, write, soft_delete, destructive
    "#);
}

#[test]
fn servers_without_a_usable_name() {
    insta::assert_snapshot!(refusal(r#"{"mcpServers": {"my server": {"command": "x"}}}"#), @r#"
    the config file mcp_config.json is not valid at mcpServers["my server"]
    line 1, column 17: server name "my server" contains ' '; use only ASCII letters, digits, '.', '_' and '-'
    give the server another name
    "#);
    insta::assert_snapshot!(refusal(r#"{"mcpServers": [{"command": "x"}]}"#), @r#"
    the config file mcp_config.json is not valid at mcpServers[0]
    line 1, column 17: the server has no `name`
    add a `name`, or use the object form {"name": {…}}
    "#);
    insta::assert_snapshot!(refusal(r#"{"mcpServers": [{"name": "", "command": "x"}]}"#), @"
    the config file mcp_config.json is not valid at mcpServers[0].name
    line 1, column 26: server name is empty; give it 1 to 64 characters
    give the server another name
    ");
    insta::assert_snapshot!(refusal("{\"mcpServers\": [\n  {\"name\": \"a\", \"command\": \"x\"},\n  {\"name\": \"a\", \"command\": \"y\"}]}"), @"
    the config file mcp_config.json is not valid at mcpServers[1].name
    line 3, column 12: another server has this name, at line 2, column 12
    give the server another name
    ");
    insta::assert_snapshot!(refusal(r#"{"mcpServers": [{"name": "a", "command": "x"}, 7]}"#), @"
    the config file mcp_config.json is not valid at mcpServers[1]
    line 1, column 48: expected an object, found a number
    write an object here
    ");
}

#[test]
fn servers_without_one_transport() {
    insta::assert_snapshot!(server_refusal("{}"), @"
    the config file mcp_config.json is not valid at mcpServers.github
    line 1, column 27: the server has neither `command` nor `url`
    add `command` for a program to start, or `url` for a server to connect to
    ");
    insta::assert_snapshot!(server_refusal("null"), @"
    the config file mcp_config.json is not valid at mcpServers.github
    line 1, column 27: expected an object, found null
    write an object here
    ");
    insta::assert_snapshot!(server_refusal(r#"{"command": "x", "url": "http://x/"}"#), @"
    the config file mcp_config.json is not valid at mcpServers.github
    line 1, column 27: the server has both `command` and `url`
    keep `command` for a program to start, or `url` for a server to connect to
    ");
    insta::assert_snapshot!(server_refusal(r#"{"url": "http://x/", "httpUrl": "http://x/"}"#), @"
    the config file mcp_config.json is not valid at mcpServers.github.httpUrl
    line 1, column 59: `url` and `httpUrl` mean the same and are both given
    keep one of the two
    ");
    insta::assert_snapshot!(server_refusal(r#"{"command": "x", "cwd": "/", "working_dir": "/"}"#), @"
    the config file mcp_config.json is not valid at mcpServers.github.cwd
    line 1, column 51: `working_dir` and `cwd` mean the same and are both given
    keep one of the two
    ");
    insta::assert_snapshot!(server_refusal(r#"{"type": "http", "command": "x"}"#), @"
    the config file mcp_config.json is not valid at mcpServers.github.type
    line 1, column 36: this type of server needs `url`, and there is none
    add `url`, or leave `type` out
    ");
    insta::assert_snapshot!(server_refusal(r#"{"type": "stdio", "url": "http://x/"}"#), @"
    the config file mcp_config.json is not valid at mcpServers.github.type
    line 1, column 36: this type of server needs `command`, and there is none
    add `command`, or leave `type` out
    ");
    insta::assert_snapshot!(server_refusal(r#"{"type": "websocket", "url": "http://x/"}"#), @r#"
    the config file mcp_config.json is not valid at mcpServers.github.type
    line 1, column 36: unknown value "websocket"
    use one of: stdio, http, streamable-http, sse
    "#);
    insta::assert_snapshot!(server_refusal(r#"{"command": ""}"#), @"
    the config file mcp_config.json is not valid at mcpServers.github.command
    line 1, column 39: the text is empty
    write a text here, or leave the key out
    ");
    insta::assert_snapshot!(server_refusal(r#"{"command": ["npx"]}"#), @"
    the config file mcp_config.json is not valid at mcpServers.github.command
    line 1, column 39: expected a string, found an array
    write a string here
    ");
    insta::assert_snapshot!(server_refusal(r#"{"command": "x", "args": "-y"}"#), @"
    the config file mcp_config.json is not valid at mcpServers.github.args
    line 1, column 52: expected an array, found a string
    write an array here
    ");
    insta::assert_snapshot!(server_refusal(r#"{"command": "x", "args": ["-y", 1]}"#), @"
    the config file mcp_config.json is not valid at mcpServers.github.args[1]
    line 1, column 59: expected a string, found a number
    write a string here
    ");
}

#[test]
fn urls_that_lead_nowhere() {
    insta::assert_snapshot!(server_refusal(r#"{"url": "ftp://example.com/"}"#), @"
    the config file mcp_config.json is not valid at mcpServers.github.url
    line 1, column 35: the url starts with neither http:// nor https://
    write a url such as https://example.com/mcp
    ");
    insta::assert_snapshot!(server_refusal(r#"{"url": "example.com/mcp"}"#), @"
    the config file mcp_config.json is not valid at mcpServers.github.url
    line 1, column 35: the url starts with neither http:// nor https://
    write a url such as https://example.com/mcp
    ");
    insta::assert_snapshot!(server_refusal(r#"{"url": "https:///mcp"}"#), @"
    the config file mcp_config.json is not valid at mcpServers.github.url
    line 1, column 35: the url is malformed: invalid format
    write a url such as https://example.com/mcp
    ");
    insta::assert_snapshot!(server_refusal(r#"{"url": "https://exa mple.com/"}"#), @"
    the config file mcp_config.json is not valid at mcpServers.github.url
    line 1, column 35: the url is malformed: invalid uri character
    write a url such as https://example.com/mcp
    ");
    insta::assert_snapshot!(server_refusal(r#"{"url": "file://${env:HOST}/"}"#), @"
    the config file mcp_config.json is not valid at mcpServers.github.url
    line 1, column 35: the url starts with neither http:// nor https://
    write a url such as https://example.com/mcp
    ");
}

#[test]
fn names_and_references_that_cannot_be() {
    insta::assert_snapshot!(server_refusal(r#"{"command": "x", "env": {"A=B": "1"}}"#), @r#"
    the config file mcp_config.json is not valid at mcpServers.github.env["A=B"]
    line 1, column 52: "A=B" is not the name of an environment variable
    use a name without = and without control characters
    "#);
    insta::assert_snapshot!(server_refusal(r#"{"command": "x", "env": {"A": 1}}"#), @"
    the config file mcp_config.json is not valid at mcpServers.github.env.A
    line 1, column 57: expected a string, found a number
    write a string here
    ");
    insta::assert_snapshot!(server_refusal(r#"{"url": "http://x/", "headers": {"X Y": "1"}}"#), @r#"
    the config file mcp_config.json is not valid at mcpServers.github.headers["X Y"]
    line 1, column 60: "X Y" is not the name of an HTTP header
    use letters, digits and hyphens
    "#);
    insta::assert_snapshot!(server_refusal(r#"{"command": "x", "args": ["--key=${env:KEY"]}"#), @"
    the config file mcp_config.json is not valid at mcpServers.github.args[0]
    line 1, column 53: `${env:` has no closing `}`
    write ${env:NAME}, or $${env: for the text itself
    ");
    insta::assert_snapshot!(server_refusal(r#"{"command": "x", "env": {"A": "${env:}"}}"#), @"
    the config file mcp_config.json is not valid at mcpServers.github.env.A
    line 1, column 57: `${env:}` does not name an environment variable
    write ${env:NAME}, or $${env: for the text itself
    ");
}

#[test]
fn limits_out_of_bounds() {
    insta::assert_snapshot!(server_refusal(r#"{"command": "x", "timeout": 0}"#), @r#"
    the config file mcp_config.json is not valid at mcpServers.github.timeout
    line 1, column 55: a duration of 0 is too short
    write seconds, or a text such as "30s", "500ms" or "2m"
    "#);
    insta::assert_snapshot!(server_refusal(r#"{"command": "x", "timeout": 600000}"#), @r#"
    the config file mcp_config.json is not valid at mcpServers.github.timeout
    line 1, column 55: 600000 is longer than 24 hours; a number without a unit counts seconds
    write seconds, or a text such as "30s", "500ms" or "2m"
    "#);
    insta::assert_snapshot!(server_refusal(r#"{"command": "x", "timeout": "soon"}"#), @r#"
    the config file mcp_config.json is not valid at mcpServers.github.timeout
    line 1, column 55: "soon" is not a duration
    write seconds, or a text such as "30s", "500ms" or "2m"
    "#);
    insta::assert_snapshot!(server_refusal(r#"{"command": "x", "timeout": true}"#), @r#"
    the config file mcp_config.json is not valid at mcpServers.github.timeout
    line 1, column 55: expected a number of seconds or a text such as "30s", found a boolean
    write a number of seconds or a text such as "30s" here
    "#);
    insta::assert_snapshot!(server_refusal(r#"{"command": "x", "refresh_interval": "0s"}"#), @r#"
    the config file mcp_config.json is not valid at mcpServers.github.refresh_interval
    line 1, column 64: a duration of 0 is too short
    write seconds, or a text such as "30s", "500ms" or "2m"
    "#);
    insta::assert_snapshot!(server_refusal(r#"{"command": "x", "trust": "blind"}"#), @r#"
    the config file mcp_config.json is not valid at mcpServers.github.trust
    line 1, column 53: unknown value "blind"
    use one of: log, pin
    "#);
    insta::assert_snapshot!(server_refusal(r#"{"command": "x", "max_concurrency": 0}"#), @"
    the config file mcp_config.json is not valid at mcpServers.github.max_concurrency
    line 1, column 63: 0 is out of range
    write a whole number from 1 to 10000
    ");
    insta::assert_snapshot!(server_refusal(r#"{"command": "x", "enabled": true, "disabled": true}"#), @"
    the config file mcp_config.json is not valid at mcpServers.github.disabled
    line 1, column 73: `enabled` and `disabled` contradict each other
    keep `enabled`
    ");
}

#[test]
fn a_file_that_cannot_be_read() {
    let missing = config::load(Path::new("no/such/mcp_config.json")).unwrap_err();
    assert!(missing.is_not_found());
    insta::assert_snapshot!(missing, @"
    the config file no/such/mcp_config.json cannot be read
    No such file or directory (os error 2)
    run `mcpproxy serve` to write a first one, or name another with --config
    ");
}

#[test]
fn the_parts_of_an_error_are_there_for_programs() {
    let error = config::parse(br#"{"listen": 1}"#, Path::new("x")).unwrap_err();
    let LoadError::Invalid {
        fault: Fault {
            path,
            position,
            problem,
        },
        ..
    } = error
    else {
        panic!("{error}");
    };
    assert_eq!(path.to_string(), "listen");
    assert_eq!((position.line, position.column), (1, 12));
    assert!(matches!(*problem, Problem::WrongKind { .. }));
}

#[test]
fn distrust_names_servers_that_can_exist() {
    let refused = refusal(r#"{"intent_declaration": {"distrust": ["acme-*", "a:b"]}}"#);
    assert!(
        refused.contains("at intent_declaration.distrust[1]"),
        "{refused}"
    );
    assert!(refused.contains("no server can match \"a:b\""), "{refused}");
}
