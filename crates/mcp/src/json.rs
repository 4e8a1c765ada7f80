//! JSON text that is known to be valid, and the members of such an object without parsing it again.
//!
//! A message is parsed once, when it arrives. What is looked up in it later, such as the tool that a
//! call names, is found by skipping over values instead: strings at the speed of `memchr`.

use std::borrow::Cow;

use memchr::memchr2;
use serde_json::value::RawValue;

use crate::id::encode_string;

/// Valid JSON text of one value, borrowed where its owner lives long enough.
#[derive(Debug, Clone)]
pub struct Json<'a>(Cow<'a, str>);

/// The members of an object in their order: names with their escapes resolved, values as they are
/// written.
#[derive(Debug, Clone)]
pub struct ObjectMembers<'a> {
    /// Begins at a member, or at the end of the object.
    rest: &'a str,
}

// === impl Json ===

impl<'a> Json<'a> {
    /// Checks text that has not been parsed yet.
    pub fn parse(text: String) -> Result<Self, serde_json::Error> {
        serde_json::from_str::<&RawValue>(&text)?;
        Ok(Self(Cow::Owned(text)))
    }

    pub fn string(text: &str) -> Self {
        let mut encoded = Vec::with_capacity(text.len() + 2);
        encode_string(text, &mut encoded);
        Self(Cow::Owned(String::from_utf8_lossy(&encoded).into_owned()))
    }

    /// The object with these members, whose names need no escapes.
    pub fn object<const N: usize>(members: [(&str, Option<&Json<'_>>); N]) -> Self {
        let length = |(name, value): &(&str, Option<&Json<'_>>)| {
            value.map_or(0, |value| name.len() + value.get().len() + 4)
        };
        let mut text = String::with_capacity(members.iter().map(length).sum::<usize>() + 2);
        text.push('{');
        for (name, value) in members {
            let Some(value) = value else { continue };
            if text.len() > 1 {
                text.push(',');
            }
            text.extend(["\"", name, "\":", value.get()]);
        }
        text.push('}');
        Self(Cow::Owned(text))
    }

    pub fn get(&self) -> &str {
        &self.0
    }

    /// The same text, borrowed from this.
    pub fn borrowed(&self) -> Json<'_> {
        Json(Cow::Borrowed(&self.0))
    }

    pub fn is_null(&self) -> bool {
        self.get() == "null"
    }

    /// The string that this is; `None` if it is something else.
    pub fn as_str(&self) -> Option<Cow<'_, str>> {
        unquoted(self.get())
    }

    /// Like [`as_str`](Self::as_str), for as long as the text lives.
    pub fn into_str(self) -> Option<Cow<'a, str>> {
        match self.0 {
            Cow::Borrowed(text) => unquoted(text),
            Cow::Owned(text) => unquoted(&text).map(|text| Cow::Owned(text.into_owned())),
        }
    }

    /// The members of the object that this is; `None` if it is something else.
    pub fn members(&self) -> Option<ObjectMembers<'_>> {
        let rest = self.get().trim_ascii_start().strip_prefix('{')?;
        Some(ObjectMembers {
            rest: rest.trim_ascii_start(),
        })
    }

    pub fn to_raw(&self) -> Result<Box<RawValue>, serde_json::Error> {
        RawValue::from_string(self.get().to_owned())
    }
}

impl<'a> From<&'a RawValue> for Json<'a> {
    fn from(raw: &'a RawValue) -> Self {
        Self(Cow::Borrowed(raw.get()))
    }
}

impl From<Box<RawValue>> for Json<'_> {
    fn from(raw: Box<RawValue>) -> Self {
        Self(Cow::Owned(Box::<str>::from(raw).into()))
    }
}

// === impl ObjectMembers ===

impl<'a> Iterator for ObjectMembers<'a> {
    type Item = (Cow<'a, str>, Json<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let inside = self.rest.strip_prefix('"')?;
        let (name, rest) = split_string(inside)?;
        let value = rest
            .trim_ascii_start()
            .strip_prefix(':')?
            .trim_ascii_start();
        let (value, rest) = value.split_at_checked(value_length(value))?;
        let rest = rest.trim_ascii_start();
        self.rest = rest.strip_prefix(',').map_or("", str::trim_ascii_start);
        Some((unescaped(name)?, Json(Cow::Borrowed(value))))
    }
}

/// Splits behind the closing quote of the string whose inside begins here; the quote is in neither part.
fn split_string(inside: &str) -> Option<(&str, &str)> {
    let bytes = inside.as_bytes();
    let mut end = 0;
    loop {
        end += memchr2(b'"', b'\\', bytes.get(end..)?)?;
        if bytes[end] == b'"' {
            return Some((&inside[..end], &inside[end + 1..]));
        }
        end += 2;
    }
}

/// The length of the value that the text begins with.
fn value_length(text: &str) -> usize {
    let mut rest = text;
    let mut depth = 0_usize;
    while let Some(first) = rest.bytes().next() {
        match first {
            b'"' => {
                let Some((_, behind)) = split_string(&rest[1..]) else {
                    return text.len();
                };
                rest = behind;
            }
            b'{' | b'[' => {
                depth += 1;
                rest = &rest[1..];
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                rest = &rest[1..];
            }
            _ => {
                let is_end = |byte| matches!(byte, b'"' | b'{' | b'[' | b'}' | b']');
                let ends_scalar =
                    |byte: u8| depth == 0 && (byte == b',' || byte.is_ascii_whitespace());
                let length = rest
                    .bytes()
                    .position(|byte| is_end(byte) || ends_scalar(byte))
                    .unwrap_or(rest.len());
                rest = &rest[length..];
            }
        }
        if depth == 0 {
            break;
        }
    }
    text.len() - rest.len()
}

/// The string that the text is, if it is one.
fn unquoted(text: &str) -> Option<Cow<'_, str>> {
    unescaped(text.strip_prefix('"')?.strip_suffix('"')?)
}

/// What stands between the quotes of a string, if its escapes are valid.
fn unescaped(inner: &str) -> Option<Cow<'_, str>> {
    if !inner.contains('\\') {
        return Some(Cow::Borrowed(inner));
    }
    let text: String = serde_json::from_str(&format!("\"{inner}\"")).ok()?;
    Some(Cow::Owned(text))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Members;

    /// Any JSON value as text, with white space and escapes in places.
    fn value() -> impl Strategy<Value = String> {
        let string = prop::sample::select(
            &[
                r#""""#,
                r#""a""#,
                r#""\"""#,
                r#""\\""#,
                r#""\\\"{[,""#,
                r#""\u0061 é""#,
                r#""}]""#,
            ][..],
        );
        let scalar = prop::sample::select(&["1", "-2.5e3", "null", "true", "false"][..]);
        let space = || prop::sample::select(&["", " ", "\n\t"][..]);
        let leaf = prop_oneof![string.clone(), scalar].prop_map(str::to_owned);
        leaf.prop_recursive(4, 24, 4, move |inner| {
            let array = (prop::collection::vec(inner.clone(), 0..4), space())
                .prop_map(|(items, space)| format!("[{space}{}{space}]", items.join(",")));
            let member = (string.clone(), space(), inner).prop_map(|(name, space, value)| {
                format!("{space}{name}{space}:{space}{value}{space}")
            });
            let object = (prop::collection::vec(member, 0..4), space())
                .prop_map(|(members, space)| format!("{{{space}{}}}", members.join(",")));
            prop_oneof![array, object]
        })
    }

    proptest! {
        #[test]
        fn members_are_those_that_a_parser_finds(text in value(), before in "[ \n]{0,2}") {
            let raw = RawValue::from_string(format!("{before}{text}")).unwrap();
            let json = Json::from(&*raw);
            let found: Option<Vec<(String, String)>> = json.members().map(|members| {
                members.map(|(name, value)| (name.into_owned(), value.get().to_owned())).collect()
            });
            let expected = Members::parse(&raw).ok().map(|members| {
                members.iter().map(|(name, value)| (name.to_owned(), value.get().to_owned())).collect()
            });
            prop_assert_eq!(found, expected);
            let string = serde_json::from_str::<String>(raw.get()).ok();
            prop_assert_eq!(json.as_str().map(Cow::into_owned), string);
        }
    }

    #[test]
    fn objects_are_made_of_the_members_that_are_given() {
        let (name, arguments) = (
            Json::string("a\"\n"),
            Json::parse("{ \"b\": 1.0 }".to_owned()).unwrap(),
        );
        let object = Json::object([
            ("name", Some(&name)),
            ("none", None),
            ("arguments", Some(&arguments)),
        ]);
        assert_eq!(object.get(), r#"{"name":"a\"\n","arguments":{ "b": 1.0 }}"#);
        assert_eq!(Json::object([("none", None)]).get(), "{}");
    }

    #[test]
    fn text_is_checked_before_it_counts_as_json() {
        assert!(Json::parse("{\"a\":1}".to_owned()).is_ok());
        assert!(Json::parse("{\"a\":1".to_owned()).is_err());
    }
}
