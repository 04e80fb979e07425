//! The description of the surroundings, and instructions of folders.

use super::*;
use std::sync::Mutex;
use toolstead_domain::{DeliveredInstructions, FolderInstructions, InstructionFile, SurroundingsDescription};

/// Surroundings with instructions for each touched path below `/w`. Records the requested paths.
#[derive(Default)]
pub(super) struct Desk {
    pub(super) asked: Mutex<Vec<Vec<PathBuf>>>,
    /// `true`: there are neither instructions nor notes.
    pub(super) is_bare: bool,
}

#[async_trait::async_trait]
impl AgentSurroundings for Desk {
    async fn describe(&self, _: ConversationId) -> SurroundingsDescription {
        SurroundingsDescription {
            text: "You are at home.".into(),
            notes: if self.is_bare { Vec::new() } else { vec!["a file was not read".into()] },
            has_folder_instructions: !self.is_bare,
        }
    }

    async fn instructions_for(&self, paths: &[PathBuf], delivered: &DeliveredInstructions) -> FolderInstructions {
        self.asked.lock().unwrap().push(paths.to_vec());
        let section = InstructionFile { file: "w/AGENTS.md".into(), text: "Be brief.".into() };
        let is_new = !delivered.files.contains(&section.file);
        FolderInstructions { sections: is_new.then_some(section).into_iter().collect(), notes: Vec::new() }
    }
}

fn plan(desk: &Arc<Desk>) -> Plan {
    Plan { surroundings: Some(desk.clone()), ..Plan::default() }
}

#[tokio::test]
async fn the_description_follows_the_system_prompt_only_if_the_run_asks_for_it() {
    let house = plan(&Arc::default()).house(Arc::new(provider())).await;
    let model = model([text("one"), text("two"), text("three")]);
    house.run(&model, "go").await;
    for system in ["You are brief.\n", ""] {
        let command = house.command(&model, "go");
        let ran = house.ran(RunAgentCommand { system: system.into(), has_surroundings: true, ..command }).await;
        assert_eq!(ran.notices(), ["a file was not read"]);
    }
    let systems: Vec<String> = model.requests().into_iter().map(|request| request.system).collect();
    assert_eq!(systems, ["", "You are brief.\n\nYou are at home.", "You are at home."]);
}

#[tokio::test]
async fn instructions_of_a_folder_are_delivered_once_after_the_first_call_that_touches_it() {
    let desk = Arc::new(Desk::default());
    let house = plan(&desk).house(Arc::new(provider())).await;
    let model = model([
        call("c1", "echo"),
        call("c2", "read"),
        call("c3", "read").and_call("c4", "broken", json!({})),
        text("done"),
        call("c5", "read"),
        text("done"),
    ]);
    let command = || RunAgentCommand { has_surroundings: true, ..house.command(&model, "go") };
    house.ran(command()).await;
    house.ran(command()).await;
    let history = house.history().await;
    let delivered: Vec<usize> = (0..history.len()).filter(|at| history[*at].contains("<instructions file")).collect();
    let after: Vec<&str> = delivered.iter().map(|at| history[at - 1].as_str()).collect();
    assert_eq!(after, ["result c2: content"], "{history:#?}");
    assert_eq!(*desk.asked.lock().unwrap(), vec![vec![PathBuf::from("/w/a")]; 3]);
    let request = &model.requests()[2];
    assert_eq!(words(&request.messages.last().unwrap().blocks).matches("Be brief.").count(), 1, "{request:#?}");
}

#[tokio::test]
async fn a_refused_call_does_not_load_the_instructions_of_its_folder() {
    let desk = Arc::new(Desk::default());
    let plan = Plan { rules: vec![(Effect::Deny, "read")], ..plan(&desk) };
    let house = plan.house(Arc::new(provider())).await;
    let model = model([call("c1", "read"), text("done")]);
    house.ran(RunAgentCommand { has_surroundings: true, ..house.command(&model, "go") }).await;
    assert!(desk.asked.lock().unwrap().is_empty());
}
