//! Tools ask the configured models, over real HTTP.

use crate::{
    binaries::{Home, stderr, stdout},
    model_server::{ModelServer, Says},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use std::{
    path::PathBuf,
    process::{Output, Stdio},
};
use tokio::task::block_in_place;

/// A picture of one pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

struct Place {
    home: Home,
    config: PathBuf,
    server: ModelServer,
}

impl Place {
    async fn with(replies: impl IntoIterator<Item = Says>) -> Self {
        let (home, server) = (Home::new(), ModelServer::with(replies).await);
        let config = home.config(&format!(
            "[models.main]\nprovider = \"anthropic\"\nmodel = \"model-1\"\nbase_url = \"{}\"\napi_key_env = \"MODEL_KEY\"\nimages = true\n",
            server.url()
        ));
        Self { home, config, server }
    }

    /// Runs `toolstead ARGUMENTS… call TOOL` without a terminal, so that no approver is available.
    fn call(&self, flags: &[&str], tool: &str, arguments: Value) -> (Option<i32>, String) {
        let mut command =
            self.home.command("/usr/bin/setsid", &["--wait", env!("CARGO_BIN_EXE_toolstead"), "--config"]);
        command.arg(&self.config).args(flags).args(["call", tool]).arg(arguments.to_string());
        command.env("MODEL_KEY", "a-key").stdin(Stdio::null());
        let output: Output = block_in_place(|| command.output().unwrap());
        (output.status.code(), format!("{}{}", stdout(&output), stderr(&output)))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ask_model_runs_only_if_a_rule_allows_its_host_or_the_tool() {
    let place = Place::with([Says::text("One."), Says::text("Two."), Says::text("Three.")]).await;
    let (code, answer) = place.call(&[], "ask_model", json!({"message": "a"}));
    assert!(code == Some(3) && place.server.seen().is_empty(), "{answer}");
    for (rule, expected) in [("ask_model", "One."), ("WebFetch(domain:127.0.0.1)", "Two.")] {
        let asked = json!({"message": "Which?", "system_prompt": "Be brief.", "max_tokens": 77});
        let (code, answer) = place.call(&["--allow", rule], "ask_model", asked);
        assert_eq!((code, answer.lines().next()), (Some(0), Some(expected)), "{rule}: {answer}");
        let body = place.server.seen().pop().unwrap().body;
        assert_eq!((&body["max_tokens"], body.get("tools")), (&json!(77), None), "{body}");
        assert!(body["messages"][0].to_string().contains("Which?") && body["system"].to_string().contains("Be brief."));
    }
    let asked = json!({"message": "hi", "model": "model-1"});
    let (code, answer) = place.call(&["--allow", "ask_model"], "claude_conversation", asked);
    assert_eq!((code, answer.lines().next()), (Some(0), Some("Three.")), "{answer}");
    let asked = json!({"message": "hi", "model": "mian"});
    let (code, answer) = place.call(&["--allow", "ask_model"], "ask_model", asked);
    assert!(code == Some(4) && answer.contains("did you mean `main`?"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn image_recognition_sends_a_workspace_image_to_the_model() {
    let place = Place::with([Says::text("A dot.")]).await;
    std::fs::write(place.home.work().join("dot.png"), BASE64_STANDARD.decode(PNG).unwrap()).unwrap();
    let asked = json!({"image_path": "dot.png", "prompt": "What is it?"});
    let (code, answer) =
        place.call(&["--dialect", "kodelet", "--allow", "image_recognition"], "image_recognition", asked);
    assert!(code == Some(0) && answer.contains("A dot."), "{answer}");
    let content = place.server.only_seen().body["messages"][0]["content"].to_string();
    assert!(content.contains("image/png") && content.contains("What is it?"), "{content}");
}
