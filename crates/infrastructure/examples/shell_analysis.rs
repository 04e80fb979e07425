//! Says what command lines would do if bash ran them, one a line of the input:
//!
//! ```sh
//! echo 'git status && rm -rf build' |
//!     cargo run -p toolstead-infrastructure --no-default-features --features shell-analysis --example shell_analysis
//! ```

use std::{
    io::{self, BufRead as _, BufWriter, Write as _},
    path::Path,
};
use toolstead_infrastructure::shell_analysis::analyse;

fn main() -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().lines() {
        let line = line?;
        let analysis = analyse(&line, Path::new("/work"));
        writeln!(out, "{line}")?;
        for command in &analysis.commands {
            writeln!(out, "  {:?} {:?}", command.words, command.clarity)?;
            for reading in command.readings.iter() {
                writeln!(out, "    also read as {reading:?}")?;
            }
        }
        for file_access in &analysis.file_accesses {
            writeln!(out, "  {file_access:?}")?;
        }
    }
    out.flush()
}
