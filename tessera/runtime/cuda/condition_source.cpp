#include "tessera/runtime/cuda/condition_source.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/kernel/build.h"
#include "tessera/runtime/cuda/block_kernel.h"
#include "tessera/runtime/cuda/early_start.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

/// More points than this are looked at faster by many blocks.
constexpr std::int64_t most_points = 16 << 10;

/// The driver has the function; it is linked when the code is loaded.
constexpr std::string_view declaration =
    "extern \"C\" __device__ void cudaGraphSetConditional(unsigned long long, unsigned int);\n";

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

constexpr std::string_view unsigned_type(std::size_t bytes) {
  return bytes == 8 ? "unsigned long long" : bytes == 4 ? "unsigned int" : "unsigned short";
}

/// The type that `at` points to.
std::string_view deciding_type(ir::Dtype dtype) {
  return ir::is_float(dtype) ? unsigned_type(ir::size_of(dtype)) : integer_type(dtype);
}

/// What is at `at`, as a long long. A float is 0 if nothing but its sign is set.
std::string_view deciding_number(ir::Dtype dtype) {
  if (!ir::is_float(dtype)) return "((long long)*at)";
  return ir::size_of(dtype) == 8   ? "((*at << 1) != 0ull ? 1ll : 0ll)"
         : ir::size_of(dtype) == 4 ? "((*at & 0x7fffffffu) != 0u ? 1ll : 0ll)"
                                   : "((*at & 0x7fff) != 0 ? 1ll : 0ll)";
}

std::string_view access_type(std::uint32_t width) {
  return width == 16 ? "uint4" : width == 4 ? "unsigned int" : "unsigned char";
}

SourceRef source_of(std::string entry, std::string_view parameters, std::string_view body) {
  Source out;
  out.text = cat(declaration, begin_text(), "extern \"C\" __global__ void ", entry,
                 "(unsigned long long condition, ", parameters, ") {\n  start_next();\n  begin_kernel();\n",
                 body, "}\n");
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

/// The last thread decides: where there is little to copy it has nothing else to do. What it decides by is
/// asked for before anything is copied: each access takes as long as the copy, and the compiler must not move
/// one over a store.
constexpr std::string_view count_turns = R"(  const bool decides = threadIdx.x + 1 == blockDim.x;
  const long long over = !decides || is_first ? 0 : *turns + 1;
)";
std::string read_flag(std::string_view number) {
  return cat("  const bool is_true = decides && ", number, " != 0;\n");
}
constexpr std::string_view read_count = "  const bool again = decides && over < (long long)*at;\n";

constexpr std::string_view note_turn = "  if (!decides) return;\n  *turns = over;\n";
constexpr std::string_view while_end = R"(  const bool again = is_true && over != limit;
  if (is_true && !again) status[1] = 1;
)";

}  // namespace

SourceRef tessera::runtime::cuda::branch_source(ir::Dtype flag) {
  return source_of("choose", cat("const ", deciding_type(flag), "* at"),
                   cat("  cudaGraphSetConditional(condition, ", deciding_number(flag), " != 0 ? 0 : 1);\n"));
}

SourceRef tessera::runtime::cuda::choice_source(ir::Dtype index) {
  return source_of(
      "choose", cat("const ", deciding_type(index), "* at, unsigned int count"),
      cat("  const unsigned long long index = (unsigned long long)", deciding_number(index),
          ";\n  cudaGraphSetConditional(condition, index < count ? (unsigned int)index : count - 1);\n"));
}

SourceRef tessera::runtime::cuda::while_source(ir::Dtype flag, std::span<const CarriedBytes> carried) {
  return source_of(
      "turn",
      cat("const ", deciding_type(flag),
          "* at, long long* turns, unsigned int is_first, long long limit, unsigned long long* status",
          carried_parameters(carried)),
      cat(count_turns, computed_mark, read_flag(deciding_number(flag)), copies(carried), note_turn, while_end,
          decided_mark));
}

SourceRef tessera::runtime::cuda::limited_for_source(ir::Dtype count, std::optional<ir::Dtype> index) {
  const std::string_view type = !index                     ? ""
                                : *index == ir::Dtype::f64 ? "double"
                                : *index == ir::Dtype::f32 ? "float"
                                                           : integer_type(*index);
  const std::string parameter = index ? cat(", ", type, "* index") : "";
  const std::string note = index ? cat("  if (again) *index = (", type, ")over;\n") : "";
  return source_of(
      "turn",
      cat("const ", deciding_type(count),
          "* at, long long* turns, unsigned int is_first, long long limit, unsigned long long* status",
          parameter),
      cat(count_turns, "  const long long count = ", deciding_number(count), ";\n", note_turn,
          R"(  const bool again = over < count && count <= limit;
  if (count > limit) {
    status[1] = 1;
    status[2] = (unsigned long long)count;
  }
)",
          note, decided_mark));
}

SourceRef tessera::runtime::cuda::for_source(ir::Dtype count, std::span<const CarriedBytes> carried) {
  return source_of("turn",
                   cat("const ", integer_type(count), "* at, long long* turns, unsigned int is_first",
                       carried_parameters(carried)),
                   cat(count_turns, read_count, computed_mark, copies(carried), note_turn, decided_mark));
}

namespace {

Argument memory(Memory::Kind kind, std::size_t index) {
  return {.kind = Argument::Kind::memory, .memory = {kind, static_cast<std::uint32_t>(index), 0}};
}

/// The condition on these inputs, for all threads of a block: each has it in `holds`.
Result<std::string> block_condition(const ir::Function& condition, std::span<const op::Array> inputs,
                                    SourceDraft& draft, std::int64_t& points) {
  const kernel::Kernel kernel = TESSERA_TRY(kernel::build(condition));
  const op::Array flag{ir::Dtype::boolean, op::contiguous({}), reinterpret_cast<std::byte*>(16)};
  kernel::Binding binding;
  TESSERA_TRY(kernel::bind(kernel, inputs, {&flag, 1}, binding));
  const kernel::Passes passes = kernel::find_passes(kernel);
  const BoundKernel bound = bound_kernel(kernel, passes, binding, inputs, {&flag, 1});
  points = std::max(binding.outer_points(), binding.reduced_points());
  if (points > most_points || !bound.has_small_indices() || binding.is_empty)
    return Error(ErrorCode::unsupported, "a condition that is not for one block");
  std::vector<std::string> arrays;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    arrays.push_back(cat("g", i));
    draft.add_argument("const unsigned char*", arrays.back(), memory(Memory::Kind::input, i));
  }
  arrays.emplace_back("((unsigned char*)parts)");
  return block_value(bound, draft, {.prefix = "k_", .arrays = arrays}, "holds");
}

}  // namespace

Result<StepProgram> tessera::runtime::cuda::checking_turn(const ir::Function& condition,
                                                          std::span<const op::Array> inputs,
                                                          std::int64_t limit,
                                                          std::span<const CarriedBytes> carried) {
  SourceDraft draft;
  draft.add_argument("unsigned long long", "condition", {});
  draft.add_argument("long long*", "turns", memory(Memory::Kind::result, 0));
  draft.add_argument("unsigned long long*", "status", memory(Memory::Kind::result, 1));
  draft.add_argument("long long", "limit", {.bits = static_cast<std::uint64_t>(limit)});
  for (std::size_t i = 0; i < carried.size(); ++i) {
    const std::string type(access_type(carried[i].width));
    draft.add_argument(cat(type, "*"), cat("to", i), memory(Memory::Kind::result, 2 + carried[i].value));
    draft.add_argument(cat("const ", type, "*"), cat("from", i),
                       memory(Memory::Kind::input, carried[i].value));
  }
  std::int64_t points = 1;
  const std::string text = TESSERA_TRY(block_condition(condition, inputs, draft, points));
  StepProgram out;
  out.launches.push_back(draft.launch(
      "turn",
      cat(block_parts, "const bool is_first = false;\nbool holds;\n", count_turns, computed_mark, text,
          copies(carried), "  const bool is_true = decides && holds;\n", note_turn, while_end, decided_mark),
      true, 1024));
  Launch& launch = out.launches.back();
  Source source = *launch.source;
  source.text = cat(declaration, source.text);
  launch.source = std::make_shared<const Source>(std::move(source));
  launch.block.x =
      std::max(turn_threads(carried),
               static_cast<std::uint32_t>(std::clamp<std::int64_t>((points + 31) / 32 * 32, 32, 1024)));
  return out;
}

std::uint32_t tessera::runtime::cuda::turn_threads(std::span<const CarriedBytes> carried) {
  std::int64_t most = 1;
  for (const CarriedBytes& one : carried) most = std::max(most, one.bytes / one.width);
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>((most + 31) / 32 * 32, 32, 1024));
}
