//! Heads as older versions wrote them, in JSON. A crash of one may have left them behind, so they
//! are still read; they are never written.

use serde::Deserialize;

use super::Head;
use crate::id::ActivityId;
use crate::record::{Ended, Started};

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum OlderHead {
    Segment(u64),
    Start(Started),
    End(ActivityId, Ended),
    Whole(Started, Ended),
}

/// Whether the head is JSON, which begins with what no kind of head begins with today.
pub(super) fn is_head(bytes: &[u8]) -> bool {
    bytes.starts_with(b"{")
}

pub(super) fn read_head(bytes: &[u8]) -> serde_json::Result<Head> {
    Ok(match serde_json::from_slice(bytes)? {
        OlderHead::Segment(number) => Head::OlderSegment(number),
        OlderHead::Start(started) => Head::Start(started),
        OlderHead::End(id, ended) => Head::End(id, ended),
        OlderHead::Whole(started, ended) => Head::Whole(started, ended),
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Content, read, write};
    use crate::store::Entry;

    const SEGMENT: &str = r#"{"segment":5}"#;
    const START: &str = r#"{"start":{"id":"01JC000000000G000000000007","record_type":"tool_call","source":"mcp","server_name":"files","tool_name":"read_file","session_id":"session-1","client_name":null,"request_id":"","request_bytes":180,"metadata":{"intent":{"operation_type":"read","data_sensitivity":"private","reason":"the user asked for it"},"tool_variant":"call_tool_read","effective_tier":"read_only","provenance":"declared","warnings":["one"]},"arguments":{"digest":"ef28a75876b54cb665beeb4cb10d72f463c59d196f5ee4a08e62ac67e7247639","truncated":true,"kept":true}}}"#;
    const END: &str = r#"{"end":["01JC000000000G000000000007",{"status":"error","error_code":"UPSTREAM_ERROR","error_message":"the upstream said no","duration_ms":12,"response_bytes":34,"response":null}]}"#;

    fn content(head: &str, arguments: Option<&str>) -> Content {
        let mut frame = Vec::new();
        write(
            &mut frame,
            0,
            |output| output.extend(head.bytes()),
            [arguments, None],
        );
        let (content, rest) = read(&frame, 0).unwrap();
        assert!(rest.is_empty());
        content
    }

    #[test]
    fn what_an_older_version_left_behind_is_read() {
        assert!(matches!(content(SEGMENT, None), Content::OlderSegment(5)));
        let Content::Entry(Entry::Start(started)) = content(START, Some("{}")) else {
            panic!("not a start");
        };
        assert_eq!(started.tool_name.as_deref(), Some("read_file"));
        let arguments = started.arguments.as_ref().unwrap();
        assert_eq!(arguments.text.as_ref().unwrap().as_str(), "{}");
        let Content::Entry(Entry::End(id, ended, None)) = content(END, None) else {
            panic!("not an end");
        };
        assert_eq!(id, started.id);
        assert_eq!(ended.error_code.as_deref(), Some("UPSTREAM_ERROR"));
        let whole = format!(
            r#"{{"whole":[{},{}]}}"#,
            &START[r#"{"start":"#.len()..START.len() - 1],
            &END[END.find(",{").unwrap() + 1..END.len() - 2],
        );
        assert!(matches!(
            content(&whole, None),
            Content::Entry(Entry::Whole(..))
        ));
    }
}
