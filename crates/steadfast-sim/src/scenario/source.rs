//! A file's text while it is read, and which of its variants.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Deref;

use steadfast::config::reading::{Document, clean, entries};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A document, as one of its variants reads it: a string that is `{name}`, and nothing else, stands for what the variant
/// says of that name.
pub(super) struct Source<'a, 't> {
    document: &'a Document<'t>,
    variant: Option<&'a DeTable<'t>>,
    used: &'a RefCell<BTreeSet<String>>,
}

impl<'a, 't> Source<'a, 't> {
    pub(super) fn new(
        document: &'a Document<'t>,
        variant: Option<&'a DeTable<'t>>,
        used: &'a RefCell<BTreeSet<String>>,
    ) -> Self {
        Self { document, variant, used }
    }

    /// The value itself, or what stands in its place.
    pub(super) fn resolve<'v>(&self, value: &'v Spanned<DeValue<'t>>) -> &'v Spanned<DeValue<'t>>
    where
        'a: 'v,
    {
        let found = placeholder(value).and_then(|name| Some((name, self.variant?.get(name)?)));
        match found {
            Some((name, meant)) => {
                self.used.borrow_mut().insert(name.to_owned());
                meant
            }
            None => value,
        }
    }

    /// The variant in words: `method = GET`.
    pub(super) fn words(&self) -> String {
        let show = |value: &DeValue<'_>| match value {
            DeValue::String(text) => Some(clean(text, 40)),
            DeValue::Integer(number) => Some(number.as_str().to_owned()),
            DeValue::Boolean(flag) => Some(flag.to_string()),
            // Too long for a title.
            _ => None,
        };
        let Some(variant) = self.variant else { return String::new() };
        let words = entries(variant)
            .into_iter()
            .filter_map(|(name, value)| Some(format!("{} = {}", clean(name.get_ref(), 40), show(value.get_ref())?)));
        words.collect::<Vec<_>>().join(", ")
    }
}

/// The name in `{name}`.
fn placeholder<'v>(value: &'v Spanned<DeValue<'_>>) -> Option<&'v str> {
    let DeValue::String(text) = value.get_ref() else { return None };
    let name = text.strip_prefix('{')?.strip_suffix('}')?;
    super::kind::is_name(name).then_some(name)
}

impl<'t> Deref for Source<'_, 't> {
    type Target = Document<'t>;

    fn deref(&self) -> &Document<'t> {
        self.document
    }
}
