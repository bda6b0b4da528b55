// Lists the tensors of a model file of any format, with the mean of their values: tensors MODEL.

#include <cstdio>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "apr.h"

namespace {

// Throws the error of the last call.
void check(apr_status status) {
  apr_error error;
  if (status == APR_STATUS_OK) return;
  if (!apr_last_error(&error)) throw std::runtime_error("unknown error");
  throw std::runtime_error("error[" + std::string(error.code) + "]: " + error.message);
}

struct Close {
  void operator()(apr_file *file) const { apr_close(file); }
};

using File = std::unique_ptr<apr_file, Close>;

File open(const char *path) {
  apr_file *file = nullptr;
  check(apr_open(path, nullptr, &file));
  return File(file);
}

}  // namespace

int main(int argc, char **argv) try {
  if (argc != 2) return 2;
  const File file = open(argv[1]);
  std::size_t count = 0;
  check(apr_tensor_count(file.get(), &count));
  for (std::size_t idx = 0; idx < count; ++idx) {
    apr_tensor tensor;
    check(apr_tensor_at(file.get(), idx, &tensor));
    const auto product = [](std::uint64_t a, std::uint64_t b) { return a * b; };
    const auto elements = std::accumulate(tensor.shape, tensor.shape + tensor.rank, std::uint64_t{1}, product);
    std::vector<float> values(elements);
    check(apr_tensor_read_f32(file.get(), idx, values.data(), values.size()));
    const double sum = std::accumulate(values.begin(), values.end(), 0.0);
    std::printf("%s %s, %zu elements, mean %g\n", tensor.name, tensor.dtype, values.size(),
                values.empty() ? 0.0 : sum / static_cast<double>(values.size()));
  }
  return 0;
} catch (const std::exception &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
