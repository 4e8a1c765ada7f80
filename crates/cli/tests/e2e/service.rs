//! `mcpproxy service`: what is given to the service manager, and that commands use it.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use testkit::{DEADLINE, Home, Stdin, wait_for};

use crate::support::home;

/// Stands in for systemd: notes what it is told, and starts what the unit says.
const SYSTEMCTL: &str = r#"#!/bin/sh
echo "$*" >> "$HOME/asked"
case "$*" in
  *is-active*) test -e "$HOME/started" ;;
  *"start "*|*"enable --now"*)
    touch "$HOME/started"
    eval "exec $(sed -n 's/^ExecStart=//p' "$HOME/.config/systemd/user/mcpproxy.service")" \
      >/dev/null 2>&1 &
    ;;
  *"disable --now"*) rm -f "$HOME/started"; kill "$(cat "$HOME/.mcpproxy/mcpproxy.lock")" ;;
esac
"#;

struct Systemd {
    home: Home,
    search_path: String,
}

impl Systemd {
    fn new() -> Self {
        let home = home();
        let bin = home.path().join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::write(bin.join("systemctl"), SYSTEMCTL).unwrap();
        std::fs::set_permissions(bin.join("systemctl"), PermissionsExt::from_mode(0o755)).unwrap();
        home.write_config(&json!({"listen": "127.0.0.1:0"}));
        let search_path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        Self { home, search_path }
    }

    async fn cli(&self, arguments: &[&str]) -> testkit::Output {
        let environment = [("PATH", self.search_path.as_str())];
        self.home
            .cli_with(arguments, Stdin::Empty, &environment)
            .await
    }

    fn asked(&self) -> String {
        std::fs::read_to_string(self.home.path().join("asked")).unwrap_or_default()
    }

    async fn started_by(&self) -> Value {
        wait_for("the daemon runs", DEADLINE, async || {
            let status = self.cli(&["status", "-o", "json"]).await;
            (status.code == 0).then(|| status.json()["started_by"].clone())
        })
        .await
    }
}

#[tokio::test]
async fn it_is_installed_used_and_removed() {
    let systemd = Systemd::new();
    let none = systemd.cli(&["service", "status"]).await;
    assert!(none.succeeded().stdout.contains("no service is installed"));
    systemd.cli(&["service", "install"]).await.succeeded();
    assert_eq!(systemd.started_by().await["kind"], "service");
    let status = systemd.cli(&["service", "status", "-o", "json"]).await;
    assert_eq!(status.json()["running"], true, "{status:?}");

    // Commands start the service, and no daemon of their own.
    systemd.cli(&["stop"]).await.succeeded();
    systemd.cli(&["tools", "list"]).await.succeeded();
    assert_eq!(systemd.started_by().await["kind"], "service");
    assert!(systemd.asked().contains("--user start mcpproxy.service"));

    // That of another data directory is not this one's service.
    let elsewhere = systemd.home.path().join("other");
    let elsewhere = elsewhere.to_str().unwrap();
    systemd
        .cli(&["--data-dir", elsewhere, "tools", "list"])
        .await
        .succeeded();
    let other = systemd
        .cli(&["--data-dir", elsewhere, "status", "-o", "json"])
        .await;
    assert_eq!(other.json()["started_by"]["kind"], "command");

    systemd.cli(&["service", "uninstall"]).await.succeeded();
    assert!(systemd.asked().contains("disable --now mcpproxy.service"));
    let unit = ".config/systemd/user/mcpproxy.service";
    assert!(!systemd.home.path().join(unit).exists());
    let again = systemd.cli(&["service", "uninstall"]).await;
    assert!(again.succeeded().stdout.contains("no service is installed"));
}

#[tokio::test]
async fn without_a_service_manager_the_file_is_written_and_commands_go_on() {
    let home = home();
    home.write_config(&json!({"listen": "127.0.0.1:0"}));
    let refused = home
        .cli_with(
            ["service", "install"],
            Stdin::Empty,
            &[("PATH", "/nowhere")],
        )
        .await;
    let told = &refused.ended_with(1).stderr;
    assert!(told.contains("mcpproxy serve"), "{told}");
    let nowhere = [("PATH", "/nowhere")];
    home.cli_with(["tools", "list"], Stdin::Empty, &nowhere)
        .await
        .succeeded();
}

/// systemd's own judgement of the unit.
#[tokio::test]
async fn systemd_accepts_the_unit() {
    let home = home();
    let data_dir = home.path().join("a 100% $HOME \"data\" folder");
    let data_dir = data_dir.to_str().unwrap();
    // It cannot be started without a service manager; the file is there all the same.
    let arguments = ["--data-dir", data_dir, "service", "install"];
    home.cli_with(arguments, Stdin::Empty, &[("PATH", "/nowhere")])
        .await;
    let unit = home.path().join(".config/systemd/user/mcpproxy.service");
    let text = std::fs::read_to_string(&unit).unwrap();
    let words = "a 100%% $$HOME \\\"data\\\" folder";
    assert!(text.contains(words), "{text}");
    let verified = home
        .command_of("systemd-analyze".as_ref())
        .args(["verify", "--user", "--man=no"])
        .arg(&unit)
        // Where systemd has no instance for the user, it still wants a place for one.
        .env("XDG_RUNTIME_DIR", home.path())
        .output()
        .await
        .expect("systemd-analyze is installed by scripts/test");
    let said = String::from_utf8_lossy(&verified.stderr);
    assert!(verified.status.success(), "{said}\n{text}");
    // What it says of other units of the machine is not ours.
    let ours = said.lines().filter(|line| line.contains("mcpproxy"));
    assert_eq!(ours.collect::<Vec<_>>(), Vec::<&str>::new(), "{text}");
}
