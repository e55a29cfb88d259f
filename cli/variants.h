// What is said of the functions of one program, one after another where flags choose among them.
#pragma once

#include "cli/program_file.h"
#include "tessera/base/json.h"

namespace tessera::cli {

/// "with use_cache = true" as a line of its own; empty if there is but one function.
[[nodiscard]] inline std::string variant_title(const NamedProgram& program, std::size_t variant) {
  if (program.functions.size() == 1) return {};
  return cat("with ", program.variant_text(variant), "\n");
}

/// `write_one(v)` writes members: of the object that is being written if there is but one function, else of
/// objects in its member "variants", each with the values of the flags.
template <class F>
void write_variants(JsonWriter& json, const NamedProgram& program, F&& write_one) {
  if (program.functions.size() == 1) return write_one(std::size_t{0});
  json.key("variants").begin_array();
  for (std::size_t v = 0; v < program.functions.size(); ++v) {
    json.begin_object().key("flags").begin_object();
    for (std::size_t f = 0; f < program.names.flags.size(); ++f)
      json.member(program.names.inputs[program.names.flags[f].input], plan::is_set(v, f));
    json.end_object();
    write_one(v);
    json.end_object();
  }
  json.end_array();
}

}  // namespace tessera::cli
