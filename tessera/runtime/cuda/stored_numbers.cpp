#include "tessera/runtime/cuda/stored_numbers.h"

#include <string_view>
#include <vector>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \n") + 1 - first);
}

/// "float n0", "const char* p1": none has a comma or a parenthesis in it.
std::vector<std::string_view> declarations(std::string_view list) {
  std::vector<std::string_view> out;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    out.push_back(trimmed(list.substr(begin, end - begin)));
    begin = end + 1;
  }
  return out;
}

}  // namespace

SourceRef tessera::runtime::cuda::source_with_stored_numbers(const Launch& launch) {
  const Source& source = *launch.source;
  const std::size_t name = source.text.find(cat(" ", source.entry, "("));
  if (name == std::string::npos) return nullptr;
  const std::size_t begin = name + source.entry.size() + 2, end = source.text.find(')', begin);
  const std::size_t body = source.text.find('{', end);
  if (end == std::string::npos || body == std::string::npos) return nullptr;
  const auto list = declarations(std::string_view(source.text).substr(begin, end - begin));
  if (list.size() != launch.arguments.size()) return nullptr;
  std::string parameters, reads;
  for (std::size_t i = 0; i < list.size(); ++i) {
    parameters += i == 0 ? "" : ", ";
    if (launch.arguments[i].kind != Argument::Kind::number) {
      parameters += list[i];
      continue;
    }
    const std::size_t space = list[i].rfind(' ');
    if (space == std::string_view::npos) return nullptr;
    const std::string_view type = list[i].substr(0, space), variable = list[i].substr(space + 1);
    parameters += cat("const ", type, "* ", variable, "_at");
    reads += cat("const ", type, " ", variable, " = *", variable, "_at;\n");
  }
  Source out = source;
  out.text = cat(source.text.substr(0, begin), parameters, source.text.substr(end, body + 1 - end), "\n",
                 reads, source.text.substr(body + 1));
  return std::make_shared<const Source>(std::move(out));
}
