#include "tests/fault/plan_mutator.h"

#include <algorithm>
#include <random>
#include <vector>

#include "tessera/base/hash.h"

using namespace tessera;

namespace {

// Where docs/plan.md says that these lie.
constexpr std::size_t size_at = 56, checksum_at = 64, begins_at = 80, sizes_at = 120, header_end = 160;
constexpr std::size_t section_count = 5, nodes_section = 1, kernels_section = 2, plan_section = 3;
constexpr std::size_t alignment = 64;

std::uint64_t word_at(const std::string& bytes, std::size_t at) {
  std::uint64_t out = 0;
  for (std::size_t i = 8; i-- > 0;) out = out << 8 | static_cast<unsigned char>(bytes[at + i]);
  return out;
}

void set_word(std::string& bytes, std::size_t at, std::uint64_t word) {
  for (std::size_t i = 0; i < 8; ++i) bytes[at + i] = static_cast<char>(word >> 8 * i & 0xff);
}

/// As the archive writes numbers: 7 bits in a byte, the lowest first.
std::string varint(std::uint64_t number) {
  std::string out;
  for (; number >= 0x80; number >>= 7) out += static_cast<char>(number | 0x80);
  return out += static_cast<char>(number);
}

class Mutator {
 public:
  explicit Mutator(const std::string& bytes, std::uint64_t number = 0)
      : header_(bytes.substr(0, header_end)), random_(number) {
    for (std::size_t s = 0; s < section_count; ++s)
      sections_.push_back(bytes.substr(word_at(bytes, begins_at + 8 * s), word_at(bytes, sizes_at + 8 * s)));
  }

  std::string run() {
    const std::uint64_t changes = below(4) == 0 ? 1 + below(3) : 1;
    for (std::uint64_t i = 0; i < changes; ++i) change();
    return resealed();
  }

  /// What a byte becomes: one more, one less, with another highest bit, 0, none of its bits.
  static constexpr std::uint64_t changes_of_a_byte = 5;

  std::string run_one_byte(std::uint64_t number) {
    const auto [section, at] = place(number / changes_of_a_byte);
    const char old = sections_[section][at];
    const char changed[] = {static_cast<char>(old + 1), static_cast<char>(old - 1),
                            static_cast<char>(old ^ 0x80), '\0', static_cast<char>(~old)};
    sections_[section][at] = changed[number % changes_of_a_byte];
    return resealed();
  }
  std::string run_cut(std::uint64_t number) {
    const auto [section, at] = place(number);
    sections_[section].resize(at);
    return resealed();
  }

  /// Of all sections.
  [[nodiscard]] std::uint64_t size() const {
    std::uint64_t out = 0;
    for (const std::string& section : sections_) out += section.size();
    return out;
  }

 private:
  /// The section, and the position in it, of a byte by its number.
  [[nodiscard]] std::pair<std::size_t, std::size_t> place(std::uint64_t byte) const {
    std::size_t section = 0;
    for (; byte >= sections_[section].size(); ++section) byte -= sections_[section].size();
    return {section, byte};
  }

  std::uint64_t below(std::uint64_t limit) { return limit == 0 ? 0 : random_() % limit; }

  void change() {
    std::string& section = any_section();
    if (section.empty()) return;
    const std::size_t at = below(section.size());
    switch (below(10)) {
      case 0:
      case 1:
      case 2:  // an index or a size that is nearly right
        section[at] = static_cast<char>(section[at] +
                                        static_cast<char>(below(2) == 0 ? 1 + below(3) : 256 - 1 - below(3)));
        return;
      case 3:
        section[at] = static_cast<char>(below(256));
        return;
      case 4:
        section[at] = section[below(section.size())];
        return;
      case 5:
        std::swap(section[at], section[below(section.size())]);
        return;
      case 6:
      case 7:
        return change_equal_sizes();
      case 8:
        section.replace(at, 1, varint(large_number()));
        return;
      default:
        return move_bytes(section, at);
    }
  }

  std::string& any_section() {
    const std::uint64_t which = below(100);
    return sections_[which < 40   ? nodes_section
                     : which < 85 ? plan_section
                     : which < 94 ? kernels_section
                     : which < 97 ? 0
                                  : 4];
  }

  std::uint64_t large_number() {
    constexpr std::uint64_t numbers[] = {127,        128,        65536,      0x7fffffff,
                                         0xfffffffe, 0xffffffff, 1ULL << 32, 1ULL << 40,
                                         1ULL << 62, ~0ULL >> 1, ~0ULL - 1,  ~0ULL};
    return numbers[below(std::size(numbers))];
  }

  /// A constant size is 1 and twice the number: what is equal stays equal, in all places or in some.
  void change_equal_sizes() {
    std::string& from = sections_[below(2) == 0 ? nodes_section : plan_section];
    if (from.size() < 2) return;
    std::size_t at = below(from.size() - 1);
    for (std::size_t tries = 0; tries < from.size() && !is_size(from, at); ++tries)
      at = (at + 1) % (from.size() - 1);
    const char old = from[at + 1];
    const std::string wanted = below(8) == 0 ? varint(large_number() & ~1ULL) : varint(2 * below(40));
    const bool everywhere = below(2) == 0;
    for (const std::size_t s : {nodes_section, plan_section})
      for (std::size_t i = 0; i + 1 < sections_[s].size(); ++i)
        if (is_size(sections_[s], i) && sections_[s][i + 1] == old && (everywhere || below(2) == 0)) {
          sections_[s].replace(i + 1, 1, wanted);
          i += wanted.size();
        }
  }

  static bool is_size(const std::string& section, std::size_t at) {
    return section[at] == 1 && section[at + 1] != 0 && section[at + 1] % 2 == 0;
  }

  /// Some bytes once more, or not at all.
  void move_bytes(std::string& section, std::size_t at) {
    const std::size_t count = 1 + below(12);
    if (below(2) == 0)
      section.insert(below(section.size() + 1), section.substr(at, count));
    else
      section.erase(at, count);
  }

  std::string resealed() {
    std::string out = header_;
    for (std::size_t s = 0; s < section_count; ++s) {
      out.resize((out.size() + alignment - 1) / alignment * alignment);
      set_word(out, begins_at + 8 * s, out.size());
      set_word(out, sizes_at + 8 * s, sections_[s].size());
      out += sections_[s];
    }
    set_word(out, size_at, out.size());
    const Hash128 hash = hash_text(std::string_view(out).substr(begins_at));
    set_word(out, checksum_at, hash.high);
    set_word(out, checksum_at + 8, hash.low);
    return out;
  }

  std::string header_;
  std::vector<std::string> sections_;
  std::mt19937_64 random_;
};

}  // namespace

std::string tessera::fixture::changed_plan(const std::string& bytes, std::uint64_t number) {
  return Mutator(bytes, number).run();
}

std::string tessera::fixture::with_one_byte(const std::string& bytes, std::uint64_t number) {
  return Mutator(bytes).run_one_byte(number);
}
std::uint64_t tessera::fixture::one_byte_changes(const std::string& bytes) {
  return Mutator(bytes).size() * Mutator::changes_of_a_byte;
}

std::string tessera::fixture::cut_plan(const std::string& bytes, std::uint64_t number) {
  return Mutator(bytes).run_cut(number);
}
std::uint64_t tessera::fixture::cuts(const std::string& bytes) { return Mutator(bytes).size(); }
