//! `toolstead query TEXT`.

use super::{
    CommandResult,
    agent::{AgentFlags, PreparedAgent, exit, summary},
    conversation_choice::{ConversationSelector, find_conversation},
    exit::{CommandError, Exit},
    global::GlobalFlags,
    output::StdoutWriter,
    prompt_args::PromptArgs,
    screen::RunDisplay,
    typed_command,
};
use crate::shutdown::ShutdownListener;
use clap::Args;
use toolstead_domain::{AgentEvent, Block, ConversationId, error_kind::ErrorKind};
use uuid::Uuid;

/// Asks an agent once. Its answer goes to standard output, everything else to standard error.
#[derive(Debug, Args)]
pub struct QueryCommand {
    #[command(flatten)]
    prompt: PromptArgs,
    #[command(flatten)]
    agent: AgentFlags,
    /// Resumes the conversation with this id, or the only one whose id begins with it
    #[arg(long, value_name = "ID", conflicts_with = "last")]
    conversation: Option<String>,
    /// Resumes the last conversation of this workspace; without a prompt, its unfinished turn
    #[arg(long = "continue")]
    last: bool,
}

impl QueryCommand {
    pub(super) async fn run(self, global: &GlobalFlags, output: &mut StdoutWriter) -> CommandResult {
        let prompt = self.prompt.read()?;
        let wanted = match &self.conversation {
            Some(id) => Some(ConversationSelector::Named(id.clone())),
            None => self.last.then_some(ConversationSelector::Last),
        };
        if prompt.is_empty() && wanted.is_none() {
            let message = "there is no prompt: give a text, `-` for standard input or `@FILE`, or pipe one in";
            return Err(CommandError::Usage(message.into()));
        }
        let mut shutdown = ShutdownListener::listen()?;
        let mut agent = PreparedAgent::build(&self.agent, global, &mut shutdown).await?;
        let outcome = match typed_command::in_prompt(prompt, &agent.composition.agent_files) {
            Ok(prompt) => self.asked(&mut agent, prompt, wanted, global, output, &mut shutdown).await,
            Err(error) => Err(error),
        };
        agent.composition.close().await;
        outcome
    }

    async fn asked(
        &self,
        agent: &mut PreparedAgent,
        prompt: Vec<Block>,
        wanted: Option<ConversationSelector>,
        global: &GlobalFlags,
        output: &mut StdoutWriter,
        shutdown: &mut ShutdownListener,
    ) -> CommandResult {
        let conversation = match &wanted {
            Some(wanted) => {
                let conversation = find_conversation(&*agent.composition.app.conversations, wanted).await?;
                agent.take_up(&conversation, &self.agent, global)?;
                conversation.id
            }
            None => ConversationId(Uuid::now_v7()),
        };
        let mut screen = RunDisplay::new(output, global);
        if let Some(line) = agent.unbounded_cost() {
            screen.note(&line);
        }
        let turned = agent.turn(conversation, prompt, &mut screen, shutdown).await?;
        let Some(end) = turned.end else { return Ok(Exit::Reported(ErrorKind::Cancelled)) };
        if let Some(line) = summary(&end, conversation) {
            screen.note(&line);
        }
        match end {
            AgentEvent::Ended { outcome, .. } => Ok(exit(&outcome)),
            _ => Ok(Exit::Done),
        }
    }
}
