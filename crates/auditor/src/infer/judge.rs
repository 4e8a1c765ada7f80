//! From evidence to a verdict.

use policy::Tier;

use super::clue::Clue;
use super::evidence::{Evidence, Opinion};
use super::name::NameSays;
use crate::lexicon::{Deed, Lexicon};

#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) tier: Tier,
    pub(super) confidence: f32,
    pub(super) clues: Vec<Clue>,
}

impl Verdict {
    pub(super) fn of(evidence: &Evidence) -> Self {
        let mut verdict = Self::by_verbs(evidence).unwrap_or_else(|| Self::without_verbs(evidence));
        verdict.hear_choices(evidence);
        verdict.hear_parameters(evidence);
        verdict.hear_phrases(evidence);
        verdict.tell_soft_from_hard(evidence);
        verdict
    }

    /// The verdict of the verb in the name and the one the description leads with.
    fn by_verbs(evidence: &Evidence) -> Option<Self> {
        let named = evidence.name.verb().map(|verb| Opinion {
            verb,
            clue: Clue::Name(verb.word),
        });
        let (opinion, other, confidence) = match (named, evidence.lead) {
            (Some(named), Some(lead)) => weigh(named, lead),
            (Some(named), None) => (named, None, 0.85),
            (None, Some(lead)) if matches!(evidence.name, NameSays::ReadNoun(_)) => {
                (lead, None, 0.8)
            }
            (None, Some(lead)) => (lead, None, 0.75),
            (None, None) => return None,
        };
        let mut verdict = Self::new(opinion.verb.deed.tier(), confidence, opinion.clue);
        verdict.clues.extend(other.map(|other| other.clue));
        verdict.find_out(opinion.verb.deed, evidence);
        Some(verdict)
    }

    /// What a verb alone does not tell is in the other words.
    fn find_out(&mut self, deed: Deed, evidence: &Evidence) {
        match deed {
            Deed::Mixed => {
                self.confidence = self.confidence.min(0.6);
                if let Some(verb) = evidence.mentioned {
                    self.raise(verb.deed.tier(), Clue::Description(verb.word), 0.6);
                }
            }
            Deed::Execute => {
                let code = evidence.parameters.code.map(Clue::Parameter);
                let code = code.or(evidence.code_noun.map(Clue::Name));
                let read_only = evidence.read_only.said_at_once();
                match (code, read_only) {
                    (_, Some(phrase)) => {
                        self.tier = Tier::ReadOnly;
                        self.confidence = 0.6;
                        self.clues.push(Clue::Description(phrase));
                    }
                    (Some(clue), None) => self.raise(Tier::Destructive, clue, 0.6),
                    (None, None) => {}
                }
            }
            Deed::Analyse | Deed::Read | Deed::Write | Deed::SoftDelete | Deed::Destroy => {}
        }
    }

    /// The verdict when neither the name nor the start of the description has a verb.
    fn without_verbs(evidence: &Evidence) -> Self {
        let parameters = &evidence.parameters;
        if let NameSays::ReadNoun(noun) = evidence.name {
            return Self::new(Tier::ReadOnly, 0.7, Clue::Name(noun));
        }
        if let Some((verb, parameter)) = parameters.worst_choice {
            let verb_clue = Clue::Choice {
                verb: verb.word,
                parameter,
            };
            return Self::new(verb.deed.tier(), 0.7, verb_clue);
        }
        if let Some(verb) = evidence.later {
            return Self::new(verb.deed.tier(), 0.6, Clue::Description(verb.word));
        }
        if let Some(phrase) = evidence.read_only.said_at_once() {
            return Self::new(Tier::ReadOnly, 0.6, Clue::Description(phrase));
        }
        if let Some(parameter) = parameters.code.or(parameters.payload) {
            return Self::new(Tier::Write, 0.5, Clue::Parameter(parameter));
        }
        if evidence.says_returns {
            return Self::new(Tier::ReadOnly, 0.5, Clue::Description("returns"));
        }
        match evidence.read_server {
            Some(server) => Self::new(Tier::ReadOnly, 0.4, Clue::Server(server)),
            None => Self::new(Tier::Write, 0.3, Clue::Nothing),
        }
    }

    /// A tool with a choice of actions is as harmful as the worst of them.
    fn hear_choices(&mut self, evidence: &Evidence) {
        if let Some((verb, parameter)) = evidence.parameters.worst_choice {
            let clue = Clue::Choice {
                verb: verb.word,
                parameter,
            };
            self.raise(verb.deed.tier(), clue, 0.8);
        }
    }

    fn hear_parameters(&mut self, evidence: &Evidence) {
        let parameters = &evidence.parameters;
        if self.tier == Tier::ReadOnly {
            let named = evidence.name.verb().map(|verb| verb.deed);
            let leads = evidence.lead.map(|lead| lead.verb.deed);
            let analyses = named.or(leads) == Some(Deed::Analyse);
            let vouched = evidence.read_only.said_at_once().is_some();
            let runs = parameters.code.map(Clue::Parameter);
            let executes = leads == Some(Deed::Execute);
            let runs = runs.or(evidence
                .mentions_code
                .filter(|_| executes)
                .map(Clue::Description));
            let runs = runs.filter(|_| !analyses && !vouched);
            if let Some(clue) = runs.or(parameters.mutates.map(Clue::Parameter)) {
                self.raise(Tier::Write, clue, 0.5);
            }
        }
    }

    fn hear_phrases(&mut self, evidence: &Evidence) {
        if self.tier != Tier::Write {
            return;
        }
        if let Some(phrase) = evidence.irreversible.text.or(evidence.overwrites.text) {
            self.raise(Tier::Destructive, Clue::Description(phrase), 0.65);
        } else if let (Some(verb), Some(noun)) = (evidence.name.verb(), evidence.unversioned_noun)
            && Lexicon::get().overwrites(verb)
        {
            self.raise(Tier::Destructive, Clue::Name(noun), 0.6);
        }
    }

    fn tell_soft_from_hard(&mut self, evidence: &Evidence) {
        let (soft, irreversible) = (evidence.soft, evidence.irreversible);
        if self.tier == Tier::Destructive {
            // "Moves to the bin. Use purge to delete permanently" is soft, the reverse is not.
            let hard = irreversible.at_once || irreversible.text.is_some() && !soft.at_once;
            let clue = soft.text.map(Clue::Description);
            let clue = clue.or(evidence.parameters.soft.map(Clue::Parameter));
            if let Some(clue) = clue.filter(|_| !hard) {
                self.tier = Tier::SoftDelete;
                self.confidence = self.confidence.min(0.7);
                self.clues.push(clue);
            }
        }
        if self.tier == Tier::SoftDelete {
            let hard = irreversible.said_at_once().map(Clue::Description);
            let hard = hard.or(evidence.parameters.permanent.map(Clue::Parameter));
            if let Some(clue) = hard {
                self.raise(Tier::Destructive, clue, 0.7);
            }
        }
    }

    fn new(tier: Tier, confidence: f32, clue: Clue) -> Self {
        Self {
            tier,
            confidence,
            clues: vec![clue],
        }
    }

    /// Moves up to `tier`, with what made it so; never down.
    fn raise(&mut self, tier: Tier, clue: Clue, confidence: f32) {
        if tier > self.tier {
            self.tier = tier;
            self.confidence = self.confidence.min(confidence);
            self.clues.push(clue);
        }
    }
}

/// Whose opinion counts, whose else is worth naming, and how sure that is.
fn weigh(named: Opinion, lead: Opinion) -> (Opinion, Option<Opinion>, f32) {
    let looks = named.verb.deed.tier() == Tier::ReadOnly;
    let sure = |opinion: Opinion| !opinion.verb.may_be_noun;
    // The first word of a sentence is a verb by its place; "runs", "takes" and their like are
    // still too weak to speak against a name.
    let leads = sure(lead) || lead.verb.deed.tier() != Tier::Write;
    match lead.verb.deed.tier().cmp(&named.verb.deed.tier()) {
        std::cmp::Ordering::Equal => {
            let other = (lead.verb.word != named.verb.word).then_some(lead);
            (named, other, 0.95)
        }
        // "Runs a query": running is how it looks, unless what it runs says otherwise.
        _ if looks && lead.verb.deed == Deed::Execute => (named, None, 0.75),
        // A noun at the end of a name is a weaker word than the verb of a sentence.
        std::cmp::Ordering::Less if leads && !sure(named) && !removes(named) => (lead, None, 0.7),
        std::cmp::Ordering::Less => (named, None, 0.8),
        std::cmp::Ordering::Greater if sure(named) && !leads => (named, None, 0.8),
        std::cmp::Ordering::Greater => (lead, Some(named), 0.6),
    }
}

fn removes(opinion: Opinion) -> bool {
    opinion.verb.deed.tier() > Tier::Write
}
