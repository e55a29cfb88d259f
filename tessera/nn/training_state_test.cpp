#include "tessera/nn/training_state.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "tessera/nn/layers.h"
#include "tessera/tensor/scope.h"

using namespace tessera;
using nn::Parameters;
using nn::TrainingState;

namespace {

struct File {
  std::string path = testing::TempDir() + "tessera_training_state_test.safetensors";
  ~File() { std::remove(path.c_str()); }
};

TrainingState beginning(const std::shared_ptr<Engine>& engine) {
  TrainingState out;
  out.parameters = {{"w1", nn::glorot_uniform(3, 8, {.engine = engine})},
                    {"b1", zeros({8}, {.engine = engine})},
                    {"w2", nn::glorot_uniform(8, 2, {.engine = engine})}};
  return out;
}

/// Steps that draw their data and their dropout at random.
void train(TrainingState& state, int steps, const std::shared_ptr<Engine>& engine) {
  for (int i = 0; i < steps; ++i) {
    const Tensor x = randn({16, 3}, {.engine = engine});
    const auto found = nn::loss_and_gradients(
        [&](const Parameters& p) {
          const Tensor hidden = tanh(nn::linear(x, p.at("w1"), p.at("b1")));
          const Tensor y = nn::linear(nn::dropout(hidden, {.rate = 0.3}), p.at("w2"));
          return mean(square(y - x.slice({{}, {0, 2}})));
        },
        state.parameters);
    optim::adamw(state.parameters, found.gradients, state.optimizer, 0.05);
    optim::eval(state.parameters, state.optimizer);
    ++state.progress["batches"];
  }
}

std::vector<std::byte> bytes_of(const TrainingState& state) {
  std::vector<std::byte> out;
  for (const Parameters* part : {&state.parameters, &state.optimizer.slots})
    for (const auto& [name, value] : *part) {
      const auto bytes = value.bytes();
      out.insert(out.end(), bytes.begin(), bytes.end());
    }
  return out;
}

TEST(TrainingState, five_steps_saved_loaded_and_five_more_are_ten_bit_for_bit) {
  const File file;
  auto engine = Engine::create({.seed = 11, .deterministic = true});
  TrainingState whole = beginning(engine);
  train(whole, 10, engine);

  auto before = Engine::create({.seed = 11, .deterministic = true}),
       after = Engine::create({.seed = 99, .deterministic = true});
  TrainingState half = beginning(before);
  train(half, 5, before);
  nn::save_training(file.path, half, before);
  TrainingState resumed = nn::load_training(file.path, after);
  EXPECT_EQ(bytes_of(resumed), bytes_of(half));
  EXPECT_EQ(resumed.progress.at("batches"), 5);
  train(resumed, 5, after);

  EXPECT_EQ(bytes_of(resumed), bytes_of(whole));
  EXPECT_NE(bytes_of(half), bytes_of(whole));
  EXPECT_EQ(resumed.optimizer.steps, 10);
  EXPECT_EQ(resumed.progress, whole.progress);
}

TEST(TrainingState, other_files_are_refused_and_change_nothing) {
  const File file;
  auto engine = Engine::create({.seed = 5});
  const auto refuse = [&](const NamedTensors& tensors, std::map<std::string, std::string> metadata) {
    save_safetensors(file.path, tensors, metadata);
    try {
      (void)nn::load_training(file.path, engine);
    } catch (const Exception& e) {
      return e.error().to_text();
    }
    return std::string();
  };
  const NamedTensors good{{"parameter/w", zeros({2}, {.engine = engine})}};
  EXPECT_NE(refuse(good, {}).find("this is no saved training"), std::string::npos);
  std::map<std::string, std::string> metadata{{"format", "tessera training 1"}};
  EXPECT_NE(refuse(good, metadata).find("says its 'steps'"), std::string::npos);
  metadata["steps"] = "many";
  EXPECT_NE(refuse(good, metadata).find("'steps' is 'many', expected a whole number"), std::string::npos);
  metadata["steps"] = "3";
  metadata["random_seed"] = "1";
  EXPECT_NE(refuse(good, metadata).find("says its 'random_offset'"), std::string::npos);
  metadata["random_offset"] = "2";
  EXPECT_NE(refuse({{"x", good.at("parameter/w")}}, metadata).find("'x' is no part of a training"),
            std::string::npos);
  EXPECT_EQ(engine->random_state().seed, 5u);
  EXPECT_EQ(refuse(good, metadata), "");
  EXPECT_EQ(engine->random_state().seed, 1u);
}

}  // namespace
