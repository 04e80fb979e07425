//! Search of tools by words, and by meaning where embeddings are configured.
//!
//! Nothing is stored per caller: the tools of each search are those that its scope may call. Only words and vectors of
//! definitions are cached.

mod bm25;
mod definition_words;
mod search_query;
mod similarity;
mod stems;
mod synonyms;

use bm25::{ToolRank, rank};
use definition_words::DefinitionWords;
use search_query::SearchQuery;
use similarity::EmbeddingSimilarity;
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
    time::Duration,
};
use synonyms::Synonyms;
use toolstead_domain::{Embeddings, Tool};

/// Maximum time for the embeddings of one search. Then words alone decide.
const TIME_FOR_EMBEDDINGS: Duration = Duration::from_secs(20);

/// The words of a definition, with the tool that they belong to.
type WordCacheEntry = (Weak<Tool>, Arc<DefinitionWords>);

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
    similarity_model: Option<EmbeddingSimilarity>,
    /// Words of definitions, by the address of the tool. An entry is valid while its tool exists.
    words: Mutex<HashMap<usize, WordCacheEntry>>,
    /// Read by the first search.
    synonyms: OnceLock<Synonyms>,
}

/// Tools that a search found.
#[derive(Debug, Clone)]
pub struct ToolMatches {
    /// The matching tools, best first. Where embeddings decided, all tools with the required words match.
    pub tools: Vec<Arc<Tool>>,
    /// Reason why words alone decided although embeddings are configured.
    pub note: Option<String>,
}

impl ToolSearch {
    /// Creates a search that ranks by meaning, or by words alone if the embeddings fail.
    pub fn with_embeddings(embeddings: Arc<dyn Embeddings>) -> Self {
        Self { similarity_model: Some(EmbeddingSimilarity::new(embeddings)), ..Self::default() }
    }

    /// Searches these tools. Tools that the query names are first, and always match. All others must have each word
    /// that the query marks as `+word`.
    pub async fn search(&self, query: &str, tools: &[Arc<Tool>]) -> ToolMatches {
        let query = SearchQuery::parse(query);
        let documents: Vec<Arc<DefinitionWords>> = tools.iter().map(|tool| self.words_of(tool)).collect();
        let mut ranked = rank(&query, &documents, self.synonyms.get_or_init(Synonyms::load));
        let mut note = None;
        if let Some(similarity_model) = self.similarity_model.as_ref().filter(|_| !query.text.is_empty()) {
            let required: Vec<bool> = documents.iter().map(|words| query.is_met_by(words)).collect();
            let ranking = similarity_model.similarities(&query.text, tools);
            match tokio::time::timeout(TIME_FOR_EMBEDDINGS, ranking).await {
                Ok(Ok(similarities)) => ranked = rank_by_similarity(similarities, &required),
                Ok(Err(error)) => note = Some(error.to_string()),
                Err(_) => note = Some(format!("no answer within {} s", TIME_FOR_EMBEDDINGS.as_secs())),
            }
        }
        let mut found: Vec<Arc<Tool>> = tools.iter().filter(|tool| query.names_tool(tool)).cloned().collect();
        found.extend(ranked.iter().map(|one| &tools[one.index]).filter(|tool| !query.names_tool(tool)).cloned());
        ToolMatches { tools: found, note }
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
fn rank_by_similarity(similarities: Vec<f32>, is_met: &[bool]) -> Vec<ToolRank> {
    let ranked = similarities.into_iter().enumerate().filter(|(index, _)| is_met[*index]);
    let mut ranked: Vec<ToolRank> = ranked.map(|(index, score)| ToolRank { index, score: score.into() }).collect();
    ranked.sort_by(ToolRank::best_first);
    ranked
}

impl fmt::Debug for ToolSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolSearch").field("has_embeddings", &self.similarity_model.is_some()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
