//! Starts the code of each language, and returns the command line that permission rules check.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fmt;
use toolstead_domain::{CommandAccess, Tool};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Language {
    Python,
    Javascript,
    Shell,
}

/// Arguments and input with which a run starts. The code is passed through the standard input, which no other process
/// reads: all users of the machine see the arguments of a program, and everyone who shares the folder can read its
/// files.
pub(super) struct LaunchInput {
    pub(super) args: Vec<String>,
    /// Bytes that precede the code's own standard input: the code itself and the tools that it may call.
    pub(super) input: Vec<u8>,
}

/// Signature of a tool for the code that calls it: name, all parameters with the required ones first, and the required
/// parameters.
#[derive(Debug, Serialize)]
pub(super) struct ToolSignature(String, Vec<String>, Vec<String>);

impl ToolSignature {
    pub(super) fn of(tool: &Tool) -> Self {
        let schema = tool.input_schema();
        let required: Vec<String> = schema
            .get("required")
            .and_then(Value::as_array)
            .map_or_else(Vec::new, |names| names.iter().filter_map(Value::as_str).map(str::to_owned).collect());
        let properties = schema.get("properties").and_then(Value::as_object);
        let rest =
            properties.into_iter().flatten().map(|(name, _)| name.clone()).filter(|name| !required.contains(name));
        let parameters = required.iter().cloned().chain(rest).collect();
        Self(tool.name().to_string(), parameters, required)
    }
}

impl Language {
    pub(super) const ALL: [Self; 3] = [Self::Python, Self::Javascript, Self::Shell];

    /// Returns the program that runs the language.
    pub(super) fn program(self) -> &'static str {
        match self {
            Self::Python => "python3",
            Self::Javascript => "node",
            Self::Shell => "bash",
        }
    }

    /// Returns the command line that is checked in place of the code: the one with which `bash` would run it.
    pub(super) fn line(self, code: &str) -> String {
        let text = |option| CommandAccess::program([self.program(), option, code]).text.to_string();
        match self {
            Self::Python => text("-c"),
            Self::Javascript => text("-e"),
            Self::Shell => code.to_owned(),
        }
    }

    pub(super) fn start(self, code: &str, functions: &[ToolSignature]) -> LaunchInput {
        let given = |client: &str| json!({"client": client, "tools": functions, "code": code}).to_string().into_bytes();
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        match self {
            Self::Python => {
                let input = given(include_str!("clients/tools.py"));
                LaunchInput { args: words(&["-c", include_str!("clients/loader.py"), &input.len().to_string()]), input }
            }
            Self::Javascript => {
                let input = given(include_str!("clients/tools.js"));
                let (loader, length) = (include_str!("clients/loader.js"), input.len().to_string());
                // The code is a module without a file.
                LaunchInput {
                    args: words(&["--experimental-vm-modules", "--no-warnings", "-e", loader, &length]),
                    input,
                }
            }
            Self::Shell => {
                let names = functions.iter().map(|function| function.0.as_str()).collect::<Vec<_>>().join(" ");
                let (loader, lengths) = (include_str!("clients/loader.sh"), [names.len(), code.len()]);
                let [names_length, code_length] = lengths.map(|length| length.to_string());
                let args = ["--noprofile", "--norc", "-c", loader.trim_end(), "code.sh", &names_length, &code_length];
                LaunchInput { args: words(&args), input: [names.as_bytes(), code.as_bytes()].concat() }
            }
        }
    }

    /// Returns the line of the code in the last error location of a text: that of the innermost frame.
    pub(super) fn line_of_failure(self, output: &str) -> Option<u64> {
        output.lines().rev().find_map(|line| {
            let rest = match self {
                Self::Python => line.trim_start().strip_prefix("File \"code.py\", line "),
                Self::Javascript => line.strip_prefix("code.mjs:"),
                Self::Shell => {
                    let said = line.strip_prefix("code.sh: ")?;
                    said.strip_prefix("eval: ").unwrap_or(said).strip_prefix("line ")
                }
            }?;
            rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())].parse().ok()
        })
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Python => "python",
            Self::Javascript => "javascript",
            Self::Shell => "shell",
        })
    }
}
