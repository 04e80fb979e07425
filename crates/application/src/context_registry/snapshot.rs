//! Snapshot of all resources and prompts.

use super::context_request_target::{self, ContextRequestTarget, ContextRequestTools};
use serde_json::{Map, Value};
use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    sync::Arc,
};
use toolstead_domain::{
    Access, AuditedRequestKind, CompletionReference, CompletionRequest, ContextCatalogue, ContextProvider,
    ContextRequest, Prompt, ResourceTemplate, Tool, ToolResult,
    context::{Resource, server_uri},
};

/// An immutable set of resources, templates and prompts, each sorted by its URI or name.
#[derive(Debug, Default)]
pub struct ContextSnapshot {
    version: u64,
    resources: Vec<PublishedContextDefinition<Resource>>,
    templates: Vec<PublishedContextDefinition<ResourceTemplate>>,
    prompts: Vec<PublishedContextDefinition<Prompt>>,
    /// The providers, in the order in which their templates are tried: in-process providers first.
    providers: Vec<Arc<ContextRequestTools>>,
}

/// A definition and its provider.
#[derive(Debug)]
pub struct PublishedContextDefinition<T> {
    /// The definition, with the URI or name under which clients receive it.
    pub definition: T,
    /// The provider's own URI or name, if it differs.
    own: Option<String>,
    answerers: Arc<ContextRequestTools>,
}

/// The catalogue of one provider.
pub(super) struct ProviderCatalogue<'a> {
    pub(super) answerers: &'a Arc<ContextRequestTools>,
    pub(super) catalogue: &'a ContextCatalogue,
}

impl ProviderCatalogue<'_> {
    fn is_of_server(&self) -> bool {
        self.answerers.provider.0.server().is_some()
    }

    fn provider(&self) -> &str {
        self.answerers.provider.0.name()
    }
}

impl<T> PublishedContextDefinition<T> {
    /// Returns the tool that represents requests of this kind in rules, hooks and tool selections.
    pub fn judged_as(&self, kind: AuditedRequestKind) -> &Tool {
        &self.answerers.of_kind(kind).tool
    }

    /// Returns the name of the provider.
    pub fn provider(&self) -> &str {
        self.answerers.provider.0.name()
    }
}

impl<T> PublishedContextDefinition<T> {
    /// Returns the access of a request for this definition.
    pub(crate) fn access(&self) -> Access
    where
        T: NamedDefinition,
    {
        let name = self.own.as_deref().unwrap_or(self.definition.identifier());
        T::access(&*self.answerers.provider.0, name)
    }
}

impl ContextSnapshot {
    /// Creates a snapshot. Definitions are published under the provider's own URI or name. If several providers have
    /// the same, the first in-process provider owns it, else its owner in the snapshot before, else the first provider.
    /// Other resources and templates of servers are made distinct, as is a resource of a server that matches a template
    /// of an in-process provider. Those of in-process providers are left out, and so are all other prompts.
    pub(super) fn of<'a>(version: u64, before: &Self, offers: impl Iterator<Item = ProviderCatalogue<'a>>) -> Self {
        let (servers, programs): (Vec<_>, Vec<_>) = offers.partition(ProviderCatalogue::is_of_server);
        let offers: Vec<_> = programs.iter().chain(&servers).collect();
        let mut snapshot = Self {
            version,
            providers: offers.iter().map(|offer| offer.answerers.clone()).collect(),
            ..Self::default()
        };
        let own_templates: Vec<_> = programs.iter().flat_map(|offer| &offer.catalogue.templates).collect();
        let mut resources = ClaimedNames::of(&offers, &before.resources, |catalogue| {
            catalogue.resources.iter().map(Resource::uri).collect()
        });
        let mut templates = ClaimedNames::of(&offers, &before.templates, |catalogue| {
            catalogue.templates.iter().map(|one| one.template().as_str()).collect()
        });
        let mut prompts = ClaimedNames::of(&offers, &before.prompts, |catalogue| {
            catalogue.prompts.iter().map(Prompt::name).collect()
        });
        for offer in &offers {
            let (provider, is_of_server) = (offer.provider(), offer.is_of_server());
            let answerers = || offer.answerers.clone();
            for one in &offer.catalogue.resources {
                let uri = one.uri();
                let fits_ours = || own_templates.iter().any(|own| own.template().fits(uri));
                match resources.take(provider, uri) {
                    ClaimStatus::Duplicate => {
                        tracing::warn!(provider, uri, "offered twice, so the second one is left out")
                    }
                    ClaimStatus::Own if !is_of_server || !(server_uri::has_distinct_prefix(uri) || fits_ours()) => {
                        snapshot.resources.push(PublishedContextDefinition {
                            definition: one.clone(),
                            own: None,
                            answerers: answerers(),
                        })
                    }
                    ClaimStatus::Own | ClaimStatus::ByAnother if is_of_server => {
                        let definition = one.at(&server_uri::of_server(provider, uri));
                        snapshot.resources.push(PublishedContextDefinition {
                            definition,
                            own: Some(uri.to_owned()),
                            answerers: answerers(),
                        });
                    }
                    ClaimStatus::Own | ClaimStatus::ByAnother => {
                        tracing::warn!(provider, uri, "another provider offers this resource, so it is left out");
                    }
                }
            }
            for one in &offer.catalogue.templates {
                let text = one.template().as_str();
                match templates.take(provider, text) {
                    ClaimStatus::Duplicate => {
                        tracing::warn!(provider, text, "offered twice, so the second one is left out")
                    }
                    ClaimStatus::Own
                        if !is_of_server || !server_uri::has_distinct_prefix(text) && one.template().has_scheme() =>
                    {
                        snapshot.templates.push(PublishedContextDefinition {
                            definition: one.clone(),
                            own: None,
                            answerers: answerers(),
                        })
                    }
                    ClaimStatus::Own | ClaimStatus::ByAnother => match one.at(&server_uri::of_server(provider, text)) {
                        Ok(definition) if is_of_server => snapshot.templates.push(PublishedContextDefinition {
                            definition,
                            own: Some(text.to_owned()),
                            answerers: answerers(),
                        }),
                        Ok(_) | Err(_) => {
                            tracing::warn!(provider, text, "another provider offers this template, so it is left out");
                        }
                    },
                }
            }
            for one in &offer.catalogue.prompts {
                match prompts.take(provider, one.name()) {
                    ClaimStatus::Own => {
                        snapshot.prompts.push(PublishedContextDefinition {
                            definition: one.clone(),
                            own: None,
                            answerers: answerers(),
                        });
                    }
                    ClaimStatus::Duplicate | ClaimStatus::ByAnother => {
                        tracing::warn!(provider, prompt = one.name(), "its name is taken, so it is left out");
                    }
                }
            }
        }
        snapshot.resources.sort_by(|a, b| a.definition.uri().cmp(b.definition.uri()));
        snapshot.templates.sort_by(|a, b| a.definition.template().as_str().cmp(b.definition.template().as_str()));
        snapshot.prompts.sort_by(|a, b| a.definition.name().cmp(b.definition.name()));
        snapshot
    }

    /// Returns the version, which rises with every change.
    pub fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn offers_resources_of(&self, other: &Self) -> bool {
        same(&self.resources, &other.resources) && same(&self.templates, &other.templates)
    }

    pub(super) fn offers_prompts_of(&self, other: &Self) -> bool {
        same(&self.prompts, &other.prompts)
    }

    /// Returns the resources, sorted by URI.
    pub fn resources(&self) -> &[PublishedContextDefinition<Resource>] {
        &self.resources
    }

    /// Returns the templates, sorted by their text.
    pub fn templates(&self) -> &[PublishedContextDefinition<ResourceTemplate>] {
        &self.templates
    }

    /// Returns the prompts, sorted by name.
    pub fn prompts(&self) -> &[PublishedContextDefinition<Prompt>] {
        &self.prompts
    }

    /// Returns the answerer of the request. It may have no provider.
    pub(crate) fn answerer(&self, request: &ContextRequest) -> ContextRequestTarget {
        let (answerers, kind) = match request {
            ContextRequest::Read { uri } => (self.of_resource(uri), AuditedRequestKind::Resource),
            ContextRequest::Get { name, .. } => (self.of_prompt(name), AuditedRequestKind::Prompt),
            ContextRequest::Complete(CompletionRequest { of: CompletionReference::Prompt(name), .. }) => {
                let registered = self.of_prompt(name).map(|answerers| answerers.completing_prompts().clone());
                return ContextRequestTarget { kind: AuditedRequestKind::Completion, registered };
            }
            ContextRequest::Complete(CompletionRequest { of: CompletionReference::Template(text), .. }) => {
                let template = self.templates.binary_search_by(|one| one.definition.template().as_str().cmp(text));
                let template = template.ok().map(|at| &self.templates[at].answerers);
                (template.or_else(|| self.listed(text)), AuditedRequestKind::Completion)
            }
        };
        ContextRequestTarget { kind, registered: answerers.map(|answerers| answerers.of_kind(kind).clone()) }
    }

    /// Returns the provider of the resource, and the URI by which that provider knows it.
    pub(crate) fn provider_of(&self, uri: &str) -> Option<(Arc<dyn ContextProvider>, String)> {
        let provider = &self.of_resource(uri)?.provider.0;
        let own = provider.server().and_then(|server| server_uri::within(server.as_str(), uri));
        Some((provider.clone(), own.unwrap_or(uri).to_owned()))
    }

    /// Returns `true` if any URI is published in another form than the provider's own.
    pub fn has_distinct_uris(&self) -> bool {
        self.resources.iter().any(|one| one.own.is_some()) || self.templates.iter().any(|one| one.own.is_some())
    }

    /// Returns the URI under which a resource of the provider is published: the given one, unless it had to be made
    /// distinct from another provider's.
    pub fn public_uri<'a>(&self, provider: &str, uri: &'a str) -> Cow<'a, str> {
        let is_named =
            |own: Option<&String>, of: &str, name: &str| of == provider && own.map_or(name, String::as_str) == uri;
        let own_resource = || {
            let mut of_it = self.resources.iter();
            of_it.any(|one| is_named(one.own.as_ref(), one.provider(), one.definition.uri()))
        };
        let own_template = || {
            self.templates.iter().filter(|one| one.provider() == provider).any(|one| match &one.own {
                None => one.definition.template().fits(uri),
                Some(_) => one.definition.template().fits(&server_uri::of_server(provider, uri)),
            })
        };
        let leads_here = self.of_resource(uri).is_some_and(|answerers| answerers.provider.0.name() == provider);
        let is_of_server =
            self.providers.iter().any(|one| one.provider.0.name() == provider && one.provider.0.server().is_some());
        if is_of_server && (!leads_here || server_uri::has_distinct_prefix(uri)) && (own_resource() || own_template()) {
            return Cow::Owned(server_uri::of_server(provider, uri));
        }
        Cow::Borrowed(uri)
    }

    /// Replaces the provider's own URIs by the published ones in a result of it: of a tool call, a resource or a
    /// prompt.
    pub fn publish_uris(&self, provider: &str, result: &mut Map<String, Value>) {
        let publish = |holder: &mut Value| {
            if let Some(Value::String(uri)) = holder.get_mut("uri")
                && let Cow::Owned(public) = self.public_uri(provider, uri)
            {
                *uri = public;
            }
        };
        let in_block = |block: &mut Value| match block.get("type").and_then(Value::as_str) {
            Some("resource_link") => publish(block),
            Some("resource") => block.get_mut("resource").into_iter().for_each(publish),
            _ => {}
        };
        let list = |member: Option<&mut Value>| member.and_then(Value::as_array_mut).map(std::mem::take);
        for (name, change) in [("contents", &publish as &dyn Fn(&mut Value)), ("content", &in_block)] {
            if let Some(mut values) = list(result.get_mut(name)) {
                values.iter_mut().for_each(change);
                result.insert(name.to_owned(), values.into());
            }
        }
        for message in result.get_mut("messages").and_then(Value::as_array_mut).into_iter().flatten() {
            match message.get_mut("content") {
                Some(Value::Array(blocks)) => blocks.iter_mut().for_each(in_block),
                Some(block) => in_block(block),
                None => {}
            }
        }
    }

    /// Replaces the provider's own URIs by the published ones in the blocks of a tool's result.
    pub(crate) fn publish_blocks(&self, provider: &str, result: &mut ToolResult) {
        if !self.has_distinct_uris() || result.only_text().is_some() {
            return;
        }
        let Some(blocks) = result.content_mut().filter(|blocks| !blocks.is_empty()) else { return };
        let mut result = Map::from_iter([("content".to_owned(), std::mem::take(blocks).into())]);
        self.publish_uris(provider, &mut result);
        if let Some(Value::Array(published)) = result.remove("content") {
            *blocks = published;
        }
    }

    fn listed(&self, uri: &str) -> Option<&Arc<ContextRequestTools>> {
        let at = self.resources.binary_search_by(|one| one.definition.uri().cmp(uri)).ok()?;
        Some(&self.resources[at].answerers)
    }

    fn of_prompt(&self, name: &str) -> Option<&Arc<ContextRequestTools>> {
        let at = self.prompts.binary_search_by(|one| one.definition.name().cmp(name)).ok()?;
        Some(&self.prompts[at].answerers)
    }

    /// Returns the provider that lists the URI; else the server for which the URI was made distinct; else the first
    /// provider with a matching template.
    fn of_resource(&self, uri: &str) -> Option<&Arc<ContextRequestTools>> {
        if let Some(listed) = self.listed(uri) {
            return Some(listed);
        }
        if server_uri::has_distinct_prefix(uri) {
            let server = server_uri::server_of(uri)?;
            return self.providers.iter().find(|one| one.provider.0.server().is_some_and(|one| one.as_str() == server));
        }
        self.providers.iter().find(|answerers| {
            let mut of_provider = self.templates.iter().filter(|one| Arc::ptr_eq(&one.answerers, answerers));
            of_provider.any(|one| one.definition.template().fits(uri))
        })
    }
}

/// The owners of URIs or names.
struct ClaimedNames<'a> {
    by_name: HashMap<&'a str, &'a str>,
    taken: HashSet<(&'a str, &'a str)>,
}

/// The claim of a provider to a URI or name.
enum ClaimStatus {
    /// The provider owns it.
    Own,
    /// Another provider owns it.
    ByAnother,
    /// The provider has claimed it before.
    Duplicate,
}

impl<'a> ClaimedNames<'a> {
    fn of<T>(
        offers: &[&'a ProviderCatalogue<'a>],
        before: &'a [PublishedContextDefinition<T>],
        names: impl Fn(&'a ContextCatalogue) -> Vec<&'a str>,
    ) -> Self
    where
        T: NamedDefinition,
    {
        let held_before: HashMap<&str, &str> = before
            .iter()
            .filter(|one| one.own.is_none())
            .map(|one| (one.definition.identifier(), one.provider()))
            .collect();
        let mut by_name: HashMap<&str, &str> = HashMap::new();
        // In-process providers come first.
        for offer in offers {
            let provider = offer.provider();
            for name in names(offer.catalogue) {
                let had_it = offer.is_of_server() && held_before.get(name) == Some(&provider);
                let holder = by_name.entry(name).or_insert(provider);
                let is_of_server =
                    |holder: &str| offers.iter().any(|one| one.provider() == holder && one.is_of_server());
                if had_it && is_of_server(holder) {
                    *holder = provider;
                }
            }
        }
        Self { by_name, taken: HashSet::new() }
    }

    fn take(&mut self, provider: &'a str, name: &'a str) -> ClaimStatus {
        if !self.taken.insert((provider, name)) {
            return ClaimStatus::Duplicate;
        }
        if self.by_name.get(name) == Some(&provider) { ClaimStatus::Own } else { ClaimStatus::ByAnother }
    }
}

/// A definition that is identified by a text.
pub(crate) trait NamedDefinition {
    fn identifier(&self) -> &str;

    /// Returns the access of a request for the definition of this name.
    fn access(provider: &dyn ContextProvider, name: &str) -> Access;
}

impl NamedDefinition for Resource {
    fn identifier(&self) -> &str {
        self.uri()
    }

    fn access(provider: &dyn ContextProvider, name: &str) -> Access {
        context_request_target::resource(provider, name)
    }
}

impl NamedDefinition for ResourceTemplate {
    fn identifier(&self) -> &str {
        self.template().as_str()
    }

    fn access(provider: &dyn ContextProvider, name: &str) -> Access {
        context_request_target::resource(provider, name)
    }
}

impl NamedDefinition for Prompt {
    fn identifier(&self) -> &str {
        self.name()
    }

    fn access(provider: &dyn ContextProvider, name: &str) -> Access {
        context_request_target::prompt(provider, name)
    }
}

fn same<T: PartialEq>(some: &[PublishedContextDefinition<T>], others: &[PublishedContextDefinition<T>]) -> bool {
    some.iter().map(|one| &one.definition).eq(others.iter().map(|one| &one.definition))
}
