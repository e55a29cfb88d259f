// Kernels of the program's own on a GPU: CUDA C++, PTX or a cubin. A call is recorded, planned and run like
// any op, and code that changes is loaded again.
//
//   const ts::Kernel scale({.name = "scale", .file = "scale.cu",
//                           .parameters = {ts::parameter::read("x", {.dtype = ts::f32}),
//                                          ts::parameter::write("y"), ts::parameter::scalar("by", 2.0),
//                                          ts::parameter::size("n", "dim(0, 0)")}});    // once
//   ts::Tensor y = scale(x, 3.0) + 1.0;                                                 // anywhere
//
// What is registered stays for the life of the process, and its name is taken: plans refer to it.
#pragma once

#include "tessera/tensor/device_op.h"

namespace tessera {

using CodeForm = op::CodeForm;

struct KernelOptions {
  std::string name;  ///< letters, digits and _; none of the catalogue
  /// Where the code is: a file, looked at in every evaluation, or a text. What it is follows from the end of
  /// the file's name (.ptx, .cubin, else CUDA C++) unless `form` says it.
  std::string file = {};
  std::string source = {};
  std::optional<CodeForm> form = {};
  std::string entry = {};  ///< the extern "C" __global__ function; empty: the name
  DeviceParameters parameters = {};
  /// Blocks, by a rule of 1 to 3 sizes: "[(N + 255) / 256]". Empty: a thread for each element of the first
  /// result.
  std::string grid = {};
  std::vector<std::int64_t> block = {256};
  std::int64_t shared_bytes = 0;  ///< dynamic shared memory of a block
  /// The gradients of the arguments, as in custom_gradient(); for kernels with one result.
  GradientRule gradient = nullptr;
};

/// On devices that are no GPUs an evaluation that needs the kernel is an error that names it. So is code that
/// does not compile, has no such entry or takes other parameters; if there was good code before, that goes on
/// and error() says what is wrong with the new.
class Kernel : public DeviceOp {
 public:
  /// Throws if the name is taken, or if options do not make sense. Thread-safe.
  explicit Kernel(KernelOptions options, Here here = {});

  /// The code is this text from the next evaluation on; a file is looked at no more.
  void set_source(std::string text, CodeForm form = CodeForm::cuda) const;
  /// What is wrong with the newest code, if earlier code goes on; else empty.
  [[nodiscard]] std::string error() const;
};

}  // namespace tessera
