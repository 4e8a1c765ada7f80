//! Records as lines of a table (RFC 4180), safe to open in a spreadsheet.

use std::borrow::Cow;
use std::fmt::Display;

use crate::payload::Payload;
use crate::record::Record;
use crate::words::Word;

const COLUMNS: &[&str] = &[
    "id",
    "timestamp",
    "type",
    "source",
    "status",
    "server_name",
    "tool_name",
    "tool_variant",
    "intent_type",
    "data_sensitivity",
    "reason",
    "effective_tier",
    "provenance",
    "warnings",
    "error_code",
    "error_message",
    "duration_ms",
    "request_bytes",
    "response_bytes",
    "response_truncated",
    "session_id",
    "client_name",
    "request_id",
    "arguments_truncated",
];
const BODY_COLUMNS: &[&str] = &["arguments", "response"];

/// Collects the fields of one line.
struct Line<'a> {
    output: &'a mut Vec<u8>,
    first: bool,
}

pub(super) fn write_header(output: &mut Vec<u8>, include_bodies: bool) {
    let bodies = if include_bodies { BODY_COLUMNS } else { &[] };
    write_line(output, COLUMNS.iter().chain(bodies).copied());
}

/// Writes one line of these fields.
pub fn write_line<'a>(output: &mut Vec<u8>, fields: impl IntoIterator<Item = &'a str>) {
    let mut line = Line {
        output,
        first: true,
    };
    for field in fields {
        line.field(field);
    }
    line.end();
}

pub(super) fn write_record(output: &mut Vec<u8>, record: &Record, include_bodies: bool) {
    let metadata = &record.metadata;
    let intent = metadata.intent.as_ref();
    let mut line = Line {
        output,
        first: true,
    };
    line.shown(record.id);
    line.shown(format_args!("{:.3}", record.timestamp));
    line.field(record.record_type.as_str());
    line.field(record.source.as_str());
    line.field(record.status.as_str());
    line.optional(record.server_name.as_deref());
    line.optional(record.tool_name.as_deref());
    line.optional(metadata.tool_variant.map(policy::ToolVariant::as_str));
    line.optional(
        intent
            .and_then(|intent| intent.operation_type)
            .map(Word::as_str),
    );
    line.optional(
        intent
            .and_then(|intent| intent.data_sensitivity)
            .map(Word::as_str),
    );
    line.optional(intent.and_then(|intent| intent.reason.as_deref()));
    line.optional(metadata.effective_tier.map(policy::Tier::as_str));
    line.optional(metadata.provenance.map(policy::Provenance::as_str));
    line.field(&metadata.warnings.join("; "));
    line.optional(record.error_code.as_deref());
    line.optional(record.error_message.as_deref());
    line.field(
        &record
            .duration_ms
            .map(|duration| duration.to_string())
            .unwrap_or_default(),
    );
    line.shown(record.request_bytes);
    line.shown(record.response_bytes);
    line.shown(record.response_truncated);
    line.optional(record.session_id.as_deref());
    line.optional(record.client_name.as_deref());
    line.optional(record.request_id.as_deref());
    line.shown(record.arguments_truncated);
    if include_bodies {
        line.optional(record.arguments.as_ref().map(Payload::as_str));
        line.optional(record.response.as_ref().map(Payload::as_str));
    }
    line.end();
}

impl Line<'_> {
    fn field(&mut self, text: &str) {
        if !self.first {
            self.output.push(b',');
        }
        self.first = false;
        let text = defused(text);
        if text.contains(['"', ',', '\n', '\r']) {
            self.output.push(b'"');
            self.output
                .extend_from_slice(text.replace('"', "\"\"").as_bytes());
            self.output.push(b'"');
        } else {
            self.output.extend_from_slice(text.as_bytes());
        }
    }

    fn optional(&mut self, text: Option<&str>) {
        self.field(text.unwrap_or_default());
    }

    fn shown(&mut self, value: impl Display) {
        self.field(&value.to_string());
    }

    fn end(self) {
        self.output.extend_from_slice(b"\r\n");
    }
}

/// A spreadsheet runs what begins like a formula; a leading apostrophe makes it text.
fn defused(text: &str) -> Cow<'_, str> {
    // Some of them read the full-width forms as the plain ones.
    if text.starts_with(['=', '+', '-', '@', '\t', '\r', '＝', '＋', '－', '＠']) {
        Cow::Owned(format!("'{text}"))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(fields: &[String]) -> Vec<u8> {
        let mut output = Vec::new();
        let mut line = Line {
            output: &mut output,
            first: true,
        };
        for field in fields {
            line.field(field);
        }
        line.end();
        output
    }

    /// A reader that knows nothing but RFC 4180.
    fn read(line: &[u8]) -> Vec<String> {
        let text = std::str::from_utf8(line).unwrap();
        let mut letters = text.chars().peekable();
        let mut fields = vec![String::new()];
        let mut quoted = false;
        while let Some(letter) = letters.next() {
            let field = fields.last_mut().unwrap();
            match letter {
                '"' if quoted && letters.peek() == Some(&'"') => {
                    letters.next();
                    field.push('"');
                }
                '"' => quoted = !quoted,
                ',' if !quoted => fields.push(String::new()),
                '\r' if !quoted && letters.peek() == Some(&'\n') => break,
                other => field.push(other),
            }
        }
        fields
    }

    #[test]
    fn formulas_are_defused() {
        for formula in [
            "=1+1",
            "+1",
            "-1",
            "@SUM(A1)",
            "\t=1",
            "\r=1",
            "＝1+1",
            "＋1",
            "－1",
            "＠SUM(A1)",
        ] {
            let read = read(&line(&[formula.to_owned()]));
            assert_eq!(read, [format!("'{formula}")]);
        }
        assert_eq!(read(&line(&["a=1".to_owned()])), ["a=1"]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            fields in proptest::collection::vec("[a-c\",;\r\n'=+@＝＋－＠ é-]{0,12}", 1..8),
        ) {
            let read = read(&line(&fields));
            let expected: Vec<_> = fields.iter().map(|field| defused(field).into_owned()).collect();
            prop_assert_eq!(read, expected);
        }
    }
}
