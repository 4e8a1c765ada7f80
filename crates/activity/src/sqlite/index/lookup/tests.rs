use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::super::schema::MIGRATIONS;
use super::super::{BLOCK, Drafts, forget, write_next};
use super::*;
use crate::id::ActivityId;
use crate::record::{Ended, Metadata, Started};
use crate::words::{RecordType, Source, Status};

/// Two blocks and a half, in which records ended in another order than they started.
const RECORDS: u64 = 5 * BLOCK as u64 / 2;

fn started(order: u64) -> Started {
    Started {
        id: ActivityId::from_halves(order, 7),
        record_type: RecordType::ToolCall,
        source: Source::Mcp,
        server_name: order.is_multiple_of(3).then(|| "three".into()),
        tool_name: None,
        session_id: None,
        client_name: None,
        request_id: Some(order.to_string().into()),
        request_bytes: 0,
        metadata: Metadata::default(),
        arguments: None,
    }
}

fn ended() -> Ended {
    Ended {
        status: Status::Success,
        ..Ended::interrupted()
    }
}

/// The database, and the records that are in no block.
fn indexed() -> (Connection, BTreeSet<u64>) {
    let connection = Connection::open_in_memory().unwrap();
    for step in MIGRATIONS {
        connection.execute_batch(step).unwrap();
    }
    let mut drafts = Drafts::default();
    // Every fifth took as long as a hundred others.
    let mut orders: Vec<u64> = (1..=RECORDS).collect();
    orders.sort_by_key(|order| {
        if order.is_multiple_of(5) {
            order + 100
        } else {
            *order
        }
    });
    for (sequence, order) in (1..).zip(&orders) {
        drafts.add(sequence, &started(*order), &ended());
    }
    let full = drafts.full();
    for _ in 0..full {
        write_next(&connection, &drafts).unwrap();
        drafts.written();
    }
    (
        connection,
        orders.split_off(full * BLOCK).into_iter().collect(),
    )
}

fn filter(pairs: &[(&str, &str)]) -> Filter {
    Filter::from_pairs(pairs.iter().copied()).unwrap()
}

#[test]
fn any_part_of_the_list_is_found_and_counted() {
    let (connection, outside) = indexed();
    let parts = (
        prop::option::of(0..RECORDS + 10),
        0..RECORDS,
        0..200_usize,
        prop::option::of(0..RECORDS),
        any::<bool>(),
    );
    proptest!(ProptestConfig::with_cases(200), |((before, skip, take, count, all) in parts)| {
        let passes = |order: &u64| all || order.is_multiple_of(3);
        let filter = if all { filter(&[("source", "mcp")]) } else { filter(&[("server", "three")]) };
        let wanted = Wanted { before, skip, take, count };
        let others = outside.iter().copied().filter(passes);
        let found = look_up(&connection, &filter, others, wanted).unwrap();
        let expected = (1..=RECORDS).rev().filter(passes);
        let total = expected.clone().count() as u64;
        let expected: Vec<u64> = expected
            .filter(|order| before.is_none_or(|before| *order < before))
            .skip(usize::try_from(skip).unwrap())
            .take(take)
            .collect();
        prop_assert_eq!(found.orders, expected);
        match count {
            Some(most) if total > most => prop_assert!(found.counted > most),
            Some(_) => prop_assert_eq!(found.counted, total),
            None => {}
        }
    });
}

#[test]
fn what_was_forgotten_is_not_found_and_an_empty_block_is_gone() {
    let (connection, _) = indexed();
    let wanted = Wanted {
        before: None,
        skip: 0,
        take: 5,
        count: Some(RECORDS),
    };
    let seven = filter(&[("request_id", "7")]);
    let found = look_up(&connection, &seven, [], wanted).unwrap();
    assert_eq!((found.orders.as_slice(), found.counted), (&[7][..], 1));
    forget(&connection, &[7, 8]).unwrap();
    let found = look_up(&connection, &seven, [], wanted).unwrap();
    assert_eq!((found.orders.len(), found.counted), (0, 0));

    let everything: Vec<u64> = (1..=RECORDS).collect();
    forget(&connection, &everything).unwrap();
    for table in ["blocks", "terms"] {
        let sql = format!("SELECT count(*) FROM {table}");
        let rows: i64 = connection.query_row(&sql, [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 0, "{table}");
    }
}

#[test]
fn damage_is_told_and_no_reason_to_panic() {
    for (damage, pairs) in [
        ("UPDATE terms SET postings = x'ff'", ("server", "three")),
        ("UPDATE terms SET postings = x'05'", ("q", "word")),
        (
            "UPDATE terms SET postings = x'ffff' WHERE id % 65 = 64",
            ("server", "three"),
        ),
        ("UPDATE blocks SET gone = x'00'", ("server", "three")),
    ] {
        let (connection, _) = indexed();
        connection.execute(damage, []).unwrap();
        let wanted = Wanted {
            before: None,
            skip: 0,
            take: 5,
            count: None,
        };
        let error = look_up(&connection, &filter(&[pairs]), [], wanted);
        assert!(
            matches!(error, Err(StoreError::Corrupt(_))),
            "{damage}: {error:?}"
        );
    }
}
