//! Arguments of programs in which secrets travel: `--token x` and `--token=x`.

use crate::secret::mask_unless_reference;

/// Words in the name of a member or an option that say what its value is.
const WORDS: [&str; 8] = [
    "key",
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "credential",
    "header",
];

/// Whether something of this name is a secret.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_lowercase();
    WORDS.iter().any(|word| name.contains(word))
}

/// Whether an option such as `--api-key` takes a secret.
pub fn is_secret_option(option: &str) -> bool {
    option.starts_with('-') && is_secret_name(option)
}

/// Arguments as they may be shown.
pub(crate) fn masked(arguments: &[&str]) -> Vec<String> {
    let mut secret_follows = false;
    let mut shown = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let (option, value) = match argument.split_once('=') {
            Some((option, value)) => (option, Some(value)),
            None => (*argument, None),
        };
        let is_secret = is_secret_option(option);
        shown.push(match value {
            _ if secret_follows => mask_unless_reference(argument).to_owned(),
            Some(value) if is_secret => format!("{option}={}", mask_unless_reference(value)),
            _ => (*argument).to_owned(),
        });
        secret_follows = is_secret && !secret_follows && value.is_none();
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_such_an_option_is_masked() {
        for (written, shown) in [
            ("--token x y", "--token *** y"),
            ("--token=x y", "--token=*** y"),
            ("--api-key ${env:KEY} y", "--api-key ${env:KEY} y"),
            ("--api-key=${env:KEY}", "--api-key=${env:KEY}"),
            ("--token --secret x", "--token *** x"),
            ("--folder token --verbose", "--folder token --verbose"),
            ("--token", "--token"),
        ] {
            let arguments: Vec<&str> = written.split(' ').collect();
            assert_eq!(masked(&arguments).join(" "), shown);
        }
    }
}
