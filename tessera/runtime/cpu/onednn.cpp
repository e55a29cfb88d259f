#include "tessera/runtime/cpu/onednn.h"

#include "tessera/base/once.h"
#include "tessera/base/program_end.h"
#include "tessera/base/shared_library.h"
#include "tessera/base/text.h"
#include "tessera/runtime/cpu/onednn_library.h"

using namespace tessera;
using namespace tessera::runtime::cpu;

namespace {

using Library = OneDnn::Library;
constexpr const char* library_name = "libdnnl.so.2";

Result<void> load(Library& out, const SharedLibrary& library) {
#define TESSERA_ONEDNN_LOAD(name)                                                 \
  out.name = reinterpret_cast<decltype(out.name)>(library.symbol("dnnl_" #name)); \
  if (out.name == nullptr)                                                        \
    return Error(ErrorCode::unsupported, cat(library_name, " has no function dnnl_" #name));
  TESSERA_ONEDNN_FUNCTIONS(TESSERA_ONEDNN_LOAD)
#undef TESSERA_ONEDNN_LOAD
  // A handle of a library finds the functions of those it depends on too.
  const auto get = reinterpret_cast<int (*)()>(library.symbol("omp_get_max_threads"));
  const auto set = reinterpret_cast<void (*)(int)>(library.symbol("omp_set_num_threads"));
  if (get != nullptr && set != nullptr) {
    out.omp_get_max_threads = get;
    out.omp_set_num_threads = set;
  }
  return {};
}

/// The structures of the interface are those of the header's version: a minor version may only add.
Result<std::string> checked_version(const Library& library) {
  const dnnl_version_t& found = *library.version();
  const std::string text = cat(found.major, ".", found.minor, ".", found.patch);
  if (found.major != DNNL_VERSION_MAJOR || found.minor < DNNL_VERSION_MINOR)
    return Error(ErrorCode::unsupported,
                 cat(library_name, " is oneDNN ", text, ", expected ", DNNL_VERSION_MAJOR, ".",
                     DNNL_VERSION_MINOR, " or a later ", DNNL_VERSION_MAJOR, ".x"));
  return text;
}

Result<const OneDnn*> try_open() {
  const ForeignOpening opening;
  if (!opening.is_inside())
    return Error(ErrorCode::unsupported,
                 "nothing is opened while the program ends, nor in the child of a fork");
  const SharedLibrary opened = TESSERA_TRY(SharedLibrary::open("oneDNN", std::span(&library_name, 1)));
  // Lives as long as the program: primitives may be destroyed by destructors of static objects.
  auto library = std::make_unique<Library>();
  TESSERA_TRY(load(*library, opened));
  std::string version = TESSERA_TRY(checked_version(*library));
  TESSERA_TRY(library->check(library->engine_create(&library->engine, dnnl_cpu, 0), "an engine"));
  TESSERA_TRY(library->check(
      library->stream_create(&library->stream, library->engine, dnnl_stream_default_flags), "a stream"));
  return new OneDnn(*library.release(), std::move(version));
}

}  // namespace

Result<void> OneDnn::Library::check(dnnl_status_t status, const char* what) const {
  if (status == dnnl_success) return {};
  const auto code = status == dnnl_out_of_memory ? ErrorCode::memory : ErrorCode::device;
  return Error(code, cat("oneDNN: ", what, ": ", status2str(status)));
}

Result<const OneDnn*> OneDnn::open() {
  static auto& opened = *new Once<const OneDnn*>;  // never destroyed
  return opened.get(&try_open);
}
