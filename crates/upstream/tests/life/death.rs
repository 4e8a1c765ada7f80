//! Processes that end, do not end, or leave others behind.

use std::time::Duration;

use config::Limits;
use testkit::{DEADLINE, wait_until};
use upstream::CallError;

use crate::support::{Setup, Shell, exists, limits, runs, within};

async fn wait_until_gone(pid: u32) {
    wait_until("the process is gone", DEADLINE, async || !exists(pid)).await;
}

#[tokio::test]
async fn a_server_that_hangs_does_not_delay_its_own_end() {
    let never = "while :; do sleep 1; done";
    let stubborn = "trap '' TERM";
    let hanging = [
        // At the greeting, at the first list, and once it has been ready.
        (
            Shell {
                start: never,
                ..Shell::default()
            },
            "connecting",
            "start",
        ),
        (
            Shell {
                list: never,
                ..Shell::default()
            },
            "connecting",
            "tools/list",
        ),
        (
            Shell {
                start: stubborn,
                list: never,
                ..Shell::default()
            },
            "connecting",
            "tools/list",
        ),
        (
            Shell {
                start: stubborn,
                ..Shell::default()
            },
            "ready",
            "tools/list",
        ),
    ];
    for (shell, state, arrived) in hanging {
        let setup = Setup::of(shell, limits()).await;
        setup.state(state).await;
        wait_until(arrived, DEADLINE, async || setup.count(arrived) > 0).await;
        let pid = setup.pid();
        within(8, setup.fleet.shutdown()).await;
        assert!(!runs(pid), "{shell:?}");
    }
}

#[tokio::test]
async fn a_restart_begins_at_once_whatever_the_server_does() {
    let shell = Shell {
        list: "if [ $(grep -c tools/list \"$LOG\") = 1 ]; then sleep 600; fi; answer '{\"tools\":[]}'",
        ..Shell::default()
    };
    let setup = Setup::of(shell, limits()).await;
    wait_until("the list is asked for", DEADLINE, async || {
        setup.count("tools/list") > 0
    })
    .await;
    let first = setup.pid();
    within(2, setup.upstream().restart()).await;
    setup.state("ready").await;
    assert!(!runs(first));
}

#[tokio::test]
async fn a_call_that_a_restart_cuts_short_is_told_at_once() {
    let shell = Shell {
        call: ":",
        ..Shell::default()
    };
    let setup = Setup::of(shell, limits()).await;
    setup.state("ready").await;
    let upstream = setup.upstream();
    let calling = tokio::spawn(async move { crate::support::call(&upstream, None).await });
    wait_until("the call is sent", DEADLINE, async || {
        setup.count("tools/call") == 1
    })
    .await;
    setup.upstream().restart().await;
    let text = within(2, calling).await.unwrap().unwrap_err().to_string();
    for part in ["restarted", "may have been carried out"] {
        assert!(text.contains(part), "{text}");
    }
}

#[tokio::test]
async fn many_servers_end_together() {
    let shell = Shell {
        start: "trap '' TERM",
        ..Shell::default()
    };
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("server.sh");
    let text = format!("LOG=/dev/null\n{}", shell.text());
    std::fs::write(&script, text).unwrap();
    let transport = config::Transport::program("sh", [script.to_str().unwrap()]);
    let setup = Setup::over(transport.clone(), limits(), |_| (), folder).await;
    let servers: Vec<_> = (0..10)
        .map(|number| {
            let name = format!("up{number}").parse().unwrap();
            config::ServerConfig::new(name, transport.clone())
        })
        .collect();
    setup.fleet.apply(&servers).await;
    for upstream in setup.fleet.all() {
        upstream.settled(std::time::Instant::now() + DEADLINE).await;
    }
    within(8, setup.fleet.shutdown()).await;
}

/// The child is gone but a process that it left behind holds the pipe.
#[tokio::test]
async fn the_end_of_the_process_counts_and_not_that_of_its_output() {
    let shell = Shell {
        call: "echo out of cheese >&2; (trap '' TERM; while :; do sleep 1; done) & echo child $! >> \"$LOG\"; exit 7",
        ..Shell::default()
    };
    let setup = Setup::of(shell, limits()).await;
    setup.state("ready").await;
    let pid = setup.pid();
    let error = within(10, setup.call()).await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, CallError::Lost { .. }), "{text}");
    for part in [
        "up",
        "exit code 7",
        "out of cheese",
        "may have been carried out",
        "upstream logs up",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    wait_until_gone(pid).await;
    let child = setup.log();
    let child = child.lines().find_map(|line| line.strip_prefix("child "));
    wait_until_gone(child.unwrap().parse().unwrap()).await;
    setup.state("ready").await;
    assert_ne!(setup.pid(), pid);
}

#[tokio::test]
async fn a_signal_is_named() {
    let shell = Shell {
        call: "kill -9 $$",
        ..Shell::default()
    };
    let setup = Setup::of(shell, limits()).await;
    setup.state("ready").await;
    let text = within(10, setup.call()).await.unwrap_err().to_string();
    assert!(text.contains("signal 9 (SIGKILL)"), "{text}");
}

#[tokio::test]
async fn a_line_without_an_end_ends_the_connection() {
    let shell = Shell {
        call: "yes | tr -d '\\n'",
        ..Shell::default()
    };
    let small = Limits {
        upstream_message_bytes: 1024 * 1024,
        ..limits()
    };
    let setup = Setup::of(shell, small).await;
    setup.state("ready").await;
    let pid = setup.pid();
    let error = within(20, setup.call()).await.unwrap_err().to_string();
    for part in ["1048576 bytes", "limits.upstream_message_bytes"] {
        assert!(error.contains(part), "{error}");
    }
    wait_until_gone(pid).await;
    setup.state("ready").await;
}

#[tokio::test]
async fn a_crash_loop_ends_in_a_state_that_says_so() {
    let shell = Shell {
        start: "echo no luck >&2; exit 3",
        ..Shell::default()
    };
    let few = Limits {
        starts: 3,
        ..limits()
    };
    let setup = Setup::of(shell, few).await;
    let failure = setup.failure("failed").await;
    for part in [
        "crash loop",
        "3 times",
        "exit code 3",
        "no luck",
        "upstream logs up",
        "upstream restart up",
    ] {
        assert!(failure.contains(part), "{part}: {failure}");
    }
    // The start for the question of the era is among them.
    assert_eq!(setup.count("start"), 3);
    setup.upstream().restart().await;
    setup.failure("failed").await;
    assert_eq!(setup.count("start"), 6);
}

#[tokio::test]
async fn a_server_that_does_not_survive_the_question_for_its_era_is_asked_once() {
    let shell = Shell {
        start: "read -r line; echo \"$line\" >> \"$LOG\"; case \"$line\" in *server/discover*) exit 1;; esac; id=${line#*'\"id\":'}; id=${id%%[,\\}]*}; answer '{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"serverInfo\":{\"name\":\"sh\",\"version\":\"1\"}}'",
        call: "exit 1",
        ..Shell::default()
    };
    let setup = Setup::of(shell, limits()).await;
    setup.state("ready").await;
    assert_eq!(setup.count("start"), 2);
    setup.call().await.unwrap_err();
    wait_until("it is ready again", DEADLINE, async || {
        setup.upstream().status().connections == 2
    })
    .await;
    assert_eq!(setup.count("start"), 3);
    tokio::time::timeout(Duration::from_secs(8), setup.fleet.shutdown())
        .await
        .unwrap();
}
