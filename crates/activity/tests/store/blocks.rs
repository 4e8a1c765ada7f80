//! A log of several blocks of the index: every filter, alone or with others, finds exactly what
//! looking at every record finds, newest first, whatever was removed, reopened or is still open.

use activity::{
    Activity, Cursor, Durability, End, OpenRecord, Outcome, Record, RecordType, RetentionPolicy,
    Source, Start,
};
use policy::{DataSensitivity, OperationType};

use crate::support::*;

/// More than two blocks and a part of a third.
const RECORDS: usize = 2_500;

/// Filters that match many records, some, one and none, in several blocks or in none.
const FILTERS: &[&[(&str, &str)]] = &[
    &[],
    &[("type", "tool_call")],
    &[("type", "system")],
    &[("status", "success")],
    &[("status", "error")],
    &[("status", "pending")],
    &[("source", "cli")],
    &[("server", "server-3")],
    &[("server", "nobody")],
    &[("tool", "tool_7")],
    &[("client", "cursor")],
    &[("session_id", "session-12")],
    &[("request_id", "request-77")],
    &[("request_id", "request-2400")],
    &[("intent_type", "destructive")],
    &[("sensitivity", "private")],
    &[("q", "common")],
    &[("q", "only-1500")],
    &[("q", "only-15*")],
    &[("q", "stra*")],
    &[("q", "STRASSE straße")],
    &[("q", "went wrong")],
    &[("q", "absent")],
    &[("server", "server-3"), ("status", "error")],
    &[("server", "server-3"), ("q", "common wrong")],
    &[("type", "tool_call"), ("client", "cursor"), ("q", "only*")],
    &[("status", "pending"), ("server", "server-0")],
    &[("status", "success"), ("request_id", "request-0")],
];

fn operation(number: usize) -> OperationType {
    OperationType::ALL[number % 3]
}

async fn begin(activity: &Activity, number: usize) -> OpenRecord {
    let (server, tool) = (
        format!("server-{}", number % 9),
        format!("tool_{}", number % 31),
    );
    let arguments = match number % 50 {
        3 => r#"{"a":"Große Straße"}"#.to_owned(),
        _ => format!(r#"{{"a":"Common, only-{number}"}}"#),
    };
    let (session, request) = (
        format!("session-{}", number / 100),
        format!("request-{number}"),
    );
    let mut start = Start {
        arguments: Some(&arguments),
        session_id: Some(&session),
        request_id: Some(&request),
        client_name: number.is_multiple_of(4).then_some("cursor"),
        source: if number.is_multiple_of(11) {
            Source::Cli
        } else {
            Source::Mcp
        },
        ..call(&server, &tool, operation(number))
    };
    if number.is_multiple_of(13)
        && let Some(intent) = &mut start.metadata.intent
    {
        intent.data_sensitivity = Some(DataSensitivity::Private);
    }
    if number.is_multiple_of(101) {
        start = Start::new(RecordType::System, Source::Api);
    }
    activity.begin(start, Durability::Batched).await.unwrap()
}

async fn finish(open: OpenRecord, number: usize) {
    let end = if number.is_multiple_of(7) {
        let (code, message) = ("UPSTREAM_ERROR", "it went wrong");
        End::new(Outcome::Error { code, message }, std::time::Duration::ZERO)
    } else {
        success()
    };
    open.finish(end, Durability::Batched).await.unwrap();
}

/// Fills the log. A few records end long after many others have, and some do not end at all.
async fn filled(activity: &Activity) -> Vec<OpenRecord> {
    let mut late = Vec::new();
    let mut open = Vec::new();
    for number in 0..RECORDS {
        let record = begin(activity, number).await;
        match number {
            // Of the first block, and of the last.
            9 | 18 | 2_403 => open.push(record),
            _ if number.is_multiple_of(97) => late.push((record, number)),
            _ => finish(record, number).await,
        }
        if late.len() > 11 {
            let (record, number) = late.remove(0);
            finish(record, number).await;
        }
    }
    for (record, number) in late {
        finish(record, number).await;
    }
    open
}

/// Every record with its bodies, newest first.
async fn everything(activity: &Activity) -> Vec<Record> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let mut pairs = vec![("limit", "100")];
        if !cursor.is_empty() {
            pairs.push(("cursor", &cursor));
        }
        let page = list(activity, &pairs).await;
        all.extend(page.activities);
        match page.next_cursor {
            Some(next) => cursor = next.to_string(),
            None => return all,
        }
    }
}

/// Compares every filter's answer with what looking at every record says.
async fn check(activity: &Activity) {
    let all = everything(activity).await;
    assert!(all.is_sorted_by(|one, next| one.id > next.id));
    for pairs in FILTERS {
        let filter = filter(pairs);
        let expected: Vec<_> = all
            .iter()
            .filter(|record| filter.matches(record))
            .map(|record| record.id)
            .collect();
        let page = list(activity, pairs).await;
        assert_eq!(page.total, expected.len() as u64, "{pairs:?}");
        assert!(!page.total_is_lower_bound, "{pairs:?}");
        let (mut walked, mut after) = (Vec::new(), None);
        loop {
            let records = activity.scan(filter.clone(), after, 300).await.unwrap();
            let Some(last) = records.last() else {
                break;
            };
            after = Some(Cursor::after(last.id));
            walked.extend(records.iter().map(|record| record.id));
        }
        assert_eq!(walked, expected, "{pairs:?}");
        let middle = expected.len() / 2;
        let offset = middle.to_string();
        let pairs: Vec<_> = pairs
            .iter()
            .copied()
            .chain([("offset", &*offset)])
            .collect();
        let page = list(activity, &pairs).await;
        let listed: Vec<_> = page.activities.iter().map(|record| record.id).collect();
        let wanted: Vec<_> = expected.iter().copied().skip(middle).take(50).collect();
        assert_eq!(listed, wanted, "{pairs:?}");
    }
    check_times(activity, &all).await;
}

/// Ranges of time that begin or end inside of blocks, with and without another filter.
async fn check_times(activity: &Activity, all: &[Record]) {
    let time = |place: usize| all[place.min(all.len() - 1)].timestamp.to_string();
    let (late, early) = (time(all.len() / 5), time(all.len() / 2));
    for more in [&[][..], &[("server", "server-3")], &[("q", "common")]] {
        let mut pairs = vec![("start_time", early.as_str()), ("end_time", late.as_str())];
        pairs.extend(more);
        let filter = filter(&pairs);
        let expected = all.iter().filter(|record| filter.matches(record)).count();
        let page = list(activity, &pairs).await;
        assert_eq!(page.total, expected as u64, "{pairs:?}");
        assert_eq!(page.activities.len(), expected.min(50), "{pairs:?}");
    }
}

#[tokio::test]
async fn every_filter_agrees_with_looking_at_every_record() {
    let folder = tempfile::tempdir().unwrap();
    let activity = open(folder.path());
    let running = filled(&activity).await;
    check(&activity).await;

    // Retention takes the first block and a part of the second, and what is open stays.
    let policy = RetentionPolicy {
        max_count: Some(1_200),
        ..RetentionPolicy::default()
    };
    activity.prune(policy).await.unwrap();
    check(&activity).await;

    // What was running ends now, and the next process makes up for what was not indexed yet.
    for (record, number) in running.into_iter().zip([9, 18, 2_403]) {
        finish(record, number).await;
    }
    activity.close().await.unwrap();
    let activity = open(folder.path());
    for number in RECORDS..RECORDS + 400 {
        let record = begin(&activity, number).await;
        finish(record, number).await;
    }
    check(&activity).await;
    assert!(activity.verify(None).await.unwrap().holds());

    let policy = RetentionPolicy {
        max_count: Some(0),
        ..RetentionPolicy::default()
    };
    activity.prune(policy).await.unwrap();
    assert_eq!(list(&activity, &[]).await.total, 0);
    assert_eq!(list(&activity, &[("q", "common")]).await.total, 0);
}
