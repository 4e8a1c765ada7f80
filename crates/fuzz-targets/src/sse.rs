//! Server-sent events: the same events however the bytes arrive, and none over the limit.

use mcp::sse::{Event, EventParser, EventTooLarge, encode_event};

const LIMIT: usize = 512;

pub(crate) fn check(input: &[u8]) {
    // The first byte says how the rest is cut into pieces.
    let Some((cut, bytes)) = input.split_first() else {
        return;
    };
    let whole = parse([bytes]);
    assert_eq!(whole, parse(bytes.chunks(1)), "byte by byte");
    assert_eq!(
        whole,
        parse(bytes.chunks(usize::from(*cut).max(1))),
        "in pieces"
    );
    for event in whole.iter().flatten() {
        assert!(event.data.len() <= LIMIT, "an event over the limit");
    }
    round_trip(bytes);
}

/// What is written is read again; line ends of any kind arrive as line feeds.
fn round_trip(data: &[u8]) {
    let mut expected = Vec::with_capacity(data.len());
    let mut rest = data.iter().peekable();
    while let Some(byte) = rest.next() {
        if *byte == b'\r' {
            rest.next_if_eq(&&b'\n');
            expected.push(b'\n');
        } else {
            expected.push(*byte);
        }
    }
    // Each line gets `data: ` before it.
    let mut parser = EventParser::new(8 * data.len() + 64);
    parser.push(&encode_event(Some("7-1"), data));
    let event = parser.next_event().expect("an event").expect("a small one");
    assert_eq!(event.id.as_deref(), Some("7-1"));
    assert_eq!(event.data, expected);
    assert!(parser.next_event().is_none());
}

fn parse<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Result<Event, EventTooLarge>> {
    let mut parser = EventParser::new(LIMIT);
    let mut events = Vec::new();
    for piece in pieces {
        parser.push(piece);
        events.extend(std::iter::from_fn(|| parser.next_event()));
    }
    events
}
