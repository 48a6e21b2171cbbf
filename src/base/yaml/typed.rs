//! Reads a located tree as a type. A scalar is read as the type that the field wants, so a value from a template, a
//! variable or a flag becomes a number again. Errors have the place of the deepest value that failed.

use std::fmt;

use serde::Deserializer;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, DeserializeOwned, DeserializeSeed, IntoDeserializer, MapAccess, SeqAccess, Visitor};

use super::node::{Node, PlainScalar, Scalar, ScalarForm, YamlKey, YamlPlace, YamlTree};

/// The reason that a node cannot be read as the requested type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct NodeError {
    pub message: String,
    pub place: Option<YamlPlace>,
}

impl Node {
    /// Reads the node as `T`.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, NodeError> {
        T::deserialize(self).map_err(|error| error.place_at(self.place))
    }
}

#[derive(Clone, Copy, PartialEq)]
enum YamlWant {
    Any,
    Number,
    Bool,
    Text,
}

impl Node {
    fn visit<'de, V: Visitor<'de>>(&'de self, want: YamlWant, visitor: V) -> Result<V::Value, NodeError> {
        let result = match &self.tree {
            YamlTree::List(items) => visitor.visit_seq(Items(items.iter())),
            YamlTree::Map(entries) => visitor.visit_map(Entries { rest: entries.iter(), value: None }),
            YamlTree::Scalar(scalar) => scalar.visit(want, visitor),
        };
        result.map_err(|error| error.place_at(self.place))
    }
}

impl Scalar {
    fn visit<'de, V: Visitor<'de>>(&'de self, want: YamlWant, visitor: V) -> Result<V::Value, NodeError> {
        let as_text = match self.form {
            ScalarForm::Quoted | ScalarForm::Block => true,
            ScalarForm::Plain => false,
            ScalarForm::Rendered => matches!(want, YamlWant::Any | YamlWant::Text),
            ScalarForm::Given => want == YamlWant::Text,
        };
        if as_text {
            return visitor.visit_borrowed_str(&self.text);
        }
        if want == YamlWant::Bool
            && self.form != ScalarForm::Plain
            && let Some(switch) = self.switch()
        {
            return visitor.visit_bool(switch);
        }
        match self.plain() {
            PlainScalar::Blank if want == YamlWant::Text => visitor.visit_borrowed_str(""),
            PlainScalar::Blank | PlainScalar::Null => visitor.visit_unit(),
            PlainScalar::Bool(value) => visitor.visit_bool(value),
            PlainScalar::Unsigned(value) => visitor.visit_u64(value),
            PlainScalar::Signed(value) => visitor.visit_i64(value),
            PlainScalar::Float(value) => visitor.visit_f64(value),
            PlainScalar::Text(text) => visitor.visit_borrowed_str(text),
        }
    }
}

macro_rules! wants {
    ($want:expr; $($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
            self.visit($want, visitor)
        })*
    };
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = NodeError;

    serde::forward_to_deserialize_any! { unit unit_struct identifier bytes byte_buf tuple tuple_struct }
    wants!(YamlWant::Any; deserialize_any);
    wants!(YamlWant::Number; deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
        deserialize_f32 deserialize_f64);
    wants!(YamlWant::Bool; deserialize_bool);
    wants!(YamlWant::Text; deserialize_str deserialize_string deserialize_char);

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        match &self.tree {
            YamlTree::Scalar(scalar) if scalar.is_nothing() => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        if self.is_blank() { visitor.visit_seq(Items([].iter())) } else { self.visit(YamlWant::Any, visitor) }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        if self.is_blank() {
            return visitor.visit_map(Entries { rest: [].iter(), value: None });
        }
        self.visit(YamlWant::Any, visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, NodeError> {
        self.deserialize_map(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, NodeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, NodeError> {
        match &self.tree {
            YamlTree::Scalar(scalar) => visitor
                .visit_enum((&*scalar.text).into_deserializer())
                .map_err(|e: NodeError| e.place_at(self.place)),
            // A variant with content: `{ NAME: CONTENT }`.
            YamlTree::Map(entries) => {
                let entries = Entries { rest: entries.iter(), value: None };
                visitor.visit_enum(MapAccessDeserializer::new(entries)).map_err(|e| e.place_at(self.place))
            }
            YamlTree::List(_) => Err(NodeError { message: "expected a word".to_owned(), place: Some(self.place) }),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        visitor.visit_unit()
    }
}

struct Items<'de>(std::slice::Iter<'de, Node>);

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = NodeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, NodeError> {
        self.0.next().map(|node| seed.deserialize(node).map_err(|error| error.place_at(node.place))).transpose()
    }
}

struct Entries<'de> {
    rest: std::slice::Iter<'de, (YamlKey, Node)>,
    value: Option<&'de Node>,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = NodeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, NodeError> {
        let Some((key, value)) = self.rest.next() else { return Ok(None) };
        self.value = Some(value);
        let text: de::value::StrDeserializer<'_, NodeError> = (&*key.text).into_deserializer();
        seed.deserialize(text).map(Some).map_err(|error| error.place_at(key.place))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, NodeError> {
        let node = self.value.take().expect("serde asks for a value after its key");
        seed.deserialize(node).map_err(|error| error.place_at(node.place))
    }
}

impl NodeError {
    /// Sets the place unless a deeper one is known.
    fn place_at(mut self, place: YamlPlace) -> Self {
        self.place.get_or_insert(place);
        self
    }
}

impl de::Error for NodeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { message: message.to_string(), place: None }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Deserialize;

    use super::{Node, Scalar, ScalarForm, YamlKey, YamlPlace, YamlTree};

    #[derive(Debug, Deserialize, PartialEq)]
    struct Wanted {
        number: u64,
        ratio: f64,
        switch: bool,
        text: String,
        maybe: Option<u64>,
        word: Option<String>,
    }

    fn scalar(text: &str, form: ScalarForm) -> Node {
        Node { tree: YamlTree::Scalar(Scalar { text: text.to_owned().into(), form }), place: YamlPlace::default() }
    }

    #[test]
    fn what_a_template_gave_is_read_as_the_field_wants() {
        let values =
            [("number", " 5\n"), ("ratio", "1"), ("switch", "True"), ("text", "12"), ("maybe", ""), ("word", "")];
        let entries = values.map(|(key, text)| {
            (YamlKey { text: key.into(), place: YamlPlace::default() }, scalar(text, ScalarForm::Rendered))
        });
        let node = Node { tree: YamlTree::Map(entries.into()), place: YamlPlace::default() };
        let wanted: Wanted = node.read().expect("types restored");
        assert_eq!(
            wanted,
            Wanted { number: 5, ratio: 1.0, switch: true, text: "12".to_owned(), maybe: None, word: None }
        );
    }

    /// (text, form, read as number, as bool, as text)
    #[test]
    fn each_form_allows_what_it_should() {
        let table = [
            ("5", ScalarForm::Plain, true, false, false),
            ("5", ScalarForm::Quoted, false, false, true),
            ("5", ScalarForm::Rendered, true, false, true),
            ("5", ScalarForm::Given, true, false, true),
            ("true", ScalarForm::Plain, false, true, false),
            ("true", ScalarForm::Quoted, false, false, true),
            ("on", ScalarForm::Rendered, false, true, true),
            ("on", ScalarForm::Plain, false, false, true),
            ("x", ScalarForm::Given, false, false, true),
        ];
        for (text, form, number, switch, word) in table {
            let node = scalar(text, form);
            let got = (node.read::<u64>().is_ok(), node.read::<bool>().is_ok(), node.read::<String>().is_ok());
            assert_eq!(got, (number, switch, word), "{text} {form:?}");
        }
    }

    proptest! {
        #[test]
        fn what_was_a_number_or_a_switch_is_one_again(
            whole in any::<u64>(), signed in any::<i64>(), ratio in -1e15..1e15_f64, switch in any::<bool>(),
        ) {
            for form in [ScalarForm::Plain, ScalarForm::Rendered, ScalarForm::Given] {
                prop_assert_eq!(scalar(&whole.to_string(), form).read::<u64>(), Ok(whole));
                prop_assert_eq!(scalar(&signed.to_string(), form).read::<i64>(), Ok(signed));
                prop_assert_eq!(scalar(&ratio.to_string(), form).read::<f64>(), Ok(ratio));
                prop_assert_eq!(scalar(&switch.to_string(), form).read::<bool>(), Ok(switch));
            }
        }

        #[test]
        fn text_stays_text(text in "\\PC*") {
            for form in [ScalarForm::Quoted, ScalarForm::Block, ScalarForm::Rendered, ScalarForm::Given] {
                prop_assert_eq!(scalar(&text, form).read::<String>(), Ok(text.clone()));
            }
        }
    }
}
