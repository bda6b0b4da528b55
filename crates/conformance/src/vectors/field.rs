//! A JSON object field by field, with the path of what is missing.

use serde_json::Value;

/// A JSON value that knows its place, for messages.
pub(crate) struct Field<'a> {
    pub(crate) value: &'a Value,
    path: String,
}

/// Path of what is missing or malformed.
pub(crate) struct Missing(pub(crate) String);

impl<'a> Field<'a> {
    pub(crate) fn root(value: &'a Value) -> Self {
        Self { value, path: String::new() }
    }

    pub(crate) fn missing(&self, key: &str) -> Missing {
        Missing(format!("{}/{key}", self.path))
    }

    pub(crate) fn find(&self, key: &str) -> Option<Field<'a>> {
        let value = self.value.get(key).filter(|value| !value.is_null())?;
        Some(Field { value, path: format!("{}/{key}", self.path) })
    }

    pub(crate) fn get(&self, key: &str) -> Result<Field<'a>, Missing> {
        self.find(key).ok_or_else(|| self.missing(key))
    }

    pub(crate) fn text(&self) -> Result<String, Missing> {
        self.value.as_str().map(str::to_owned).ok_or_else(|| Missing(self.path.clone()))
    }

    pub(crate) fn number(&self) -> Result<u64, Missing> {
        self.value.as_u64().ok_or_else(|| Missing(self.path.clone()))
    }

    pub(crate) fn count(&self) -> Result<usize, Missing> {
        usize::try_from(self.number()?).map_err(|_| Missing(self.path.clone()))
    }

    pub(crate) fn items(&self) -> Result<Vec<Field<'a>>, Missing> {
        let items = self.value.as_array().ok_or_else(|| Missing(self.path.clone()))?;
        let place = |(idx, value)| Field { value, path: format!("{}/{idx}", self.path) };
        Ok(items.iter().enumerate().map(place).collect())
    }

    pub(crate) fn numbers(&self) -> Result<Vec<u64>, Missing> {
        self.items()?.iter().map(Field::number).collect()
    }

    pub(crate) fn entries(&self) -> Result<Vec<(String, Field<'a>)>, Missing> {
        let entries = self.value.as_object().ok_or_else(|| Missing(self.path.clone()))?;
        let place =
            |(key, value): (&String, _)| (key.clone(), Field { value, path: format!("{}/{key}", self.path) });
        Ok(entries.iter().map(place).collect())
    }
}
