//! Lists the public items of a crate, by reading its source files.
//!
//! A `pub` item of a private module counts: the compiler warns of one that nothing outside of the crate can reach.

use quote::ToTokens;
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};
use syn::{
    Attribute, Fields, File, ImplItem, Item, ItemEnum, ItemImpl, ItemMod, ItemStruct, ItemTrait, Meta, TraitItem, Type,
    Visibility,
};

/// Attributes that are part of a promise to users.
const ATTRIBUTES: [&str; 3] = ["cfg", "derive", "non_exhaustive"];

/// Returns the listing of the crate with this source folder: one line for each item, field list, method and variant,
/// sorted.
pub(super) fn listing(source: &Path) -> String {
    let mut crate_items = CrateItems::default();
    crate_items.read(&source.join("lib.rs"), source, &[]);
    let CrateItems { mut lines, impls, types } = crate_items;
    lines.extend(impls.into_iter().filter(|one| types.contains(&one.of)).map(|one| one.line));
    lines.into_iter().map(|line| line + "\n").collect()
}

#[derive(Default)]
struct CrateItems {
    lines: BTreeSet<String>,
    impls: Vec<ImplLine>,
    /// Names of the public types and traits.
    types: BTreeSet<String>,
}

/// A line of an `impl` block, which counts if its type is public.
struct ImplLine {
    of: String,
    line: String,
}

impl CrateItems {
    /// Reads a file of the module `path`, whose submodules are in `folder`.
    fn read(&mut self, file: &Path, folder: &Path, path: &[String]) {
        let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let File { items, .. } = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        self.take(items, folder, path);
    }

    fn take(&mut self, items: Vec<Item>, folder: &Path, path: &[String]) {
        let named = |name: &dyn ToTokens| path.iter().cloned().chain([text(name)]).collect::<Vec<_>>().join("::");
        for item in items {
            match item {
                Item::Mod(module) => self.module(module, folder, path),
                Item::Struct(ItemStruct { attrs, vis, ident, generics, fields, .. }) if is_public(&vis) => {
                    self.types.insert(ident.to_string());
                    let (head, bounds) = (text(&generics), text(&generics.where_clause));
                    let fields = shown_fields(&fields, false);
                    self.add(&attrs, format!("pub struct {}{head}{} {bounds}", named(&ident), fields));
                }
                Item::Enum(ItemEnum { attrs, vis, ident, generics, variants, .. }) if is_public(&vis) => {
                    self.types.insert(ident.to_string());
                    let head = format!("pub enum {}{}", named(&ident), text(&generics));
                    if variants.is_empty() {
                        self.add(&attrs, head.clone());
                    }
                    for variant in variants {
                        let fields = shown_fields(&variant.fields, true);
                        self.add(&attrs, format!("{head} {{ {}{fields} }}", variant.ident));
                    }
                }
                Item::Trait(item) if is_public(&item.vis) => self.take_trait(item, &named),
                Item::Fn(item) if is_public(&item.vis) => {
                    let signature = text(&item.sig);
                    let name = item.sig.ident.to_string();
                    self.add(&item.attrs, format!("pub {}", signature.replacen(&name, &named(&item.sig.ident), 1)));
                }
                Item::Const(item) if is_public(&item.vis) => {
                    self.add(&item.attrs, format!("pub const {}: {}", named(&item.ident), text(&item.ty)));
                }
                Item::Static(item) if is_public(&item.vis) => {
                    self.add(&item.attrs, format!("pub static {}: {}", named(&item.ident), text(&item.ty)));
                }
                Item::Type(item) if is_public(&item.vis) => {
                    self.types.insert(item.ident.to_string());
                    let line = format!("pub type {}{} = {}", named(&item.ident), text(&item.generics), text(&item.ty));
                    self.add(&item.attrs, line);
                }
                Item::Use(item) if is_public(&item.vis) => {
                    let place = if path.is_empty() { String::new() } else { format!("in {}: ", path.join("::")) };
                    self.add(&item.attrs, format!("{place}pub use {}", text(&item.tree)));
                }
                Item::Impl(item) if !is_for_tests(&item.attrs) => self.take_impl(item),
                _ => {}
            }
        }
    }

    fn module(&mut self, ItemMod { attrs, vis, ident, content, .. }: ItemMod, folder: &Path, path: &[String]) {
        if is_for_tests(&attrs) {
            return;
        }
        let inner: Vec<String> = path.iter().cloned().chain([ident.to_string()]).collect();
        if is_public(&vis) {
            self.add(&attrs, format!("pub mod {}", inner.join("::")));
        }
        let below = folder.join(ident.to_string());
        match content {
            Some((_, items)) => self.take(items, &below, &inner),
            None => {
                let files: [PathBuf; 2] = [below.with_extension("rs"), below.join("mod.rs")];
                if let Some(file) = files.iter().find(|file| file.is_file()) {
                    self.read(file, &below, &inner);
                }
            }
        }
    }

    fn take_trait(&mut self, item: ItemTrait, named: &dyn Fn(&dyn ToTokens) -> String) {
        self.types.insert(item.ident.to_string());
        let head = format!("pub trait {}{}", named(&item.ident), text(&item.generics));
        let bounds = text(&item.supertraits);
        let bounds = if bounds.is_empty() { bounds } else { format!(": {bounds}") };
        self.add(&item.attrs, format!("{head}{bounds}"));
        for part in item.items {
            let (attributes, line) = match part {
                TraitItem::Fn(part) => {
                    let body = if part.default.is_some() { " { .. }" } else { "" };
                    (part.attrs, format!("{}{body}", text(&part.sig)))
                }
                TraitItem::Const(part) => {
                    let value = if part.default.is_some() { " = .." } else { "" };
                    (part.attrs, format!("const {}: {}{value}", part.ident, text(&part.ty)))
                }
                TraitItem::Type(part) => {
                    let bounds = text(&part.bounds);
                    let bounds = if bounds.is_empty() { bounds } else { format!(": {bounds}") };
                    (part.attrs, format!("type {}{bounds}", part.ident))
                }
                _ => continue,
            };
            self.add(&attributes, format!("{head}: {line}"));
        }
    }

    fn take_impl(&mut self, item: ItemImpl) {
        let Some(of) = base(&item.self_ty) else { return };
        let (generics, own) = (text(&item.generics), text(&item.self_ty));
        if let Some((implemented, _)) = &item.trait_ {
            let line = format!("impl{generics} {} for {own}", text(implemented));
            return self.impls.push(ImplLine { of, line: with_attributes(&item.attrs, &line) });
        }
        for part in item.items {
            let (attributes, line) = match part {
                ImplItem::Fn(part) if is_public(&part.vis) => (part.attrs, text(&part.sig)),
                ImplItem::Const(part) if is_public(&part.vis) => {
                    (part.attrs, format!("const {}: {}", part.ident, text(&part.ty)))
                }
                _ => continue,
            };
            if !is_for_tests(&attributes) {
                let line = with_attributes(&attributes, &format!("impl{generics} {own}: pub {line}"));
                self.impls.push(ImplLine { of: of.clone(), line });
            }
        }
    }

    fn add(&mut self, attributes: &[Attribute], line: String) {
        if !is_for_tests(attributes) {
            self.lines.insert(with_attributes(attributes, &line));
        }
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| matches!(&attribute.meta, Meta::List(list) if list.path.is_ident("cfg") && list.tokens.to_string().starts_with("test")))
}

/// Returns the name of the type that an `impl` block is for, without its path and parameters.
fn base(of: &Type) -> Option<String> {
    match of {
        Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
        Type::Reference(reference) => base(&reference.elem),
        _ => None,
    }
}

/// Returns public fields, or all fields of a variant.
fn shown_fields(fields: &Fields, all: bool) -> String {
    let is_shown = |visibility: &Visibility| all || is_public(visibility);
    let mark = |visibility: &Visibility| if all { String::new() } else { format!("{} ", text(visibility)) };
    let mut shown: Vec<String> = fields
        .iter()
        .filter(|field| is_shown(&field.vis))
        .map(|field| {
            let name = field.ident.as_ref().map_or(String::new(), |name| format!("{name}: "));
            format!("{}{name}{}", mark(&field.vis), text(&field.ty))
        })
        .collect();
    if shown.len() < fields.len() {
        shown.push("..".to_owned());
    }
    match fields {
        Fields::Named(_) => format!(" {{ {} }}", shown.join(", ")),
        Fields::Unnamed(_) => format!("({})", shown.join(", ")),
        Fields::Unit => String::new(),
    }
}

fn with_attributes(attributes: &[Attribute], line: &str) -> String {
    let kept = attributes.iter().filter(|one| ATTRIBUTES.iter().any(|name| one.path().is_ident(name)));
    let attributes: String = kept.map(|one| text(one) + " ").collect();
    format!("{attributes}{line}").trim_end().to_owned()
}

/// Returns the tokens as they are usually written.
fn text(tokens: &(impl ToTokens + ?Sized)) -> String {
    let mut text = tokens.to_token_stream().to_string();
    for (spaced, usual) in [
        ("\n", " "),
        (" :: ", "::"),
        (":: ", "::"),
        (" ::", "::"),
        (" < ", "<"),
        ("< ", "<"),
        (" <", "<"),
        (" >", ">"),
        ("& ", "&"),
        (" ,", ","),
        (" (", "("),
        ("( ", "("),
        (" )", ")"),
        (" :", ":"),
        (" ;", ";"),
        ("# [", "#["),
        ("[ ", "["),
        (" ]", "]"),
        (",)", ")"),
        (",>", ">"),
        (" ?", "?"),
        ("? ", "?"),
    ] {
        text = text.replace(spaced, usual);
    }
    // The arrow of a return type, and parameters after a keyword.
    text.replace("->(", "-> (").replace(">where", "> where")
}
