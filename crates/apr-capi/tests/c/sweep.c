/* Opens each file that is named, by its path and in memory, strictly and not, and does with it all there is. One line for each file: the
 * status and the code of the first error. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apr.h"

/* Tensors of more bytes are not read. */
#define MOST 1000000u

static apr_status first;
static char code[64];

/* Keeps the first error. */
static int ok(apr_status status) {
  apr_error error;
  if (status != APR_STATUS_OK && first == APR_STATUS_OK) {
    first = status;
    if (apr_last_error(&error)) snprintf(code, sizeof code, "%s", error.code);
  }
  return status == APR_STATUS_OK;
}

static void read_tensors(const apr_file *file) {
  size_t count = 0, idx, found;
  apr_tensor tensor;
  if (!ok(apr_tensor_count(file, &count))) return;
  for (idx = 0; idx < count && idx < 100; idx++) {
    if (!ok(apr_tensor_at(file, idx, &tensor))) return;
    if (strlen(tensor.name) == tensor.name_len) (void)apr_tensor_find(file, tensor.name, &found);
    if (tensor.byte_len <= MOST) {
      unsigned char *bytes = malloc((size_t)tensor.byte_len + 1);
      size_t axis;
      double elements = 1.0;
      (void)apr_tensor_read(file, idx, 0, bytes, (size_t)tensor.byte_len);
      free(bytes);
      for (axis = 0; axis < tensor.rank; axis++) elements *= (double)tensor.shape[axis];
      if (elements <= MOST) {
        float *values = malloc(((size_t)elements + 1) * sizeof *values);
        (void)apr_tensor_read_f32(file, idx, values, (size_t)elements);
        free(values);
      }
    }
  }
}

static void predict(const apr_file *file) {
  apr_model *model = NULL;
  apr_model_info info;
  apr_table table;
  int output;
  if (apr_model_load(file, &model) != APR_STATUS_OK) return;
  if (apr_model_describe(model, &info) == APR_STATUS_OK) {
    size_t n_features = info.n_features ? info.n_features : 1, class_idx;
    for (class_idx = 0; class_idx < info.n_classes; class_idx++) (void)apr_model_label(model, class_idx);
    for (output = 0; output < 5 && n_features <= MOST; output++) {
      double *rows = calloc(2 * n_features, sizeof *rows);
      const char *texts[2] = {"the cat", ""};
      apr_status status = info.takes_texts ? apr_predict_texts(model, output, texts, 2, &table)
                                           : apr_predict(model, output, rows, 2, n_features, &table);
      if (status == APR_STATUS_OK) apr_table_free(&table);
      free(rows);
    }
  }
  apr_model_free(model);
}

static void use(apr_file *file) {
  const char *json;
  (void)ok(apr_describe(file, &json));
  (void)ok(apr_verify(file, NULL));
  read_tensors(file);
  predict(file);
  apr_close(file);
}

static void from_memory(const char *path, const apr_options *options) {
  FILE *stream = fopen(path, "rb");
  unsigned char *bytes = NULL;
  long len = -1;
  apr_file *file = NULL;
  if (stream && fseek(stream, 0, SEEK_END) == 0) len = ftell(stream);
  if (len > 0 && len < 50000000) bytes = malloc((size_t)len);
  if (bytes && fseek(stream, 0, SEEK_SET) == 0 && fread(bytes, 1, (size_t)len, stream) == (size_t)len) {
    if (apr_open_memory(bytes, (size_t)len, options, &file) == APR_STATUS_OK) use(file);
  }
  free(bytes);
  if (stream) fclose(stream);
}

int main(int argc, char **argv) {
  apr_options options;
  int idx;
  for (idx = 1; idx < argc; idx++) {
    apr_file *file = NULL;
    first = APR_STATUS_OK;
    strcpy(code, "-");
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.flags = APR_ALLOW_UNVERIFIED;
    if (ok(apr_open(argv[idx], &options, &file))) use(file);
    printf("%d %s %s\n", (int)first, code, argv[idx]);
    from_memory(argv[idx], &options);
    options.flags |= APR_COMPAT;
    from_memory(argv[idx], &options);
  }
  return EXIT_SUCCESS;
}
