//! Agents of launchd.

use std::path::Path;

use super::{Definition, ManagerCommand, ServiceError, Step};

pub(super) fn plist(label: &str, definition: &Definition) -> Result<String, ServiceError> {
    let variables = definition.environment.iter().map(|(name, value)| {
        let (name, value) = (escaped(name), escaped(value));
        format!("    <key>{name}</key>\n    <string>{value}</string>\n")
    });
    let environment: String = variables.collect();
    Ok(format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>{label}</string>
{command}  <key>EnvironmentVariables</key>
  <dict>
{environment}  </dict>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>ExitTimeOut</key>
  <integer>{stop_seconds}</integer>
</dict>
</plist>
"#,
        label = escaped(label),
        command = command(definition)?,
        stop_seconds = definition.stop_seconds,
    ))
}

/// The element that says what is run.
pub(super) fn command(definition: &Definition) -> Result<String, ServiceError> {
    let program = definition.program.to_str();
    let program = program.ok_or_else(|| ServiceError::Path(definition.program.clone()))?;
    let words = std::iter::once(program).chain(definition.arguments.iter().map(String::as_str));
    let words: String = words
        .map(|word| format!("    <string>{}</string>\n", escaped(word)))
        .collect();
    Ok(format!(
        "  <key>ProgramArguments</key>\n  <array>\n{words}  </array>\n"
    ))
}

pub(super) fn commands(label: &str, file: &Path, step: Step) -> Vec<ManagerCommand> {
    let domain = format!("gui/{}", rustix::process::getuid().as_raw());
    let target = format!("{domain}/{label}");
    let file = file.to_string_lossy();
    match step {
        Step::Install => vec![ManagerCommand::of(&[
            "launchctl",
            "bootstrap",
            &domain,
            &file,
        ])],
        Step::Start => vec![ManagerCommand::of(&["launchctl", "kickstart", &target])],
        Step::Stop => vec![ManagerCommand::of(&["launchctl", "bootout", &target])],
        Step::Forget => vec![],
        Step::Ask => vec![ManagerCommand::of(&["launchctl", "print", &target])],
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text_in_the_property_list() {
        let definition = Definition {
            description: String::new(),
            program: "/opt/a & b".into(),
            arguments: vec!["serve".to_owned(), "</string>".to_owned()],
            environment: vec![("PATH".to_owned(), "/bin".to_owned())],
            stop_seconds: 15,
        };
        let plist = plist("mcpproxy", &definition).unwrap();
        assert!(plist.contains("<string>/opt/a &amp; b</string>"), "{plist}");
        assert!(
            plist.contains("<string>&lt;/string&gt;</string>"),
            "{plist}"
        );
        assert!(plist.contains("<key>PATH</key>\n    <string>/bin</string>"));
        assert!(plist.contains("<integer>15</integer>"), "{plist}");
    }
}
