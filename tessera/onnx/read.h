// Files in the ONNX format. The only unit that knows protobuf is read.cpp; the schema is the format's own,
// from the distribution's package, and neither its checker nor its shape inference is ever called.
#pragma once

#include <string>
#include <vector>

#include "tessera/base/result.h"
#include "tessera/onnx/model.h"

namespace tessera::onnx {

/// A model file. Its form is checked (validate.h), its operators are not.
[[nodiscard]] Result<Model> read_model(const std::string& path, const Limits& limits = {});
/// The same from bytes, without external data; `file` is what messages call them.
[[nodiscard]] Result<Model> parse_model(std::span<const std::byte> bytes, const std::string& file,
                                        const Limits& limits = {});

/// A tensor, a sequence of tensors or an optional of either, as the files of test data have them.
struct DataValue {
  enum class Kind : std::uint8_t { none, tensor, sequence };
  Kind kind = Kind::none;
  std::vector<HostTensor> tensors;  ///< one, or those of the sequence
};
/// A file of one TensorProto, SequenceProto or OptionalProto, by the type it is declared to have.
[[nodiscard]] Result<DataValue> read_value(const std::string& path, const DeclaredType& type,
                                           const Limits& limits = {});

}  // namespace tessera::onnx
