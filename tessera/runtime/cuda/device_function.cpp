#include "tessera/runtime/cuda/device_function.h"

#include "tessera/base/text.h"
#include "tessera/runtime/cuda/gate.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

Result<void> load_module(const Driver& driver, std::span<const std::byte> code, CUmodule& module) {
  char log[4096] = {};
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log - 1)};
  const CUresult result = driver.cuModuleLoadDataEx(&module, code.data(), 2, options, values);
  auto done = checked(driver, result, "cuModuleLoadDataEx");
  if (done || log[0] == 0) return done;
  return Error(done.error().code(), cat(done.error().message(), "\n", log));
}

}  // namespace

Result<FunctionRef> Function::load(std::shared_ptr<const Stream> stream, std::span<const std::byte> code,
                                   const std::string& entry) {
  const Driver& driver = stream->context()->driver();
  CUmodule module = nullptr;
  TESSERA_TRY(load_module(driver, code, module));
  const std::shared_ptr<Function> out(new Function(std::move(stream), module));
  const CUresult found = driver.cuModuleGetFunction(&out->handle_, module, entry.c_str());
  if (found == CUDA_ERROR_NOT_FOUND)
    return Error(ErrorCode::not_found, cat("there is no function '", printable(shortened(entry, 200)),
                                           "' in it, or it is not extern \"C\" __global__"));
  TESSERA_TRY(checked(driver, found, "cuModuleGetFunction"));
  return FunctionRef(out);
}

Function::~Function() {
  const auto current = stream_->context()->enter();
  if (!current) return;
  static_cast<void>(stream_->wait().ok());  // what failed is told to others
  stream_->context()->driver().cuModuleUnload(module_);
}

Result<void> Function::allow_shared_bytes(std::uint32_t bytes) const {
  if (bytes == 0) return {};
  const std::lock_guard lock(mutex_);
  if (bytes <= shared_bytes_) return {};
  const Driver& driver = stream_->context()->driver();
  const std::uint32_t most = stream_->context()->limits().shared_bytes;
  int own = 0;  // what it declares counts, too
  TESSERA_CUDA(driver, cuFuncGetAttribute, &own, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, handle_);
  const auto declared = static_cast<std::uint32_t>(own);
  if (std::uint64_t{bytes} + declared > most)
    return Error(ErrorCode::invalid_argument, cat("a block with ", std::uint64_t{bytes} + declared,
                                                  " bytes of shared memory; the device has ", most));
  const bool asks = bytes + declared > usual_shared_bytes;
  const std::uint32_t allowed = (asks ? most : usual_shared_bytes) - declared;
  if (asks)
    TESSERA_CUDA(driver, cuFuncSetAttribute, handle_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                 static_cast<int>(allowed));
  shared_bytes_ = allowed;
  return {};
}
