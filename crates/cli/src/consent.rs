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
    matches!(read_answer().as_deref(), Some("y" | "yes"))
}

/// Offers what most people want: without an answer it is a yes.
pub(crate) fn recommend(consent: Consent, question: &str, printer: &Printer) -> bool {
    if consent.dry_run || consent.yes || !is_interactive() {
        return false;
    }
    printer.prompt(&format!("{question} [Y/n] "));
    matches!(read_answer().as_deref(), Some("" | "y" | "yes"))
}

/// One line of the terminal; nothing if it was closed, which is no agreement to anything.
fn read_answer() -> Option<String> {
    let mut answer = String::new();
    match io::stdin().lock().read_line(&mut answer) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(answer.trim().to_lowercase()),
    }
}

fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}
