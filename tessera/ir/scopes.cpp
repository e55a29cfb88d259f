#include "tessera/ir/scopes.h"

using namespace tessera::ir;

void Scopes::open() {
  current_ = next_scope_++;
  open_.push_back({current_, 0, undo_.size()});
}

void Scopes::close() {
  for (const std::size_t keep = open_.back().undo_size; undo_.size() > keep; undo_.pop_back()) {
    const Undo& undo = undo_.back();
    Meaning& meaning = meanings_[*undo.var];
    meaning.scope = undo.scope;
    meaning.index = undo.index;
    if (undo.shadows) ++epoch_;
  }
  open_.pop_back();
  current_ = open_.back().id;
}

void Scopes::bind(const Var& var) {
  Meaning& meaning = meanings_[var];
  const bool shadows = meaning.free_index != none || meaning.scope == current_;
  if (shadows) ++epoch_;
  undo_.push_back({&var, meaning.scope, meaning.index, shadows});
  meaning.scope = current_;
  meaning.index = open_.back().next_index++;
}
