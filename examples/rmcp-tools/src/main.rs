//! Adds a server that is written with `rmcp` to an application.

mod notes;

use notes::Notes;
use toolstead_infrastructure::mcp::rmcp_server::rmcp_server;
use toolstead_presentation::prelude::*;

fn main() -> anyhow::Result<()> {
    // Must be first, before any thread exists: helper processes of this program start here and do not return.
    enter_if_helper();
    embed()
}

#[tokio::main]
async fn embed() -> anyhow::Result<()> {
    // Your program uses `ConfigRequest::of_process()` unchanged; this example uses a temporary folder.
    let folder = tempfile::tempdir()?;
    let environment = EnvironmentVariables::new([("HOME", folder.path().display().to_string())]);
    // Tools of an upstream server need approval, and this program has no approver.
    let flags = ConfigFlags { allow: vec!["mcp__notes__*".into()], ..ConfigFlags::default() };
    let config = Config::load(&ConfigRequest {
        environment,
        start: folder.path().into(),
        flags,
        ..ConfigRequest::of_process()?
    })?;
    let notes = Notes::default();
    let composition = App::builder(config).upstream(rmcp_server("notes", move || notes.clone())?).build().await?;

    let call = async |tool: &str, arguments: serde_json::Value| {
        let outcome = composition.app.execute_tool.handle(ExecuteToolCommand::new(tool, arguments)).await;
        outcome.map(|outcome| match outcome {
            CallOutcome::Done(result) => result.joined_text(),
            CallOutcome::InputRequired(_) => "it asks for input".to_owned(),
        })
    };
    println!("notes: {}", call("mcp__notes__add", serde_json::json!({"text": "Buy milk."})).await?);
    println!("notes: {}", call("mcp__notes__add", serde_json::json!({"text": "Sleep."})).await?);
    println!("{}", call("mcp__notes__list", serde_json::json!({})).await?);
    let refused = call("mcp__notes__add", serde_json::json!({"words": "Buy milk."})).await.unwrap_err();
    println!("refused as it should be: {refused}");
    let refused = call("mcp__notes__remove", serde_json::json!({})).await.unwrap_err();
    println!("refused as it should be: {refused}");
    composition.close().await;
    Ok(())
}
