//! The words that serde spells an enum with, so that no second list of them can differ.

use serde::Serialize;

/// The word of a variant without data.
///
/// # Panics
/// The variant has data.
pub fn spell<T: Serialize>(variant: &T) -> &'static str {
    serde_variant::to_variant_name(variant).expect("the variant has no data")
}
