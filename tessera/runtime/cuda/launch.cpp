#include "tessera/runtime/cuda/launch.h"

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

std::string text_of(const Memory& memory) {
  constexpr std::string_view words[] = {"input", "result", "scratch", "status"};
  std::string out = cat(words[static_cast<std::size_t>(memory.kind)], memory.index);
  if (memory.byte != 0) out += cat("+", memory.byte);
  return out;
}

std::string text_of(const Argument& argument) {
  switch (argument.kind) {
    case Argument::Kind::memory:
      return text_of(argument.memory);
    case Argument::Kind::number:
      return cat("number", argument.slot, ":", argument.dtype);
    case Argument::Kind::plain:
      break;
  }
  return cat(argument.bits);
}

std::string_view text_of(Product::Activation activation) {
  constexpr std::string_view words[] = {"", ", relu", ", gelu"};
  return words[static_cast<std::size_t>(activation)];
}

/// "[64, 784] by 784, batch 0, 16": transposed, if its columns lie together.
std::string text_of(const Product::Operand& operand, std::int64_t rows, std::int64_t columns) {
  return cat("[", rows, ", ", columns, "]", operand.is_transposed ? "^T" : "", " by ", operand.leading,
             ", batch ", operand.batch, ", ", int{operand.alignment});
}

std::string text_of(const Extent3& extent) { return cat(extent.x, "x", extent.y, "x", extent.z); }

std::string text_of(const Launch& launch) {
  if (launch.kind == Launch::Kind::clear) return cat("clear ", text_of(launch.to), " ", launch.bytes);
  if (launch.kind == Launch::Kind::copy)
    return cat("copy ", text_of(launch.from), " to ", text_of(launch.to), " ", launch.bytes);
  if (launch.kind == Launch::Kind::product) {
    const Product& p = *launch.product;
    std::string out = cat("product ", p.dtype, " ", p.batch, "x", p.rows, "x", p.columns, "x", p.depth,
                          " of ", text_of(launch.arguments[0]), ", ", text_of(launch.arguments[1]), " to ",
                          text_of(launch.arguments[2]));
    if (p.finish.adds_bias) out += cat(" + ", text_of(launch.arguments[4]));
    if (p.finish.adds_array) out += cat(" + ", text_of(launch.arguments[5]));
    return out + std::string(text_of(p.finish.activation));
  }
  std::string out = launch.kind == Launch::Kind::captured
                        ? cat("captured ", launch.captured->call->name, "(")
                        : cat(launch.source->entry, "<<<", text_of(launch.grid), ", ", text_of(launch.block),
                              ", ", launch.shared_bytes, ">>>(");
  for (std::size_t i = 0; i < launch.arguments.size(); ++i)
    out += cat(i == 0 ? "" : ", ", text_of(launch.arguments[i]));
  return out + ")";
}

}  // namespace

bool tessera::runtime::cuda::is_empty(const Launch& launch) {
  if (launch.kind == Launch::Kind::product || launch.kind == Launch::Kind::captured) return false;
  if (launch.kind != Launch::Kind::kernel) return launch.bytes == 0;
  return launch.grid.x == 0 || launch.grid.y == 0 || launch.grid.z == 0;
}

std::string tessera::runtime::cuda::to_text(const Product& p) {
  return cat(p.batch, " ", p.dtype, " products (", text_of(p.a, p.rows, p.depth), ") x (",
             text_of(p.b, p.depth, p.columns), ") to (", text_of(p.c, p.rows, p.columns), ")",
             p.finish.scale == 1 ? std::string() : cat(" times ", p.finish.scale),
             p.finish.adds_bias ? " + bias" : "", p.finish.adds_array ? " + array" : "",
             text_of(p.finish.activation));
}

std::string tessera::runtime::cuda::to_text(const StepProgram& program) {
  std::string out;
  for (const Launch& launch : program.launches) out += text_of(launch) + "\n";
  return out;
}

std::optional<Error> tessera::runtime::cuda::error_of(const IndexCheck& check, const Status& found) {
  if (found.first == 0) return std::nullopt;
  if (check.axes.empty())
    return Error(ErrorCode::limit, cat("while: goes on after its limit of ", check.limit, " iterations"));
  const auto& [axis, size] = check.axes[(found.first - 1) % check.axes.size()];
  return Error(ErrorCode::invalid_argument, cat(check.op, ": index ", found.index, " is outside [", -size,
                                                ", ", size, ") for axis ", axis, " of size ", size));
}
