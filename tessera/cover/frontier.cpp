#include "tessera/cover/frontier.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "tessera/cover/open_hinges.h"

using namespace tessera::cover;

namespace {

/// States that all walks of one width may keep, so that memory stays bounded.
constexpr std::size_t kept_state_limit = 1 << 23;

/// Choices that are tried between two questions whether the effort is over, and what one takes.
constexpr std::size_t choices_between_questions = 1 << 16;
constexpr std::uint64_t choice_work = 12;

/// States with hinges take so much longer that the bounded search is sooner the better choice.
constexpr std::uint32_t hinge_penalty = 8;

template <std::size_t W>
struct State {
  Mask<W> covered;  ///< slots ahead
  std::uint32_t hinges = 0;
  Cost cost = 0;
};

/// How a state was reached.
struct Origin {
  std::uint32_t state = 0;  ///< in the layer before
  Choice choice = 0;
};

/// A StepKind in masks.
template <std::size_t W>
struct WalkStep {
  struct Option {
    Mask<W> slots;
    Mask<W> gates;
    Cost cost = 0;
    bool is_hinge = false;
  };
  HingeStep<W> hinges;
  std::vector<Option> options;
};

template <std::size_t W>
WalkStep<W> in_masks(const StepKind& kind) {
  WalkStep<W> out;
  if (kind.own != no_slot) out.hinges.own = Mask<W>::of(std::span(&kind.own, 1));
  if (kind.stays) out.hinges.kept = out.hinges.own;
  out.hinges.inputs = Mask<W>::of(kind.inputs);
  out.hinges.retired = Mask<W>::of(kind.retired);
  for (const StepChoice& choice : kind.choices)
    out.options.push_back(
        {Mask<W>::of(choice.slots), Mask<W>::of(choice.gates), choice.cost, choice.is_hinge});
  return out;
}

/// The states of the layer being made, each once, in the order of first appearance.
template <std::size_t W>
class LayerBuilder {
 public:
  void clear() {
    states_.clear();
    origins_.clear();
    std::ranges::fill(slots_, 0U);
  }
  void offer(const State<W>& state, Origin origin) {
    if (2 * states_.size() >= slots_.size()) grow();
    std::uint32_t& slot = find(state);
    if (slot == 0) {
      states_.push_back(state);
      origins_.push_back(origin);
      slot = static_cast<std::uint32_t>(states_.size());
    } else if (state.cost < states_[slot - 1].cost) {
      states_[slot - 1].cost = state.cost;
      origins_[slot - 1] = origin;
    }
  }
  [[nodiscard]] std::span<const State<W>> states() const { return states_; }
  [[nodiscard]] std::span<const Origin> origins() const { return origins_; }

 private:
  static std::size_t hash(const State<W>& state) {
    std::uint64_t h = state.hinges * 0x9e3779b97f4a7c15ULL;
    for (std::uint64_t word : state.covered.words) {
      h = (h ^ word) * 0xbf58476d1ce4e5b9ULL;
      h ^= h >> 29;
    }
    return h;
  }
  std::uint32_t& find(const State<W>& state) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = hash(state) & mask;
    for (; slots_[at] != 0; at = (at + 1) & mask) {
      const State<W>& other = states_[slots_[at] - 1];
      if (other.covered == state.covered && other.hinges == state.hinges) break;
    }
    return slots_[at];
  }
  void grow() {
    slots_.assign(std::max<std::size_t>(64, 2 * slots_.size()), 0);
    for (std::uint32_t i = 0; i < states_.size(); ++i) find(states_[i]) = i + 1;
  }

  std::vector<State<W>> states_;
  std::vector<Origin> origins_;
  std::vector<std::uint32_t> slots_;
};

/// Walks along pieces of up to 64 * W slots.
template <std::size_t W>
class Walk {
 public:
  Walk(const StepTable& table, std::uint32_t layer_limit) : table_(table), most_states_(layer_limit) {
    start_ = layers_.intern(std::vector<std::uint64_t>(state_words, 0));
  }

  std::optional<Answer> solve(const StepList& steps, Effort& effort) {
    std::vector<std::uint32_t> path;
    path.reserve(steps.kinds.size());
    Answer answer;
    std::uint32_t layer = start_;
    has_hinges_ = steps.has_hinges;
    layer_limit_ = steps.has_hinges ? most_states_ / hinge_penalty : most_states_;
    for (std::uint64_t kind : steps.kinds) {
      const std::uint64_t known_before = transitions_.size();
      const std::uint32_t transition = take(kind, layer, effort);
      const Transition& taken = transitions_[transition];
      if (taken.is_refused) return std::nullopt;
      if (transition == known_before) {
        answer.states += layer_size(layer);
        if (effort.is_over()) return std::nullopt;
      }
      path.push_back(transition);
      answer.cost += taken.cost;
      layer = taken.layer;
    }
    answer.bound = answer.cost;
    answer.choices = trace_back(path);
    return answer;
  }

 private:
  /// The outcome of a kind of step from a layer.
  struct Transition {
    std::uint32_t layer = 0;
    bool is_refused = false;  ///< the layer would be too large, or the effort ended before it was made
    std::size_t origins = 0;  ///< where those of the new layer's states begin
    Cost cost = 0;            ///< of the cheapest new state, from the cheapest old one
  };
  static constexpr std::size_t state_words = W + 2;

  [[nodiscard]] std::size_t layer_size(std::uint32_t layer) const {
    return layers_[layer].size() / state_words;
  }

  std::uint32_t take(std::uint64_t kind, std::uint32_t layer, Effort& effort) {
    const auto [known, is_new] =
        memo_.try_emplace(kind << 32 | layer, static_cast<std::uint32_t>(transitions_.size()));
    if (is_new) {
      if (steps_.size() <= kind) steps_.resize(table_.size());
      if (!steps_[kind]) steps_[kind] = in_masks<W>(table_[kind]);
      expand(*steps_[kind], layer, effort);
      transitions_.push_back(finish_layer());
    }
    return known->second;
  }

  [[nodiscard]] State<W> state_at(std::uint32_t layer, std::size_t index) const {
    const std::uint64_t* from = layers_[layer].data() + index * state_words;
    State<W> state;
    std::copy_n(from, W, state.covered.words.begin());
    state.hinges = static_cast<std::uint32_t>(from[W]);
    state.cost = static_cast<Cost>(from[W + 1]);
    return state;
  }

  void expand(const WalkStep<W>& step, std::uint32_t layer, Effort& effort) {
    builder_.clear();
    const std::size_t count = layer_size(layer);
    std::size_t tried = 0;
    for (std::uint32_t i = 0; i < count && builder_.states().size() <= layer_limit_ && !is_over_; ++i) {
      tried += step.options.size();
      if (tried >= choices_between_questions) {
        effort.spend(choice_work * std::exchange(tried, 0));
        is_over_ = effort.is_over();
      }
      const State<W> state = state_at(layer, i);
      const std::uint32_t plain = state.hinges == 0 ? 0 : hinges_.advance(state.hinges, step.hinges);
      if (state.covered.meets(step.hinges.own)) {
        if (plain == OpenHinges<W>::cycle) continue;
        builder_.offer({state.covered - step.hinges.own, plain, state.cost}, {i, covered_before});
      } else {
        // Tiles before the position alone: at equal cost more is covered.
        for (Choice c = 1; c < step.options.size(); ++c) choose(state, plain, step, {i, c});
        choose(state, plain, step, {i, 0});
      }
    }
    effort.spend(choice_work * tried);
  }

  /// REQUIRES the step's position is not covered. Starting a tile never closes a cycle by itself.
  void choose(const State<W>& state, std::uint32_t plain, const WalkStep<W>& step, Origin origin) {
    const auto& option = step.options[origin.choice];
    if (state.covered.meets(option.slots)) return;
    const std::uint32_t hinges =
        option.is_hinge ? hinges_.advance_into(state.hinges, step.hinges, option.slots, option.gates) : plain;
    builder_.offer({state.covered | option.slots, hinges, state.cost + option.cost}, origin);
  }

  /// Interns the layer that `builder_` holds, with costs relative to the cheapest state.
  Transition finish_layer() {
    const auto states = builder_.states();
    Transition out;
    out.origins = origins_.size();
    out.is_refused =
        is_over_ || states.size() > layer_limit_ || origins_.size() + states.size() > kept_state_limit;
    if (out.is_refused || states.empty()) return out;
    out.cost = std::ranges::min_element(states, {}, &State<W>::cost)->cost;
    words_.clear();
    if (has_hinges_)
      keep_useful(out.cost);
    else
      for (std::uint32_t i = 0; i < states.size(); ++i) keep(states[i], builder_.origins()[i], out.cost);
    out.layer = layers_.intern(words_);
    return out;
  }

  /// Leaves out states that have hinges to watch if another one with the same slots covered has none and is
  /// no dearer: whatever the first can do, the second can do as well.
  void keep_useful(Cost base) {
    const auto states = builder_.states();
    sorted_.resize(states.size());
    std::iota(sorted_.begin(), sorted_.end(), 0U);
    std::ranges::sort(sorted_, [&](std::uint32_t a, std::uint32_t b) {
      const auto order = states[a].covered <=> states[b].covered;
      return order != 0 ? order < 0 : states[a].hinges < states[b].hinges;
    });
    const State<W>* carefree = nullptr;  // the last one without hinges
    for (std::uint32_t i : sorted_) {
      const State<W>& state = states[i];
      const bool is_useless = state.hinges != 0 && carefree != nullptr &&
                              carefree->covered == state.covered && carefree->cost <= state.cost;
      if (state.hinges == 0) carefree = &state;
      if (!is_useless) keep(state, builder_.origins()[i], base);
    }
  }

  void keep(const State<W>& state, Origin origin, Cost base) {
    words_.insert(words_.end(), state.covered.words.begin(), state.covered.words.end());
    words_.push_back(state.hinges);
    words_.push_back(static_cast<std::uint64_t>(state.cost - base));
    origins_.push_back(origin);
  }

  /// The choices that lead to the only state after the last step.
  [[nodiscard]] std::vector<Choice> trace_back(std::span<const std::uint32_t> path) const {
    std::vector<Choice> choices(path.size());
    std::uint32_t state = 0;
    for (std::size_t i = path.size(); i-- > 0;) {
      const Origin& origin = origins_[transitions_[path[i]].origins + state];
      choices[i] = origin.choice;
      state = origin.state;
    }
    return choices;
  }

  const StepTable& table_;
  std::uint32_t most_states_;
  std::uint32_t layer_limit_ = 0;  ///< of the piece at hand
  bool has_hinges_ = false;        ///< so has the piece at hand
  bool is_over_ = false;
  OpenHinges<W> hinges_;
  std::vector<std::optional<WalkStep<W>>> steps_;  ///< by kind; set when first taken
  SequenceTable layers_;
  std::uint32_t start_ = 0;
  std::unordered_map<std::uint64_t, std::uint32_t> memo_;  ///< (kind, layer) to transition; only looked up
  std::vector<Transition> transitions_;
  std::vector<Origin> origins_;
  LayerBuilder<W> builder_;
  std::vector<std::uint32_t> sorted_;
  std::vector<std::uint64_t> words_;
};

}  // namespace

struct Frontier::Walks {
  Walks(const StepTable& table, std::uint32_t layer_limit)
      : one(table, layer_limit),
        two(table, layer_limit),
        four(table, layer_limit),
        eight(table, layer_limit) {}

  Walk<1> one;
  Walk<2> two;
  Walk<4> four;
  Walk<8> eight;
};

Frontier::Frontier(const StepTable& table, std::uint32_t layer_limit)
    : walks_(std::make_unique<Walks>(table, layer_limit)) {}
Frontier::Frontier(Frontier&&) noexcept = default;
Frontier::~Frontier() = default;

std::optional<Answer> Frontier::solve(const StepList& steps, Effort& effort) {
  if (steps.slots <= 64) return walks_->one.solve(steps, effort);
  if (steps.slots <= 128) return walks_->two.solve(steps, effort);
  if (steps.slots <= 256) return walks_->four.solve(steps, effort);
  if (steps.slots <= 512) return walks_->eight.solve(steps, effort);
  return std::nullopt;
}
