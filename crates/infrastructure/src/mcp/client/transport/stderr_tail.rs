//! Standard error of a child: always read, with the last lines retained for the operator.

use crate::mcp::{
    client::connection::foreign_text::shown,
    wire::lines::{BoundedLines, Line},
};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::io::AsyncRead;
use tokio_util::task::AbortOnDropHandle;
use toolstead_domain::ServerName;

const KEPT_LINES: usize = 20;
const KEPT_CHARACTERS: usize = 500;
const MAX_LINE_BYTES: usize = 16 << 10;

/// Last lines of standard error, and the task that reads them.
#[derive(Debug)]
pub(in crate::mcp::client) struct StderrTail {
    lines: Arc<Mutex<VecDeque<String>>>,
    _reading: AbortOnDropHandle<()>,
}

impl StderrTail {
    /// Starts to read `stderr` in the background, until the stream ends or the returned value is dropped. Logs every
    /// line.
    pub(in crate::mcp::client) fn of(stderr: impl AsyncRead + Send + Unpin + 'static, server: ServerName) -> Self {
        let lines = Arc::<Mutex<VecDeque<String>>>::default();
        let reading = tokio::spawn(read(stderr, lines.clone(), server));
        Self { lines, _reading: AbortOnDropHandle::new(reading) }
    }

    /// Returns the last lines, oldest first. At most 20 lines of at most 500 characters.
    pub(in crate::mcp::client) fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

async fn read(stderr: impl AsyncRead + Unpin, kept: Arc<Mutex<VecDeque<String>>>, server: ServerName) {
    let mut lines = BoundedLines::new(stderr, MAX_LINE_BYTES);
    while let Ok(Some(line)) = lines.next().await {
        let (Line::Whole(bytes) | Line::TooLong(bytes)) = line;
        let text = shown(&String::from_utf8_lossy(&bytes), KEPT_CHARACTERS);
        if text.is_empty() {
            continue;
        }
        tracing::debug!(%server, text, "standard error");
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT_LINES {
            kept.pop_front();
        }
        kept.push_back(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn retains_only_the_last_lines_of_a_stderr_flood_and_shortens_them() {
        let flood: String = (0..10_000).map(|n| format!("\u{1b}[31mline {n} {}\n", "x".repeat(600))).collect();
        let kept = Arc::default();
        read(flood.as_bytes(), Arc::clone(&kept), ServerName::parse("s").unwrap()).await;
        let kept = kept.lock().unwrap();
        assert_eq!(kept.len(), KEPT_LINES);
        assert!(kept[KEPT_LINES - 1].starts_with("[31mline 9999 x"));
        assert!(kept.iter().all(|line| line.chars().count() <= KEPT_CHARACTERS + 1));
    }
}
