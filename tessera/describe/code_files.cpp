#include "tessera/describe/code_files.h"

using namespace tessera;

std::string description::code_path(const Description& description, const Node& node) {
  const std::string& file = node.code->file;
  const std::string described = description.span_of(node.at).file;
  const std::size_t slash = described.rfind('/');
  return file[0] == '/' || slash == std::string::npos ? file : described.substr(0, slash + 1) + file;
}
