#include "cli/model_inputs.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <random>

#include "cli/command.h"
#include "tessera/base/checked.h"
#include "tessera/base/file.h"
#include "tessera/tensor/io.h"

using namespace tessera;
using namespace tessera::cli;
using op::HostTensor;

namespace {

template <class... Args>
Error wrong(const Args&... args) {
  return Error(ErrorCode::invalid_argument, cat(args...));
}

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

Result<std::int64_t> size_from(std::string_view text, std::string_view option) {
  std::int64_t out = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), out);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size() || out < 0)
    return wrong(option, ": ", onnx::shown(text), " is no size");
  return out;
}

onnx::DataValue value_of(HostTensor tensor) { return {onnx::DataValue::Kind::tensor, {std::move(tensor)}}; }

onnx::DataValue value_of(const Tensor& tensor) {
  const Shape shape = tensor.shape();
  HostTensor out = value_or_throw(HostTensor::allocate(tensor.dtype(), {shape.begin(), shape.end()}));
  const auto bytes = tensor.bytes();
  std::copy(bytes.begin(), bytes.end(), out.array().data);
  return value_of(std::move(out));
}

// ---- one source

/// "f32:1x3x8:FILE": elements as they lie in memory.
Result<onnx::DataValue> read_raw(const std::string& text) {
  const std::size_t first = text.find(':'), second = text.find(':', first + 1);
  if (second == std::string::npos)
    return wrong("--input: raw:", printable(text), " is not of the form raw:DTYPE:SIZExSIZE:FILE");
  const auto dtype = ir::parse_dtype(text.substr(0, first));
  if (!dtype) return wrong("--input: ", onnx::shown(text.substr(0, first)), " is no dtype");
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
  return value_of(std::move(out));
}

Result<onnx::DataValue> read_source(const std::string& source, const onnx::ValueInfo& input) {
  if (source.rfind("raw:", 0) == 0) return read_raw(source.substr(4));
  if (ends_with(source, ".npy")) return value_of(load_npy(source));
  if (ends_with(source, ".npz")) {
    const NamedTensors all = load_npz(source);
    const auto at = all.find(input.name);
    if (at != all.end()) return value_of(at->second);
    if (all.size() == 1) return value_of(all.begin()->second);
    return Error(ErrorCode::invalid_argument, cat("the archive has no array ", onnx::shown(input.name)),
                 {printable(source), 0, 0});
  }
  return onnx::read_value(source, input.type);
}

// ---- which source is for which input

class Sources {
 public:
  explicit Sources(std::vector<const onnx::ValueInfo*> inputs)
      : inputs_(std::move(inputs)), found_(inputs_.size()) {}

  Result<void> add(const std::string& given) {
    const std::size_t equals = given.find('=');
    if (equals == std::string::npos || index_of(given.substr(0, equals)) == inputs_.size()) {
      if (equals != std::string::npos && given.find('/') > equals && given.find(':') > equals)
        return wrong("--input: the model has no input ", onnx::shown(given.substr(0, equals)));
      unnamed_.push_back(given);
      return {};
    }
    std::string& at = found_[index_of(given.substr(0, equals))];
    if (!at.empty()) return wrong("--input: ", onnx::shown(given.substr(0, equals)), " is given twice");
    at = given.substr(equals + 1);
    return {};
  }

  /// The sources in the order of the inputs, empty where there is none. What has no name goes to the next
  /// input that has nothing; an archive to all inputs whose names it has.
  Result<std::vector<std::string>> finish() {
    for (const std::string& source : unnamed_) {
      if (ends_with(source, ".npz")) {
        TESSERA_TRY(add_archive(source));
        continue;
      }
      const auto free = std::find(found_.begin(), found_.end(), "");
      if (free == found_.end())
        return wrong("--input: there are more than the ", inputs_.size(), " inputs of the model");
      *free = source;
    }
    return found_;
  }

 private:
  Result<void> add_archive(const std::string& source) {
    bool is_used = false;
    for (const auto& [name, tensor] : load_npz(source)) {
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
    const auto at =
        std::find_if(inputs_.begin(), inputs_.end(), [&](const auto* input) { return input->name == name; });
    return static_cast<std::size_t>(at - inputs_.begin());
  }

  std::vector<const onnx::ValueInfo*> inputs_;
  std::vector<std::string> found_, unnamed_;
};

// ---- random values

using Sizes = std::map<std::string, std::int64_t>;  ///< by the left side of --dim

Result<Sizes> sizes_from(const std::vector<std::string>& dims) {
  Sizes out;
  for (const std::string& dim : dims) {
    const std::size_t equals = dim.rfind('=');
    if (equals == std::string::npos || equals == 0)
      return wrong("--dim: ", onnx::shown(dim), " is not of the form NAME=SIZE or INPUT:AXIS=SIZE");
    out[dim.substr(0, equals)] = TESSERA_TRY(size_from(std::string_view(dim).substr(equals + 1), "--dim"));
  }
  return out;
}

/// Every --dim must name a size that is open.
Result<void> check_sizes(const Sizes& sizes, std::span<const onnx::ValueInfo* const> inputs) {
  for (const auto& [name, size] : sizes) {
    bool is_open = false;
    for (const onnx::ValueInfo* input : inputs) {
      if (!input->type.shape) continue;
      for (std::size_t axis = 0; axis < input->type.shape->size(); ++axis) {
        const onnx::DeclaredDim& dim = (*input->type.shape)[axis];
        const auto* symbol = std::get_if<std::string>(&dim);
        const bool is_named = (symbol != nullptr && *symbol == name) || cat(input->name, ":", axis) == name;
        is_open = is_open || (is_named && std::get_if<std::int64_t>(&dim) == nullptr);
      }
    }
    if (!is_open) return wrong("--dim: no input has an open size ", onnx::shown(name));
  }
  return {};
}

Result<op::Extents> random_shape(const onnx::ValueInfo& input, const Sizes& sizes) {
  op::Extents out;
  if (input.type.kind != onnx::DeclaredType::Kind::tensor || !input.type.dtype || !input.type.shape)
    return Error(ErrorCode::unsupported, cat("--random: input ", onnx::shown(input.name), " is ",
                                             onnx::to_text(input.type), ", which says no dtype and rank"));
  for (const onnx::DeclaredDim& dim : *input.type.shape) {
    const auto* name = std::get_if<std::string>(&dim);
    auto at = sizes.find(cat(input.name, ":", out.size()));
    if (at == sizes.end() && name != nullptr) at = sizes.find(*name);
    if (const auto* size = std::get_if<std::int64_t>(&dim))
      out.push_back(*size);
    else if (at != sizes.end())
      out.push_back(at->second);
    else
      return wrong("--random: axis ", out.size(), " of input ", onnx::shown(input.name), " (",
                   onnx::to_text(input.type), ") has no size: give --dim ",
                   name == nullptr ? cat(printable(input.name), ":", out.size()) : printable(*name), "=SIZE");
  }
  return out;
}

/// Floats from -1 to 1, booleans, integers from 0 to 9.
Result<onnx::DataValue> random_value(const onnx::ValueInfo& input, const Sizes& sizes,
                                     std::mt19937_64& random) {
  const op::Extents shape = TESSERA_TRY(random_shape(input, sizes));
  const Dtype dtype = *input.type.dtype;
  HostTensor out = TESSERA_TRY(HostTensor::allocate(dtype, shape));
  std::vector<double> numbers(static_cast<std::size_t>(out.size()));
  for (double& number : numbers) {
    const double unit = static_cast<double>(random() >> 11) / static_cast<double>(1ULL << 53);
    number = ir::is_float(dtype) ? 2 * unit - 1 : std::floor(unit * (dtype == Dtype::boolean ? 2 : 10));
  }
  return value_of(onnx::tensor_of(dtype, shape, numbers));
}

}  // namespace

void tessera::cli::add_model_input_options(CLI::App& command, ModelInputOptions& options) {
  command.add_option("--input", options.inputs,
                     "NAME=SOURCE, or SOURCE for the next input; a source is a file (.npy, .npz, .pb) or "
                     "raw:DTYPE:SIZExSIZE:FILE");
  command
      .add_option("--random", options.random, "random values, from this seed, for inputs that are not given")
      ->check(finite_number);
  command.add_option("--dim", options.dims, "sizes of random inputs: NAME=SIZE, or INPUT:AXIS=SIZE");
}

Result<std::vector<onnx::DataValue>> tessera::cli::model_inputs(const onnx::Model& model,
                                                                const ModelInputOptions& options) {
  const auto inputs = onnx::required_inputs(model);
  Sources sources(inputs);
  for (const std::string& given : options.inputs) TESSERA_TRY(sources.add(given));
  const auto found = TESSERA_TRY(sources.finish());
  const Sizes sizes = TESSERA_TRY(sizes_from(options.dims));
  TESSERA_TRY(check_sizes(sizes, inputs));
  std::mt19937_64 random(options.random.value_or(0));
  std::vector<onnx::DataValue> out;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (found[i].empty() && !options.random)
      return wrong("there is no --input for ", onnx::shown(inputs[i]->name), "; --random SEED makes one up");
    out.push_back(TESSERA_TRY(found[i].empty() ? random_value(*inputs[i], sizes, random)
                                               : read_source(found[i], *inputs[i])));
  }
  return out;
}
