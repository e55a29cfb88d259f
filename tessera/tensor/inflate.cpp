#include "tessera/tensor/inflate.h"

#include <algorithm>
#include <array>

using namespace tessera;

namespace {

constexpr int max_bits = 15;

/// A canonical Huffman code: how many symbols have each length, and the symbols in order.
struct Huffman {
  std::array<std::uint16_t, max_bits + 1> count{};
  std::vector<std::uint16_t> symbols;

  /// False if the lengths are no code.
  bool build(std::span<const std::uint8_t> lengths) {
    count.fill(0);
    for (std::uint8_t length : lengths) ++count[length];
    count[0] = 0;
    int left = 1;
    for (int bits = 1; bits <= max_bits; ++bits) {
      left = left * 2 - count[static_cast<std::size_t>(bits)];
      if (left < 0) return false;
    }
    std::array<std::uint16_t, max_bits + 2> first{};
    for (std::size_t bits = 1; bits <= max_bits; ++bits)
      first[bits + 1] = static_cast<std::uint16_t>(first[bits] + count[bits]);
    symbols.assign(lengths.size(), 0);
    for (std::size_t i = 0; i < lengths.size(); ++i)
      if (lengths[i] != 0) symbols[first[lengths[i]]++] = static_cast<std::uint16_t>(i);
    return true;
  }
};

class Inflater {
 public:
  Inflater(std::span<const std::byte> in, std::size_t size) : in_(in), size_(size) {}

  Result<std::vector<std::byte>> run() {
    bool last = false;
    while (!last) {
      last = TESSERA_TRY(bits(1)) != 0;
      switch (TESSERA_TRY(bits(2))) {
        case 0:
          TESSERA_TRY(stored());
          break;
        case 1:
          TESSERA_TRY(fixed());
          break;
        case 2:
          TESSERA_TRY(dynamic());
          break;
        default:
          return broken();
      }
    }
    if (out_.size() != size_)
      return Error(ErrorCode::parse, "compressed data has another length than it claims");
    return std::move(out_);
  }

 private:
  static Error broken() { return Error(ErrorCode::parse, "compressed data is broken"); }

  Result<std::uint32_t> bits(int wanted) {
    while (held_ < wanted) {
      if (at_ == in_.size()) return Error(ErrorCode::parse, "compressed data ends too early");
      buffer_ |= std::to_integer<std::uint32_t>(in_[at_++]) << held_;
      held_ += 8;
    }
    const std::uint32_t value = buffer_ & ((1U << wanted) - 1);
    buffer_ >>= wanted;
    held_ -= wanted;
    return value;
  }

  Result<std::uint16_t> symbol(const Huffman& code) {
    int value = 0, first = 0, index = 0;
    for (std::size_t length = 1; length <= max_bits; ++length) {
      value |= static_cast<int>(TESSERA_TRY(bits(1)));
      const int count = code.count[length];
      if (value - count < first) return code.symbols[static_cast<std::size_t>(index + (value - first))];
      index += count;
      first = (first + count) << 1;
      value <<= 1;
    }
    return broken();
  }

  Result<void> put(std::byte value) {
    if (out_.size() >= size_)
      return Error(ErrorCode::parse, "compressed data has another length than it claims");
    out_.push_back(value);
    return {};
  }

  Result<void> stored() {
    buffer_ = 0;
    held_ = 0;
    if (in_.size() - at_ < 4) return broken();
    const auto byte = [&](std::size_t i) { return std::to_integer<std::size_t>(in_[at_ + i]); };
    const std::size_t length = byte(0) | byte(1) << 8;
    if ((length ^ 0xffff) != (byte(2) | byte(3) << 8)) return broken();
    at_ += 4;
    if (in_.size() - at_ < length) return broken();
    for (std::size_t i = 0; i < length; ++i) TESSERA_TRY(put(in_[at_ + i]));
    at_ += length;
    return {};
  }

  Result<void> fixed() {
    std::array<std::uint8_t, 288> lengths{};
    for (std::size_t i = 0; i < 288; ++i) lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    std::array<std::uint8_t, 30> distances{};
    distances.fill(5);
    Huffman literal, distance;
    literal.build(lengths);
    distance.build(distances);
    return codes(literal, distance);
  }

  Result<void> dynamic() {
    const std::size_t literals = TESSERA_TRY(bits(5)) + 257, distances = TESSERA_TRY(bits(5)) + 1,
                      lengths = TESSERA_TRY(bits(4)) + 4;
    if (literals > 286 || distances > 30) return broken();
    static constexpr std::uint8_t order[] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                             11, 4,  12, 3, 13, 2, 14, 1, 15};
    std::array<std::uint8_t, 320> all{};
    for (std::size_t i = 0; i < lengths; ++i) all[order[i]] = static_cast<std::uint8_t>(TESSERA_TRY(bits(3)));
    Huffman code;
    if (!code.build(std::span(all).first(19))) return broken();
    all.fill(0);
    for (std::size_t i = 0; i < literals + distances;) {
      const std::uint16_t next = TESSERA_TRY(symbol(code));
      if (next < 16) {
        all[i++] = static_cast<std::uint8_t>(next);
        continue;
      }
      if (next == 16 && i == 0) return broken();
      const std::uint8_t value = next == 16 ? all[i - 1] : std::uint8_t{0};
      std::size_t repeat = next == 16   ? 3 + TESSERA_TRY(bits(2))
                           : next == 17 ? 3 + TESSERA_TRY(bits(3))
                                        : 11 + TESSERA_TRY(bits(7));
      if (i + repeat > literals + distances) return broken();
      while (repeat-- > 0) all[i++] = value;
    }
    if (all[256] == 0) return broken();
    Huffman literal, distance;
    if (!literal.build(std::span(all).first(literals)) ||
        !distance.build(std::span(all).subspan(literals, distances)))
      return broken();
    return codes(literal, distance);
  }

  Result<void> codes(const Huffman& literal, const Huffman& distance) {
    static constexpr std::uint16_t length_base[] = {3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                                    15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                                    67, 83, 99, 115, 131, 163, 195, 227, 258};
    static constexpr std::uint8_t length_extra[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                                    2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    static constexpr std::uint16_t distance_base[] = {
        1,   2,   3,   4,   5,   7,    9,    13,   17,   25,   33,   49,   65,    97,    129,
        193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
    static constexpr std::uint8_t distance_extra[] = {0, 0, 0, 0, 1, 1, 2, 2,  3,  3,  4,  4,  5,  5,  6,
                                                      6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13};
    for (;;) {
      std::uint16_t next = TESSERA_TRY(symbol(literal));
      if (next == 256) return {};
      if (next < 256) {
        TESSERA_TRY(put(static_cast<std::byte>(next)));
        continue;
      }
      next = static_cast<std::uint16_t>(next - 257);
      if (next >= std::size(length_base)) return broken();
      std::size_t length = length_base[next] + TESSERA_TRY(bits(length_extra[next]));
      const std::uint16_t code = TESSERA_TRY(symbol(distance));
      if (code >= std::size(distance_base)) return broken();
      const std::size_t back = distance_base[code] + TESSERA_TRY(bits(distance_extra[code]));
      if (back > out_.size()) return broken();
      while (length-- > 0) TESSERA_TRY(put(out_[out_.size() - back]));
    }
  }

  std::span<const std::byte> in_;
  std::size_t size_;
  std::size_t at_ = 0;
  std::uint32_t buffer_ = 0;
  int held_ = 0;
  std::vector<std::byte> out_;
};

}  // namespace

Result<std::vector<std::byte>> tessera::detail::inflate(std::span<const std::byte> compressed,
                                                        std::size_t size) {
  // Deflate packs at most 1,032 to 1: a larger claim is a lie, and no memory is taken for it.
  if (size / 1032 > compressed.size())
    return Error(ErrorCode::parse, "compressed data claims more than it can hold");
  return Inflater(compressed, size).run();
}
