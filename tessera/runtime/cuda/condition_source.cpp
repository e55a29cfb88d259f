#include "tessera/runtime/cuda/condition_source.h"

#include <algorithm>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

/// The driver has the function that sets a condition; it is linked when the code is loaded.
constexpr std::string_view head =
    R"(extern "C" __device__ void cudaGraphSetConditional(unsigned long long, unsigned int);
static __device__ __forceinline__ void begin_kernel() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
)";

std::string_view integer_type(ir::Dtype dtype) {
  const bool is_signed = dtype == ir::Dtype::i8 || dtype == ir::Dtype::i16 || dtype == ir::Dtype::i32;
  switch (ir::size_of(dtype)) {
    case 1:
      return is_signed ? "signed char" : "unsigned char";
    case 2:
      return is_signed ? "short" : "unsigned short";
    case 4:
      return is_signed ? "int" : "unsigned int";
    default:
      return "long long";
  }
}

std::string_view access_type(std::uint32_t width) {
  return width == 16 ? "uint4" : width == 4 ? "unsigned int" : "unsigned char";
}

SourceRef source_of(std::string entry, std::string_view parameters, std::string_view body) {
  Source out;
  out.text = cat(head, "extern \"C\" __global__ void ", entry, "(unsigned long long condition, ", parameters,
                 ") {\n  begin_kernel();\n", body, "}\n");
  out.entry = std::move(entry);
  out.waits = true;
  return std::make_shared<const Source>(std::move(out));
}

std::string carried_parameters(std::span<const CarriedBytes> carried) {
  std::string out;
  for (std::size_t i = 0; i < carried.size(); ++i)
    out += cat(", ", access_type(carried[i].width), "* to", i, ", const ", access_type(carried[i].width),
               "* from", i);
  return out;
}

/// Sizes are part of the text: a loop has few, and they tell the compiler what to unroll.
std::string copies(std::span<const CarriedBytes> carried) {
  std::string out;
  for (std::size_t i = 0; i < carried.size(); ++i)
    out += cat("  for (unsigned int i = threadIdx.x; i < ", carried[i].bytes / carried[i].width,
               "u; i += blockDim.x) to", i, "[i] = from", i, "[i];\n");
  return out;
}

constexpr std::string_view count_turns = R"(  if (threadIdx.x != 0) return;
  const long long over = is_first ? 0 : *turns + 1;
  *turns = over;
)";

}  // namespace

SourceRef tessera::runtime::cuda::branch_source() {
  return source_of("choose", "const unsigned char* at",
                   "  cudaGraphSetConditional(condition, *at != 0 ? 0 : 1);\n");
}

SourceRef tessera::runtime::cuda::choice_source(ir::Dtype index) {
  return source_of(
      "choose", cat("const ", integer_type(index), "* at, unsigned int count"),
      "  const unsigned long long index = (unsigned long long)(long long)*at;\n"
      "  cudaGraphSetConditional(condition, index < count ? (unsigned int)index : count - 1);\n");
}

SourceRef tessera::runtime::cuda::while_source(std::span<const CarriedBytes> carried) {
  return source_of("turn",
                   cat("const unsigned char* at, long long* turns, unsigned int is_first, long long limit, "
                       "unsigned long long* status",
                       carried_parameters(carried)),
                   cat(copies(carried), count_turns,
                       "  bool again = *at != 0;\n"
                       "  if (again && over == limit) {\n    status[1] = 1;\n    again = false;\n  }\n"
                       "  cudaGraphSetConditional(condition, again ? 1 : 0);\n"));
}

SourceRef tessera::runtime::cuda::for_source(ir::Dtype count, std::span<const CarriedBytes> carried) {
  return source_of("turn",
                   cat("const ", integer_type(count), "* at, long long* turns, unsigned int is_first",
                       carried_parameters(carried)),
                   cat(copies(carried), count_turns,
                       "  cudaGraphSetConditional(condition, over < (long long)*at ? 1 : 0);\n"));
}

std::uint32_t tessera::runtime::cuda::turn_threads(std::span<const CarriedBytes> carried) {
  std::int64_t most = 1;
  for (const CarriedBytes& one : carried) most = std::max(most, one.bytes / one.width);
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>((most + 31) / 32 * 32, 32, 1024));
}
