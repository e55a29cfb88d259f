#include "tessera/describe/diagnostic.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::description;

namespace {

std::string owner_text(const Diagnostic& d) {
  std::vector<std::string> parts;
  if (!d.block.empty()) parts.push_back(cat("block ", shown(d.block)));
  if (!d.node.empty()) parts.push_back(cat(d.is_region ? "region " : "node ", shown(d.node)));
  if (!d.parameter.empty()) parts.push_back(cat("parameter ", shown(d.parameter)));
  return join(parts, ", ");
}

template <class Claim>
std::vector<Diagnostic> those(const std::vector<Diagnostic>& all, Claim&& claim) {
  std::vector<Diagnostic> out;
  std::copy_if(all.begin(), all.end(), std::back_inserter(out), claim);
  return out;
}

/// "node 'k': message": the place is told apart.
std::string message_with_owner(const Diagnostic& d) {
  const std::string owner = owner_text(d);
  return owner.empty() ? d.message : cat(owner, ": ", d.message);
}

}  // namespace

std::string tessera::description::shown(std::string_view name) {
  constexpr std::size_t longest = 60;
  return cat("'", printable(shortened(name, longest)), "'");
}

std::string Diagnostic::to_text() const {
  const std::string where = at.known() ? cat(at.to_text(), ": ") : "";
  return cat(where, severity == Severity::error ? "error: " : "warning: ", message_with_owner(*this));
}

void Report::add(Diagnostic diagnostic) {
  ++(diagnostic.severity == Severity::error ? errors_ : warnings_);
  if (kept_.size() < limit_) kept_.push_back(std::move(diagnostic));
}

void Report::add(Report other) {
  for (Diagnostic& diagnostic : other.kept_)
    if (kept_.size() < limit_) kept_.push_back(std::move(diagnostic));
  errors_ += other.errors_;
  warnings_ += other.warnings_;
}

std::vector<Diagnostic> Report::of_block(std::string_view block) const {
  return those(kept_, [&](const Diagnostic& d) { return d.block == block; });
}

std::vector<Diagnostic> Report::of_node(std::string_view node) const {
  return those(kept_, [&](const Diagnostic& d) { return d.node == node; });
}

std::string Report::to_text() const {
  std::string out;
  for (const Diagnostic& diagnostic : kept_) out += diagnostic.to_text() + "\n";
  const std::size_t left_out = errors_ + warnings_ - kept_.size();
  if (left_out != 0) out += cat(left_out, " more are not shown\n");
  return out;
}

Error Report::to_error() const {
  const auto first = std::find_if(kept_.begin(), kept_.end(),
                                  [](const Diagnostic& d) { return d.severity == Severity::error; });
  if (first == kept_.end()) return Error(ErrorCode::invalid_argument, cat(errors_, " errors"));
  Error error(first->code, message_with_owner(*first), first->at);
  constexpr std::size_t most_notes = 20;
  std::size_t notes = 0;
  for (const Diagnostic& d : kept_)
    if (&d != &*first && d.severity == Severity::error && notes++ < most_notes)
      static_cast<void>(std::move(error).note(d.to_text()));
  return error;
}

JsonWriter& tessera::description::write_json(JsonWriter& json, const Diagnostic& d) {
  json.begin_object();
  json.member("severity", d.severity == Severity::error ? "error" : "warning");
  json.member("code", to_string(d.code));
  if (!d.block.empty()) json.member("block", d.block);
  if (!d.node.empty()) json.member(d.is_region ? "region" : "node", d.node);
  if (!d.parameter.empty()) json.member("parameter", d.parameter);
  json.member("message", d.message);
  if (d.at.known()) json.member("file", d.at.file).member("line", d.at.line).member("column", d.at.column);
  return json.end_object();
}
