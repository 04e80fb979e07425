use embedding::{forecast::Forecast, offline_model::OfflineModel};
use std::{error::Error, sync::Arc};
use toolstead_presentation::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    enter_if_helper();
    ask()
}

#[tokio::main]
async fn ask() -> Result<(), Box<dyn Error>> {
    // Your application would use `ConfigRequest::of_process()` unchanged, and the models of the configuration.
    let folder = tempfile::tempdir()?;
    let environment = EnvironmentVariables::new([("HOME", folder.path().display().to_string())]);
    let config =
        Config::load(&ConfigRequest { environment, start: folder.path().into(), ..ConfigRequest::of_process()? })?;
    let composition = App::builder(config).model(Arc::new(OfflineModel::default())).build().await?;

    let desk = tool_group("desk", "1.0.0", [typed(Forecast)])?;
    let mut run = composition.app.query("What is the weather in Bern?").server(desk).start().await?;
    while let Some(event) = run.next().await {
        match event {
            AgentEvent::CallEnded { tool, text, .. } => println!("{tool}: {text}"),
            AgentEvent::Ended { text, .. } => println!("{text}"),
            _ => {}
        }
    }
    composition.close().await;
    Ok(())
}
