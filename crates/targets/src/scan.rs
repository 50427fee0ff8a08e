//! Cuts a list into its operands.

use crate::{
    TargetError, TargetProblem,
    list::{Operand, Operator, Term},
    select::Selector,
};

/// Reads a list from left to right.
pub(crate) struct Scanner<'a> {
    rest: &'a str,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(list: &'a str) -> Scanner<'a> {
        Scanner { rest: list }
    }

    pub(crate) fn terms(mut self) -> Result<Vec<Term>, TargetError> {
        let mut terms = Vec::new();
        let mut operator = Operator::Union;
        loop {
            self.skip(char::is_whitespace);
            if operator == Operator::Union {
                self.skip(|c| c == ',' || c.is_whitespace());
                if self.rest.is_empty() {
                    return Ok(terms);
                }
                if let Some(excluded) = self.rest.strip_prefix('-') {
                    self.rest = excluded;
                    operator = Operator::Exclusion;
                }
            }
            let operand = self.operand()?;
            terms.push(Term { operator, operand });
            operator = self.operator()?;
        }
    }

    fn skip(&mut self, skipped: impl Fn(char) -> bool) {
        self.rest = self.rest.trim_start_matches(skipped);
    }

    fn operand(&mut self) -> Result<Operand, TargetError> {
        let whole = self.rest;
        if whole.starts_with('/') {
            let len = regex_len(whole)
                .ok_or_else(|| TargetError::new(whole, TargetProblem::UnclosedRegex))?;
            let (regex, rest) = whole.split_at(len);
            self.rest = rest;
            let selector = Selector::regex(&regex[1..len - 1]);
            return selector
                .map(Operand::Selector)
                .map_err(|problem| TargetError::new(regex, problem));
        }
        let len = match whole.starts_with('^') {
            true => whole.find(|c: char| c == ',' || c.is_whitespace()),
            false => end_of_operand(whole),
        };
        let (text, rest) = whole.split_at(len.unwrap_or(whole.len()));
        self.rest = rest;
        if text.is_empty() {
            return Err(TargetError::new(whole, TargetProblem::MissingOperand));
        }
        Operand::parse(text).map_err(|problem| TargetError::new(text, problem))
    }

    /// The operator behind an operand; at the end of the list, a union with nothing.
    fn operator(&mut self) -> Result<Operator, TargetError> {
        let spaced = self.rest;
        self.skip(char::is_whitespace);
        let mut characters = self.rest.chars();
        let operator = match characters.next() {
            Some('!') => Operator::Difference,
            Some('&') => Operator::Intersection,
            Some('^') => {
                let after = characters.clone().next();
                if spaced.len() > self.rest.len() && !after.is_some_and(char::is_whitespace) {
                    return Err(TargetError::new(self.rest, TargetProblem::SpacedCaret));
                }
                Operator::SymmetricDifference
            }
            _ => return Ok(Operator::Union),
        };
        self.rest = characters.as_str();
        Ok(operator)
    }
}

/// Where an operand ends: at an operator or a space outside brackets.
fn end_of_operand(text: &str) -> Option<usize> {
    let mut inside_brackets = false;
    text.find(|c: char| {
        match c {
            '[' => inside_brackets = true,
            ']' => inside_brackets = false,
            _ => {}
        }
        !inside_brackets && (is_operator(c) || c.is_whitespace())
    })
}

fn is_operator(character: char) -> bool {
    matches!(character, ',' | '!' | '&' | '^')
}

/// The length of `/regex/`: up to the first slash that is not escaped and has nothing of an operand behind it.
fn regex_len(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        let after = text[at + 1..].chars().next().filter(|_| character == '/');
        let ends = after.is_none_or(|after| is_operator(after) || after.is_whitespace());
        if character == '/' && !escaped && ends {
            return Some(at + 1);
        }
        escaped = character == '\\' && !escaped;
    }
    None
}
