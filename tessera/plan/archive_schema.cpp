#include "tessera/plan/archive_schema.h"

#include "tessera/base/text.h"
#include "tessera/op/catalogue.h"
#include "tessera/plan/archive_types.h"
#include "tessera/plan/package.h"

using namespace tessera;
using namespace tessera::plan::archive;

namespace {

template <class T>
std::string type_text();

template <class T>
std::string fields_text() {
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
std::string variant_text(const std::variant<T...>*) {
  std::string out = "<";
  ((out += type_text<T>() + "|"), ...);
  return out + ">";
}

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
    return variant_text(static_cast<const T*>(nullptr));
  else if constexpr (is_pair<T>)
    return cat("(", type_text<typename T::first_type>(), ",", type_text<typename T::second_type>(), ")");
  else if constexpr (Reflected<T>)
    return fields_text<T>();
  else if constexpr (is_array<T>)
    return cat("[", std::tuple_size_v<T>, " ", type_text<typename T::value_type>(), "]");
  else
    return cat("[", type_text<typename T::value_type>(), "]");
}

template <class... N>
std::string nodes_text(const std::tuple<N...>*) {
  std::string out;
  ((out += cat(ir::to_string(N::node_kind), fields_text<N>(), "\n")), ...);
  return out;
}

std::string card_text(const op::Card& card) {
  std::string out = cat(card.name, "(");
  for (const op::Input& input : card.inputs)
    out += cat(input.name, ":", input.type, static_cast<int>(input.kind), " ", input.otherwise, ";");
  out += ")[";
  for (const op::AttributeSpec& spec : card.attributes)
    out +=
        cat(spec.name, ":", static_cast<int>(spec.kind), " ", static_cast<int>(spec.required), " ",
            static_cast<int>(spec.may_be_absent), " ", spec.integer, " ", spec.number, " ", spec.text, ";");
  return cat(out, "]", join(card.results, ","), "\n");
}

Hash128 compute_schema() {
  std::string text = nodes_text(static_cast<const ir::AllNodes*>(nullptr));
  text += cat(fields_text<kernel::Kernel>(), "\n", fields_text<plan::Package>(), "\n",
              fields_text<plan::Program>(), "\n", fields_text<plan::Plan>(), "\n");
  for (const ir::Dtype dtype : ir::all_dtypes()) text += cat(dtype, " ");
  for (std::size_t i = 0; i < ir::scalar_opcode_count; ++i)
    text += cat(ir::to_string(static_cast<ir::ScalarOpcode>(i)), " ");
  for (const op::Card* card : op::all_cards()) text += card_text(*card);
  return hash_text(text);
}

}  // namespace

Hash128 plan::archive::schema() {
  static const Hash128 known = compute_schema();
  return known;
}
