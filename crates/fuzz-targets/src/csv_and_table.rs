//! Text of upstreams in exports and on terminals: nothing in it acts, and no field becomes two.

use activity::fuzzing::csv_line;
use serde_json::{Value, json};

use crate::escape;

pub(crate) fn check(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let fields: Vec<_> = text.split('\u{1f}').collect();
    csv_holds(&fields);
    table_holds(&text);
}

fn csv_holds(fields: &[&str]) {
    let mut line = Vec::new();
    csv_line(&mut line, fields.iter().copied());
    let line = String::from_utf8(line).expect("CSV is text");
    let read = read_line(line.strip_suffix("\r\n").expect("a line end"));
    assert_eq!(read.len(), fields.len(), "as many fields as were written");
    for (read, field) in read.iter().zip(fields) {
        let harmless = read.strip_prefix('\'').unwrap_or(read);
        assert!(read == field || harmless == *field, "a field is another");
        assert!(
            !read.starts_with(['=', '+', '-', '@', '\t', '\r']),
            "a formula"
        );
    }
}

/// Reads a line as RFC 4180 has it.
fn read_line(line: &str) -> Vec<String> {
    let (mut fields, mut rest) = (Vec::new(), line);
    loop {
        let mut field = String::new();
        if let Some(mut quoted) = rest.strip_prefix('"') {
            loop {
                let end = quoted.find('"').expect("a closing quote");
                field.push_str(&quoted[..end]);
                quoted = &quoted[end + 1..];
                match quoted.strip_prefix('"') {
                    Some(after) => {
                        field.push('"');
                        quoted = after;
                    }
                    None => break,
                }
            }
            rest = quoted;
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            field.push_str(&rest[..end]);
            rest = &rest[end..];
        }
        fields.push(field);
        let Some(after) = rest.strip_prefix(',') else {
            assert!(rest.is_empty(), "something follows a field");
            return fields;
        };
        rest = after;
    }
}

fn table_holds(text: &str) {
    let acts = |character: char| {
        let turns = matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}');
        character.is_control() || turns
    };
    let line = escape::line(text);
    assert!(!line.contains(acts), "one line acts on the terminal");
    assert_eq!(escape::line(&line), line, "what is escaped stays");
    assert!(line.len() <= 10 * text.len());
    let lines = escape::lines(text);
    assert!(!lines.contains(|it| acts(it) && it != '\n' && it != '\t'));
    let value = json!({ text: [text] });
    for shown in [value.to_string(), format!("{value:#}")] {
        let safe = escape::json(&shown);
        assert!(!safe.contains(|it| acts(it) && it != '\n'));
        let again: Value = serde_json::from_str(&safe).expect("JSON stays JSON");
        assert_eq!(again, value);
    }
    assert!(!escape::yaml(text).contains(|it| acts(it) && it != '\n'));
}
