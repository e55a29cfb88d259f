#include "tests/support/oracle_data.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tessera/base/text.h"
#include "tessera/ir/literal.h"
#include "tessera/ir/parse.h"
#include "tessera/op/wide.h"

using namespace tessera;
using namespace tessera::fixture;

namespace {

/// Reads the file of one op line by line.
class Reader {
 public:
  Reader(std::string path, const op::Card& card)
      : card_(card), path_(std::move(path)), file_(path_.substr(path_.rfind('/') + 1)) {}

  std::vector<OracleSample> read() {
    std::ifstream stream(path_);
    for (std::string line; std::getline(stream, line);) {
      ++line_;
      if (line.empty() || line[0] == '#') continue;
      const std::size_t blank = line.find(' ');
      const std::string word = line.substr(0, blank);
      read_line(word, blank == std::string::npos ? "" : line.substr(blank + 1));
    }
    return std::move(samples_);
  }

 private:
  [[noreturn]] void wrong(std::string_view why) const {
    std::fprintf(stderr, "%s:%zu: %s\n", path_.c_str(), line_, std::string(why).c_str());
    std::exit(1);
  }

  void read_line(const std::string& word, const std::string& rest) {
    if (word == "call") return begin(rest);
    if (samples_.empty()) wrong("the first line must be a call");
    if (word == "x")
      samples_.back().inputs.push_back(tensor(rest));
    else if (word == "=")
      samples_.back().results.push_back(tensor(rest).memory);
    else if (word == "!")
      samples_.back().error = rest;
    else
      wrong("a line begins with call, x, = or !");
  }

  void begin(const std::string& attributes) {
    OracleSample& sample = samples_.emplace_back();
    sample.place = cat(file_, ":", line_);
    sample.card = &card_;
    if (attributes.empty()) return;
    // Attributes are read by the IR's own parser.
    const auto parsed = ir::parse_function(cat("func f() { y: f32[] = op() {", attributes, "} return y }"));
    if (!parsed) wrong(parsed.error().to_text());
    sample.attributes = static_cast<const ir::Call&>(*(*parsed)->body[0]->value).attrs;
  }

  op::Extents numbers(const std::string& text) const {
    op::Extents out;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, ',');) out.push_back(std::stoll(part));
    return out;
  }

  /// f32[2,3] strides 1,2: 1 2 3 4 5 6
  OracleTensor tensor(const std::string& text) const {
    const std::size_t open = text.find('['), close = text.find(']'), colon = text.find(':');
    if (open > close || close > colon || colon == std::string::npos)
      wrong("a tensor is dtype[sizes]: values");
    const auto dtype = ir::parse_dtype(text.substr(0, open));
    if (!dtype) wrong("unknown dtype");
    OracleTensor out;
    out.layout = op::contiguous(numbers(text.substr(open + 1, close - open - 1)));
    constexpr std::string_view strides = " strides ";
    if (text.compare(close + 1, strides.size(), strides) == 0)
      out.layout.strides =
          numbers(text.substr(close + 1 + strides.size(), colon - close - 1 - strides.size()));
    if (out.layout.strides.size() != out.layout.rank()) wrong("one stride per axis");
    read_values(*dtype, text.substr(colon + 1), out);
    return out;
  }

  void read_values(ir::Dtype dtype, const std::string& text, OracleTensor& out) const {
    std::int64_t extent = 1;
    for (std::size_t i = 0; i < out.layout.rank(); ++i)
      extent += std::max<std::int64_t>(out.layout.shape[i] - 1, 0) * out.layout.strides[i];
    const bool is_contiguous = out.layout == op::contiguous(out.layout.shape);
    out.memory = value_or_throw(
        op::HostTensor::allocate(dtype, is_contiguous ? out.layout.shape : op::Extents{extent}));
    std::istringstream stream(text);
    std::string word;
    op::for_each_offset<1>(out.layout.shape, {&out.layout}, [&](const auto& at) {
      if (!(stream >> word)) wrong("fewer values than elements");
      store(dtype, out.memory.array(), at[0], word);
    });
    if (stream >> word) wrong("more values than elements");
  }

  void store(ir::Dtype dtype, const op::Array& to, std::int64_t at, const std::string& word) const {
    const double number = std::strtod(word.c_str(), nullptr);
    if (ir::is_float(dtype)) {
      const auto value = std::isfinite(number) ? ir::parse_float(word, dtype) : std::optional(number);
      if (!value) wrong(cat("'", word, "' is no ", dtype));
      op::storer<double>(dtype)(to.data, at, 1, 1, &*value);
    } else {
      const auto value =
          dtype == ir::Dtype::boolean ? std::optional(std::int64_t(number)) : ir::parse_integer(word, dtype);
      if (!value) wrong(cat("'", word, "' is no ", dtype));
      const op::SignedWide wide = *value;
      op::storer<op::SignedWide>(dtype)(to.data, at, 1, 1, &wide);
    }
  }

  const op::Card& card_;
  std::string path_, file_;
  std::size_t line_ = 0;
  std::vector<OracleSample> samples_;
};

}  // namespace

std::vector<op::Array> OracleSample::arrays() const {
  std::vector<op::Array> out;
  for (const OracleTensor& input : inputs) out.push_back(input.array());
  return out;
}

std::vector<OracleSample> tessera::fixture::oracle_samples(const op::Card& card) {
  return samples_in(cat(TESSERA_SOURCE_DIR "/tests/data/oracle/", card.name, ".txt"), card);
}

std::vector<OracleSample> tessera::fixture::samples_in(const std::string& path, const op::Card& card) {
  return Reader(path, card).read();
}
