// Calls of libraries on a stream as an op: what a function queues is captured once and becomes a part of the
// plan's graph. It is captured again when pointers, sizes or numbers change.
//
//   const ts::Captured fft = ts::captured({.name = "fft", .parameters = {ts::parameter::read("x"),
//                                                                        ts::parameter::write("y")},
//                                          .capture = [](const ts::StreamCall& call) {
//     library_fft(call.data<float>(0), call.data<float>(1), call.shape(0)[0], cudaStream_t(call.stream()));
//   }});
#pragma once

#include "tessera/tensor/device_op.h"

namespace tessera {

using StreamCall = op::StreamCall;

struct CapturedOptions {
  std::string name;  ///< letters, digits and _; none of the catalogue
  /// Numbers are given by value, and a new value is a new capture; those of parameter::device_scalar() are
  /// pointers to the number in the memory of the device, and nothing is captured again.
  DeviceParameters parameters = {};
  /// Queues work on the stream and waits for nothing. May be called at any evaluation, on any thread, also
  /// several times for one. What it throws, and what must not be done while a stream is captured, is an error
  /// of the evaluation. On devices that compute on the host the stream is null, and what is asked for has to
  /// be done when it returns.
  std::function<void(const StreamCall& call)> capture = nullptr;
  /// The gradients of the arguments, as in custom_gradient(); for ops with one result.
  GradientRule gradient = nullptr;
};

class Captured : public DeviceOp {
 private:
  friend Captured captured(CapturedOptions options, Here here);
  using DeviceOp::DeviceOp;
};

/// Registers an op. Throws if the name is taken, or if options do not make sense. Thread-safe.
[[nodiscard]] Captured captured(CapturedOptions options, Here here = {});

}  // namespace tessera
