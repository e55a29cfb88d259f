// The training of the demo: batches, epochs, a stop in the middle, and going on from there.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "cli/digits.h"
#include "tessera/nn/training_state.h"

namespace tessera::cli {

struct TrainingOptions {
  std::int64_t epochs = 20;
  std::optional<std::uint64_t> seed;  ///< that of the checkpoint, or 0, if it is not given
  std::string checkpoint;  ///< where it is kept, and gone on from if the file is there; may be empty
};

/// What is known after a batch.
struct TrainingMoment {
  std::int64_t epoch = 0, epochs = 0;   ///< the epoch that is going on, from 0
  std::int64_t batch = 0, batches = 0;  ///< how many are done
  double loss = 0;                      ///< mean over the batches of this epoch
  std::optional<double> accuracy;       ///< on the held-out part, at the end of an epoch
};

/// One step of training, evaluated. The loss, and how many calls were recorded if `nodes` asks for it.
double train_with(const Digits& batch, nn::TrainingState& state, double rate, std::size_t* nodes = nullptr);

class DigitTraining {
 public:
  using Report = std::function<void(const TrainingMoment&)>;

  /// A new training, or that of the checkpoint. Throws Exception if the file is no checkpoint of this
  /// network, or was begun with another seed.
  explicit DigitTraining(TrainingOptions options);

  enum class End : std::uint8_t { finished, stopped };
  /// Trains until all epochs are over or `should_stop` says so, which is asked after each batch. Saves after
  /// each epoch if a checkpoint is kept.
  End run(const Report& report, const std::function<bool()>& should_stop);

  void save(const std::string& path) const;
  [[nodiscard]] const nn::Parameters& parameters() const { return state_.parameters; }
  [[nodiscard]] const DigitData& data() const { return data_; }
  [[nodiscard]] std::int64_t steps() const { return state_.optimizer.steps; }
  [[nodiscard]] std::int64_t batches() const;
  /// Of the first epoch.
  [[nodiscard]] Digits first_batch() const { return batch_at(order_of(0), 0); }
  [[nodiscard]] std::int64_t epoch() const { return state_.progress.at("epoch"); }
  [[nodiscard]] std::int64_t batch() const { return state_.progress.at("batch"); }
  [[nodiscard]] std::uint64_t seed() const { return static_cast<std::uint64_t>(state_.progress.at("seed")); }
  [[nodiscard]] bool was_resumed() const { return resumed_; }
  /// Calls recorded for one batch: forward, gradients and update together.
  [[nodiscard]] std::size_t nodes_per_step() const { return nodes_per_step_; }
  /// Of the last batch; nothing before the first.
  [[nodiscard]] std::optional<double> loss() const { return loss_; }

 private:
  void begin();
  void resume();
  void check_fits(const nn::Parameters& fresh) const;
  /// The rest of an epoch; false if it was stopped.
  bool run_epoch(const Report& report, const std::function<bool()>& should_stop);
  /// Trains with one batch.
  void step(const Digits& batch);
  [[nodiscard]] Digits batch_at(const std::vector<std::int64_t>& order, std::int64_t batch) const;
  [[nodiscard]] std::vector<std::int64_t> order_of(std::int64_t epoch) const;

  TrainingOptions options_;
  DigitData data_;
  nn::TrainingState state_;
  bool resumed_ = false;
  std::size_t nodes_per_step_ = 0;
  std::optional<double> loss_;
};

}  // namespace tessera::cli
