// What the bytes of an archive mean: which types have which fields, which ops there are. Two builds that
// differ in it do not read each other's plans.
#pragma once

#include <string>

#include "tessera/base/hash.h"
#include "tessera/base/text.h"
#include "tessera/plan/archive_types.h"

namespace tessera::plan::archive {

/// Of this build: all field lists, enumerations and op cards. Follows from them, so that nobody has to
/// remember to count a version up.
[[nodiscard]] Hash128 schema();
/// Of files that also hold something with these fields.
[[nodiscard]] Hash128 schema_with(std::string_view fields);

template <class T>
[[nodiscard]] std::string type_text();

/// The fields of a type, and of all types in it.
template <class T>
[[nodiscard]] std::string fields_text() {
  std::string out = "{";
  std::apply(
      [&](const auto&... field) {
        ((out +=
          cat(field.name, ":", type_text<typename std::remove_cvref_t<decltype(field)>::value_type>(), ";")),
         ...);
      },
      T::fields());
  return out + "}";
}

template <class... T>
std::string alternatives_text(const std::variant<T...>*) {
  std::string out = "<";
  ((out += type_text<T>() + "|"), ...);
  return out + ">";
}

/// How the values of a type are written.
template <class T>
std::string type_text() {
  if constexpr (std::is_enum_v<T>)
    return cat("enum", enumerators<T>);
  else if constexpr (std::is_arithmetic_v<T>)
    return cat(std::is_same_v<T, double> ? "float" : std::is_signed_v<T> ? "int" : "uint", sizeof(T));
  else if constexpr (std::is_same_v<T, std::string>)
    return "text";
  else if constexpr (is_ref<T>)
    return "node";
  else if constexpr (std::is_same_v<T, KernelRef> || std::is_same_v<T, CardPointer> ||
                     std::is_same_v<T, Bytes> || std::is_same_v<T, ir::Dim> || std::is_same_v<T, ir::Span> ||
                     std::is_same_v<T, op::ValueType> || std::is_same_v<T, op::HostTensor>)
    return "own";  // the writer has a form for each
  else if constexpr (std::is_same_v<T, ir::Attributes>)
    return type_text<std::vector<ir::Attributes::Entry>>();
  else if constexpr (is_optional<T>)
    return cat("?", type_text<typename T::value_type>());
  else if constexpr (is_variant<T>)
    return alternatives_text(static_cast<const T*>(nullptr));
  else if constexpr (is_pair<T>)
    return cat("(", type_text<typename T::first_type>(), ",", type_text<typename T::second_type>(), ")");
  else if constexpr (Reflected<T>)
    return fields_text<T>();
  else if constexpr (is_array<T>)
    return cat("[", std::tuple_size_v<T>, " ", type_text<typename T::value_type>(), "]");
  else
    return cat("[", type_text<typename T::value_type>(), "]");
}

extern template std::string fields_text<Plan>();

}  // namespace tessera::plan::archive
