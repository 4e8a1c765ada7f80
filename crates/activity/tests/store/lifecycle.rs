//! A record starts once, ends once, and is read back as it was written.

use std::sync::Arc;
use std::time::Duration;

use activity::sqlite::SqliteStore;
use activity::{
    ActivityStore, Durability, End, Ended, Entry, ListRequest, Metadata, Outcome, Payloads,
    RecordType, Settings, Source, Start, Started, Status, StoreError,
};
use policy::OperationType;
use redact::Redactor;
use serde_json::json;

use crate::support::*;

#[tokio::test]
async fn a_record_has_exactly_the_documented_shape() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    let id = complete(&activity, read_call(), success()).await;
    let record = activity.get(id).await.unwrap().unwrap();
    let expected = json!({
        "id": id.to_string(),
        "type": "tool_call",
        "source": "mcp",
        "server_name": "files",
        "tool_name": "read_file",
        "arguments": {"path": "/tmp/notes.txt"},
        "response": {"content": [{"type": "text", "text": "hello"}]},
        "response_truncated": false,
        "status": "success",
        "error_code": null,
        "error_message": null,
        "duration_ms": 12,
        "timestamp": format!("{:.3}", id.timestamp()),
        "session_id": "session-1",
        "client_name": "claude-code",
        "request_id": "request-1",
        "request_bytes": 120,
        "response_bytes": 44,
        "metadata": {
            "intent": {
                "operation_type": "read",
                "data_sensitivity": "internal",
                "reason": "because it was asked for",
            },
            "tool_variant": "call_tool_read",
            "effective_tier": "read_only",
            "provenance": "declared",
            "warnings": ["the tool is new"],
            "facts": {
                "declared_tier": "read_only",
                "audited_tier": "write",
                "pinned": null,
                "hold": null,
                "lane_chosen": true,
                "intent_given": true,
                "operation_type": "understood",
                "data_sensitivity": "understood",
            },
        },
    });
    let text = serde_json::to_string(&record).unwrap();
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&text).unwrap(),
        expected
    );
    let parsed: activity::Record = serde_json::from_str(&text).unwrap();
    assert_eq!(parsed, record);
}

#[tokio::test]
async fn a_durable_start_is_there_before_the_call_goes_out() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    let start = call("files", "delete_file", OperationType::Destructive);
    let open = activity.begin(start, Durability::Durable).await.unwrap();
    let record = activity.get(open.id()).await.unwrap().unwrap();
    assert_eq!(record.status, Status::Pending);
    assert_eq!((record.duration_ms, record.response_bytes), (None, 0));

    let id = open.id();
    open.finish(failure(), Durability::Written).await.unwrap();
    let record = activity.get(id).await.unwrap().unwrap();
    assert_eq!(record.status, Status::Error);
    assert_eq!(record.error_code.as_deref(), Some("UPSTREAM_ERROR"));
    assert!(activity.verify(None).await.unwrap().holds());
}

#[tokio::test]
async fn a_call_whose_client_goes_away_is_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    for durability in [
        Durability::Batched,
        Durability::Written,
        Durability::Durable,
    ] {
        let open = activity.begin(read_call(), durability).await.unwrap();
        let id = open.id();
        drop(open);
        eventually("the record is cancelled", async || {
            let record = activity.get(id).await.unwrap();
            record.is_some_and(|record| record.status == Status::Cancelled)
        })
        .await;
    }
    assert!(activity.verify(None).await.unwrap().holds());
}

#[tokio::test]
async fn a_start_that_was_given_up_while_it_waited_does_not_stay_open() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    for _ in 0..50 {
        let begin = activity.begin(read_call(), Durability::Durable);
        // Polled once, so that it is queued, and then given up.
        let given_up = tokio::time::timeout(Duration::ZERO, begin).await;
        drop(given_up);
    }
    complete(&activity, read_call(), success()).await;
    eventually("no record is pending", async || {
        list(&activity, &[("status", "pending")]).await.total == 0
    })
    .await;
}

#[tokio::test]
async fn a_refusal_is_one_record_with_its_intent() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    let start = Start {
        record_type: RecordType::PolicyDecision,
        ..call("files", "delete_file", OperationType::Read)
    };
    let id = activity
        .record(start, blocked(), Durability::Written)
        .await
        .unwrap();
    let record = activity.get(id).await.unwrap().unwrap();
    assert_eq!(record.status, Status::Blocked);
    assert_eq!(record.error_code.as_deref(), Some("SERVER_MISMATCH"));
    let intent = record.metadata.intent.unwrap();
    assert_eq!(intent.operation_type, Some(OperationType::Read));
    let verification = activity.verify(None).await.unwrap();
    assert_eq!((verification.records, verification.entries), (1, 1));
}

#[tokio::test]
async fn an_unknown_id_is_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    let id = "01JGZ3Q4M5N6P7R8S9T0V1W2X3".parse().unwrap();
    assert_eq!(activity.get(id).await.unwrap(), None);
    // The upper half alone is not the identifier.
    let real = complete(&activity, read_call(), success())
        .await
        .to_string();
    let (rest, last) = real.split_at(25);
    let other = format!("{rest}{}", if last == "0" { "1" } else { "0" });
    assert_eq!(activity.get(other.parse().unwrap()).await.unwrap(), None);
}

#[tokio::test]
async fn secrets_never_reach_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    let mut start = read_call();
    start.arguments = Some(r#"{"token":"hunter2-secret","also":"\u0068unter2-secret"}"#);
    if let Some(intent) = &mut start.metadata.intent {
        intent.reason = Some("with hunter2-secret".to_owned());
    }
    let end = End {
        outcome: Outcome::Error {
            code: "UPSTREAM_ERROR",
            message: "bad key hunter2-secret",
        },
        response: Some(r#"{"echo":"ghp_abcdefghijklmnopqrstuvwxyz0123456789"}"#),
        ..success()
    };
    let id = complete(&activity, start, end).await;
    let record = activity.get(id).await.unwrap().unwrap();
    assert_eq!(
        record.arguments.unwrap().as_str(),
        r#"{"token":"[REDACTED]","also":"[REDACTED]"}"#
    );
    assert_eq!(record.error_message.as_deref(), Some("bad key [REDACTED]"));
    activity.close().await.unwrap();
    for file in std::fs::read_dir(folder.path().join("data")).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("hunter2") && !text.contains("ghp_"));
    }
}

#[tokio::test]
async fn long_responses_are_cut_and_marked() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    let response = format!("\"{}\"", "ä".repeat(100_000));
    let end = End {
        response: Some(&response),
        response_bytes: 200_002,
        ..success()
    };
    let id = complete(&activity, read_call(), end).await;
    let record = activity.get(id).await.unwrap().unwrap();
    assert!(record.response_truncated);
    assert_eq!(record.response_bytes, 200_002);
    let kept = record.response.unwrap();
    assert!(kept.as_str().len() <= 65_536 && kept.as_str().len() > 65_530);
    assert!(response.starts_with(kept.as_str()));
    assert!(activity.verify(None).await.unwrap().holds());
}

#[tokio::test]
async fn without_payloads_only_sizes_and_fingerprints_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    activity.reconfigure(Settings {
        payloads: Payloads::None,
        ..settings()
    });
    let id = complete(&activity, read_call(), success()).await;
    let record = activity.get(id).await.unwrap().unwrap();
    assert_eq!((record.arguments, record.response), (None, None));
    assert_eq!((record.request_bytes, record.response_bytes), (120, 44));
    assert!(record.arguments_not_kept && record.response_not_kept);
    let without = Start {
        arguments: None,
        ..read_call()
    };
    let id = complete(&activity, without, blocked()).await;
    let record = activity.get(id).await.unwrap().unwrap();
    assert!(!record.arguments_not_kept && !record.response_not_kept);
    assert!(activity.verify(None).await.unwrap().holds());
    assert_eq!(list(&activity, &[("q", "notes")]).await.total, 0);
}

#[tokio::test]
async fn without_payloads_changes_still_say_what_changed() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    activity.reconfigure(Settings {
        payloads: Payloads::None,
        ..settings()
    });
    for (record_type, kept) in [
        (RecordType::ToolCall, false),
        (RecordType::PolicyDecision, false),
        (RecordType::QuarantineChange, true),
        (RecordType::ServerChange, true),
        (RecordType::ConfigChange, true),
        (RecordType::System, true),
    ] {
        let start = Start {
            arguments: Some(r#"{"event":"started"}"#),
            ..Start::new(record_type, Source::Api)
        };
        let end = End::new(Outcome::Success, Duration::ZERO);
        let id = activity.record(start, end, Durability::Written);
        let record = activity.get(id.await.unwrap()).await.unwrap().unwrap();
        assert_eq!(record.arguments.is_some(), kept, "{record_type}");
        assert_eq!(record.arguments_not_kept, !kept, "{record_type}");
    }
}

#[tokio::test]
async fn changes_are_recorded_too() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    let start = Start {
        server_name: Some("files"),
        arguments: Some(r#"{"from":"connecting","to":"ready"}"#),
        ..Start::new(RecordType::ServerChange, Source::Api)
    };
    let end = End::new(Outcome::Success, Duration::ZERO);
    activity
        .record(start, end, Durability::Batched)
        .await
        .unwrap();
    eventually("the change is listed", async || {
        list(&activity, &[("type", "server_change")]).await.total == 1
    })
    .await;
}

#[tokio::test]
async fn nothing_is_recorded_after_closing() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    complete(&activity, read_call(), success()).await;
    activity.close().await.unwrap();
    let error = activity
        .begin(read_call(), Durability::Written)
        .await
        .unwrap_err();
    assert!(matches!(error, StoreError::Closed), "{error}");
    // A closed store can be opened again, with what it held.
    let again = open(folder.path());
    assert_eq!(list(&again, &[]).await.total, 1);
}

#[test]
fn a_redactor_can_be_made_of_many_secrets() {
    let secrets: Vec<String> = (0..2_000)
        .map(|number| format!("secret-number-{number}"))
        .collect();
    let redactor = Redactor::new(&secrets).unwrap();
    assert_eq!(redactor.text("x secret-number-1999 y"), "x [REDACTED] y");
}

/// A record of a moment with an identifier of its own.
fn moment(number: u32) -> Entry {
    let started = Started {
        id: format!("{number:013}{:013}", 0).parse().unwrap(),
        record_type: RecordType::System,
        source: Source::Cli,
        server_name: None,
        tool_name: None,
        session_id: None,
        client_name: None,
        request_id: None,
        request_bytes: 0,
        metadata: Metadata::default(),
        arguments: None,
    };
    let ended = Ended {
        status: Status::Success,
        error_code: None,
        error_message: None,
        duration_ms: 0,
        response_bytes: 0,
        response: None,
    };
    Entry::Whole(Arc::new(started), ended)
}

/// As can happen after the clock was set back.
#[tokio::test]
async fn an_identifier_that_was_given_before_costs_only_its_own_record() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&options(folder.path())).unwrap().store;
    store.append(moment(20), Durability::Durable).await.unwrap();
    // Nobody waits for these, so they are stored together.
    for number in 1..=40 {
        let entry = moment(number);
        store.append(entry, Durability::Batched).await.unwrap();
    }
    let again = store.append(moment(20), Durability::Durable).await;
    assert!(matches!(again, Err(StoreError::Exists(_))), "{again:?}");
    store.append(moment(41), Durability::Durable).await.unwrap();

    let page = store.page(ListRequest::from_pairs([]).unwrap()).await;
    assert_eq!(page.unwrap().total, 41);
    let verification = store.verify(None).await.unwrap();
    assert_eq!((verification.records, verification.entries), (41, 41));
    assert!(verification.holds());
}
