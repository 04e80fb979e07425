//! Asks a model one question and prints the answer as it comes:
//!
//! `cargo run -p toolstead-infrastructure --example models -- anthropic MODEL QUESTION < KEY`
#![expect(clippy::print_stdout, reason = "an example shows what it got")]

use std::{collections::BTreeMap, error::Error, io::Write, sync::Arc};
use toolstead_domain::{Message, ModelEvent, ModelProvider, ModelRequest, Secret};
use toolstead_infrastructure::{
    egress::connector::{Connector, SystemNetwork},
    http::client::HttpClient,
    models::{KeySource, Model, ModelSettings, ProviderKind},
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let usage = "usage: models anthropic|openai|openai_responses|gemini MODEL QUESTION < KEY";
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [kind, model, question] = words.as_slice() else { return Err(usage.into()) };
    let kind = ProviderKind::parse(kind).ok_or(usage)?;
    let mut key = String::new();
    std::io::stdin().read_line(&mut key)?;
    let settings = ModelSettings {
        name: "example".into(),
        kind,
        model: model.clone(),
        base_url: kind.usual_base_url().into(),
        key: KeySource::Known(Secret::new(key.trim())),
        max_output_tokens: 1000,
        context_tokens: 100_000,
        thinking_tokens: None,
        reasoning_effort: None,
        takes_images: false,
        prices: None,
        headers: BTreeMap::new(),
        temperature: None,
    };
    // The model's own server, which may also be on this machine.
    let client = HttpClient::new(Connector::to_configured_hosts(Arc::new(SystemNetwork::default())));
    let model = Model::new(settings, client)?;
    let mut answer = model.send(ModelRequest::of(vec![Message::user(question)])).await?;
    while let Some(event) = answer.next().await {
        match event? {
            ModelEvent::TextDelta(text) => {
                print!("{text}");
                std::io::stdout().flush()?;
            }
            ModelEvent::Retrying { after, reason } => println!("[again in {} ms: {reason}]", after.as_millis()),
            ModelEvent::Finished { stop, usage } => println!("\n[{}, {} tokens]", stop.as_str(), usage.total()),
            _ => {}
        }
    }
    Ok(())
}
