#include "tessera/runtime/cpu/matmul.h"

#include <algorithm>
#include <cstring>

#include "tessera/base/text.h"
#include "tessera/runtime/cpu/matmul_split.h"

using namespace tessera;
using namespace tessera::runtime::cpu;

namespace {

/// Multiplications of a product: about a millisecond of one thread, what stays in its caches, and what takes
/// no longer than a call of the library.
constexpr double most_own_work = 64e6, little_work = 1e6, call_work = 1e5;
/// Weights of which two copies may be there: for few rows, and for many.
constexpr std::int64_t most_few_row_weights = std::int64_t{1} << 20;
/// Rows and weights of products that put weights in order.
constexpr std::int64_t least_turned_rows = 32, most_turned_rows = 128, most_turned_weights = 262144;

void add_form(Hasher& hasher, const MatrixForm& form) {
  hasher.add(static_cast<std::uint64_t>(form.batch_stride))
      .add(static_cast<std::uint64_t>(form.row_stride))
      .add(static_cast<std::uint64_t>(form.column_stride));
}

/// Part of a batch of matrices as an operand of the library; a shared operand has a batch of 1.
OperandForm operand_form(const MatrixForm& form, std::int64_t batch, std::int64_t rows,
                         std::int64_t columns) {
  if (batch == 1) return {{rows, columns}, {form.row_stride, form.column_stride}};
  if (form.batch_stride != 0)
    return {{batch, rows, columns}, {form.batch_stride, form.row_stride, form.column_stride}};
  const std::int64_t whole = std::max(rows * form.row_stride, columns * form.column_stride);
  return {{1, rows, columns}, {whole, form.row_stride, form.column_stride}};
}

std::int64_t offset(const MatrixForm& form, std::int64_t batch, std::int64_t row, std::int64_t column) {
  return batch * form.batch_stride + row * form.row_stride + column * form.column_stride;
}

MatrixForm dense_form(std::int64_t rows, std::int64_t columns) { return {rows * columns, columns, 1}; }

/// Whether the elements of an item have no others between them.
bool is_dense(const MatrixForm& form, const MatmulSplit& item) {
  return (item.rows == 1 || form.row_stride == item.columns) &&
         (item.batch == 1 || form.batch_stride == item.rows * item.columns);
}

/// Whether an array plus a multiple of the product, which is kept, is all there is.
bool is_update(const Epilogue& epilogue) {
  return epilogue == Epilogue{.has_scale = true,
                              .keeps_product = true,
                              .residual = Residual::separate,
                              .place = epilogue.place};
}

Error cannot(const MatmulSpec& spec, std::string_view why) {
  return Error(ErrorCode::unsupported, cat("matrix product of sizes ", spec.batch, " x ", spec.rows, " x ",
                                           spec.columns, " x ", spec.depth, ": ", why));
}

}  // namespace

Hash128 MatmulSpec::hash() const {
  Hasher hasher;
  for (std::int64_t size : {batch, rows, columns, depth}) hasher.add(static_cast<std::uint64_t>(size));
  for (const MatrixForm& form : {a, b, c, residual}) add_form(hasher, form);
  hasher.add(static_cast<std::uint64_t>(row_block));
  return hasher.add(static_cast<std::uint64_t>(weights)).add(epilogue.code()).finish();
}

std::size_t PackedMatrix::byte_size() const {
  std::size_t out = whole_ ? whole_->byte_size() : 0;
  for (const PackedWeights& panel : panels_) out += panel.byte_size();
  if (block_ != nullptr) out += static_cast<std::size_t>(depth_ * padded_columns(columns_)) * sizeof(float);
  return out;
}

Result<std::shared_ptr<const Matmul>> Matmul::create(const MatmulSpec& spec, ProductLibrary library) {
  const MatmulSpec plain = TESSERA_TRY(normalised(spec));
  if (plain.c.column_stride != 1 ||
      (plain.epilogue.residual == Residual::separate && plain.residual.column_stride != 1))
    return cannot(plain, "the rows of the result have gaps");
  if (plain.weights == WeightForm::packed && plain.batch > 1 && plain.b.batch_stride != 0)
    return cannot(plain, "packed weights are not shared by the batch");
  if (plain.epilogue.keeps_product && !is_update(plain.epilogue))
    return cannot(plain, "only what is updated by it follows a product that is kept");
  std::shared_ptr<Matmul> out(new Matmul(plain));
  out->split_ = split(plain);
  // The library computes nothing where there is no depth.
  if (library != ProductLibrary::blocked && plain.depth > 0 && out->items() > 0) {
    auto made = out->use_onednn();
    if (made && (library == ProductLibrary::onednn || !out->is_better_blocked())) return out;
    if (library == ProductLibrary::onednn) return std::move(made).error();
    out->forget_onednn();
  }
  out->implementation_ = "blocked";
  out->split_ = split_for_own(plain);
  const auto tile = static_cast<std::size_t>(out->split_.rows * padded_columns(out->split_.columns));
  const auto row = static_cast<std::size_t>(out->split_.columns);
  out->scratch_bytes_ =
      (whole_lines_of_floats(tile) + whole_lines_of_floats(row) + gemm_workspace(out->split_.rows)) *
      sizeof(float);
  return out;
}

// ---- items

Matmul::Item Matmul::item(std::int64_t number) const {
  Item out{};
  out.panel = number / split_.row_blocks % split_.panels;
  out.batch = number / split_.row_blocks / split_.panels * split_.batch;
  out.row = number % split_.row_blocks * split_.rows;
  out.column = out.panel * split_.columns;
  out.batch_count = std::min(split_.batch, spec_.batch - out.batch);
  out.rows = std::min(split_.rows, spec_.rows - out.row);
  out.columns = std::min(split_.columns, spec_.columns - out.column);
  return out;
}

std::size_t Matmul::variant(const Item& item) const {
  return std::size_t{item.batch_count != split_.batch} * 4 + std::size_t{item.rows != split_.rows} * 2 +
         std::size_t{item.columns != split_.columns};
}

Result<void> Matmul::run(const MatmulOperands& operands, kernel::ItemRange range,
                         kernel::Scratch& scratch) const {
  std::byte* const memory = scratch.reserve(scratch_bytes_);
  for (std::int64_t number = range.begin; number < range.end; ++number) {
    const Item here = item(number);
    if (is_blocked())
      run_blocked(operands, here, reinterpret_cast<float*>(memory));
    else
      TESSERA_TRY(run_onednn(operands, here, memory));
  }
  return {};
}

// ---- weights

Result<PackedMatrix> Matmul::pack(const float* b) const {
  if (spec_.weights != WeightForm::packed) return cannot(spec_, "its weights are not packed");
  PackedMatrix out;
  out.columns_ = spec_.columns;
  out.depth_ = spec_.depth;
  if (spec_.batch == 0) return out;  // there may be no weights at all
  if (is_blocked()) {
    const auto numbers = static_cast<std::size_t>(spec_.depth * padded_columns(spec_.columns));
    out.block_ = allocate_block(std::max<std::size_t>(numbers, 1) * sizeof(float));
    pack_panels({b, spec_.b.row_stride, spec_.b.column_stride}, spec_.depth, spec_.columns,
                reinterpret_cast<float*>(out.block_.get()));
    return out;
  }
  TESSERA_TRY(pack_onednn(b, out));
  return out;
}

/// One copy serves products with few rows, which read it by panels, and with many, which read all of it.
Result<void> Matmul::pack_onednn(const float* b, PackedMatrix& out) const {
  const Item first = item(0);
  const Primitive& primitive = *primitives_[variant(first)];
  if (split_.panels == 1 || primitive.packs_panels()) {
    const OperandForm form = operand_form(spec_.b, first.batch_count, spec_.depth, spec_.columns);
    out.whole_ = TESSERA_TRY(primitive.pack(b, form));
    const std::int64_t width =
        out.whole_->has_panels() ? panel_width(spec_.columns, spec_.depth) : spec_.columns;
    for (std::int64_t column = 0; width < spec_.columns && column < spec_.columns; column += width)
      out.panels_.push_back(TESSERA_TRY(out.whole_->panel(column, std::min(width, spec_.columns - column))));
    return {};
  }
  for (std::int64_t panel = 0; panel < split_.panels; ++panel) {
    const Item here = item(panel * split_.row_blocks);
    const OperandForm form = operand_form(spec_.b, here.batch_count, spec_.depth, here.columns);
    out.panels_.push_back(
        TESSERA_TRY(primitives_[variant(here)]->pack(b + offset(spec_.b, 0, 0, here.column), form)));
  }
  return {};
}

const PackedWeights& Matmul::weights_of(const PackedMatrix& packed, const Item& item) const {
  return split_.panels == 1 ? *packed.whole_ : packed.panels_[static_cast<std::size_t>(item.panel)];
}

bool Matmul::accepts(const PackedMatrix& packed) const {
  if (packed.columns_ != spec_.columns || packed.depth_ != spec_.depth) return false;
  if (is_blocked()) return packed.block_ != nullptr || items() == 0;
  const std::size_t panels =
      split_.panels == 1 ? std::size_t{packed.whole_.has_value()} : packed.panels_.size();
  if (panels != static_cast<std::size_t>(split_.panels)) return false;
  for (std::int64_t panel = 0; panel < split_.panels; ++panel) {
    const Item here = item(panel * split_.row_blocks);
    if (!primitives_[variant(here)]->accepts(weights_of(packed, here))) return false;
  }
  return true;
}

// ---- oneDNN

MatmulRequest Matmul::request(const Item& item) const {
  const std::int64_t batch = item.batch_count;
  Epilogue epilogue = library_epilogue();
  if (copies_residual_) epilogue.residual = Residual::in_destination;
  return {operand_form(spec_.a, batch, item.rows, spec_.depth),
          operand_form(spec_.b, batch, spec_.depth, item.columns),
          operand_form(dense_form(item.rows, item.columns), batch, item.rows, item.columns),
          operand_form(dense_form(item.rows, item.columns), batch, item.rows, item.columns),
          spec_.weights,
          epilogue};
}

Result<void> Matmul::use_onednn() {
  const OneDnn& onednn = *TESSERA_TRY(OneDnn::open());
  finishes_own_ = is_own_activation(spec_.epilogue.activation);
  const Residual residual = library_epilogue().residual;
  // What is added behind our own activation may be what the destination holds until then.
  uses_tile_ = !is_dense(spec_.c, split_) ||
               (spec_.epilogue.residual == Residual::in_destination && residual == Residual::none);
  copies_residual_ = uses_tile_ ? residual != Residual::none
                                : residual == Residual::separate && !is_dense(spec_.residual, split_);
  TESSERA_TRY(make_primitives(onednn));
  if (uses_tile_)
    tile_bytes_ =
        whole_lines_of_floats(static_cast<std::size_t>(split_.batch * split_.rows * split_.columns)) *
        sizeof(float);
  scratch_bytes_ += tile_bytes_;
  return {};
}

Epilogue Matmul::library_epilogue() const {
  Epilogue out = spec_.epilogue;
  if (out.keeps_product) return {};
  if (!finishes_own_) return out;
  out.activation = Activation::none;
  if (out.place == ResidualPlace::after_activation) out.residual = Residual::none;
  return out;
}

/// While the item is in the cache. `product` has the rows of the item without gaps.
void Matmul::finish_own(const MatmulOperands& operands, const Item& item, float* product) const {
  const Epilogue& epilogue = spec_.epilogue;
  const bool adds = epilogue.residual != Residual::none && epilogue.place == ResidualPlace::after_activation;
  if (!adds) {
    finish_in_place(epilogue, product, nullptr,
                    static_cast<std::size_t>(item.batch_count * item.rows * item.columns));
    return;
  }
  const bool is_separate = epilogue.residual == Residual::separate;
  const float* const from = is_separate ? operands.residual : operands.c;
  const MatrixForm& form = is_separate ? spec_.residual : spec_.c;
  for (std::int64_t batch = item.batch; batch < item.batch + item.batch_count; ++batch)
    for (std::int64_t row = item.row; row < item.row + item.rows; ++row, product += item.columns)
      finish_in_place(epilogue, product, from + offset(form, batch, row, item.column),
                      static_cast<std::size_t>(item.columns));
}

void Matmul::forget_onednn() {
  finishes_own_ = false;
  for (auto& primitive : primitives_) primitive = nullptr;
}

/// Up to a tile of rows our own product with packed weights is faster than oneDNN's, by 2 % of large products
/// and up to 60 % of small ones; two and three rows are so only if there is little to do.
bool Matmul::has_few_rows(double work) const {
  const std::int64_t rows = spec_.row_block > 0 ? spec_.row_block : spec_.rows;
  const bool is_pair = rows == 2 || rows == 3;
  return spec_.weights == WeightForm::packed && spec_.batch == 1 && rows <= gemm_kernel().rows &&
         (!is_pair || work <= call_work) && spec_.depth * spec_.columns <= most_few_row_weights;
}

/// Weights that lie by columns, as those of a gradient do, our own product puts in order in less time, if
/// they and the rows are few and their columns do not all fall on the same places of the cache: the product
/// takes up to a quarter less.
bool Matmul::has_few_turned_weights() const {
  return spec_.weights == WeightForm::plain && spec_.batch == 1 && spec_.b.row_stride == 1 &&
         spec_.b.column_stride != 1 && spec_.b.column_stride % bad_distance != 0 &&
         spec_.rows >= least_turned_rows && spec_.rows <= most_turned_rows &&
         spec_.depth * spec_.columns <= most_turned_weights;
}

/// oneDNN's general product generates code for all cases when the first one runs, which takes 30 ms. Where it
/// has nothing better, our own is as fast as long as the operands are not much larger than the caches, but
/// for a few rows by weights that are.
bool Matmul::is_better_blocked() const {
  const double work = static_cast<double>(spec_.batch) * static_cast<double>(spec_.rows) *
                      static_cast<double>(spec_.columns) * static_cast<double>(spec_.depth);
  if (has_few_rows(work) || has_few_turned_weights()) return true;
  const bool waits_for_weights = spec_.rows > 2 && spec_.rows < 8 && work > little_work;
  return implementation_.starts_with("gemm") && work <= most_own_work && !waits_for_weights;
}

/// One for each size that an item may have. All items of a panel must read the same packed weights.
Result<void> Matmul::make_primitives(const OneDnn& onednn) {
  const std::int64_t batches[] = {0, split_.batch_blocks - 1}, rows[] = {0, split_.row_blocks - 1},
                     panels[] = {0, split_.panels - 1};
  for (std::int64_t batch : batches)
    for (std::int64_t row : rows)
      for (std::int64_t panel : panels) {
        const Item here = item((batch * split_.panels + panel) * split_.row_blocks + row);
        auto& primitive = primitives_[variant(here)];
        if (primitive != nullptr) continue;
        primitive = TESSERA_TRY(onednn.matmul(request(here)));
        scratch_bytes_ = std::max(scratch_bytes_, primitive->scratch_bytes());
        const auto& whole = primitives_[variant(here) & 1];
        if (spec_.weights == WeightForm::packed && !primitive->shares_weights_with(*whole))
          return cannot(spec_, "oneDNN packs weights differently for the last rows");
      }
  implementation_ = primitives_[0]->implementation();
  return {};
}

Result<void> Matmul::run_onednn(const MatmulOperands& operands, const Item& item, std::byte* scratch) const {
  PrimitiveOperands given;
  given.source = operands.a + offset(spec_.a, item.batch, item.row, 0);
  if (spec_.weights == WeightForm::packed)
    given.packed = &weights_of(*operands.packed, item);
  else
    given.weights = operands.b + offset(spec_.b, item.batch, 0, item.column);
  float* const destination = product_of(operands) + offset(spec_.c, item.batch, item.row, item.column);
  float* const tile = reinterpret_cast<float*>(scratch);
  given.destination = uses_tile_ ? tile : destination;
  if (spec_.epilogue.has_bias)
    given.bias = operands.bias + (spec_.epilogue.bias_of_rows ? item.row : item.column);
  given.scale = &operands.scale;
  if (library_epilogue().residual == Residual::separate)
    given.residual = operands.residual + offset(spec_.residual, item.batch, item.row, item.column);
  if (copies_residual_) copy_in(operands, item, given.destination);
  TESSERA_TRY(primitives_[variant(item)]->run(given, scratch + tile_bytes_));
  if (finishes_own_) finish_own(operands, item, given.destination);
  if (uses_tile_) copy_out(operands, item, tile);
  if (spec_.epilogue.keeps_product) finish_kept(operands, item);
  return {};
}

void Matmul::copy_in(const MatmulOperands& operands, const Item& item, float* to) const {
  const bool is_separate = spec_.epilogue.residual == Residual::separate;
  const float* const from = is_separate ? operands.residual : operands.c;
  const MatrixForm& form = is_separate ? spec_.residual : spec_.c;
  for (std::int64_t batch = item.batch; batch < item.batch + item.batch_count; ++batch)
    for (std::int64_t row = item.row; row < item.row + item.rows; ++row, to += item.columns)
      std::memcpy(to, from + offset(form, batch, row, item.column),
                  static_cast<std::size_t>(item.columns) * sizeof(float));
}

void Matmul::copy_out(const MatmulOperands& operands, const Item& item, const float* tile) const {
  for (std::int64_t batch = item.batch; batch < item.batch + item.batch_count; ++batch)
    for (std::int64_t row = item.row; row < item.row + item.rows; ++row, tile += item.columns)
      std::memcpy(product_of(operands) + offset(spec_.c, batch, row, item.column), tile,
                  static_cast<std::size_t>(item.columns) * sizeof(float));
}

void Matmul::finish_kept(const MatmulOperands& operands, const Item& item) const {
  for (std::int64_t batch = item.batch; batch < item.batch + item.batch_count; ++batch)
    for (std::int64_t row = item.row; row < item.row + item.rows; ++row) {
      const std::int64_t at = offset(spec_.c, batch, row, item.column);
      const EpilogueRow values{
          .scale = operands.scale,
          .residual = operands.residual + offset(spec_.residual, batch, row, item.column)};
      finish_row(spec_.epilogue, values, operands.product + at, operands.c + at, nullptr,
                 static_cast<std::size_t>(item.columns));
    }
}

// ---- our own product

GemmBlock Matmul::block_of(const MatmulOperands& operands, const Item& item, std::int64_t batch) const {
  GemmBlock out{item.rows, item.columns, spec_.depth, {}, {}, nullptr};
  if (spec_.depth > 0)
    out.a = {operands.a + offset(spec_.a, batch, item.row, 0), spec_.a.row_stride, spec_.a.column_stride};
  if (spec_.weights == WeightForm::packed)
    out.panels = reinterpret_cast<const float*>(operands.packed->block_.get()) + item.column * spec_.depth;
  else if (spec_.depth > 0)
    out.b = {operands.b + offset(spec_.b, batch, 0, item.column), spec_.b.row_stride, spec_.b.column_stride};
  return out;
}

void Matmul::run_blocked(const MatmulOperands& operands, const Item& item, float* scratch) const {
  const auto tile = static_cast<std::size_t>(item.rows * padded_columns(item.columns));
  float* const product = scratch;
  float* const row = product + whole_lines_of_floats(tile);
  float* const workspace = row + whole_lines_of_floats(static_cast<std::size_t>(item.columns));
  const bool is_direct = spec_.epilogue == Epilogue{} && item.columns % gemm_kernel().vector == 0;
  // Whatever the items: with one rounding, or with two behind a product whose last panel is not whole.
  const bool updates = spec_.epilogue.keeps_product && spec_.columns % gemm_kernel().columns == 0;
  for (std::int64_t batch = item.batch; batch < item.batch + item.batch_count; ++batch) {
    const GemmBlock block = block_of(operands, item, batch);
    const std::int64_t at = offset(spec_.c, batch, item.row, item.column);
    const GemmResult direct{product_of(operands) + at, spec_.c.row_stride};
    if (updates && spec_.depth > 0) {
      const GemmUpdate update{operands.residual + offset(spec_.residual, batch, item.row, item.column),
                              spec_.residual.row_stride,
                              {operands.c + at, spec_.c.row_stride},
                              operands.scale};
      multiply_blocked(block, direct, workspace, &update);
    } else if (is_direct) {
      multiply_blocked(block, direct, workspace);
    } else {
      multiply_blocked(block, {product, padded_columns(item.columns)}, workspace);
      finish(operands, item, batch, product, row);
    }
  }
}

void Matmul::finish(const MatmulOperands& operands, const Item& item, std::int64_t batch, float* product,
                    float* workspace) const {
  const std::int64_t stride = padded_columns(item.columns);
  for (std::int64_t r = 0; r < item.rows; ++r) {
    float* const to = operands.c + offset(spec_.c, batch, item.row + r, item.column);
    EpilogueRow row{.scale = operands.scale};
    row.bias_of_row = spec_.epilogue.bias_of_rows;
    if (spec_.epilogue.has_bias) row.bias = operands.bias + (row.bias_of_row ? item.row + r : item.column);
    if (spec_.epilogue.residual == Residual::in_destination) row.residual = to;
    if (spec_.epilogue.residual == Residual::separate)
      row.residual = operands.residual + offset(spec_.residual, batch, item.row + r, item.column);
    if (spec_.epilogue.keeps_product)
      std::memcpy(operands.product + (to - operands.c), product + r * stride,
                  static_cast<std::size_t>(item.columns) * sizeof(float));
    finish_row(spec_.epilogue, row, product + r * stride, to, workspace,
               static_cast<std::size_t>(item.columns));
  }
}
