/* The C interface of apr: opens model files of every format, reads tensors, verifies, predicts.
 * docs/c.md describes it. Written by cbindgen from crates/apr-capi/src/ffi.rs. */

#ifndef APR_H
#define APR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// Accept what the reference implementations accept, not only what the specifications allow.
#define APR_COMPAT 1

// Accept signed files without verifying their signatures.
#define APR_ALLOW_UNVERIFIED 2

// Require a valid signature by any key. It detects changes and does not show the origin of the file.
#define APR_ANY_SIGNER 4

// Result of a call: 0 for success, otherwise a group of errors. The numbers are the exit codes of the program `apr`.
typedef enum apr_status {
  // Success.
  APR_STATUS_OK = 0,
  // An argument is not valid: a null pointer, an index beyond the end, a buffer of another length, text that is not UTF-8.
  APR_STATUS_USAGE = 2,
  // The file is malformed, or its content is not what was asked for.
  APR_STATUS_INVALID = 3,
  // A checksum, a signature, a key or a password does not match.
  APR_STATUS_VERIFICATION = 4,
  // The operating system reported an error, or memory ran out.
  APR_STATUS_IO = 5,
  // The file is of a format or version that is not read.
  APR_STATUS_UNSUPPORTED = 6,
  // A defect of this library: the call was abandoned.
  APR_STATUS_INTERNAL = 7,
} apr_status;

// What is wanted of a model.
typedef enum apr_output {
  // A value, a row of values, the index of a class, or 1 for an inlier and -1 for an outlier.
  APR_OUTPUT_PREDICTIONS = 0,
  // The probability of each class.
  APR_OUTPUT_PROBABILITIES = 1,
  // A score for each class or pair of classes, or for how far a sample is from being an outlier.
  APR_OUTPUT_DECISION_FUNCTION = 2,
  // The logarithm of the density, or the opposite of the anomaly score.
  APR_OUTPUT_SCORE_SAMPLES = 3,
  // The transformed sample.
  APR_OUTPUT_TRANSFORMED = 4,
} apr_output;

// An open model file. Any number of threads may use one.
typedef struct apr_file apr_file;

// A loaded model. Any number of threads may use one.
typedef struct apr_model apr_model;

// Why the last call failed.
typedef struct apr_error {
  // The group.
  enum apr_status status;
  // Stable identifier, for example `st-offsets`; `apr explain CODE` explains it.
  const char *code;
  // What is wrong and where: one line of UTF-8.
  const char *message;
  // What to do next, or an empty string.
  const char *help;
  // Bytes from the start of the file, or `UINT64_MAX`.
  uint64_t offset;
} apr_error;

// How a file is opened. Set all of it to zero, then `size`, then what is wanted.
typedef struct apr_options {
  // `sizeof(apr_options)`.
  size_t size;
  // `APR_COMPAT` and the other flags, combined by `|`.
  uint32_t flags;
  // Text of the public key that must have signed the file, or null.
  const char *verify_key;
  // Text of a recipient's secret key, or null.
  const char *identity;
  // The password that the file is encrypted under, or that of `identity`; or null.
  const char *password;
} apr_options;

// A tensor. Its pointers are valid until the file is closed.
typedef struct apr_tensor {
  // The name in UTF-8, ended by a zero byte; it may contain others.
  const char *name;
  // Bytes of the name, without that zero byte.
  size_t name_len;
  // Name of the type: `F32`, `BF16`, `Q4_K`, ...
  const char *dtype;
  // Number of dimensions.
  size_t rank;
  // Dimensions, the slowest first.
  const uint64_t *shape;
  // Bytes of the data.
  uint64_t byte_len;
  // Offset of the data in the file, or `UINT64_MAX` if they are not stored there as they are, as in sealed files and sets of shards.
  uint64_t file_offset;
} apr_tensor;

// What a model is. Its pointers are valid until the model is freed.
typedef struct apr_model_info {
  // Type of the model: `LinearRegression`, `Pipeline`, ...
  const char *name;
  // Features of a row; 0 of models that take texts or rows of any length.
  size_t n_features;
  // Number of classes; 0 of models that do not predict classes.
  size_t n_classes;
  // Whether samples are texts.
  bool takes_texts;
} apr_model_info;

// Results of a prediction. The library owns `values` until `apr_table_free`.
typedef struct apr_table {
  // Number of rows: one for each sample.
  size_t n_rows;
  // Values of a row.
  size_t n_columns;
  // `n_rows * n_columns` values, row after row.
  double *values;
} apr_table;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Version of the library, for example `0.1.0`.
const char *apr_version(void);

// Writes why the last failed call of this thread failed to `error`, whose texts are valid until another call of this thread
// fails or the thread ends. Returns false, and writes nothing, if no call failed yet.
//
// `error` is null or points to memory for an `apr_error`.
bool apr_last_error(struct apr_error *error);

// Opens a file, a folder with a model, or an index of shards. `path` is UTF-8; `options` may be null. Close it with `apr_close`.
//
// Pointers are null or valid.
enum apr_status apr_open(const char *path,
                         const struct apr_options *options,
                         struct apr_file **file);

// Opens the bytes of a file, which stay the caller's: they have to be valid and unchanged until the file is closed. `options` may
// be null.
//
// Pointers are null or valid; the `len` bytes at `data` outlive the file.
enum apr_status apr_open_memory(const void *data,
                                size_t len,
                                const struct apr_options *options,
                                struct apr_file **file);

// Closes a file. Models that were loaded from it stay. Null is allowed.
//
// `file` came from `apr_open` or `apr_open_memory`, and nothing uses it any more.
void apr_close(struct apr_file *file);

// Name of the format: `safetensors`, `apr`, `gguf`, `sealed`, or that of another program's. Null for a null pointer. Valid until the
// file is closed.
//
// `file` is null or open.
const char *apr_format(const struct apr_file *file);

// Describes the file as one JSON object: format, metadata, tensors, properties. Valid until the file is closed.
//
// Pointers are null or valid.
enum apr_status apr_describe(const struct apr_file *file, const char **json);

// Reads everything that the format can verify. `has_checksum` is whether there was a checksum, or may be null. Signatures are verified
// when a file is opened with a key.
//
// Pointers are null or valid.
enum apr_status apr_verify(const struct apr_file *file,
                           bool *has_checksum);

// Number of tensors.
//
// Pointers are null or valid.
enum apr_status apr_tensor_count(const struct apr_file *file, size_t *count);

// Describes a tensor, by its index in file order from 0.
//
// Pointers are null or valid.
enum apr_status apr_tensor_at(const struct apr_file *file, size_t index, struct apr_tensor *tensor);

// Finds the index of the tensor with this name.
//
// Pointers are null or valid.
enum apr_status apr_tensor_find(const struct apr_file *file, const char *name, size_t *index);

// Reads `len` bytes of a tensor as they are stored, little-endian and row-major, from byte `offset` of its data on.
//
// `file` is null or open; `buffer` has `len` bytes that nothing else uses meanwhile.
enum apr_status apr_tensor_read(const struct apr_file *file, size_t index, uint64_t offset, void *buffer, size_t len);

// Reads all values of a tensor, of any type with a conversion, as 32-bit floats. `count` is the number of its elements.
//
// `file` is null or open; `buffer` has `count` floats that nothing else uses meanwhile.
enum apr_status apr_tensor_read_f32(const struct apr_file *file, size_t index, float *buffer, size_t count);

// Loads the model that a file holds. Free it with `apr_model_free`.
//
// Pointers are null or valid.
enum apr_status apr_model_load(const struct apr_file *file, struct apr_model **model);

// Frees a model. Null is allowed.
//
// `model` came from `apr_model_load`, and nothing uses it any more.
void apr_model_free(struct apr_model *model);

// Describes a model.
//
// Pointers are null or valid.
enum apr_status apr_model_describe(const struct apr_model *model, struct apr_model_info *info);

// Whether the model has an output, a value of `apr_output`.
//
// `model` is null or valid.
bool apr_model_supports(const struct apr_model *model, int32_t output);

// Name of a feature, from 0; null if the file names none. Valid until the model is freed.
//
// `model` is null or valid.
const char *apr_model_feature(const struct apr_model *model, size_t index);

// Label of a class, by its index: of a prediction, or of a column of probabilities. Null beyond the last one. Valid until the model is
// freed.
//
// `model` is null or valid.
const char *apr_model_label(const struct apr_model *model,
                            size_t index);

// Predicts rows of numbers, `n_rows * n_features` values, row after row. `output` is a value of `apr_output`. Models that compute
// with 32-bit floats round the values to those. Free the table with `apr_table_free`.
//
// Pointers are null or valid; `rows` has that many values.
enum apr_status apr_predict(const struct apr_model *model,
                            int32_t output,
                            const double *rows,
                            size_t n_rows,
                            size_t n_features,
                            struct apr_table *table);

// Predicts texts, UTF-8 and each ended by a zero byte. Free the table with `apr_table_free`.
//
// Pointers are null or valid; `texts` has `n_texts` of them.
enum apr_status apr_predict_texts(const struct apr_model *model,
                                  int32_t output,
                                  const char *const *texts,
                                  size_t n_texts,
                                  struct apr_table *table);

// Frees the values of a table and sets it to zero. Null and a table of zeros are allowed.
//
// `table` is null, or was written by `apr_predict` or `apr_predict_texts` and not changed, or is all zero.
void apr_table_free(struct apr_table *table);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* APR_H */
