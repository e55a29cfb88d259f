// Operators that compute on known elements only: boxes, regions, determinants, word counts. Their results
// depend on data in ways that no composition of ops expresses.
#include <algorithm>
#include <cmath>

#include "tessera/onnx/mapping.h"
#include "tessera/onnx/value_target.h"

using namespace tessera;
using namespace tessera::onnx;

namespace {

// ---- non-maximum suppression

struct Box {
  double y0, x0, y1, x1;
  [[nodiscard]] double area() const { return (y1 - y0) * (x1 - x0); }
};

Box box_of(const double* at, bool is_centred) {
  if (is_centred) return {at[1] - at[3] / 2, at[0] - at[2] / 2, at[1] + at[3] / 2, at[0] + at[2] / 2};
  return {std::min(at[0], at[2]), std::min(at[1], at[3]), std::max(at[0], at[2]), std::max(at[1], at[3])};
}

double overlap(const Box& a, const Box& b) {
  const double height = std::min(a.y1, b.y1) - std::max(a.y0, b.y0),
               width = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
  if (height <= 0 || width <= 0) return 0;
  const double common = height * width, all = a.area() + b.area() - common;
  return all <= 0 ? 0 : common / all;
}

struct Suppression {
  std::int64_t limit = 0;
  double overlap = 0;
  std::optional<double> score;
};

/// The boxes that stay, best first.
std::vector<std::int64_t> kept_boxes(std::span<const Box> boxes, const double* scores,
                                     const Suppression& by) {
  std::vector<std::int64_t> order, kept;
  for (std::size_t i = 0; i < boxes.size(); ++i)
    if (!by.score || scores[i] > *by.score) order.push_back(static_cast<std::int64_t>(i));
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return scores[a] > scores[b]; });
  for (const std::int64_t candidate : order) {
    if (static_cast<std::int64_t>(kept.size()) >= by.limit) break;
    const auto covers = [&](std::int64_t other) {
      return overlap(boxes[static_cast<std::size_t>(candidate)], boxes[static_cast<std::size_t>(other)]) >
             by.overlap;
    };
    if (std::none_of(kept.begin(), kept.end(), covers)) kept.push_back(candidate);
  }
  return kept;
}

Result<Items> map_non_max_suppression(NodeCall& node) {
  const HostTensor boxes = TESSERA_TRY(node.elements(0)), scores = TESSERA_TRY(node.elements(1));
  const auto &b = boxes.shape(), &s = scores.shape();
  if (b.size() != 3 || s.size() != 3 || b[2] != 4 || b[0] != s[0] || b[1] != s[2])
    return node.error("boxes [", join(b, ", "), "] and scores [", join(s, ", "), "] do not fit each other");
  Suppression by;
  if (node.has(2)) by.limit = TESSERA_TRY(node.integer_in(2));
  if (node.has(3)) by.overlap = TESSERA_TRY(node.number_in(3));
  if (node.has(4)) by.score = TESSERA_TRY(node.number_in(4));
  const bool is_centred = node.integer("center_point_box", 0) != 0;
  const auto places = numbers_of(boxes), values = numbers_of(scores);
  std::vector<std::int64_t> rows;
  for (std::int64_t batch = 0; batch < s[0]; ++batch) {
    std::vector<Box> own;
    for (std::int64_t i = 0; i < b[1]; ++i)
      own.push_back(box_of(&places[static_cast<std::size_t>((batch * b[1] + i) * 4)], is_centred));
    for (std::int64_t c = 0; c < s[1]; ++c) {
      const double* of_class = values.data() + (batch * s[1] + c) * s[2];
      for (const std::int64_t box : kept_boxes(own, of_class, by)) rows.insert(rows.end(), {batch, c, box});
    }
  }
  const auto count = static_cast<std::int64_t>(rows.size() / 3);
  return Items{node.target.tensor(tensor_of(Dtype::i64, {count, 3}, std::span<const std::int64_t>(rows)))};
}

// ---- regions of interest

struct Image {
  const double* data;
  std::int64_t height, width;

  /// Between elements; more than one element outside there is nothing.
  [[nodiscard]] double at(double y, double x) const {
    const bool is_near =
        y >= -1 && y <= static_cast<double>(height) && x >= -1 && x <= static_cast<double>(width);
    if (!is_near) return 0;  // also where a place is no number
    y = std::clamp(y, 0.0, static_cast<double>(height - 1));
    x = std::clamp(x, 0.0, static_cast<double>(width - 1));
    const auto y0 = static_cast<std::int64_t>(y), x0 = static_cast<std::int64_t>(x);
    const std::int64_t y1 = std::min(y0 + 1, height - 1), x1 = std::min(x0 + 1, width - 1);
    const double ty = y - static_cast<double>(y0), tx = x - static_cast<double>(x0);
    const auto v = [&](std::int64_t r, std::int64_t c) { return data[r * width + c]; };
    return (1 - ty) * ((1 - tx) * v(y0, x0) + tx * v(y0, x1)) + ty * ((1 - tx) * v(y1, x0) + tx * v(y1, x1));
  }
};

struct RegionOptions {
  std::int64_t height = 1, width = 1, samples = 0;
  double scale = 1, offset = 0;
  bool is_max = false, is_aligned = false;
};

/// The mean or the largest of the samples of one cell.
double cell_value(const Image& image, const RegionOptions& options, double y, double x, double height,
                  double width) {
  const auto count = [&](double size) {
    if (options.samples > 0) return options.samples;
    return static_cast<std::int64_t>(size > 1 ? std::min(std::ceil(size), 1024.0) : 1.0);
  };
  const std::int64_t rows = count(height), columns = count(width);
  double total = 0, best = -std::numeric_limits<double>::infinity();
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      const double value =
          image.at(y + (static_cast<double>(i) + 0.5) * height / static_cast<double>(rows),
                   x + (static_cast<double>(j) + 0.5) * width / static_cast<double>(columns));
      total += value;
      best = std::max(best, value);
    }
  return options.is_max ? best : total / static_cast<double>(rows * columns);
}

void add_region(const Image& image, const double* roi, const RegionOptions& options,
                std::vector<double>& out) {
  const double x0 = roi[0] * options.scale - options.offset, y0 = roi[1] * options.scale - options.offset;
  double width = roi[2] * options.scale - options.offset - x0,
         height = roi[3] * options.scale - options.offset - y0;
  if (!options.is_aligned) {
    width = std::max(width, 1.0);
    height = std::max(height, 1.0);
  }
  const double cell_height = height / static_cast<double>(options.height),
               cell_width = width / static_cast<double>(options.width);
  for (std::int64_t i = 0; i < options.height; ++i)
    for (std::int64_t j = 0; j < options.width; ++j)
      out.push_back(cell_value(image, options, y0 + static_cast<double>(i) * cell_height,
                               x0 + static_cast<double>(j) * cell_width, cell_height, cell_width));
}

Result<Items> map_roi_align(NodeCall& node) {
  const HostTensor x = TESSERA_TRY(node.elements(0)), rois = TESSERA_TRY(node.elements(1));
  const auto batches = TESSERA_TRY(node.integers_in(2));
  RegionOptions options{node.integer("output_height", 1),
                        node.integer("output_width", 1),
                        node.integer("sampling_ratio", 0),
                        node.number("spatial_scale", 1),
                        0,
                        node.text("mode", "avg") == "max",
                        false};
  options.is_aligned =
      node.opset >= 16 && node.text("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  options.offset = options.is_aligned ? 0.5 : 0;
  TESSERA_TRY(node.status());
  const auto &s = x.shape(), &r = rois.shape();
  if (s.size() != 4 || r.size() != 2 || r[1] != 4 || r[0] != static_cast<std::int64_t>(batches.size()) ||
      s[2] < 1 || s[3] < 1)
    return node.error("regions [", join(r, ", "), "] do not fit [", join(s, ", "), "]");
  if (options.height < 1 || options.width < 1 || options.samples < 0 || options.samples > 1024 ||
      options.height > 1 << 14 || options.width > 1 << 14 ||
      r[0] * s[1] > node.bodies.limits().elements / (options.height * options.width))
    return Error(ErrorCode::limit,
                 cat("regions of ", options.height, " by ", options.width, " are too large"));
  const auto values = numbers_of(x), places = numbers_of(rois);
  std::vector<double> out;
  for (std::int64_t i = 0; i < r[0]; ++i) {
    const std::int64_t batch = batches[static_cast<std::size_t>(i)];
    if (batch < 0 || batch >= s[0]) return node.error("input 2 has the batch ", batch, ", there are ", s[0]);
    for (std::int64_t c = 0; c < s[1]; ++c)
      add_region({values.data() + (batch * s[1] + c) * s[2] * s[3], s[2], s[3]},
                 &places[static_cast<std::size_t>(i * 4)], options, out);
  }
  return Items{node.target.tensor(
      tensor_of(x.dtype(), {r[0], s[1], options.height, options.width}, std::span<const double>(out)))};
}

// ---- determinants

/// By elimination with row exchanges; `m` is n by n and is used up.
double determinant(double* m, std::size_t n) {
  double out = 1;
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k + 1; i < n; ++i)
      if (std::abs(m[i * n + k]) > std::abs(m[pivot * n + k])) pivot = i;
    if (m[pivot * n + k] == 0) return 0;
    if (pivot != k) {
      std::swap_ranges(m + k * n, m + (k + 1) * n, m + pivot * n);
      out = -out;
    }
    out *= m[k * n + k];
    for (std::size_t i = k + 1; i < n; ++i) {
      const double factor = m[i * n + k] / m[k * n + k];
      for (std::size_t j = k; j < n; ++j) m[i * n + j] -= factor * m[k * n + j];
    }
  }
  return out;
}

Result<Items> map_det(NodeCall& node) {
  const HostTensor x = TESSERA_TRY(node.elements(0));
  op::Extents shape = x.shape();
  if (shape.size() < 2 || shape[shape.size() - 1] != shape[shape.size() - 2])
    return node.error("input 0 has shape [", join(shape, ", "), "], expected square matrices");
  const auto n = static_cast<std::size_t>(shape[shape.size() - 1]);
  shape.resize(shape.size() - 2);
  auto values = numbers_of(x);
  std::vector<double> out;
  for (std::int64_t i = 0; i < op::element_count(shape); ++i)
    out.push_back(determinant(values.data() + static_cast<std::size_t>(i) * n * n, n));
  return Items{node.target.tensor(tensor_of(x.dtype(), shape, std::span<const double>(out)))};
}

// ---- counts of n-grams

struct Grams {
  std::vector<std::int64_t> pool, starts, indexes;
  std::vector<double> weights;
  std::int64_t shortest = 1, longest = 1, skips = 0, columns = 0;
};

/// Whether the n-gram of the pool at `at` stands in `row` from `first` on, `stride` apart.
bool stands_at(std::span<const std::int64_t> gram, std::span<const std::int64_t> row, std::size_t first,
               std::size_t stride) {
  if (first + (gram.size() - 1) * stride >= row.size()) return false;
  for (std::size_t i = 0; i < gram.size(); ++i)
    if (row[first + i * stride] != gram[i]) return false;
  return true;
}

double occurrences(const Grams& grams, std::span<const std::int64_t> gram,
                   std::span<const std::int64_t> row) {
  double out = 0;
  const std::int64_t most = gram.size() == 1 ? 0 : grams.skips;  // of one word there is nothing to skip
  for (std::int64_t skip = 0; skip <= most && skip < static_cast<std::int64_t>(row.size()); ++skip)
    for (std::size_t first = 0; first < row.size(); ++first)
      out += stands_at(gram, row, first, static_cast<std::size_t>(skip) + 1) ? 1 : 0;
  return out;
}

void count_row(const Grams& grams, const std::string& mode, std::span<const std::int64_t> row, double* out) {
  std::size_t gram_index = 0;
  for (std::size_t k = 0; k < grams.starts.size(); ++k) {
    const std::size_t n = k + 1, begin = static_cast<std::size_t>(grams.starts[k]);
    const std::size_t end =
        k + 1 < grams.starts.size() ? static_cast<std::size_t>(grams.starts[k + 1]) : grams.pool.size();
    for (std::size_t at = begin; at + n <= end; at += n, ++gram_index) {
      const auto length = static_cast<std::int64_t>(n);
      if (length < grams.shortest || length > grams.longest) continue;
      const double count = occurrences(grams, std::span(grams.pool).subspan(at, n), row);
      const double weight = gram_index < grams.weights.size() ? grams.weights[gram_index] : 1;
      double& cell = out[grams.indexes[gram_index]];
      cell += mode == "TF" ? count : mode == "IDF" ? (count > 0 ? weight : 0) : count * weight;
    }
  }
}

Result<Grams> grams_of(NodeCall& node) {
  Grams out{node.integers("pool_int64s"),       node.integers("ngram_counts"),
            node.integers("ngram_indexes"),     node.numbers("weights"),
            node.integer("min_gram_length", 1), node.integer("max_gram_length", 1),
            node.integer("max_skip_count", 0)};
  TESSERA_TRY(node.status());
  if (out.pool.empty())
    return node.unsupported("attribute 'pool_int64s' is missing: strings are not supported");
  for (const std::int64_t index : out.indexes) {
    if (index < 0 || index > 1 << 24) return node.error("attribute 'ngram_indexes' has ", index);
    out.columns = std::max(out.columns, index + 1);
  }
  std::size_t count = 0;
  for (std::size_t k = 0; k < out.starts.size(); ++k) {
    const auto end =
        k + 1 < out.starts.size() ? out.starts[k + 1] : static_cast<std::int64_t>(out.pool.size());
    if (out.starts[k] < 0 || out.starts[k] > end || end > static_cast<std::int64_t>(out.pool.size()))
      return node.error("attribute 'ngram_counts' has ", out.starts[k]);
    count += static_cast<std::size_t>(end - out.starts[k]) / (k + 1);
  }
  if (count != out.indexes.size())
    return node.error("attribute 'ngram_indexes' has ", out.indexes.size(), " entries, expected ", count);
  return out;
}

Result<Items> map_tfidf(NodeCall& node) {
  const HostTensor x = TESSERA_TRY(node.elements(0));
  const Grams grams = TESSERA_TRY(grams_of(node));
  if (x.shape().empty() || x.shape().size() > 2 || ir::is_float(x.dtype()))
    return node.error("input 0 has shape [", join(x.shape(), ", "),
                      "], expected one or two axes of integers");
  const std::string mode = node.text("mode", "TF");
  const auto words = integers_of(x);
  const std::int64_t rows = x.shape().size() == 2 ? x.shape()[0] : 1, width = x.shape()[x.shape().size() - 1];
  if (rows * grams.columns > node.bodies.limits().elements)
    return Error(ErrorCode::limit, "the result is too large");
  std::vector<double> out(static_cast<std::size_t>(rows * grams.columns), 0);
  for (std::int64_t i = 0; i < rows; ++i)
    count_row(grams, mode,
              std::span(words).subspan(static_cast<std::size_t>(i * width), static_cast<std::size_t>(width)),
              out.data() + i * grams.columns);
  op::Extents shape = x.shape();
  shape[shape.size() - 1] = grams.columns;
  return Items{node.target.tensor(tensor_of(Dtype::f32, shape, std::span<const double>(out)))};
}

constexpr Mapping detection_table[] = {
    {"Det", map_det},
    {"NonMaxSuppression", map_non_max_suppression},
    {"RoiAlign", map_roi_align},
    {"TfIdfVectorizer", map_tfidf},
};

}  // namespace

std::span<const Mapping> tessera::onnx::detection_mappings() { return detection_table; }
