#include "tessera/compile/simplify_casts.h"

using namespace tessera;
using namespace tessera::compile;
using ir::Dtype;

namespace {

/// Bits of a value besides its sign: what an integer needs and what a float has.
int value_bits(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
      return 53;
    case Dtype::f32:
      return 24;
    case Dtype::f16:
      return 11;
    case Dtype::bf16:
      return 8;
    case Dtype::boolean:
      return 1;
    default:
      return static_cast<int>(8 * ir::size_of(dtype)) - (ir::is_unsigned(dtype) ? 0 : 1);
  }
}

bool is_signed(Dtype dtype) { return dtype != Dtype::boolean && !ir::is_unsigned(dtype); }

bool is_lossless_float(Dtype from, Dtype to) {
  if (from == to || to == Dtype::f64) return true;
  return to == Dtype::f32 && (from == Dtype::f16 || from == Dtype::bf16);
}

}  // namespace

bool tessera::compile::is_lossless(Dtype from, Dtype to) {
  if (ir::is_float(from)) return ir::is_float(to) && is_lossless_float(from, to);
  if (is_signed(from) && !ir::is_float(to) && !is_signed(to)) return false;
  return value_bits(from) <= value_bits(to);
}

ir::ExprRef tessera::compile::simpler_cast(const ir::Call& call, FunctionDraft& draft) {
  if (call.op != "cast" || call.args.size() != 1) return nullptr;
  const auto* to = call.attrs.get<Dtype>("dtype");
  const auto type = op::operand_type(*call.args[0]);
  if (to == nullptr || !type) return nullptr;
  if (type->dtype == *to) return call.args[0];
  const ir::Call* inner = draft.call_of(*call.args[0], "cast");
  const auto from = inner == nullptr ? std::nullopt : op::operand_type(*inner->args[0]);
  if (!from || !is_lossless(from->dtype, type->dtype)) return nullptr;
  if (from->dtype == *to) return inner->args[0];
  // From a float, integers saturate; from an integer they wrap.
  const bool same_way = ir::is_float(from->dtype) == ir::is_float(type->dtype) || ir::is_float(*to) ||
                        from->dtype == Dtype::boolean;
  if (!same_way) return nullptr;
  const op::Value out = op::cast(draft.value(inner->args[0]), *to);
  return out ? draft.builder().expr(out) : nullptr;
}
