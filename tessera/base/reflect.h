// Compile-time reflection: a type lists its fields once, everything else follows from the list.
//
//   struct Attrs {
//     std::int64_t axis = -1;
//     static constexpr auto fields() { return std::tuple{usual("axis", &Attrs::axis)}; }
//   };
//
// The kind of a field decides how structural comparison treats it:
//   ignore  never compared: source spans, names
//   usual   compared
//   def     introduces bindings (parameters, assignment targets): compared by position, not by identity
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>
#include <utility>

namespace tessera {

enum class FieldKind : std::uint8_t { ignore, usual, def };

template <class Owner, class T>
struct Field {
  using owner_type = Owner;
  using value_type = T;

  std::string_view name;
  T Owner::*member;
  FieldKind kind;
  /// The field that says what a node is (an op's name): a difference is reported at the node itself.
  bool head = false;
};

template <class Owner, class T>
constexpr Field<Owner, T> ignore(std::string_view name, T Owner::*member) {
  return {name, member, FieldKind::ignore};
}
template <class Owner, class T>
constexpr Field<Owner, T> usual(std::string_view name, T Owner::*member) {
  return {name, member, FieldKind::usual};
}
template <class Owner, class T>
constexpr Field<Owner, T> head(std::string_view name, T Owner::*member) {
  return {name, member, FieldKind::usual, true};
}
template <class Owner, class T>
constexpr Field<Owner, T> def(std::string_view name, T Owner::*member) {
  return {name, member, FieldKind::def};
}

/// A type that lists its fields.
template <class T>
concept Reflected = requires {
  T::fields();
};

/// Calls `f(field, object.*field.member)` for every field, in the order of the list.
template <class T, class F>
requires Reflected<std::remove_cvref_t<T>>
constexpr void for_each_field(T&& object, F&& f) {
  std::apply([&](const auto&... field) { (f(field, object.*field.member), ...); },
             std::remove_cvref_t<T>::fields());
}

}  // namespace tessera
