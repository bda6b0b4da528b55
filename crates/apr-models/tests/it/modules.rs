//! Single modules by their public items.

mod any_model_predict;
mod content_recommender;
mod isolation_forest;
mod knn_regressor;
mod naive_bayes_fit;
mod ngram_lm_sample;
mod pipeline_fold;
mod sparse;
mod tensors_apr;
mod tf_idf;
mod vocabulary;
