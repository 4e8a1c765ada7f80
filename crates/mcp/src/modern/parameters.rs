//! Arguments that a tool wants repeated as `Mcp-Param-*` headers: its input schema marks them with
//! `x-mcp-header`.

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{decode_header_value, encode_header_value, headers};

const ANNOTATION: &str = "x-mcp-header";

/// The marked parameters of one tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParameterHeaders(Vec<Parameter>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Parameter {
    /// The way to the argument, from the root of the arguments.
    path: Vec<String>,
    header: HeaderName,
}

/// Why no client may offer a tool whose schema is marked like this.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAnnotation {
    #[error("the input schema is not a JSON object")]
    Schema,
    #[error("x-mcp-header stands where no argument can be found by name alone")]
    Unreachable,
    #[error("x-mcp-header of {property} must be a token that can end a header's name")]
    Name { property: String },
    #[error("x-mcp-header of {property} is already in use")]
    Duplicate { property: String },
    #[error("{property} has x-mcp-header, but is no string, integer or boolean")]
    Type { property: String },
}

/// How the headers of a call contradict its arguments.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParameterMismatch {
    #[error("the {0} header is missing although the argument is given")]
    Missing(HeaderName),
    #[error("the {0} header is there although the argument is not")]
    Unexpected(HeaderName),
    #[error("the {0} header is not validly encoded")]
    Encoding(HeaderName),
    #[error("the {0} header is not what the argument says")]
    Different(HeaderName),
}

// === impl ParameterHeaders ===

impl ParameterHeaders {
    /// Reads the marks of an `inputSchema`.
    pub fn of_schema(schema: &RawValue) -> Result<Self, InvalidAnnotation> {
        // Hardly any schema has a mark, and parsing the others would cost every list.
        if memchr::memmem::find(schema.get().as_bytes(), ANNOTATION.as_bytes()).is_none() {
            return Ok(Self::default());
        }
        let schema: Value =
            serde_json::from_str(schema.get()).map_err(|_| InvalidAnnotation::Schema)?;
        let mut found = Self::default();
        found.read_schema(&schema, &mut Vec::new())?;
        Ok(found)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The headers for a call with these arguments. One that is absent or null has none.
    pub fn derive(&self, arguments: Option<&RawValue>) -> Vec<(HeaderName, HeaderValue)> {
        let arguments = self.parse(arguments);
        self.0
            .iter()
            .filter_map(|parameter| {
                let text = parameter.text_in(&arguments)?;
                let value = HeaderValue::from_str(&encode_header_value(&text)).ok()?;
                Some((parameter.header.clone(), value))
            })
            .collect()
    }

    /// Whether the headers of a call say what its arguments say.
    pub fn check(
        &self,
        headers: &HeaderMap,
        arguments: Option<&RawValue>,
    ) -> Result<(), ParameterMismatch> {
        let arguments = self.parse(arguments);
        for parameter in &self.0 {
            let name = || parameter.header.clone();
            let mut given = headers.get_all(&parameter.header).iter();
            let expected = parameter.text_in(&arguments);
            match (given.next(), expected) {
                (None, None) => {}
                (None, Some(_)) => return Err(ParameterMismatch::Missing(name())),
                (Some(_), None) => return Err(ParameterMismatch::Unexpected(name())),
                (Some(value), Some(expected)) => {
                    let decoded = value
                        .to_str()
                        .ok()
                        .and_then(|value| decode_header_value(value.trim()).ok())
                        .ok_or_else(|| ParameterMismatch::Encoding(name()))?;
                    let same = decoded == expected || same_number(&decoded, &expected);
                    // Of two values, an intermediary may have used the other.
                    if !same || given.next().is_some() {
                        return Err(ParameterMismatch::Different(name()));
                    }
                }
            }
        }
        Ok(())
    }

    fn parse(&self, arguments: Option<&RawValue>) -> Value {
        let wanted = arguments.filter(|_| !self.is_empty());
        wanted
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_default()
    }

    /// A schema that is reached through `properties` alone.
    fn read_schema(
        &mut self,
        schema: &Value,
        path: &mut Vec<String>,
    ) -> Result<(), InvalidAnnotation> {
        let Value::Object(members) = schema else {
            return Ok(());
        };
        for (name, value) in members {
            match (name.as_str(), value) {
                (ANNOTATION, value) => self.read_annotation(value, schema, path)?,
                ("properties", Value::Object(properties)) => {
                    for (property, schema) in properties {
                        path.push(property.clone());
                        self.read_schema(schema, path)?;
                        path.pop();
                    }
                }
                _ if holds_annotation(name, value) => return Err(InvalidAnnotation::Unreachable),
                _ => {}
            }
        }
        Ok(())
    }

    fn read_annotation(
        &mut self,
        annotation: &Value,
        schema: &Value,
        path: &[String],
    ) -> Result<(), InvalidAnnotation> {
        if path.is_empty() {
            return Err(InvalidAnnotation::Unreachable);
        }
        let property = path.join(".");
        let kind = schema.get("type").and_then(Value::as_str);
        if !matches!(kind, Some("string" | "integer" | "boolean")) {
            return Err(InvalidAnnotation::Type { property });
        }
        let suffix = annotation.as_str().filter(|suffix| !suffix.is_empty());
        let header = suffix.and_then(|suffix| {
            let name = format!("{}{suffix}", headers::PARAM_PREFIX);
            HeaderName::from_bytes(name.as_bytes()).ok()
        });
        let Some(header) = header else {
            return Err(InvalidAnnotation::Name { property });
        };
        if self.0.iter().any(|other| other.header == header) {
            return Err(InvalidAnnotation::Duplicate { property });
        }
        self.0.push(Parameter {
            path: path.to_vec(),
            header,
        });
        Ok(())
    }
}

// === impl Parameter ===

impl Parameter {
    fn text_in(&self, arguments: &Value) -> Option<String> {
        let value = self
            .path
            .iter()
            .try_fold(arguments, |value, name| value.get(name))?;
        match value {
            Value::String(text) => Some(text.clone()),
            Value::Bool(flag) => Some(flag.to_string()),
            Value::Number(number) => Some(plain_number(&number.to_string())),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }
}

/// Whether a member of a schema that leads away from the properties has a mark anywhere inside.
fn holds_annotation(name: &str, value: &Value) -> bool {
    // These hold examples of what the schema describes, where a mark would be mere data.
    if matches!(name, "default" | "const" | "enum" | "examples") {
        return false;
    }
    match value {
        Value::Object(members) => members
            .iter()
            .any(|(name, value)| name == ANNOTATION || holds_annotation(name, value)),
        Value::Array(items) => items.iter().any(|item| holds_annotation("", item)),
        _ => false,
    }
}

/// `42.0` and `4.2e1` are the integer 42, however they were written.
fn plain_number(text: &str) -> String {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match text.parse::<f64>() {
        Ok(number) if number.fract() == 0.0 && number.abs() < EXACT => format!("{number:.0}"),
        _ => text.to_owned(),
    }
}

fn same_number(given: &str, expected: &str) -> bool {
    let begins_like_one = given.starts_with(|first: char| first == '-' || first.is_ascii_digit());
    begins_like_one && plain_number(given) == expected
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use serde_json::value::to_raw_value;

    fn read(properties: &Value) -> Result<ParameterHeaders, InvalidAnnotation> {
        let schema = json!({"type": "object", "properties": properties});
        ParameterHeaders::of_schema(&to_raw_value(&schema).unwrap())
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn marked_arguments_are_derived_and_checked() {
        let parameters = read(&json!({
            "region": {"type": "string", "x-mcp-header": "Region"},
            "count": {"type": "integer", "x-mcp-header": "Count"},
            "dry": {"type": "boolean", "x-mcp-header": "Dry"},
            "where": {"type": "object", "properties": {
                "zone": {"type": "string", "x-mcp-header": "Zone"},
            }},
            "plain": {"type": "string"},
        }))
        .unwrap();
        let arguments = RawValue::from_string(
            r#"{"region":" ü","count":42.0,"where":{"zone":"a"},"dry":null,"plain":"p"}"#
                .to_owned(),
        )
        .unwrap();
        let derived = parameters.derive(Some(&arguments));
        let shown: Vec<_> = derived
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        let expected = [
            ("mcp-param-region", "=?base64?IMO8?="),
            ("mcp-param-count", "42"),
            ("mcp-param-zone", "a"),
        ];
        assert_eq!(shown, expected);
        let given: HeaderMap = derived.into_iter().collect();
        assert_eq!(parameters.check(&given, Some(&arguments)), Ok(()));
        assert!(parameters.derive(None).is_empty());
    }

    #[test]
    fn a_header_that_says_something_else_is_a_mismatch() {
        let parameters = read(&json!({
            "count": {"type": "integer", "x-mcp-header": "Count"},
        }))
        .unwrap();
        let name = || HeaderName::from_static("mcp-param-count");
        let check = |pairs: &[(&'static str, &str)], arguments: &str| {
            let arguments = RawValue::from_string(arguments.to_owned()).unwrap();
            parameters.check(&headers(pairs), Some(&arguments))
        };
        let seven = r#"{"count":7}"#;
        assert_eq!(check(&[("mcp-param-count", "7")], seven), Ok(()));
        assert_eq!(check(&[("mcp-param-count", "7.0")], seven), Ok(()));
        assert_eq!(
            check(&[("mcp-param-count", "8")], seven),
            Err(ParameterMismatch::Different(name()))
        );
        assert_eq!(
            check(&[("mcp-param-count", "7"), ("mcp-param-count", "8")], seven),
            Err(ParameterMismatch::Different(name()))
        );
        assert_eq!(
            check(&[("mcp-param-count", "=?base64?!?=")], seven),
            Err(ParameterMismatch::Encoding(name()))
        );
        assert_eq!(check(&[], seven), Err(ParameterMismatch::Missing(name())));
        assert_eq!(check(&[], r#"{"count":null}"#), Ok(()));
        assert_eq!(
            check(&[("mcp-param-count", "7")], "{}"),
            Err(ParameterMismatch::Unexpected(name()))
        );
    }

    #[test]
    fn marks_that_no_client_may_follow_are_refused() {
        let property = || "a".to_owned();
        let name = InvalidAnnotation::Name {
            property: property(),
        };
        let kind = InvalidAnnotation::Type {
            property: property(),
        };
        let duplicate = InvalidAnnotation::Duplicate {
            property: "b".to_owned(),
        };
        let marked = |kind: &str, name: Value| json!({"type": kind, "x-mcp-header": name});
        let table = [
            (json!({"a": marked("string", json!(""))}), &name),
            (json!({"a": marked("string", json!("a b"))}), &name),
            (json!({"a": marked("string", json!("a:b"))}), &name),
            (json!({"a": marked("string", json!("ü"))}), &name),
            (json!({"a": marked("string", json!("a\tb"))}), &name),
            (json!({"a": marked("string", json!(7))}), &name),
            (json!({"a": marked("number", json!("A"))}), &kind),
            (json!({"a": marked("object", json!("A"))}), &kind),
            (json!({"a": marked("null", json!("A"))}), &kind),
            (
                json!({"a": marked("string", json!("X")), "b": marked("string", json!("x"))}),
                &duplicate,
            ),
            (
                json!({"a": {"type": "array", "items": marked("string", json!("A"))}}),
                &InvalidAnnotation::Unreachable,
            ),
            (
                json!({"a": {"anyOf": [marked("string", json!("A"))]}}),
                &InvalidAnnotation::Unreachable,
            ),
        ];
        for (properties, expected) in table {
            assert_eq!(read(&properties).as_ref(), Err(expected), "{properties}");
        }
        let root = to_raw_value(&json!({"type": "string", "x-mcp-header": "A"})).unwrap();
        assert_eq!(
            ParameterHeaders::of_schema(&root),
            Err(InvalidAnnotation::Unreachable)
        );
    }

    #[test]
    fn a_property_may_be_called_like_the_mark_and_examples_may_hold_it() {
        let found = read(&json!({
            "x-mcp-header": {"type": "string"},
            "a": {"type": "object", "default": {"x-mcp-header": "A"}},
        }));
        assert_eq!(found, Ok(ParameterHeaders::default()));
    }
}
