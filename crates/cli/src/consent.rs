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
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(Failure::new(Exit::Usage, "nothing was changed")
            .why("there is no terminal to ask on")
            .advice("add --yes to go on, or --dry-run to look only"));
    }
    printer.prompt(&format!("{question} [y/N] "));
    let mut answer = String::new();
    // Somebody who closes the terminal has not agreed.
    let _ = io::stdin().lock().read_line(&mut answer);
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
