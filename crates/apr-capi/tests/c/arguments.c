/* What a program can do wrong with the C interface. Arguments: an .apr file with a model of numbers, a folder without a model. */

#undef NDEBUG
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apr.h"

static void fails(apr_status status, apr_status expected, const char *code) {
  apr_error error;
  assert(apr_last_error(&error));
  if (status != expected || error.status != expected || strcmp(error.code, code) != 0 || strlen(error.message) == 0) {
    fprintf(stderr, "%d %s: %s\n  expected %d %s\n", (int)status, error.code, error.message, (int)expected, code);
    abort();
  }
}

static void usage(apr_status status) { fails(status, APR_STATUS_USAGE, "api-usage"); }

int main(int argc, char **argv) {
  apr_error error;
  apr_file *file = NULL;
  apr_model *model = NULL;
  apr_model_info info;
  apr_options options;
  apr_tensor tensor;
  apr_table table = {0, 0, NULL};
  const char *json = NULL;
  size_t count = 0;
  bool has_checksum = false;
  float small[1];
  char bytes[8];
  double row[3] = {1.0, 2.0, 3.0};
  const char *texts[1] = {NULL};

  assert(argc == 3);
  assert(strlen(apr_version()) > 0);
  assert(!apr_last_error(NULL));
  assert(!apr_last_error(&error));

  /* Null pointers. */
  usage(apr_open(NULL, NULL, &file));
  usage(apr_open(argv[1], NULL, NULL));
  usage(apr_open_memory(NULL, 8, NULL, &file));
  usage(apr_describe(NULL, &json));
  usage(apr_verify(NULL, NULL));
  usage(apr_tensor_count(NULL, &count));
  usage(apr_tensor_at(NULL, 0, &tensor));
  usage(apr_tensor_find(NULL, "w", &count));
  usage(apr_model_load(NULL, &model));
  usage(apr_model_describe(NULL, &info));
  usage(apr_predict(NULL, APR_OUTPUT_PREDICTIONS, row, 1, 3, &table));
  assert(apr_format(NULL) == NULL);
  assert(apr_model_feature(NULL, 0) == NULL);
  assert(apr_model_label(NULL, 0) == NULL);
  assert(!apr_model_supports(NULL, APR_OUTPUT_PREDICTIONS));
  apr_close(NULL);
  apr_model_free(NULL);
  apr_table_free(NULL);
  apr_table_free(&table);

  /* Files that are not there, no models, too short. */
  fails(apr_open("no such file", NULL, &file), APR_STATUS_IO, "df-io");
  assert(apr_open(argv[2], NULL, &file) != APR_STATUS_OK);
  usage(apr_open("\xff", NULL, &file));
  assert(apr_open_memory(NULL, 0, NULL, &file) == APR_STATUS_INVALID);
  assert(apr_open_memory("abc", 3, NULL, &file) == APR_STATUS_INVALID);
  assert(file == NULL);

  /* Options. */
  memset(&options, 0, sizeof options);
  usage(apr_open(argv[1], &options, &file));
  options.size = sizeof options;
  options.flags = 1u << 31;
  usage(apr_open(argv[1], &options, &file));
  options.flags = APR_ANY_SIGNER;
  fails(apr_open(argv[1], &options, &file), APR_STATUS_VERIFICATION, "ac-not-signed");
  options.verify_key = "no key";
  usage(apr_open(argv[1], &options, &file));
  options.flags = 0;
  assert(apr_open(argv[1], &options, &file) != APR_STATUS_OK);
  options.verify_key = NULL;
  options.password = "secret";
  fails(apr_open(argv[1], &options, &file), APR_STATUS_VERIFICATION, "ac-not-encrypted");
  options.password = NULL;
  assert(file == NULL);
  assert(apr_open(argv[1], &options, &file) == APR_STATUS_OK);

  /* Tensors. */
  assert(strcmp(apr_format(file), "apr") == 0);
  assert(apr_describe(file, &json) == APR_STATUS_OK && json[0] == '{');
  assert(apr_verify(file, &has_checksum) == APR_STATUS_OK && has_checksum);
  assert(apr_tensor_count(file, &count) == APR_STATUS_OK && count > 0);
  usage(apr_tensor_at(file, count, &tensor));
  usage(apr_tensor_at(file, 0, NULL));
  fails(apr_tensor_find(file, "no such tensor", &count), APR_STATUS_USAGE, "mo-no-tensor");
  usage(apr_tensor_find(file, NULL, &count));
  assert(apr_tensor_find(file, "coefficients", &count) == APR_STATUS_OK);
  assert(apr_tensor_at(file, count, &tensor) == APR_STATUS_OK);
  assert(tensor.rank == 1 && tensor.shape[0] == 3 && tensor.byte_len == 12);
  assert(strcmp(tensor.dtype, "F32") == 0 && tensor.name_len == strlen("coefficients"));
  usage(apr_tensor_read_f32(file, count, small, 1));
  usage(apr_tensor_read_f32(file, count, NULL, 3));
  usage(apr_tensor_read(file, count, 8, bytes, 8));
  usage(apr_tensor_read(file, count, UINT64_MAX, bytes, 8));
  usage(apr_tensor_read(file, SIZE_MAX, 0, bytes, 8));
  usage(apr_tensor_read(file, count, 0, NULL, 4));
  assert(apr_tensor_read(file, count, 4, bytes, 8) == APR_STATUS_OK);

  /* Predictions. */
  assert(apr_model_load(file, &model) == APR_STATUS_OK);
  apr_close(file);
  assert(apr_model_describe(model, &info) == APR_STATUS_OK);
  assert(info.n_features == 3 && info.n_classes == 0 && !info.takes_texts);
  assert(apr_model_supports(model, APR_OUTPUT_PREDICTIONS));
  assert(!apr_model_supports(model, APR_OUTPUT_PROBABILITIES));
  assert(!apr_model_supports(model, 99));
  usage(apr_predict(model, 99, row, 1, 3, &table));
  usage(apr_predict(model, APR_OUTPUT_PREDICTIONS, NULL, 1, 3, &table));
  usage(apr_predict(model, APR_OUTPUT_PREDICTIONS, row, SIZE_MAX, 3, &table));
  usage(apr_predict(model, APR_OUTPUT_PREDICTIONS, row, SIZE_MAX / 8, 1, &table));
  usage(apr_predict(model, APR_OUTPUT_PREDICTIONS, row, 1, 3, NULL));
  assert(apr_predict(model, APR_OUTPUT_PREDICTIONS, row, 1, 2, &table) != APR_STATUS_OK);
  assert(apr_predict(model, APR_OUTPUT_PROBABILITIES, row, 1, 3, &table) != APR_STATUS_OK);
  usage(apr_predict_texts(model, APR_OUTPUT_PREDICTIONS, texts, 1, &table));
  texts[0] = "a text";
  assert(apr_predict_texts(model, APR_OUTPUT_PREDICTIONS, texts, 1, &table) != APR_STATUS_OK);
  assert(table.values == NULL);
  assert(apr_predict(model, APR_OUTPUT_PREDICTIONS, row, 1, 3, &table) == APR_STATUS_OK);
  assert(table.n_rows == 1 && table.n_columns == 1);
  apr_table_free(&table);
  assert(table.values == NULL);
  assert(apr_predict(model, APR_OUTPUT_PREDICTIONS, NULL, 0, 3, &table) == APR_STATUS_OK);
  assert(table.n_rows == 0);
  apr_table_free(&table);
  apr_model_free(model);
  return EXIT_SUCCESS;
}
