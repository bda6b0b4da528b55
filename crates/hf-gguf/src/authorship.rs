//! Who made the model, and how it is sampled: the keys that begin with `general.`.

mod yaml;
