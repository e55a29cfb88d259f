#include "tests/support/op_samples.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <sstream>

#include "tessera/base/text.h"
#include "tessera/ir/parse.h"
#include "tessera/op/catalogue.h"
#include "tessera/op/reference.h"
#include "tessera/op/wide.h"

using namespace tessera;
using namespace tessera::fixture;

namespace {

const std::map<std::string, std::int64_t> default_sizes{{"N", 2}, {"M", 3}, {"K", 4}, {"B", 2}, {"C", 4},
                                                        {"H", 5}, {"W", 6}, {"S", 5}, {"D", 8}, {"R", 3}};

[[noreturn]] void wrong(const std::string& line, const std::string& why) {
  std::fprintf(stderr, "op_samples.txt: %s\n  %s\n", why.c_str(), line.c_str());
  std::exit(1);
}

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

std::map<std::string, std::int64_t> parse_sizes(const std::string& text) {
  std::map<std::string, std::int64_t> out;
  for (const std::string& word : words(text))
    out[word.substr(0, word.find('='))] = std::stoll(word.substr(word.find('=') + 1));
  return out;
}

/// Reads shapes and attributes with the IR's own parser: the row becomes the text of a function.
class RowParser {
 public:
  explicit RowParser(std::string line) : line_(std::move(line)) {}

  Sample parse() {
    std::vector<std::string> columns;
    std::istringstream stream(line_);
    for (std::string column; std::getline(stream, column, '|');) columns.push_back(trimmed(column));
    columns.resize(4);
    Sample out;
    out.text = line_;
    out.card = op::find_card(columns[0]);
    if (out.card == nullptr) wrong(line_, "there is no op '" + columns[0] + "'");
    out.sizes = default_sizes;
    const std::string sizes = columns[3].substr(0, columns[3].find(';'));
    for (const auto& [name, value] : parse_sizes(sizes)) out.sizes[name] = value;
    if (columns[3].find(';') != std::string::npos)
      out.large = parse_sizes(columns[3].substr(columns[3].find(';') + 1));
    read_function(columns, out);
    return out;
  }

 private:
  void read_function(const std::vector<std::string>& columns, Sample& out) {
    std::string dims, params;
    for (const auto& [name, size] : out.sizes) dims += (dims.empty() ? "" : ", ") + name;
    for (const std::string& word : words(columns[1])) {
      SampleInput input;
      const std::size_t bracket = word.find('[');
      input.type = word.substr(0, bracket);
      const std::size_t at = word.find('@');
      if (at != std::string::npos) {
        const std::string range = word.substr(at + 1);
        input.low = std::stod(range.substr(0, range.find("..")));
        input.high = std::stod(range.substr(range.find("..") + 2));
      }
      params += cat(params.empty() ? "" : ", ", "x", out.inputs.size(), ": f32",
                    word.substr(bracket, at - bracket));
      out.inputs.push_back(std::move(input));
    }
    const std::string text =
        cat("func f[", dims, "](", params, ") { y: f32[] = op() {", columns[2], "} return y }");
    const auto parsed = ir::parse_function(text);
    if (!parsed) wrong(line_, parsed.error().to_text());
    const ir::Function& function = **parsed;
    for (const auto& dim : function.dims) out.symbols[dim->name] = dim;
    for (std::size_t i = 0; i < out.inputs.size(); ++i)
      out.inputs[i].shape = static_cast<const ir::TensorType&>(*function.params[i]->type).shape;
    auto attributes =
        op::complete_attributes(*out.card, static_cast<const ir::Call&>(*function.body[0]->value).attrs);
    if (!attributes) wrong(line_, attributes.error().to_text());
    out.attributes = *std::move(attributes);
  }

  std::string line_;
};

ir::Dim with_sizes(const ir::Dim& dim, const Sample::Sizes* numbers) {
  if (numbers == nullptr) return dim;
  return ir::substitute(
      dim, [&](const ir::Var& var) -> std::optional<ir::Dim> { return ir::Dim(numbers->at(var.name)); });
}

ir::Dtype dtype_of(const SampleInput& input, ir::Dtype t) {
  if (input.type == "T") return t;
  if (input.type == "bool") return ir::Dtype::boolean;
  if (input.type == "index") return ir::Dtype::i64;
  return ir::parse_dtype(input.type).value_or(ir::Dtype::f32);
}

/// Distinct values over the range, in random order; integers if the dtype is one.
std::vector<double> distinct_values(std::size_t count, double low, double high, bool integers,
                                    std::mt19937_64& random) {
  std::vector<double> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double at = count == 1 ? 0.5 : (static_cast<double>(i) + 0.37) / static_cast<double>(count);
    out[i] = low + (high - low) * at;
    if (integers) out[i] = std::floor(low + (high - low + 0.999) * at);
  }
  std::shuffle(out.begin(), out.end(), random);
  return out;
}

}  // namespace

std::vector<std::int64_t> Sample::size_list() const {
  std::vector<std::int64_t> out;
  for (const auto& [name, symbol] : symbols) out.push_back(sizes.at(name));
  return out;
}

op::ValueTypes Sample::types(ir::Dtype dtype, const Sizes* numbers) const {
  op::ValueTypes out;
  for (const SampleInput& input : inputs) {
    op::ValueType type{dtype_of(input, dtype), {}};
    for (const ir::Dim& dim : input.shape) type.shape.push_back(with_sizes(dim, numbers));
    out.push_back(std::move(type));
  }
  return out;
}

op::Attributes Sample::attributes_with(const Sizes* numbers) const {
  op::Attributes out = attributes;
  for (auto& [name, value] : out.mutable_entries())
    if (auto* shape = std::get_if<ir::Shape>(&value))
      for (ir::Dim& dim : *shape) dim = with_sizes(dim, numbers);
  return out;
}

std::vector<op::HostTensor> Sample::values(ir::Dtype dtype, const Sizes& numbers, std::uint64_t seed) const {
  std::mt19937_64 random(seed);
  std::vector<op::HostTensor> out;
  const op::ValueTypes all = types(dtype, &numbers);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto extents = ir::constant_shape(all[i].shape);
    op::HostTensor tensor = value_or_throw(op::HostTensor::allocate(all[i].dtype, *extents));
    const auto count = static_cast<std::size_t>(tensor.size());
    const bool boolean = all[i].dtype == ir::Dtype::boolean;
    const double low = boolean                         ? 0
                       : ir::is_unsigned(all[i].dtype) ? std::max(inputs[i].low, 0.0)
                                                       : inputs[i].low;
    const double high = boolean ? 1 : inputs[i].high;
    const auto values = distinct_values(count, low, high, !ir::is_float(all[i].dtype), random);
    op::storer<double>(all[i].dtype)(tensor.array().data, 0, 1, count, values.data());
    out.push_back(std::move(tensor));
  }
  return out;
}

const std::vector<Sample>& tessera::fixture::op_samples() {
  static const std::vector<Sample> samples = [] {
    std::vector<Sample> out;
    std::ifstream file(TESSERA_SOURCE_DIR "/tests/data/op_samples.txt");
    for (std::string line; std::getline(file, line);)
      if (!line.empty() && line[0] != '#') out.push_back(RowParser(line).parse());
    return out;
  }();
  return samples;
}

Result<std::vector<op::HostTensor>> tessera::fixture::run(const Sample& sample,
                                                          const std::vector<op::HostTensor>& inputs,
                                                          const Sample::Sizes& sizes) {
  std::vector<op::Array> arrays;
  for (const op::HostTensor& input : inputs) arrays.push_back(input.array());
  return op::run_reference(*sample.card, arrays, sample.attributes_with(&sizes));
}

std::vector<ir::Dtype> tessera::fixture::dtypes_of(const op::Card& card) {
  std::vector<ir::Dtype> out;
  for (ir::Dtype dtype : ir::all_dtypes())
    if (card.T.contains(dtype)) out.push_back(dtype);
  return out;
}

op::HostTensor tessera::fixture::scattered(const op::HostTensor& tensor, op::Layout& layout) {
  const op::Extents& shape = tensor.shape();
  op::Extents reversed(shape.size() + 1, 2);
  for (std::size_t i = 0; i < shape.size(); ++i)
    reversed[i] = std::max<std::int64_t>(shape[shape.size() - 1 - i], 1);
  op::HostTensor out = value_or_throw(op::HostTensor::allocate(tensor.dtype(), reversed));
  const op::Layout whole = op::contiguous(reversed);
  layout = {shape, op::Extents(shape.size(), 0), 1};
  for (std::size_t i = 0; i < shape.size(); ++i) layout.strides[i] = whole.strides[shape.size() - 1 - i];
  if (!shape.empty() && shape[0] > 0) {
    layout.offset += (shape[0] - 1) * layout.strides[0];
    layout.strides[0] = -layout.strides[0];
  }
  op::copy_elements(tensor.array(), {tensor.dtype(), layout, out.array().data});
  return out;
}
