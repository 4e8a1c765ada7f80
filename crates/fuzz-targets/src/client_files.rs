//! Files of other programs: our edits add, take back what they added, and change nothing else.

use clients::fuzzing::edit;
use serde_json::Value;

pub(crate) fn check(input: &[u8]) {
    let Some((kind, text)) = input.split_first() else {
        return;
    };
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    let Some(edited) = edit(kind % 2 == 1, text) else {
        return;
    };
    assert_eq!(edited.text, edited.text_again, "an edit is made once");
    let had = |path: &str| edited.before.pointer(path).is_some();
    if had("/mcpServers/mcpproxy") || had("/permissions/allow") {
        return;
    }
    assert!(
        is_subsequence(text, &edited.text),
        "bytes of others changed"
    );
    let mut without_us = edited.after;
    take_out(&mut without_us, "mcpServers", "mcpproxy", &edited.before);
    take_out(&mut without_us, "permissions", "allow", &edited.before);
    assert_eq!(without_us, edited.before, "only our entries were added");
    assert_eq!(edited.back, edited.before, "{:?}", edited.text_back);
}

/// Removes a member, and the object around it if it was made for the member.
fn take_out(value: &mut Value, object: &str, member: &str, before: &Value) {
    if let Some(members) = value.get_mut(object).and_then(Value::as_object_mut) {
        members.remove(member);
    }
    if before.get(object).is_none()
        && let Some(root) = value.as_object_mut()
    {
        root.remove(object);
    }
}

/// Whether the second text is the first with something put in. White space at the edge of the object that
/// something is put into may go.
fn is_subsequence(text: &str, of: &str) -> bool {
    let mut letters = of.chars();
    let mut solid = text.chars().filter(|letter| !letter.is_whitespace());
    solid.all(|letter| letters.any(|other| other == letter))
}
