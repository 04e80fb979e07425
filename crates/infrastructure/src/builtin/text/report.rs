//! Reports of the machine as text: a title with a line below it, then aligned labels with their values.

/// A text report.
#[derive(Debug)]
pub(crate) struct TextReport(String);

impl TextReport {
    pub(crate) fn titled(title: &str) -> Self {
        Self(format!("{title}\n{}\n", "=".repeat(title.chars().count())))
    }

    /// Adds lines, aligned with each other, below a heading if it is not empty.
    pub(crate) fn section(mut self, heading: &str, lines: &[(&str, String)]) -> Self {
        if !heading.is_empty() {
            self.0.push_str(&format!("\n{heading}\n"));
        }
        let indent = if heading.is_empty() { "" } else { "  " };
        let width = lines.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0) + 1;
        for (label, value) in lines {
            self.0.push_str(&format!("{indent}{:width$} {value}\n", format!("{label}:")));
        }
        self
    }

    /// Adds a separate line.
    pub(crate) fn line(mut self, line: &str) -> Self {
        self.0.push_str(&format!("\n{line}\n"));
        self
    }

    pub(crate) fn into_text(self) -> String {
        self.0.trim_end().to_owned()
    }
}

/// Formats bytes in gigabytes of 1024³ bytes, with one decimal.
pub(crate) fn gigabytes(bytes: u64) -> String {
    format!("{:.1} GB", bytes as f64 / f64::from(1 << 30))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_aligned_below_an_underlined_title() {
        let report = TextReport::titled("A Title")
            .section("", &[("OS", "x".into()), ("Machine Name", "y".into())])
            .section("eth0", &[("Type", "z".into())])
            .line("More.");
        let expected = "A Title\n=======\nOS:           x\nMachine Name: y\n\neth0\n  Type: z\n\nMore.";
        assert_eq!(report.into_text(), expected);
        assert_eq!(gigabytes(8_321_499_136), "7.8 GB");
    }
}
