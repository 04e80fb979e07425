//! The elements of a page as a list, with the numbers and attributes that some dialects use.

use crate::browser::{
    attributes::Attributes,
    session::BrowserSession,
    snapshot::{Snapshot, SnapshotLine},
};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashMap;
use url::Url;

/// Maximum number of fields and images whose attributes are queried.
const MAX_ASKED: usize = 300;
/// Maximum number of options of a list in a result.
const MAX_OPTIONS: usize = 50;

/// Roles of fields and images, which their attributes describe.
const FIELDS: [&str; 13] = [
    "checkbox",
    "combobox",
    "listbox",
    "radio",
    "searchbox",
    "slider",
    "spinbutton",
    "textbox",
    "Date",
    "DateTime",
    "InputTime",
    "ColorWell",
    "image",
];
/// Roles of texts.
const TEXTS: [&str; 6] = ["text", "heading", "cell", "columnheader", "gridcell", "rowheader"];

/// An element that can be used, or a text.
#[derive(Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(in crate::builtin) struct PageElement {
    /// The number that `element_id` takes; texts have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<usize>,
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    reference: Option<String>,
    role: String,
    /// The name, or the words of a text.
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    /// The value of a field; absent for a password.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    /// The address of a link or image.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// The tag of a field.
    #[serde(skip_serializing_if = "String::is_empty")]
    tag: String,
    /// The type of a field.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    placeholder: Option<String>,
    /// The name by which a form sends the field.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    /// The options of a list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    options: Vec<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    checked: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    disabled: bool,
}

/// Returns the elements of the latest reported page that fit into this number of characters, and the number left out.
pub(in crate::builtin) async fn elements(session: &BrowserSession, characters: usize) -> (Vec<PageElement>, usize) {
    let seen = session.state().current().and_then(|tab| Some((tab.last_snapshot.clone()?, tab.url.clone())));
    let Some((page, address)) = seen else { return Default::default() };
    let address = Url::parse(&address).ok();
    let is_shown = page.first_used(characters);
    let places: Vec<usize> = places(&page).collect();
    let numbers: HashMap<_, _> = page.references().zip(1..).collect();
    let (mut elements, mut asked) = (Vec::new(), 0);
    for place in places.iter().copied().filter(|place| is_shown[*place]) {
        let line = &page.lines[place];
        let mut element = PageElement::of(line);
        // Lines contain addresses relative to the page.
        if let (Some(url), Some(address)) = (&mut element.url, &address) {
            *url = address.join(url).map_or_else(|_| url.clone(), String::from);
        }
        if let Some(reference) = line.reference {
            element.id = numbers.get(&reference).copied();
            if FIELDS.contains(&line.role()) && asked < MAX_ASKED {
                asked += 1;
                element.take(&session.attributes(reference).await);
            }
        }
        if is_list(line) {
            element.options = options(&page, place);
        }
        elements.push(element);
    }
    let left_out = places.len() - elements.len();
    (elements, left_out)
}

/// Returns the indexes of the lines that are elements. The options of a list are part of the list.
fn places(page: &Snapshot) -> impl Iterator<Item = usize> {
    let mut list_depth = None;
    page.lines.iter().enumerate().filter_map(move |(place, line)| {
        list_depth = list_depth.filter(|depth| *depth < line.depth);
        if list_depth.is_some() && line.role() == "option" {
            return None;
        }
        if is_list(line) {
            list_depth = Some(line.depth);
        }
        (line.reference.is_some() || TEXTS.contains(&line.role())).then_some(place)
    })
}

fn is_list(line: &SnapshotLine) -> bool {
    matches!(line.role(), "combobox" | "listbox")
}

fn options(page: &Snapshot, list: usize) -> Vec<String> {
    let below = page.lines[list + 1..].iter().take_while(|line| line.depth > page.lines[list].depth);
    below.filter(|line| line.role() == "option").take(MAX_OPTIONS).map(|line| line.name().to_owned()).collect()
}

impl PageElement {
    fn of(line: &SnapshotLine) -> Self {
        Self {
            reference: line.reference.map(|reference| reference.to_string()),
            role: line.role().into(),
            name: line.name().into(),
            value: line.value().map(str::to_owned),
            url: line.url().map(str::to_owned),
            checked: line.is("checked"),
            disabled: line.is("disabled"),
            ..Self::default()
        }
    }

    fn take(&mut self, attributes: &Attributes) {
        let text = |name| attributes.get(name).map(str::to_owned);
        self.tag = attributes.tag.clone();
        self.kind = text("type").map(|kind| kind.to_ascii_lowercase());
        self.placeholder = text("placeholder");
        self.field = text("name");
        self.url = self.url.take().or_else(|| text("src"));
        if attributes.is_password() {
            self.value = None;
        }
    }
}
