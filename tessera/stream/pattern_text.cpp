#include <algorithm>
#include <bit>

#include "tessera/base/hash.h"
#include "tessera/base/text.h"
#include "tessera/ir/scalar_opcode.h"
#include "tessera/stream/pattern.h"
#include "tessera/stream/pattern_bytes.h"

using namespace tessera;
using namespace tessera::ir;
using namespace tessera::stream;

namespace {

/// A name as it stands in a line: quoted if it has characters that could be taken for something else.
std::string shown_name(std::string name) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == ':' || c == '/' || c == '-';
  };
  return !name.empty() && std::all_of(name.begin(), name.end(), is_plain) ? name : quote(name);
}

/// Reads the bytes of a pattern from the front. REQUIRES they were written by pattern.cpp.
class Reader {
 public:
  explicit Reader(const PatternView& pattern) : pattern_(pattern) {}

  OpText op() {
    OpText out;
    out.name = shown_name(text());
    out.effect = static_cast<Effect>(byte());
    const std::uint64_t count = u32();
    if (count == 0) return out;
    out.attributes += '{';
    for (std::uint64_t i = 0; i < count; ++i) {
      if (i > 0) out.attributes += ',';
      out.attributes += shown_name(text());
      out.attributes += '=';
      out.attributes += attribute();
    }
    out.attributes += '}';
    return out;
  }

  std::string type() {
    switch (static_cast<TypeKind>(byte())) {
      case TypeKind::unknown:
        return {};
      case TypeKind::tensor_of_numbers:
      case TypeKind::tensor: {
        const std::string name = dtype();
        return cat(name, "[", dims(), "]");
      }
      case TypeKind::scalar:
        return scalar();
      case TypeKind::tuple:
        return tuple();
    }
    return {};
  }

 private:
  std::uint8_t byte() { return static_cast<std::uint8_t>(pattern_.bytes[at_++]); }
  std::uint64_t number(int bytes) {
    std::uint64_t out = 0;
    for (int i = 0; i < bytes; ++i) out |= static_cast<std::uint64_t>(byte()) << (8 * i);
    return out;
  }
  std::uint64_t u32() { return number(4); }
  std::uint64_t u64() { return number(8); }
  std::string text() {
    const std::uint64_t length = u32();
    at_ += length;
    return std::string(pattern_.bytes.substr(at_ - length, length));
  }
  std::string dtype() { return std::string(to_string(static_cast<Dtype>(byte()))); }

  std::string attribute() {
    switch (byte()) {  // the order of ir::AttributeValue
      case 0:
        return byte() != 0 ? "true" : "false";
      case 1:
        return integer();
      case 2:
        return real();
      case 3:
        return quote(text());
      case 4:
        return dtype();
      case 5:
        return list([&] { return integer(); });
      case 6:
        return list([&] { return real(); });
      case 7:
        return list([&] { return quote(text()); });
      default:
        return cat("shape[", dims(), "]");
    }
  }
  std::string integer() { return cat(static_cast<std::int64_t>(u64())); }
  std::string real() { return cat(std::bit_cast<double>(u64())); }
  template <class F>
  std::string list(F&& element) {
    std::vector<std::string> elements(u32());
    for (std::string& text : elements) text = element();
    return cat("[", join(elements, ","), "]");
  }

  std::string dims() {
    std::vector<std::string> out(u32());
    for (std::string& dim : out)
      dim = static_cast<DimKind>(byte()) == DimKind::number ? cat(pattern_.sizes[next_size_++])
                                                            : pattern_.symbolic[next_symbolic_++];
    return join(out, ",");
  }

  std::string scalar() {
    std::string out = dtype();
    std::string bounds[2];
    for (std::string& bound : bounds)
      if (byte() != 0) bound = integer();
    if (!bounds[0].empty() || !bounds[1].empty()) out += cat(" in ", bounds[0], "..", bounds[1]);
    return out;
  }

  /// Elements follow in depth-first order; an explicit stack holds how many are still to come.
  std::string tuple() {
    std::string out(1, '(');
    std::vector<std::uint64_t> open{u32()};
    while (!open.empty()) {
      if (open.back() == 0) {
        open.pop_back();
        out += ')';
        continue;
      }
      --open.back();
      if (out.back() != '(') out += ',';
      if (static_cast<TypeKind>(pattern_.bytes[at_]) == TypeKind::tuple) {
        (void)byte();
        out += '(';
        open.push_back(u32());
      } else {
        out += type();
      }
    }
    return out;
  }

  PatternView pattern_;
  std::size_t at_ = 0;
  std::size_t next_size_ = 0;
  std::size_t next_symbolic_ = 0;
};

}  // namespace

OpText tessera::stream::op_text(const PatternView& pattern) { return Reader(pattern).op(); }

std::string tessera::stream::type_text(const PatternView& pattern) { return Reader(pattern).type(); }
