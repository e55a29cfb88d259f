#include "tessera/runtime/cuda/capture.h"

#include "tessera/base/text.h"
#include "tessera/runtime/cuda/gate.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

Result<void> queue_call(const CapturedCall& call, std::span<const std::uint64_t> values,
                        const Stream& stream) {
  std::vector<op::StreamCall::Argument> arguments;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const op::DeviceArgument& argument = call.call->arguments[i];
    op::StreamCall::Argument next{.name = argument.name, .dtype = call.arguments[i].dtype};
    next.shape = call.arguments[i].shape;
    next.is_number = !argument.is_pointer();
    if (next.is_number)
      next.bits = values[i];
    else
      next.pointer = reinterpret_cast<void*>(static_cast<std::uintptr_t>(values[i]));
    arguments.push_back(next);
  }
  return op::guarded(call.call->name,
                     [&] { call.call->capture(op::StreamCall(stream.handle(), arguments)); });
}

}  // namespace

Result<CapturedGraph> tessera::runtime::cuda::capture(const Context& context, const Stream& stream,
                                                      const std::function<Result<void>()>& queue) {
  const Driver& driver = context.driver();
  TESSERA_CUDA(driver, cuStreamBeginCapture, stream.handle(), CU_STREAM_CAPTURE_MODE_RELAXED);
  const auto queued = queue();
  CUgraph graph = nullptr;
  const CUresult ended = driver.cuStreamEndCapture(stream.handle(), &graph);
  CapturedGraph out(driver, graph);
  if (!queued) return queued.error();
  TESSERA_TRY(checked(driver, ended, "cuStreamEndCapture"));
  return out;
}

Result<CapturedGraph> tessera::runtime::cuda::capture_call(const Context& context, const Stream& stream,
                                                           const CapturedCall& call,
                                                           std::span<const std::uint64_t> values) {
  auto graph = capture(context, stream, [&] { return queue_call(call, values, stream); });
  if (graph) return graph;
  Error error = std::move(graph).error();
  // What a function throws says nothing about what the device can do.
  if (error.code() == ErrorCode::unsupported) error = Error(ErrorCode::device, error.message(), error.span());
  return std::move(error).note(cat("capturing '", call.call->name, "'")).at(call.at);
}

Result<void> tessera::runtime::cuda::queue_captured(const Context& context, const CapturedCall& call,
                                                    std::span<const std::uint64_t> values,
                                                    const Stream& stream) {
  const Driver& driver = context.driver();
  const auto capturing = TESSERA_TRY(Stream::create(context.shared_from_this()));
  const CapturedGraph graph = TESSERA_TRY(capture_call(context, *capturing, call, values));
  CUgraphExec executable = nullptr;
  TESSERA_CUDA(driver, cuGraphInstantiate, &executable, graph.handle(), 0);
  const CUresult launched = driver.cuGraphLaunch(executable, stream.handle());
  driver.cuGraphExecDestroy(executable);  // the driver frees it when the launch is done
  return checked(driver, launched, "cuGraphLaunch");
}
