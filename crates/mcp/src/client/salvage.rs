//! Finds out whose answer a message was that could not be read as a whole, so that its caller
//! fails at once instead of waiting for ever.

/// The id of the call that a message answers, from the message's beginning and end, which may be
/// all there is of it. Only ids at the top level count: a result is full of members called `id`.
/// And only in what looks like an answer: a line of a log may have an id too.
pub(super) fn answered_call(head: &[u8], tail: &[u8]) -> Option<u64> {
    match id_in_head(head) {
        Head::Answer(id) => Some(id),
        Head::NoAnswer => None,
        Head::Unknown => id_in_tail(tail),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Head {
    Answer(u64),
    /// Its id is one that the server chose, or no id of a call at all.
    NoAnswer,
    /// An answer, but to what stands further on.
    Unknown,
}

fn id_in_head(head: &[u8]) -> Head {
    let mut id = None;
    let mut is_answer = false;
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
                let (name, rest) = (&head[position + 1..end], head[end + 1..].trim_ascii_start());
                if depth == 1 && rest.first() == Some(&b':') {
                    match name {
                        b"method" => return Head::NoAnswer,
                        b"jsonrpc" | b"result" => is_answer = true,
                        b"id" => id = leading_number(rest[1..].trim_ascii_start()),
                        _ => {}
                    }
                }
                position = end;
            }
            _ => {}
        }
        position += 1;
    }
    match id {
        _ if !is_answer => Head::NoAnswer,
        Some(id) => Head::Answer(id),
        None => Head::Unknown,
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

fn leading_number(text: &[u8]) -> Option<u64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    // Something has to follow, or the number may go on beyond the cut.
    text.get(digits)?;
    parse(&text[..digits])
}

/// Many servers write the id last, or last but for `jsonrpc`. Both are members of the outermost
/// object exactly if nothing but the brace that closes the message follows them.
fn id_in_tail(tail: &[u8]) -> Option<u64> {
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

fn parse(digits: &[u8]) -> Option<u64> {
    str::from_utf8(digits).ok()?.parse().ok()
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
    fn an_id_that_is_cut_off_is_not_guessed() {
        assert_eq!(of(r#"{"jsonrpc":"2.0","id":7"#, ""), None);
        assert_eq!(of(r#"{"jsonrpc":"2.0","id"#, ""), None);
        assert_eq!(of(r#"{"jsonrpc":"2.0","id":"a\"#, ""), None);
    }
}
