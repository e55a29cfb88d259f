// Visiting the fields of a node, from its one list. What structural comparison, traversal and sealing share.
//
// A visitor is any class with these members; each is called in the order of the fields:
//   field(index, kind, is_head)          the next field begins
//   element(index) / end_list(size)      around the elements of a list
//   attribute(name) / end_attributes()   around the values of attributes
//   value(v, word)                       a plain value, `word` identifies it up to equality
//   text(v) / bytes(v)                   plain values of variable length
//   child(node) / define(var)            another node, a variable that is bound here
//   absent()                             an optional that is not there
//   size(expr)                           the expression of a dimension; without this member, child(expr)
#pragma once

#include <bit>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "tessera/ir/nodes.h"

namespace tessera::ir {

namespace detail {

template <class T>
inline constexpr bool is_ref = false;
template <class T>
inline constexpr bool is_ref<Ref<T>> = true;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

/// Stands where a number would if the dimension were constant.
inline constexpr std::uint64_t dim_is_expression = 0xd1e59a0000000001ULL;

/// A word that is equal exactly when the values are; floats by their bits.
template <class T>
std::uint64_t identity_word(T value) {
  if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<std::uint64_t>(value);
  } else {
    return static_cast<std::uint64_t>(value);
  }
}

template <FieldKind kind, class V, class T>
void visit_value(const T& value, V& v) {
  if constexpr (is_ref<T>) {
    if (value == nullptr) {
      v.absent();
    } else if constexpr (kind == FieldKind::def) {
      v.define(*value);
    } else {
      v.child(*value);
    }
  } else if constexpr (std::is_same_v<T, Dim>) {
    if (value.is_constant()) {
      v.value(value, identity_word(value.value()));
    } else {
      v.value(value, dim_is_expression);
      if constexpr (requires { v.size(*value.expr()); })
        v.size(*value.expr());
      else
        v.child(*value.expr());
    }
  } else if constexpr (std::is_same_v<T, Attributes>) {
    for (const auto& [name, entry] : value.entries()) {
      v.attribute(name);
      v.value(entry, entry.index());
      std::visit([&](const auto& held) { visit_value<kind>(held, v); }, entry);
    }
    v.end_attributes();
  } else if constexpr (std::is_same_v<T, std::string>) {
    v.text(value);
  } else if constexpr (std::is_same_v<T, Bytes>) {
    v.bytes(value);
  } else if constexpr (is_optional<T>) {
    if (value.has_value()) {
      v.value(value, 1);
      visit_value<kind>(*value, v);
    } else {
      v.absent();
    }
  } else if constexpr (Reflected<T>) {
    for_each_field(value, [&](const auto&, const auto& member) { visit_value<kind>(member, v); });
  } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
    v.value(value, identity_word(value));
  } else {
    std::uint32_t index = 0;
    for (const auto& item : value) {
      v.element(index++);
      visit_value<kind>(item, v);
    }
    v.end_list(index);
  }
}

template <std::size_t i, class N, class V>
void visit_field(const N& node, V& v) {
  static constexpr auto field = std::get<i>(N::fields());
  if constexpr (field.kind != FieldKind::ignore) {
    v.field(static_cast<std::uint8_t>(i), field.kind, field.head);
    visit_value<field.kind>(node.*field.member, v);
  }
}

}  // namespace detail

/// Visits the fields of a node of known type.
template <class N, class V>
void visit_fields(const N& node, V& v) {
  [&]<std::size_t... i>(std::index_sequence<i...>) { (detail::visit_field<i>(node, v), ...); }
  (std::make_index_sequence<std::tuple_size_v<decltype(N::fields())>>());
}

/// Visits the fields of any node.
template <class V>
void visit_fields_of(const Node& node, V& v) {
  visit_node(node, [&](const auto& concrete) { visit_fields(concrete, v); });
}

namespace detail {

template <FieldKind kind, class H, class T>
bool pair_value(const T& x, const T& y, H& h);

template <FieldKind kind, class H>
bool pair_attributes(const Attributes& x, const Attributes& y, H& h) {
  const auto& a = x.entries();
  const auto& b = y.entries();
  for (std::size_t i = 0; i < a.size() || i < b.size(); ++i) {
    const bool only_a = i >= b.size() || (i < a.size() && a[i].first < b[i].first);
    const bool only_b = i >= a.size() || (i < b.size() && b[i].first < a[i].first);
    h.attribute(only_b ? b[i].first : a[i].first);
    if (only_a) return h.only_left(a[i].second);
    if (only_b) return h.only_right(b[i].second);
    if (a[i].second.index() != b[i].second.index()) return h.differ(a[i].second, b[i].second);
    const bool same = std::visit(
        [&]<class T>(const T& held) { return pair_value<kind>(held, std::get<T>(b[i].second), h); },
        a[i].second);
    if (!same) return false;
  }
  return true;
}

template <FieldKind kind, class H, class List>
bool pair_lists(const List& x, const List& y, H& h) {
  auto a = x.begin();
  auto b = y.begin();
  std::uint32_t index = 0;
  for (; a != x.end() && b != y.end(); ++a, ++b, ++index) {
    h.element(index);
    if (!pair_value<kind>(*a, *b, h)) return false;
  }
  h.element(index);
  if (a != x.end()) return h.only_left(*a);
  if (b != y.end()) return h.only_right(*b);
  return true;
}

/// Whether two plain values agree, floats by their bits.
template <class T>
bool same_plain(const T& x, const T& y) {
  if constexpr (std::is_same_v<T, Bytes>) {
    return x.size() == y.size() && (x.data() == y.data() || std::memcmp(x.data(), y.data(), x.size()) == 0);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return x == y;
  } else {
    return identity_word(x) == identity_word(y);
  }
}

template <FieldKind kind, class H, class T>
bool pair_value(const T& x, const T& y, H& h) {
  if constexpr (is_ref<T>) {
    if (x == nullptr || y == nullptr)
      return (x == nullptr && y == nullptr) || (y == nullptr ? h.only_left(x) : h.only_right(y));
    if constexpr (kind == FieldKind::def) {
      h.define(*x, *y);
    } else {
      h.child(*x, *y);
    }
    return true;
  } else if constexpr (std::is_same_v<T, Dim>) {
    if (x.is_constant() != y.is_constant()) return h.differ(x, y);
    if (x.is_constant()) return x.value() == y.value() || h.differ(x, y);
    h.size(*x.expr(), *y.expr());
    return true;
  } else if constexpr (std::is_same_v<T, Attributes>) {
    return pair_attributes<kind>(x, y, h);
  } else if constexpr (is_optional<T>) {
    if (x.has_value() != y.has_value()) return x.has_value() ? h.only_left(*x) : h.only_right(*y);
    return !x.has_value() || pair_value<kind>(*x, *y, h);
  } else if constexpr (Reflected<T>) {
    return std::apply(
        [&](const auto&... f) { return (pair_value<kind>(x.*f.member, y.*f.member, h) && ...); },
        T::fields());
  } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, std::string> ||
                       std::is_same_v<T, Bytes>) {
    return same_plain(x, y) || h.differ(x, y);
  } else {
    return pair_lists<kind>(x, y, h);
  }
}

template <std::size_t i, class N, class H>
bool pair_field(const N& a, const N& b, H& h) {
  static constexpr auto field = std::get<i>(N::fields());
  if constexpr (field.kind == FieldKind::ignore) {
    return true;
  } else {
    h.field(static_cast<std::uint8_t>(i), field.head);
    return pair_value<field.kind>(a.*field.member, b.*field.member, h);
  }
}

}  // namespace detail

/// Lays two nodes of one type side by side, field by field. The handler gets
///   field(index, is_head), element(index), attribute(name)   where it is
///   child(x, y), define(x, y), size(x, y)                    pairs of nodes; of expressions of dimensions
///   differ(x, y), only_left(x), only_right(y)                the first plain difference; returns false
/// False as soon as a plain value differs.
template <class N, class H>
bool visit_pairs(const N& a, const N& b, H& h) {
  return [&]<std::size_t... i>(std::index_sequence<i...>) { return (detail::pair_field<i>(a, b, h) && ...); }
  (std::make_index_sequence<std::tuple_size_v<decltype(N::fields())>>());
}

/// Calls `f(child)` for every node below, also for variables that are bound here, in the order of the fields.
template <class F>
struct ChildVisitor {
  F f;
  void field(std::uint8_t, FieldKind, bool) {}
  void element(std::uint32_t) {}
  void end_list(std::uint32_t) {}
  void attribute(std::string_view) {}
  void end_attributes() {}
  template <class T>
  void value(const T&, std::uint64_t) {}
  void text(const std::string&) {}
  void bytes(const Bytes&) {}
  void child(const Node& node) { f(node); }
  void define(const Var& var) { f(var); }
  void absent() {}
};

template <class F>
void for_each_child(const Node& node, F&& f) {
  ChildVisitor<F&> visitor{f};
  visit_fields_of(node, visitor);
}

namespace detail {

template <class T, class F>
void transform_value(T& value, F& f) {
  if constexpr (is_ref<T>) {
    if (value != nullptr) value = f(value);
  } else if constexpr (std::is_same_v<T, Dim>) {
    if (!value.is_constant()) value = Dim(f(value.expr()));
  } else if constexpr (std::is_same_v<T, Attributes>) {
    for (auto& [name, entry] : value.mutable_entries())
      std::visit([&](auto& held) { transform_value(held, f); }, entry);
  } else if constexpr (requires { value.begin(); } && !std::is_same_v<T, std::string>) {
    if constexpr (std::is_class_v<typename T::value_type>)
      for (auto& item : value) transform_value(item, f);
  }
}

}  // namespace detail

/// Replaces every node a draft refers to by `f(ref)`, which returns a Ref of the same type.
template <class N, class F>
void transform_children(N& draft, F f) {
  for_each_field(draft, [&](const auto&, auto& member) { detail::transform_value(member, f); });
}

}  // namespace tessera::ir
