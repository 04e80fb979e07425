use embedding::{closures, forecast::Forecast, release_notes::ReleaseNotes};
use std::error::Error;
use toolstead_presentation::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    enter_if_helper();
    embed()
}

#[tokio::main]
async fn embed() -> Result<(), Box<dyn Error>> {
    // Your program uses `ConfigRequest::of_process()` unchanged; this example uses a temporary folder.
    let folder = tempfile::tempdir()?;
    let environment = EnvironmentVariables::new([("HOME", folder.path().display().to_string())]);
    let config =
        Config::load(&ConfigRequest { environment, start: folder.path().into(), ..ConfigRequest::of_process()? })?;
    let desk = tool_group("desk", "1.0.0", [typed(Forecast), closures::sum()])?;
    let composition = App::builder(config).tool_group(desk).tool(typed(ReleaseNotes)).build().await?;

    let call = async |tool: &str, arguments: Value| {
        let outcome = composition.app.execute_tool.handle(ExecuteToolCommand::new(tool, arguments)).await;
        outcome.map(|outcome| match outcome {
            CallOutcome::Done(result) => result.joined_text(),
            CallOutcome::InputRequired(_) => "it asks for input".to_owned(),
        })
    };
    println!("{}", call("mcp__desk__forecast", json!({"city": "Bern"})).await?);
    println!("{}", call("mcp__desk__sum", json!({"numbers": [1, 2.5]})).await?);
    println!("refused as it should be: {}", call("release_notes", json!({"path": "NOTES"})).await.unwrap_err());

    // Tools can be added and removed while the program runs. Subscribers are notified.
    composition.tools.add(closures::word_count()).await?;
    composition.tools.remove_from("desk", "sum").await?;
    println!("refused as it should be: {}", composition.tools.add(closures::word_count()).await.unwrap_err());
    println!("refused as it should be: {}", call("mcp__desk__sum", json!({})).await.unwrap_err());
    composition.close().await;
    Ok(())
}
