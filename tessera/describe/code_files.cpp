#include "tessera/describe/code_files.h"

using namespace tessera;

namespace {

/// With the slash at its end; empty: the working directory, or none because the name is absolute.
std::string code_folder(const description::Description& description, const description::Node& node) {
  if (node.code->file.starts_with('/')) return "";
  const std::string described = description.span_of(node.at).file;
  return described.substr(0, described.rfind('/') + 1);
}

}  // namespace

std::string description::code_path(const Description& description, const Node& node) {
  return code_folder(description, node) + node.code->file;
}

std::shared_ptr<op::KernelSource> description::code_source(const Description& description, const Node& node) {
  const std::string& file = node.code->file;
  const op::CodeForm form = op::form_of_file(file);
  return file.starts_with('/')
             ? op::KernelSource::from_file(file, form)
             : op::KernelSource::from_file_below(code_folder(description, node), file, form);
}
