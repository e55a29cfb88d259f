#include <algorithm>

#include "tessera/runtime/cuda/kernel_text.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

/// Every thread computes some vectors of elements. All its loads come first, so that they are under way
/// together, and so that a result may stand in place of an input.
class ElementText : KernelText {
 public:
  explicit ElementText(const BoundKernel& bound)
      : KernelText(bound),
        axes_(binding_.outer.size()),
        last_(axes_ == 0 ? 0 : axes_ - 1),
        width_(choose_width()),
        unroll_(choose_unroll()) {}

  Result<StepProgram> generate() {
    TESSERA_TRY(write_all(passes_.uniforms));
    const Pass& pass = passes_.passes[0];
    const std::vector<std::uint32_t> loads = bound_.loaded_operands(pass.elements);
    write_reciprocals(pass.elements);
    const std::int64_t points = binding_.outer_points(), vectors = points / width_;
    add_index("count", vectors);
    if (unroll_ > 1) add_int("vectors", vectors_per_thread(vectors));
    line("const index first = (index)blockIdx.x * (index)(",
         unroll_ > 1 ? "blockDim.x * vectors" : "blockDim.x", ") + (index)threadIdx.x;");
    write_loads(loads);
    TESSERA_TRY(write_body(pass, loads));
    if (axes_ == 1 && width_ > 1) TESSERA_TRY(write_tail(pass, loads, points % width_));
    const std::int64_t per_block =
        std::int64_t{usual_threads} * (unroll_ > 1 ? vectors_per_thread(vectors) : 1);
    const auto blocks = static_cast<std::uint32_t>(std::max<std::int64_t>(1, divided_up(vectors, per_block)));
    return StepProgram{{launch("elements", {blocks, 1, 1}, {usual_threads, 1, 1}, usual_threads)}, {}, {}};
  }

 private:
  [[nodiscard]] unsigned choose_width() const {
    if (axes_ == 0 || body_.size() > 600 || bound_.load_count() > 16) return 1;
    return bound_.vector_width(last_, axes_ == 1);
  }
  /// As many as keep memory busy; long bodies do that by themselves, and would become long code.
  [[nodiscard]] unsigned choose_unroll() const {
    if (body_.size() > 200 || bound_.load_count() > 4) return 1;
    return body_.size() > 60 || bound_.load_count() > 2 ? 2 : 4;
  }
  /// Small arrays are spread over as many blocks as there can be.
  [[nodiscard]] std::int64_t vectors_per_thread(std::int64_t vectors) const {
    return vectors >= std::int64_t{usual_threads} * unroll_ * many_blocks ? unroll_ : 1;
  }

  [[nodiscard]] unsigned lanes_of(std::size_t operand) const {
    return axes_ == 0 ? 1 : width_of(operand, last_, width_);
  }
  [[nodiscard]] std::string vector_of(std::uint32_t operand) const {
    return unroll_ > 1 ? cat("a", operand, "[k]") : cat("a", operand);
  }
  [[nodiscard]] std::string operand_offset(std::size_t operand) { return offset(operand, 0, axes_, width_); }
  void open_vectors() {
    if (unroll_ > 1) {
      line("#pragma unroll\nfor (int k = 0; k < ", unroll_, "; ++k) {");
      line("const index i = first + k * (index)blockDim.x;");
      line("if (k < (int)vectors && i < count) {");
    } else {
      line("const index i = first;\nif (i < count) {");
    }
    split_index("i", 0, axes_, width_);
  }

  void close_vectors() { line(unroll_ > 1 ? "}\n}" : "}"); }

  void write_loads(std::span<const std::uint32_t> loads) {
    for (const std::uint32_t i : loads)
      line("Vector<", element_type(i), ", ", lanes_of(i), "> a", i, unroll_ > 1 ? cat("[", unroll_, "]") : "",
           ";");
    if (unroll_ == 1) return;
    open_vectors();
    for (const std::uint32_t i : loads) write_load(i);
    close_vectors();
    start_next();
  }
  void write_load(std::uint32_t operand) {
    line("load(", vector_of(operand), ", p", operand, " + (", operand_offset(operand), "));");
  }

  Result<void> write_body(const Pass& pass, std::span<const std::uint32_t> loads) {
    open_vectors();
    for (const std::uint32_t i : loads) {
      if (unroll_ == 1) write_load(i);
      elements_[i] = cat(vector_of(i), ".at[", lanes_of(i) > 1 ? "j" : "0", "]");
    }
    if (unroll_ == 1) start_next();
    for (const std::uint32_t number : pass.stores) {
      const std::size_t operand = kernel_.stores[number].operand;
      line("Vector<", element_type(operand), ", ", lanes_of(operand), "> b", operand, ";");
    }
    if (width_ > 1) {
      line("#pragma unroll\nfor (int j = 0; j < ", width_, "; ++j) {");
      set_place(last_, cat(coordinate(last_), " * ", width_, " + j"));
    }
    TESSERA_TRY(write_all(pass.elements));
    for (const std::uint32_t number : pass.stores) {
      const Store& store = kernel_.stores[number];
      line("b", store.operand, ".at[", lanes_of(store.operand) > 1 ? "j" : "0", "] = ", narrowed(store), ";");
    }
    if (width_ > 1) line("}");
    for (const std::uint32_t number : pass.stores) {
      const std::size_t i = kernel_.stores[number].operand;
      line("store(p", i, " + (", operand_offset(i), "), b", i, ");");
    }
    close_vectors();
    return {};
  }

  /// The elements behind the last whole vector, one by one.
  Result<void> write_tail(const Pass& pass, std::span<const std::uint32_t> loads, std::int64_t size) {
    add_int("tail", size);
    line("if (blockIdx.x == 0 && threadIdx.x < tail) {");
    line("const index i = count * ", width_, " + (index)threadIdx.x;");
    set_place(last_, "i");
    for (const std::uint32_t i : loads) elements_[i] = cat("p", i, lanes_of(i) > 1 ? "[i]" : "[0]");
    TESSERA_TRY(write_all(pass.elements));
    for (const std::uint32_t number : pass.stores) {
      const Store& store = kernel_.stores[number];
      line("p", store.operand, lanes_of(store.operand) > 1 ? "[i]" : "[0]", " = ", narrowed(store), ";");
    }
    line("}");
    return {};
  }

  const std::size_t axes_, last_;
  const unsigned width_, unroll_;
};

}  // namespace

Result<StepProgram> tessera::runtime::cuda::element_program(const BoundKernel& bound) {
  return ElementText(bound).generate();
}
