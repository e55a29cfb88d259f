#include "tessera/tensor/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "tessera/base/checked.h"
#include "tessera/base/file.h"
#include "tessera/base/text.h"
#include "tessera/op/array.h"
#include "tessera/tensor/call.h"
#include "tessera/tensor/io.h"

using namespace tessera;
using namespace tessera::detail;

namespace {

struct Header {
  Dtype dtype = Dtype::f32;
  bool swapped = false;
  bool fortran = false;
  Shape shape;
};

/// Reads the header, a Python dictionary of three fixed keys, and nothing else that Python would take.
class HeaderParser {
 public:
  HeaderParser(const std::string& name, std::string_view text) : name_(name), text_(text) {}

  Result<Header> parse() {
    Header out;
    bool has_descr = false, has_order = false, has_shape = false;
    TESSERA_TRY(expect('{'));
    while (!accept('}')) {
      const std::string key = TESSERA_TRY(string());
      TESSERA_TRY(expect(':'));
      if (key == "descr" && !has_descr) {
        has_descr = true;
        TESSERA_TRY(description(out));
      } else if (key == "fortran_order" && !has_order) {
        has_order = true;
        out.fortran = TESSERA_TRY(boolean());
      } else if (key == "shape" && !has_shape) {
        has_shape = true;
        out.shape = TESSERA_TRY(shape());
      } else {
        return fail(cat("key '", printable(key), "' is unknown or given twice"));
      }
      if (!accept(',')) {
        TESSERA_TRY(expect('}'));
        break;
      }
    }
    if (!has_descr || !has_order || !has_shape) return fail("'descr', 'fortran_order' or 'shape' is missing");
    return out;
  }

 private:
  [[nodiscard]] Error fail(std::string_view why) const {
    return Error(ErrorCode::parse, cat(printable(name_), ": npy header: ", why));
  }
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  Result<void> expect(char c) {
    if (!accept(c)) return fail(cat("expected '", c, "'"));
    return {};
  }
  Result<std::string> string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') return fail("expected a string");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return fail("a string is not closed");
    std::string out(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return out;
  }
  Result<bool> boolean() {
    peek();
    for (const std::string_view word : {"True", "False"})
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return word == "True";
      }
    return fail("expected True or False");
  }
  Result<void> description(Header& out) {
    const std::string code = TESSERA_TRY(string());
    static constexpr std::pair<std::string_view, Dtype> known[] = {
        {"f8", Dtype::f64}, {"f4", Dtype::f32}, {"f2", Dtype::f16}, {"i8", Dtype::i64},
        {"i4", Dtype::i32}, {"i2", Dtype::i16}, {"i1", Dtype::i8},  {"u1", Dtype::u8},
        {"u2", Dtype::u16}, {"u4", Dtype::u32}, {"u8", Dtype::u64}, {"b1", Dtype::boolean}};
    const std::string_view kind = code.size() == 3 ? std::string_view(code).substr(1) : std::string_view();
    const auto found = std::find_if(std::begin(known), std::end(known),
                                    [&](const auto& entry) { return entry.first == kind; });
    if (found == std::end(known) || std::string_view("<>|=").find(code[0]) == std::string_view::npos)
      return fail(cat("dtype '", printable(shortened(code, 40)), "' is not supported"));
    out.dtype = found->second;
    out.swapped = code[0] == '>' && ir::size_of(out.dtype) > 1;
    return {};
  }
  Result<Shape> shape() {
    TESSERA_TRY(expect('('));
    Shape out;
    while (!accept(')')) {
      peek();
      std::int64_t size = 0;
      const auto parsed = std::from_chars(text_.data() + at_, text_.data() + text_.size(), size);
      if (parsed.ec != std::errc() || size < 0) return fail("expected a size in 'shape'");
      at_ = static_cast<std::size_t>(parsed.ptr - text_.data());
      out.push_back(size);
      if (out.size() > 16) return fail("'shape' has more than 16 axes");
      if (!accept(',')) {
        TESSERA_TRY(expect(')'));
        break;
      }
    }
    return out;
  }

  const std::string& name_;
  std::string_view text_;
  std::size_t at_ = 0;
};

std::vector<std::byte> with_bytes_swapped(std::span<const std::byte> data, std::size_t size) {
  std::vector<std::byte> out(data.begin(), data.end());
  for (std::size_t i = 0; i + size <= out.size(); i += size)
    std::reverse(out.begin() + static_cast<std::ptrdiff_t>(i),
                 out.begin() + static_cast<std::ptrdiff_t>(i + size));
  return out;
}

/// Elements that lie column by column, row by row.
std::vector<std::byte> row_by_row(std::span<const std::byte> data, const Header& header) {
  std::vector<std::byte> out(data.size());
  op::Layout from{op::Extents(header.shape.begin(), header.shape.end()), op::Extents(header.shape.size(), 1),
                  0};
  for (std::size_t i = 1; i < header.shape.size(); ++i)
    from.strides[i] = from.strides[i - 1] * header.shape[i - 1];
  op::copy_elements({header.dtype, from, const_cast<std::byte*>(data.data())},
                    {header.dtype, op::contiguous(from.shape), out.data()});
  return out;
}

std::string_view code_of(Dtype dtype) {
  static constexpr std::string_view codes[] = {"<f8", "<f4", "<f2", "",    "<i8", "<i4", "<i2",
                                               "|i1", "|u1", "<u2", "<u4", "<u8", "|b1"};
  return codes[static_cast<std::size_t>(dtype)];
}

}  // namespace

Result<Tensor> tessera::detail::parse_npy(const std::string& name, std::span<const std::byte> data,
                                          const CreateOptions& given, Here here) {
  const auto fail = [&](std::string_view why) {
    return Error(ErrorCode::parse, cat(printable(name), ": ", why));
  };
  const auto byte = [&](std::size_t i) { return std::to_integer<std::size_t>(data[i]); };
  if (data.size() < 10 || std::memcmp(data.data(), "\x93NUMPY", 6) != 0) return fail("this is no .npy file");
  const std::size_t version = byte(6);
  if (version < 1 || version > 3) return fail(cat("npy version ", version, " is not supported"));
  const std::size_t prefix = version == 1 ? 10 : 12;
  if (data.size() < prefix) return fail("the file ends within its header");
  std::size_t length = byte(8) | byte(9) << 8;
  if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > data.size() - prefix)
    return fail(cat("the header claims ", length, " bytes, the file has ", data.size() - prefix));
  const Header header =
      TESSERA_TRY(HeaderParser(name, {reinterpret_cast<const char*>(data.data()) + prefix, length}).parse());
  auto elements = data.subspan(prefix + length);
  const auto count = checked_product(header.shape);
  const auto bytes =
      count ? checked_mul<std::int64_t>(*count, static_cast<std::int64_t>(ir::size_of(header.dtype)))
            : std::nullopt;
  if (!bytes || static_cast<std::size_t>(*bytes) != elements.size())
    return fail(cat("shape (", join(header.shape, ", "), ") of ", header.dtype, " does not fit the ",
                    elements.size(), " bytes behind the header"));
  std::vector<std::byte> changed;
  if (header.swapped) elements = changed = with_bytes_swapped(elements, ir::size_of(header.dtype));
  if (header.fortran && header.shape.size() > 1) {
    std::vector<std::byte> rows = row_by_row(elements, header);
    changed = std::move(rows);
    elements = changed;
  }
  CreateOptions options = given;
  options.dtype = header.dtype;
  return from_bytes(elements, header.shape, options, here);
}

Result<std::string> tessera::detail::npy_header(const Tensor& tensor) {
  const std::string_view code = code_of(tensor.dtype());
  if (code.empty())
    return Error(ErrorCode::unsupported, cat("npy has no dtype ", tensor.dtype(), "; cast to f32 first"));
  const Shape shape = tensor.shape();
  std::string text = cat("{'descr': '", code, "', 'fortran_order': False, 'shape': (", join(shape, ", "),
                         shape.size() == 1 ? "," : "", "), }");
  while ((10 + text.size() + 1) % 64 != 0) text += ' ';
  text += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(text.size() & 255);
  out += static_cast<char>(text.size() >> 8);
  return out + text;
}

Tensor tessera::load_npy(const std::string& path, const CreateOptions& options, Here here) {
  const Bytes file = value_at(here, map_file(path));
  return value_at(here, parse_npy(path, file.span(), options, here));
}

void tessera::save_npy(const std::string& path, const Tensor& tensor, Here here) {
  node_of(tensor, "save_npy", here);
  const std::string header = value_at(here, npy_header(tensor));
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(header)), tensor.bytes(here)};
  value_at(here, write_file(path, parts));
}
