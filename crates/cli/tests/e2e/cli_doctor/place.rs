//! The data directory: something in its way, and no room on its disk.

use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::json;
use testkit::{Home, Output};

use super::{
    Problem, codes, named, place, problems, program, quiet_home, read_report, repair, set_mode,
};

async fn problems_of(home: &Home, data_dir: &Path) -> Vec<Problem> {
    problems(home, &["--data-dir", &data_dir.to_string_lossy()], &[]).await
}

#[tokio::test]
async fn what_is_in_the_way_of_the_data_directory_is_moved_by_the_fix() {
    // The data directory, and where the link in its way leads; without one it is a file.
    for (data_dir, leads_to) in [
        ("a thing", None),
        ("a thing/below/it", None),
        ("a thing", Some("nowhere")),
    ] {
        let home = quiet_home(json!({}));
        let thing = home.path().join("a thing");
        match leads_to {
            Some(target) => symlink(target, thing).unwrap(),
            None => std::fs::write(thing, "mine").unwrap(),
        }
        let data_dir = home.path().join(data_dir);
        let flag = format!("--data-dir={}", data_dir.display());
        home.cli(["activity", "list", &flag]).await.ended_with(1);
        let found = problems_of(&home, &data_dir).await;
        repair(&home, named(&found, "DATA_DIR_UNUSABLE")).await;
        assert!(problems_of(&home, &data_dir).await.is_empty());
        home.cli(["activity", "list", &flag]).await.succeeded();
        let moved = std::fs::symlink_metadata(home.path().join("a thing.old"));
        assert_eq!(moved.unwrap().is_symlink(), leads_to.is_some());
    }
}

#[tokio::test]
async fn a_data_directory_that_nobody_can_write_is_seen() {
    let home = quiet_home(json!({}));
    for (data_dir, fix) in [("disk", "chown"), ("disk/below/it", "install -d")] {
        // Modes do not bind root, but this does.
        let output = doctor_on_disk(&home, "ro,size=200m,mode=700", data_dir).await;
        let found = read_report(&output);
        let problem = named(&found, "DATA_DIR_UNUSABLE");
        assert!(problem.cause.contains("Read-only"), "{problem:?}");
        let expected = format!("{}/{data_dir}", home.path().display());
        assert!(problem.fix.contains(fix), "{problem:?}");
        assert!(problem.fix.ends_with(&expected), "{problem:?}");
    }
}

#[tokio::test]
async fn a_key_file_without_a_key_is_seen() {
    let home = quiet_home(json!({}));
    place(&home, ".mcpproxy/api_key", "\n");
    set_mode(&home.path().join(".mcpproxy/api_key"), 0o600);
    home.cli(["serve"]).await.ended_with(1);
    let found = problems(&home, &[], &[]).await;
    repair(&home, named(&found, "KEY_FILE_EMPTY")).await;
    assert_eq!(codes(&home).await, [""; 0]);
}

#[tokio::test]
async fn a_disk_that_is_nearly_full_is_seen() {
    let home = quiet_home(json!({}));
    let output = doctor_on_disk(&home, "size=8m,mode=700", "disk").await;
    let found = read_report(&output);
    let problem = named(&found, "DISK_LOW");
    assert!(problem.cause.contains("MiB are left"), "{problem:?}");
    assert!(problem.fix.starts_with("df "), "{problem:?}");
    repair(&home, problem).await;
    assert!(read_report(&doctor_on_disk(&home, "size=200m,mode=700", "disk").await).is_empty());
}

/// Runs doctor with a data directory on a disk that is mounted with these options.
async fn doctor_on_disk(home: &Home, options: &str, data_dir: &str) -> Output {
    // A mount that only this process sees. Where a user may not make one, sudo may.
    let ways: [&[&str]; 2] = [&["unshare", "-rm"], &["sudo", "-n", "unshare", "-m"]];
    let disk = home.path().join("disk");
    std::fs::create_dir_all(&disk).unwrap();
    let disk_path = disk.display();
    let mount = format!("mount -t tmpfs -o {options} none '{disk_path}'");
    let mut refused = String::new();
    for way in ways {
        let in_namespace = |script: String| {
            let mut command = program(way[0]);
            command
                .args(&way[1..])
                .args(["sh", "-c", &script])
                .env("HOME", home.path());
            command
        };
        let tried = in_namespace(mount.clone()).output().await;
        match tried {
            Ok(tried) if tried.status.success() => {}
            tried => {
                refused.push_str(&format!("{way:?}: {tried:?}\n"));
                continue;
            }
        }
        let binary = env!("CARGO_BIN_EXE_mcpproxy");
        let data_dir = home.path().join(data_dir);
        let arguments = format!("doctor -o json --data-dir '{}'", data_dir.display());
        return ran_to_end(in_namespace(format!("{mount} && '{binary}' {arguments}"))).await;
    }
    panic!("no small disk can be mounted for this test:\n{refused}");
}

async fn ran_to_end(mut command: tokio::process::Command) -> Output {
    let output = command.output().await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Output {
        code: output.status.code().unwrap(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}
