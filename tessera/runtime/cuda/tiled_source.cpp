#include <algorithm>

#include "tessera/runtime/cuda/kernel_text.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

constexpr unsigned tile_side = 32, rows_at_once = 8;

/// Tiles over the last two axes. Operands that are contiguous along the one before the last are read along it
/// into shared memory, and used along the last.
class TiledText : KernelText {
 public:
  explicit TiledText(const BoundKernel& bound)
      : KernelText(bound), outer_(binding_.outer.size() - 2), across_(outer_), along_(outer_ + 1) {}

  Result<StepProgram> generate() {
    const Pass& pass = passes_.passes[0];
    TESSERA_TRY(write_all(passes_.uniforms));
    const std::int64_t tiles_along = divided_up(bound_.size_of_axis(along_), tile_side);
    const std::int64_t tiles_across = divided_up(bound_.size_of_axis(across_), tile_side);
    std::int64_t others = 1;
    for (std::size_t axis = 0; axis < outer_; ++axis) others *= bound_.size_of_axis(axis);
    add_index("size_along", bound_.size_of_axis(along_));
    add_index("size_across", bound_.size_of_axis(across_));
    add_index("tiles_along", tiles_along);
    add_index("tiles_across", tiles_across);
    line("const unsigned x = threadIdx.x, y = threadIdx.y;");
    line("const index number = (index)blockIdx.x, line_of_tiles = number / tiles_along;");
    line("const index other = line_of_tiles / tiles_across;");
    line("const index along = (number - line_of_tiles * tiles_along) * ", tile_side, ";");
    line("const index across = (line_of_tiles - other * tiles_across) * ", tile_side, ";");
    split_index("other", 0, outer_, 1);
    load_tiles(pass);
    TESSERA_TRY(write_points(pass));
    const auto blocks = static_cast<std::uint32_t>(tiles_along * tiles_across * others);
    return StepProgram{
        {launch("tiles", {blocks, 1, 1}, {tile_side, rows_at_once, 1}, tile_side * rows_at_once)}, {}, {}};
  }

 private:
  [[nodiscard]] bool is_across(std::size_t operand) const {
    return binding_.stride(operand, across_) == 1 && bound_.varies(operand, along_) &&
           binding_.stride(operand, along_) != 1;
  }

  /// Opens a loop over a fourth of the tile, with the indices along both axes.
  void open_points(std::string_view along_index, std::string_view across_index) {
    line("#pragma unroll\nfor (int k = 0; k < ", tile_side, "; k += ", rows_at_once, ") {");
    line("const index ", coordinate(along_), " = along + (index)(", along_index, ");");
    line("const index ", coordinate(across_), " = across + (index)(", across_index, ");");
    line("if (", coordinate(along_), " < size_along && ", coordinate(across_), " < size_across) {");
    set_place(along_, coordinate(along_));
    set_place(across_, coordinate(across_));
  }

  void load_tiles(const Pass& pass) {
    // So many fit into shared memory; the others are read as they lie.
    std::size_t bytes = 0;
    for (const std::uint32_t i : bound_.loaded_operands(pass.elements)) {
      const std::size_t more = tile_side * (tile_side + 1) * ir::size_of(kernel_.operands[i].dtype);
      if (!is_across(i) || bytes + more > 40 * 1024) continue;
      bytes += more;
      tiled_.push_back(i);
      line("__shared__ ", element_type(i), " tile", i, "[", tile_side, "][", tile_side + 1, "];");
    }
    open_points("y + k", "x");
    for (const std::uint32_t i : tiled_)
      line("tile", i, "[y + k][x] = p", i, "[", offset(i, 0, outer_ + 2, 1), "];");
    line("}\n}\n__syncthreads();");
  }

  Result<void> write_points(const Pass& pass) {
    write_reciprocals(pass.elements);
    open_points("x", "y + k");
    for (const std::uint32_t i : bound_.loaded_operands(pass.elements)) {
      const bool is_tiled = std::find(tiled_.begin(), tiled_.end(), i) != tiled_.end();
      elements_[i] =
          is_tiled ? cat("tile", i, "[x][y + k]") : cat("p", i, "[", offset(i, 0, outer_ + 2, 1), "]");
    }
    TESSERA_TRY(write_all(pass.elements));
    for (const std::uint32_t number : pass.stores) {
      const Store& store = kernel_.stores[number];
      line("p", store.operand, "[", offset(store.operand, 0, outer_ + 2, 1), "] = ", narrowed(store), ";");
    }
    line("}\n}");
    return {};
  }

  const std::size_t outer_, across_, along_;
  std::vector<std::uint32_t> tiled_;
};

/// The axis behind all but the last.
Binding with_axis_before_last(const Binding& from, std::size_t axis, std::size_t operands) {
  Binding out = from;
  const std::size_t axes = from.axis_count(), to = axes - 2;
  std::rotate(out.outer.begin() + axis, out.outer.begin() + axis + 1, out.outer.begin() + to + 1);
  for (std::size_t i = 0; i < operands; ++i) {
    const auto strides = out.strides.begin() + i * axes;
    std::rotate(strides + axis, strides + axis + 1, strides + to + 1);
  }
  return out;
}

}  // namespace

Result<StepProgram> tessera::runtime::cuda::tiled_program(const BoundKernel& bound, std::size_t axis) {
  const Binding binding = with_axis_before_last(bound.binding, axis, bound.kernel.operands.size());
  return TiledText(bound_kernel(bound.kernel, bound.passes, binding, bound.inputs, bound.results)).generate();
}
