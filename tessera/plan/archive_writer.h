// Writes plans as bytes: every type by the list of its fields. What is shared (nodes of the IR, source files,
// kernels) is written once, into a section of its own, and named by its number; elements of tensors go into a
// section that can be mapped.
#pragma once

#include <bit>
#include <span>
#include <string>
#include <unordered_map>

#include "tessera/ir/node_table.h"
#include "tessera/plan/archive_types.h"

namespace tessera::plan::archive {

/// In the order in which a reader needs them.
enum class Section : std::uint8_t { files, nodes, kernels, plan, data };
inline constexpr std::size_t section_count = 5;
/// Of the elements of each tensor, within the data and in the file.
inline constexpr std::size_t data_alignment = 64;

class Writer {
 public:
  /// Adds a value to the plan section.
  template <class T>
  void add(const T& value) {
    to_ = &sections_[static_cast<std::size_t>(Section::plan)];
    write(value);
  }
  [[nodiscard]] const std::string& section(Section section) const {
    return sections_[static_cast<std::size_t>(section)];
  }

 private:
  /// Seven bits a byte, the lowest first.
  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) *to_ += static_cast<char>(value | 0x80);
    *to_ += static_cast<char>(value);
  }
  void text(std::string_view value) {
    number(value.size());
    *to_ += value;
  }
  void blob(std::span<const std::byte> bytes);
  /// Where elements lie in the data, behind all others if they are not there yet.
  [[nodiscard]] std::size_t place_of(std::string_view elements);
  [[nodiscard]] std::uint32_t number_of(const ir::Node* node);
  [[nodiscard]] std::uint32_t number_of(const ir::SourceFile* file);
  [[nodiscard]] std::uint32_t number_of(const KernelRef& kernel);

  template <class T>
  void write_plain(T value) {
    if constexpr (std::is_same_v<T, double>) {
      const auto bits = std::bit_cast<std::uint64_t>(value);
      for (int shift = 0; shift < 64; shift += 8) *to_ += static_cast<char>(bits >> shift & 0xff);
    } else if constexpr (std::is_signed_v<T> && !std::is_enum_v<T>) {
      const auto wide = static_cast<std::int64_t>(value);  // small ones of either sign are short
      number(static_cast<std::uint64_t>(wide) << 1 ^ static_cast<std::uint64_t>(wide >> 63));
    } else {
      number(static_cast<std::uint64_t>(value));
    }
  }

  template <class List>
  void write_list(const List& list) {
    if constexpr (!is_array<List>) number(list.size());
    for (const auto& item : list) write(item);
  }

  template <class T>
  void write(const T& value) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      write_plain(value);
    } else if constexpr (std::is_same_v<T, std::string>) {
      text(value);
    } else if constexpr (std::is_same_v<T, Bytes>) {
      blob(value.span());
    } else if constexpr (is_ref<T>) {
      number(value == nullptr ? 0 : number_of(value.get()));
    } else if constexpr (std::is_same_v<T, KernelRef>) {
      number(value == nullptr ? 0 : number_of(value));
    } else if constexpr (std::is_same_v<T, CardPointer>) {
      text(value == nullptr ? std::string_view() : value->name);
    } else if constexpr (std::is_same_v<T, ir::Dim>) {
      write_plain(value.is_constant());
      value.is_constant() ? write_plain(value.value()) : write(value.expr());
    } else if constexpr (std::is_same_v<T, ir::Attributes>) {
      write_list(value.entries());
    } else if constexpr (std::is_same_v<T, ir::Span>) {
      number(value.file == nullptr ? 0 : number_of(value.file.get()));
      number(value.line);
      number(value.column);
    } else if constexpr (std::is_same_v<T, op::ValueType>) {
      write(value.dtype);
      write(value.shape);
    } else if constexpr (std::is_same_v<T, op::HostTensor>) {
      write(value.dtype());
      write(value.shape());
      blob({value.array().data, value.byte_size()});
    } else if constexpr (is_optional<T>) {
      write_plain(value.has_value());
      if (value.has_value()) write(*value);
    } else if constexpr (is_variant<T>) {
      number(value.index());
      std::visit([&](const auto& held) { write(held); }, value);
    } else if constexpr (is_pair<T>) {
      write(value.first);
      write(value.second);
    } else if constexpr (Reflected<T>) {
      for_each_field(value, [&](const auto&, const auto& member) { write(member); });
    } else {
      write_list(value);
    }
  }

  std::string sections_[section_count];
  std::string* to_ = nullptr;
  ir::NodeTable<std::uint32_t> nodes_;
  std::uint32_t node_count_ = 0;
  std::unordered_map<const ir::SourceFile*, std::uint32_t> files_;
  std::unordered_map<const kernel::Kernel*, std::uint32_t> kernels_;
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> places_;  ///< of elements, by their hash
};

// Plans are large, and stand in files of several kinds.
extern template void Writer::add<Plan>(const Plan& value);

}  // namespace tessera::plan::archive
