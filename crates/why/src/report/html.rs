//! A diagnosis as one page that needs nothing else: no network, no other file.
//!
//! What was measured stands in it as JSON, and the page's own script (`shared.js` and `page.js`) makes elements of it, as text and
//! never as markup. A browser without scripts shows the report for terminals.

use std::fmt::Write as _;

use serde_json::Value;

use super::{TextOptions, json, text};
use crate::diagnosis::Diagnosis;

/// Nothing may be loaded, wherever a text should get through.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      img-src data:; base-uri 'none'; form-action 'none'";

/// A login that was followed on the host, for the page.
#[derive(Debug, Clone, PartialEq)]
pub struct Followed {
    /// The object that docs/json.md calls `trace`.
    pub data: Value,
    /// Its lines for terminals.
    pub text: String,
}

/// The page of one host.
pub fn html(diagnosis: &Diagnosis, followed: Option<&Followed>) -> String {
    let mut plain = text(
        diagnosis,
        TextOptions {
            width: 100,
            unicode: true,
            colour: false,
            all_causes: true,
        },
    );
    let mut data = json(diagnosis);
    if let Some(followed) = followed {
        data["trace"] = followed.data.clone();
        plain.push('\n');
        plain.push_str(&followed.text);
    }
    let title = format!("Why is the login to {} slow?", diagnosis.host);
    page(&title, &data, include_str!("page.js"), &plain)
}

/// A page of data, of the script that shows them, and of what is shown without scripts.
pub(crate) fn page(title: &str, data: &Value, script: &str, plain: &str) -> String {
    let style = include_str!("page.css");
    let shared = include_str!("shared.js");
    let title = escaped(title);
    let plain = escaped(plain);
    let data = island(data);
    format!(
        r#"<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<main></main>
<div id="tip" role="status" hidden></div>
<noscript><pre>{plain}</pre></noscript>
<script type="application/json" id="data">{data}</script>
<script>
{shared}{script}</script>
</body>
</html>
"#
    )
}

/// Text in markup.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            // Not allowed in markup.
            _ if c.is_control() => out.push('\u{fffd}'),
            _ => out.push(c),
        }
    }
    out
}

/// JSON in a script element: nothing in it can end the element, begin a comment, or steer the text around it.
fn island(data: &Value) -> String {
    let mut out = String::new();
    for c in data.to_string().chars() {
        match c {
            '<'
            | '>'
            | '&'
            | '\''
            | '\u{7f}'..='\u{9f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' => {
                // Such a character stands within a string only.
                write!(out, "\\u{:04x}", u32::from(c)).expect("writing to a String cannot fail");
            }
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
#[path = "html_tests.rs"]
mod tests;
