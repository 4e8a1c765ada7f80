//! Everything about a tool that speaks for a tier.

use super::clue::Clue;
use super::description;
use super::name::{NameSays, read_name};
use super::parameters::ParametersSay;
use crate::ToolFacts;
use crate::lexicon::{Claim, Lexicon, Verb};
use crate::text::Words;

/// A verb that says what a tool does, and where it stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Opinion {
    pub(super) verb: Verb,
    pub(super) clue: Clue,
}

/// A phrase of the description, and whether the first sentence has one of its kind.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Phrase {
    pub(super) text: Option<&'static str>,
    pub(super) at_once: bool,
}

#[derive(Debug)]
pub(super) struct Evidence {
    pub(super) name: NameSays,
    /// A word in the name for something that can be run.
    pub(super) code_noun: Option<&'static str>,
    /// A word in the name for something that is lost when it is written over.
    pub(super) unversioned_noun: Option<&'static str>,
    /// The verb that the description, or else the title, leads with.
    pub(super) lead: Option<Opinion>,
    /// A verb further on, when the description leads with none.
    pub(super) later: Option<Verb>,
    /// The worst verb near the start of the description.
    pub(super) mentioned: Option<Verb>,
    /// A word for something that can be run in the first sentence.
    pub(super) mentions_code: Option<&'static str>,
    pub(super) says_returns: bool,
    pub(super) irreversible: Phrase,
    pub(super) overwrites: Phrase,
    pub(super) soft: Phrase,
    pub(super) read_only: Phrase,
    pub(super) parameters: ParametersSay,
    pub(super) read_server: Option<&'static str>,
}

impl Evidence {
    pub(super) fn gather(tool: &ToolFacts<'_>) -> Self {
        let lexicon = Lexicon::get();
        let server = Words::of_identifier(tool.server);
        let name = Words::of_identifier(tool.name);
        let description = Words::of_prose(tool.description, description::LIMIT);
        let said = description::leading_verb(&description, lexicon);
        let said = said.map(|verb| Opinion {
            verb,
            clue: Clue::Description(verb.word),
        });
        let first_sentence = description.iter().take(description.first_sentence());
        let mut evidence = Self {
            name: read_name(&name, &server, lexicon),
            code_noun: name.iter().rev().find_map(|word| lexicon.code_noun(word)),
            unversioned_noun: name.iter().find_map(|word| lexicon.unversioned_noun(word)),
            lead: said.or_else(|| title_verb(tool, lexicon)),
            later: description::later_verb(&description, lexicon),
            mentioned: description::worst_mentioned(&description, lexicon),
            mentions_code: first_sentence
                .into_iter()
                .find_map(|word| lexicon.code_noun(word)),
            says_returns: description::says_returns(&description),
            irreversible: Phrase::default(),
            overwrites: Phrase::default(),
            soft: Phrase::default(),
            read_only: Phrase::default(),
            parameters: ParametersSay::read(tool.input_schema, lexicon),
            read_server: server.iter().find_map(|word| lexicon.read_server(word)),
        };
        for (claim, text, at_once) in description::claims(&description, lexicon) {
            evidence.phrase_mut(claim).note(text, at_once);
        }
        evidence
    }

    fn phrase_mut(&mut self, claim: Claim) -> &mut Phrase {
        match claim {
            Claim::Irreversible => &mut self.irreversible,
            Claim::Overwrites => &mut self.overwrites,
            Claim::Soft => &mut self.soft,
            Claim::ReadOnly => &mut self.read_only,
        }
    }
}

impl Phrase {
    /// The phrase, if the first sentence has it: later ones often speak of other tools.
    pub(super) fn said_at_once(self) -> Option<&'static str> {
        self.text.filter(|_| self.at_once)
    }

    fn note(&mut self, text: &'static str, at_once: bool) {
        self.text.get_or_insert(text);
        self.at_once |= at_once;
    }
}

fn title_verb(tool: &ToolFacts<'_>, lexicon: &Lexicon) -> Option<Opinion> {
    tool.titles().find_map(|title| {
        let words = Words::of_prose(title, description::LIMIT);
        let verb = description::leading_verb(&words, lexicon)?;
        let clue = Clue::Title(verb.word);
        Some(Opinion { verb, clue })
    })
}
