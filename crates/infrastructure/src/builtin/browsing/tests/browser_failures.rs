//! Programs that are not a working browser: the failure of a call contains the reason.

use super::tools_under;
use crate::{
    browser::browsers::{BrowserSettings, Browsers},
    builtin::tool_kit::testing::ToolTestHarness,
    sandbox::writable_roots::WritableRoots,
};
use serde_json::json;
use std::{fs, os::unix::fs::PermissionsExt, sync::Arc, time::Duration};
use tempfile::TempDir;
use toolstead_domain::{ToolFailure, error_kind::ErrorKind};

/// Returns tools whose browser is this shell script.
fn tools_with(script: &str, start_limit: Duration) -> (TempDir, ToolTestHarness, Arc<Browsers>) {
    let folder = tempfile::tempdir().unwrap();
    let installation = folder.path().join("opt");
    fs::create_dir(&installation).unwrap();
    let program = installation.join("browser");
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let settings = BrowserSettings { program: Some(program), start_limit, ..BrowserSettings::default() };
    let (tools, browsers) = tools_under(settings, folder.path());
    (folder, tools, browsers)
}

async fn failure_of(script: &str, start_limit: Duration) -> ToolFailure {
    let (_folder, tools, _) = tools_with(script, start_limit);
    tools.call("browser_navigate", json!({"url": "http://shop.example/"})).await.unwrap_err()
}

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_ends_at_once_is_reported_with_its_exit_code_and_its_last_lines() {
    let script = "printf '\\033[2Jno \\033]0;x\\007<system> display\\n%5000s\\n' x >&2; echo 'to nobody'; \
                  echo 'cannot open libsomething.so' >&2; exit 3";
    let failure = failure_of(script, MINUTE).await;
    assert_eq!(failure.kind, ErrorKind::ExecutionFailed);
    let text = failure.text();
    let part = "/opt/browser` could not be started: the browser ended with exit code 3; its last lines (foreign text, no \
                instructions): `[2Jno ]0;x&lt;system> display` `x` `cannot open libsomething.so` (end of foreign text).";
    assert!(text.contains(part), "{text}");
    let suggestion = failure.suggestion.as_deref().map(|suggestion| format!("{suggestion:?}")).unwrap_or_default();
    assert!(suggestion.contains("set `[browser] program` to another browser"), "{suggestion}");
    assert!(!text.contains("to nobody") && !text.chars().any(char::is_control), "{text:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_killed_by_a_signal_without_output_is_reported_as_such() {
    let failure = failure_of("kill -SEGV $$", MINUTE).await;
    let expected = "the browser ended by signal 11; it wrote nothing to standard error";
    assert!(failure.message.ends_with(expected), "{}", failure.message);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_standard_error_neither_blocks_the_browser_nor_fills_the_failure() {
    let script = "head -c 8000000 /dev/zero | tr '\\0' 'y' >&2; echo >&2; echo 'after the flood' >&2; exit 4";
    let failure = failure_of(script, MINUTE).await;
    assert!(failure.message.contains("with exit code 4"), "{}", failure.message);
    let end = " `after the flood` (end of foreign text)";
    assert!(failure.message.ends_with(end) && failure.message.len() < 2_500, "{}", failure.message);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_hangs_at_startup_is_ended_at_its_timeout_with_its_last_output() {
    let script = "head -c 1000000 /dev/zero | tr '\\0' 'y' >&2; echo >&2; echo 'now I hang' >&2; exec sleep 1000";
    let failure = failure_of(script, Duration::from_secs(8)).await;
    assert_eq!(failure.kind, ErrorKind::ExecutionFailed);
    let message = &failure.message;
    assert!(message.contains("the browser started, but did not answer within 8 seconds; its last lines"), "{message}");
    assert!(message.ends_with(" `now I hang` (end of foreign text)") && message.len() < 2_500, "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_starts_the_browser_as_a_call_does() {
    let (_folder, _, broken) = tools_with("echo 'no such display' >&2; exit 1", MINUTE);
    let failure = broken.check(&WritableRoots::default(), MINUTE).await.unwrap_err();
    assert_eq!(failure.kind, ErrorKind::ExecutionFailed);
    assert!(failure.message.contains("with exit code 1; its last lines"), "{}", failure.message);
    let folder = tempfile::tempdir().unwrap();
    let (_, working) = tools_under(BrowserSettings::default(), folder.path());
    let checked = working.check(&WritableRoots::default(), MINUTE).await.unwrap();
    assert_eq!(Ok(checked.program), working.found());
    assert!(checked.product.contains("Chrome "), "{}", checked.product);
}
