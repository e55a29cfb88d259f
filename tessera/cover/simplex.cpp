#include "tessera/cover/simplex.h"

#include <algorithm>
#include <limits>

using namespace tessera::cover;

namespace {

/// min cost * x, every position covered once, x >= 0. The positions alone are the first basis, whose matrix
/// is the unit matrix. Instead of once, position i is covered 1 + e_i times for small different e_i: without
/// that most rounds would not change x and the method could go round in circles. The prices are right all the
/// same.
class Simplex {
 public:
  explicit Simplex(const SearchModel& model)
      : model_(model),
        size_(model.size),
        inverse_(std::size_t{size_} * size_, 0),
        basis_(size_),
        amount_(size_),
        price_(size_),
        column_(size_) {
    for (std::uint32_t i = 0; i < size_; ++i) {
      inverse_[std::size_t{i} * size_ + i] = 1;
      basis_[i] = i;
      amount_[i] = 1 + 1e-6 * (1 + (i * 2654435761U >> 8) % 9973);
      price_[i] = static_cast<double>(model.tiles[i].cost);
      scale_ = std::max(scale_, price_[i]);
    }
  }

  std::vector<double> run(std::size_t rounds, Effort& effort) {
    for (std::size_t round = 0; round < rounds && !effort.is_over(); ++round) {
      const std::uint32_t entering = most_underpriced();
      if (entering == nobody) break;
      load_column(entering);
      const std::uint32_t leaving = tightest_row();
      if (leaving == nobody) break;  // only rounding errors can do this: a cost cannot fall without end
      effort.spend(model_.positions.size() + pivot(entering, leaving));
    }
    return std::move(price_);
  }

 private:
  static constexpr std::uint32_t nobody = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint64_t numbers_per_work = 2;  ///< of a row that is added to another

  /// What the tile costs above the prices of its positions.
  [[nodiscard]] double excess(std::uint32_t tile) const {
    double left = static_cast<double>(model_.tiles[tile].cost);
    for (std::uint32_t i : model_.positions_of(model_.tiles[tile])) left -= price_[i];
    return left;
  }
  [[nodiscard]] std::uint32_t most_underpriced() const {
    std::uint32_t best = nobody;
    double least = -1e-9 * scale_;
    for (std::uint32_t t = 0; t < model_.tiles.size(); ++t) {
      const double left = excess(t);
      if (left >= least) continue;
      least = left;
      best = t;
    }
    return best;
  }
  /// column = inverse * (the tile as a column of zeros and ones).
  void load_column(std::uint32_t tile) {
    std::ranges::fill(column_, 0.0);
    for (std::uint32_t i : model_.positions_of(model_.tiles[tile]))
      for (std::uint32_t row = 0; row < size_; ++row) column_[row] += inverse_[std::size_t{row} * size_ + i];
  }
  /// The row whose amount is used up first when the column enters.
  [[nodiscard]] std::uint32_t tightest_row() const {
    std::uint32_t best = nobody;
    double least = std::numeric_limits<double>::infinity();
    for (std::uint32_t row = 0; row < size_; ++row) {
      if (column_[row] < 1e-9) continue;
      const double ratio = amount_[row] / column_[row];
      if (ratio >= least) continue;
      least = ratio;
      best = row;
    }
    return best;
  }
  /// What it took, as work.
  std::uint64_t pivot(std::uint32_t entering, std::uint32_t leaving) {
    double* const pivot_row = inverse_.data() + std::size_t{leaving} * size_;
    const double factor = 1 / column_[leaving];
    const double raise = excess(entering) * factor;
    for (std::uint32_t i = 0; i < size_; ++i) {
      price_[i] += raise * pivot_row[i];
      pivot_row[i] *= factor;
    }
    amount_[leaving] *= factor;
    std::uint64_t rows = 1;
    for (std::uint32_t row = 0; row < size_; ++row) {
      if (row == leaving || column_[row] == 0) continue;
      ++rows;
      double* const other = inverse_.data() + std::size_t{row} * size_;
      for (std::uint32_t i = 0; i < size_; ++i) other[i] -= column_[row] * pivot_row[i];
      amount_[row] = std::max(0.0, amount_[row] - column_[row] * amount_[leaving]);
    }
    basis_[leaving] = entering;
    return rows * size_ / numbers_per_work;
  }

  const SearchModel& model_;
  std::uint32_t size_;
  std::vector<double> inverse_;       ///< of the basis, by rows
  std::vector<std::uint32_t> basis_;  ///< by row: a tile
  std::vector<double> amount_;        ///< by row: of its tile
  std::vector<double> price_;
  std::vector<double> column_;
  double scale_ = 0;
};

}  // namespace

std::vector<double> tessera::cover::simplex_prices(const SearchModel& model, std::size_t rounds,
                                                   Effort& effort) {
  return Simplex(model).run(rounds, effort);
}
