//! Measurements, one file per subcommand.

mod activity;
mod affinity;
mod compare;
mod daemon;
mod echo;
mod floor;
mod growth;
mod http;
mod instructions;
mod load;
mod proc;
mod process;
mod retrieval;
mod search_speed;
mod session;
mod tokens;
mod tool;

use std::path::Path;

use anyhow::{Result, bail};
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const USAGE: &str = "usage: bench retrieval DIR\n       bench search-speed DIR\n       bench tokens [DIR]\n       bench compare [--help]\n       bench growth [--help]\n       bench instructions [--help]\n       bench activity [--records N]";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["retrieval", directory] => retrieval::run(Path::new(directory)),
        ["search-speed", directory] => search_speed::run(Path::new(directory)),
        ["tokens", options @ ..] => tokens::run(options),
        ["compare", options @ ..] => compare::run(options),
        ["growth", options @ ..] => growth::run(options),
        ["instructions", options @ ..] => instructions::run(options),
        ["activity", options @ ..] => activity::run(options),
        // The parts of a measurement that are processes of their own.
        ["echo-stdio"] => echo::run_stdio(0),
        ["echo-stdio", tools] => echo::run_stdio(tools.parse()?),
        ["echo-http"] => echo::run_http(),
        ["floor", web_url] => floor::run(web_url),
        ["floor-1", web_url] => floor::run_on_one_thread(web_url),
        _ => bail!(USAGE),
    }
}
