#include "tessera/stream/pattern.h"

#include <bit>

#include "tessera/ir/expr.h"
#include "tessera/stream/pattern_bytes.h"

using namespace tessera;
using namespace tessera::ir;
using namespace tessera::stream;

namespace {

class Writer {
 public:
  explicit Writer(Pattern& out) : out_(out) {}

  void byte(std::uint8_t value) { out_.bytes += static_cast<char>(value); }
  template <class Enum>
  requires std::is_enum_v<Enum>
  void byte(Enum value) { byte(static_cast<std::uint8_t>(value)); }
  /// Little-endian, so that the bytes are the same on every machine.
  void u32(std::uint64_t value) { number(value, 4); }
  void u64(std::uint64_t value) { number(value, 8); }
  void text(std::string_view value) {
    u32(value.size());
    out_.bytes += value;
  }

  void attribute(const AttributeValue& value) {
    byte(static_cast<std::uint8_t>(value.index()));
    std::visit([&](const auto& held) { payload(held); }, value);
  }

  void dims(const Shape& shape) {
    u32(shape.size());
    for (const Dim& dim : shape) {
      byte(dim.is_constant() ? DimKind::number : DimKind::expression);
      if (dim.is_constant())
        out_.sizes.push_back(dim.value());
      else
        out_.symbolic.push_back(std::make_shared<SymbolicSize>(dim.expr()));
    }
  }

  void scalar(const ScalarType& type) {
    byte(type.dtype);
    for (const auto& bound : {type.range.lower, type.range.upper}) {
      byte(static_cast<std::uint8_t>(bound.has_value()));
      if (bound) u64(static_cast<std::uint64_t>(*bound));
    }
  }

 private:
  void number(std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) byte(static_cast<std::uint8_t>(value >> (8 * i)));
  }

  void payload(bool value) { byte(static_cast<std::uint8_t>(value)); }
  void payload(std::int64_t value) { u64(static_cast<std::uint64_t>(value)); }
  void payload(double value) { u64(std::bit_cast<std::uint64_t>(value)); }
  void payload(const std::string& value) { text(value); }
  void payload(Dtype value) { byte(value); }
  void payload(const Shape& value) { dims(value); }
  template <class T>
  void payload(const std::vector<T>& values) {
    u32(values.size());
    for (const T& value : values) payload(value);
  }

  Pattern& out_;
};

void write_tensor(Writer& writer, const TensorType& type) {
  bool is_constant = true;
  for (const Dim& dim : type.shape) is_constant = is_constant && dim.is_constant();
  writer.byte(is_constant ? TypeKind::tensor_of_numbers : TypeKind::tensor);
  writer.byte(type.dtype);
  writer.dims(type.shape);
}

}  // namespace

void Pattern::clear() {
  bytes.clear();
  sizes.clear();
  symbolic.clear();
}

void tessera::stream::append_op(Pattern& out, std::string_view name, const Attributes* attributes,
                                Effect effect) {
  Writer writer(out);
  writer.text(name);
  writer.byte(effect);
  writer.u32(attributes == nullptr ? 0 : attributes->size());
  if (attributes == nullptr) return;
  for (const auto& [key, value] : attributes->entries()) {
    writer.text(key);
    writer.attribute(value);
  }
}

void tessera::stream::append_type(Pattern& out, const Type* type) {
  Writer writer(out);
  std::vector<const Type*> stack{type};
  while (!stack.empty()) {
    const Type* next = stack.back();
    stack.pop_back();
    if (next == nullptr) {
      writer.byte(TypeKind::unknown);
    } else if (const auto* tensor = as<TensorType>(*next)) {
      write_tensor(writer, *tensor);
    } else if (const auto* scalar = as<ScalarType>(*next)) {
      writer.byte(TypeKind::scalar);
      writer.scalar(*scalar);
    } else if (const auto* tuple = as<TupleType>(*next)) {
      writer.byte(TypeKind::tuple);
      writer.u32(tuple->elements.size());
      for (std::size_t i = tuple->elements.size(); i-- > 0;) stack.push_back(tuple->elements[i].get());
    }
  }
}

std::string tessera::stream::tensor_pattern(Dtype dtype, std::uint32_t rank) {
  Pattern out;
  append_type(out, tensor_type(dtype, Shape(rank, Dim(1))).get());
  return out.bytes;
}
