#include <sstream>

#include "tessera/base/text.h"
#include "tessera/compile/constants.h"
#include "tessera/ir/parse.h"
#include "tessera/ir/print.h"
#include "tests/differential/check.h"
#include "tests/differential/custom_ops.h"

using namespace tessera;
using namespace tessera::differential;

namespace {

constexpr std::string_view rule = "----\n";

std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text;
}

template <class T>
std::vector<T> words_after(const std::string& line, std::string_view key) {
  std::istringstream stream(line.substr(key.size()));
  return {std::istream_iterator<T>(stream), {}};
}

}  // namespace

std::string tessera::differential::write_case(const Program& program, const Variant& variant,
                                              const std::string& failure) {
  std::string out = cat("# ", one_line(failure), "\n", ir::print(*program.function), rule);
  out += cat("device ", variant.device, "\nexact ", variant.exact ? 1 : 0, "\nseed ", variant.seed,
             "\ndisabled ", join(variant.disabled, " "), "\nno_tiles_of ", join(variant.no_tiles_of, " "),
             "\nsizes ", join(program.sizes, " "), "\nfirst ", join(program.first_parameters, " "),
             "\nsecond ", join(program.second_parameters, " "), "\n");
  for (const auto& input : program.inputs)
    out += cat("input ", one_line(ir::print(*compiler::dense_constant(input))), "\n");
  return out;
}

Result<Case> tessera::differential::read_case(const std::string& text) {
  const std::size_t cut = text.find(rule);
  if (cut == std::string::npos) return Error(ErrorCode::parse, "a case has no line '----'");
  Case out;
  (void)custom_ops();  // the program may call them
  const ir::NodeRef node = TESSERA_TRY(ir::parse(text.substr(0, cut)));
  const auto* module = ir::as<ir::Module>(node);
  out.program.function =
      module == nullptr ? ir::FunctionRef(ir::as<ir::Function>(node)) : module->functions.back();
  std::istringstream lines(text.substr(cut + rule.size()));
  for (std::string line; std::getline(lines, line);) {
    const std::string key = line.substr(0, line.find(' '));
    if (key == "device") out.variant.device = line.substr(std::min(line.size(), key.size() + 1));
    if (key == "exact") out.variant.exact = line == "exact 1";
    if (key == "seed") out.variant.seed = words_after<std::uint64_t>(line, key).at(0);
    if (key == "disabled") out.variant.disabled = words_after<std::string>(line, key);
    if (key == "no_tiles_of") out.variant.no_tiles_of = words_after<std::string>(line, key);
    if (key == "sizes") out.program.sizes = words_after<std::int64_t>(line, key);
    if (key == "first") out.program.first_parameters = words_after<double>(line, key);
    if (key == "second") out.program.second_parameters = words_after<double>(line, key);
    if (key != "input") continue;
    const ir::NodeRef dense = TESSERA_TRY(ir::parse(line.substr(key.size())));
    out.program.inputs.push_back(*compiler::constant_tensor(*ir::as<ir::Dense>(dense)));
  }
  return out;
}
