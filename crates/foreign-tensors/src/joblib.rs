//! Pickled arrays of NumPy, joblib and scikit-learn.
