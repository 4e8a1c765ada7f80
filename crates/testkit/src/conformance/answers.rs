//! The shapes that answers have.

use mcp::{ErrorObject, RawValue};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

/// The smallest PNG there is: one pixel.
pub(super) const IMAGE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

pub(super) type Answer = Result<Value, ErrorObject>;

/// A result of one text.
pub(super) fn said(what: &str) -> Value {
    json!({"content": [text(what)]})
}

pub(super) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

pub(super) fn raw(value: &Value) -> Result<Box<RawValue>, ErrorObject> {
    to_raw_value(value).map_err(|error| ErrorObject::internal(error.to_string()))
}
