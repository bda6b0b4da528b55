//! Measured programs, and estimates for others.

/// The table, which `cargo xtask embed size --write` writes.
const TABLE: &str = include_str!("measured.txt");

/// What features are measured on.
const COMMON: &str = "RandomForestClassifier";

/// Types of models that were not measured, and the one whose code is most like theirs.
const KIN: [(&str, &str); 9] = [
    ("Ridge", "LinearRegression"),
    ("Lasso", "LinearRegression"),
    ("ElasticNet", "LinearRegression"),
    ("GradientBoostingRegressor", "RandomForestRegressor"),
    ("GradientBoostingClassifier", "RandomForestClassifier"),
    ("KnnRegressor", "DecisionTreeRegressor"),
    ("KnnClassifier", "NaiveBayes"),
    ("Svm", "NaiveBayes"),
    ("CountVectorizer", "TfIdf"),
];

/// Which program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Program<'t> {
    pub(super) model: &'t str,
    /// How the model is stored: `stored`, `lz4`, `zstd`, `safetensors` or `apr2`.
    pub(super) form: &'t str,
    /// `verified` with `--signer`.
    pub(super) signature: &'t str,
    /// `lines` or `service`.
    pub(super) kind: &'t str,
    /// `size` or `speed`.
    pub(super) optimized: &'t str,
}

/// What the compiler made of it, for each target: bytes of the stripped program without its model's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row<'t> {
    pub(super) program: Program<'t>,
    pub(super) bytes: Vec<u64>,
}

/// The table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Measured<'t> {
    /// As `rustc --version` says it.
    pub(super) compiler: &'t str,
    pub(super) targets: Vec<&'t str>,
    pub(super) rows: Vec<Row<'t>>,
}

/// What one thing adds to a program, for each target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Feature {
    pub(super) name: &'static str,
    pub(super) bytes: Vec<i64>,
}

/// What a program takes, without its model's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Estimate<'t> {
    pub(super) bytes: Vec<u64>,
    /// The program that was measured.
    pub(super) like: Program<'t>,
    /// What was added to it.
    pub(super) with: Vec<&'static str>,
}

impl<'t> Program<'t> {
    /// One around a model that is stored as it is, with nothing else.
    pub(super) const fn plain(model: &'t str) -> Self {
        Self { model, form: "stored", signature: "-", kind: "lines", optimized: "size" }
    }
}

impl Measured<'static> {
    /// That of this release.
    pub(super) fn new() -> Self {
        Self::parse(TABLE).expect("the table is written by a program, and read by a test")
    }
}

impl<'t> Measured<'t> {
    fn parse(text: &'t str) -> Option<Self> {
        let mut lines = text.lines().filter(|line| !line.starts_with('#'));
        let compiler = lines.next()?.strip_prefix("compiler ")?;
        let targets: Vec<&str> = lines.next()?.strip_prefix("targets ")?.split(' ').collect();
        let row = |line: &'t str| {
            let mut words = line.split(' ');
            let mut word = || words.next();
            let (model, form, signature, kind, optimized) = (word()?, word()?, word()?, word()?, word()?);
            let bytes = words.map(|word| word.parse().ok()).collect::<Option<Vec<u64>>>()?;
            let program = Program { model, form, signature, kind, optimized };
            (bytes.len() == targets.len()).then_some(Row { program, bytes })
        };
        Some(Self { compiler, rows: lines.map(row).collect::<Option<_>>()?, targets })
    }

    fn of(&self, program: Program<'_>) -> Option<&Row<'t>> {
        self.rows.iter().find(|row| row.program == program)
    }

    /// Types of models that were measured as they are.
    pub(super) fn models(&self) -> impl Iterator<Item = &Row<'t>> {
        self.rows.iter().filter(|row| row.program == Program::plain(row.program.model))
    }

    /// A program that does nothing.
    pub(super) fn nothing(&self) -> Option<&Row<'t>> {
        self.rows.iter().find(|row| row.program.model == "nothing")
    }

    /// A service, which is the same for every model.
    pub(super) fn service(&self) -> Option<&Row<'t>> {
        self.of(Program { kind: "service", ..Program::plain(COMMON) })
    }

    /// What each feature adds to a program of lines.
    pub(super) fn features(&self) -> Vec<Feature> {
        let plain = Program::plain(COMMON);
        let line = Program::plain("LinearRegression");
        [
            ("lz4", plain, Program { form: "lz4", ..plain }),
            ("zstd", plain, Program { form: "zstd", ..plain }),
            ("signer", line, Program { signature: "verified", ..line }),
            ("safetensors", plain, Program { form: "safetensors", ..plain }),
            ("apr2", plain, Program { form: "apr2", ..plain }),
            ("speed", plain, Program { optimized: "speed", ..plain }),
        ]
        .into_iter()
        .filter_map(|(name, without, with)| {
            let (without, with) = (self.of(without)?, self.of(with)?);
            let bytes = with.bytes.iter().zip(&without.bytes);
            let bytes = bytes.map(|(with, without)| with.cast_signed() - without.cast_signed());
            Some(Feature { name, bytes: bytes.collect() })
        })
        .collect()
    }

    /// What a program takes: as measured, or the nearest one that was measured, and what the rest adds. `None` for a model that is like none of these.
    pub(super) fn estimate(&self, program: Program<'_>) -> Option<Estimate<'t>> {
        if let Some(row) = self.of(program) {
            return Some(Estimate { bytes: row.bytes.clone(), like: row.program, with: Vec::new() });
        }
        let kin = KIN.iter().find(|(model, _)| *model == program.model);
        // A service has the code of every model.
        let model = if program.kind == "service" { COMMON } else { kin.map_or(program.model, |kin| kin.1) };
        let base = Program { model, ..program };
        let plain = Program::plain(model);
        let nearest = [
            base,
            Program { form: plain.form, ..base },
            Program { signature: plain.signature, ..base },
            Program { optimized: base.optimized, kind: base.kind, ..plain },
            Program { kind: base.kind, ..plain },
        ];
        let row = nearest.into_iter().find_map(|program| self.of(program))?;
        let found = row.program;
        let added = [
            (found.form != program.form).then_some(program.form),
            (found.signature != program.signature).then_some("signer"),
            (found.optimized != program.optimized).then_some(program.optimized),
        ];
        let features = self.features();
        let (mut bytes, mut with) = (row.bytes.clone(), Vec::new());
        for name in added.into_iter().flatten() {
            let feature = features.iter().find(|feature| feature.name == name)?;
            for (sum, added) in bytes.iter_mut().zip(&feature.bytes) {
                *sum = sum.saturating_add_signed(*added);
            }
            with.push(feature.name);
        }
        Some(Estimate { bytes, like: found, with })
    }
}

#[cfg(test)]
mod tests {
    use apr_models::AnyModel;

    use super::*;

    #[test]
    fn the_table_is_whole() {
        let measured = Measured::new();
        assert_eq!(measured.features().len(), 6);
        assert!(measured.nothing().is_some() && measured.service().is_some());
        for row in &measured.rows {
            assert!(row.bytes.iter().all(|&bytes| (100_000..10_000_000).contains(&bytes)), "{row:?}");
        }
        for (_, kin) in KIN {
            assert!(measured.of(Program::plain(kin)).is_some(), "{kin}");
        }
    }

    #[test]
    fn every_model_that_predicts_is_like_one_that_was_measured() {
        let measured = Measured::new();
        let silent = ["Numbers", "QuantizedBlock", "DBSCAN", "ContentRecommender"];
        for model in AnyModel::NAMES.iter().filter(|name| !silent.contains(name)) {
            for kind in ["lines", "service"] {
                let program = Program { kind, ..Program::plain(model) };
                assert!(measured.estimate(program).is_some(), "{program:?}");
            }
        }
        assert_eq!(measured.estimate(Program::plain("Numbers")), None);
    }

    /// What was measured with several features at a time, without looking at that.
    #[test]
    fn sums_are_near_what_was_measured() {
        let measured = Measured::new();
        let is_checked = |row: &&Row<'_>| {
            let Program { model, form, signature, kind, .. } = row.program;
            let plain = Program::plain(model);
            [form != plain.form, signature != plain.signature, kind != plain.kind, model != COMMON]
                .iter()
                .filter(|&&is| is)
                .count()
                > 1
        };
        let checked: Vec<_> = measured.rows.iter().filter(is_checked).collect();
        assert!(checked.len() > 1);
        for row in checked {
            let rows = measured.rows.iter().filter(|other| *other != row).cloned().collect();
            let others = Measured { rows, ..measured.clone() };
            let Some(estimate) = others.estimate(row.program) else { continue };
            for (sum, bytes) in estimate.bytes.iter().zip(&row.bytes) {
                assert!(sum.abs_diff(*bytes) * 20 <= *bytes, "{estimate:?}\n{row:?}");
            }
        }
    }
}
