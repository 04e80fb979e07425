//! Snapshot of all tools.

use super::{AbsentServer, output_readers::OutputReaders};
use serde_json::value::RawValue;
use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap, HashSet},
    sync::{Arc, OnceLock},
};
use toolstead_domain::{
    Dialect, FormatValidation, InvalidSchema, Tool, ToolInputSchema, ToolProvider, ToolSource,
    tool_input_schema::nearest_name,
};

/// Maximum number of suggestions for an unknown name.
const NEAREST: usize = 3;

/// An immutable set of tools, sorted by name.
pub struct ToolSnapshot {
    version: u64,
    tools: Vec<Arc<RegisteredTool>>,
    by_name: HashMap<Arc<str>, usize>,
    /// Indices of tools by their other names; several if tools share such a name.
    by_alias: HashMap<String, Vec<usize>>,
    omitted_tools: Vec<ShadowedTool>,
    output_readers: OutputReaders,
}

/// A tool that is not offered: another provider has a tool of its name, or its name could pass for that of another
/// tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShadowedTool {
    /// Name of the provider of the omitted tool.
    pub provider: String,
    /// Name of the tool.
    pub tool: String,
}

/// Forms in which one dialect shows a tool.
type LazyToolForms = OnceLock<Vec<Arc<RegisteredTool>>>;

/// A tool with its provider, and values that are derived from its definition on first use.
pub struct RegisteredTool {
    /// The tool as clients see it: `own`, or its form in a dialect.
    pub tool: Arc<Tool>,
    /// The tool itself, to which rules apply.
    pub own: Arc<Tool>,
    /// The provider that runs it.
    pub provider: Arc<dyn ToolProvider>,
    input: OnceLock<Result<ToolInputSchema, InvalidSchema>>,
    output: OnceLock<Option<ToolInputSchema>>,
    wire: OnceLock<Box<RawValue>>,
    /// Forms by dialect, each made when a caller first uses the dialect.
    dialect_forms: OnceLock<Vec<(Dialect, LazyToolForms)>>,
}

/// The reason why a name does not lead to exactly one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResolveError {
    /// No tool has this name. Contains the nearest names, at most three.
    Unknown(Vec<String>),
    /// Several tools could be meant. Contains their canonical names.
    Ambiguous(Vec<String>),
    /// A tool of an unavailable server could be meant.
    Absent(AbsentServer),
}

impl std::fmt::Debug for ToolSnapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolSnapshot").field("version", &self.version).field("tools", &self.tools.len()).finish()
    }
}

impl std::fmt::Debug for RegisteredTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RegisteredTool").field("tool", self.tool.name()).finish_non_exhaustive()
    }
}

impl ToolSnapshot {
    pub(super) fn empty() -> Self {
        Self {
            version: 0,
            tools: Vec::new(),
            by_name: HashMap::new(),
            by_alias: HashMap::new(),
            omitted_tools: Vec::new(),
            output_readers: OutputReaders::default(),
        }
    }

    /// Returns the next snapshot, with the unchanged tools of this one. If two providers offer the same name, the first
    /// one owns it, and the tool of the other is omitted.
    pub(super) fn successor<'a>(
        &self,
        offered: impl Iterator<Item = (&'a Arc<dyn ToolProvider>, &'a Tool)>,
        disabled: &BTreeSet<String>,
    ) -> Self {
        let mut seen = BTreeSet::new();
        let mut left_out = Vec::new();
        let mut tools: Vec<Arc<RegisteredTool>> = Vec::new();
        for (provider, tool) in offered {
            if is_disguised(tool, &tools) || !seen.insert(tool.name().clone()) {
                left_out.push(ShadowedTool { provider: provider.name().into(), tool: tool.name().to_string() });
                continue;
            }
            let enabled = !disabled.contains(tool.name().as_str());
            tools.push(self.taken_over(provider, tool, enabled).unwrap_or_else(|| {
                let mut tool = tool.clone();
                tool.enabled = enabled;
                let tool = Arc::new(tool);
                Arc::new(RegisteredTool::new(tool, provider.clone()))
            }));
        }
        tools.sort_by(|a, b| a.tool.name().cmp(b.tool.name()));
        let by_name = tools.iter().enumerate().map(|(at, one)| (one.tool.name().as_str().into(), at)).collect();
        let mut by_alias: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, one) in tools.iter().enumerate() {
            let mut spellings: BTreeSet<String> = one.tool.aliases.iter().map(|alias| alias.name.to_owned()).collect();
            if let Some(upstream) = one.tool.upstream_aliases() {
                spellings.insert(one.tool.rule_name().to_string());
                spellings.extend(upstream);
            }
            for spelling in spellings {
                by_alias.entry(spelling).or_default().push(at);
            }
        }
        let output_readers = OutputReaders::of(tools.iter().map(|one| &*one.tool));
        Self { version: self.version + 1, tools, by_name, by_alias, omitted_tools: left_out, output_readers }
    }

    fn taken_over(&self, provider: &Arc<dyn ToolProvider>, tool: &Tool, enabled: bool) -> Option<Arc<RegisteredTool>> {
        let old = &self.tools[*self.by_name.get(tool.name().as_str())?];
        let same = Arc::ptr_eq(&old.provider, provider) && old.tool.enabled == enabled && {
            let Tool { category, tags, aliases, availability, takes_command_lines, reads_outputs, .. } = tool;
            old.tool.has_definitions_of(tool)
                && (&old.tool.category, &old.tool.tags, old.tool.source()) == (category, tags, tool.source())
                && (&old.tool.aliases, &old.tool.availability) == (aliases, availability)
                && (&old.tool.takes_command_lines, &old.tool.reads_outputs) == (takes_command_lines, reads_outputs)
                && old.tool.passes_references_on == tool.passes_references_on
                && old.tool.stands_alone == tool.stands_alone
                && old.tool.pending == tool.pending
        };
        same.then(|| old.clone())
    }

    /// Returns the version, which rises with every change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns all tools, sorted by name, including those that cannot be called.
    pub fn tools(&self) -> &[Arc<RegisteredTool>] {
        &self.tools
    }

    /// Returns the forms in which lists of the dialect show the tool: those of its dialect adapters, else the tool
    /// itself. A form whose name leads to another tool is omitted.
    pub fn shown_in<'a>(
        &'a self,
        dialect: Option<Dialect>,
        tool: &'a Arc<RegisteredTool>,
    ) -> impl Iterator<Item = &'a Arc<RegisteredTool>> {
        let faces = dialect.map_or(&[][..], |dialect| tool.dialect_forms(dialect));
        let leads_here = move |face: &&Arc<RegisteredTool>| {
            let resolved = self.resolve_in(dialect, face.tool.name().as_str());
            resolved.is_ok_and(|one| Arc::ptr_eq(one, tool))
        };
        let mut shown = faces.iter().filter(leads_here).peekable();
        let itself = shown.peek().is_none().then_some(tool);
        shown.chain(itself)
    }

    /// Returns the tools that are not offered, because their names are taken or could pass for those of other tools.
    pub fn omitted_tools(&self) -> &[ShadowedTool] {
        &self.omitted_tools
    }

    /// Returns the tools that read stored outputs.
    pub(crate) fn output_readers(&self) -> &OutputReaders {
        &self.output_readers
    }

    /// Resolves a name without a dialect: see [`resolve_in`](Self::resolve_in).
    ///
    /// # Errors
    /// [`ResolveError`] with names that may be meant.
    pub fn resolve(&self, name: &str) -> Result<&Arc<RegisteredTool>, ResolveError> {
        self.resolve_in(None, name)
    }

    /// Resolves a name to a tool: by its canonical name, else by an alias of the caller's dialect, else by another
    /// alias that leads to exactly one tool. Case counts.
    ///
    /// # Errors
    /// [`ResolveError`] with names that may be meant.
    pub fn resolve_in(&self, dialect: Option<Dialect>, name: &str) -> Result<&Arc<RegisteredTool>, ResolveError> {
        if let Some(at) = self.by_name.get(name) {
            return Ok(&self.tools[*at]);
        }
        let speaks = |one: &RegisteredTool| one.tool.aliases.iter().any(|alias| alias.is(name, dialect));
        match self.by_alias.get(name).map(Vec::as_slice) {
            Some([at]) => Ok(&self.tools[*at]),
            Some(several) => {
                let mut of_dialect = several.iter().map(|at| &self.tools[*at]).filter(|one| speaks(one));
                if let (Some(one), None) = (of_dialect.next(), of_dialect.next()) {
                    return Ok(one);
                }
                Err(ResolveError::Ambiguous(several.iter().map(|at| self.tools[*at].tool.name().to_string()).collect()))
            }
            None => Err(ResolveError::Unknown(self.nearest(name))),
        }
    }

    /// Returns at most three names of callable tools: those with the most similar letters, then those with the most
    /// words in common.
    fn nearest(&self, name: &str) -> Vec<String> {
        let mut known: Vec<&str> =
            self.tools.iter().filter(|one| one.tool.is_callable()).map(|one| one.tool.name().as_str()).collect();
        let mut nearest = Vec::new();
        while let (true, Some(near)) = (nearest.len() < NEAREST, nearest_name(name, known.iter().copied())) {
            nearest.push(near.to_owned());
            known.retain(|other| *other != near);
        }
        let asked = words(name);
        let mut alike: Vec<(usize, &str)> =
            known.into_iter().map(|other| (words(other).intersection(&asked).count(), other)).collect();
        alike.retain(|(common, _)| *common > 0);
        alike.sort_by_key(|(common, other)| (Reverse(*common), *other));
        let room = NEAREST - nearest.len();
        nearest.extend(alike.into_iter().take(room).map(|(_, other)| other.to_owned()));
        nearest
    }
}

/// Returns the words of a tool's name in lower case, without those of one or two letters, and without `mcp`, the prefix
/// of all tools of servers.
fn words(name: &str) -> HashSet<String> {
    let name: String = name.chars().take(128).collect();
    let words = name.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
    words.filter(|word| word.chars().count() > 2 && word != "mcp").collect()
}

/// Returns `true` if a tool that is advertised under its server's own name could pass for another: its name is an alias
/// of a tool before it, or has the form of a qualified name.
fn is_disguised(tool: &Tool, others: &[Arc<RegisteredTool>]) -> bool {
    let name = tool.name().as_str();
    let is_plain = matches!(tool.source(), ToolSource::McpServer { .. }) && tool.rule_name().as_str() != name;
    let is_alias = || others.iter().any(|other| other.tool.aliases.iter().any(|alias| alias.name == name));
    is_plain && (name.starts_with("mcp__") || is_alias())
}

impl RegisteredTool {
    pub(crate) fn new(tool: Arc<Tool>, provider: Arc<dyn ToolProvider>) -> Self {
        let (input, output, wire, dialect_forms) = Default::default();
        Self { own: tool.clone(), tool, provider, input, output, wire, dialect_forms }
    }

    /// Returns the tool in another form. Rules still apply to its own definition.
    pub(crate) fn shown_as(&self, form: Tool) -> Self {
        Self { own: self.own.clone(), ..Self::new(Arc::new(form), self.provider.clone()) }
    }

    /// Returns the forms in which a dialect shows the tool; none if the dialect has no adapter for it.
    fn dialect_forms(&self, dialect: Dialect) -> &[Arc<Self>] {
        let dialects = self.dialect_forms.get_or_init(|| {
            let mut dialects: Vec<Dialect> = Vec::new();
            for alias in &self.tool.aliases {
                if alias.adapter.is_some() && !dialects.contains(&alias.dialect) {
                    dialects.push(alias.dialect);
                }
            }
            dialects.into_iter().map(|dialect| (dialect, LazyToolForms::new())).collect()
        });
        let Some((_, forms)) = dialects.iter().find(|(one, _)| *one == dialect) else { return &[] };
        forms.get_or_init(|| {
            let shown = self.tool.shown_in(dialect).into_iter().flatten();
            shown.map(|form| Arc::new(self.shown_as(form))).collect()
        })
    }

    /// Returns the compiled input schema. A tool of a server without a schema, or with `null`, accepts any arguments.
    ///
    /// # Errors
    /// [`InvalidSchema`] if it cannot be compiled.
    pub fn input_schema(&self) -> Result<&ToolInputSchema, &InvalidSchema> {
        let formats =
            if self.provider.owns_schemas() { FormatValidation::Asserted } else { FormatValidation::Annotations };
        let compile = || match self.tool.input_schema() {
            serde_json::Value::Null => ToolInputSchema::compile(&serde_json::json!({}), formats),
            schema => ToolInputSchema::compile(schema, formats),
        };
        self.input.get_or_init(compile).as_ref()
    }

    /// Returns the compiled schema of the structured content, if the tool declares one that can be compiled.
    pub fn output_schema(&self) -> Option<&ToolInputSchema> {
        let compile = || ToolInputSchema::compile(self.tool.output_schema()?, FormatValidation::Annotations).ok();
        self.output.get_or_init(compile).as_ref()
    }

    /// Returns the advertised definition as JSON text, which is serialized once.
    pub fn wire(&self) -> &RawValue {
        self.wire.get_or_init(|| {
            serde_json::value::to_raw_value(self.tool.advertised()).unwrap_or_else(|_| RawValue::NULL.to_owned())
        })
    }
}
