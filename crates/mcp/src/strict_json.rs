//! Checks JSON text without building anything: one object, no member twice, not too deep.
//!
//! Two parsers may disagree about which of two equal members counts. What was checked must be what
//! the upstream sees, so such text is refused instead of interpreted.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::Json;

/// Up to this many members are compared one by one, which is quicker than hashing them.
const FEW: usize = 12;

/// How deep the objects and arrays of a message may be nested.
pub const DEPTH_LIMIT: usize = 128;

/// Passes if `text` is a JSON object without repeated members at any level. The depth is bounded
/// by the parser's own recursion limit, which is [`DEPTH_LIMIT`].
pub fn check_object(text: &str) -> Result<(), serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    deserializer.deserialize_map(Unique)?;
    deserializer.end()
}

/// The same for text that is known to be JSON, which takes a fraction of the time.
pub fn check_valid_object(json: &Json<'_>) -> Result<(), serde_json::Error> {
    if is_plainly_unique(json.get()) {
        return Ok(());
    }
    check_object(json.get())
}

/// Whether this is an object in which no member is given twice, as far as that can be told quickly:
/// `false` also where names have escapes, an object has many members or the nesting is deep.
fn is_plainly_unique(text: &str) -> bool {
    let mut bytes = text.as_bytes().iter();
    let mut names: Vec<&str> = Vec::with_capacity(2 * FEW);
    // Where the names of each open object begin; arrays have none.
    let mut open: Vec<Option<usize>> = Vec::with_capacity(FEW);
    let mut at_name = false;
    while let Some(byte) = bytes.next() {
        match byte {
            b'{' if open.len() < DEPTH_LIMIT - 1 => {
                open.push(Some(names.len()));
                at_name = true;
            }
            // All that is in an array belongs to an object around it.
            b'[' if !open.is_empty() && open.len() < DEPTH_LIMIT - 1 => open.push(None),
            b'{' | b'[' => return false,
            b'}' | b']' => {
                if let Some(Some(start)) = open.pop() {
                    names.truncate(start);
                }
                at_name = false;
            }
            b',' => at_name = matches!(open.last(), Some(Some(_))),
            b'"' if at_name => {
                let start = text.len() - bytes.len();
                skip_string(&mut bytes);
                let end = text.len() - bytes.len() - 1;
                let (Some(name), Some(Some(first))) = (text.get(start..end), open.last()) else {
                    return false;
                };
                let siblings = names.get(*first..).unwrap_or_default();
                let is_sure = !name.contains('\\') && siblings.len() < 2 * FEW;
                if !is_sure || siblings.contains(&name) {
                    return false;
                }
                names.push(name);
                at_name = false;
            }
            b'"' if !open.is_empty() => skip_string(&mut bytes),
            _ if open.is_empty() && !byte.is_ascii_whitespace() => return false,
            _ => {}
        }
    }
    true
}

/// Whether objects and arrays are nested deeper than [`DEPTH_LIMIT`].
pub(crate) fn is_too_deep(value: &RawValue) -> bool {
    let text = value.get().as_bytes();
    // Nearly all values have fewer brackets than that in all, which is much quicker to see.
    let brackets = memchr::memchr2_iter(b'[', b'{', text);
    if brackets.take(DEPTH_LIMIT + 1).count() <= DEPTH_LIMIT {
        return false;
    }
    let mut depth = 0_usize;
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => skip_string(&mut bytes),
            b'[' | b'{' => {
                depth += 1;
                if depth > DEPTH_LIMIT {
                    return true;
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// Skips the rest of a string, which may hold brackets and escaped quotes.
fn skip_string(bytes: &mut std::slice::Iter<'_, u8>) {
    while let Some(end) = memchr::memchr2(b'"', b'\\', bytes.as_slice()) {
        match bytes.nth(end) {
            Some(b'\\') => drop(bytes.next()),
            _ => return,
        }
    }
    *bytes = [].iter();
}

/// Walks any value.
struct AnyValue;

/// Visits a value and passes over it, remembering the member names of each object.
struct Unique;

/// The member names of one object that were seen so far.
#[derive(Default)]
pub(crate) struct Names<'de> {
    few: Vec<Cow<'de, str>>,
    many: HashSet<Cow<'de, str>>,
}

impl<'de> Names<'de> {
    /// Whether the name is new.
    pub(crate) fn insert(&mut self, name: Cow<'de, str>) -> bool {
        if self.few.len() < FEW {
            let new = !self.few.contains(&name);
            self.few.push(name);
            return new;
        }
        !self.few.contains(&name) && self.many.insert(name)
    }
}

impl<'de> DeserializeSeed<'de> for AnyValue {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(Unique)
    }
}

impl<'de> Visitor<'de> for Unique {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut names = Names::default();
        while let Some(name) = map.next_key_seed(Name)? {
            if names.insert(name.clone()) {
                map.next_value_seed(AnyValue)?;
            } else {
                return Err(de::Error::custom(format_args!(
                    "member `{name}` is given twice"
                )));
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(AnyValue)?.is_some() {}
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// A member name, borrowed where it has no escapes.
pub(crate) struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name {
    type Value = Cow<'de, str>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a member name")
    }

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn error(text: &str) -> String {
        check_object(text).unwrap_err().to_string()
    }

    #[test]
    fn objects_pass_whatever_they_hold() {
        for text in [
            "{}",
            r#" {"a":[1,-2,1.5e300,"x",null,true,{"a":{}}],"b":"\u0061"} "#,
        ] {
            check_object(text).unwrap();
        }
    }

    #[test]
    fn a_member_given_twice_is_found_at_any_depth_and_in_any_spelling() {
        assert!(error(r#"{"a":1,"a":2}"#).contains("member `a` is given twice"));
        assert!(error(r#"{"x":[{"a":1,"\u0061":2}]}"#).contains("member `a` is given twice"));
        let many: String = (0..100).map(|n| format!("\"m{n}\":0,")).collect();
        assert!(error(&format!("{{{many}\"m3\":1}}")).contains("member `m3` is given twice"));
        assert!(error(&format!("{{{many}\"m99\":1}}")).contains("member `m99` is given twice"));
    }

    proptest! {
        /// Short names from few letters, so that many are given twice, in any spelling.
        #[test]
        fn the_quick_way_refuses_what_the_thorough_way_does(
            text in prop::collection::vec(
                prop::sample::select(&[
                    "{", "}", "[", "]", ",", ":", "\"a\"", "\"b\"", "\"\\u0061\"", "\"a,{\\\"\"", "1", "null", " ",
                ][..]),
                0..24,
            ),
            members in prop::collection::vec(("[ab]", 0..3_u8), 0..4),
        ) {
            let object: String = members
                .iter()
                .map(|(name, kind)| match kind {
                    0 => format!("\"{name}\":1,"),
                    1 => format!("\"{name}\":{{\"a\":[{{\"b\":2}}]}},"),
                    _ => format!("\"\\u006{}\":[\"{name}\"],", if name == "a" { 1 } else { 2 }),
                })
                .collect();
            for text in [text.concat(), format!("{{{}}}", object.trim_end_matches(','))] {
                // White space around a value is not part of it, and would count in the position of an error.
                if let Ok(raw) = RawValue::from_string(text) {
                    let quick = check_valid_object(&Json::from(&*raw)).map_err(|error| error.to_string());
                    let thorough = check_object(raw.get()).map_err(|error| error.to_string());
                    prop_assert_eq!(quick, thorough, "{}", raw);
                }
            }
        }
    }

    #[test]
    fn what_is_not_an_object_is_refused() {
        for text in ["[]", "1", "\"x\"", "null", "", "{", "{}{}", "{\"a\":1,}"] {
            assert!(check_object(text).is_err(), "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_an_error_and_not_a_crash() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(error(&deep).contains("recursion limit"));
    }

    #[test]
    fn depth_counts_brackets_outside_strings_only() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let is_too_deep = |text: &str| {
            let raw: &RawValue = serde_json::from_str(text).unwrap();
            is_too_deep(raw)
        };
        assert!(!is_too_deep(&nested(DEPTH_LIMIT)));
        assert!(is_too_deep(&nested(DEPTH_LIMIT + 1)));
        let wide = vec!["[]"; 1_000].join(",");
        assert!(!is_too_deep(&format!("[{wide}]")));
        let text = format!(r#"["\"{}\\","{}"]"#, "[".repeat(500), "{".repeat(500));
        assert!(!is_too_deep(&text));
        let after = format!(r#"["\\",{}]"#, nested(DEPTH_LIMIT));
        assert!(is_too_deep(&after));
    }
}
