/* Predicts one row: predict MODEL. */

#include <stdio.h>

#include "apr.h"

/* Says why the last call failed. */
static int failed(void) {
  apr_error error;
  if (apr_last_error(&error)) fprintf(stderr, "error[%s]: %s\n  help: %s\n", error.code, error.message, error.help);
  return 1;
}

int main(int argc, char **argv) {
  apr_file *file = NULL;
  apr_model *model = NULL;
  apr_model_info info;
  apr_table table;
  const double row[3] = {1.0, 2.0, 3.0};
  if (argc != 2) return 2;
  if (apr_open(argv[1], NULL, &file) != APR_STATUS_OK) return failed();
  if (apr_model_load(file, &model) != APR_STATUS_OK) return failed();
  apr_close(file);
  if (apr_model_describe(model, &info) != APR_STATUS_OK) return failed();
  printf("%s, %zu features\n", info.name, info.n_features);
  if (apr_predict(model, APR_OUTPUT_PREDICTIONS, row, 1, 3, &table) != APR_STATUS_OK) return failed();
  printf("%g %g %g -> %g\n", row[0], row[1], row[2], table.values[0]);
  apr_table_free(&table);
  apr_model_free(model);
  return 0;
}
