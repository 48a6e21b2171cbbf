//! Reads the valid parts of a tree with mistakes, so that one mistake does not hide others.

use serde::de::DeserializeOwned;

use super::merge::lay_over;
use crate::base::yaml::{Node, YamlPlace, YamlTree};

/// Reads `node` merged into `ground`, without the values that cannot be read; `None` if too little is left.
pub(super) fn read_partly<T: DeserializeOwned>(node: &Node, ground: &Node) -> Option<T> {
    let mut rest = node.clone();
    for _ in 0..node.size() {
        let mut whole = ground.clone();
        lay_over(&mut whole, &rest);
        match whole.read() {
            Ok(value) => return Some(value),
            Err(error) if take_out(&mut rest, error.place?) => {}
            Err(_) => return None,
        }
    }
    None
}

/// Removes the innermost entry or item at `place`.
fn take_out(node: &mut Node, place: YamlPlace) -> bool {
    match &mut node.tree {
        YamlTree::Scalar(_) => false,
        YamlTree::List(items) => {
            let count = items.len();
            items.iter_mut().any(|item| take_out(item, place)) || {
                items.retain(|item| item.place != place);
                items.len() < count
            }
        }
        YamlTree::Map(entries) => {
            let count = entries.len();
            entries.iter_mut().any(|(_, value)| take_out(value, place)) || {
                entries.retain(|(key, value)| key.place != place && value.place != place);
                entries.len() < count
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::read_partly;
    use crate::base::yaml::parse_tree;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Wanted {
        number: u64,
        #[serde(default)]
        words: Vec<String>,
    }

    #[test]
    fn the_right_parts_are_read_and_the_ground_fills_in() {
        let ground = parse_tree("number: 1", 0).expect("valid");
        let read = |text: &str| read_partly::<Wanted>(&parse_tree(text, 1).expect("valid"), &ground);
        for (text, number, words) in [
            ("number: 5\nwords: [a]", 5, vec!["a"]),
            ("number: x\nwords: [a, [b], c]", 1, vec!["a", "c"]),
            ("number: 5\nwards: [a]", 5, vec![]),
        ] {
            let words = words.into_iter().map(str::to_owned).collect();
            assert_eq!(read(text), Some(Wanted { number, words }), "{text}");
        }
        assert_eq!(read("[a]"), None);
    }
}
