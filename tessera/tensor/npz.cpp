#include "tessera/base/file.h"
#include "tessera/base/text.h"
#include "tessera/tensor/call.h"
#include "tessera/tensor/io.h"
#include "tessera/tensor/npy.h"
#include "tessera/tensor/zip.h"

using namespace tessera;
using namespace tessera::detail;

namespace {

constexpr std::string_view array_suffix = ".npy";

/// By the names of their arrays; that nothing is wrong with them is known before anything is decompressed.
Result<std::map<std::string, const ZipMember*>> arrays_of(const std::string& path,
                                                          const ZipArchive& archive) {
  std::map<std::string, const ZipMember*> out;
  for (const ZipMember& member : archive.members()) {
    std::string name = member.name;
    if (name.size() > array_suffix.size() && name.ends_with(array_suffix))
      name.resize(name.size() - array_suffix.size());
    const auto refuse = [&](std::string_view why) {
      return Error(ErrorCode::parse,
                   cat(printable(path), ": the name '", printable(shortened(name, 60)), "' ", why));
    };
    if (!is_valid_utf8(name)) return refuse("is not valid UTF-8");
    if (!out.emplace(name, &member).second) return refuse("stands for two arrays");
  }
  return out;
}

}  // namespace

NamedTensors tessera::load_npz(const std::string& path, const CreateOptions& options,
                               const ArchiveLimits& limits, Here here) {
  const ZipArchive archive = value_at(here, ZipArchive::open(path, value_at(here, map_file(path)), limits));
  NamedTensors out;
  for (const auto& [name, member] : value_at(here, arrays_of(path, archive))) {
    const Bytes content = value_at(here, archive.content(*member));
    out[name] = value_at(here, parse_npy(cat(path, "/", member->name), content.span(), options, here));
  }
  return out;
}

void tessera::save_npz(const std::string& path, const NamedTensors& tensors, Here here) {
  ZipWriter writer;
  for (const auto& [name, tensor] : tensors) {
    check_name("save_npz", name, tensor, here);
    const auto named = [&](Error error) {
      return std::move(error).note(cat("saving '", printable(shortened(name, 60)), "'"));
    };
    auto header = npy_header(tensor);
    if (!header) throw Exception(named(std::move(header).error()).at(span_of(here)));
    value_at(here, writer.add(cat(name, array_suffix), *header, tensor.bytes(here)));
  }
  value_at(here, write_file(path, writer.finish()));
}
