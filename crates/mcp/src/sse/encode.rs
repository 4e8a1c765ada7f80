//! Writes server-sent events.

use std::time::Duration;

use bytes::Bytes;

/// One event, complete with the blank line that ends it.
///
/// Line breaks in `data` become several `data` fields, which the reader joins with `\n` again. A
/// `\r` therefore arrives as `\n`; in JSON both can only be white space between tokens.
pub fn encode_event(id: Option<&str>, data: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(data.len() + 64);
    if let Some(id) = id {
        out.extend_from_slice(b"id: ");
        out.extend_from_slice(id.as_bytes());
        out.push(b'\n');
    }
    let mut rest = data;
    loop {
        out.extend_from_slice(b"data: ");
        let Some(end) = memchr::memchr2(b'\n', b'\r', rest) else {
            out.extend_from_slice(rest);
            break;
        };
        out.extend_from_slice(&rest[..end]);
        out.push(b'\n');
        let width = if rest[end..].starts_with(b"\r\n") {
            2
        } else {
            1
        };
        rest = &rest[end + width..];
    }
    out.extend_from_slice(b"\n\n");
    out.into()
}

/// An event without data, which tells the reader how long to wait before it connects again.
pub fn encode_retry(retry: Duration) -> Bytes {
    format!("retry: {}\n\n", retry.as_millis()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_its_fields_in_order_and_ends_with_a_blank_line() {
        let event = encode_event(Some("3-1"), b"{}");
        assert_eq!(event, "id: 3-1\ndata: {}\n\n");
    }

    #[test]
    fn a_priming_event_has_an_empty_data_field() {
        assert_eq!(encode_event(Some("1-0"), b""), "id: 1-0\ndata: \n\n");
    }

    #[test]
    fn a_retry_is_an_event_of_its_own() {
        assert_eq!(encode_retry(Duration::from_secs(2)), "retry: 2000\n\n");
    }

    #[test]
    fn every_kind_of_line_break_starts_another_data_field() {
        assert_eq!(
            encode_event(None, b"{\n\"a\":\r\n1,\r\"b\":2\n}"),
            "data: {\ndata: \"a\":\ndata: 1,\ndata: \"b\":2\ndata: }\n\n"
        );
    }
}
