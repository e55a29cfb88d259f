#include "tessera/engine/graph_archive.h"

#include "tessera/base/text.h"
#include "tessera/plan/archive_file.h"
#include "tessera/plan/archive_schema.h"

using namespace tessera;
using namespace tessera::engine;
namespace archive = tessera::plan::archive;

namespace {

archive::FileForm form() {
  static const Hash128 schema =
      archive::schema_with(cat(archive::fields_text<SavedGraph>(), archive::fields_text<plan::Plan>()));
  return {.magic = archive::graph_magic, .version = 1, .schema = schema};
}

}  // namespace

std::string tessera::engine::to_archive(const SavedGraph& saved, std::span<const plan::PlanRef> plans) {
  archive::Writer writer;
  writer.add(saved);
  for (const plan::PlanRef& plan : plans)
    if (plan != nullptr) writer.add(*plan);
  return archive::to_file(writer, form());
}

Result<ReadGraph> tessera::engine::from_archive(const Bytes& bytes) {
  archive::Reader reader = TESSERA_TRY(archive::open_file(bytes, form()));
  ReadGraph out{.saved = reader.take<SavedGraph>(), .plans = {}};
  if (const auto& error = reader.failure()) return *error;
  for (const std::uint8_t has_plan : out.saved.has_plan) {
    out.plans.emplace_back();
    if (has_plan != 0) out.plans.back() = std::make_shared<plan::Plan>(reader.take<plan::Plan>());
  }
  if (auto error = reader.finish()) return *std::move(error);
  return out;
}
