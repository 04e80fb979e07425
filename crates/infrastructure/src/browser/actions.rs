//! Actions of a user on a page: clicking, typing, choosing, waiting, and taking pictures.
//!
//! Scripts run in an isolated world of their own, whose functions the page cannot replace. Values are passed to them as
//! arguments, never as part of their text. Clicks and keys are sent like those of a mouse and a keyboard.

use crate::browser::{
    accessibility::plain_text,
    devtools::{CommandTarget, DevToolsError},
    keyboard::KeyPress,
    references::ElementReference,
    session::{BrowserSession, BrowserSessionError},
    state::BrowserState,
};
use serde_json::{Value, json};
use std::{path::PathBuf, time::Instant};
use tokio::time::timeout_at;

/// Maximum size of a picture in pixels, per axis and in total.
const MAX_PICTURE_SIDE: f64 = 16_000.0;
const MAX_PICTURE_PIXELS: f64 = 32e6;
/// Range of pages to print.
const PRINTED: &str = "1-200";

/// Name of the isolated world in each frame.
const WORLD: &str = "toolstead";

/// Script that returns what covers the middle of an element, or why it cannot be clicked otherwise; an empty text if it
/// can be clicked. Frames around it that belong to the same site are checked as well.
const COVER: &str = "function () {
    const box = this.getBoundingClientRect();
    if (box.width < 1 || box.height < 1) return 'it is not visible';
    if (this.disabled || this.closest?.('[inert], fieldset[disabled]')) return 'it is disabled';
    const report = on => {
        const text = (on.innerText || '').trim().slice(0, 60);
        return `<${on.localName}${on.id ? ` id=\"${on.id}\"` : ''}>${text ? ` (\"${text}\")` : ''} covers it`;
    };
    let x = box.left + box.width / 2, y = box.top + box.height / 2;
    const { innerWidth, innerHeight } = this.ownerDocument.defaultView;
    if (x < 0 || y < 0 || x >= innerWidth || y >= innerHeight) return 'it is outside of the visible area';
    const on = this.getRootNode().elementFromPoint(x, y);
    const inner = this.localName === 'label' && on?.closest('a, button, input, select, textarea');
    if (inner && this.contains(inner) && inner !== this.control) return report(inner);
    const label = this.labels && [...this.labels].some(label => label.contains(on));
    if (on && !this.contains(on) && !on.contains(this) && !label && !on.shadowRoot) return report(on);
    for (let view = this.ownerDocument.defaultView; view?.frameElement; view = view.parent) {
        const frame = view.frameElement, edge = frame.getBoundingClientRect();
        x += edge.left + frame.clientLeft;
        y += edge.top + frame.clientTop;
        const over = frame.getRootNode().elementFromPoint(x, y);
        if (over && over !== frame && !over.contains(frame) && !over.shadowRoot) return report(over);
    }
    return '';
}";

/// Script that returns the first visible label of a field that is not disabled; `null` if there is none.
const LABEL: &str = "function () {
    return !this.disabled && [...(this.labels || [])].find(label => label.getClientRects().length > 0) || null;
}";

/// Types into a field, replacing its content or appending to it. Returns the reason if the field takes no text. All of
/// it is one call: keys go to whatever has the focus, and a frame of another site could take the focus to receive the
/// text. The page of the field still receives key events: one for each key, or only the last one of a long text. A text
/// with line feeds is inserted as from a clipboard. For a secret, the page receives a single key event without a name:
/// a page that repeats typed text would otherwise repeat each beginning of it.
const TYPE: &str = "function (text, clear, secret) {
    if (this.disabled || this.readOnly) return 'it takes no text';
    const others = ['button', 'checkbox', 'file', 'image', 'radio', 'reset', 'submit'];
    const field = 'value' in this && this.localName !== 'select' && !others.includes(this.type);
    if (!this.isContentEditable && !field) return 'it is not a text field';
    this.focus();
    if (this.getRootNode().activeElement !== this && !this.isContentEditable) return 'it does not keep the focus';
    const page = this.ownerDocument;
    if (this.isContentEditable) {
        const chosen = page.getSelection();
        chosen.selectAllChildren(this);
        if (!clear) chosen.collapseToEnd();
    } else if (clear) this.select?.();
    else if (this.selectionStart !== null) this.setSelectionRange?.(this.value.length, this.value.length);
    if (!text && clear) page.execCommand('delete');
    const characters = [...text];
    const keys = secret || /[\\x00-\\x1f\\x7f]/.test(text) ? [] : characters.splice(characters.length > 100 ? -1 : 0);
    const unnamed = kind => this.dispatchEvent(
        new KeyboardEvent(kind, { key: 'Unidentified', keyCode: 229, bubbles: true, cancelable: true, composed: true }));
    if (secret) unnamed('keydown');
    if (characters.length) page.execCommand('insertText', false, characters.join(''));
    if (secret) unnamed('keyup');
    for (const key of keys) {
        const hears = (kind, more) => this.dispatchEvent(
            new KeyboardEvent(kind, { key, bubbles: true, cancelable: true, composed: true, ...more }));
        const code = { charCode: key.codePointAt(0), keyCode: key.codePointAt(0) };
        if (hears('keydown') && hears('keypress', code)) page.execCommand('insertText', false, key);
        hears('keyup');
        if (this.getRootNode().activeElement !== this && !this.isContentEditable) return 'it does not keep the focus';
    }
    return '';
}";

/// Sets the value of a field that takes no text from a keyboard, such as a date. Returns `true` if it was set, `false`
/// for all other fields, and the reason if the value was not taken.
const PUT: &str = "function (value, submits) {
    const examples = { color: '#1a2b3c', date: '2026-12-24', 'datetime-local': '2026-12-24T18:30', month: '2026-12',
        range: '5', time: '18:30', week: '2026-W52' };
    const example = this.localName === 'input' ? examples[this.type] : undefined;
    if (example === undefined) return false;
    if (this.disabled || this.readOnly) return 'it takes no text';
    const before = this.value;
    this.focus();
    this.value = value;
    const isTaken = this.type === 'range' ? +this.value === +value
        : this.type === 'color' ? this.value === value.toLowerCase()
        : this.value !== '' || value === '';
    if (!isTaken) {
        this.value = before;
        return `it does not take ${JSON.stringify(value.slice(0, 60))}; a value for it looks like ${example}`;
    }
    this.dispatchEvent(new Event('input', { bubbles: true }));
    this.dispatchEvent(new Event('change', { bubbles: true }));
    if (submits) this.form?.requestSubmit();
    return true;
}";

/// Selects the options with these values or texts, and no others. Returns an empty text, or else the reason, with the
/// available options if one is missing.
const CHOOSE: &str = "function (wanted) {
    if (this.localName !== 'select') return 'it is not a list of options';
    if (this.disabled) return 'it is disabled';
    if (!this.multiple && wanted.length > 1) return 'it takes one value';
    const all = [...this.options];
    const found = wanted.map(word => all.find(one => one.value === word) || all.find(one => one.label.trim() === word.trim()));
    const missing = wanted.filter((_, place) => !found[place] || found[place].disabled);
    if (missing.length) {
        const there = all.filter(one => !one.disabled).slice(0, 30).map(one => one.label.trim().slice(0, 60)).join(', ');
        return `it has no ${JSON.stringify(missing[0].slice(0, 60))}; there are ${there}`;
    }
    for (const one of all) one.selected = found.includes(one);
    this.dispatchEvent(new Event('input', { bubbles: true }));
    this.dispatchEvent(new Event('change', { bubbles: true }));
    return '';
}";

/// Resolves once a selector matches a visible element, or once a text appears on the page or disappears from it.
const APPEARS: &str = "function (selector, text, gone) {
    const visible = one => one.getClientRects().length > 0;
    const there = () => selector
        ? [...document.querySelectorAll(selector)].some(visible)
        : (document.body?.innerText || '').includes(text);
    return new Promise(resolve => {
        const look = () => { if (there() !== gone) { watch.disconnect(); clearInterval(again); resolve(true); } };
        const watch = new MutationObserver(look);
        const again = setInterval(look, 200);
        watch.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
        look();
    });
}";

/// A condition to wait for on a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PageCondition {
    /// A CSS selector matches a visible element.
    Selector(String),
    /// The page contains the text.
    Text(String),
    /// The page no longer contains the text.
    TextGone(String),
}

/// The format of a picture of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PictureFormat {
    Png,
    Jpeg,
}

/// A picture of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Screenshot {
    /// The file, in base64.
    pub(crate) data: String,
    /// `true` if the page is larger than the picture.
    pub(crate) is_cut: bool,
}

impl BrowserSession {
    /// Clicks the middle of an element.
    ///
    /// # Errors
    /// [`BrowserSessionError`]; the element was not clicked then, unless the browser has ended.
    pub(crate) async fn click(&self, reference: ElementReference, is_double: bool) -> Result<(), BrowserSessionError> {
        let (target, x, y) = self.point_at(reference).await?;
        for count in 1..=if is_double { 2 } else { 1 } {
            for kind in ["mousePressed", "mouseReleased"] {
                let event = json!({"type": kind, "x": x, "y": y, "button": "left", "clickCount": count});
                self.command(&target, "Input.dispatchMouseEvent", event).await?;
            }
        }
        Ok(())
    }

    /// Scrolls an element into view, and moves the mouse over its middle, or over that of its label if it is hidden.
    /// Returns the target for further input, and the position in CSS pixels.
    ///
    /// # Errors
    /// [`BrowserSessionError`].
    pub(crate) async fn point_at(
        &self,
        reference: ElementReference,
    ) -> Result<(CommandTarget, f64, f64), BrowserSessionError> {
        let (target, object) = self.resolve_element(reference).await?;
        let object = self.clickable(reference, &target, object).await?;
        let node = json!({"objectId": object});
        let gone = |_| BrowserSessionError::Stale(reference);
        let quads = self.command(&target, "DOM.getContentQuads", node).await.map_err(gone)?;
        let unusable = || BrowserSessionError::Unusable { reference, reason: "it is not visible".into() };
        let (x, y) = quads.get("quads").and_then(|quads| middle(quads.get(0)?)).ok_or_else(unusable)?;
        self.command(&target, "Input.dispatchMouseEvent", json!({"type": "mouseMoved", "x": x, "y": y})).await?;
        Ok((target, x, y))
    }

    /// Returns the element, scrolled into view and uncovered, or else its label: a field that a page hides behind a
    /// label is clicked there, as users do.
    async fn clickable(
        &self,
        reference: ElementReference,
        target: &CommandTarget,
        object: Value,
    ) -> Result<Value, BrowserSessionError> {
        let Err(reason) = self.uncovered(reference, target, &object).await else { return Ok(object) };
        if !matches!(reason, BrowserSessionError::Unusable { .. }) {
            return Err(reason);
        }
        let label = self.call_on(reference, target, &object, LABEL, json!([]), false).await?;
        let label = label.get("objectId").cloned().ok_or(reason)?;
        self.uncovered(reference, target, &label).await?;
        Ok(label)
    }

    /// Scrolls an element into view, and checks that nothing covers it.
    async fn uncovered(
        &self,
        reference: ElementReference,
        target: &CommandTarget,
        object: &Value,
    ) -> Result<(), BrowserSessionError> {
        let scrolled = self.command(target, "DOM.scrollIntoViewIfNeeded", json!({"objectId": object})).await;
        scrolled.map_err(|error| match error {
            BrowserSessionError::DevTools(DevToolsError::Refused { message, .. }) if message.contains("layout") => {
                BrowserSessionError::Unusable { reference, reason: "it is not visible".into() }
            }
            BrowserSessionError::DevTools(_) => BrowserSessionError::Stale(reference),
            error => error,
        })?;
        self.ask_element(reference, target, object, COVER, json!([])).await?;
        Ok(())
    }

    /// Types a text into a field, replacing its content or appending to it. With `submits`, the form is submitted
    /// afterwards.
    ///
    /// # Errors
    /// [`BrowserSessionError`].
    pub(crate) async fn type_text(
        &self,
        reference: ElementReference,
        text: &str,
        clears: bool,
        submits: bool,
    ) -> Result<(), BrowserSessionError> {
        self.enter(reference, text, clears, submits, false).await
    }

    /// Types a secret as [`type_text`](Self::type_text) types a text, in one piece.
    ///
    /// # Errors
    /// [`BrowserSessionError`].
    pub(crate) async fn type_secret(
        &self,
        reference: ElementReference,
        secret: &str,
        clears: bool,
        submits: bool,
    ) -> Result<(), BrowserSessionError> {
        self.enter(reference, secret, clears, submits, true).await
    }

    async fn enter(
        &self,
        reference: ElementReference,
        text: &str,
        clears: bool,
        submits: bool,
        is_secret: bool,
    ) -> Result<(), BrowserSessionError> {
        let (target, object) = self.resolve_element(reference).await?;
        let put = json!([{"value": text}, {"value": submits}]);
        if self.ask_element(reference, &target, &object, PUT, put).await? == Value::Bool(true) {
            return Ok(());
        }
        let host = self.host_of(reference);
        let arguments = json!([{"value": text}, {"value": clears}, {"value": is_secret}]);
        self.ask_element(reference, &target, &object, TYPE, arguments).await?;
        if submits {
            let focused = self.focused_host().await?;
            if focused.is_some() && focused != host {
                return Err(BrowserSessionError::Unusable { reference, reason: "it does not keep the focus".into() });
            }
            self.press(&target, &KeyPress::ENTER).await?;
        }
        Ok(())
    }

    /// Selects the options of a list with these values or visible texts, and no others.
    ///
    /// # Errors
    /// [`BrowserSessionError`].
    pub(crate) async fn select(
        &self,
        reference: ElementReference,
        values: &[String],
    ) -> Result<(), BrowserSessionError> {
        let (target, object) = self.resolve_element(reference).await?;
        self.ask_element(reference, &target, &object, CHOOSE, json!([{"value": values}])).await?;
        Ok(())
    }

    /// Passes files of the shared folder to a field for files.
    ///
    /// # Errors
    /// [`BrowserSessionError`].
    pub(crate) async fn give_files(
        &self,
        reference: ElementReference,
        files: &[PathBuf],
    ) -> Result<(), BrowserSessionError> {
        let (target, object) = self.resolve_element(reference).await?;
        let give = async |element: Value| {
            let mut params = json!({"files": files});
            if let (Some(params), Value::Object(element)) = (params.as_object_mut(), element) {
                params.extend(element);
            }
            self.command(&target, "DOM.setFileInputFiles", params).await
        };
        if give(json!({"objectId": object})).await.is_err() {
            // The element is a button that was clicked and made its page ask for files.
            let asked = {
                let state = self.state();
                let document = state.references.element(reference).map(|element| element.document.clone());
                state.current().and_then(|tab| {
                    let (frame, node) = tab.file_chooser.as_ref()?;
                    (*tab.frames.get(frame)?.document == *document?).then_some(*node)
                })
            };
            let reason = "it accepts no files; click the button that requests them first".to_owned();
            let unusable = BrowserSessionError::Unusable { reference, reason };
            let Some(node) = asked else { return Err(unusable) };
            give(json!({"backendNodeId": node})).await.map_err(|_| unusable)?;
        }
        if let Some(tab) = self.state().current_mut() {
            tab.file_chooser = None;
        }
        Ok(())
    }

    /// Waits for a condition on the page, also across navigations.
    ///
    /// # Errors
    /// [`BrowserSessionError::TimedOut`], or an error if the selector is invalid.
    pub(crate) async fn wait_for(&self, sight: &PageCondition, end: Instant) -> Result<(), BrowserSessionError> {
        let (selector, text, is_gone) = match sight {
            PageCondition::Selector(selector) => (Some(selector), None, false),
            PageCondition::Text(text) => (None, Some(text), false),
            PageCondition::TextGone(text) => (None, Some(text), true),
        };
        let arguments = json!([{"value": selector}, {"value": text}, {"value": is_gone}]);
        let looking = async {
            loop {
                // A new tab has no page yet.
                let has_page = |state: &BrowserState| state.current().is_none_or(|tab| tab.main_frame.is_some());
                self.when(end, |state| has_page(state).then_some(())).await?;
                let target = self.target()?;
                let world = self.create_isolated_world(&target, None).await?;
                let params = json!({"functionDeclaration": APPEARS, "executionContextId": world,
                    "arguments": arguments, "awaitPromise": true, "returnByValue": true});
                match self.lasting_command(&target, "Runtime.callFunctionOn", params).await {
                    Ok(answer) => match answer.get("exceptionDetails") {
                        None => return Ok(()),
                        Some(thrown) => return Err(BrowserSessionError::NotOpened(thrown_text(thrown))),
                    },
                    // Another page was loaded meanwhile.
                    Err(BrowserSessionError::DevTools(_)) if !self.has_ended() => {
                        self.when(end, |state| state.current().is_none_or(|tab| !tab.is_loading).then_some(())).await?;
                    }
                    Err(error) => return Err(error),
                }
            }
        };
        timeout_at(end.into(), looking).await.unwrap_or(Err(BrowserSessionError::TimedOut))
    }

    /// Takes a picture of the visible part, or of the whole page up to the maximum size.
    ///
    /// # Errors
    /// [`BrowserSessionError`].
    pub(crate) async fn picture(
        &self,
        is_whole: bool,
        format: PictureFormat,
    ) -> Result<Screenshot, BrowserSessionError> {
        let target = self.target()?;
        let format = match format {
            PictureFormat::Png => "png",
            PictureFormat::Jpeg => "jpeg",
        };
        let mut params = json!({"format": format, "captureBeyondViewport": is_whole, "optimizeForSpeed": true});
        let mut is_cut = false;
        if is_whole {
            let metrics = self.command(&target, "Page.getLayoutMetrics", json!({})).await?;
            let side = |name| metrics.get("cssContentSize").and_then(|size| size.get(name)?.as_f64()).unwrap_or(1.0);
            let (width, height, cut) = fitted(side("width"), side("height"));
            is_cut = cut;
            params["clip"] = json!({"x": 0, "y": 0, "width": width, "height": height, "scale": 1});
        }
        let answer = self.command(&target, "Page.captureScreenshot", params).await?;
        self.may_be_shown(&target)?;
        let data = answer.get("data").and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok(Screenshot { data, is_cut })
    }

    /// Returns the page as a PDF document in base64, with at most 200 printed pages.
    ///
    /// # Errors
    /// [`BrowserSessionError`].
    pub(crate) async fn pdf(&self) -> Result<String, BrowserSessionError> {
        let target = self.target()?;
        let params = json!({"printBackground": true, "preferCSSPageSize": true, "pageRanges": PRINTED});
        let answer = self.command(&target, "Page.printToPDF", params).await?;
        self.may_be_shown(&target)?;
        Ok(answer.get("data").and_then(Value::as_str).unwrap_or_default().to_owned())
    }

    /// Moves the tab by `by` entries in its history, back if negative. Returns `false` if there is no such entry.
    ///
    /// # Errors
    /// [`BrowserSessionError`].
    pub(crate) async fn step(&self, by: i64) -> Result<bool, BrowserSessionError> {
        let target = self.target()?;
        let history = self.command(&target, "Page.getNavigationHistory", json!({})).await?;
        let current = history.get("currentIndex").and_then(Value::as_i64).unwrap_or_default();
        let entry = current
            .checked_add(by)
            .and_then(|place| usize::try_from(place).ok())
            .and_then(|place| history.get("entries")?.get(place)?.get("id"));
        let Some(entry) = entry else { return Ok(false) };
        self.state().forget_not_shown();
        self.command(&target, "Page.navigateToHistoryEntry", json!({"entryId": entry})).await?;
        Ok(true)
    }

    /// Returns the target of an element, and a handle to it in the isolated world of its document, and of no other
    /// document.
    pub(super) async fn resolve_element(
        &self,
        reference: ElementReference,
    ) -> Result<(CommandTarget, Value), BrowserSessionError> {
        let (target, element) = self.element(reference)?;
        let gone = || BrowserSessionError::Stale(reference);
        let frame = self.state().current().and_then(|tab| {
            let found = tab.frames.iter().find(|(_, frame)| *frame.document == *element.document);
            found.map(|(id, _)| id.clone())
        });
        let world = self.create_isolated_world(&target, Some(frame.ok_or_else(gone)?)).await?;
        let resolve = json!({"backendNodeId": element.node, "executionContextId": world});
        let resolved = self.command(&target, "DOM.resolveNode", resolve).await.map_err(|_| gone())?;
        let object = resolved.get("object").and_then(|object| object.get("objectId")).cloned().ok_or_else(gone)?;
        // Another document may have been loaded into the frame meanwhile, with an element of the same number. Its event
        // arrived before this answer.
        self.element(reference)?;
        Ok((target, object))
    }

    /// Calls a script on an element. A text that it returns is the reason why the element cannot be used; an empty text
    /// is not a reason.
    async fn ask_element(
        &self,
        reference: ElementReference,
        target: &CommandTarget,
        object: &Value,
        function: &str,
        arguments: Value,
    ) -> Result<Value, BrowserSessionError> {
        let result = self.call_on(reference, target, object, function, arguments, true).await?;
        match result.get("value") {
            Some(Value::String(reason)) if !reason.is_empty() => {
                Err(BrowserSessionError::Unusable { reference, reason: plain_text(reason) })
            }
            value => Ok(value.cloned().unwrap_or_default()),
        }
    }

    /// Calls a script on an element, and returns its result: a value, or a handle to an object.
    async fn call_on(
        &self,
        reference: ElementReference,
        target: &CommandTarget,
        object: &Value,
        function: &str,
        arguments: Value,
        is_value: bool,
    ) -> Result<Value, BrowserSessionError> {
        let params = json!({"functionDeclaration": function, "objectId": object, "arguments": arguments,
            "returnByValue": is_value});
        let mut answer = self.command(target, "Runtime.callFunctionOn", params).await?;
        match answer.get("exceptionDetails") {
            Some(thrown) => Err(BrowserSessionError::Unusable { reference, reason: thrown_text(thrown) }),
            None => Ok(answer.get_mut("result").map(Value::take).unwrap_or_default()),
        }
    }

    /// Creates the isolated world of a frame, or of the page itself if no frame is given, unless it exists. Returns the
    /// id of its execution context.
    ///
    /// # Errors
    /// [`BrowserSessionError`].
    pub(crate) async fn create_isolated_world(
        &self,
        target: &CommandTarget,
        frame: Option<String>,
    ) -> Result<Value, BrowserSessionError> {
        let main = || self.state().current().and_then(|tab| tab.main_frame.clone());
        let frame = frame.or_else(main).ok_or(BrowserSessionError::NoTab)?;
        let params = json!({"frameId": frame, "worldName": WORLD});
        let world = self.command(target, "Page.createIsolatedWorld", params).await?;
        Ok(world.get("executionContextId").cloned().unwrap_or_default())
    }
}

/// Returns the size of the picture of a page, and `true` if the page is larger.
fn fitted(width: f64, height: f64) -> (f64, f64, bool) {
    let across = width.clamp(1.0, MAX_PICTURE_SIDE);
    let down = height.clamp(1.0, MAX_PICTURE_SIDE.min(MAX_PICTURE_PIXELS / across));
    (across, down, across < width || down < height)
}

/// Returns the middle of a box from its four corners.
fn middle(quad: &Value) -> Option<(f64, f64)> {
    let corners: Vec<f64> = quad.as_array()?.iter().map(Value::as_f64).collect::<Option<_>>()?;
    let [a, b, c, d, e, f, g, h] = corners[..] else { return None };
    Some(((a + c + e + g) / 4.0, (b + d + f + h) / 4.0))
}

fn thrown_text(thrown: &Value) -> String {
    let description = thrown.get("exception").and_then(|exception| exception.get("description")).or(thrown.get("text"));
    plain_text(description.and_then(Value::as_str).and_then(|text| text.lines().next()).unwrap_or("it failed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_screenshot_is_limited_in_width_height_and_area() {
        for (page, picture) in [
            ((1_280.0, 800.0), (1_280.0, 800.0, false)),
            ((1_280.0, 16_001.0), (1_280.0, 16_000.0, true)),
            ((1e9, 800.0), (16_000.0, 800.0, true)),
            ((16_000.0, 16_000.0), (16_000.0, 2_000.0, true)),
            ((0.0, f64::INFINITY), (1.0, 16_000.0, true)),
        ] {
            assert_eq!(fitted(page.0, page.1), picture);
        }
    }
}
