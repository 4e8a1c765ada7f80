//! Changes to a document, each with what takes it back.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::document::{Document, ShapeFault};

/// One thing we want in a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Edit {
    /// An object with these members and without those; what else it has stays.
    Entry {
        path: Vec<String>,
        set: Map<String, Value>,
        unset: Vec<&'static str>,
    },
    /// A list with this element.
    Element { path: Vec<String>, value: Value },
    /// No such member, provided that it is as it was read.
    Departure { path: Vec<String>, written: Value },
}

/// One step back. Steps are taken in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub(crate) enum Reversal {
    /// Take out what we put in.
    Remove { path: Vec<String> },
    /// Put back what was there.
    Restore { path: Vec<String>, value: Value },
    /// Take our element out of a list.
    TakeOut { path: Vec<String>, value: Value },
    /// Take out a container that we made, if nobody uses it.
    RemoveIfEmpty { path: Vec<String> },
    /// Put back a member that left the file, unless somebody has put another one in its place.
    Return { path: Vec<String>, value: Value },
}

impl Edit {
    /// Makes the change, unless the document has it already; says how to take it back.
    pub(crate) fn apply(&self, document: &mut Document) -> Result<Vec<Reversal>, ShapeFault> {
        match self {
            Self::Entry { path, set, unset } => apply_entry(document, path, set, unset),
            Self::Element { path, value } => apply_element(document, path, value),
            Self::Departure { path, written } => apply_departure(document, path, written),
        }
    }
}

impl Reversal {
    pub(crate) fn apply(&self, document: &mut Document) -> Result<(), ShapeFault> {
        match self {
            Self::Remove { path } => document.remove(path),
            Self::Restore { path, value } => document.set(path, value),
            Self::TakeOut { path, value } => document.take_out(path, value),
            Self::RemoveIfEmpty { path } => match document.get(path)? {
                Some(Value::Object(members)) if members.is_empty() => document.remove(path),
                Some(Value::Array(elements)) if elements.is_empty() => document.remove(path),
                _ => Ok(()),
            },
            Self::Return { path, value } => match document.get(path)? {
                Some(_) => Ok(()),
                None => document.set(path, value),
            },
        }
    }

    /// The member that this step puts back into a file that it had left.
    pub(crate) fn returns(&self) -> Option<(&[String], &Value)> {
        match self {
            Self::Return { path, value } => Some((path, value)),
            _ => None,
        }
    }
}

fn apply_entry(
    document: &mut Document,
    path: &[String],
    set: &Map<String, Value>,
    unset: &[&'static str],
) -> Result<Vec<Reversal>, ShapeFault> {
    let Some(present) = document.get(path)? else {
        let mut reversals = vec![Reversal::Remove {
            path: path.to_owned(),
        }];
        reversals.extend(new_containers(document, path)?);
        document.set(path, &Value::Object(set.clone()))?;
        return Ok(reversals);
    };
    let mut reversals = Vec::new();
    for (name, value) in set {
        let previous = present.get(name);
        if previous == Some(value) {
            continue;
        }
        let path = [path, std::slice::from_ref(name)].concat();
        document.set(&path, value)?;
        reversals.push(match previous {
            Some(previous) => Reversal::Restore {
                path,
                value: previous.clone(),
            },
            None => Reversal::Remove { path },
        });
    }
    for name in unset {
        if let Some(previous) = present.get(*name) {
            let path = [path, &[(*name).to_owned()]].concat();
            document.remove(&path)?;
            reversals.push(Reversal::Restore {
                path,
                value: previous.clone(),
            });
        }
    }
    reversals.reverse();
    Ok(reversals)
}

fn apply_element(
    document: &mut Document,
    path: &[String],
    value: &Value,
) -> Result<Vec<Reversal>, ShapeFault> {
    let present = document.get(path)?;
    let is_there = |list: &Value| list.as_array().is_some_and(|list| list.contains(value));
    if present.as_ref().is_some_and(is_there) {
        return Ok(Vec::new());
    }
    let mut reversals = vec![Reversal::TakeOut {
        path: path.to_owned(),
        value: value.clone(),
    }];
    if present.is_none() {
        reversals.push(Reversal::RemoveIfEmpty {
            path: path.to_owned(),
        });
        reversals.extend(new_containers(document, path)?);
    }
    document.push(path, value)?;
    Ok(reversals)
}

fn apply_departure(
    document: &mut Document,
    path: &[String],
    written: &Value,
) -> Result<Vec<Reversal>, ShapeFault> {
    if document.get(path)?.as_ref() != Some(written) {
        return Ok(Vec::new());
    }
    document.remove(path)?;
    Ok(vec![Reversal::Return {
        path: path.to_owned(),
        value: written.clone(),
    }])
}

/// The objects above a path that have to be made for it, the innermost first.
fn new_containers(document: &Document, path: &[String]) -> Result<Vec<Reversal>, ShapeFault> {
    let mut containers = Vec::new();
    for depth in (1..path.len()).rev() {
        let above = &path[..depth];
        if document.get(above)?.is_some() {
            break;
        }
        containers.push(Reversal::RemoveIfEmpty {
            path: above.to_owned(),
        });
    }
    Ok(containers)
}
