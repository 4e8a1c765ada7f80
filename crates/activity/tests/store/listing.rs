//! Filters, pages, cursors and free text; the store and the in-memory filter must agree.

use activity::{Durability, End, Outcome, RecordType, Source, Start, Status};
use policy::OperationType;

use crate::support::*;

/// A little of everything.
async fn varied(activity: &activity::Activity) {
    complete(
        activity,
        call("files", "read_file", OperationType::Read),
        success(),
    )
    .await;
    complete(
        activity,
        call("github", "create_issue", OperationType::Write),
        failure(),
    )
    .await;
    let mut other = call("github", "delete_repo", OperationType::Destructive);
    other.session_id = Some("session-2");
    other.request_id = Some("request-2");
    other.client_name = Some("cursor");
    other.source = Source::Cli;
    if let Some(intent) = &mut other.metadata.intent {
        intent.data_sensitivity = Some(policy::DataSensitivity::Private);
        intent.reason = Some("Aufräumen der Reste".to_owned());
    }
    other.record_type = RecordType::PolicyDecision;
    activity
        .record(other, blocked(), Durability::Written)
        .await
        .unwrap();
    let system = Start::new(RecordType::System, Source::Api);
    let end = End::new(Outcome::Success, std::time::Duration::ZERO);
    activity
        .record(system, end, Durability::Written)
        .await
        .unwrap();
}

#[tokio::test]
async fn every_filter_finds_what_it_names() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    varied(&activity).await;
    let all = list(&activity, &[]).await;
    assert_eq!((all.total, all.limit, all.offset), (4, 50, 0));
    let early = all.activities.last().unwrap().timestamp.to_string();
    let table: &[(&str, &str, u64)] = &[
        ("type", "tool_call", 2),
        ("type", "config_change", 0),
        ("server", "github", 2),
        ("server", "nobody", 0),
        ("tool", "read_file", 1),
        ("status", "blocked", 1),
        ("status", "success", 2),
        ("intent_type", "read", 1),
        ("intent_type", "destructive", 1),
        ("sensitivity", "private", 1),
        ("sensitivity", "internal", 2),
        ("session_id", "session-2", 1),
        ("request_id", "request-1", 2),
        ("source", "cli", 1),
        ("client", "claude-code", 2),
        ("start_time", &early, 4),
        ("start_time", "2100-01-01T00:00:00Z", 0),
        ("end_time", "2100-01-01T00:00:00Z", 4),
        ("end_time", "2001-01-01T00:00:00Z", 0),
        ("q", "issue", 1),
        ("q", "DELETE repo", 1),
        ("q", "notes", 3),
        ("q", "note", 0),
        ("q", "note*", 3),
        ("q", "no*", 0),
        ("q", "disk went", 1),
        ("q", "AUFRÄUMEN", 1),
        ("q", "aufräu* reste", 1),
        ("q", "absent", 0),
    ];
    for (name, value, expected) in table {
        let page = list(&activity, &[(name, value)]).await;
        assert_eq!(page.total, *expected, "{name}={value}");
        assert_eq!(page.activities.len() as u64, *expected, "{name}={value}");
        let filter = filter(&[(name, value)]);
        let matching = all
            .activities
            .iter()
            .filter(|record| filter.matches(record))
            .count();
        assert_eq!(matching as u64, *expected, "in memory, {name}={value}");
    }
    let both = list(
        &activity,
        &[("server", "github"), ("status", "error"), ("q", "issue")],
    )
    .await;
    assert_eq!(both.total, 1);
    let neither = list(&activity, &[("server", "github"), ("status", "success")]).await;
    assert_eq!(neither.total, 0);
}

#[tokio::test]
async fn records_without_a_value_do_not_match_a_filter_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    varied(&activity).await;
    let system = list(&activity, &[("type", "system")]).await;
    assert_eq!(system.activities[0].server_name, None);
    assert!(!filter(&[("server", "files")]).matches(&system.activities[0]));
}

#[tokio::test]
async fn pages_follow_each_other_while_new_records_arrive() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    let mut written = Vec::new();
    for _ in 0..25 {
        written.push(complete(&activity, read_call(), success()).await);
    }
    written.reverse();
    let mut seen = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let mut pairs = vec![("limit", "10"), ("server", "files")];
        if let Some(cursor) = &cursor {
            pairs.push(("cursor", cursor));
        }
        let page = list(&activity, &pairs).await;
        seen.extend(page.activities.iter().map(|record| record.id));
        complete(&activity, read_call(), success()).await;
        match page.next_cursor {
            Some(next) => cursor = Some(next.to_string()),
            None => break,
        }
    }
    assert_eq!(seen, written);
    let second = list(&activity, &[("limit", "10"), ("offset", "13")]).await;
    assert_eq!(second.activities[0].id, written[10]);
    assert_eq!((second.offset, second.total), (13, 28));
    let beyond = list(&activity, &[("offset", "1000")]).await;
    assert!(beyond.activities.is_empty() && beyond.next_cursor.is_none());
}

#[tokio::test]
async fn a_list_has_bodies_unless_it_is_asked_not_to() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    complete(&activity, read_call(), success()).await;
    let mut request = activity::ListRequest::default();
    let with = activity.page(request.clone()).await.unwrap();
    assert!(with.activities[0].arguments.is_some() && with.activities[0].response.is_some());
    request.page.include_bodies = false;
    let without = activity.page(request).await.unwrap();
    assert!(without.activities[0].arguments.is_none() && without.activities[0].response.is_none());
    assert_eq!(without.activities[0].status, Status::Success);
}

#[tokio::test]
async fn the_json_of_a_page_is_what_scripts_rely_on() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    complete(&activity, read_call(), success()).await;
    let page = serde_json::to_value(list(&activity, &[]).await).unwrap();
    let keys: Vec<_> = page
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        keys,
        ["activities", "total", "limit", "offset", "next_cursor"]
    );
}
