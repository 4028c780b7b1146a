//! A file's text while it is read, and which of its variants.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Deref;

use steadfast::config::reading::{Document, clean, entries};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A document, perhaps as one of its variants reads it: a string that is `{name}`, and nothing else, then stands for what the
/// variant says of that name.
pub(crate) struct Source<'a, 't> {
    document: &'a Document<'t>,
    variant: Option<Variant<'a, 't>>,
}

/// What a variant says, and the names that were asked for.
struct Variant<'a, 't> {
    values: &'a DeTable<'t>,
    used: &'a RefCell<BTreeSet<String>>,
}

impl<'a, 't> Source<'a, 't> {
    /// A document that has no variants.
    pub(crate) fn new(document: &'a Document<'t>) -> Self {
        Self { document, variant: None }
    }

    /// The same, as this variant reads it; the names that stand for something of it are added to `used`.
    pub(crate) fn of_variant(
        document: &'a Document<'t>,
        values: &'a DeTable<'t>,
        used: &'a RefCell<BTreeSet<String>>,
    ) -> Self {
        Self { document, variant: Some(Variant { values, used }) }
    }

    /// The value itself, or what stands in its place.
    pub(crate) fn resolve<'v>(&self, value: &'v Spanned<DeValue<'t>>) -> &'v Spanned<DeValue<'t>>
    where
        'a: 'v,
    {
        let Some(variant) = &self.variant else { return value };
        match name_in_braces(value).and_then(|name| Some((name, variant.values.get(name)?))) {
            Some((name, meant)) => {
                variant.used.borrow_mut().insert(name.to_owned());
                meant
            }
            None => value,
        }
    }

    /// The variant in words: `method = GET`.
    pub(crate) fn words(&self) -> String {
        let show = |value: &DeValue<'_>| match value {
            DeValue::String(text) => Some(clean(text, 40)),
            DeValue::Integer(number) => Some(number.as_str().to_owned()),
            DeValue::Boolean(flag) => Some(flag.to_string()),
            // Too long for a title.
            _ => None,
        };
        let Some(variant) = &self.variant else { return String::new() };
        let words = entries(variant.values)
            .into_iter()
            .filter_map(|(name, value)| Some(format!("{} = {}", clean(name.get_ref(), 40), show(value.get_ref())?)));
        words.collect::<Vec<_>>().join(", ")
    }
}

/// The name in `{name}`.
fn name_in_braces<'v>(value: &'v Spanned<DeValue<'_>>) -> Option<&'v str> {
    let DeValue::String(text) = value.get_ref() else { return None };
    let name = text.strip_prefix('{')?.strip_suffix('}')?;
    super::is_name(name).then_some(name)
}

impl<'t> Deref for Source<'_, 't> {
    type Target = Document<'t>;

    fn deref(&self) -> &Document<'t> {
        self.document
    }
}
