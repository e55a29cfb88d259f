#include "cli/tensor_sources.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "cli/command.h"
#include "cli/nowhere.h"
#include "tessera/base/checked.h"
#include "tessera/base/file.h"
#include "tessera/base/text.h"
#include "tessera/ir/walk.h"
#include "tessera/op/wide.h"
#include "tessera/plan/known_sizes.h"
#include "tessera/tensor/io.h"

using namespace tessera;
using namespace tessera::cli;
using op::HostTensor;

namespace {

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

Result<std::int64_t> size_from(std::string_view text, std::string_view option) {
  std::int64_t out = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), out);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size() || out < 0)
    return wrong(option, ": ", in_quotes(text), " is no size");
  return out;
}

HostTensor elements_of(const Tensor& tensor) {
  const Shape shape = tensor.shape();
  HostTensor out = value_or_throw(HostTensor::allocate(tensor.dtype(), {shape.begin(), shape.end()}));
  const auto bytes = tensor.bytes();
  std::copy(bytes.begin(), bytes.end(), out.array().data);
  return out;
}

/// "f32:1x3x8:FILE": elements as they lie in memory.
Result<HostTensor> read_raw(const std::string& text) {
  const std::size_t first = text.find(':'), second = text.find(':', first + 1);
  if (second == std::string::npos)
    return wrong("--input: raw:", printable(text), " is not of the form raw:DTYPE:SIZExSIZE:FILE");
  const auto dtype = ir::parse_dtype(text.substr(0, first));
  if (!dtype) return wrong("--input: ", in_quotes(text.substr(0, first)), " is no dtype");
  op::Extents shape;
  for (std::size_t at = first + 1; at < second;) {
    const std::size_t end = std::min(text.find_first_of("x,", at), second);
    shape.push_back(TESSERA_TRY(size_from(std::string_view(text).substr(at, end - at), "--input")));
    at = end + 1;
  }
  const std::string file = text.substr(second + 1);
  const Bytes bytes = TESSERA_TRY(map_file(file));
  const auto count = checked_product(shape);
  const auto expected =
      count ? checked_mul<std::int64_t>(*count, static_cast<std::int64_t>(ir::size_of(*dtype)))
            : std::nullopt;
  if (shape.size() > op::max_rank || !expected || static_cast<std::int64_t>(bytes.size()) != *expected)
    return Error(ErrorCode::shape,
                 cat("the file has ", bytes.size(), " bytes, which are not the elements of ", *dtype, "[",
                     join(shape, ", "), "]"),
                 {printable(file), 0, 0});
  HostTensor out = TESSERA_TRY(HostTensor::allocate(*dtype, shape));
  std::copy_n(bytes.data(), bytes.size(), out.array().data);
  if (*dtype == Dtype::boolean)
    for (std::uint8_t& value : out.values<std::uint8_t>()) value = value != 0;
  return out;
}

/// Which source is for which input.
class Sources {
 public:
  explicit Sources(const std::vector<std::string>& inputs) : inputs_(inputs), found_(inputs.size()) {}

  Result<void> add(const std::string& given) {
    const std::size_t equals = given.find('=');
    if (equals == std::string::npos || index_of(given.substr(0, equals)) == inputs_.size()) {
      if (equals != std::string::npos && given.find('/') > equals && given.find(':') > equals)
        return wrong("--input: the program has no input ", in_quotes(given.substr(0, equals)));
      unnamed_.push_back(given);
      return {};
    }
    std::string& at = found_[index_of(given.substr(0, equals))];
    if (!at.empty()) return wrong("--input: ", in_quotes(given.substr(0, equals)), " is given twice");
    at = given.substr(equals + 1);
    return {};
  }

  Result<std::vector<std::string>> finish() {
    for (const std::string& source : unnamed_) {
      if (ends_with(source, ".npz")) {
        TESSERA_TRY(add_archive(source));
        continue;
      }
      const auto free = std::find(found_.begin(), found_.end(), "");
      if (free == found_.end())
        return wrong("--input: there are more than the ", inputs_.size(), " inputs of the program");
      *free = source;
    }
    return found_;
  }

 private:
  Result<void> add_archive(const std::string& source) {
    bool is_used = false;
    for (const auto& [name, tensor] : load_npz(source, {}, {}, nowhere)) {
      const std::size_t i = index_of(name);
      if (i == inputs_.size() || !found_[i].empty()) continue;
      found_[i] = source;
      is_used = true;
    }
    if (!is_used)
      return Error(ErrorCode::invalid_argument, "the archive has no array with the name of an input",
                   {printable(source), 0, 0});
    return {};
  }

  [[nodiscard]] std::size_t index_of(const std::string& name) const {
    return static_cast<std::size_t>(std::find(inputs_.begin(), inputs_.end(), name) - inputs_.begin());
  }

  const std::vector<std::string>& inputs_;
  std::vector<std::string> found_, unnamed_;
};

/// The sources in the order of the inputs, empty where there is none. What has no name goes to the next input
/// that has nothing; an archive to all inputs whose names it has.
Result<std::vector<std::string>> sources_of(const std::vector<std::string>& inputs,
                                            const std::vector<std::string>& given) {
  Sources sources(inputs);
  for (const std::string& one : given) TESSERA_TRY(sources.add(one));
  return sources.finish();
}

/// A .npy file, an array of a .npz file by the name of the input, or raw:DTYPE:SIZExSIZE:FILE. Nothing if the
/// source is none of these.
Result<std::optional<HostTensor>> read_tensor(const std::string& source, const std::string& input) {
  if (source.rfind("raw:", 0) == 0) return TESSERA_TRY(read_raw(source.substr(4)));
  if (ends_with(source, ".npy")) return elements_of(load_npy(source, {}, nowhere));
  if (!ends_with(source, ".npz")) return std::optional<HostTensor>();
  const NamedTensors all = load_npz(source, {}, {}, nowhere);
  const auto at = all.find(input);
  if (at != all.end()) return elements_of(at->second);
  if (all.size() == 1) return elements_of(all.begin()->second);
  return Error(ErrorCode::invalid_argument, cat("the archive has no array ", in_quotes(input)),
               {printable(source), 0, 0});
}

/// Floats from -1 to 1, booleans, integers from 0 to 9.
Result<HostTensor> random_tensor(Dtype dtype, const op::Extents& shape, std::mt19937_64& random) {
  HostTensor out = TESSERA_TRY(HostTensor::allocate(dtype, shape));
  std::array<double, 4096> numbers;
  const auto block = static_cast<std::int64_t>(numbers.size());
  for (std::int64_t begin = 0; begin < out.size(); begin += block) {
    const auto count = static_cast<std::size_t>(std::min(block, out.size() - begin));
    for (double& number : std::span(numbers.data(), count)) {
      const double unit = static_cast<double>(random() >> 11) / static_cast<double>(1ULL << 53);
      number = ir::is_float(dtype) ? 2 * unit - 1 : std::floor(unit * (dtype == Dtype::boolean ? 2 : 10));
    }
    op::storer<double>(dtype)(out.array().data, begin, 1, count, numbers.data());
  }
  return out;
}

/// Fills in what a program takes, one input after another.
class InputReader {
 public:
  InputReader(const InputSpecs& specs, const TensorSourceOptions& options)
      : specs_(specs), options_(options), sizes_(specs.dims.size(), -1), is_given_(specs.dims.size()) {}

  Result<std::vector<HostTensor>> read(const ReadOther& read_other) {
    std::vector<std::string> names;
    for (const InputSpecs::Input& input : specs_.inputs) names.push_back(input.name);
    const auto sources = TESSERA_TRY(sources_of(names, options_.inputs));
    TESSERA_TRY(take_given_sizes());
    std::vector<HostTensor> out(sources.size());
    for (std::size_t i = 0; i < sources.size(); ++i)
      if (!sources[i].empty()) out[i] = TESSERA_TRY(read_one(sources[i], i, read_other));
    std::mt19937_64 random(options_.random.value_or(0));
    for (std::size_t i = 0; i < sources.size(); ++i)
      if (sources[i].empty()) out[i] = TESSERA_TRY(random_one(specs_.inputs[i], random));
    return out;
  }

 private:
  Result<void> take_given_sizes() {
    for (const auto& [name, size] : TESSERA_TRY(sizes_from(options_.dims))) {
      bool is_known = false;
      for (std::size_t d = 0; d < specs_.dims.size(); ++d)
        if (specs_.dims[d]->name == name || is_along(name, d)) {
          if (sizes_[d] >= 0 && sizes_[d] != size)
            return wrong("--dim: ", in_quotes(name), " is ", size, ", but its size ",
                         in_quotes(specs_.dims[d]->name), " is ", sizes_[d], " elsewhere");
          sizes_[d] = size;
          is_known = is_given_[d] = true;
        }
      if (!is_known) return wrong("--dim: no input has an open size ", in_quotes(name));
    }
    return {};
  }

  [[nodiscard]] bool is_size(const op::Dim& dim, std::size_t d) const {
    return !dim.is_constant() && dim.expr() == specs_.dims[d];
  }

  /// Whether INPUT:AXIS names an axis whose size is the symbol.
  [[nodiscard]] bool is_along(const std::string& name, std::size_t d) const {
    for (const InputSpecs::Input& input : specs_.inputs)
      for (std::size_t axis = 0; input.type && axis < input.type->rank(); ++axis)
        if (is_size(input.type->shape[axis], d) && cat(input.name, ":", axis) == name) return true;
    return false;
  }

  Result<HostTensor> read_one(const std::string& source, std::size_t i, const ReadOther& read_other) {
    const InputSpecs::Input& input = specs_.inputs[i];
    auto tensor = TESSERA_TRY(read_tensor(source, input.name));
    if (!tensor) tensor = TESSERA_TRY(read_other(source, i));
    if (!tensor) return HostTensor();
    if (!input.type || input.type->rank() != tensor->shape().size()) return *std::move(tensor);
    for (std::size_t axis = 0; axis < input.type->rank(); ++axis)
      for (std::size_t d = 0; d < specs_.dims.size(); ++d)
        if (is_size(input.type->shape[axis], d))
          TESSERA_TRY(take_size_of(d, tensor->shape()[axis], input, axis));
    return *std::move(tensor);
  }

  /// Of an input that is given. What --dim says of it must be so.
  Result<void> take_size_of(std::size_t d, std::int64_t size, const InputSpecs::Input& input,
                            std::size_t axis) {
    if (is_given_[d] && sizes_[d] != size)
      return wrong("--dim: the size ", in_quotes(specs_.dims[d]->name), " is ", sizes_[d], ", but axis ",
                   axis, " of the input ", in_quotes(input.name), " has ", size);
    sizes_[d] = size;
    return {};
  }

  Result<HostTensor> random_one(const InputSpecs::Input& input, std::mt19937_64& random) const {
    if (!options_.random)
      return wrong("there is no --input for ", in_quotes(input.name), "; --random SEED makes one up");
    if (!input.type)
      return Error(ErrorCode::unsupported, cat("--random: input ", in_quotes(input.name), " is ",
                                               input.type_text, ", which says no dtype and rank"));
    for (const op::Dim& dim : input.type->shape) TESSERA_TRY(check_known(dim, input));
    op::Extents shape;
    const plan::KnownSizes known{specs_.dims, sizes_};
    for (const op::Dim& dim : input.type->shape) {
      shape.push_back(TESSERA_TRY(known.of(dim)));
      if (shape.back() < 0)
        return wrong("--random: the size ", ir::to_text(dim), " of input ", in_quotes(input.name), " is ",
                     shape.back());
    }
    return random_tensor(input.type->dtype, shape, random);
  }

  /// Every symbol in the expression has a number.
  Result<void> check_known(const op::Dim& dim, const InputSpecs::Input& input) const {
    if (dim.is_constant()) return {};
    for (const ir::Node* node : ir::post_order(*dim.expr()))
      for (std::size_t d = 0; d < specs_.dims.size(); ++d)
        if (node == specs_.dims[d].get() && sizes_[d] < 0)
          return wrong("--random: the size ", in_quotes(specs_.dims[d]->name), " of input ",
                       in_quotes(input.name), " (", input.type_text, ") is open: give --dim ",
                       printable(specs_.dims[d]->name), "=SIZE");
    return {};
  }

  const InputSpecs& specs_;
  const TensorSourceOptions& options_;
  std::vector<std::int64_t> sizes_;  ///< by symbol; -1: not known
  std::vector<bool> is_given_;       ///< by symbol: --dim says its size
};

}  // namespace

void tessera::cli::add_tensor_source_options(CLI::App& command, TensorSourceOptions& options) {
  command.add_option("--input", options.inputs,
                     "NAME=SOURCE, or SOURCE for the next input; a source is a file (.npy, .npz, .pb) or "
                     "raw:DTYPE:SIZExSIZE:FILE");
  command
      .add_option("--random", options.random, "random values, from this seed, for inputs that are not given")
      ->check(finite_number);
  command.add_option("--dim", options.dims, "sizes of random inputs: NAME=SIZE, or INPUT:AXIS=SIZE");
}

std::string tessera::cli::in_quotes(std::string_view name) {
  return cat("'", shortened(printable(name), 120), "'");
}

Result<GivenSizes> tessera::cli::sizes_from(const std::vector<std::string>& dims) {
  GivenSizes out;
  for (const std::string& dim : dims) {
    const std::size_t equals = dim.rfind('=');
    if (equals == std::string::npos || equals == 0)
      return wrong("--dim: ", in_quotes(dim), " is not of the form NAME=SIZE or INPUT:AXIS=SIZE");
    const std::int64_t size = TESSERA_TRY(size_from(std::string_view(dim).substr(equals + 1), "--dim"));
    if (!out.emplace(dim.substr(0, equals), size).second)
      return wrong("--dim: ", in_quotes(dim.substr(0, equals)), " is given twice");
  }
  return out;
}

Result<std::vector<HostTensor>> tessera::cli::read_inputs(const InputSpecs& specs,
                                                          const TensorSourceOptions& options,
                                                          const ReadOther& read_other) {
  return InputReader(specs, options).read(read_other);
}
