use std::sync::Arc;

use jiff::ToSpan;
use proptest::prelude::*;

use super::*;
use crate::id::ActivityId;
use crate::record::Metadata;

const DAY: Duration = Duration::from_hours(24);

fn now() -> Timestamp {
    "2026-06-01T00:00:00Z".parse().unwrap()
}

fn aged(days: i64, bytes: u64) -> Candidate {
    Candidate {
        timestamp: now().checked_sub((days * 24).hours()).unwrap(),
        bytes,
        protected: false,
    }
}

fn protected(days: i64, bytes: u64) -> Candidate {
    Candidate {
        protected: true,
        ..aged(days, bytes)
    }
}

fn share<'a>(log: impl IntoIterator<Item = &'a Candidate>) -> Share {
    let mut share = Share::default();
    log.into_iter()
        .for_each(|candidate| share.add(candidate.bytes));
    share
}

fn holdings(log: &[Candidate]) -> Holdings {
    Holdings {
        all: share(log),
        protected: share(log.iter().filter(|candidate| candidate.protected)),
        oldest: log.iter().map(|candidate| candidate.timestamp).min(),
    }
}

/// Prunes as a store does, so many records at a time, until nothing is left to do.
fn prune(policy: &RetentionPolicy, log: &[Candidate], slice: usize) -> Vec<Candidate> {
    let mut log = log.to_vec();
    // Each turn of the chain removes something, so this is more than enough.
    for _ in 0..(log.len() + 1) * (log.len() + 1) {
        let end = slice.min(log.len());
        let fates = policy.fates(holdings(&log), &log[..end], now());
        if fates.is_empty() {
            return log;
        }
        let begin: Vec<_> = log.drain(..fates.len()).zip(fates).collect();
        let carried = begin.into_iter().filter(|(_, fate)| *fate == Fate::Carry);
        log.extend(carried.map(|(candidate, _)| candidate));
    }
    panic!("it goes round in circles: {policy:?} {log:?}");
}

fn age_of(days: u32) -> RetentionPolicy {
    RetentionPolicy {
        max_age: Some(DAY * days),
        ..RetentionPolicy::default()
    }
}

fn count(most: u64) -> RetentionPolicy {
    RetentionPolicy {
        max_count: Some(most),
        ..RetentionPolicy::default()
    }
}

fn bytes(most: u64) -> RetentionPolicy {
    RetentionPolicy {
        max_bytes: Some(most),
        ..RetentionPolicy::default()
    }
}

type Row<'a> = (&'a str, RetentionPolicy, &'a [Candidate], &'a [Fate]);

fn expect(table: &[Row<'_>]) {
    for (name, policy, candidates, expected) in table {
        let fates = policy.fates(holdings(candidates), candidates, now());
        assert_eq!(fates, *expected, "{name}");
    }
}

#[test]
fn the_table() {
    use Fate::{Carry, Remove};
    let every = RetentionPolicy {
        max_age: Some(DAY * 30),
        max_count: Some(3),
        max_bytes: Some(250),
    };
    let log = [aged(40, 100), aged(31, 100), aged(30, 100), aged(1, 100)];
    let future = [aged(-400, 100), aged(40, 100)];
    expect(&[
        (
            "no limit keeps everything",
            RetentionPolicy::default(),
            &log,
            &[],
        ),
        ("an empty log", every, &[], &[]),
        (
            "age alone, the limit itself stays, and so does what is behind it",
            age_of(30),
            &log[..3],
            &[Remove, Remove, Carry],
        ),
        ("age within the tolerance", age_of(39), &log, &[Remove]),
        ("age that nothing reaches", age_of(41), &log, &[]),
        (
            "age zero removes all but now",
            age_of(0),
            &log,
            &[Remove; 4],
        ),
        ("count alone", count(1), &log, &[Remove; 3]),
        ("count zero", count(0), &log, &[Remove; 4]),
        ("count that holds", count(4), &log, &[]),
        ("bytes alone", bytes(150), &log, &[Remove; 3]),
        ("bytes exactly", bytes(400), &log, &[]),
        ("bytes zero", bytes(0), &log, &[Remove; 4]),
        (
            "a record from the future has no age",
            age_of(30),
            &future,
            &[Carry, Remove],
        ),
        ("but it counts", count(0), &future, &[Remove; 2]),
    ]);
}

#[test]
fn the_table_of_shares() {
    use Fate::{Carry, Remove};
    let mixed = [
        protected(9, 100),
        aged(8, 100),
        protected(7, 100),
        aged(6, 100),
        aged(5, 100),
    ];
    let writes = [protected(9, 100), protected(8, 100), protected(7, 100)];
    let large = [protected(9, 900), aged(8, 50), aged(7, 50)];
    expect(&[
        (
            "reads go before the writes of the reserved share",
            count(4),
            &mixed,
            &[Carry, Remove],
        ),
        ("all reads, if need be", count(3), &mixed, &[Remove, Remove]),
        (
            "writes above their share go like everything else",
            count(2),
            &writes,
            &[Remove],
        ),
        (
            "so they do when there is nothing else",
            count(0),
            &writes,
            &[Remove; 3],
        ),
        (
            "a share of the bytes, too",
            bytes(420),
            &mixed,
            &[Carry, Remove],
        ),
        (
            "one limit does not lift the shelter of the other",
            RetentionPolicy {
                max_count: Some(2),
                max_bytes: Some(1_000),
                max_age: None,
            },
            &large,
            &[Carry, Remove],
        ),
        (
            "age removes protected records, too",
            age_of(8),
            &mixed,
            &[Remove],
        ),
    ]);
}

#[test]
fn a_log_is_outgrown_a_tenth_above_its_limit() {
    let policy = RetentionPolicy {
        max_age: Some(DAY),
        max_count: Some(100),
        max_bytes: Some(1_000),
    };
    let held = |records, bytes| Share { records, bytes };
    assert!(!policy.is_outgrown_by(held(110, 1_100)));
    assert!(policy.is_outgrown_by(held(111, 0)));
    assert!(policy.is_outgrown_by(held(0, 1_101)));
    assert!(!RetentionPolicy::default().is_outgrown_by(held(u64::MAX, u64::MAX)));
}

#[test]
fn protected_is_what_may_have_changed_something_and_what_the_operator_did() {
    let record = |record_type, source, variant, status, code: Option<&str>| {
        let started = Started {
            id: ActivityId::from_halves(1, 1),
            record_type,
            source,
            server_name: None,
            tool_name: None,
            session_id: None,
            client_name: None,
            request_id: None,
            request_bytes: 0,
            metadata: Metadata {
                tool_variant: variant,
                ..Metadata::default()
            },
            arguments: None,
        };
        let ended = Ended {
            status,
            error_code: code.map(Arc::from),
            ..Ended::interrupted()
        };
        is_protected(&started, &ended)
    };
    let (read, write, wipe) = (
        Some(ToolVariant::Read),
        Some(ToolVariant::Write),
        Some(ToolVariant::Destructive),
    );
    let call = |variant, status| record(RecordType::ToolCall, Source::Mcp, variant, status, None);
    for status in [
        Status::Success,
        Status::Error,
        Status::Cancelled,
        Status::Interrupted,
    ] {
        assert!(call(write, status) && call(wipe, status), "{status}");
        assert!(!call(read, status) && !call(None, status), "{status}");
    }
    assert!(!call(wipe, Status::Blocked));
    let unsent = Some("SERVER_UNAVAILABLE");
    let sent = Some("UPSTREAM_ERROR");
    let failed = |code| record(RecordType::ToolCall, Source::Mcp, wipe, Status::Error, code);
    assert!(!failed(unsent) && failed(sent));
    let change = |kind, source, status| record(kind, source, None, status, None);
    for source in [Source::Api, Source::Cli] {
        for kind in [
            RecordType::QuarantineChange,
            RecordType::ConfigChange,
            RecordType::System,
        ] {
            assert!(change(kind, source, Status::Success), "{kind}");
            assert!(!change(kind, source, Status::Blocked), "{kind}");
        }
    }
    // What upstreams and agents decide about.
    assert!(!change(
        RecordType::QuarantineChange,
        Source::Mcp,
        Status::Success
    ));
    assert!(!change(
        RecordType::ServerChange,
        Source::Api,
        Status::Success
    ));
    assert!(!change(
        RecordType::PolicyDecision,
        Source::Mcp,
        Status::Error
    ));
}

prop_compose! {
    fn any_policy()(
        age in proptest::option::of(0_u32..60),
        count in proptest::option::of(0_u64..40),
        bytes in proptest::option::of(0_u64..4_000),
    ) -> RetentionPolicy {
        let max_age = age.map(|days| DAY * days);
        RetentionPolicy { max_age, max_count: count, max_bytes: bytes }
    }
}

prop_compose! {
    fn any_log()(
        records in proptest::collection::vec((0_i64..90, 1_u64..300, any::<bool>()), 0..40),
    ) -> Vec<Candidate> {
        let candidate = |(days, bytes, protected)| Candidate { protected, ..aged(days, bytes) };
        records.into_iter().map(candidate).collect()
    }
}

fn is_too_old(policy: &RetentionPolicy, candidate: &Candidate, tolerance: Duration) -> bool {
    let old = age(candidate.timestamp, now());
    policy.max_age.is_some_and(|most| old > most + tolerance)
}

proptest! {
    #[test]
    fn what_remains_is_within_the_limits(
        policy in any_policy(),
        log in any_log(),
        slice in 1_usize..50,
    ) {
        let rest = prune(&policy, &log, slice);
        prop_assert!(!policy.is_exceeded_by(share(&rest)));
        for candidate in &rest {
            prop_assert!(!is_too_old(&policy, candidate, AGE_TOLERANCE), "{:?}", candidate);
        }
    }

    /// However many other records there are: protected ones that fit into the reserved share stay
    /// until they are too old.
    #[test]
    fn nothing_pushes_protected_records_out_of_their_share(
        policy in any_policy(),
        log in any_log(),
        slice in 1_usize..50,
    ) {
        let is_kept = |candidate: &&Candidate| {
            candidate.protected && !is_too_old(&policy, candidate, Duration::ZERO)
        };
        let before: Vec<_> = log.iter().filter(|candidate| candidate.protected).copied().collect();
        let rest = prune(&policy, &log, slice);
        let after = rest.iter().filter(is_kept).count();
        if policy.reserve().is_exceeded_by(share(&before)) {
            // Some may go, but never more than brings them down to the share.
            let largest = before.iter().map(|candidate| candidate.bytes).max().unwrap_or(0);
            let left = share(rest.iter().filter(|candidate| candidate.protected));
            let aged = before.iter().any(|candidate| is_too_old(&policy, candidate, Duration::ZERO));
            let count = policy.reserve().max_count.is_none_or(|most| left.records >= most.min(before.len() as u64));
            let bytes = policy.reserve().max_bytes.is_none_or(|most| left.bytes + largest > most.min(share(&before).bytes));
            prop_assert!(aged || count || bytes, "{:?}", left);
        } else {
            prop_assert_eq!(after, before.iter().filter(is_kept).count());
        }
    }

    /// Where everything is of one kind and in order of time, the oldest go and nothing too much.
    #[test]
    fn nothing_too_much_goes(policy in any_policy(), mut log in any_log(), slice in 1_usize..50) {
        for candidate in &mut log {
            candidate.protected = false;
        }
        log.sort_by_key(|candidate| candidate.timestamp);
        let rest = prune(&policy, &log, slice);
        let removed = log.len() - rest.len();
        let mut sorted = rest.clone();
        sorted.sort_by_key(|candidate| candidate.timestamp);
        prop_assert_eq!(share(&sorted), share(&log[removed..]));
        if let Some(last) = removed.checked_sub(1) {
            let before = &log[last..];
            let within = !policy.is_exceeded_by(share(before))
                && !is_too_old(&policy, &log[last], Duration::ZERO);
            prop_assert!(!within);
        }
    }
}
