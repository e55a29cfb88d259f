// Reads what archive_writer.h writes. Nothing in the bytes is believed: numbers are in range, lists are not
// longer than the bytes that are left, nodes have the kinds that their users need and refer to earlier nodes
// alone. The first thing that is wrong is kept; what is read after it is empty.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/base/bytes.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/plan/archive_types.h"
#include "tessera/plan/archive_writer.h"

namespace tessera::plan::archive {

class Reader {
 public:
  /// The sections, in the order of Section. `data` keeps the memory that tensors look at.
  Reader(std::span<const std::string_view> sections, Bytes data);

  /// The next value of the plan section.
  template <class T>
  [[nodiscard]] T take() {
    T out{};
    read(out);
    return out;
  }
  /// What was wrong so far, if anything was.
  [[nodiscard]] const std::optional<Error>& failure() const { return error_; }
  /// What was wrong, if anything was; also if something is left over.
  [[nodiscard]] std::optional<Error> finish();

 private:
  void open(Section section);
  [[nodiscard]] bool is_at_end() const { return at_ == bytes_.size(); }
  void read_files();
  void read_nodes();
  void read_kernels();
  void fail(std::string message);
  [[nodiscard]] std::uint64_t number();
  /// A number below `limit`.
  [[nodiscard]] std::uint64_t number_below(std::uint64_t limit, std::string_view what);
  [[nodiscard]] std::size_t length();
  [[nodiscard]] std::string text();
  [[nodiscard]] Bytes blob();
  [[nodiscard]] op::HostTensor tensor();
  [[nodiscard]] CardPointer card();
  [[nodiscard]] ir::Dim dim();
  [[nodiscard]] ir::Span span();
  void add_node(ir::NodeKind kind, ir::Span span);
  template <class N>
  void add_node_of(ir::Span span);
  /// What the parser would not have made.
  template <class N>
  void check_node(const N& node);
  [[nodiscard]] const ir::Node* node(bool may_be_absent);

  template <class N>
  [[nodiscard]] static bool is_kind(ir::NodeKind kind) {
    if constexpr (std::is_same_v<N, ir::Node>)
      return true;
    else if constexpr (std::is_same_v<N, ir::Type>)
      return kind <= ir::NodeKind::tuple_type;
    else if constexpr (std::is_same_v<N, ir::Expr>)
      return kind >= ir::NodeKind::var && kind <= ir::NodeKind::for_region;
    else
      return kind == N::node_kind;
  }

  template <class N>
  void read_ref(Ref<N>& out) {
    const ir::Node* found = node(!in_nodes_);
    if (found == nullptr) return;
    if (!is_kind<N>(found->kind())) return fail(cat("a node is a ", ir::to_string(found->kind())));
    out = Ref<N>(static_cast<const N*>(found));
  }

  template <class T>
  void read_plain(T& out) {
    if constexpr (std::is_same_v<T, double>) {
      if (bytes_.size() - at_ < 8) return fail("it ends within a number");
      std::uint64_t bits = 0;
      for (int shift = 0; shift < 64; shift += 8)
        bits |= std::uint64_t{static_cast<unsigned char>(bytes_[at_++])} << shift;
      out = std::bit_cast<double>(bits);
    } else if constexpr (std::is_enum_v<T>) {
      out = static_cast<T>(number_below(enumerators<T>, "an enumerator"));
    } else if constexpr (std::is_signed_v<T>) {
      const std::uint64_t bits = number();
      out = static_cast<T>(static_cast<std::int64_t>(bits >> 1 ^ (~(bits & 1) + 1)));
    } else if constexpr (std::is_same_v<T, bool>) {
      out = number_below(2, "a boolean") != 0;
    } else if constexpr (sizeof(T) == 8) {
      out = number();
    } else {
      out = static_cast<T>(number_below(std::uint64_t{1} << 8 * sizeof(T), "a number"));
    }
  }

  template <class List>
  void read_list(List& out) {
    const std::size_t count = length();
    for (std::size_t i = 0; i < count && !error_; ++i) {
      typename List::value_type item{};
      read(item);
      out.push_back(std::move(item));
    }
  }

  template <class... T>
  void read_variant(std::variant<T...>& out) {
    const std::uint64_t index = number_below(sizeof...(T), "a kind of attribute");
    std::size_t i = 0;
    const auto read_if = [&]<class Held>(Held held) {
      if (i++ != index) return;
      read(held);
      out = std::move(held);
    };
    (read_if(T{}), ...);
  }

  void read_attributes(ir::Attributes& out) {
    std::vector<std::pair<std::string, ir::AttributeValue>> entries;
    read(entries);
    for (auto& [name, value] : entries) {
      if (out.find(name) != nullptr) return fail("an attribute is there twice");
      out.set(std::move(name), std::move(value));
    }
  }

  template <class T>
  void read(T& out) {
    if (error_) return;
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      read_plain(out);
    } else if constexpr (std::is_same_v<T, std::string>) {
      out = text();
    } else if constexpr (std::is_same_v<T, Bytes>) {
      out = blob();
    } else if constexpr (is_ref<T>) {
      read_ref(out);
    } else if constexpr (std::is_same_v<T, KernelRef>) {
      const std::uint64_t index = number_below(kernels_.size() + 1, "a kernel");
      if (index != 0) out = kernels_[index - 1];
    } else if constexpr (std::is_same_v<T, CardPointer>) {
      out = card();
    } else if constexpr (std::is_same_v<T, ir::Dim>) {
      out = dim();
    } else if constexpr (std::is_same_v<T, ir::Attributes>) {
      read_attributes(out);
    } else if constexpr (std::is_same_v<T, ir::Span>) {
      out = span();
    } else if constexpr (std::is_same_v<T, op::ValueType>) {
      read(out.dtype);
      read(out.shape);
    } else if constexpr (std::is_same_v<T, op::HostTensor>) {
      out = tensor();
    } else if constexpr (is_optional<T>) {
      bool has_value = false;
      read(has_value);
      if (has_value) read(out.emplace());
    } else if constexpr (is_variant<T>) {
      read_variant(out);
    } else if constexpr (is_pair<T>) {
      read(out.first);
      read(out.second);
    } else if constexpr (Reflected<T>) {
      for_each_field(out, [&](const auto&, auto& member) { read(member); });
    } else if constexpr (is_array<T>) {
      for (auto& item : out) read(item);
    } else {
      read_list(out);
    }
  }

  std::string_view sections_[section_count];
  Bytes data_;
  Section section_ = Section::files;
  std::string_view bytes_;  ///< of the section that is read
  std::size_t at_ = 0;
  bool in_nodes_ = false;
  std::vector<Ref<ir::SourceFile>> files_;
  std::vector<ir::NodeRef> nodes_;
  std::vector<std::uint32_t> depths_;  ///< by node: how deep functions and tuples nest below
  std::uint32_t depth_ = 0;            ///< of the node that is read, so far
  std::vector<KernelRef> kernels_;
  std::optional<Error> error_;
};

// Plans are large, and stand in files of several kinds.
extern template Plan Reader::take<Plan>();

}  // namespace tessera::plan::archive
