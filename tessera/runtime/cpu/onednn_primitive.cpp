#include <algorithm>
#include <thread>

#include "tessera/base/text.h"
#include "tessera/runtime/cpu/onednn_library.h"
#include "tessera/runtime/cpu/thread_pool.h"

using namespace tessera;
using namespace tessera::runtime::cpu;

// ---- packed weights

PackedWeights::PackedWeights(std::unique_ptr<State> state) : state_(std::move(state)) {}
PackedWeights::PackedWeights(PackedWeights&&) noexcept = default;
PackedWeights& PackedWeights::operator=(PackedWeights&&) noexcept = default;
PackedWeights::~PackedWeights() = default;
std::size_t PackedWeights::byte_size() const { return state_->bytes; }

namespace {

constexpr int column_axis = 1;

/// Runs after which a primitive is one of a loop.
constexpr std::uint32_t runs_until_hot = 16;

/// How many columns lie together in a block.
dnnl_dim_t block_columns(const dnnl_blocking_desc_t& blocking) {
  dnnl_dim_t out = 1;
  for (int i = 0; i < blocking.inner_nblks; ++i)
    if (blocking.inner_idxs[i] == column_axis) out *= blocking.inner_blks[i];
  return out;
}

/// Whether weights [depth, columns] lie block of columns by block of columns.
bool has_panels_of(const dnnl_memory_desc_t& form) {
  if (form.ndims != 2 || form.format_kind != dnnl_blocked || form.extra.flags != 0) return false;
  const dnnl_blocking_desc_t& blocking = form.format_desc.blocking;
  const dnnl_dim_t columns = block_columns(blocking);
  return columns > 1 && 64 % columns == 0 && blocking.strides[column_axis] == form.padded_dims[0] * columns;
}

/// The form of another number of columns in the same order.
dnnl_memory_desc_t with_columns(dnnl_memory_desc_t form, std::int64_t columns) {
  const dnnl_dim_t block = block_columns(form.format_desc.blocking);
  form.dims[column_axis] = columns;
  form.padded_dims[column_axis] = (columns + block - 1) / block * block;
  return form;
}

}  // namespace

bool PackedWeights::has_panels() const { return has_panels_of(state_->form); }

Result<PackedWeights> PackedWeights::panel(std::int64_t column, std::int64_t columns) const {
  const OneDnn::Library& library = state_->library;
  const dnnl_memory_desc_t form = with_columns(state_->form, columns);
  const dnnl_blocking_desc_t& blocking = form.format_desc.blocking;
  const std::int64_t offset = column / block_columns(blocking) * blocking.strides[column_axis];
  auto part = std::make_unique<State>(State{library, nullptr, 0, form, MemoryHandle(library)});
  TESSERA_TRY(library.check(
      library.memory_create(part->memory.out(), &form, library.engine,
                            state_->block.get() + offset * static_cast<std::int64_t>(sizeof(float))),
      "memory"));
  return PackedWeights(std::move(part));
}

// ---- forms and reorders

Result<dnnl_memory_desc_t> tessera::runtime::cpu::plain_form(const OneDnn::Library& library,
                                                             const OperandForm& form) {
  dnnl_dims_t sizes = {}, strides = {};
  std::copy(form.sizes.begin(), form.sizes.end(), sizes);
  std::copy(form.strides.begin(), form.strides.end(), strides);
  dnnl_memory_desc_t out;
  const auto status = library.memory_desc_init_by_strides(&out, static_cast<int>(form.sizes.size()), sizes,
                                                          dnnl_f32, strides);
  if (status != dnnl_success)
    return Error(ErrorCode::unsupported, cat("oneDNN takes no operand of sizes [", join(form.sizes, ", "),
                                             "] with strides [", join(form.strides, ", "), "]"));
  return out;
}

Result<OneDnnStep> tessera::runtime::cpu::reorder_step(const OneDnn::Library& library,
                                                       const dnnl_memory_desc_t& from, Slot from_slot,
                                                       const dnnl_memory_desc_t& to, Slot to_slot) {
  AttributesHandle attributes(library);
  TESSERA_TRY(library.check(library.primitive_attr_create(attributes.out()), "attributes of a reorder"));
  DescriptorHandle descriptor(library);
  TESSERA_TRY(library.check(library.reorder_primitive_desc_create(descriptor.out(), &from, library.engine,
                                                                  &to, library.engine, attributes.get()),
                            "a reorder"));
  OneDnnStep out{PrimitiveHandle(library), {{DNNL_ARG_FROM, from, from_slot}, {DNNL_ARG_TO, to, to_slot}}};
  TESSERA_TRY(library.check(library.primitive_create(out.primitive.out(), descriptor.get()), "a reorder"));
  return out;
}

// ---- primitives

Primitive::Primitive(std::unique_ptr<State> state) : state_(std::move(state)) {}
Primitive::~Primitive() = default;
const std::string& Primitive::implementation() const { return state_->implementation; }
std::size_t Primitive::scratch_bytes() const { return state_->scratch_bytes; }

bool Primitive::packs_panels() const { return has_panels_of(state_->weights_form); }

bool Primitive::shares_weights_with(const Primitive& other) const {
  return state_->library.memory_desc_equal(&state_->weights_form, &other.state_->weights_form) != 0;
}

bool Primitive::accepts(const PackedWeights& packed) const {
  return state_->library.memory_desc_equal(&state_->weights_form, &packed.state().form) != 0;
}

Result<PackedWeights> Primitive::pack(const float* weights, const OperandForm& from) const {
  const OneDnn::Library& library = state_->library;
  const OnCallingThread alone(library);
  const dnnl_memory_desc_t plain = TESSERA_TRY(plain_form(library, from));
  dnnl_memory_desc_t form = state_->weights_form;
  if (packs_panels()) form = with_columns(form, from.sizes.back());
  const std::size_t bytes = library.memory_desc_get_size(&form);
  auto packed = std::make_unique<PackedWeights::State>(
      PackedWeights::State{library, allocate_block(bytes), bytes, form, MemoryHandle(library)});
  TESSERA_TRY(library.check(
      library.memory_create(packed->memory.out(), &form, library.engine, packed->block.get()), "memory"));
  MemoryHandle source(library);
  TESSERA_TRY(library.check(
      library.memory_create(source.out(), &plain, library.engine, const_cast<float*>(weights)), "memory"));
  const OneDnnStep step = TESSERA_TRY(reorder_step(library, plain, Slot::source, form, Slot::weights));
  const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, source.get()}, {DNNL_ARG_TO, packed->memory.get()}};
  TESSERA_TRY(library.check(library.primitive_execute(step.primitive.get(), library.stream, 2, arguments),
                            "packing weights"));
  return PackedWeights(std::move(packed));
}

Result<void> Primitive::run(const PrimitiveOperands& operands, std::byte* scratch) const {
  const OnCallingThread alone(state_->library);
  auto binding = TESSERA_TRY(state_->take_binding());
  auto done = state_->run(*binding, operands, scratch);
  state_->give_back(std::move(binding));
  return done;
}

/// A thread that had no part in the first runs must not take memory in a later one.
void Primitive::State::give_back(std::unique_ptr<Binding> binding) {
  const std::lock_guard lock(mutex);
  free.push_back(std::move(binding));
  if (++runs != runs_until_hot) return;
  const std::size_t wanted = std::clamp(std::thread::hardware_concurrency(), 1U, most_threads);
  while (free.size() < wanted) {
    auto more = new_binding();
    if (!more) return;
    free.push_back(*std::move(more));
  }
}

Result<std::unique_ptr<Primitive::State::Binding>> Primitive::State::take_binding() {
  {
    const std::lock_guard lock(mutex);
    if (!free.empty()) {
      auto out = std::move(free.back());
      free.pop_back();
      return out;
    }
  }
  return new_binding();
}

Result<std::unique_ptr<Primitive::State::Binding>> Primitive::State::new_binding() const {
  auto out = std::make_unique<Binding>();
  for (const OneDnnStep& step : steps) {
    auto& arguments = out->arguments.emplace_back();
    for (const auto& argument : step.arguments) {
      if (argument.slot == Slot::weights && has_packed_weights) {
        arguments.push_back({argument.id, nullptr});  // they bring their own
        continue;
      }
      MemoryHandle memory(library);
      TESSERA_TRY(library.check(
          library.memory_create(memory.out(), &argument.form, library.engine, DNNL_MEMORY_NONE), "memory"));
      arguments.push_back({argument.id, memory.get()});
      out->held.push_back(std::move(memory));
    }
  }
  return out;
}

void* Primitive::State::address(Slot slot, const PrimitiveOperands& operands, std::byte* scratch) const {
  const auto written = [](const float* p) { return const_cast<float*>(p); };
  switch (slot) {
    case Slot::source:
      return written(operands.source);
    case Slot::weights:
      return written(operands.weights);
    case Slot::destination:
      return operands.destination;
    case Slot::bias:
      return written(operands.bias);
    case Slot::scale:
      return written(operands.scale);
    case Slot::residual:
      return written(operands.residual);
    case Slot::scratchpad:
    case Slot::own_source:
    case Slot::own_destination:
      break;
  }
  return scratch + scratch_offsets[static_cast<std::size_t>(slot)];
}

Result<void> Primitive::State::run(Binding& binding, const PrimitiveOperands& operands,
                                   std::byte* scratch) const {
  for (std::size_t s = 0; s < steps.size(); ++s) {
    auto& arguments = binding.arguments[s];
    for (std::size_t k = 0; k < arguments.size(); ++k) {
      const Slot slot = steps[s].arguments[k].slot;
      if (slot == Slot::weights && has_packed_weights)
        arguments[k].memory = operands.packed->state().memory.get();
      else
        TESSERA_TRY(library.check(
            library.memory_set_data_handle(arguments[k].memory, address(slot, operands, scratch)),
            "binding"));
    }
    TESSERA_TRY(library.check(library.primitive_execute(steps[s].primitive.get(), library.stream,
                                                        static_cast<int>(arguments.size()), arguments.data()),
                              "running a primitive"));
  }
  return {};
}
