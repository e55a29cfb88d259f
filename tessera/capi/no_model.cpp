// The models of a build without ONNX: there are none.
#include "tessera/capi/gate.h"
#include "tessera/capi/tessera.h"

using namespace tessera::capi;

namespace {

int missing(const char* function) noexcept {
  return guard(function, [] {
    fail(TSR_ERROR_INVALID_OPERATION,
         "this build has no ONNX: install libonnx-dev and libprotobuf-dev, configure with TESSERA_ONNX=ON");
  });
}

}  // namespace

int tsr_model_load_onnx(const char*, tsr_engine, tsr_model*) noexcept {
  return missing("tsr_model_load_onnx");
}
int tsr_model_free(tsr_model) noexcept { return missing("tsr_model_free"); }
int tsr_model_get_inputs(tsr_model, tsr_model_value*, int, int*) noexcept {
  return missing("tsr_model_get_inputs");
}
int tsr_model_get_outputs(tsr_model, tsr_model_value*, int, int*) noexcept {
  return missing("tsr_model_get_outputs");
}
int tsr_model_call(tsr_model, const tsr_tensor*, int, tsr_tensor*, int) noexcept {
  return missing("tsr_model_call");
}
