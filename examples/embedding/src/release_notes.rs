use toolstead_presentation::prelude::*;

const LOG: &[&str] = &["git", "log", "--no-show-signature", "--format=- %s"];

#[derive(Deserialize, JsonSchema)]
pub struct Notes {
    /// Where the notes are written.
    path: String,
}

pub struct ReleaseNotes;

impl TypedTool for ReleaseNotes {
    const NAME: &str = "release_notes";
    const DESCRIPTION: &str = "Writes the subjects of all commits into a file.";
    const CATEGORY: Category = Category::File;
    type Input = Notes;
    type Output = String;

    async fn touches(&self, notes: &Notes, world: &ToolEnvironment) -> Result<DeclaredAccesses, ToolFailure> {
        let mut accesses = world.accesses_of_program(LOG).await?;
        accesses.push(Access::WritePath(world.access(&notes.path).await?));
        Ok(accesses.into())
    }

    async fn run(&self, notes: Notes, run: &ToolContext<'_>) -> Result<String, ToolFailure> {
        let log = run.run_program(LOG).await?;
        if !log.is_success() {
            let failure = ToolFailure::new(ErrorKind::ExecutionFailed, "there is no log of git here");
            return Err(failure.next("Call it where the repository is."));
        }
        run.write(&notes.path, log.stdout.clone()).await?;
        Ok(format!("{} commits, in `{}`", log.text().lines().count(), notes.path))
    }
}
