//! What a call was decided upon besides the config, so that it can be decided again under another.
//!
//! It is kept as one small number: every record has it, and it is only read back to simulate.

use policy::{Hold, PinnedTiers, Tier};
use serde::{Deserialize, Serialize};

/// What was known of the tool and what the agent declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    pub declared_tier: Option<Tier>,
    pub audited_tier: Option<Tier>,
    /// What the tool was pinned with, where that differed from what it announced.
    pub pinned: Option<PinnedTiers>,
    pub hold: Option<Hold>,
    /// Whether the agent chose a lane. Where it could not, the tool's tier was the lane.
    pub lane_chosen: bool,
    /// Whether an intent was given at all, and which of its words could be understood.
    pub intent_given: bool,
    pub operation_type: Given,
    pub data_sensitivity: Given,
}

/// What became of a word that an agent may declare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Given {
    Absent,
    Understood,
    NotUnderstood,
}

impl Facts {
    /// The facts as a number. The order of its parts is on the disk: only ever add at the end.
    pub(crate) fn pack(&self) -> u64 {
        let mut packer = Packer::default();
        packer.put(3, tier_code(self.declared_tier));
        packer.put(3, tier_code(self.audited_tier));
        packer.put(1, self.pinned.is_some().into());
        let pinned = self.pinned.as_ref();
        packer.put(3, tier_code(pinned.and_then(|pinned| pinned.declared)));
        packer.put(3, tier_code(pinned.map(|pinned| pinned.audited)));
        packer.put(1, pinned.is_some_and(|pinned| pinned.silent).into());
        packer.put(2, hold_code(self.hold));
        packer.put(1, self.lane_chosen.into());
        packer.put(1, self.intent_given.into());
        packer.put(2, self.operation_type.code());
        packer.put(2, self.data_sensitivity.code());
        packer.number
    }

    /// The facts that a number stands for; none if it stands for nothing.
    pub(crate) fn unpack(number: u64) -> Option<Self> {
        let mut unpacker = Unpacker { number };
        let declared_tier = tier(unpacker.take(3)).ok()?;
        let audited_tier = tier(unpacker.take(3)).ok()?;
        let is_pinned = unpacker.take(1) == 1;
        let declared = tier(unpacker.take(3)).ok()?;
        let audited = tier(unpacker.take(3)).ok()?;
        let silent = unpacker.take(1) == 1;
        let pinned = match (is_pinned, audited) {
            (true, Some(audited)) => Some(PinnedTiers {
                declared,
                audited,
                silent,
            }),
            (false, None) if declared.is_none() && !silent => None,
            _ => return None,
        };
        let facts = Self {
            declared_tier,
            audited_tier,
            pinned,
            hold: hold(unpacker.take(2)).ok()?,
            lane_chosen: unpacker.take(1) == 1,
            intent_given: unpacker.take(1) == 1,
            operation_type: Given::from_code(unpacker.take(2))?,
            data_sensitivity: Given::from_code(unpacker.take(2))?,
        };
        (unpacker.number == 0).then_some(facts)
    }
}

impl Given {
    /// What became of a word: whether it was there, and whether it could be read.
    pub fn of<T>(word: Option<&str>, read: impl FnOnce(&str) -> Option<T>) -> Self {
        match word.map(read) {
            None => Self::Absent,
            Some(Some(_)) => Self::Understood,
            Some(None) => Self::NotUnderstood,
        }
    }

    fn code(self) -> u64 {
        match self {
            Self::Absent => 0,
            Self::Understood => 1,
            Self::NotUnderstood => 2,
        }
    }

    fn from_code(code: u64) -> Option<Self> {
        [Self::Absent, Self::Understood, Self::NotUnderstood]
            .into_iter()
            .find(|given| given.code() == code)
    }
}

#[derive(Default)]
struct Packer {
    number: u64,
    bits: u32,
}

impl Packer {
    fn put(&mut self, bits: u32, value: u64) {
        self.number |= value << self.bits;
        self.bits += bits;
    }
}

struct Unpacker {
    number: u64,
}

impl Unpacker {
    fn take(&mut self, bits: u32) -> u64 {
        let value = self.number & ((1 << bits) - 1);
        self.number >>= bits;
        value
    }
}

/// A number that stands for nothing.
struct Meaningless;

fn tier_code(tier: Option<Tier>) -> u64 {
    match tier {
        None => 0,
        Some(Tier::ReadOnly) => 1,
        Some(Tier::Write) => 2,
        Some(Tier::SoftDelete) => 3,
        Some(Tier::Destructive) => 4,
    }
}

fn tier(code: u64) -> Result<Option<Tier>, Meaningless> {
    let mut known = [None].into_iter().chain(Tier::ALL.map(Some));
    known
        .find(|tier| tier_code(*tier) == code)
        .ok_or(Meaningless)
}

fn hold_code(hold: Option<Hold>) -> u64 {
    match hold {
        None => 0,
        Some(Hold::Quarantined) => 1,
        Some(Hold::DefinitionChanged) => 2,
    }
}

fn hold(code: u64) -> Result<Option<Hold>, Meaningless> {
    let mut known = [None].into_iter().chain(Hold::ALL.map(Some));
    known
        .find(|hold| hold_code(*hold) == code)
        .ok_or(Meaningless)
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::option;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    fn any_tier() -> impl Strategy<Value = Tier> {
        select(Tier::ALL.to_vec())
    }

    fn any_given() -> impl Strategy<Value = Given> {
        select(vec![Given::Absent, Given::Understood, Given::NotUnderstood])
    }

    prop_compose! {
        fn any_pinned()(
            declared in option::of(any_tier()),
            audited in any_tier(),
            silent in any::<bool>(),
        ) -> PinnedTiers {
            PinnedTiers { declared, audited, silent }
        }
    }

    prop_compose! {
        pub(crate) fn any_facts()(
            declared_tier in option::of(any_tier()),
            audited_tier in option::of(any_tier()),
            pinned in option::of(any_pinned()),
            hold in option::of(select(Hold::ALL.to_vec())),
            lane_chosen in any::<bool>(),
            intent_given in any::<bool>(),
            operation_type in any_given(),
            data_sensitivity in any_given(),
        ) -> Facts {
            Facts {
                declared_tier, audited_tier, pinned, hold, lane_chosen, intent_given,
                operation_type, data_sensitivity,
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_packed_is_unpacked(facts in any_facts()) {
            prop_assert_eq!(Facts::unpack(facts.pack()), Some(facts));
        }

        #[test]
        fn every_number_stands_for_one_set_of_facts_or_for_none(number in any::<u32>()) {
            if let Some(facts) = Facts::unpack(number.into()) {
                prop_assert_eq!(facts.pack(), u64::from(number));
            }
            prop_assert_eq!(Facts::unpack(u64::from(number) << 32 | 1 << 63), None);
        }
    }
}
