//! TOML, edited in its concrete syntax.

use serde_json::{Map, Value};
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, TableLike};

use super::{ParseFault, ShapeFault, wrong_kind};

const A_TABLE: &str = "a table";
const A_LIST: &str = "a list";

pub(crate) struct TomlDocument {
    document: DocumentMut,
    /// Whether lines end as Windows ends them.
    carriage_returns: bool,
}

impl TomlDocument {
    pub(super) fn parse(text: &str) -> Result<Self, ParseFault> {
        let carriage_returns = ends_with_carriage_returns(text)?;
        let document = text.parse::<DocumentMut>().map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let before = &text[..text.floor_char_boundary(start)];
            let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
            ParseFault {
                line: before.matches('\n').count() + 1,
                column: before[line_start..].chars().count() + 1,
                message: error.message().to_owned(),
            }
        })?;
        let document = Self {
            document,
            carriage_returns,
        };
        document.keeps(text)?;
        Ok(document)
    }

    /// Whether the text would be given back as it was. The editor of the syntax moves lines where dotted keys of one
    /// table are apart.
    fn keeps(&self, text: &str) -> Result<(), ParseFault> {
        let kept = self.text();
        if kept == text {
            return Ok(());
        }
        let mut lines = kept.lines().zip(text.lines());
        Err(ParseFault {
            line: lines.position(|(kept, line)| kept != line).unwrap_or(0) + 1,
            column: 1,
            message: "an edit would move this line; put the keys of each table together".to_owned(),
        })
    }

    pub(super) fn get(&self, path: &[String]) -> Option<Value> {
        let mut item = self.document.as_item();
        for name in path {
            item = item.as_table_like()?.get(name)?;
        }
        to_json(item)
    }

    pub(super) fn set(&mut self, path: &[String], value: &Value) -> Result<(), ShapeFault> {
        let Some((last, above)) = path.split_last() else {
            return Err(wrong_kind(path, "a member"));
        };
        let parent = self.table_or_new(above)?;
        let item = if parent.inline {
            Item::Value(to_value(value))
        } else {
            to_item(value)
        };
        parent.table.insert(last, item);
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &[String]) {
        if let Some((last, above)) = path.split_last()
            && let Some(parent) = self.item_mut(above).and_then(Item::as_table_like_mut)
        {
            parent.remove(last);
        }
    }

    pub(super) fn push(&mut self, path: &[String], value: &Value) -> Result<(), ShapeFault> {
        let Some((last, above)) = path.split_last() else {
            return Err(wrong_kind(path, A_LIST));
        };
        let parent = self.table_or_new(above)?;
        let new = || match value {
            Value::Object(_) => Item::ArrayOfTables(ArrayOfTables::new()),
            _ => Item::Value(Array::new().into()),
        };
        let elements = parent.table.entry(last).or_insert_with(new);
        match (elements, value) {
            (Item::ArrayOfTables(tables), Value::Object(members)) => tables.push(to_table(members)),
            (Item::Value(toml_edit::Value::Array(array)), value) => array.push(to_value(value)),
            _ => return Err(wrong_kind(path, A_LIST)),
        }
        Ok(())
    }

    pub(super) fn take_out(&mut self, path: &[String], value: &Value) {
        match self.item_mut(path) {
            Some(Item::ArrayOfTables(tables)) => {
                let is_it = |table: &Table| table_to_json(table) == *value;
                let found = tables.iter().collect::<Vec<_>>();
                if let Some(index) = found.into_iter().rposition(is_it) {
                    tables.remove(index);
                }
            }
            Some(Item::Value(toml_edit::Value::Array(array))) => {
                let is_it = |element: &toml_edit::Value| value_to_json(element) == *value;
                let found = array.iter().collect::<Vec<_>>();
                if let Some(index) = found.into_iter().rposition(is_it) {
                    array.remove(index);
                }
            }
            _ => {}
        }
    }

    pub(super) fn text(&self) -> String {
        let text = self.document.to_string();
        if self.carriage_returns {
            text.replace("\r\n", "\n").replace('\n', "\r\n")
        } else {
            text
        }
    }

    fn item_mut(&mut self, path: &[String]) -> Option<&mut Item> {
        let mut item = self.document.as_item_mut();
        for name in path {
            item = item.as_table_like_mut()?.get_mut(name)?;
        }
        Some(item)
    }

    fn table_or_new(&mut self, path: &[String]) -> Result<Parent<'_>, ShapeFault> {
        let mut item = self.document.as_item_mut();
        for (depth, name) in path.iter().enumerate() {
            let here = &path[..=depth];
            let is_inline = item.is_value();
            let parent = item.as_table_like_mut();
            let parent = parent.ok_or_else(|| wrong_kind(&path[..depth], A_TABLE))?;
            item = parent.entry(name).or_insert_with(|| {
                if is_inline {
                    Item::Value(InlineTable::new().into())
                } else {
                    let mut table = Table::new();
                    // Only a heading for what is below it.
                    table.set_implicit(true);
                    Item::Table(table)
                }
            });
            if !item.is_table_like() {
                return Err(wrong_kind(here, A_TABLE));
            }
        }
        let inline = item.is_value();
        let table = item.as_table_like_mut();
        let table = table.ok_or_else(|| wrong_kind(path, A_TABLE))?;
        Ok(Parent { table, inline })
    }
}

/// A table of either spelling.
struct Parent<'a> {
    table: &'a mut dyn TableLike,
    inline: bool,
}

fn to_item(value: &Value) -> Item {
    match value {
        Value::Object(members) => Item::Table(to_table(members)),
        other => Item::Value(to_value(other)),
    }
}

fn to_table(members: &Map<String, Value>) -> Table {
    let mut table = Table::new();
    for (name, value) in members {
        if !value.is_null() {
            table.insert(name, to_item(value));
        }
    }
    table.set_implicit(!members.is_empty() && members.values().all(Value::is_object));
    table
}

fn to_value(value: &Value) -> toml_edit::Value {
    match value {
        // There is no such thing in TOML; members that are null are left out above.
        Value::Null => "".into(),
        Value::Bool(flag) => (*flag).into(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.into(),
            (None, other) => other.unwrap_or_default().into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(elements) => elements.iter().map(to_value).collect::<Array>().into(),
        Value::Object(members) => {
            let mut table = InlineTable::new();
            for (name, value) in members {
                table.insert(name, to_value(value));
            }
            table.into()
        }
    }
}

/// Whether lines end as Windows ends them. The editor of the syntax keeps no line ends, so a text in which both
/// kinds occur, perhaps within a value, could not be given back as it was.
fn ends_with_carriage_returns(text: &str) -> Result<bool, ParseFault> {
    if !text.contains("\r\n") {
        return Ok(false);
    }
    match text.split("\r\n").position(|line| line.contains('\n')) {
        None => Ok(true),
        Some(before) => Err(ParseFault {
            line: before + 1,
            column: 1,
            message: "some lines end with CRLF and some with LF; save the file with one of them"
                .to_owned(),
        }),
    }
}

fn to_json(item: &Item) -> Option<Value> {
    match item {
        Item::None => None,
        Item::Value(value) => Some(value_to_json(value)),
        Item::Table(table) => Some(table_to_json(table)),
        Item::ArrayOfTables(tables) => Some(tables.iter().map(table_to_json).collect()),
    }
}

fn table_to_json(table: &Table) -> Value {
    let members = table.iter();
    let members = members.filter_map(|(name, item)| Some((name.to_owned(), to_json(item)?)));
    Value::Object(members.collect())
}

fn value_to_json(value: &toml_edit::Value) -> Value {
    use toml_edit::Value as Toml;
    match value {
        Toml::String(text) => text.value().as_str().into(),
        Toml::Integer(number) => (*number.value()).into(),
        Toml::Float(number) => (*number.value()).into(),
        Toml::Boolean(flag) => (*flag.value()).into(),
        Toml::Datetime(time) => time.value().to_string().into(),
        Toml::Array(elements) => elements.iter().map(value_to_json).collect(),
        Toml::InlineTable(members) => {
            let members = members.iter();
            Value::Object(
                members
                    .map(|(name, value)| (name.to_owned(), value_to_json(value)))
                    .collect(),
            )
        }
    }
}
