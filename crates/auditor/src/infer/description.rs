//! What the description of a tool says: the verb it leads with, and phrases that claim something.

use crate::lexicon::{Claim, Deed, Lexicon, Verb};
use crate::text::{Break, Words};

/// Bytes of a description that are read. What a tool does is said at the start; what comes later
/// is usage, examples and other tools.
pub(super) const LIMIT: usize = 1_500;

/// Words before the leading verb that are skipped at most.
const MAX_FILLERS: usize = 14;

/// Words of a description in which a tool that does several things may name them.
const MIXED_WINDOW: usize = 40;

/// The worst of the verbs that a sentence leads with: "Creates or updates", "Add, move, delete".
pub(super) fn leading_verb(words: &Words, lexicon: &Lexicon) -> Option<Verb> {
    let end = words.first_sentence();
    let mut at = (0..end.min(MAX_FILLERS)).find(|index| {
        !words
            .get(*index)
            .is_some_and(|word| lexicon.is_filler(word))
    })?;
    let mut worst = lexicon.any_form(words.get(at)?)?;
    loop {
        at += 1;
        let joined = words.break_before(at) == Break::Comma;
        let conjunction = matches!(words.get(at), Some("or" | "and" | "then"));
        at += usize::from(conjunction);
        if at >= end || !(joined || conjunction) {
            return Some(worst);
        }
        let Some(verb) = words.get(at).and_then(|word| lexicon.any_form(word)) else {
            return Some(worst);
        };
        // "Fetches and charts prices" only fetches: a noun that could be a verb joins nothing.
        if !verb.may_be_noun {
            worst = std::cmp::max_by_key(worst, verb, |verb| verb.deed);
        }
    }
}

/// The first verb of the first sentence that is inflected, for one that begins with a noun:
/// "Weather tool for retrieving forecasts".
pub(super) fn later_verb(words: &Words, lexicon: &Lexicon) -> Option<Verb> {
    let sentence = words.iter().take(words.first_sentence().min(MAX_FILLERS));
    let mut verbs = sentence.filter_map(|word| lexicon.inflected(word));
    verbs.find(|verb| !verb.may_be_noun)
}

/// Whether some sentence begins with what is returned.
pub(super) fn says_returns(words: &Words) -> bool {
    let starts = |index| index == 0 || words.break_before(index) == Break::Sentence;
    let mut words = words.iter().enumerate();
    words.any(|(index, word)| matches!(word, "returns" | "return") && starts(index))
}

/// The worst verb anywhere near the start, for a tool that says it does several things.
pub(super) fn worst_mentioned(words: &Words, lexicon: &Lexicon) -> Option<Verb> {
    let verbs = words.iter().take(MIXED_WINDOW);
    let verbs = verbs.filter_map(|word| lexicon.any_form(word));
    let sure = verbs.filter(|verb| !verb.may_be_noun && verb.deed > Deed::Read);
    sure.filter(|verb| verb.deed != Deed::Mixed)
        .max_by_key(|verb| verb.deed)
}

/// The claims of a description, each with its phrase and whether the first sentence makes it.
pub(super) fn claims(
    words: &Words,
    lexicon: &'static Lexicon,
) -> impl Iterator<Item = (Claim, &'static str, bool)> {
    let end = words.first_sentence();
    let found = lexicon.claims.find(words);
    found
        .filter(|found| !negated(words, found.start))
        .map(move |found| (found.label.0, found.label.1, found.start < end))
}

/// "is not reversible" claims nothing of what "reversible" does.
fn negated(words: &Words, start: usize) -> bool {
    let before = start.checked_sub(1).and_then(|index| words.get(index));
    matches!(
        before,
        Some("not" | "non" | "never" | "cannot" | "can't" | "isn't" | "no")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lead(text: &str) -> Option<&'static str> {
        let words = Words::of_prose(text, LIMIT);
        leading_verb(&words, Lexicon::get()).map(|verb| verb.word)
    }

    fn claimed(text: &str) -> Vec<Claim> {
        let words = Words::of_prose(text, LIMIT);
        claims(&words, Lexicon::get())
            .map(|(claim, _, _)| claim)
            .collect()
    }

    #[test]
    fn fillers_before_the_verb_are_skipped() {
        assert_eq!(lead("Deletes a user"), Some("delete"));
        assert_eq!(lead("Use this tool to create a page."), Some("create"));
        assert_eq!(lead("A tool that allows you to list pages"), Some("list"));
        assert_eq!(lead("Weather for a city"), None);
    }

    #[test]
    fn the_worst_of_joined_verbs_leads() {
        assert_eq!(lead("Create, update or delete a label"), Some("delete"));
        assert_eq!(lead("List pages. Delete nothing"), Some("list"));
    }

    #[test]
    fn what_is_denied_is_not_claimed() {
        assert_eq!(claimed("This cannot be undone"), [Claim::Irreversible]);
        assert_eq!(claimed("This can be undone later"), [Claim::Soft]);
        assert_eq!(claimed("It is not recoverable"), [Claim::Irreversible]);
        assert_eq!(claimed("A read-only query"), [Claim::ReadOnly]);
    }

    #[test]
    fn a_mixed_tool_names_its_deeds() {
        let words = Words::of_prose("Manage a subscription: watch, mute or delete it", LIMIT);
        let worst = worst_mentioned(&words, Lexicon::get()).unwrap();
        assert_eq!(worst.word, "delete");
    }
}
