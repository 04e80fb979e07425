//! Programs that a tool runs: started without a shell, confined as every command is, and checked before they start.

use crate::{
    builtin::{
        commands::{
            capture::{Capture, OutputStream, output_read_failure},
            command::{CommandHandle, EndCause, ExcessPolicy},
            command_output::remarks,
            line_accesses,
            programs::ProgramSpec,
            waiting::wait_for_end,
        },
        tool_kit::{blocking::on_blocking_thread, tool_context::ToolContext, tool_environment::ToolEnvironment},
    },
    sandbox::launcher::ChildInput,
};
use std::{borrow::Cow, collections::BTreeMap};
use toolstead_domain::{Access, CommandAccess, ToolFailure, error_kind::ErrorKind};

/// Output and exit code of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProgramResult {
    /// The exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Its standard output, whole.
    pub stdout: Vec<u8>,
    /// Its standard error, whole.
    pub stderr: Vec<u8>,
}

impl ProgramResult {
    /// Returns `true` if the exit code is 0.
    pub fn is_success(&self) -> bool {
        self.code == Some(0)
    }

    /// Returns the standard output as text; invalid UTF-8 is replaced.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.stdout)
    }
}

impl ToolEnvironment {
    /// Returns what a call touches that runs this program in the start folder by [`ToolContext::run_program`]: the
    /// command with its arguments, and the files that it names.
    ///
    /// # Errors
    /// `invalid_input` when the words are not a command.
    pub async fn accesses_of_program(&self, words: &[&str]) -> Result<Vec<Access>, ToolFailure> {
        let is_command = words.first().is_some_and(|program| !program.is_empty());
        if !is_command || words.iter().any(|word| word.contains('\0')) {
            let message = "a command must be a program name and its arguments, without NUL characters";
            return Err(ToolFailure::new(ErrorKind::InvalidInput, message));
        }
        let text = CommandAccess::program(words.iter().copied()).text.to_string();
        line_accesses::accesses_in(self.workspace().clone(), text, ".".into(), None).await
    }
}

impl ToolContext<'_> {
    /// Runs a program in the start folder, until it ends or the call reaches its deadline. It is started without a
    /// shell, and its input is empty. Its name is that of a file in a folder of the `PATH`, or an absolute path; a file
    /// where programs may write is not started.
    ///
    /// Include its accesses ([`ToolEnvironment::accesses_of_program`]) in the accesses of the call, because accesses
    /// that require approval must be known before the call runs.
    ///
    /// # Errors
    /// `permission_denied` where the call may not run it, `unavailable` when the program does not exist or cannot be
    /// confined here, `timeout`, and `execution_failed` when it printed more than is retained or changed what is closed
    /// to it. Another exit code than 0 is not a failure.
    pub async fn run_program(&self, words: &[&str]) -> Result<ProgramResult, ToolFailure> {
        let accesses = self.environment().accesses_of_program(words).await?;
        if let Some(access) = accesses.iter().find(|access| !self.context().grant.permits(access)) {
            let message = format!("this call may not {access}: no rule allows it, and it was not approved");
            return Err(ToolFailure::new(ErrorKind::PermissionDenied, message)
                .next("The tool must declare the program in its accesses."));
        }
        let (name, args) = words.split_first().map(|(name, args)| (*name, args)).unwrap_or_default();
        let program = ProgramSpec {
            name: name.to_owned().into(),
            args: args.iter().map(|word| (*word).to_owned()).collect(),
            working_dir: self.permitted_folder(".").await?,
            input: ChildInput::Nothing,
            environment: BTreeMap::new(),
            offers_tools: false,
        };
        let (programs, workspace) = (self.environment().processes().programs(), self.environment().workspace());
        let settings = programs.settings();
        let capture = Capture::new(settings.spool_folder.clone(), settings.kept_bytes);
        let started = programs.start(program, self.context(), workspace).await?;
        let command = CommandHandle::of(started, capture, Some(self.deadline()), ExcessPolicy::Ends, None, false);
        let end = wait_for_end(&command, self.context().caller).await;
        let kind = match end.cause {
            EndCause::Itself if !end.is_tainted => None,
            EndCause::TimedOut => Some(ErrorKind::Timeout),
            _ => Some(ErrorKind::ExecutionFailed),
        };
        if let Some(kind) = kind {
            let said = remarks(&end, settings.kept_bytes);
            let said: String = said.iter().map(|remark| format!(" {remark}")).collect();
            return Err(ToolFailure::new(kind, format!("The program `{name}` {}.{said}", end.describe())));
        }
        let capture = command.capture.clone();
        let printed = move || {
            let whole = usize::try_from(capture.total()).unwrap_or(usize::MAX);
            let (place, bytes) = capture.read(0, whole).map_err(output_read_failure)?;
            let mut streams = [Vec::new(), Vec::new()];
            for (stream, part) in capture.turns_in(place, bytes.len()) {
                streams[usize::from(stream == OutputStream::Stderr)].extend_from_slice(&bytes[part]);
            }
            Ok(streams)
        };
        let [stdout, stderr] = on_blocking_thread(printed).await?;
        Ok(ProgramResult { code: end.code, stdout, stderr })
    }
}

#[cfg(test)]
mod tests {
    use crate::builtin::{prelude::*, tests::Bench};
    use std::time::Duration;
    use toolstead_domain::Effect;

    /// Returns a tool that runs its arguments. `says` determines whether it declares the accesses.
    fn running(says: bool) -> CustomTool {
        let run = tool_fn("run", "Runs a program.", |words: Words, run| {
            Box::pin(async move {
                let words: Vec<&str> = words.words.iter().map(String::as_str).collect();
                let ProgramResult { code, stdout, stderr } = run.run_program(&words).await?;
                let [out, err] = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
                Ok(json!({"code": code, "out": out, "err": err}))
            })
        });
        run.touches(move |words: Words, world| {
            Box::pin(async move {
                let words: Vec<&str> = words.words.iter().map(String::as_str).collect();
                Ok(if says { world.accesses_of_program(&words).await?.into() } else { DeclaredAccesses::NoAccess })
            })
        })
    }

    #[derive(Deserialize, JsonSchema)]
    struct Words {
        words: Vec<String>,
    }

    fn run(bench: &Bench, words: &[&str]) -> Result<Value, ToolFailure> {
        Ok(bench.call("run", json!({"words": words}))?.structured_content().unwrap().clone())
    }

    #[test]
    fn a_program_runs_in_the_start_folder_and_returns_its_streams_separately() {
        let bench = Bench::new().adding(running(true));
        bench.put("a.txt", "hello\n");
        assert_eq!(run(&bench, &["cat", "a.txt"]).unwrap(), json!({"code": 0, "out": "hello\n", "err": ""}));
        let failed = run(&bench, &["cat", "a.txt", "no such"]).unwrap();
        assert_eq!((&failed["code"], &failed["out"]), (&json!(1), &json!("hello\n")));
        assert!(failed["err"].as_str().unwrap().contains("no such"), "{failed}");
        let many = run(&bench, &["seq", "100000"]).unwrap();
        assert_eq!(many["out"].as_str().unwrap().lines().count(), 100_000);
        assert_eq!(run(&bench, &["no-such-program"]).unwrap_err().kind, ErrorKind::Unavailable);
    }

    #[test]
    fn program_runs_are_subject_to_command_rules_and_rules_on_the_files_they_name() {
        let refused = Err(ErrorKind::PermissionDenied);
        for (rules, says, words, expected) in [
            (&[][..], true, &["true"][..], Ok(json!(0))),
            (&[], false, &["true"], refused.clone()),
            (&[(Effect::Allow, "Bash(true)")], false, &["true"], Ok(json!(0))),
            (&[(Effect::Deny, "Bash(cat *)")], true, &["cat", "a.txt"], refused.clone()),
            // The files that `cat` opens are known only when it runs.
            (&[(Effect::Deny, "Read(a.txt)")], true, &["cat", "a.txt"], Ok(json!(1))),
            (&[(Effect::Deny, "Read(a.txt)")], true, &["cp", "a.txt", "b"], refused.clone()),
            (&[(Effect::Deny, "Bash(rm *)")], true, &["sh", "-c", "rm a.txt"], refused),
        ] {
            let bench = rules.iter().fold(Bench::new(), |bench, (effect, rule)| bench.with_rule(*effect, rule));
            let bench = bench.adding(running(says));
            bench.put("a.txt", "x");
            let ran = run(&bench, words).map(|ran| ran["code"].clone()).map_err(|failure| failure.kind);
            assert_eq!(ran, expected, "{rules:?} {words:?}");
            assert!(bench.exists("a.txt"));
        }
        let bench = Bench::new().adding(running(true));
        for words in [&[][..], &[""], &["echo", "a\0b"]] {
            assert_eq!(run(&bench, words).unwrap_err().kind, ErrorKind::InvalidInput, "{words:?}");
        }
    }

    #[test]
    fn a_program_times_out_with_its_call() {
        let bench = Bench::new().adding(running(true));
        let failure = bench.call_within(Duration::from_millis(200), "run", json!({"words": ["sleep", "600"]}));
        assert_eq!(failure.unwrap_err().kind, ErrorKind::Timeout);
    }
}
