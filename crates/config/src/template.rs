//! Config values that may refer to the environment: `${env:NAME}`.
//!
//! A value stays as it was written, so saving a config never writes a resolved secret. It is
//! resolved when an upstream starts. `$${env:NAME}` stands for the text `${env:NAME}`.

use std::fmt;
use std::str::FromStr;

use crate::secret::MASK;

const OPEN: &str = "${env:";
const ESCAPED_OPEN: &str = "$${env:";

/// A value as written in the config, with its references found.
#[derive(Clone, PartialEq, Eq)]
pub struct Template {
    written: String,
    parts: Vec<Part>,
}

/// A [`Template`] whose text is a secret unless it is nothing but a reference.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretTemplate(Template);

#[derive(Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    Variable(String),
}

/// Why a text is not a valid template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error("`${{env:` has no closing `}}`")]
    Unclosed,
    #[error("`${{env:{name}}}` does not name an environment variable")]
    Name { name: String },
}

/// An environment variable that a template refers to and that has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("environment variable {name} is not set")]
pub struct MissingVariable {
    pub name: String,
}

impl Template {
    /// A template that resolves to exactly `text`, whatever `text` looks like.
    pub fn literal(text: &str) -> Self {
        let parts = match text {
            "" => Vec::new(),
            _ => vec![Part::Literal(text.into())],
        };
        Self {
            written: text.replace(OPEN, ESCAPED_OPEN),
            parts,
        }
    }

    /// The text as the config has it, references and all.
    pub fn written(&self) -> &str {
        &self.written
    }

    /// Whether the whole text is one reference, so that it gives nothing away.
    pub fn is_reference(&self) -> bool {
        matches!(self.parts.as_slice(), [Part::Variable(_)])
    }

    /// The names of the variables it refers to, in order.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Variable(name) => Some(name.as_str()),
            Part::Literal(_) => None,
        })
    }

    /// The text with every reference replaced by what `lookup` says.
    pub fn resolve(
        &self,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<String, MissingVariable> {
        let mut resolved = String::with_capacity(self.written.len());
        for part in &self.parts {
            match part {
                Part::Literal(text) => resolved.push_str(text),
                Part::Variable(name) => match lookup(name) {
                    Some(value) => resolved.push_str(&value),
                    None => return Err(MissingVariable { name: name.clone() }),
                },
            }
        }
        Ok(resolved)
    }

    /// The fixed text before the first reference.
    pub(crate) fn literal_start(&self) -> &str {
        match self.parts.first() {
            Some(Part::Literal(text)) => text,
            Some(Part::Variable(_)) | None => "",
        }
    }

    /// A shell-like `${NAME}`, which some clients expand and mcpproxy does not.
    pub(crate) fn foreign_reference(&self) -> Option<&str> {
        self.parts.iter().find_map(|part| match part {
            Part::Literal(text) => find_foreign_reference(text),
            Part::Variable(_) => None,
        })
    }
}

fn find_foreign_reference(text: &str) -> Option<&str> {
    text.match_indices("${").find_map(|(start, _)| {
        let name = &text[start + 2..];
        let end = name.find('}')?;
        is_variable_name(&name[..end]).then(|| &name[..end])
    })
}

fn is_variable_name(name: &str) -> bool {
    let mut characters = name.chars();
    characters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && characters.all(|other| other.is_ascii_alphanumeric() || other == '_')
}

impl FromStr for Template {
    type Err = TemplateError;

    fn from_str(written: &str) -> Result<Self, Self::Err> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = written;
        while let Some(start) = rest.find(OPEN) {
            let after = &rest[start + OPEN.len()..];
            if rest[..start].ends_with('$') {
                literal.push_str(&rest[..start - 1]);
                literal.push_str(OPEN);
                rest = after;
                continue;
            }
            literal.push_str(&rest[..start]);
            let end = after.find('}').ok_or(TemplateError::Unclosed)?;
            let name = &after[..end];
            if !is_variable_name(name) {
                return Err(TemplateError::Name { name: name.into() });
            }
            if !literal.is_empty() {
                parts.push(Part::Literal(std::mem::take(&mut literal)));
            }
            parts.push(Part::Variable(name.into()));
            rest = &after[end + 1..];
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Literal(literal));
        }
        Ok(Self {
            written: written.into(),
            parts,
        })
    }
}

impl fmt::Display for Template {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.written)
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.written, formatter)
    }
}

impl SecretTemplate {
    /// The text as the config has it. Unless it is a reference, it is the secret.
    pub fn written(&self) -> &str {
        self.0.written()
    }

    /// What may be shown: the reference, or `***`.
    pub fn masked(&self) -> &str {
        if self.0.is_reference() {
            self.0.written()
        } else {
            MASK
        }
    }

    pub(crate) fn template(&self) -> &Template {
        &self.0
    }
}

impl From<Template> for SecretTemplate {
    fn from(template: Template) -> Self {
        Self(template)
    }
}

impl FromStr for SecretTemplate {
    type Err = TemplateError;

    fn from_str(written: &str) -> Result<Self, Self::Err> {
        written.parse().map(Self)
    }
}

impl fmt::Debug for SecretTemplate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.masked())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn resolve(written: &str) -> Result<String, MissingVariable> {
        let known = |name: &str| (name != "MISSING").then(|| format!("<{name}>"));
        written.parse::<Template>().unwrap().resolve(&known)
    }

    #[test]
    fn references_are_replaced() {
        for (written, resolved) in [
            ("", ""),
            ("plain $HOME ${HOME} $", "plain $HOME ${HOME} $"),
            ("${env:A}", "<A>"),
            ("a${env:B_1}c${env:_D}", "a<B_1>c<_D>"),
            ("$${env:A}", "${env:A}"),
            ("$$${env:A}", "$${env:A}"),
            ("$${env:", "${env:"),
            ("${env:A}$${env:B}", "<A>${env:B}"),
        ] {
            assert_eq!(resolve(written).as_deref(), Ok(resolved), "{written}");
        }
    }

    #[test]
    fn a_missing_variable_is_named() {
        let name = "MISSING".to_owned();
        assert_eq!(resolve("x${env:MISSING}"), Err(MissingVariable { name }));
    }

    #[test]
    fn a_value_is_not_resolved_again() {
        let template: Template = "${env:A}".parse().unwrap();
        let resolved = template.resolve(&|_| Some("${env:B}".into()));
        assert_eq!(resolved.as_deref(), Ok("${env:B}"));
    }

    #[test]
    fn malformed_references_are_refused() {
        let parse = |written: &str| written.parse::<Template>().unwrap_err();
        assert_eq!(parse("a${env:B"), TemplateError::Unclosed);
        for name in ["", "1A", "A-B", "A B", "${env:A"] {
            let error = parse(&format!("${{env:{name}}}"));
            assert_eq!(error, TemplateError::Name { name: name.into() });
        }
    }

    #[test]
    fn only_a_bare_reference_may_be_shown() {
        let shown = |written: &str| format!("{:?}", written.parse::<SecretTemplate>().unwrap());
        assert_eq!(shown("${env:A}"), "${env:A}");
        assert_eq!(shown("Bearer ${env:A}"), "***");
        assert_eq!(shown("${env:A}${env:B}"), "***");
        assert_eq!(shown("$${env:A}"), "***");
    }

    proptest! {
        #[test]
        fn a_literal_resolves_to_itself(text in r"[\$\{\}env:A-C]{0,12}|\PC{0,20}") {
            let template = Template::literal(&text);
            prop_assert_eq!(template.resolve(&|_| None), Ok(text));
            prop_assert_eq!(template.written().parse(), Ok(template.clone()));
        }
    }
}
