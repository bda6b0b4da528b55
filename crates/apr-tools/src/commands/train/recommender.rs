//! Content recommenders: items with vectors or texts.

use apr_models::{ContentRecommender, TfIdfOptions, Workers};
use clap::Args;

use super::algorithms::{DropArg, Job, VocabularyArgs, counts, named};
use super::data::{Columns, Data, Needs};
use super::preparation::PreparationArgs;
use super::validation::ValidationArgs;
use super::{CommonArgs, Trained};
use crate::error::Failure;

#[derive(Debug, Args)]
pub(super) struct RecommenderArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// The names of the items are in this column, and their vectors in the others. Without it, items are texts, named by
    /// their numbers from 1.
    #[arg(long, value_name = "COLUMN", conflicts_with = "column")]
    id: Option<String>,
    /// TABLE is a table, and the texts are in this column.
    #[arg(long, value_name = "COLUMN")]
    column: Option<String>,
    #[command(flatten)]
    drop: DropArg,
    #[command(flatten)]
    vocabulary: VocabularyArgs,
}

impl RecommenderArgs {
    pub(super) fn job(&self) -> Job<'_> {
        let columns = match &self.id {
            Some(id) => {
                Columns::Target { needs: Needs::Names, target: id, dropped: &self.drop.drop, weight: None }
            }
            None => Columns::Texts { column: self.column.as_deref() },
        };
        let train = Box::new(move |data: &Data, _: &dyn Workers| train(&self.vocabulary, data));
        let (preparation, validation) = (PreparationArgs::default(), ValidationArgs::default());
        Job { name: "recommender", common: &self.common, columns, preparation, validation, seed: 0, train }
    }
}

fn train(args: &VocabularyArgs, data: &Data) -> Result<Trained, Failure> {
    let (model, hyperparameters) = match data {
        Data::Table(table) => (ContentRecommender::dense(table.names()?, table.x.clone())?, named([])),
        Data::Texts(texts) => {
            let (counts, hyperparameters) = counts(args);
            let ids = (1..=texts.len()).map(|number| number.to_string());
            let options = TfIdfOptions { counts, ..TfIdfOptions::default() };
            (ContentRecommender::from_texts(ids, texts, &options)?, hyperparameters)
        }
    };
    let metrics = named([("items", model.len().into())]);
    Ok(Trained::new(model, hyperparameters).with_metrics(metrics))
}
