//! `mcpproxy activity export`: in what form, and where to.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::support::Proxy;

#[tokio::test]
async fn the_form_is_that_of_o_where_no_other_is_given() {
    let proxy = Proxy::start().await;
    proxy.calls(1).await;
    let home = &proxy.daemon.home;
    let export = async |options: &[&str]| {
        let command = ["activity", "export", "--type", "tool_call"];
        let output = home.cli(command.iter().chain(options)).await;
        output.succeeded().stdout.clone()
    };
    let is_list = |text: &str| matches!(serde_json::from_str(text), Ok(Value::Array(_)));
    let is_lines = |text: &str| {
        let mut lines = text.lines().map(serde_json::from_str);
        lines.all(|line| matches!(line, Ok(Value::Object(_))))
    };
    assert!(is_list(&export(&[]).await));
    assert!(is_list(&export(&["-o", "json"]).await));
    assert!(is_lines(&export(&["-o", "jsonl"]).await));
    assert!(is_lines(
        &export(&["-o", "jsonl", "--format", "jsonl"]).await
    ));
    assert!(export(&["--format", "csv"]).await.starts_with("id,"));
}

#[tokio::test]
async fn what_the_environment_prefers_is_no_contradiction() {
    let proxy = Proxy::start().await;
    proxy.calls(1).await;
    for (preferred, options, begin) in [
        ("jsonl", vec![], "{"),
        ("yaml", vec![], "["),
        ("json", vec!["--format", "csv"], "id,"),
    ] {
        let output = proxy
            .daemon
            .home
            .command()
            .env("MCPPROXY_OUTPUT", preferred)
            .args(["activity", "export"])
            .args(options)
            .output()
            .await
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.starts_with(begin), "{preferred}: {text}");
    }
}

#[tokio::test]
async fn a_file_is_for_its_owner_alone_and_a_dash_is_stdout() {
    let proxy = Proxy::start().await;
    proxy.calls(1).await;
    let home = &proxy.daemon.home;
    let file = home.path().join("calls.json");
    let place = file.to_str().unwrap();
    let output = home.cli(["activity", "export", "--output", place]).await;
    assert_eq!(output.succeeded().stdout, "");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let output = home.cli(["activity", "export", "--output", "-"]).await;
    assert_eq!(
        output.succeeded().stdout,
        std::fs::read_to_string(&file).unwrap()
    );
    assert!(!home.path().join("-").exists());
}
