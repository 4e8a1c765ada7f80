use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::chain::Hash;
use crate::encoding::tests::{any_ended, any_started};
use crate::id::ActivityId;
use crate::payload::{Payload, SealedPayload};
use crate::record::{Metadata, Started};
use crate::words::{RecordType, Source};

fn sealed(text: Option<&String>) -> SealedPayload {
    SealedPayload {
        digest: Hash::of(text.map_or("", String::as_str).as_bytes()),
        truncated: false,
        kept: text.is_some(),
        text: text.map(|text| Payload::new(text.as_str())),
    }
}

fn start(order: u64) -> Entry {
    let started = Started {
        id: ActivityId::from_halves(order, 7),
        record_type: RecordType::ToolCall,
        source: Source::Mcp,
        server_name: Some("files".into()),
        tool_name: Some("read_file".into()),
        session_id: None,
        client_name: None,
        request_id: Some("1".into()),
        request_bytes: order,
        metadata: Metadata::default(),
        arguments: None,
    };
    Entry::Start(Arc::new(started))
}

fn any_payload() -> impl Strategy<Value = Option<SealedPayload>> {
    let text = prop::option::of(any::<String>());
    prop::option::of(text.prop_map(|text| sealed(text.as_ref())))
}

fn any_entry() -> impl Strategy<Value = Entry> {
    let payloads = (any_payload(), any_payload());
    (any_started(), any_ended(), payloads, 0..3).prop_map(
        |(mut started, mut ended, (arguments, response), kind)| {
            started.arguments = arguments;
            ended.response = response;
            match kind {
                0 => Entry::Start(Arc::new(started)),
                1 => Entry::End(started.id, ended, None),
                _ => Entry::Whole(Arc::new(started), ended),
            }
        },
    )
}

/// Entries have no equality of their own; their text says everything but the payloads'.
fn shown(entry: &Entry) -> String {
    let text = |payload: &Option<SealedPayload>| {
        let text = payload.as_ref()?.text.as_ref()?;
        Some(text.as_str().to_owned())
    };
    let texts = match entry {
        Entry::Start(started) => (text(&started.arguments), None),
        Entry::End(_, ended, _) => (None, text(&ended.response)),
        Entry::Whole(started, ended) => (text(&started.arguments), text(&ended.response)),
    };
    format!("{entry:?} {texts:?}")
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(entries in prop::collection::vec(any_entry(), 0..8)) {
        let mut bytes = Vec::new();
        frame::write_segment(&mut bytes, 5);
        for entry in &entries {
            frame::write_entry(&mut bytes, frame::salt(5), entry);
        }
        let (number, read) = read_segment(&bytes);
        prop_assert_eq!(number, 5);
        let shown_all = |entries: &[Entry]| entries.iter().map(shown).collect::<Vec<_>>();
        prop_assert_eq!(shown_all(&read), shown_all(&entries));
    }

    #[test]
    fn a_torn_segment_is_read_up_to_the_tear(
        entries in prop::collection::vec(any_entry(), 1..5),
        cut in any::<prop::sample::Index>(),
        garbage in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let mut bytes = Vec::new();
        let mut ends = Vec::new();
        for entry in &entries {
            frame::write_entry(&mut bytes, 0, entry);
            ends.push(bytes.len());
        }
        let cut = cut.index(bytes.len());
        let whole = ends.iter().filter(|end| **end <= cut).count();
        bytes.truncate(cut);
        bytes.extend(garbage);
        let (_, read) = read_segment(&bytes);
        prop_assert!(read.len() >= whole);
        for (read, written) in read.iter().zip(&entries).take(whole) {
            prop_assert_eq!(shown(read), shown(written));
        }
    }
}

#[test]
fn a_changed_byte_ends_what_is_read() {
    let mut bytes = Vec::new();
    for order in 0..3 {
        frame::write_entry(&mut bytes, 0, &start(order));
    }
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    assert_eq!(read_segment(&bytes).1.len(), 1);
}

fn journal() -> (tempfile::TempDir, Files, Journal) {
    let folder = tempfile::tempdir().unwrap();
    let files = Files::prepare(folder.path()).unwrap();
    let journal = Journal::open(&files).unwrap();
    (folder, files, journal)
}

fn note(journal: &mut Journal, order: u64) {
    journal.note(&start(order));
}

fn orders(files: &Files) -> Vec<u64> {
    let entries = left_behind(files).unwrap();
    entries.iter().map(|entry| entry.id().order()).collect()
}

#[test]
fn what_was_noted_is_written_with_what_has_to_be() {
    let (_folder, files, mut journal) = journal();
    note(&mut journal, 1);
    assert!(orders(&files).is_empty());
    note(&mut journal, 2);
    journal.write().unwrap();
    assert_eq!(orders(&files), [1, 2]);
}

#[test]
fn segments_are_read_in_the_order_in_which_they_were_begun() {
    let (_folder, files, mut journal) = journal();
    note(&mut journal, 0);
    journal.write().unwrap();
    assert_eq!(orders(&files), [0]);
    // Each time the names of the files stand in the other order.
    for order in 1..5 {
        journal.turn();
        note(&mut journal, order);
        journal.write().unwrap();
        assert_eq!(orders(&files), [order - 1, order]);
        journal.clear_stored();
        assert_eq!(orders(&files), [order]);
    }
}

#[test]
fn a_segment_that_is_still_needed_is_not_given_up() {
    let (_folder, files, mut journal) = journal();
    for order in 0..4 {
        note(&mut journal, order);
        journal.write().unwrap();
        // Storing failed each time.
        journal.turn();
    }
    assert_eq!(orders(&files), [0, 1, 2, 3]);
    journal.clear_stored();
    assert_eq!(orders(&files), [1, 2, 3]);
    journal.turn();
    journal.clear_stored();
    assert!(orders(&files).is_empty());
}

#[test]
fn what_an_earlier_segment_left_in_its_place_is_not_read() {
    let (_folder, files, mut journal) = journal();
    for order in 0..4 {
        note(&mut journal, order);
    }
    journal.write().unwrap();
    journal.turn();
    journal.clear_stored();
    assert!(orders(&files).is_empty());
    // The same file again, after a turn of the other one; its frames are all of one size.
    note(&mut journal, 8);
    journal.write().unwrap();
    journal.turn();
    note(&mut journal, 9);
    journal.write().unwrap();
    assert_eq!(orders(&files), [8, 9]);
    journal.clear_stored();
    assert_eq!(orders(&files), [9]);
    journal.give_back();
    assert!(files.journal_is_empty());
}

#[test]
fn what_cannot_be_written_does_not_pile_up_and_the_rest_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let files = Files::prepare(&folder.path().join("data")).unwrap();
    let mut journal = Journal::open(&files).unwrap();
    let [path, _] = files.journal();
    // A file that is open for reading only fails as a full disk does.
    let writable = std::mem::replace(&mut journal.active.file, File::open(path).unwrap());
    let mut largest = 0;
    for number in 0..100 {
        journal.note(&start(2 * number + 1));
        journal.turn();
        // This one comes while the other is being stored.
        journal.note(&start(2 * number + 2));
        journal.write().unwrap_err();
        largest = largest.max(journal.buffer.len());
        journal.clear_stored();
    }
    assert!(largest < 1_000, "{largest}");
    journal.active.file = writable;
    journal.note(&start(201));
    journal.write().unwrap();
    let left: Vec<u64> = left_behind(&files)
        .unwrap()
        .iter()
        .map(|entry| entry.id().order())
        .collect();
    assert_eq!(left, [200, 201]);
}
