//! The words the auditor judges by, read once from `data/words.txt`.

use std::sync::OnceLock;

use policy::Tier;

use crate::hash::{WordMap, WordSet};
use crate::pattern::Patterns;

const WORDS: &str = include_str!("../data/words.txt");

/// What a verb says that a tool does, from harmless to harmful.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Deed {
    /// Works something out from its arguments without running them.
    Analyse,
    Read,
    Write,
    /// Does several things; which ones must be found elsewhere.
    Mixed,
    /// Runs something; what, must be found elsewhere.
    Execute,
    SoftDelete,
    Destroy,
}

/// A verb of the lexicon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Verb {
    pub(crate) word: &'static str,
    pub(crate) deed: Deed,
    /// Whether the word is as likely a noun, except first or last in a name.
    pub(crate) may_be_noun: bool,
}

/// What a phrase in a description says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Claim {
    Irreversible,
    Overwrites,
    Soft,
    ReadOnly,
}

/// What the name of a parameter says about its tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    Code,
    Mutates,
    Permanent,
    Soft,
    Payload,
    Action,
}

#[derive(Debug, Default)]
pub(crate) struct Lexicon {
    verbs: WordMap<&'static str, Verb>,
    /// Third person and gerund, as descriptions use them.
    inflected: WordMap<String, Verb>,
    roles: WordMap<&'static str, Vec<Role>>,
    read_nouns: WordSet<&'static str>,
    code_nouns: WordSet<&'static str>,
    unversioned_nouns: WordSet<&'static str>,
    overwriting_verbs: WordSet<&'static str>,
    read_servers: WordSet<&'static str>,
    fillers: WordSet<&'static str>,
    pub(crate) claims: Patterns<(Claim, &'static str)>,
}

#[derive(Debug, Clone, Copy)]
enum Group {
    Verbs(Deed, bool),
    Roles(Role),
    Claims(Claim),
    ReadNouns,
    CodeNouns,
    UnversionedNouns,
    OverwritingVerbs,
    ReadServers,
    Fillers,
}

impl Deed {
    /// The least tier of a tool that does this.
    pub(crate) fn tier(self) -> Tier {
        match self {
            Self::Analyse | Self::Read => Tier::ReadOnly,
            Self::Write | Self::Mixed | Self::Execute => Tier::Write,
            Self::SoftDelete => Tier::SoftDelete,
            Self::Destroy => Tier::Destructive,
        }
    }
}

impl Lexicon {
    pub(crate) fn get() -> &'static Self {
        static LEXICON: OnceLock<Lexicon> = OnceLock::new();
        LEXICON.get_or_init(|| Self::parse(WORDS))
    }

    fn parse(text: &'static str) -> Self {
        let mut lexicon = Self::default();
        let mut group = None;
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(header) = line
                .strip_prefix('[')
                .and_then(|line| line.strip_suffix(']'))
            {
                group = Group::named(header);
                continue;
            }
            let entries = line
                .split(',')
                .map(str::trim)
                .filter(|entry| !entry.is_empty());
            for entry in entries {
                if let Some(group) = group {
                    lexicon.add(group, entry);
                }
            }
        }
        lexicon
    }

    fn add(&mut self, group: Group, entry: &'static str) {
        match group {
            Group::Verbs(deed, may_be_noun) => {
                let verb = Verb {
                    word: entry,
                    deed,
                    may_be_noun,
                };
                self.verbs.insert(entry, verb);
                for form in inflections(entry) {
                    self.inflected.insert(form, verb);
                }
            }
            Group::Roles(role) => self.roles.entry(entry).or_default().push(role),
            Group::Claims(claim) => self.claims.add(entry, (claim, entry)),
            Group::ReadNouns => drop(self.read_nouns.insert(entry)),
            Group::CodeNouns => drop(self.code_nouns.insert(entry)),
            Group::UnversionedNouns => drop(self.unversioned_nouns.insert(entry)),
            Group::OverwritingVerbs => drop(self.overwriting_verbs.insert(entry)),
            Group::ReadServers => drop(self.read_servers.insert(entry)),
            Group::Fillers => drop(self.fillers.insert(entry)),
        }
    }

    /// A verb in the form that names use.
    pub(crate) fn verb(&self, word: &str) -> Option<Verb> {
        self.verbs.get(word).copied()
    }

    /// A verb in any form that descriptions use.
    pub(crate) fn any_form(&self, word: &str) -> Option<Verb> {
        self.verb(word).or_else(|| self.inflected(word))
    }

    /// A verb in a form that only descriptions use.
    pub(crate) fn inflected(&self, word: &str) -> Option<Verb> {
        self.inflected.get(word).copied()
    }

    /// What a parameter says, with its name as the lexicon has it.
    pub(crate) fn roles(&self, parameter: &str) -> Option<(&'static str, &[Role])> {
        let (name, roles) = self.roles.get_key_value(parameter)?;
        Some((name, roles))
    }

    pub(crate) fn read_noun(&self, word: &str) -> Option<&'static str> {
        self.read_nouns.get(word).copied()
    }

    pub(crate) fn code_noun(&self, word: &str) -> Option<&'static str> {
        self.code_nouns.get(word).copied()
    }

    /// Something that keeps no earlier version when it is written over.
    pub(crate) fn unversioned_noun(&self, word: &str) -> Option<&'static str> {
        self.unversioned_nouns.get(word).copied()
    }

    pub(crate) fn overwrites(&self, verb: Verb) -> bool {
        self.overwriting_verbs.contains(verb.word)
    }

    pub(crate) fn read_server(&self, word: &str) -> Option<&'static str> {
        self.read_servers.get(word).copied()
    }

    pub(crate) fn is_filler(&self, word: &str) -> bool {
        self.fillers.contains(word)
    }
}

impl Group {
    fn named(header: &str) -> Option<Self> {
        if let Some((deed, kind)) = header.split_once('.') {
            let may_be_noun = kind == "either";
            let deed = match deed {
                "read" => Some(Deed::Read),
                "analyse" => Some(Deed::Analyse),
                "write" => Some(Deed::Write),
                "soft" => Some(Deed::SoftDelete),
                "destroy" => Some(Deed::Destroy),
                "execute" => Some(Deed::Execute),
                "mixed" => Some(Deed::Mixed),
                _ => None,
            };
            if let Some(deed) = deed {
                return matches!(kind, "verb" | "either").then_some(Self::Verbs(deed, may_be_noun));
            }
        }
        Some(match header {
            "noun.read" => Self::ReadNouns,
            "noun.code" => Self::CodeNouns,
            "noun.unversioned" => Self::UnversionedNouns,
            "verb.overwrites" => Self::OverwritingVerbs,
            "server.read" => Self::ReadServers,
            "parameter.code" => Self::Roles(Role::Code),
            "parameter.mutates" => Self::Roles(Role::Mutates),
            "parameter.permanent" => Self::Roles(Role::Permanent),
            "parameter.soft" => Self::Roles(Role::Soft),
            "parameter.payload" => Self::Roles(Role::Payload),
            "parameter.action" => Self::Roles(Role::Action),
            "phrase.irreversible" => Self::Claims(Claim::Irreversible),
            "phrase.overwrites" => Self::Claims(Claim::Overwrites),
            "phrase.soft" => Self::Claims(Claim::Soft),
            "phrase.read-only" => Self::Claims(Claim::ReadOnly),
            "filler" => Self::Fillers,
            _ => return None,
        })
    }
}

/// "creates" and "creating" for "create". Doubled consonants are tried too, so that a form or two
/// that nobody writes is known; that does no harm.
fn inflections(verb: &str) -> [String; 3] {
    let ends_in_sibilant = ["s", "x", "z", "ch", "sh", "o"]
        .iter()
        .any(|end| verb.ends_with(end));
    let consonant_y = verb
        .strip_suffix('y')
        .filter(|stem| !stem.ends_with(['a', 'e', 'o', 'u']));
    let third_person = match consonant_y {
        Some(stem) => format!("{stem}ies"),
        None if ends_in_sibilant => format!("{verb}es"),
        None => format!("{verb}s"),
    };
    let stem = verb
        .strip_suffix('e')
        .filter(|stem| !stem.ends_with('e'))
        .unwrap_or(verb);
    let doubled = verb.chars().last().unwrap_or_default();
    [
        third_person,
        format!("{stem}ing"),
        format!("{verb}{doubled}ing"),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn every_group_of_the_file_is_known_and_explained() {
        let mut explained = false;
        for line in WORDS.lines() {
            if let Some(header) = line.strip_prefix('[') {
                let header = header.trim_end_matches(']');
                assert!(Group::named(header).is_some(), "{header} is not a group");
                assert!(explained, "{header} has no comment");
            }
            explained = line.starts_with('#') || explained && !line.is_empty();
        }
    }

    #[test]
    fn no_verb_stands_in_two_groups() {
        let mut seen = HashMap::new();
        let mut group = "";
        for line in WORDS.lines().filter(|line| !line.starts_with('#')) {
            if line.starts_with('[') {
                group = line;
            } else if matches!(
                Group::named(group.trim_matches(['[', ']'])),
                Some(Group::Verbs(..))
            ) {
                for word in line
                    .split(',')
                    .map(str::trim)
                    .filter(|word| !word.is_empty())
                {
                    assert!(
                        word.chars().all(char::is_alphanumeric),
                        "{word} is not one word"
                    );
                    assert_eq!(seen.insert(word, group), None, "{word} stands twice");
                }
            }
        }
        assert!(seen.len() > 300);
    }

    #[test]
    fn descriptions_may_inflect_a_verb() {
        let lexicon = Lexicon::get();
        for form in [
            "create", "creates", "creating", "fetches", "copies", "getting", "deploys",
        ] {
            assert!(lexicon.any_form(form).is_some(), "{form}");
        }
        assert_eq!(lexicon.any_form("removes").unwrap().word, "remove");
        assert!(lexicon.verb("creates").is_none(), "in a name it is a noun");
    }

    #[test]
    fn worse_deeds_are_greater() {
        assert!(Deed::Analyse < Deed::Write && Deed::Write < Deed::Destroy);
        assert!(Deed::Read.tier() < Deed::Execute.tier());
    }
}
