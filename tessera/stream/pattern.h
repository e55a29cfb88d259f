// What an op or a type is, as bytes, with the sizes taken out: `f32[64, 2*N]` is the bytes of "f32 of rank 2,
// a number and an expression", the sizes {64} and the symbolic sizes {2*N}.
//
// Equal bytes mean the same op with the same attributes, or the same type up to sizes. This is what a
// skeleton is made of; sizes stand beside it (encoding.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/stream/instruction.h"
#include "tessera/stream/symbolic_size.h"

namespace tessera::stream {

/// Bytes that grow by append_op and append_type, and what was taken out of them, in order.
struct Pattern {
  std::string bytes;
  std::vector<std::int64_t> sizes;
  std::vector<SymbolicSizeRef> symbolic;

  void clear();
};

/// Appends an op: canonical name, attributes with every bit of their values, effect. The numbers of a `shape`
/// attribute are sizes; all other attribute values are in the bytes.
void append_op(Pattern& out, std::string_view name, const ir::Attributes* attributes, Effect effect);

/// Appends a type. Null is the type that is not known.
void append_type(Pattern& out, const ir::Type* type);

/// The bytes append_type gives for a tensor whose dimensions are all numbers.
[[nodiscard]] std::string tensor_pattern(ir::Dtype dtype, std::uint32_t rank);

/// A pattern read back for people.
struct PatternView {
  std::string_view bytes;
  std::span<const std::int64_t> sizes;
  std::span<const std::string> symbolic;  ///< the texts of the symbolic sizes
};

struct OpText {
  std::string name;
  std::string attributes;  ///< "{axis=0,mode=\"same\"}", empty if there are none
  Effect effect = Effect::none;
};
/// REQUIRES the bytes were written by append_op.
[[nodiscard]] OpText op_text(const PatternView& pattern);
/// "f32[64,d0]", empty for the unknown type. REQUIRES the bytes were written by append_type.
[[nodiscard]] std::string type_text(const PatternView& pattern);

}  // namespace tessera::stream
