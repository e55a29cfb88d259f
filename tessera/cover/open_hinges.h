// What a walk along a piece must remember of the hinges it has begun, to notice a cycle when it closes.
//
// A hinge stays open while it has gates ahead: positions at which paths may still enter it. Of each open
// hinge we keep the slots of its own positions and the slots that it leads to: positions behind us with
// outputs ahead, and positions ahead in other hinges that it leads to. Leading is kept transitive. A cycle
// closes at the step whose position is in a hinge and has an input, from outside that hinge, which the hinge
// leads to.
//
// Sets of open hinges are interned, so that a state of the walk carries one number. Number 0 is the empty
// set.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "tessera/cover/mask.h"
#include "tessera/cover/sequence_table.h"

namespace tessera::cover {

/// What a step means for open hinges.
template <std::size_t W>
struct HingeStep {
  Mask<W> own;      ///< the position's slot, if it has one
  Mask<W> inputs;   ///< slots of its inputs
  Mask<W> retired;  ///< slots that nothing after this step reads
  Mask<W> kept;     ///< the own slot, if something after this step reads it
};

template <std::size_t W>
class OpenHinges {
 public:
  static constexpr std::uint32_t cycle = std::numeric_limits<std::uint32_t>::max();

  OpenHinges() { sets_.intern({}); }

  /// The set after a step whose position starts no hinge, or `cycle`.
  std::uint32_t advance(std::uint32_t set, const HingeStep<W>& step) {
    load(set);
    return finish(step, find_holder(step.own));
  }
  /// The set after a step whose position starts a hinge with the other positions `rest` and the gates among
  /// them.
  std::uint32_t advance_into(std::uint32_t set, const HingeStep<W>& step, const Mask<W>& rest,
                             const Mask<W>& gates) {
    load(set);
    const Mask<W> members = rest | step.kept;
    open_.push_back({members, gates, members});
    return finish(step, open_.size() - 1);
  }

 private:
  struct Hinge {
    Mask<W> members;  ///< its own positions: those ahead, and those behind that something ahead reads
    Mask<W> gates;    ///< those of them ahead that paths may enter at
    Mask<W> leads;    ///< what it leads to, itself included
  };
  static constexpr std::size_t hinge_words = 3 * W;
  static constexpr std::size_t nowhere = std::numeric_limits<std::size_t>::max();

  void load(std::uint32_t set) {
    const auto words = sets_[set];
    open_.resize(words.size() / hinge_words);
    for (std::size_t i = 0; i < open_.size(); ++i) {
      const std::uint64_t* from = words.data() + i * hinge_words;
      for (Mask<W>* mask : {&open_[i].members, &open_[i].gates, &open_[i].leads}) {
        std::copy_n(from, W, mask->words.begin());
        from += W;
      }
    }
  }
  [[nodiscard]] std::size_t find_holder(const Mask<W>& own) const {
    for (std::size_t i = 0; i < open_.size(); ++i)
      if (open_[i].members.meets(own)) return i;
    return nowhere;
  }
  /// Passes the step's position, which is in the open hinge `holder` or in none.
  std::uint32_t finish(const HingeStep<W>& step, std::size_t holder) {
    if (holder != nowhere && open_[holder].leads.meets(step.inputs - open_[holder].members)) return cycle;
    for (std::size_t i = 0; i < open_.size(); ++i) {
      if (i == holder || !open_[i].leads.meets(step.inputs | step.own)) continue;
      open_[i].leads |= holder == nowhere ? step.kept : open_[holder].leads;
    }
    const Mask<W> gone = step.retired | (step.own - step.kept);
    for (Hinge& hinge : open_) {
      hinge.members -= gone;
      hinge.leads -= gone;
      hinge.gates -= step.own;
    }
    std::erase_if(open_, [](const Hinge& hinge) { return !hinge.gates.any(); });
    return store();
  }
  std::uint32_t store() {
    std::sort(open_.begin(), open_.end(),
              [](const Hinge& a, const Hinge& b) { return a.members < b.members; });
    words_.clear();
    for (const Hinge& hinge : open_)
      for (const Mask<W>* mask : {&hinge.members, &hinge.gates, &hinge.leads})
        words_.insert(words_.end(), mask->words.begin(), mask->words.end());
    return sets_.intern(words_);
  }

  SequenceTable sets_;
  std::vector<Hinge> open_;  ///< the set at hand
  std::vector<std::uint64_t> words_;
};

}  // namespace tessera::cover
