//! The journal of the activity log: bytes of a crash are read as far as they are whole.

use activity::Entry;
use activity::fuzzing::{read_segment, write_body, write_segment};

pub(crate) fn check(input: &[u8]) {
    // As a crash leaves it, which the checksum nearly always refuses.
    let (_, found) = read_segment(input);
    assert!(found.len() <= input.len());
    // And with the right checksum, which leads further.
    let (number, found) = read_segment(&write_body(7, input));
    let segment = write_segment(number, &found);
    let (number_again, again) = read_segment(&segment);
    assert_eq!(number_again, number);
    assert_eq!(
        shown(&again),
        shown(&found),
        "what is written is read again"
    );
    // A segment that is cut off anywhere has the entries before the cut.
    if !found.is_empty() {
        let cut = usize::from(input.first().copied().unwrap_or_default()) % segment.len();
        let (_, left) = read_segment(&segment[..cut]);
        assert!(left.is_empty(), "half an entry was read");
    }
}

/// Entries have no equality; their text says everything, payloads included.
fn shown(entries: &[Entry]) -> Vec<String> {
    let payloads = |entry: &Entry| match entry {
        Entry::Start(started) => format!("{:?}", started.arguments),
        Entry::End(_, ended, _) => format!("{:?}", ended.response),
        Entry::Whole(started, ended) => format!("{:?} {:?}", started.arguments, ended.response),
    };
    let shown = |entry| format!("{entry:?} {}", payloads(entry));
    entries.iter().map(shown).collect()
}
