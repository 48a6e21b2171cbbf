//! A YAML document with the place of everything. A scalar keeps its text; its interpretation depends on its origin.

use std::borrow::Cow;

/// A place in a text. `source` is the caller's number for the text; line and column count from 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct YamlPlace {
    pub source: u16,
    pub line: usize,
    pub column: usize,
}

/// A value and its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub tree: YamlTree,
    pub place: YamlPlace,
}

/// The shape of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum YamlTree {
    Scalar(Scalar),
    List(Vec<Node>),
    Map(Vec<(YamlKey, Node)>),
}

/// The key of an entry.
#[derive(Debug, Clone, PartialEq)]
pub struct YamlKey {
    pub text: Cow<'static, str>,
    pub place: YamlPlace,
}

/// A value without parts, as written.
#[derive(Debug, Clone, PartialEq)]
pub struct Scalar {
    pub text: Cow<'static, str>,
    pub form: ScalarForm,
}

/// The origin of a scalar, which decides how it may be interpreted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScalarForm {
    /// Without quotes: number, boolean, null or text, by its appearance.
    Plain,
    /// In quotes: always text.
    Quoted,
    /// A block (`|`, `>`): always text.
    Block,
    /// The output of a template: text, unless the field wants another type.
    Rendered,
    /// From a variable or a flag: interpreted by its appearance, but text if the field wants text.
    Given,
}

/// The interpretation of an unquoted scalar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PlainScalar<'a> {
    /// Nothing was written.
    Blank,
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(&'a str),
}

impl Node {
    /// The entries of a mapping; empty for anything else.
    pub fn entries(&self) -> &[(YamlKey, Node)] {
        match &self.tree {
            YamlTree::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The value of a key, if this is a mapping that has it.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entries().iter().find(|(k, _)| k.text == key).map(|(_, value)| value)
    }

    /// The node at a path of keys and list indices.
    pub fn find<'a>(&self, path: impl IntoIterator<Item = &'a str>) -> Option<&Self> {
        path.into_iter().try_fold(self, |node, step| match &node.tree {
            YamlTree::List(items) => items.get(step.parse::<usize>().ok()?),
            _ => node.get(step),
        })
    }

    /// The items of a list.
    pub fn items(&self) -> Option<&[Self]> {
        match &self.tree {
            YamlTree::List(items) => Some(items),
            _ => None,
        }
    }

    pub fn get_mut(&mut self, key: &str) -> Option<&mut Self> {
        match &mut self.tree {
            YamlTree::Map(entries) => {
                entries.iter_mut().find(|(other, _)| other.text == key).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    /// The text of a scalar; `None` for lists and mappings.
    pub fn text(&self) -> Option<&str> {
        match &self.tree {
            YamlTree::Scalar(scalar) => Some(&scalar.text),
            _ => None,
        }
    }

    /// True if the value was left blank.
    pub fn is_blank(&self) -> bool {
        matches!(&self.tree, YamlTree::Scalar(s) if s.text.is_empty() && matches!(s.form, ScalarForm::Plain | ScalarForm::Given))
    }

    /// True if it can be read as this JSON Schema type.
    pub fn fits(&self, json_type: &str) -> bool {
        let scalar = match &self.tree {
            YamlTree::List(_) => return json_type == "array",
            YamlTree::Map(_) => return json_type == "object",
            YamlTree::Scalar(scalar) => scalar,
        };
        let quoted = matches!(scalar.form, ScalarForm::Quoted | ScalarForm::Block);
        let plain = scalar.plain();
        match json_type {
            "null" => scalar.is_nothing(),
            "string" => {
                scalar.form != ScalarForm::Plain || matches!(plain, PlainScalar::Text(_) | PlainScalar::Blank)
            }
            "integer" => !quoted && matches!(plain, PlainScalar::Unsigned(_) | PlainScalar::Signed(_)),
            "number" => {
                !quoted
                    && matches!(plain, PlainScalar::Unsigned(_) | PlainScalar::Signed(_) | PlainScalar::Float(_))
            }
            "boolean" => {
                let switch = scalar.form != ScalarForm::Plain && scalar.switch().is_some();
                !quoted && (switch || matches!(plain, PlainScalar::Bool(_)))
            }
            _ => self.is_blank(),
        }
    }

    /// The number of values in it, including itself.
    pub fn size(&self) -> usize {
        match &self.tree {
            YamlTree::Scalar(_) => 1,
            YamlTree::List(items) => 1 + items.iter().map(Self::size).sum::<usize>(),
            YamlTree::Map(entries) => 1 + entries.iter().map(|(_, value)| value.size()).sum::<usize>(),
        }
    }
}

impl Scalar {
    /// The text interpreted by the core schema of YAML 1.2, whatever its form.
    pub fn plain(&self) -> PlainScalar<'_> {
        interpret_plain(if self.form == ScalarForm::Rendered { self.text.trim() } else { &self.text })
    }

    pub(super) fn is_nothing(&self) -> bool {
        !matches!(self.form, ScalarForm::Quoted | ScalarForm::Block)
            && matches!(self.plain(), PlainScalar::Blank | PlainScalar::Null)
    }

    /// A yes or no in the words that people use in variables.
    pub(super) fn switch(&self) -> Option<bool> {
        match self.text.trim().to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Some(true),
            "false" | "no" | "off" | "0" => Some(false),
            _ => None,
        }
    }
}

fn interpret_plain(text: &str) -> PlainScalar<'_> {
    match text {
        "" => return PlainScalar::Blank,
        "~" | "null" | "Null" | "NULL" => return PlainScalar::Null,
        "true" | "True" | "TRUE" => return PlainScalar::Bool(true),
        "false" | "False" | "FALSE" => return PlainScalar::Bool(false),
        ".inf" | ".Inf" | ".INF" | "+.inf" => return PlainScalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return PlainScalar::Float(f64::NEG_INFINITY),
        ".nan" | ".NaN" | ".NAN" => return PlainScalar::Float(f64::NAN),
        _ => {}
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let radix = [("0x", 16), ("0o", 8), ("0b", 2)].into_iter().find(|(prefix, _)| unsigned.starts_with(prefix));
    if let Some((_, radix)) = radix {
        let digits = &unsigned[2..];
        let value = u64::from_str_radix(digits, radix).ok().filter(|_| !digits.starts_with('+'));
        return match (value, text.starts_with('-')) {
            (Some(value), false) => PlainScalar::Unsigned(value),
            (Some(value), true) => {
                i64::try_from(value).map_or(PlainScalar::Text(text), |v| PlainScalar::Signed(-v))
            }
            (None, _) => PlainScalar::Text(text),
        };
    }
    let digits = unsigned.bytes().take_while(u8::is_ascii_digit).count();
    let starts_a_number = digits > 0 || unsigned.starts_with('.') && unsigned.len() > 1;
    // `012` is a name (a part number, a zip code), not twelve.
    if !starts_a_number || (digits > 1 && digits == unsigned.len() && unsigned.starts_with('0')) {
        return PlainScalar::Text(text);
    }
    if digits == unsigned.len() {
        if let Ok(value) = text.parse::<u64>() {
            return PlainScalar::Unsigned(value);
        }
        if let Ok(value) = text.parse::<i64>() {
            return PlainScalar::Signed(value);
        }
    }
    let looks_float =
        unsigned.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'));
    match text.parse::<f64>() {
        Ok(value) if looks_float && value.is_finite() => PlainScalar::Float(value),
        _ => PlainScalar::Text(text),
    }
}
