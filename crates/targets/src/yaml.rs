//! YAML as a tree with line numbers and limits, from the events of the `saphyr-parser` crate.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle};

use crate::{TargetError, TargetProblem};

/// Most nodes of a document, those that aliases repeat counted each time ("billion laughs").
const MAX_NODES: usize = 4_000_000;

/// Deepest nesting.
const MAX_DEPTH: usize = 64;

/// A node and the line where it begins.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) line: usize,
    pub(crate) content: Content,
}

#[derive(Debug, Clone)]
pub(crate) enum Content {
    /// A plain scalar is one without quotes, which may be a number or nothing.
    Scalar {
        text: String,
        is_plain: bool,
    },
    Sequence(Vec<Node>),
    /// In the order of the file.
    Mapping(Vec<(Node, Node)>),
}

impl Node {
    /// Its scalar as written, whatever type that may be.
    pub(crate) fn scalar(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar { text, .. } if !self.is_null() => Some(text),
            _ => None,
        }
    }

    /// Its text, when that is no number, truth value or null.
    pub(crate) fn text(&self) -> Option<&str> {
        let Content::Scalar { text, is_plain } = &self.content else {
            return None;
        };
        let is_word = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
        let looks_like_number = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
        let is_number = looks_like_number
            && (text.parse::<f64>().is_ok() || text.starts_with("0x") || text.starts_with("0o"));
        let is_other =
            is_number || self.is_null() || is_word(&["true", "false", "yes", "no", "on", "off"]);
        (!is_plain || !is_other).then_some(text)
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.content, Content::Scalar { text, is_plain: true }
            if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }

    /// The entries of a mapping; none for null.
    pub(crate) fn entries(&self) -> Option<&[(Node, Node)]> {
        match &self.content {
            Content::Mapping(entries) => Some(entries),
            _ => self.is_null().then_some(&[]),
        }
    }

    fn null(line: usize) -> Node {
        Node {
            line,
            content: Content::Scalar {
                text: String::new(),
                is_plain: true,
            },
        }
    }
}

/// Reads the first document of a file; an empty file is null.
///
/// # Errors
/// What is no YAML, too deep or too large, with its line.
pub(crate) fn parse(label: &str, contents: &[u8]) -> Result<Node, TargetError> {
    let wrong = |line, problem| TargetError::new("", problem).at(label, line);
    let text = std::str::from_utf8(contents).map_err(|error| {
        let line = 1 + contents[..error.valid_up_to()]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count();
        wrong(line, TargetProblem::NotUtf8)
    })?;
    let mut builder = Builder::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            wrong(
                error.marker().line(),
                TargetProblem::Yaml(error.info().to_owned()),
            )
        })?;
        if matches!(event, Event::DocumentEnd) {
            break;
        }
        let line = span.start.line();
        builder
            .event(event, line)
            .map_err(|problem| wrong(line, problem))?;
    }
    Ok(builder.root.unwrap_or(Node::null(1)))
}

/// A collection that is not closed yet.
struct Open {
    anchor: usize,
    line: usize,
    is_mapping: bool,
    /// Items; in a mapping keys and values take turns.
    nodes: Vec<Node>,
    /// Of its subtree.
    count: usize,
    depth: usize,
}

/// A node that aliases may repeat, with its size.
struct Anchored {
    node: Node,
    count: usize,
    depth: usize,
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    anchors: HashMap<usize, Anchored>,
    count: usize,
    root: Option<Node>,
}

impl Builder {
    fn event(&mut self, event: Event<'_>, line: usize) -> Result<(), TargetProblem> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let content = Content::Scalar {
                    text: text.into_owned(),
                    is_plain: style == ScalarStyle::Plain && tag.is_none(),
                };
                self.add(Node { line, content }, anchor, 1, 1)
            }
            Event::SequenceStart(anchor, _) => self.begin(anchor, line, false),
            Event::MappingStart(anchor, _) => self.begin(anchor, line, true),
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(anchor) => {
                let known = self.anchors.get(&anchor);
                let Anchored { node, count, depth } = known.ok_or(TargetProblem::YamlAlias)?;
                let (count, depth) = (*count, *depth);
                if self.count + count > MAX_NODES {
                    return Err(TargetProblem::YamlTooLarge(MAX_NODES));
                }
                let node = node.clone();
                self.add(node, 0, count, depth)
            }
            _ => Ok(()),
        }
    }

    fn begin(&mut self, anchor: usize, line: usize, is_mapping: bool) -> Result<(), TargetProblem> {
        self.open.push(Open {
            anchor,
            line,
            is_mapping,
            nodes: Vec::new(),
            count: 1,
            depth: 1,
        });
        match self.open.len() > MAX_DEPTH {
            true => Err(TargetProblem::YamlTooDeep(MAX_DEPTH)),
            false => Ok(()),
        }
    }

    fn end(&mut self) -> Result<(), TargetProblem> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let content = match open.is_mapping {
            true => Content::Mapping(pairs(open.nodes)),
            false => Content::Sequence(open.nodes),
        };
        let node = Node {
            line: open.line,
            content,
        };
        self.add(node, open.anchor, open.count, open.depth)
    }

    fn add(
        &mut self,
        node: Node,
        anchor: usize,
        count: usize,
        depth: usize,
    ) -> Result<(), TargetProblem> {
        if self.open.len() + depth > MAX_DEPTH {
            return Err(TargetProblem::YamlTooDeep(MAX_DEPTH));
        }
        self.count += if self.open.is_empty() { 0 } else { count };
        if anchor != 0 {
            let node = node.clone();
            self.count += count;
            self.anchors.insert(anchor, Anchored { node, count, depth });
        }
        if self.count > MAX_NODES {
            return Err(TargetProblem::YamlTooLarge(MAX_NODES));
        }
        match self.open.last_mut() {
            Some(open) => {
                open.count += count;
                open.depth = open.depth.max(depth + 1);
                open.nodes.push(node);
            }
            None => self.root = Some(node),
        }
        Ok(())
    }
}

/// Keys and values; what `<<` brings is added where no key of the mapping itself says otherwise.
fn pairs(nodes: Vec<Node>) -> Vec<(Node, Node)> {
    let mut pairs = Vec::with_capacity(nodes.len() / 2);
    let mut merged = Vec::new();
    let mut nodes = nodes.into_iter();
    while let (Some(key), Some(value)) = (nodes.next(), nodes.next()) {
        let is_merge =
            matches!(&key.content, Content::Scalar { text, is_plain: true } if text == "<<");
        match (is_merge, value.content) {
            (true, Content::Mapping(entries)) => merged.extend(entries),
            (true, Content::Sequence(items)) => {
                let mappings = items.into_iter().filter_map(|item| match item.content {
                    Content::Mapping(entries) => Some(entries),
                    _ => None,
                });
                merged.extend(mappings.flatten());
            }
            (_, content) => pairs.push((
                key,
                Node {
                    line: value.line,
                    content,
                },
            )),
        }
    }
    for (key, value) in merged {
        let is_known = key.scalar().is_some()
            && pairs
                .iter()
                .any(|(known, _): &(Node, Node)| known.scalar() == key.scalar());
        if !is_known {
            pairs.push((key, value));
        }
    }
    pairs
}
