//! Asking a person before files are changed. A script says it with `--yes`.

use std::io::{self, BufRead, IsTerminal};

use crate::args::Consent;
use crate::exit::{Exit, Failure};
use crate::printer::Printer;

/// Whether to go on. Where nobody can be asked and nothing was said, it is an error and not a no:
/// a script that forgot `--yes` must not look as if it had done something.
pub(crate) fn ask(consent: Consent, question: &str, printer: &Printer) -> Result<bool, Failure> {
    if consent.dry_run {
        return Ok(false);
    }
    if consent.yes {
        return Ok(true);
    }
    if !is_interactive() {
        return Err(Failure::new(Exit::Usage, "nothing was changed")
            .why("there is no terminal to ask on")
            .advice("add --yes to go on, or --dry-run to look only"));
    }
    Ok(question_with_default_no(question, printer))
}

/// Offers something besides what was asked for; scripts that want it say so with an option.
pub(crate) fn offer(consent: Consent, question: &str, printer: &Printer) -> bool {
    !consent.dry_run
        && !consent.yes
        && is_interactive()
        && question_with_default_no(question, printer)
}

fn question_with_default_no(question: &str, printer: &Printer) -> bool {
    printer.prompt(&format!("{question} [y/N] "));
    // Somebody who closes the terminal has not agreed.
    matches!(read_answer().as_str(), "y" | "yes")
}

fn read_answer() -> String {
    let mut answer = String::new();
    let _ = io::stdin().lock().read_line(&mut answer);
    answer.trim().to_lowercase()
}

fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}
