//! All resources and prompts at one moment.

use super::answerer::{Answerer, Answerers};
use std::{collections::BTreeSet, sync::Arc};
use toolstead_domain::{
    context::{
        ContextCatalogue, Prompt, Resource, ResourceTemplate,
        request::{Completion, CompletionOf, ContextRequest},
    },
    tool::Tool,
    tool_execution::RequestKind,
};

/// An immutable set of resources, templates and prompts, each sorted by what it is known by.
#[derive(Debug, Default)]
pub struct ContextSnapshot {
    version: u64,
    resources: Vec<Offered<Resource>>,
    templates: Vec<Offered<ResourceTemplate>>,
    prompts: Vec<Offered<Prompt>>,
}

/// A definition with who answers for it.
#[derive(Debug)]
pub struct Offered<T> {
    /// The definition.
    pub definition: T,
    answerers: Arc<Answerers>,
}

/// The offer of one provider.
pub(super) struct Offer<'a> {
    pub(super) provider: &'a str,
    pub(super) answerers: &'a Arc<Answerers>,
    pub(super) catalogue: &'a ContextCatalogue,
}

impl<T> Offered<T> {
    /// The tool that stands for requests of that kind where rules, hooks and the choice of tools judge them.
    pub fn judged_as(&self, kind: RequestKind) -> &Tool {
        &self.answerers.of_kind(kind).tool
    }
}

impl ContextSnapshot {
    /// The first of two providers that come to offer the same keeps it.
    pub(super) fn of<'a>(version: u64, offers: impl Iterator<Item = Offer<'a>>) -> Self {
        let mut snapshot = Self { version, ..Self::default() };
        let mut seen = BTreeSet::new();
        for Offer { provider, answerers, catalogue } in offers {
            let mut is_free = |what: &'static str, name: &str| {
                let is_free = seen.insert((what, name.to_owned()));
                if !is_free {
                    tracing::warn!(provider, name, "another provider offers this {what} already, so it is left out");
                }
                is_free
            };
            let answerers = || answerers.clone();
            for resource in catalogue.resources.iter().filter(|one| is_free("resource", one.uri())) {
                snapshot.resources.push(Offered { definition: resource.clone(), answerers: answerers() });
            }
            for template in catalogue.templates.iter().filter(|one| is_free("template", one.template().as_str())) {
                snapshot.templates.push(Offered { definition: template.clone(), answerers: answerers() });
            }
            for prompt in catalogue.prompts.iter().filter(|one| is_free("prompt", one.name())) {
                snapshot.prompts.push(Offered { definition: prompt.clone(), answerers: answerers() });
            }
        }
        snapshot.resources.sort_by(|a, b| a.definition.uri().cmp(b.definition.uri()));
        snapshot.templates.sort_by(|a, b| a.definition.template().as_str().cmp(b.definition.template().as_str()));
        snapshot.prompts.sort_by(|a, b| a.definition.name().cmp(b.definition.name()));
        snapshot
    }

    /// Rises with every change.
    pub fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn offers_resources_of(&self, other: &Self) -> bool {
        same(&self.resources, &other.resources) && same(&self.templates, &other.templates)
    }

    pub(super) fn offers_prompts_of(&self, other: &Self) -> bool {
        same(&self.prompts, &other.prompts)
    }

    /// The resources, sorted by URI.
    pub fn resources(&self) -> &[Offered<Resource>] {
        &self.resources
    }

    /// The templates, sorted by their text.
    pub fn templates(&self) -> &[Offered<ResourceTemplate>] {
        &self.templates
    }

    /// The prompts, sorted by name.
    pub fn prompts(&self) -> &[Offered<Prompt>] {
        &self.prompts
    }

    /// The one who answers the request, nobody perhaps.
    pub(crate) fn answerer(&self, request: &ContextRequest) -> Answerer {
        let is_resource = |uri: &String| self.resources.iter().find(|one| one.definition.uri() == uri);
        let of_prompt = |name: &String| {
            let prompt = self.prompts.iter().find(|one| one.definition.name() == name);
            prompt.map(|one| &one.answerers)
        };
        let (answerers, kind) = match request {
            ContextRequest::Read { uri } => {
                let fitting = || self.templates.iter().find(|one| one.definition.template().fits(uri));
                let listed = is_resource(uri).map(|one| &one.answerers);
                (listed.or_else(|| fitting().map(|one| &one.answerers)), RequestKind::Resource)
            }
            ContextRequest::Get { name, .. } => (of_prompt(name), RequestKind::Prompt),
            ContextRequest::Complete(Completion { of: CompletionOf::Prompt(name), .. }) => {
                let registered = of_prompt(name).map(|answerers| answerers.completing_prompts().clone());
                return Answerer { kind: RequestKind::Completion, registered };
            }
            ContextRequest::Complete(Completion { of: CompletionOf::Template(text), .. }) => {
                let template = self.templates.iter().find(|one| one.definition.template().as_str() == text);
                let resource = || is_resource(text).map(|one| &one.answerers);
                (template.map(|one| &one.answerers).or_else(resource), RequestKind::Completion)
            }
        };
        Answerer { kind, registered: answerers.map(|answerers| answerers.of_kind(kind).clone()) }
    }
}

fn same<T: PartialEq>(some: &[Offered<T>], others: &[Offered<T>]) -> bool {
    some.iter().map(|one| &one.definition).eq(others.iter().map(|one| &one.definition))
}
