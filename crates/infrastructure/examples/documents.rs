//! Prints a PDF, docx, xlsx, pptx or notebook as text:
//!
//! ```text
//! cargo run -p toolstead-infrastructure --no-default-features --features documents --example documents -- FILE [PAGES]
//! ```

use std::{
    error::Error,
    fs::File,
    io::{self, Write},
    time::{Duration, Instant},
};
use toolstead_infrastructure::{
    documents::{DocumentLimits, DocumentRange, DocumentReader, DocumentSource},
    helper::{end_helpers, enter_if_helper},
    sandbox::helper::HelperLauncher,
};

fn main() -> Result<(), Box<dyn Error>> {
    // The parsers run in a child process, which is this program, started again.
    enter_if_helper();
    let mut words = std::env::args().skip(1);
    let Some(path) = words.next() else { return Err("usage: documents FILE [PAGES]".into()) };
    let said = tokio::runtime::Runtime::new()?.block_on(read(path, words.next()));
    end_helpers();
    writeln!(io::stdout(), "{}", said?)?;
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "the file is the user's, who starts the example")]
async fn read(path: String, pages: Option<String>) -> Result<String, Box<dyn Error>> {
    let file = File::open(&path)?;
    let source = DocumentSource { size_bytes: file.metadata()?.len(), content: Box::new(file), path };
    let reader = DocumentReader {
        helpers: &HelperLauncher::default(),
        limits: &DocumentLimits::default(),
        deadline: Instant::now() + Duration::from_secs(60),
        output_characters: 100_000,
    };
    let shown = reader.read(source, &DocumentRange { pages, offset: 1, limit: 10_000 }).await;
    Ok(shown.map_err(|failure| failure.into_result().joined_text())?.text)
}
