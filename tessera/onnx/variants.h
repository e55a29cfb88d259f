// A model as functions: one, or one for each value of its flags. A flag is an input of one boolean: models of
// decoders choose by one whether there are words before, and have other shapes then, which one function
// cannot.
#pragma once

#include "tessera/onnx/import.h"

namespace tessera::onnx {

/// Functions of the required inputs that are no flags.
struct Variants {
  std::vector<ir::FunctionRef> functions;  ///< by the flags as bits, the first of which counts least
  std::vector<std::size_t> flags;          ///< among the required inputs; none: there is one function
};

/// The required inputs that are flags, by position; none if there are more than `most`.
[[nodiscard]] std::vector<std::size_t> find_flags(const Model& model, std::size_t most);

/// A function for each value of these flags.
[[nodiscard]] Result<Variants> import_by_flags(const Model& model, std::vector<std::size_t> flags,
                                               const Limits& limits = {});

/// One function where import_function can write it, else one for each value of the flags, if there are such
/// and not more than `most_flags`.
[[nodiscard]] Result<Variants> import_variants(const Model& model, std::size_t most_flags,
                                               const Limits& limits = {});

}  // namespace tessera::onnx
