//! Finds out whose answer or question a message was that could not be read as a whole, so that its
//! caller fails at once instead of waiting for ever.

use crate::RequestId;

/// The id of the call that a message answers, from the message's beginning and end, which may be
/// all there is of it. Only ids at the top level count: a result is full of members called `id`.
/// And only in what looks like an answer: a line of a log may have an id too.
pub(crate) fn answered_call(head: &[u8], tail: &[u8]) -> Option<u64> {
    let members = Members::in_head(head);
    if members.method || !(members.version || members.outcome) {
        return None;
    }
    members.id.or_else(|| id_in_tail(tail))?.as_u64()
}

/// The id of a request that is too long to be read, found the same way.
pub fn asked_call(head: &[u8], tail: &[u8]) -> Option<RequestId> {
    let members = Members::in_head(head);
    if members.outcome {
        return None;
    }
    members.id.or_else(|| id_in_tail(tail))
}

/// What the beginning of a message tells about it.
#[derive(Debug, Default)]
struct Members {
    id: Option<RequestId>,
    version: bool,
    method: bool,
    outcome: bool,
}

impl Members {
    fn in_head(head: &[u8]) -> Self {
        let mut found = Self::default();
        let mut depth = 0_usize;
        let mut position = 0;
        while let Some(byte) = head.get(position) {
            match byte {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                b'"' => {
                    let Some(end) = string_end(head, position) else {
                        break;
                    };
                    let (name, rest) =
                        (&head[position + 1..end], head[end + 1..].trim_ascii_start());
                    if depth == 1
                        && let Some(value) = rest.strip_prefix(b":")
                    {
                        found.member(name, value.trim_ascii_start());
                    }
                    position = end;
                }
                _ => {}
            }
            position += 1;
        }
        found
    }

    fn member(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"jsonrpc" => self.version = true,
            b"method" => self.method = true,
            b"result" | b"error" => self.outcome = true,
            b"id" => self.id = leading_id(value),
            _ => {}
        }
    }
}

/// Where the string that opens at `start` closes.
fn string_end(text: &[u8], start: usize) -> Option<usize> {
    let mut position = start + 1;
    loop {
        match text.get(position)? {
            b'"' => return Some(position),
            b'\\' => position += 2,
            _ => position += 1,
        }
    }
}

fn leading_id(text: &[u8]) -> Option<RequestId> {
    let length = match text.first()? {
        b'"' => string_end(text, 0)? + 1,
        _ => text.iter().take_while(|byte| is_numeric(**byte)).count(),
    };
    // Something has to follow, or the number may go on beyond the cut.
    text.get(length)?;
    parse(&text[..length])
}

/// Many servers write the id last, or last but for `jsonrpc`. Both are members of the outermost
/// object exactly if nothing but the brace that closes the message follows them.
fn id_in_tail(tail: &[u8]) -> Option<RequestId> {
    let members = tail.trim_ascii_end().strip_suffix(b"}")?;
    members
        .rsplit(|byte| *byte == b',')
        .map(<[u8]>::trim_ascii)
        .take(2)
        .find(|member| !member.starts_with(b"\"jsonrpc\""))
        .and_then(|member| member.strip_prefix(b"\"id\""))
        .and_then(|rest| rest.trim_ascii_start().strip_prefix(b":"))
        .and_then(|value| parse(value.trim_ascii()))
}

fn is_numeric(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E')
}

fn parse(id: &[u8]) -> Option<RequestId> {
    serde_json::from_slice(id).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(head: &str, tail: &str) -> Option<u64> {
        answered_call(head.as_bytes(), tail.as_bytes())
    }

    #[test]
    fn an_id_before_the_result_is_found() {
        assert_eq!(
            of(r#"{"jsonrpc":"2.0","id":7,"result":{"x":"#, "…}}"),
            Some(7)
        );
        assert_eq!(of(r#" { "id" : 41 , "result":""#, ""), Some(41));
    }

    #[test]
    fn an_id_after_the_result_is_found() {
        assert_eq!(
            of(r#"{"result":{"a":"#, r#""}]},"jsonrpc":"2.0","id":7}"#),
            Some(7)
        );
        assert_eq!(
            of(r#"{"result":{"a":"#, r#"1}, "id": 7, "jsonrpc":"2.0"}"#),
            Some(7)
        );
    }

    #[test]
    fn an_id_inside_the_result_is_not_taken_for_the_call() {
        assert_eq!(of(r#"{"result":{"id":9,"a":"#, r#","id":9}}"#), None);
        assert_eq!(
            of(r#"{"result":["\"id\":9,{\"id\":9","#, r#","id":9}]}"#),
            None
        );
        assert_eq!(of(r#"{"result":"say \"id\":9, "#, r#", \"id\":9""#), None);
    }

    #[test]
    fn a_request_of_the_server_is_nobodys_answer() {
        assert_eq!(
            of(r#"{"method":"sampling/createMessage","par"#, r#"},"id":7}"#),
            None
        );
        assert_eq!(
            of(r#"{"id":7,"method":"sampling/createMessage","par"#, "}"),
            None
        );
    }

    #[test]
    fn a_line_of_a_log_is_nobodys_answer() {
        let line = r#"{"level":30,"id":7,"msg":"up","id":7}"#;
        assert_eq!(of(line, line), None);
    }

    #[test]
    fn the_id_of_a_request_is_found_wherever_it_stands() {
        let asked = |head: &str, tail: &str| {
            let id = asked_call(head.as_bytes(), tail.as_bytes());
            id.map(|id| id.to_string())
        };
        let call = r#""method":"tools/call","params":{"id":9,"a":""#;
        assert_eq!(
            asked(&format!(r#"{{"id":"a\"b",{call}"#), "").as_deref(),
            Some("a\"b")
        );
        assert_eq!(
            asked(&format!("{{{call}"), r#""},"jsonrpc":"2.0","id":7}"#).as_deref(),
            Some("7")
        );
        assert_eq!(asked(&format!("{{{call}"), r#""},"jsonrpc":"2.0"}"#), None);
        assert_eq!(
            asked(r#"{"jsonrpc":"2.0","id":7,"result":{"x":"#, "}}"),
            None
        );
    }

    #[test]
    fn an_id_that_is_cut_off_is_not_guessed() {
        assert_eq!(of(r#"{"jsonrpc":"2.0","id":7"#, ""), None);
        assert_eq!(of(r#"{"jsonrpc":"2.0","id"#, ""), None);
        assert_eq!(of(r#"{"jsonrpc":"2.0","id":"a\"#, ""), None);
    }
}
