// Where the inputs of a program come from: files that are named on the command line, or chance.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/base/text.h"
#include "tessera/op/array.h"

namespace tessera::cli {

struct TensorSourceOptions {
  std::vector<std::string> inputs;      ///< [NAME=]SOURCE
  std::optional<std::uint64_t> random;  ///< a seed: inputs that are not given are random
  std::vector<std::string> dims;        ///< NAME=SIZE, or INPUT:AXIS=SIZE
};

void add_tensor_source_options(CLI::App& command, TensorSourceOptions& options);

/// What is wrong with the arguments.
template <class... Args>
[[nodiscard]] Error wrong(const Args&... args) {
  return Error(ErrorCode::invalid_argument, cat(args...));
}

/// A name as messages show it.
[[nodiscard]] std::string in_quotes(std::string_view name);

/// The sources in the order of the inputs, empty where there is none. What has no name goes to the next input
/// that has nothing; an archive to all inputs whose names it has.
[[nodiscard]] Result<std::vector<std::string>> sources_of(const std::vector<std::string>& inputs,
                                                          const std::vector<std::string>& given);

/// A .npy file, an array of a .npz file by the name of the input, or raw:DTYPE:SIZExSIZE:FILE. Nothing if the
/// source is none of these.
[[nodiscard]] Result<std::optional<op::HostTensor>> read_tensor(const std::string& source,
                                                                const std::string& input);

/// Floats from -1 to 1, booleans, integers from 0 to 9.
[[nodiscard]] Result<op::HostTensor> random_tensor(ir::Dtype dtype, const op::Extents& shape,
                                                   std::mt19937_64& random);

/// By the left side of --dim.
using GivenSizes = std::map<std::string, std::int64_t>;
[[nodiscard]] Result<GivenSizes> sizes_from(const std::vector<std::string>& dims);

}  // namespace tessera::cli
