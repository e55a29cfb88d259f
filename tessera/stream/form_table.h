// Components as wholes: which sequences of letters they have consisted of so far. When one of them has the
// letters of another that was over before it began, those letters have occurred twice in a row.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "tessera/stream/unit_table.h"

namespace tessera::stream {

class FormTable {
 public:
  /// A component that has, or had when it ended, the letters of a form.
  struct Member {
    Lane* lane = nullptr;  ///< null if it has ended
    std::uint64_t first_position = 0;
    std::uint64_t last_position = 0;
    std::vector<Lane::Credit> credits;  ///< of one that has ended: the units counted in it
  };
  struct Form {
    std::uint64_t hash = 0;
    std::optional<Word> word;  ///< set when a member has ended
    std::vector<Member> members;
  };

  /// Keeps at most `capacity` forms of components that have ended, with at most `letters` letters together.
  FormTable(std::size_t capacity, std::size_t letters) : capacity_(capacity), letter_capacity_(letters) {}

  /// The lane has these letters for the time being.
  void enter(Lane& lane);
  /// The lane goes on, or is over.
  void leave(Lane& lane);
  /// The lane has ended with these letters. REQUIRES it was entered.
  void end(Lane& lane);

  /// The form that has the letters of the lane, or null.
  [[nodiscard]] Form* find(const Lane& lane);
  /// Forgets a form and returns its members.
  std::vector<Member> take(Form& form);

  [[nodiscard]] std::size_t size() const { return forms_.size(); }

 private:
  using Forms = std::list<Form>;  // last used first

  [[nodiscard]] static bool has_letters_of(const Form& form, const Lane& lane);
  [[nodiscard]] Forms::iterator find_form(const Lane& lane);
  void erase(Forms::iterator form);
  void shrink();

  std::size_t capacity_;
  std::size_t letter_capacity_;
  std::size_t letters_ = 0;
  Forms forms_;
  std::unordered_multimap<std::uint64_t, Forms::iterator> by_hash_;
};

}  // namespace tessera::stream
