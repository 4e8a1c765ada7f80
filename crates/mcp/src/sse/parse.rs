//! Reads server-sent events from bytes that arrive in pieces of any size, holding no more of one
//! event than a limit.

use std::collections::VecDeque;
use std::mem;
use std::time::Duration;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

const KEPT_CAPACITY: usize = 1024 * 1024;

/// One event. Unlike a browser, which drops events without data, every event that held any field
/// is reported: one that only carries an id or a retry time still says where to resume and when.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// Given in this very event; an empty one means that there is nothing to resume from.
    pub id: Option<String>,
    pub event: Option<String>,
    pub retry: Option<Duration>,
    /// The data lines, joined with line feeds. Empty for a priming event.
    pub data: Vec<u8>,
}

/// The event was longer than the limit and has been skipped; the next one can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of {bytes} bytes is over the limit")]
pub struct EventTooLarge {
    pub bytes: u64,
}

/// Turns bytes into events: [`push`](Self::push) what arrived, then take out what is complete.
#[derive(Debug)]
pub struct EventParser {
    limit: usize,
    line: Vec<u8>,
    event: Event,
    /// Whether the current event has had any field, and any data line.
    fields: bool,
    data: bool,
    /// How long the current event is so far, whether or not it is still kept.
    size: u64,
    /// A carriage return ended the last chunk, so a line feed that starts the next one is its half.
    after_return: bool,
    at_start: bool,
    ready: VecDeque<Result<Event, EventTooLarge>>,
}

impl EventParser {
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            event: Event::default(),
            fields: false,
            data: false,
            size: 0,
            after_return: false,
            at_start: true,
            ready: VecDeque::new(),
        }
    }

    pub fn push(&mut self, mut bytes: &[u8]) {
        while let Some(first) = bytes.first() {
            if mem::take(&mut self.after_return) && *first == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) else {
                self.extend_line(bytes);
                return;
            };
            self.extend_line(&bytes[..end]);
            self.after_return = bytes[end] == b'\r';
            self.end_line();
            bytes = &bytes[end + 1..];
        }
    }

    /// The next complete event. What the stream leaves unfinished at its end is never reported.
    pub fn next_event(&mut self) -> Option<Result<Event, EventTooLarge>> {
        self.ready.pop_front()
    }

    /// The event that is being read, if it is over the limit already.
    pub fn overflow(&self) -> Option<EventTooLarge> {
        self.oversized()
            .then_some(EventTooLarge { bytes: self.size })
    }

    fn oversized(&self) -> bool {
        self.size > self.limit as u64
    }

    fn extend_line(&mut self, part: &[u8]) {
        self.size += part.len() as u64;
        if self.oversized() {
            // Only emptiness matters of a line that is not kept: an empty one ends the event.
            let empty = self.line.is_empty() && part.is_empty();
            self.line = if empty { Vec::new() } else { vec![b':'] };
            self.event.data = Vec::new();
        } else {
            self.line.extend_from_slice(part);
        }
    }

    fn end_line(&mut self) {
        let mut line = mem::take(&mut self.line);
        if mem::take(&mut self.at_start) && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        if line.is_empty() {
            self.end_event();
        } else if !self.oversized() {
            self.field(&line);
        }
        // One large event must not pin its memory for the life of the stream.
        if line.capacity() <= KEPT_CAPACITY {
            line.clear();
            self.line = line;
        }
    }

    fn field(&mut self, line: &[u8]) {
        let (name, value) = match line.iter().position(|byte| *byte == b':') {
            // A comment, which servers send to keep the connection open. It must not count
            // towards an event that may never come.
            Some(0) => {
                self.size -= line.len() as u64;
                return;
            }
            Some(colon) => {
                let value = &line[colon + 1..];
                (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &line[line.len()..]),
        };
        match name {
            b"data" => {
                if mem::replace(&mut self.data, true) {
                    self.event.data.push(b'\n');
                }
                self.event.data.extend_from_slice(value);
            }
            b"event" => self.event.event = Some(String::from_utf8_lossy(value).into_owned()),
            b"id" if !value.contains(&0) => {
                self.event.id = Some(String::from_utf8_lossy(value).into_owned());
            }
            b"retry" => match parse_digits(value) {
                Some(milliseconds) => self.event.retry = Some(Duration::from_millis(milliseconds)),
                None => return,
            },
            _ => return,
        }
        self.fields = true;
    }

    fn end_event(&mut self) {
        let event = mem::take(&mut self.event);
        if self.oversized() {
            self.ready
                .push_back(Err(EventTooLarge { bytes: self.size }));
        } else if self.fields {
            self.ready.push_back(Ok(event));
        }
        self.fields = false;
        self.data = false;
        self.size = 0;
    }
}

fn parse_digits(value: &[u8]) -> Option<u64> {
    if !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    str::from_utf8(value).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse<'a>(
        chunks: impl IntoIterator<Item = &'a [u8]>,
        limit: usize,
    ) -> Vec<Result<Event, EventTooLarge>> {
        let mut parser = EventParser::new(limit);
        let mut events = Vec::new();
        for chunk in chunks {
            parser.push(chunk);
            events.extend(std::iter::from_fn(|| parser.next_event()));
        }
        events
    }

    fn one(text: &str) -> Event {
        let mut events = parse([text.as_bytes()], 1024);
        assert_eq!(events.len(), 1, "{events:?}");
        events.remove(0).unwrap()
    }

    fn none(text: &str) {
        assert_eq!(parse([text.as_bytes()], 1024), []);
    }

    #[test]
    fn every_field_is_read() {
        assert_eq!(
            one("event: message\nid: 7\nretry: 250\ndata: {\"a\":1}\n\n"),
            Event {
                id: Some("7".to_owned()),
                event: Some("message".to_owned()),
                retry: Some(Duration::from_millis(250)),
                data: b"{\"a\":1}".to_vec(),
            }
        );
    }

    #[test]
    fn every_line_end_ends_a_line() {
        let events = parse(
            [b"data: a\r\ndata:b\rdata\ndata:  c\r\r\ndata: d\n\n".as_slice()],
            64,
        );
        let data: Vec<_> = events
            .into_iter()
            .map(|event| event.unwrap().data)
            .collect();
        assert_eq!(data, [b"a\nb\n\n c".to_vec(), b"d".to_vec()]);
    }

    #[test]
    fn a_priming_event_is_reported_without_data() {
        let event = one("id: abc\ndata:\n\n");
        assert_eq!(
            (event.id.as_deref(), event.data.as_slice()),
            (Some("abc"), &b""[..])
        );
        assert_eq!(one("retry: 5\n\n").retry, Some(Duration::from_millis(5)));
    }

    #[test]
    fn what_is_no_field_makes_no_event() {
        none(": keep-alive\n\n");
        none("\n\n\r\n");
        none("unknown: x\nretry: soon\nretry:\nid: nul\0\n\n");
        none("data: unfinished\n");
    }

    #[test]
    fn a_byte_order_mark_is_passed_over_at_the_start_only() {
        assert_eq!(one("\u{feff}data: a\n\n").data, b"a");
        none("\n\u{feff}data: a\n\n");
    }

    #[test]
    fn an_event_over_the_limit_is_skipped_and_the_next_one_read() {
        let text = b"data: 0123456789\ndata: more\n\ndata: ok\n\n";
        for size in 1..text.len() {
            assert_eq!(
                parse(text.chunks(size), 12),
                [
                    Err(EventTooLarge { bytes: 26 }),
                    Ok(Event {
                        data: b"ok".to_vec(),
                        ..Event::default()
                    })
                ],
                "in chunks of {size}"
            );
        }
    }

    #[test]
    fn comments_do_not_add_up_to_an_event_over_the_limit() {
        let text = format!("{}data: a\n\n", ": ping\n".repeat(100));
        assert_eq!(parse([text.as_bytes()], 32).len(), 1);
        assert!(parse([text.as_bytes()], 32)[0].is_ok());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn any_chunking_gives_the_same_events(
            pieces in prop::collection::vec(
                prop::sample::select(vec![
                    "data: a", "data:", "data", "id: 1", "id", "retry: 10", "event: e", ": c",
                    "\u{feff}", "\n", "\n", "\n", "\r", "\r\n", "é", "x", ":",
                ]),
                0..40,
            ),
            cuts in prop::collection::vec(1_usize..6, 1..40),
            limit in 4_usize..64,
        ) {
            let text = pieces.concat();
            let mut chunks = Vec::new();
            let mut rest = text.as_bytes();
            for size in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (chunk, after) = rest.split_at(rest.len().min(*size));
                chunks.push(chunk);
                rest = after;
            }
            prop_assert_eq!(parse(chunks, limit), parse([text.as_bytes()], limit));
        }

        #[test]
        fn what_is_encoded_is_read_again(
            id in prop::option::of("[a-z0-9-]{1,8}"),
            data in "[^\r]{0,40}",
        ) {
            let encoded = crate::sse::encode_event(id.as_deref(), data.as_bytes());
            let event = Event { id, event: None, retry: None, data: data.into_bytes() };
            prop_assert_eq!(parse([&encoded[..]], 1024), [Ok(event)]);
        }
    }
}
