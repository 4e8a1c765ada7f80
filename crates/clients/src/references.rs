//! How clients refer to the environment and to folders, and the same in our own words.

use std::path::Path;

use config::Template;

/// What a client replaces in the values of its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dialect {
    /// `${NAME}` and `${NAME:-default}`.
    braces: bool,
    /// `$NAME`.
    bare: bool,
    /// `${env:NAME}`, `${userHome}`, `${workspaceFolder}`, `${input:id}`.
    editor: bool,
}

/// A reference that cannot be said in our words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Untranslatable {
    #[error("it asks the person for {id:?} when it starts")]
    Input { id: String },
    #[error("it refers to {reference}, which has a meaning only inside the client")]
    Unknown { reference: String },
}

/// The folders that references may mean.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Folders<'a> {
    pub(crate) home: &'a Path,
    pub(crate) project: Option<&'a Path>,
}

/// A value in our words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Translated {
    pub(crate) text: String,
    /// References whose default was given up, because ours have none.
    pub(crate) defaults: Vec<String>,
}

impl Dialect {
    /// Nothing is replaced.
    pub(crate) const LITERAL: Self = Self {
        braces: false,
        bare: false,
        editor: false,
    };
    pub(crate) const BRACES: Self = Self {
        braces: true,
        ..Self::LITERAL
    };
    pub(crate) const SHELL: Self = Self {
        bare: true,
        ..Self::BRACES
    };
    pub(crate) const EDITOR: Self = Self {
        editor: true,
        ..Self::LITERAL
    };

    /// A value as it has to be written in our config to mean the same.
    pub(crate) fn translate(
        self,
        value: &str,
        folders: Folders<'_>,
    ) -> Result<Translated, Untranslatable> {
        let mut translated = Translated {
            text: String::new(),
            defaults: Vec::new(),
        };
        let mut literal = String::new();
        let mut rest = value;
        while let Some(start) = rest.find('$') {
            literal.push_str(&rest[..start]);
            let from_dollar = &rest[start..];
            let (reference, after) = self.split_reference(from_dollar);
            match reference {
                Some(reference) => {
                    self.replace(reference, folders, &mut literal, &mut translated)?;
                }
                None => literal.push_str(&from_dollar[..from_dollar.len() - after.len()]),
            }
            rest = after;
        }
        literal.push_str(rest);
        translated
            .text
            .push_str(Template::literal(&literal).written());
        Ok(translated)
    }

    /// The reference that a text starts with, if the client sees one, and what comes after.
    fn split_reference(self, text: &str) -> (Option<&str>, &str) {
        let inside = text.strip_prefix("${");
        if let Some(inside) = inside
            && let Some(end) = inside.find('}')
        {
            let (name, after) = (&inside[..end], &inside[end + 1..]);
            let known = (self.braces && is_name(name.split(":-").next().unwrap_or_default()))
                || (self.editor && is_editor_reference(name));
            return (known.then_some(name), after);
        }
        let name_end = text[1..]
            .find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
            .map_or(text.len(), |end| end + 1);
        if self.bare && inside.is_none() && is_name(&text[1..name_end]) {
            return (Some(&text[1..name_end]), &text[name_end..]);
        }
        (None, &text[1..])
    }

    fn replace(
        self,
        reference: &str,
        folders: Folders<'_>,
        literal: &mut String,
        translated: &mut Translated,
    ) -> Result<(), Untranslatable> {
        let unknown = || Untranslatable::Unknown {
            reference: format!("${{{reference}}}"),
        };
        let folder = |folder: Option<&Path>| {
            let folder = folder.map(|folder| folder.to_string_lossy().into_owned());
            folder.ok_or_else(unknown)
        };
        let variable = match reference.split_once(':') {
            Some(("env", name)) if self.editor => name,
            Some(("input", id)) if self.editor => {
                return Err(Untranslatable::Input { id: id.to_owned() });
            }
            Some(_) if self.editor => return Err(unknown()),
            Some((name, _)) if self.braces => {
                translated.defaults.push(name.to_owned());
                name
            }
            None if self.editor => {
                literal.push_str(&match reference {
                    "userHome" => folder(Some(folders.home))?,
                    "workspaceFolder" => folder(folders.project)?,
                    "pathSeparator" | "/" => "/".to_owned(),
                    _ => folder(None)?,
                });
                return Ok(());
            }
            _ => reference,
        };
        // Before a reference of ours, `$` would be read as an escape.
        if literal.ends_with('$') {
            return Err(Untranslatable::Unknown {
                reference: format!("$${{{reference}}}"),
            });
        }
        let text = std::mem::take(literal);
        translated.text.push_str(Template::literal(&text).written());
        translated.text.push_str(&format!("${{env:{variable}}}"));
        Ok(())
    }
}

fn is_name(name: &str) -> bool {
    let starts_well = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    starts_well
        && name
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// What VS Code and its kin replace: a word, or a word, a colon and a name.
fn is_editor_reference(name: &str) -> bool {
    match name.split_once(':') {
        Some(("env", variable)) => is_name(variable),
        Some(("input" | "config" | "command", _)) => true,
        Some(_) => false,
        None => matches!(
            name,
            "userHome" | "workspaceFolder" | "workspaceFolderBasename" | "pathSeparator" | "/"
        ),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn translate(dialect: Dialect, value: &str) -> Result<Translated, Untranslatable> {
        let folders = Folders {
            home: Path::new("/home/ada"),
            project: None,
        };
        dialect.translate(value, folders)
    }

    fn text(dialect: Dialect, value: &str) -> String {
        translate(dialect, value).unwrap().text
    }

    #[test]
    fn each_client_means_something_else() {
        for (dialect, value, ours) in [
            (Dialect::LITERAL, "${A} $A ${env:A}", "${A} $A $${env:A}"),
            (Dialect::BRACES, "x${A}y $B", "x${env:A}y $B"),
            (Dialect::SHELL, "$A/${B}-$1$", "${env:A}/${env:B}-$1$"),
            (Dialect::EDITOR, "${env:A} ${A} $A", "${env:A} ${A} $A"),
            (Dialect::EDITOR, "${userHome}/x", "/home/ada/x"),
            (Dialect::BRACES, "${not closed", "${not closed"),
            (Dialect::BRACES, "${1}", "${1}"),
        ] {
            assert_eq!(text(dialect, value), ours, "{value}");
        }
    }

    #[test]
    fn what_cannot_be_said_is_told() {
        let input = translate(Dialect::EDITOR, "${input:token}");
        assert_eq!(input, Err(Untranslatable::Input { id: "token".into() }));
        for value in ["${workspaceFolder}/x", "${config:a.b}", "$${env:A}"] {
            let error = translate(Dialect::EDITOR, value).unwrap_err();
            assert!(matches!(error, Untranslatable::Unknown { .. }), "{value}");
        }
        let default = translate(Dialect::BRACES, "${PORT:-8080}").unwrap();
        assert_eq!(default.text, "${env:PORT}");
        assert_eq!(default.defaults, ["PORT"]);
    }

    proptest! {
        /// Whatever a literal value looks like, it arrives as itself.
        #[test]
        fn a_literal_means_itself(value in any::<String>()) {
            let ours: Template = text(Dialect::LITERAL, &value).parse().unwrap();
            prop_assert_eq!(ours.resolve(&|_| None).unwrap(), value);
        }

        #[test]
        fn every_text_is_understood_or_refused(value in "[${}:a-zA-Z_/ -]{0,40}") {
            for dialect in [Dialect::BRACES, Dialect::SHELL, Dialect::EDITOR] {
                if let Ok(translated) = translate(dialect, &value) {
                    prop_assert!(translated.text.parse::<Template>().is_ok(), "{}", translated.text);
                }
            }
        }
    }
}
