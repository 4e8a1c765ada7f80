//! Where the daemon keeps its files and listens: what others own, can write or already use.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};

use serde_json::json;
use testkit::{Home, TestDaemon, http_client};
use tokio::net::TcpListener;

use crate::support::{api_key, home, limited};
use crate::wire::{get, open, status};

fn ready_home() -> Home {
    let home = home();
    home.write_config(&json!({"listen": "127.0.0.1:0"}));
    home
}

async fn refused(home: &Home, arguments: &[&str], why: &str) {
    let output = home.cli([&["serve"], arguments].concat()).await;
    output.ended_with(1);
    assert!(output.stderr.contains(why), "{}", output.stderr);
}

#[tokio::test]
async fn a_data_directory_that_others_can_write_is_refused() {
    let home = ready_home();
    let folder = home.path().join(".mcpproxy");
    fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
    refused(&home, &[], "can be written by other users (mode 777)").await;
    assert!(!folder.join("api_key").exists());
}

#[tokio::test]
async fn a_data_directory_of_another_user_is_refused() {
    let home = ready_home();
    let other = home.path().join("other");
    fs::create_dir(&other).unwrap();
    // Only root can give a directory away; others have one that is not theirs.
    let is_given_away = chown(&other, Some(12_345), None).is_ok();
    let folder = if is_given_away {
        other.to_str().unwrap()
    } else {
        "/"
    };
    refused(&home, &["--data-dir", folder], "belongs to user").await;
}

#[tokio::test]
async fn links_in_the_data_directory_are_not_followed() {
    for name in ["logs", "api_key", "pins", "eras.json", "mcpproxy.lock"] {
        let home = ready_home();
        let elsewhere = home.path().join("elsewhere");
        symlink(&elsewhere, home.path().join(".mcpproxy").join(name)).unwrap();
        refused(&home, &[], "is a symbolic link").await;
        assert!(!elsewhere.exists(), "{name}");
    }
}

#[tokio::test]
async fn a_key_that_others_could_read_is_closed_to_them() {
    let home = ready_home();
    let key = home.path().join(".mcpproxy/api_key");
    fs::write(&key, "k".repeat(64)).unwrap();
    fs::set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
    let daemon = TestDaemon::start(home, json!({})).await;
    assert_eq!(
        fs::metadata(&key).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert!(
        daemon.log().contains("others could read this"),
        "{}",
        daemon.log()
    );
}

#[tokio::test]
async fn the_holder_of_the_port_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let home = home();
    home.write_config(&json!({"listen": listener.local_addr().unwrap()}));
    let me = format!("process {}", std::process::id());
    refused(&home, &[], &me).await;
}

#[tokio::test]
async fn the_daemon_that_has_the_data_directory_is_named_and_unharmed() {
    let daemon = limited(json!({})).await;
    let other = format!("process {}", daemon.pid());
    refused(&daemon.home, &["--listen", "127.0.0.1:0"], &other).await;
    assert!(daemon.is_up().await);
    daemon.home.cli(["status"]).await.succeeded();
}

/// Commands that ask the daemon need no config of their own.
#[tokio::test]
async fn a_broken_config_does_not_hide_a_daemon_that_is_well() {
    let daemon = limited(json!({})).await;
    daemon
        .home
        .write_config_text(r#"{"listen": "127.0.0.1:1" "oops"}"#);
    for command in [
        &["status"][..],
        &["upstream", "list"],
        &["activity", "list"],
        &["tools", "list"],
    ] {
        let output = daemon.home.cli(command).await;
        output.succeeded();
        assert!(
            output.stderr.contains("last good config"),
            "{}",
            output.stderr
        );
    }
    let doctor = daemon.home.cli(["doctor"]).await;
    assert!(
        doctor.stdout.contains("CONFIG_INVALID"),
        "{}",
        doctor.stdout
    );
    assert!(!doctor.stdout.contains("kill"), "{}", doctor.stdout);
    assert!(
        doctor.stdout.contains(daemon.address()),
        "{}",
        doctor.stdout
    );
    // Without a daemon the file is what counts.
    let (home, _) = daemon.stop().await;
    home.cli(["status"]).await.ended_with(4);
}

#[tokio::test]
async fn no_path_leads_out_of_what_is_served() {
    let daemon = limited(json!({})).await;
    let key = api_key(&daemon.home);
    for name in [
        "..",
        "%2e%2e",
        "..%2f..%2fapi_key",
        "%2fetc%2fpasswd",
        "x%00y",
        "..%5c..%5cx",
    ] {
        for path in ["", "/logs", "/tools", "/restart"] {
            let path = format!("/api/v1/servers/{name}{path}");
            let mut stream = open(daemon.address()).await;
            let status = status(&mut stream, &get(&path, &[("x-api-key", &key)])).await;
            assert!(matches!(status, 400 | 404 | 405), "{path}: {status}");
        }
    }
    let url = daemon.url("/../../../../etc/passwd");
    assert_eq!(http_client().get(url).send().await.unwrap().status(), 404);
}
