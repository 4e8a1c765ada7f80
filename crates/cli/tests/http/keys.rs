//! API keys that are guessed, short or offered with a body of another kind.

use std::time::{Duration, Instant};

use serde_json::json;
use testkit::{TestDaemon, http_client};

use crate::support::{api_key, home, limited};

async fn status_with(daemon: &TestDaemon, client: &reqwest::Client, key: &str) -> u16 {
    let request = client.get(daemon.url("/api/v1/status"));
    let answer = request.header("x-api-key", key).send().await.unwrap();
    answer.status().as_u16()
}

#[tokio::test]
async fn guessing_is_slowed_and_logged_and_the_right_key_still_works() {
    let daemon = limited(json!({})).await;
    let (client, key) = (http_client(), api_key(&daemon.home));
    let begun = Instant::now();
    for number in 0..10 {
        let guess = format!("{number:064}");
        assert_eq!(status_with(&daemon, &client, &guess).await, 401);
    }
    // 100, 200, 400, 800 and 1,600 ms.
    assert!(
        begun.elapsed() > Duration::from_secs(3),
        "{:?}",
        begun.elapsed()
    );
    let right = Instant::now();
    assert_eq!(status_with(&daemon, &client, &key).await, 200);
    assert!(right.elapsed() < Duration::from_secs(2));
    let log = daemon.log();
    assert_eq!(
        log.matches("a wrong API key was offered").count(),
        1,
        "{log}"
    );
    assert!(!log.contains(&format!("{:064}", 1)), "{log}");
    assert!(!log.contains(&key), "{log}");
}

#[tokio::test]
async fn many_guesses_at_once_are_not_looked_at() {
    let daemon = limited(json!({})).await;
    let client = http_client();
    let guesses = (0..64).map(|number| {
        let guess = format!("{number:064}");
        let request = client.get(daemon.url("/api/v1/status"));
        let request = request.header("x-api-key", guess);
        async move {
            let answer = request.send().await.unwrap();
            let retry = answer.headers().contains_key("retry-after");
            (answer.status().as_u16(), retry)
        }
    });
    let answers = futures_util::future::join_all(guesses).await;
    let refused = answers
        .iter()
        .filter(|answer| **answer == (429, true))
        .count();
    assert!(refused > 40, "{answers:?}");
    assert!(
        answers
            .iter()
            .all(|(status, _)| matches!(status, 401 | 429))
    );
    // The operator is not held up by it.
    daemon.home.cli(["status"]).await.succeeded();
}

#[tokio::test]
async fn a_client_with_an_old_key_is_not_taken_for_a_guesser() {
    let daemon = limited(json!({})).await;
    let client = http_client();
    let begun = Instant::now();
    for _ in 0..50 {
        assert_eq!(status_with(&daemon, &client, &"0".repeat(64)).await, 401);
    }
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert_eq!(
        status_with(&daemon, &client, &api_key(&daemon.home)).await,
        200
    );
}

#[tokio::test]
async fn a_key_that_is_too_short_is_refused() {
    let home = home();
    home.write_config(&json!({"listen": "127.0.0.1:0", "api_key": "fifteen letters"}));
    let output = home.cli(["serve"]).await;
    output.ended_with(4);
    assert!(
        output.stderr.contains("a key of 15 characters"),
        "{}",
        output.stderr
    );
    assert!(
        !output.stderr.contains("fifteen letters"),
        "{}",
        output.stderr
    );
}

#[tokio::test]
async fn a_body_that_is_not_json_by_its_own_word_is_refused() {
    let daemon = limited(json!({})).await;
    let key = api_key(&daemon.home);
    for path in [
        "/servers",
        "/tools/call",
        "/policy/simulate",
        "/servers/x/enable",
    ] {
        for kind in [
            None,
            Some("text/plain"),
            Some("application/x-www-form-urlencoded"),
        ] {
            let request = http_client()
                .post(daemon.url(&format!("/api/v1{path}")))
                .header("x-api-key", &key);
            let request = match kind {
                Some(kind) => request.header("content-type", kind),
                None => request,
            };
            let answer = request.body("{}").send().await.unwrap();
            assert_eq!(answer.status().as_u16(), 415, "{path} {kind:?}");
            assert!(answer.text().await.unwrap().contains("application/json"));
        }
    }
    // Without a body there is nothing to say about it.
    let request = http_client().post(daemon.url("/api/v1/servers/x/enable"));
    let answer = request.header("x-api-key", &key).send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 404);
}
