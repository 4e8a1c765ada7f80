//! Servers that are there and do not answer.

use std::time::Duration;

use config::Limits;
use rustix::process::{Pid, Signal, kill_process};
use testkit::{DEADLINE, wait_until};
use upstream::CallError;

use crate::support::{Setup, Shell, limits, seconds, within};

fn impatient() -> Limits {
    Limits {
        ping_after: seconds(0.3),
        ping_timeout: seconds(0.5),
        silence: seconds(1.5),
        ..limits()
    }
}

/// A server that does one thing at a time answers no ping during a call, and is not killed for it.
#[tokio::test]
async fn a_busy_server_is_degraded_and_keeps_its_call() {
    let shell = Shell {
        call: r#"sleep 4; answer '{"content":[],"done":true}'"#,
        ..Shell::default()
    };
    let setup = Setup::of(shell, impatient()).await;
    setup.state("ready").await;
    let upstream = setup.upstream();
    let calling = tokio::spawn(async move { crate::support::call(&upstream, None).await });
    let failure = setup.failure("degraded").await;
    assert!(failure.contains("does not answer a ping"), "{failure}");
    let result = within(30, calling).await.unwrap().unwrap();
    assert!(result.get().contains("done"));
    setup.state("ready").await;
    assert_eq!(setup.count("start"), 1);
}

/// A server that is known to answer during calls and then falls silent is given up.
#[tokio::test]
async fn a_stopped_server_is_lost_and_replaced() {
    let shell = Shell {
        call: ":",
        ..Shell::default()
    };
    let setup = Setup::of(shell, impatient()).await;
    setup.state("ready").await;
    let upstream = setup.upstream();
    let calling = tokio::spawn(async move { crate::support::call(&upstream, None).await });
    wait_until("it is pinged during the call", DEADLINE, async || {
        setup.count("\"ping\"") >= 2
    })
    .await;
    let pid = Pid::from_raw(setup.pid().cast_signed()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    let error = within(20, calling).await.unwrap().unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, CallError::Lost { .. }), "{text}");
    assert!(text.contains("did not answer a ping"), "{text}");
    wait_until("it is ready again", DEADLINE, async || {
        setup.upstream().status().connections == 2
    })
    .await;
}

#[tokio::test]
async fn a_deaf_server_is_lost_after_three_timeouts() {
    let shell = Shell {
        call: "sleep 600",
        ..Shell::default()
    };
    let setup = Setup::with(shell, impatient(), |server| {
        server.timeout = Duration::from_millis(400);
    })
    .await;
    setup.state("ready").await;
    for _ in 0..3 {
        let error = within(10, setup.call()).await.unwrap_err();
        assert!(matches!(error, CallError::Timeout { .. }), "{error}");
        assert!(
            error.to_string().contains("may still be running"),
            "{error}"
        );
    }
    wait_until("it is ready again", DEADLINE, async || {
        setup.upstream().status().connections == 2
    })
    .await;
}

#[tokio::test]
async fn a_server_that_only_answers_pings_is_degraded_and_recovers() {
    let shell = Shell {
        call: r#"if [ $(grep -c tools/call "$LOG") -gt 3 ]; then answer '{"content":[]}'; fi"#,
        ..Shell::default()
    };
    let setup = Setup::with(shell, impatient(), |server| {
        server.timeout = Duration::from_millis(400);
    })
    .await;
    setup.state("ready").await;
    for _ in 0..3 {
        setup.call().await.unwrap_err();
    }
    let failure = setup.failure("degraded").await;
    assert!(failure.contains("3 calls timed out"), "{failure}");
    setup.call().await.unwrap();
    setup.state("ready").await;
    assert_eq!(setup.count("start"), 1);
}
