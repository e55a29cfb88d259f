#include "tessera/ir/dtype.h"

#include <array>

using namespace tessera::ir;

namespace {

constexpr std::array<std::string_view, 13> names{"f64", "f32", "f16", "bf16", "i64", "i32", "i16",
                                                 "i8",  "u8",  "u16", "u32",  "u64", "bool"};
constexpr std::array<Dtype, 13> dtypes{Dtype::f64, Dtype::f32, Dtype::f16,    Dtype::bf16, Dtype::i64,
                                       Dtype::i32, Dtype::i16, Dtype::i8,     Dtype::u8,   Dtype::u16,
                                       Dtype::u32, Dtype::u64, Dtype::boolean};

}  // namespace

std::span<const Dtype> tessera::ir::all_dtypes() { return dtypes; }

std::string_view tessera::ir::to_string(Dtype dtype) { return names[static_cast<std::size_t>(dtype)]; }

std::optional<Dtype> tessera::ir::parse_dtype(std::string_view name) {
  for (Dtype dtype : dtypes)
    if (to_string(dtype) == name) return dtype;
  return std::nullopt;
}
