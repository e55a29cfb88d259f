#include "cli/digit_training.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <random>

#include "cli/nowhere.h"
#include "tessera/base/text.h"
#include "tessera/nn/layers.h"
#include "tessera/nn/optimizer.h"
#include "tessera/nn/schedule.h"
#include "tessera/tensor/graph.h"
#include "tessera/tensor/scope.h"

using namespace tessera;
using namespace tessera::cli;

namespace {

constexpr std::int64_t batch_size = 32;
constexpr double first_rate = 4e-3;

[[noreturn]] void refuse(const std::string& path, std::string_view message) {
  throw Exception(Error(ErrorCode::invalid_argument, cat(printable(path), ": ", message)));
}

/// How many calls are recorded behind all of them together. Graphs that live join where they share nodes.
std::size_t count_nodes(const Tensor& loss, const nn::TrainingState& state) {
  std::vector<Graph> graphs{loss.graph()};
  for (const nn::Parameters* part : {&state.parameters, &state.optimizer.slots})
    for (const auto& [name, value] : *part) graphs.push_back(value.graph());
  return graphs.front().size();
}

/// Before hours of training, not after.
void check_can_be_saved(const std::string& path) {
  const auto given = std::filesystem::path(path).parent_path();
  const std::string folder = given.empty() ? "." : given.string();
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error))
    refuse(path, cat("the training cannot be kept there: there is no folder '", printable(folder), "'"));
  if (::access(folder.c_str(), W_OK) != 0)
    refuse(path, cat("the training cannot be kept there: '", printable(folder), "': ", std::strerror(errno)));
}

}  // namespace

DigitTraining::DigitTraining(TrainingOptions options) : options_(std::move(options)), data_(load_digits()) {
  resumed_ = !options_.checkpoint.empty() && std::filesystem::exists(options_.checkpoint);
  if (!options_.checkpoint.empty() && !resumed_) check_can_be_saved(options_.checkpoint);
  resumed_ ? resume() : begin();
}

void DigitTraining::begin() {
  const std::uint64_t seed = options_.seed.value_or(0);
  set_seed(seed);
  state_.parameters = first_digit_weights();
  nn::eval(state_.parameters);
  state_.progress = {{"epoch", 0}, {"batch", 0}, {"seed", static_cast<std::int64_t>(seed)}};
}

void DigitTraining::resume() {
  const nn::Parameters fresh = first_digit_weights();  // before the random state is set
  state_ = nn::load_training(options_.checkpoint, nullptr, nowhere);
  check_fits(fresh);
  if (options_.seed && *options_.seed != seed())
    refuse(options_.checkpoint,
           cat("this training began with the seed ", seed(), ", it cannot go on with ", *options_.seed));
}

void DigitTraining::check_fits(const nn::Parameters& fresh) const {
  const auto& path = options_.checkpoint;
  for (const char* key : {"epoch", "batch", "seed"})
    if (state_.progress.count(key) == 0) refuse(path, cat("there is no '", key, "' in it"));
  if (epoch() < 0 || batch() < 0 || batch() >= batches())
    refuse(path, cat("epoch ", epoch(), ", batch ", batch(), " is no place in this training"));
  if (state_.parameters.size() != fresh.size()) refuse(path, "these are not the weights of this network");
  for (const auto& [name, value] : fresh) {
    const Tensor& found = nn::get(state_.parameters, name);
    if (found.shape() != value.shape() || found.dtype() != value.dtype())
      refuse(path, cat("'", name, "' has the shape [", join(found.shape(), ", "), "], expected [",
                       join(value.shape(), ", "), "] of ", value.dtype()));
  }
}

std::int64_t DigitTraining::batches() const {
  return (data_.train.labels.size() + batch_size - 1) / batch_size;
}

std::vector<std::int64_t> DigitTraining::order_of(std::int64_t epoch) const {
  // Made of seed and epoch alone, so that a training stopped within an epoch finds its order again.
  std::vector<std::int64_t> order(static_cast<std::size_t>(data_.train.labels.size()));
  std::iota(order.begin(), order.end(), 0);
  std::seed_seq seeds{seed() >> 32, seed(), static_cast<std::uint64_t>(epoch)};  // of 32 bits each
  std::mt19937_64 random(seeds);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}

Digits DigitTraining::batch_at(const std::vector<std::int64_t>& order, std::int64_t batch) const {
  const auto begin = static_cast<std::size_t>(batch * batch_size);
  const auto count = std::min<std::size_t>(batch_size, order.size() - begin);
  const Tensor indices =
      from_span(std::span(order).subspan(begin, count), {static_cast<std::int64_t>(count)});
  return {gather(data_.train.pixels, indices), gather(data_.train.labels, indices)};
}

double tessera::cli::train_with(const Digits& batch, nn::TrainingState& state, double rate,
                                std::size_t* nodes) {
  const auto found = nn::loss_and_gradients(
      [&](const nn::Parameters& p) {
        return cross_entropy(digit_scores(p, batch.pixels, Use::training), batch.labels);
      },
      state.parameters);
  optim::adam(state.parameters, found.gradients, state.optimizer, rate);
  if (nodes != nullptr) *nodes = count_nodes(found.loss, state);
  std::vector<Tensor> wanted{found.loss};
  for (const nn::Parameters* part : {&state.parameters, &state.optimizer.slots})
    for (const auto& [name, value] : *part) wanted.push_back(value);
  eval(std::span<const Tensor>(wanted));
  return found.loss.item<double>();
}

void DigitTraining::step(const Digits& batch) {
  const double rate = optim::cosine_decay(first_rate, steps(), options_.epochs * batches());
  loss_ = train_with(batch, state_, rate, nodes_per_step_ == 0 ? &nodes_per_step_ : nullptr);
}

bool DigitTraining::run_epoch(const Report& report, const std::function<bool()>& should_stop) {
  std::int64_t& batch = state_.progress["batch"];
  const auto order = order_of(epoch());
  TrainingMoment now{.epoch = epoch(), .epochs = options_.epochs, .batches = batches()};
  double sum = 0;
  for (const std::int64_t first = batch; batch < now.batches;) {
    if (should_stop()) return false;
    step(batch_at(order, batch));
    sum += *loss_;
    now.batch = ++batch;
    now.loss = sum / static_cast<double>(batch - first);
    if (batch == now.batches) now.accuracy = guess(parameters(), data_.held_out).accuracy();
    report(now);
  }
  batch = 0;
  ++state_.progress["epoch"];
  return true;
}

DigitTraining::End DigitTraining::run(const Report& report, const std::function<bool()>& should_stop) {
  while (epoch() < options_.epochs) {
    if (!run_epoch(report, should_stop)) return End::stopped;
    if (!options_.checkpoint.empty()) save(options_.checkpoint);
  }
  return End::finished;
}

void DigitTraining::save(const std::string& path) const { nn::save_training(path, state_, nullptr, nowhere); }
