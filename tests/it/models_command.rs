//! `toolstead models`, through the real binary.

use crate::{
    binaries::{Home, stderr, stdout},
    model_server::{ModelServer, Reply, Says},
};
use serde_json::{Value, json};
use std::process::{Output, Stdio};
use tokio::task::spawn_blocking;

/// Runs `toolstead` with this configuration and this default model, and a key in its environment.
async fn run(config: String, default: &'static str, arguments: &'static [&'static str]) -> Output {
    let ran = spawn_blocking(move || {
        let home = Home::new();
        let config = home.config(&config);
        let arguments = [&["--config", config.to_str().unwrap()], arguments].concat();
        home.toolstead(&arguments)
            .env("MAIN_KEY", "sk-hunter2")
            .env("TOOLSTEAD_DEFAULT_MODEL", default)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    });
    ran.await.unwrap()
}

fn config(url: &str) -> String {
    format!(
        "[models.main]\nprovider = \"anthropic\"\nmodel = \"claude-sonnet-4-5\"\nbase_url = \"{url}\"\n\
         api_key_env = \"MAIN_KEY\"\n\
         [models.away]\nprovider = \"anthropic\"\nmodel = \"m\"\nbase_url = \"{url}\"\napi_key_env = \"NOT_THERE\"\n\
         [models.broken]\nprovider = \"anthropic\"\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn models_are_listed_with_the_origin_of_address_and_key_and_without_secrets() {
    let config = config("http://127.0.0.1:9");
    let output = run(config.clone(), "main", &["models"]).await;
    let printed = format!("{}{}", stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(0), "{printed}");
    for text in [
        "main*",
        "claude-sonnet-4-5",
        "$MAIN_KEY",
        "$NOT_THERE, not set",
        "test.toml:6",
        "`models.broken` has no `model`",
    ] {
        assert!(printed.contains(text), "{text}: {printed}");
    }
    assert!(!printed.contains("hunter2"), "{printed}");
    let output = run(config.clone(), "main", &["--json", "models", "main"]).await;
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let [main] = listed["models"].as_array().unwrap().as_slice() else { panic!("{listed}") };
    assert_eq!((&main["default"], &main["context_tokens"]), (&json!(true), &json!(200_000)));
    assert!(main["base_url_origin"].as_str().unwrap().ends_with("test.toml:6"), "{main}");
    assert!(main["prices"].is_null(), "another server has its own prices: {main}");
    let output = run(config, "main", &["models", "mian"]).await;
    assert_eq!(output.status.code(), Some(4));
    assert!(stderr(&output).contains("did you mean `main`?"), "{}", stderr(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_check_sends_a_short_request_and_reports_models_that_fail() {
    let server = ModelServer::with([Says::text("ok")]).await;
    let output = run(config(server.url()), "main", &["models", "main", "--check"]).await;
    let printed = format!("{}{}", stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(0), "{printed}");
    assert!(printed.contains("answers, after"), "{printed}");
    let seen = server.only_seen();
    assert_eq!((seen.header("x-api-key"), &seen.body["max_tokens"]), (Some("sk-hunter2"), &json!(16)));

    let server = ModelServer::with([Reply::refusal(401, r#"{"error":{"message":"no such key"}}"#)]).await;
    let output = run(config(server.url()), "main", &["--json", "models", "--check"]).await;
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let check = |name: &str| {
        let all = listed["models"].as_array().unwrap();
        all.iter().find(|model| model["name"] == name).unwrap()["check"].clone()
    };
    assert_eq!(check("main")["error"]["kind"], "auth_required");
    assert!(check("away")["error"]["message"].as_str().unwrap().contains("`NOT_THERE` holds no key"), "{listed}");
    assert_eq!(server.seen().len(), 1, "without a key nobody is asked");
    assert!(!stdout(&output).contains("hunter2") && !stderr(&output).contains("hunter2"));
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_reports_a_default_model_without_a_key() {
    let output = run(config("http://127.0.0.1:9"), "away", &["doctor"]).await;
    assert!(stdout(&output).contains("`away` has no key: the environment variable `NOT_THERE`"), "{}", stdout(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_key_command_of_a_project_runs_only_after_its_file_is_trusted() {
    let server = ModelServer::with([Says::text("ok")]).await;
    let url = server.url().to_owned();
    let ran = spawn_blocking(move || {
        let home = Home::new();
        let mark = home.data().join("ran");
        let command = format!("touch {}; echo sk-theirs", mark.display());
        let project = format!(
            "[models.theirs]\nprovider = \"anthropic\"\nmodel = \"m\"\nbase_url = \"{url}\"\n\
             api_key_command = [\"sh\", \"-c\", {command:?}]\n"
        );
        std::fs::write(home.work().join("toolstead.toml"), project).unwrap();
        let before = home.run(&["models", "--check"]);
        assert_eq!(before.status.code(), Some(4), "{}", stderr(&before));
        assert!(stdout(&before).contains("it waits for `toolstead config trust"), "{}", stdout(&before));
        assert!(!mark.exists());
        let trusted = home.run(&["config", "trust", "--yes"]);
        assert_eq!(trusted.status.code(), Some(0), "{}", stderr(&trusted));
        assert!(stderr(&trusted).contains("models.theirs.api_key_command"), "{}", stderr(&trusted));
        assert!(!mark.exists(), "showing and trusting run nothing");
        let after = home.run(&["models", "--check"]);
        assert_eq!(after.status.code(), Some(0), "{}{}", stdout(&after), stderr(&after));
        assert!(mark.exists());
    });
    ran.await.unwrap();
    assert_eq!(server.only_seen().header("x-api-key"), Some("sk-theirs"));
}
