#include "tessera/runtime/cuda/driver.h"

#include "tessera/base/once.h"
#include "tessera/base/program_end.h"
#include "tessera/base/text.h"
#include "tessera/runtime/cuda/gate.h"
#include "tessera/runtime/cuda/library.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

Result<const Driver*> try_open() {
  const ForeignOpening opening;
  if (!opening.is_inside())
    return Error(ErrorCode::unsupported,
                 "nothing is opened while the program ends, nor in the child of a fork");
  const SharedLibrary library = TESSERA_TRY(open_library("the CUDA driver", {"libcuda.so.1"}));
  // Lives as long as the program: the driver has state of its own that must not go first.
  auto* out = new Driver;
  std::string missing;
#define TESSERA_CUDA_TEXT(name) #name
#define TESSERA_CUDA_FIND(name) library.find(out->name, TESSERA_CUDA_TEXT(name), missing);
  TESSERA_CUDA_FUNCTIONS(TESSERA_CUDA_FIND)
#undef TESSERA_CUDA_FIND
#undef TESSERA_CUDA_TEXT
  library.find(out->event_elapsed_time, "cuEventElapsedTime", missing);
  std::string not_needed;
  library.find(out->function_parameter, "cuFuncGetParamInfo", not_needed);
  library.find(out->conditional_handle_create, "cuGraphConditionalHandleCreate", not_needed);
  library.find(out->add_any_node, "cuGraphAddNode_v2", not_needed);
  if (!missing.empty()) {
    delete out;
    return Error(ErrorCode::unsupported, cat("the CUDA driver is too old: it lacks", missing));
  }
  auto done = checked(*out, out->cuInit(0), "cuInit");
  if (done) return out;
  delete out;
  return std::move(done).error();
}

}  // namespace

Result<const Driver*> Driver::open() {
  static auto& opened = *new Once<const Driver*>;  // never destroyed
  return opened.get(&try_open);
}

bool Driver::has_conditionals() const {
  constexpr int first_with_choices = 12080;
  int number = 0;
  return conditional_handle_create != nullptr && add_any_node != nullptr &&
         cuDriverGetVersion(&number) == CUDA_SUCCESS && number >= first_with_choices;
}

std::string Driver::version() const {
  int number = 0;
  if (cuDriverGetVersion(&number) != CUDA_SUCCESS) return "unknown";
  return cat(number / 1000, ".", number % 1000 / 10);
}
