//! Units of systemd, in the instance that each user has.

use super::{Definition, ManagerCommand, ServiceError, Step};

pub(super) fn unit(definition: &Definition) -> Result<String, ServiceError> {
    let mut environment = String::new();
    for (name, value) in &definition.environment {
        let variable = in_quotes(&format!("{name}={value}"))?;
        environment.push_str(&format!("Environment={variable}\n"));
    }
    Ok(format!(
        "[Unit]\n\
         Description={description}\n\
         \n\
         [Service]\n\
         Type=exec\n\
         {command}\
         {environment}\
         Restart=on-failure\n\
         RestartSec=1\n\
         TimeoutStopSec={stop_seconds}\n\
         KillMode=mixed\n\
         \n\
         [Install]\n\
         WantedBy=default.target\n",
        description = definition.description.replace('%', "%%"),
        command = command(definition)?,
        stop_seconds = definition.stop_seconds,
    ))
}

/// The line that says what is run.
pub(super) fn command(definition: &Definition) -> Result<String, ServiceError> {
    let program = definition.program.to_str();
    let program = program.ok_or_else(|| ServiceError::Path(definition.program.clone()))?;
    let mut words = vec![word(program)?];
    for argument in &definition.arguments {
        words.push(word(argument)?);
    }
    Ok(format!("ExecStart={}\n", words.join(" ")))
}

pub(super) fn commands(name: &str, step: Step) -> Vec<ManagerCommand> {
    let unit = format!("{name}.service");
    let of = |words: &[&str]| {
        let mut all = vec!["systemctl", "--user"];
        all.extend_from_slice(words);
        ManagerCommand::of(&all)
    };
    match step {
        Step::Install => vec![of(&["daemon-reload"]), of(&["enable", "--now", &unit])],
        Step::Start => vec![of(&["start", &unit])],
        Step::Stop => vec![of(&["disable", "--now", &unit])],
        Step::Forget => vec![of(&["daemon-reload"])],
        Step::Ask => vec![of(&["is-active", "--quiet", &unit])],
    }
}

/// One word of `ExecStart`, in which `$` stands for a variable unless it is doubled.
fn word(text: &str) -> Result<String, ServiceError> {
    in_quotes(&text.replace('$', "$$"))
}

/// A text that systemd neither splits nor fills in.
fn in_quotes(text: &str) -> Result<String, ServiceError> {
    if text.contains(['\n', '\r', '\0']) {
        return Err(ServiceError::Path(text.into()));
    }
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-:=".contains(letter);
    if !text.is_empty() && text.chars().all(plain) {
        return Ok(text.to_owned());
    }
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    Ok(format!("\"{}\"", text.replace('%', "%%")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_path_is_replaced_or_split() {
        for (path, quoted) in [
            ("/usr/bin/mcpproxy", "/usr/bin/mcpproxy"),
            ("/home/a b/x", "\"/home/a b/x\""),
            ("/100%/$HOME/\"q\"/\\", "\"/100%%/$$HOME/\\\"q\\\"/\\\\\""),
        ] {
            assert_eq!(word(path).unwrap(), quoted);
        }
        assert!(word("a\nExecStart=/bin/sh").is_err());
    }
}
