//! The fixed words of a record, and what every set of fixed words has in common: a list of all of
//! them, so that a bad value can be answered with the good ones.

use policy::{DataSensitivity, OperationType, Provenance, Tier, ToolVariant};

/// A closed set of words.
pub trait Word: Copy + 'static {
    const ALL: &'static [Self];

    fn as_str(self) -> &'static str;

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|word| word.as_str() == text)
    }
}

macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$variant_meta])* #[serde(rename = $text)] $variant,)+
        }

        impl Word for $name {
            const ALL: &'static [Self] = &[$(Self::$variant),+];

            fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }

        // By hand, because the derive does not see through the macro what the words are.
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                utoipa::openapi::schema::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::String)
                    .enum_values(Some([$($text),+]))
                    .into()
            }
        }

        impl utoipa::ToSchema for $name {}

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.pad(Word::as_str(*self))
            }
        }
    };
}

pub(crate) use words;

words! {
    /// What kind of thing happened.
    RecordType {
        ToolCall = "tool_call",
        PolicyDecision = "policy_decision",
        QuarantineChange = "quarantine_change",
        ServerChange = "server_change",
        ConfigChange = "config_change",
        System = "system",
    }
}

words! {
    /// How the request reached mcpproxy.
    Source {
        Mcp = "mcp",
        Cli = "cli",
        Api = "api",
    }
}

words! {
    /// How far it has come. Every record that was `pending` ends in exactly one of the others.
    Status {
        Pending = "pending",
        Success = "success",
        Error = "error",
        Blocked = "blocked",
        Cancelled = "cancelled",
        Interrupted = "interrupted",
    }
}

impl Word for OperationType {
    const ALL: &'static [Self] = &OperationType::ALL;

    fn as_str(self) -> &'static str {
        OperationType::as_str(self)
    }
}

impl Word for DataSensitivity {
    const ALL: &'static [Self] = &DataSensitivity::ALL;

    fn as_str(self) -> &'static str {
        DataSensitivity::as_str(self)
    }
}

impl Word for ToolVariant {
    const ALL: &'static [Self] = &ToolVariant::ALL;

    fn as_str(self) -> &'static str {
        ToolVariant::as_str(self)
    }
}

impl Word for Tier {
    const ALL: &'static [Self] = &Tier::ALL;

    fn as_str(self) -> &'static str {
        Tier::as_str(self)
    }
}

impl Word for Provenance {
    const ALL: &'static [Self] = &Provenance::ALL;

    fn as_str(self) -> &'static str {
        Provenance::as_str(self)
    }
}

#[cfg(test)]
mod tests {
    use serde::Serialize;

    use super::*;

    #[test]
    fn text_and_json_agree() {
        fn check<W: Word + Serialize + PartialEq + std::fmt::Debug>() {
            for word in W::ALL {
                assert_eq!(serde_json::to_value(word).unwrap(), word.as_str());
                assert_eq!(W::parse(word.as_str()), Some(*word));
            }
            assert_eq!(W::parse("Nonsense"), None);
        }
        check::<RecordType>();
        check::<Source>();
        check::<Status>();
        check::<OperationType>();
        check::<DataSensitivity>();
        check::<ToolVariant>();
        check::<Tier>();
        check::<Provenance>();
    }
}
