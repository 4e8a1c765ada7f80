//! JSON with comments, edited in its concrete syntax.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use serde_json::Value;

use super::{ParseFault, ShapeFault, shown, wrong_kind};

/// Some editors put this before everything else.
const BYTE_ORDER_MARK: char = '\u{feff}';

const AN_OBJECT: &str = "an object";
const A_LIST: &str = "a list";

/// What JSONC allows beyond JSON, and no more: what a client would not read is not ours to edit.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

pub(crate) struct JsonDocument {
    root: CstRootNode,
    marked: bool,
}

impl JsonDocument {
    pub(super) fn parse(text: &str) -> Result<Self, ParseFault> {
        let unmarked = text.strip_prefix(BYTE_ORDER_MARK);
        // The editor of the syntax drops these when something is put beside them.
        if let Some(line) = stray_carriage_return(text) {
            return Err(ParseFault {
                line,
                column: 1,
                message: "a carriage return without a line feed".to_owned(),
            });
        }
        let parsed = CstRootNode::parse(unmarked.unwrap_or(text), &OPTIONS);
        let root = parsed.map_err(|error| ParseFault {
            line: error.line_display(),
            column: error.column_display(),
            message: error.kind().to_string(),
        })?;
        Ok(Self {
            root,
            marked: unmarked.is_some(),
        })
    }

    pub(super) fn get(&self, path: &[String]) -> Result<Option<Value>, ShapeFault> {
        let Some((last, above)) = path.split_last() else {
            return Ok(self.root.to_serde_value());
        };
        let Some(object) = self.object(above)? else {
            return Ok(None);
        };
        let member = member(&object, last, path)?;
        Ok(member.and_then(|member| member.value()?.to_serde_value()))
    }

    pub(super) fn set(&mut self, path: &[String], value: &Value) -> Result<(), ShapeFault> {
        let Some((last, above)) = path.split_last() else {
            return Err(wrong_kind(path, "a member"));
        };
        let object = self.object_or_new(above)?;
        match member(&object, last, path)? {
            Some(member) => member.set_value(input(value)),
            None => {
                object.append(last, input(value));
            }
        }
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &[String]) -> Result<(), ShapeFault> {
        let Some((last, above)) = path.split_last() else {
            return Ok(());
        };
        if let Some(object) = self.object(above)?
            && let Some(member) = member(&object, last, path)?
        {
            member.remove();
        }
        Ok(())
    }

    pub(super) fn push(&mut self, path: &[String], value: &Value) -> Result<(), ShapeFault> {
        let Some((last, above)) = path.split_last() else {
            return Err(wrong_kind(path, A_LIST));
        };
        let object = self.object_or_new(above)?;
        if let Some(member) = member(&object, last, path)? {
            let array = member.array_value();
            let array = array.ok_or_else(|| wrong_kind(path, A_LIST))?;
            array.append(input(value));
        } else {
            object.append(last, CstInputValue::Array(Vec::new()));
            // Appended apart, so that the list is laid out with one element per line.
            if let Some(array) = object.array_value(last) {
                array.ensure_multiline();
                array.append(input(value));
            }
        }
        Ok(())
    }

    pub(super) fn take_out(&mut self, path: &[String], value: &Value) -> Result<(), ShapeFault> {
        let Some(array) = self.array(path)? else {
            return Ok(());
        };
        let is_it = |element: &CstNode| element.to_serde_value().as_ref() == Some(value);
        if let Some(element) = array.elements().into_iter().rev().find(is_it) {
            element.remove();
        }
        Ok(())
    }

    pub(super) fn text(&self) -> String {
        let text = self.root.to_string();
        if self.marked {
            format!("{BYTE_ORDER_MARK}{text}")
        } else {
            text
        }
    }

    fn array(&self, path: &[String]) -> Result<Option<CstArray>, ShapeFault> {
        let Some((last, above)) = path.split_last() else {
            return Ok(None);
        };
        let Some(object) = self.object(above)? else {
            return Ok(None);
        };
        match member(&object, last, path)? {
            Some(member) => {
                let array = member.array_value();
                array.ok_or_else(|| wrong_kind(path, A_LIST)).map(Some)
            }
            None => Ok(None),
        }
    }

    fn root_object(&self) -> Result<Option<CstObject>, ShapeFault> {
        match self.root.value() {
            None => Ok(None),
            Some(value) => match value.as_object() {
                Some(object) => Ok(Some(object)),
                None => Err(wrong_kind(&[], AN_OBJECT)),
            },
        }
    }

    /// The object at a path, if the document has it.
    fn object(&self, path: &[String]) -> Result<Option<CstObject>, ShapeFault> {
        let mut object = self.root_object()?;
        for (depth, name) in path.iter().enumerate() {
            let here = &path[..=depth];
            let Some(parent) = object else {
                return Ok(None);
            };
            object = match member(&parent, name, here)? {
                Some(member) => {
                    let inner = member.object_value();
                    Some(inner.ok_or_else(|| wrong_kind(here, AN_OBJECT))?)
                }
                None => None,
            };
        }
        Ok(object)
    }

    fn object_or_new(&self, path: &[String]) -> Result<CstObject, ShapeFault> {
        let root = self.root.object_value_or_create();
        let mut object = root.ok_or_else(|| wrong_kind(&[], AN_OBJECT))?;
        for (depth, name) in path.iter().enumerate() {
            let here = &path[..=depth];
            object = match member(&object, name, here)? {
                Some(member) => {
                    let inner = member.object_value();
                    inner.ok_or_else(|| wrong_kind(here, AN_OBJECT))?
                }
                None => object.object_value_or_set(name),
            };
        }
        Ok(object)
    }
}

/// A member by its name. Programs differ in which of two they believe, so two are refused.
fn member(
    object: &CstObject,
    name: &str,
    path: &[String],
) -> Result<Option<CstObjectProp>, ShapeFault> {
    let is_it = |member: &CstObjectProp| member.decoded_name().as_deref() == Some(name);
    let mut members = object.properties().into_iter().filter(is_it);
    let first = members.next();
    if members.next().is_some() {
        return Err(ShapeFault::Twice { path: shown(path) });
    }
    Ok(first)
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(flag) => CstInputValue::Bool(*flag),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(elements) => CstInputValue::Array(elements.iter().map(input).collect()),
        Value::Object(members) => CstInputValue::Object(
            members
                .iter()
                .map(|(name, value)| (name.clone(), input(value)))
                .collect(),
        ),
    }
}

/// The line, counted from one, with a carriage return that ends no line.
fn stray_carriage_return(text: &str) -> Option<usize> {
    let text = text.replace("\r\n", "\n");
    let (before, _) = text.split_once('\r')?;
    Some(before.matches('\n').count() + 1)
}
