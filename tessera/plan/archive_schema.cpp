#include "tessera/plan/archive_schema.h"

#include "tessera/op/catalogue.h"
#include "tessera/plan/package.h"

using namespace tessera;
using namespace tessera::plan::archive;

namespace {

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

Hash128 plan::archive::schema_with(std::string_view fields) {
  return hash_text(cat(schema().high, " ", schema().low, " ", fields));
}

template std::string tessera::plan::archive::fields_text<tessera::plan::Plan>();
