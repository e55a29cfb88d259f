#include "tessera/runtime/cuda/kernel_signature.h"

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

constexpr std::string_view kernel_begin = "extern \"C\" __global__";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \n") + 1 - first);
}

/// None has a comma or a parenthesis in it.
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

std::string_view KernelSignature::name_of(std::string_view parameter) {
  return parameter.substr(parameter.rfind(' ') + 1);
}

std::string_view KernelSignature::type_of(std::string_view parameter) {
  return parameter.substr(0, parameter.rfind(' '));
}

std::optional<KernelSignature> tessera::runtime::cuda::signature_of(const Source& source) {
  const std::string_view text = source.text;
  const std::size_t name = text.find(cat(" ", source.entry, "("));
  if (name == std::string_view::npos) return std::nullopt;
  const std::size_t head = text.rfind(kernel_begin, name);
  if (head == std::string_view::npos) return std::nullopt;
  const std::size_t begin = name + source.entry.size() + 2, end = text.find(')', begin);
  if (end == std::string_view::npos || text.find('{', end) == std::string_view::npos) return std::nullopt;
  KernelSignature out{text.substr(0, head), text.substr(head, begin - head),
                      declarations(text.substr(begin, end - begin)), text.substr(end)};
  for (const std::string_view parameter : out.parameters)
    if (parameter.find(' ') == std::string_view::npos) return std::nullopt;
  return out;
}
