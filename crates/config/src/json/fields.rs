//! An object whose keys are asked for one by one; what nobody asked for is unknown.

use super::node::Member;
use super::{JsonPath, Node, Position};
use crate::fault::{Fault, Problem};
use crate::warning::{Warning, WarningKind};

/// The members of an object that were not read yet.
pub(crate) struct Fields<'a> {
    path: JsonPath,
    position: Position,
    members: Vec<Member<'a>>,
    asked: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    pub(crate) fn of(node: &Node<'a>) -> Result<Self, Fault> {
        Ok(Self {
            path: node.path().clone(),
            position: node.position(),
            members: node.members()?,
            asked: Vec::new(),
        })
    }

    /// The value of `key`. A `null` counts as absent.
    pub(crate) fn take(&mut self, key: &'static str) -> Option<Node<'a>> {
        self.asked.push(key);
        let index = self.members.iter().position(|member| member.key == key)?;
        let value = self.members.remove(index).value;
        (value.kind() != super::Kind::Null).then_some(value)
    }

    /// The value of the one key of `keys` that is there; they are names for the same thing.
    pub(crate) fn take_one_of(&mut self, keys: &[&'static str]) -> Result<Option<Node<'a>>, Fault> {
        let mut found: Option<(&'static str, Node<'a>)> = None;
        for &key in keys {
            let Some(value) = self.take(key) else {
                continue;
            };
            if let Some((first, _)) = found {
                return Err(value.fault(Problem::SameMeaning { first, second: key }));
            }
            found = Some((key, value));
        }
        Ok(found.map(|(_, value)| value))
    }

    /// Reads the value of `key`, if there is one.
    pub(crate) fn read<T>(
        &mut self,
        key: &'static str,
        reader: impl FnOnce(&Node<'a>) -> Result<T, Fault>,
    ) -> Result<Option<T>, Fault> {
        self.take(key).as_ref().map(reader).transpose()
    }

    /// What is wrong with the object as a whole.
    pub(crate) fn fault(&self, problem: Problem) -> Fault {
        Fault::new(self.path.clone(), self.position, problem)
    }

    /// Warns of every key that was never asked for.
    pub(crate) fn finish(self, warnings: &mut Vec<Warning>) {
        for member in self.members {
            let suggestion = closest(&member.key, self.asked.iter().copied());
            warnings.push(Warning {
                path: member.value.path().clone(),
                position: member.position,
                kind: WarningKind::UnknownKey { suggestion },
            });
        }
    }
}

/// The candidate that `given` was probably meant to be.
fn closest<'c>(given: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    // Below this, Jaro-Winkler calls keys similar that merely share some letters.
    const SIMILAR: f64 = 0.85;
    let fold = |text: &str| text.replace(['_', '-'], "").to_lowercase();
    let given = fold(given);
    candidates
        .map(|candidate| (strsim::jaro_winkler(&given, &fold(candidate)), candidate))
        .filter(|(similarity, _)| *similarity >= SIMILAR)
        .max_by(|(left, _), (right, _)| left.total_cmp(right))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_likely_keys_are_suggested() {
        let keys = [
            "listen",
            "data_dir",
            "mcpServers",
            "tool_overrides",
            "activity",
        ];
        let suggest = |given: &str| closest(given, keys.into_iter());
        assert_eq!(suggest("listne"), Some("listen"));
        assert_eq!(suggest("mcp_servers"), Some("mcpServers"));
        assert_eq!(suggest("dataDir"), Some("data_dir"));
        assert_eq!(suggest("tool_override"), Some("tool_overrides"));
        assert_eq!(suggest("alwaysAllow"), None);
        assert_eq!(suggest(""), None);
    }
}
