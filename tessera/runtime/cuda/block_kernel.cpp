#include "tessera/runtime/cuda/block_kernel.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

class BlockKernel : KernelText {
 public:
  BlockKernel(const BoundKernel& bound, SourceDraft& draft, std::string prefix,
              std::span<const std::string> arrays, std::uint32_t counter, std::string_view counter_name)
      : KernelText(bound, draft, std::move(prefix), arrays),
        first_(bound.outer_count()),
        axes_(binding_.reduced.size()),
        counter_(counter),
        counter_name_(counter_name) {}

  Result<std::string> generate() {
    name_counter();
    TESSERA_TRY(write_all(passes_.uniforms));
    add_index("points", binding_.outer_points());
    if (kernel_.reduces())
      TESSERA_TRY(write_reductions());
    else
      TESSERA_TRY(write_elements());
    return part();
  }

  Result<std::string> generate_loop(const PointLoop& loop) {
    const Pass& pass = passes_.passes[0];
    add_index("points", binding_.outer_points());
    line("for (index i = (index)threadIdx.x; i < points; i += (index)blockDim.x) {");
    split_index("i", 0, first_, 1);
    for (const std::uint32_t number : pass.stores)
      line(state_type(number), " state", number, " = ", lasting(loop, number), ";");
    line(loop.head);
    name_counter();
    name_states(loop);
    TESSERA_TRY(write_all(passes_.uniforms));
    write_reciprocals(pass.elements);
    for (const std::uint32_t i : loaded_operands(pass.elements))
      if (!is_counter(i)) elements_[i] = cat("p", i, "[", offset(i, 0, first_, 1), "]");
    name_states(loop);
    TESSERA_TRY(write_all(pass.elements));
    for (const std::uint32_t number : pass.stores)
      line("const ", state_type(number), " next_state", number, " = ", narrowed(kernel_.stores[number]), ";");
    for (const std::uint32_t number : pass.stores) line("state", number, " = next_state", number, ";");
    line("}");
    for (const std::uint32_t number : pass.stores) line(lasting(loop, number), " = state", number, ";");
    line("}");
    return part();
  }

 private:
  // ---- a loop at each point

  [[nodiscard]] std::string_view state_type(std::uint32_t store) const {
    return element_type(kernel_.stores[store].operand);
  }
  /// The element that a store is about, where it lies before and after the loop.
  [[nodiscard]] std::string lasting(const PointLoop& loop, std::uint32_t store) const {
    const std::uint32_t result =
        kernel_.operands[kernel_.stores[store].operand].argument - kernel_.input_count;
    return cat("((", state_type(store), "*)", loop.carried[result], ")[i]");
  }
  void name_states(const PointLoop& loop) {
    for (std::size_t i = 0; i < kernel_.operands.size(); ++i)
      for (std::uint32_t number = 0; number < kernel_.stores.size(); ++number) {
        const std::uint32_t result =
            kernel_.operands[kernel_.stores[number].operand].argument - kernel_.input_count;
        if (kernel_.operands[i].argument == loop.first_carried + result) elements_[i] = cat("state", number);
      }
  }

  [[nodiscard]] bool is_counter(std::size_t operand) const {
    return kernel_.operands[operand].argument == counter_;
  }
  void name_counter() {
    for (std::size_t i = 0; i < kernel_.operands.size(); ++i)
      if (is_counter(i)) elements_[i] = counter_name_;
  }

  Result<void> write_elements() {
    const Pass& pass = passes_.passes[0];
    write_reciprocals(pass.elements);
    line("for (index i = (index)threadIdx.x; i < points; i += (index)blockDim.x) {");
    split_index("i", 0, first_, 1);
    for (const std::uint32_t i : loaded_operands(pass.elements))
      if (!is_counter(i)) elements_[i] = cat("p", i, "[", offset(i, 0, first_, 1), "]");
    TESSERA_TRY(write_all(pass.elements));
    for (const std::uint32_t number : pass.stores) {
      const Store& store = kernel_.stores[number];
      line("p", store.operand, "[", offset(store.operand, 0, first_, 1), "] = ", narrowed(store), ";");
    }
    line("}");
    return {};
  }

  // ---- reductions: a thread for each of many outer points, or all threads for one after another

  [[nodiscard]] bool has_thread_per_point() const { return binding_.outer_points() >= 32; }

  Result<void> write_reductions() {
    add_index("count", binding_.reduced_points());
    if (has_thread_per_point())
      line(
          "const index rank = 0, step = 1;\n"
          "for (index point = (index)threadIdx.x; point < points; point += (index)blockDim.x) {");
    else
      line(
          "const index rank = (index)threadIdx.x, step = (index)blockDim.x;\n"
          "for (index point = 0; point < points; ++point) {");
    split_index("point", 0, first_, 1);
    move_to_outer_point();
    name_counter();
    for (std::size_t p = 0; p < passes_.passes.size(); ++p) TESSERA_TRY(write_pass(p));
    TESSERA_TRY(write_all(passes_.last_rows));
    for (const std::uint32_t number : passes_.row_stores)
      line("if (rank == 0) r", kernel_.stores[number].operand, "[0] = ", narrowed(kernel_.stores[number]),
           ";");
    line("}");
    return {};
  }

  Result<void> write_pass(std::size_t p) {
    const Pass& pass = passes_.passes[p];
    TESSERA_TRY(write_all(pass.rows));
    if (pass.reductions.empty() && pass.stores.empty()) return {};
    for (const ValueId value : pass.reductions) {
      line(wide_type(wide(value)), " v", value, " = ", scalar_.neutral(body_[value].opcode, wide(value)),
           ";");
      values_[value] = cat("v", value);
    }
    const std::vector<ValueId> elements =
        elements_for(pass.reductions, pass.stores, std::vector<bool>(body_.size(), false));
    line("for (index i = rank; i < count; i += step) {");
    split_index("i", first_, axes_, 1);
    for (const std::uint32_t i : loaded_operands(elements))
      if (!is_counter(i)) elements_[i] = cat("r", i, "[", offset(i, first_, axes_, 1), "]");
    TESSERA_TRY(write_all(elements));
    for (const ValueId value : pass.reductions) {
      const ValueId of = body_[value].operands[0];
      const std::string element =
          wide(of) == wide(value) ? values_[of] : scalar_.cast(values_[of], wide(of), wide(value));
      const std::string next = TESSERA_TRY(joined(body_[value].opcode, wide(value), values_[value], element));
      line(values_[value], " = ", next, ";");
    }
    for (const std::uint32_t number : pass.stores) {
      const Store& store = kernel_.stores[number];
      line("r", store.operand, "[", offset(store.operand, first_, axes_, 1), "] = ", narrowed(store), ";");
    }
    line("}");
    if (!has_thread_per_point())
      for (const ValueId value : pass.reductions) TESSERA_TRY(join_threads(value));
    return {};
  }

  Result<void> join_threads(ValueId value) {
    const std::string name = cat("v", value), type(wide_type(wide(value)));
    TESSERA_TRY(join_lanes(value, name, "16"));
    line("__syncthreads();");
    line("if ((rank & 31) == 0) ((", type, "*)parts)[rank >> 5] = ", name, ";\n__syncthreads();");
    line(name, " = (rank & 31) < step >> 5 ? ((", type,
         "*)parts)[rank & 31] : ", scalar_.neutral(body_[value].opcode, wide(value)), ";");
    return join_lanes(value, name, "16");
  }

  const std::size_t first_, axes_;
  const std::uint32_t counter_;
  const std::string counter_name_;
};

}  // namespace

Result<std::string> tessera::runtime::cuda::block_kernel(const BoundKernel& bound, SourceDraft& draft,
                                                         std::string prefix,
                                                         std::span<const std::string> arrays,
                                                         std::uint32_t counter,
                                                         std::string_view counter_name) {
  return BlockKernel(bound, draft, std::move(prefix), arrays, counter, counter_name).generate();
}

Result<std::string> tessera::runtime::cuda::point_loop(const BoundKernel& bound, SourceDraft& draft,
                                                       std::string prefix,
                                                       std::span<const std::string> arrays,
                                                       std::uint32_t counter, std::string_view counter_name,
                                                       const PointLoop& loop) {
  return BlockKernel(bound, draft, std::move(prefix), arrays, counter, counter_name).generate_loop(loop);
}
