//! Unpacks a tree that the build packed (`build/built_in.rs`), which is several times faster than reading its text.
//!
//! A value is a mark, its line and column, then for a scalar its text, for a list its items, for a mapping its entries:
//! a key (line, column, text) and a value each. Lists and mappings begin with the number of their parts; every number
//! has two bytes, the lower first, and a text is preceded by its length in bytes.

use std::borrow::Cow;

use super::node::{Node, Scalar, ScalarForm, YamlKey, YamlPlace, YamlTree};

/// The tree in `bytes`, which the build wrote; `source` is copied into each [`YamlPlace`].
pub fn unpack_tree(bytes: &'static [u8], source: u16) -> Node {
    Unpacking { rest: bytes, source }.node()
}

struct Unpacking {
    rest: &'static [u8],
    source: u16,
}

impl Unpacking {
    fn node(&mut self) -> Node {
        let mark = self.take(1)[0];
        let place = self.place();
        let tree = match mark {
            b'l' => YamlTree::List((0..self.number()).map(|_| self.node()).collect()),
            b'm' => YamlTree::Map((0..self.number()).map(|_| self.entry()).collect()),
            b'p' => self.scalar(ScalarForm::Plain),
            b'q' => self.scalar(ScalarForm::Quoted),
            _ => self.scalar(ScalarForm::Block),
        };
        Node { tree, place }
    }

    fn entry(&mut self) -> (YamlKey, Node) {
        let place = self.place();
        let text = self.text();
        (YamlKey { text, place }, self.node())
    }

    fn scalar(&mut self, form: ScalarForm) -> YamlTree {
        YamlTree::Scalar(Scalar { text: self.text(), form })
    }

    fn place(&mut self) -> YamlPlace {
        YamlPlace { source: self.source, line: self.number(), column: self.number() }
    }

    fn text(&mut self) -> Cow<'static, str> {
        let length = self.number();
        str::from_utf8(self.take(length)).expect("the build packs text").into()
    }

    fn number(&mut self) -> usize {
        let bytes = self.take(2).try_into().expect("two bytes were taken");
        usize::from(u16::from_le_bytes(bytes))
    }

    fn take(&mut self, length: usize) -> &'static [u8] {
        let (taken, rest) = self.rest.split_at_checked(length).expect("the build packs whole trees");
        self.rest = rest;
        taken
    }
}
