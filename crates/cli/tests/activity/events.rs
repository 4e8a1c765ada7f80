//! `/events`: in order, resumed without gap or double, filtered, and never in the way of calls.

use std::time::Duration;

use serde_json::json;
use testkit::{DEADLINE, Tool};
use tokio::net::TcpSocket;
use tokio::time::timeout;

use crate::support::{LANES, Proxy, READ, WRITE, api_key};
use crate::wire::{Connection, Events, ServerEvent};

async fn watch(proxy: &Proxy, query: &str, after: Option<u64>) -> Events {
    let key = api_key(&proxy.daemon.home);
    let events = Events::watch(proxy.daemon.address(), &key, query, after).await;
    events.unwrap_or_else(|(status, body)| panic!("{status} {body}"))
}

/// The next event that is a record, in time.
async fn next(events: &mut Events) -> ServerEvent {
    loop {
        let event = timeout(DEADLINE, events.next())
            .await
            .expect("an event in time");
        let event = event.expect("the stream goes on");
        if event.name.starts_with("activity.") {
            return event;
        }
    }
}

/// Reads until the record of the call with this number has ended.
async fn read_until(events: &mut Events, number: &str) -> Vec<ServerEvent> {
    let mut read = Vec::new();
    loop {
        read.push(next(events).await);
        let last = read.last().unwrap();
        if last.name == "activity.tool_call.completed" && last.data["arguments"]["n"] == number {
            return read;
        }
    }
}

/// Whether each id is one more than the one before.
fn is_without_gaps(ids: &[u64]) -> bool {
    ids.windows(2).all(|pair| pair[1] == pair[0] + 1)
}

fn ids(events: &[ServerEvent]) -> Vec<u64> {
    events
        .iter()
        .map(|event| event.id.expect("an id"))
        .collect()
}

#[tokio::test]
async fn a_call_is_two_events_with_ids() {
    let proxy = Proxy::start().await;
    proxy.daemon.session_with(&["up:look"]).await;
    let mut events = watch(&proxy, "", None).await;
    let mut client = proxy.client().await;
    for lane in LANES {
        client.succeed(lane, &json!({"n": lane.tool})).await;
        let seen = read_until(&mut events, lane.tool).await;
        let calls: Vec<_> = seen
            .iter()
            .filter(|it| it.data["type"] == "tool_call")
            .collect();
        let [started, completed] = calls.as_slice() else {
            panic!("{calls:?}");
        };
        assert_eq!(started.name, "activity.tool_call.started");
        assert_eq!(started.data["status"], "pending");
        assert_eq!(completed.data["status"], "success");
        assert_eq!(started.data["id"], completed.data["id"]);
        let intent = &completed.data["metadata"]["intent"];
        assert_eq!(intent["operation_type"], lane.operation_type);
        assert!(started.id < completed.id);
    }
    let wrong = json!({"name": "up:wipe", "intent": {"operation_type": "read"}});
    client.refused("call_tool_read", &wrong).await;
    let refused = next(&mut events).await;
    assert_eq!(refused.name, "activity.policy_decision");
    assert_eq!(refused.data["status"], "blocked");
}

#[tokio::test]
async fn last_event_id_resumes_without_gap_or_double() {
    let proxy = Proxy::start().await;
    proxy.daemon.session_with(&["up:look"]).await;
    let mut client = proxy.client().await;
    let mut seen = Vec::new();
    let mut after = None;
    for round in 0..5 {
        let mut events = watch(&proxy, "", after).await;
        let number = format!("while watching {round}");
        client.succeed(WRITE, &json!({"n": number})).await;
        seen.extend(read_until(&mut events, &number).await);
        after = seen.last().unwrap().id;
        drop(events);
        for lane in LANES {
            client.succeed(lane, &json!({"n": "while away"})).await;
        }
    }
    let mut events = watch(&proxy, "", after).await;
    client.succeed(READ, &json!({"n": "end"})).await;
    seen.extend(read_until(&mut events, "end").await);
    let seen = ids(&seen);
    assert!(is_without_gaps(&seen), "{seen:?}");
    // Two for each call.
    assert_eq!(seen.len(), 2 * (5 * 4 + 1), "{seen:?}");
}

#[tokio::test]
async fn a_place_in_the_stream_survives_a_restart() {
    let proxy = Proxy::start().await;
    proxy.daemon.session_with(&["up:look"]).await;
    let mut events = watch(&proxy, "", None).await;
    proxy
        .client()
        .await
        .succeed(READ, &json!({"n": "before"}))
        .await;
    let after = read_until(&mut events, "before")
        .await
        .last()
        .unwrap()
        .id
        .unwrap();
    let config = std::fs::read(proxy.daemon.home.config_file()).unwrap();
    let (home, _) = proxy.daemon.stop().await;
    let config = serde_json::from_slice(&config).unwrap();
    let daemon = testkit::TestDaemon::start(home, config).await;
    let proxy = Proxy {
        daemon,
        record: proxy.record,
    };
    let mut events = watch(&proxy, "", Some(after)).await;
    proxy
        .client()
        .await
        .succeed(READ, &json!({"n": "after"}))
        .await;
    let seen = read_until(&mut events, "after").await;
    let ids = ids(&seen);
    assert_eq!(ids[0], after + 1);
    assert!(is_without_gaps(&ids), "{ids:?}");
    let systems: Vec<_> = seen
        .iter()
        .filter(|event| event.name == "activity.system")
        .collect();
    assert_eq!(systems.len(), 2, "stopped and started: {systems:?}");
}

#[tokio::test]
async fn filters_choose_among_live_and_replayed_events() {
    let proxy = Proxy::start().await;
    proxy.daemon.session_with(&["up:look"]).await;
    let mut live = watch(&proxy, "?intent_type=write&status=success", None).await;
    let mut client = proxy.client().await;
    for number in 0..3 {
        for lane in LANES {
            client.succeed(lane, &json!({"n": number})).await;
        }
    }
    let mut replayed = watch(&proxy, "?intent_type=write&status=success", Some(0)).await;
    for number in 0..3 {
        let event = next(&mut live).await;
        assert_eq!(event.data["tool_name"], "save");
        assert_eq!(event.data["arguments"]["n"], number);
        assert_eq!(event.name, "activity.tool_call.completed");
        assert_eq!(next(&mut replayed).await, event);
    }
}

#[tokio::test]
async fn wrong_filters_and_places_are_refused() {
    let proxy = Proxy::start().await;
    let (address, key) = (proxy.daemon.address(), api_key(&proxy.daemon.home));
    for (query, key, expected) in [
        ("?status=failed", key.as_str(), 400),
        ("?limit=3", &key, 400),
        ("", "wrong", 401),
    ] {
        let refused = Events::watch(address, key, query, None).await.err();
        assert_eq!(refused.map(|(status, _)| status), Some(expected), "{query}");
    }
    let mut connection = Connection::open(address).await.unwrap();
    let headers = [("x-api-key", key.as_str()), ("last-event-id", "first")];
    let (status, body) = connection.get("/events", &headers).await.unwrap();
    assert_eq!(status, 400, "{body}");
    assert!(body.contains("Last-Event-ID"), "{body}");
}

#[tokio::test]
async fn a_place_that_never_was_is_lost() {
    let proxy = Proxy::start().await;
    let mut events = watch(&proxy, "", Some(1_000_000)).await;
    // What servers do meanwhile has no place in the log and may come first.
    let lost = async {
        while let Some(event) = events.next().await {
            if event.name != "servers.changed" && event.name != "tools.changed" {
                return Some(event);
            }
        }
        None
    };
    let event = timeout(DEADLINE, lost).await.unwrap().unwrap();
    assert_eq!(event.name, "place_lost", "{event:?}");
    proxy
        .client()
        .await
        .succeed(READ, &json!({"n": "on"}))
        .await;
    read_until(&mut events, "on").await;
}

/// How many calls each of the eight clients makes that a slow reader does not keep up with.
const CALLS: usize = 110;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_reader_loses_its_place_and_slows_nobody() {
    let result = r#"{"content":[]}"#;
    let proxy = Proxy::with(json!({}), [Tool::read_only("look").returns(result)]).await;
    proxy.daemon.session_with(&["up:look"]).await;
    let address = proxy.daemon.address();
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let stream = socket.connect(address.parse().unwrap()).await.unwrap();
    let connection = Connection::over(stream, address).await.unwrap();
    let key = api_key(&proxy.daemon.home);
    let mut slow = Events::over(connection, &key, "", None).await.ok().unwrap();

    // More than the buffers of the sockets and the daemon's own can hold.
    let filler = "x".repeat(12_000);
    let calls = async {
        let mut clients = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let (mut client, filler) = (proxy.client().await, filler.clone());
            clients.spawn(async move {
                for _ in 0..CALLS {
                    client.succeed(READ, &json!({"filler": filler})).await;
                }
            });
        }
        clients.join_all().await;
    };
    timeout(Duration::from_mins(1), calls)
        .await
        .expect("calls do not wait for who watches");
    let mut before = 0;
    loop {
        let event = timeout(DEADLINE, slow.next())
            .await
            .expect("an event in time");
        let event = event.expect("the stream goes on");
        if event.name == "place_lost" {
            assert!(
                event.data["message"]
                    .as_str()
                    .unwrap()
                    .contains("/activity")
            );
            break;
        }
        before += 1;
    }
    assert!(before < 2 * 8 * CALLS, "{before} events came through");
    // From then on it follows again.
    let mut client = proxy.client().await;
    client.succeed(READ, &json!({"n": "again"})).await;
    read_until(&mut slow, "again").await;
    assert_eq!(
        proxy.data("/activity/summary").await["total"]["success"],
        8 * CALLS + 1
    );
}

#[tokio::test]
async fn a_quarantine_is_an_event_of_its_own() {
    let proxy = Proxy::start().await;
    proxy.daemon.session_with(&["up:look"]).await;
    let mut events = watch(&proxy, "?type=quarantine_change", None).await;
    let command = ["upstream", "quarantine", "up", "look"];
    proxy.daemon.home.cli(command).await.succeeded();
    let event = next(&mut events).await;
    assert_eq!(event.name, "activity.quarantine_change");
    assert_eq!(event.data["tool_name"], "look");
    assert_eq!(event.data["source"], "cli");
}
