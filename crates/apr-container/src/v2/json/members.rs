//! An object as text.

use alloc::string::String;

use super::{Json, push_string};

/// A compact JSON object on its way.
pub(crate) struct Members(String);

impl Members {
    pub(crate) fn new() -> Self {
        Self("{".into())
    }

    pub(crate) fn raw(&mut self, key: &str, json: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        push_string(&mut self.0, key);
        self.0.push(':');
        self.0.push_str(json);
    }

    pub(crate) fn text(&mut self, key: &str, text: Option<&str>) {
        let json = text.map(Json::from);
        self.raw(key, json.as_ref().map_or("null", Json::text));
    }

    pub(crate) fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }
}
