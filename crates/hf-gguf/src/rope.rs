//! Rotary position embeddings: parameters of both styles of configurations, and the factors that models store.

use alloc::vec::Vec;

use crate::config::Config;
use crate::error::{Error, ErrorKind};
use crate::json::{Json, Object};
use crate::parameters::number_f32;
use crate::restore::{Stored, float, int, text};

/// Names of the base of all layers, and of those with a sliding window, outside of the parameters.
const BASE: &[&str] =
    &["global_rope_theta", "rope_global_theta", "rope_theta_global", "rope_theta", "rotary_emb_base"];
const LOCAL_BASE: &[&str] =
    &["local_rope_theta", "rope_local_theta", "rope_theta_local", "swa_rope_theta", "rope_local_base_freq"];
const FULL: &str = "full_attention";
const SLIDING: &str = "sliding_attention";

/// The parameters of a model's rotary embeddings: `rope_parameters` of the configurations of transformers 5, or `rope_scaling`
/// of those before with the values beside it.
#[derive(Clone, Debug)]
pub(crate) struct Rope {
    parameters: Object,
}

impl Rope {
    pub(crate) fn new(config: &Config) -> Self {
        let name = if config.has("rope_parameters") { "rope_parameters" } else { "rope_scaling" };
        let mut parameters = config.get(name).and_then(Json::as_object).cloned().unwrap_or_default();
        if parameters.get(FULL).is_some() || parameters.get(SLIDING).is_some() {
            return Self { parameters };
        }
        if let Some(base) = config.find(LOCAL_BASE) {
            let mut sliding = Object::default();
            sliding.set("rope_theta", base.clone());
            parameters.set(SLIDING, Json::Object(sliding));
        }
        let kind = parameters.get("type").filter(|kind| !kind.is_null()).cloned();
        let beside = [
            ("rope_theta", config.find(BASE).cloned()),
            ("rope_type", kind),
            (
                "partial_rotary_factor",
                config.find(&["partial_rotary_factor", "rope_pct", "rope_percent"]).cloned(),
            ),
            ("original_max_position_embeddings", config.get("original_max_position_embeddings").cloned()),
        ];
        for (name, value) in beside {
            if let Some(value) = value.filter(|_| parameters.get(name).is_none()) {
                parameters.set(name, value);
            }
        }
        Self { parameters }
    }

    /// The value of this name, of all layers.
    pub(crate) fn get(&self, name: &str) -> Option<&Json> {
        self.parameters.get(name).filter(|value| !value.is_null())
    }

    /// The value of this name, of the layers with full attention.
    pub(crate) fn full(&self, name: &str) -> Option<&Json> {
        self.part(FULL).unwrap_or(&self.parameters).get(name).filter(|value| !value.is_null())
    }

    /// The first of these names that is present, of the layers with full attention.
    pub(crate) fn full_first(&self, names: &[&str]) -> Option<&Json> {
        let part = self.part(FULL).unwrap_or(&self.parameters);
        names.iter().find_map(|name| part.get(name)).filter(|value| !value.is_null())
    }

    /// The value of this name, of the layers with a sliding window.
    pub(crate) fn sliding(&self, name: &str) -> Option<&Json> {
        self.part(SLIDING)?.get(name).filter(|value| !value.is_null())
    }

    fn part(&self, name: &str) -> Option<&Object> {
        self.parameters.get(name).and_then(Json::as_object)
    }

    /// The kind of scaling.
    pub(crate) fn kind(&self) -> &str {
        self.full("rope_type").and_then(Json::as_str).unwrap_or_default()
    }

    /// What is lost of a scaling that no key of the file says, if there is one.
    pub(crate) fn left_out(&self) -> Option<&'static str> {
        match (self.kind(), self.full("factor")) {
            ("default" | "mrope", _) | ("", None) => None,
            ("linear" | "yarn", None) => {
                Some("the scaling of rotary embeddings in config.json has no factor, and is left out")
            }
            _ => Some(
                "GGUF files of this architecture have no keys for the scaling of rotary embeddings in config.json: it is left out",
            ),
        }
    }

    /// The number of this name of the layers with full attention, or a default.
    fn number(&self, name: &str, default: f64) -> f64 {
        self.full(name).and_then(Json::as_f64).unwrap_or(default)
    }

    /// Factors of the frequencies of Llama 3, one per pair of `dim` dimensions; `None` for models without them.
    pub(crate) fn llama3_factors(&self, dim: u32) -> Option<Vec<f32>> {
        if !self.kind().eq_ignore_ascii_case("llama3") {
            return None;
        }
        let base = self.number("rope_theta", 10_000.0);
        let factor = self.number("factor", 8.0);
        let low = self.number("low_freq_factor", 1.0);
        let high = self.number("high_freq_factor", 4.0);
        let old = self.number("original_max_position_embeddings", 8192.0);
        let (longest, shortest) = ((old / low) as f32, (old / high) as f32);
        let circle = (2.0 * core::f64::consts::PI) as f32;
        // The reference computes with tensors of 32 bits: each operation rounds, and so does each number that meets a tensor.
        let factors = (0..dim).step_by(2).map(|idx| {
            let exponent = idx as f32 / dim as f32;
            let frequency = 1.0 / (libm::pow(base, f64::from(exponent)) as f32);
            let wavelength = circle / frequency;
            if wavelength < shortest {
                1.0
            } else if wavelength > longest {
                factor as f32
            } else {
                let smooth = (old as f32 / wavelength - low as f32) / ((high - low) as f32);
                1.0 / ((1.0 - smooth) / factor as f32 + smooth)
            }
        });
        Some(factors.collect())
    }

    /// Factors under this name, of the scaling of Phi-3.
    ///
    /// # Errors
    ///
    /// If one of them is no number.
    pub(crate) fn factors(&self, name: &str) -> Result<Option<Vec<f32>>, Error> {
        let Some(Json::Array(items)) = self.get(name) else { return Ok(None) };
        items.iter().map(|item| number_f32(item, name)).collect::<Result<_, _>>().map(Some)
    }
}

/// Writes the values that the parameters are read from; `rope_theta` is null where the class has a default and the file none.
///
/// # Errors
///
/// [`ErrorKind::UnknownFactors`] for factors of Llama 3 that no known parameters give; [`ErrorKind::KeyValue`].
pub(crate) fn restore(stored: &Stored<'_>, config: &mut Object, defaults: &Object) -> Result<(), Error> {
    let base = stored.f32("rope.freq_base")?;
    let is_set = |config: &Object| BASE.iter().any(|name| config.get(name).is_some());
    match base {
        Some(base) if !is_set(config) => config.set("rope_theta", float(base)),
        None if defaults.get("rope_theta").is_some() => config.set("rope_theta", Json::Null),
        _ => {}
    }
    if let Some(local) = stored.f32("rope.freq_base_swa")? {
        config.set("rope_local_base_freq", float(local));
    }
    if config.get("rope_scaling").is_some() {
        return Ok(());
    }
    let mut scaling = Object::default();
    let mut set = |name: &str, value: Option<Json>| {
        if let Some(value) = value {
            scaling.set(name, value);
        }
    };
    let factor = stored.f32("rope.scaling.factor")?;
    let scaling_type = stored.str("rope.scaling.type");
    if let Some(factors) = stored.values("rope_freqs.weight") {
        let found = Llama3::of(factors, base.unwrap_or(10_000.0)).ok_or(ErrorKind::UnknownFactors)?;
        set("rope_type", Some(text("llama3")));
        set("factor", Some(float(found.factor)));
        set("low_freq_factor", Some(float(found.low)));
        set("high_freq_factor", Some(float(found.high)));
        set("original_max_position_embeddings", Some(int(found.original)));
    } else if let (Some(kind @ ("linear" | "yarn")), Some(factor)) = (scaling_type, factor) {
        set("rope_type", Some(text(kind)));
        set("type", Some(text(kind)));
        set("factor", Some(float(factor)));
        if kind == "yarn" {
            let original = stored.u32("rope.scaling.original_context_length")?;
            set("original_max_position_embeddings", original.map(int));
            for (name, key) in [
                ("extrapolation_factor", "rope.scaling.yarn_ext_factor"),
                ("attention_factor", "rope.scaling.yarn_attn_factor"),
                ("beta_fast", "rope.scaling.yarn_beta_fast"),
                ("beta_slow", "rope.scaling.yarn_beta_slow"),
            ] {
                set(name, stored.f32(key)?.map(float));
            }
        }
    } else {
        // Also over a default of the class.
        if defaults.get("rope_theta").is_some() {
            config.set("rope_scaling", Json::Null);
        }
        return Ok(());
    }
    config.set("rope_scaling", Json::Object(scaling));
    Ok(())
}

/// Parameters of Llama 3.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Llama3 {
    factor: f32,
    low: f32,
    high: f32,
    original: u32,
}

impl Llama3 {
    /// The parameters that give these factors, with every bit: the factor is that of the longest wavelength, and of the others all that
    /// models have are tried.
    fn of(factors: &[f32], base: f32) -> Option<Self> {
        const BOUNDS: [(f32, f32); 5] = [(1.0, 4.0), (1.0, 2.0), (1.0, 8.0), (2.0, 4.0), (1.0, 32.0)];
        const LENS: core::ops::RangeInclusive<u32> = 4..=20;
        let factor = *factors.last()?;
        let dim = u32::try_from(factors.len()).ok()?.checked_mul(2)?;
        let lens = LENS.flat_map(|power| [1_u32 << power, 3 << (power - 1)]);
        let all = lens.flat_map(|original| {
            BOUNDS.into_iter().map(move |(low, high)| Self { factor, low, high, original })
        });
        // Most have the first bounds; with a short head several may give the same factors.
        let mut all: Vec<Self> = all.collect();
        all.sort_by_key(|own| (own.original != 8192, (own.low, own.high) != BOUNDS[0]));
        all.into_iter().find(|own| {
            let found = own.rope(base).llama3_factors(dim).unwrap_or_default();
            found.iter().map(|factor| factor.to_bits()).eq(factors.iter().map(|factor| factor.to_bits()))
        })
    }

    fn rope(self, base: f32) -> Rope {
        let mut parameters = Object::default();
        parameters.set("rope_type", text("llama3"));
        parameters.set("rope_theta", float(base));
        parameters.set("factor", float(self.factor));
        parameters.set("low_freq_factor", float(self.low));
        parameters.set("high_freq_factor", float(self.high));
        parameters.set("original_max_position_embeddings", int(self.original));
        Rope { parameters }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use sha2::{Digest, Sha256};

    use super::*;
    use crate::Texts;

    fn rope(config: &str) -> Rope {
        let mut texts = Texts::new("x");
        texts.insert("config.json", config.as_bytes().to_vec());
        Rope::new(&Config::from_texts(&texts).unwrap())
    }

    #[test]
    fn both_styles_are_the_same() {
        let old = rope(r#"{"rope_theta": 5e5, "rope_scaling": {"type": "linear", "factor": 4.0}}"#);
        let new = rope(r#"{"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 5e5}}"#);
        for rope in [old, new] {
            assert_eq!(rope.kind(), "linear");
            assert_eq!(rope.number("rope_theta", 0.0), 500_000.0);
            assert_eq!(rope.number("factor", 0.0), 4.0);
        }
        let parts = rope(
            r#"{"rope_theta": 1, "rope_parameters": {"full_attention": {"rope_theta": 7, "rope_type": "yarn"},
                "sliding_attention": {"rope_theta": 8}}}"#,
        );
        assert_eq!((parts.number("rope_theta", 0.0), parts.kind()), (7.0, "yarn"));
        assert_eq!(parts.sliding("rope_theta").and_then(Json::as_f64), Some(8.0));
    }

    #[test]
    fn factors_of_llama3_go_from_one_to_the_factor() {
        let rope = rope(
            r#"{"rope_theta": 5e5, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}}"#,
        );
        let factors = rope.llama3_factors(128).unwrap();
        assert_eq!((factors.len(), factors[0], factors[63]), (64, 1.0, 8.0));
        assert!(factors.is_sorted());
        assert!(factors.iter().any(|factor| (1.5..7.5).contains(factor)));
    }

    /// Length of heads, base, factor, low, high, old context, and the first bytes of the SHA-256 of what the reference writes: Llama 3.1,
    /// 3.2 of 1B and 3B, and another.
    #[test]
    fn factors_of_published_models_have_the_bits_of_the_reference() {
        let cases = [
            (128, 5e5, 8, 1, 4, 8192, "8b516af9cb5db26e"),
            (64, 5e5, 32, 1, 4, 8192, "d25a6d176d931306"),
            (128, 5e5, 32, 1, 4, 8192, "af00a6286e9cba87"),
            (96, 1e6, 4, 1, 4, 4096, "24ab9aff7a82113a"),
        ];
        for (dim, base, factor, low, high, old, digest) in cases {
            let rope = rope(&alloc::format!(
                r#"{{"rope_parameters": {{"rope_theta": {base}, "rope_type": "llama3", "factor": {factor}, "low_freq_factor": {low},
                    "high_freq_factor": {high}, "original_max_position_embeddings": {old}}}}}"#
            ));
            let factors = rope.llama3_factors(dim).unwrap();
            let bytes: Vec<u8> = factors.iter().flat_map(|factor| factor.to_le_bytes()).collect();
            let found: String =
                Sha256::digest(bytes).iter().take(8).map(|byte| alloc::format!("{byte:02x}")).collect();
            assert_eq!(found, digest, "{dim} {base} {factor}");
        }
    }
}
