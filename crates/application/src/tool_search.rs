//! Search of tools by words, and by meaning where embeddings are configured.
//!
//! Nothing is stored per caller: the tools of each search are those that its scope may call. Only words and vectors of
//! definitions are cached.

mod bm25;
mod definition_words;
mod meaning;
mod search_query;
mod stems;

use bm25::{Ranked, rank};
use definition_words::DefinitionWords;
use meaning::Meanings;
use search_query::SearchQuery;
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};
use toolstead_domain::{Embeddings, Tool};

/// Maximum time for the embeddings of one search. Then words alone decide.
const TIME_FOR_EMBEDDINGS: Duration = Duration::from_secs(20);

/// Searches tools.
///
/// ```
/// use std::sync::Arc;
/// use toolstead_application::tool_search::ToolSearch;
/// use toolstead_domain::{Category, Tool, ToolName, ToolSource};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let named = |name| Ok::<_, Box<dyn std::error::Error>>(Arc::new(Tool::new(
///     ToolName::parse(name)?,
///     Default::default(),
///     Category::File,
///     ToolSource::BuiltIn,
/// )));
/// let tools = [named("read_file")?, named("send_mail")?];
/// let found = ToolSearch::default().search("reading files", &tools).await;
/// assert_eq!(found.tools[0].name().as_str(), "read_file");
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct ToolSearch {
    meanings: Option<Meanings>,
    /// Words of definitions, by the address of the tool. An entry is valid while its tool exists.
    words: Mutex<HashMap<usize, (Weak<Tool>, Arc<DefinitionWords>)>>,
}

/// Tools that a search found.
#[derive(Debug, Clone)]
pub struct FoundTools {
    /// All matching tools, best first.
    pub tools: Vec<Arc<Tool>>,
    /// Reason why words alone decided although embeddings are configured.
    pub note: Option<String>,
}

impl ToolSearch {
    /// Creates a search that ranks by meaning.
    pub fn with_embeddings(embeddings: Arc<dyn Embeddings>) -> Self {
        Self { meanings: Some(Meanings::new(embeddings)), ..Self::default() }
    }

    /// Searches these tools. Tools with a name in the query are first. A word `+word` must occur in the definition.
    pub async fn search(&self, query: &str, tools: &[Arc<Tool>]) -> FoundTools {
        let query = SearchQuery::parse(query);
        let documents: Vec<Arc<DefinitionWords>> = tools.iter().map(|tool| self.words_of(tool)).collect();
        let mut ranked = rank(&query, &documents);
        let mut note = None;
        if let Some(meanings) = self.meanings.as_ref().filter(|_| !query.text.is_empty()) {
            let required: Vec<bool> = documents.iter().map(|words| query.is_met_by(words)).collect();
            let ranking = meanings.similarities(&query.text, tools);
            match tokio::time::timeout(TIME_FOR_EMBEDDINGS, ranking).await {
                Ok(Ok(similarities)) => ranked = by_meaning(similarities, &required),
                Ok(Err(error)) => note = Some(error.to_string()),
                Err(_) => note = Some(format!("no answer within {} s", TIME_FOR_EMBEDDINGS.as_secs())),
            }
        }
        let mut found: Vec<Arc<Tool>> = tools.iter().filter(|tool| query.names_tool(tool)).cloned().collect();
        found.extend(ranked.iter().map(|one| &tools[one.index]).filter(|tool| !query.names_tool(tool)).cloned());
        FoundTools { tools: found, note }
    }

    /// Returns the words of the definition, which are computed once for each tool.
    fn words_of(&self, tool: &Arc<Tool>) -> Arc<DefinitionWords> {
        let mut cache = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        let key = Arc::as_ptr(tool) as usize;
        if let Some((known, words)) = cache.get(&key)
            && known.upgrade().is_some_and(|known| Arc::ptr_eq(&known, tool))
        {
            return words.clone();
        }
        // Definitions that no longer exist are removed when the cache grows.
        if cache.len() == cache.capacity() {
            cache.retain(|_, (known, _)| known.strong_count() > 0);
        }
        let words = Arc::new(DefinitionWords::of(tool));
        cache.insert(key, (Arc::downgrade(tool), words.clone()));
        words
    }
}

/// Returns the ranking by similarity of the tools that have all required words.
fn by_meaning(similarities: Vec<f32>, is_met: &[bool]) -> Vec<Ranked> {
    let ranked = similarities.into_iter().enumerate().filter(|(index, _)| is_met[*index]);
    let mut ranked: Vec<Ranked> = ranked.map(|(index, score)| Ranked { index, score: score.into() }).collect();
    ranked.sort_by(Ranked::best_first);
    ranked
}

impl fmt::Debug for ToolSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolSearch").field("has_embeddings", &self.meanings.is_some()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
