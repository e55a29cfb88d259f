// Where the inputs of a program come from: files that are named on the command line, or chance.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/base/text.h"
#include "tessera/op/array.h"
#include "tessera/op/value_type.h"

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

/// What a program takes.
struct InputSpecs {
  struct Input {
    std::string name;
    std::optional<op::ValueType> type;  ///< none: no random one can be made
    std::string type_text;              ///< as messages show it
  };
  std::vector<Input> inputs;
  std::vector<Ref<ir::Var>> dims;  ///< sizes in the types that are open
};

/// Reads a source that is no array, for the input at a position. Nothing if the caller keeps what it is.
using ReadOther =
    std::function<Result<std::optional<op::HostTensor>>(const std::string& source, std::size_t i)>;

/// A tensor for each input: read where it is given, random in sizes that fit where it is not. Empty where
/// `read_other` kept it.
[[nodiscard]] Result<std::vector<op::HostTensor>> read_inputs(const InputSpecs& specs,
                                                              const TensorSourceOptions& options,
                                                              const ReadOther& read_other);

/// By the left side of --dim.
using GivenSizes = std::map<std::string, std::int64_t>;
[[nodiscard]] Result<GivenSizes> sizes_from(const std::vector<std::string>& dims);

}  // namespace tessera::cli
