#include "tessera/op/families/equation.h"

#include <algorithm>

using namespace tessera;
using namespace tessera::op;

namespace {

constexpr std::string_view ellipsis = "...";

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::string name_of(Label label) {
  return label < 0 ? cat("axis ", label, " of '...'") : cat("'", static_cast<char>(label), "'");
}

/// A term as it is written: letters before and behind "...".
struct Term {
  std::string_view text;
  Labels before, behind;
  bool has_ellipsis = false;

  [[nodiscard]] std::size_t letters() const { return before.size() + behind.size(); }
  /// The labels if "..." stands for `axes` axes.
  [[nodiscard]] Labels with_axes(std::size_t axes) const {
    Labels out = before;
    for (std::size_t i = axes; i-- > 0;) out.push_back(-1 - static_cast<Label>(i));
    out.insert(out.end(), behind.begin(), behind.end());
    return out;
  }
};

class Reader {
 public:
  explicit Reader(const CallInfo& call) : call_(call) {
    for (char c : call.text("equation"))
      if (c != ' ') text_ += c;
  }

  Result<Equation> read() {
    const std::string_view all = text_;
    const std::size_t arrow = all.find("->");
    TESSERA_TRY(read_operands(all.substr(0, arrow)));
    if (arrow == std::string_view::npos)
      make_result();
    else
      TESSERA_TRY(read_result(all.substr(arrow + 2)));
    return std::move(out_);
  }

 private:
  template <class... Args>
  [[nodiscard]] Error error(const Args&... args) const {
    return call_.error("equation \"", text_, "\": ", args...);
  }

  Result<Term> read_term(std::string_view text) {
    Term out{text, {}, {}, false};
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (is_letter(text[i])) {
        (out.has_ellipsis ? out.behind : out.before).push_back(text[i]);
      } else if (text.substr(i, ellipsis.size()) == ellipsis && !out.has_ellipsis) {
        out.has_ellipsis = true;
        i += ellipsis.size() - 1;
      } else {
        return error("unexpected '", printable(text.substr(i, 1)), "' in the term \"", printable(text),
                     "\", expected letters and at most one '...'");
      }
    }
    return out;
  }

  Result<void> read_operands(std::string_view text) {
    const std::size_t terms = static_cast<std::size_t>(std::count(text.begin(), text.end(), ',')) + 1;
    if (terms != call_.inputs().size())
      return error("it has ", terms, " terms, but there are ", call_.inputs().size(), " operands");
    for (std::size_t i = 0; i < terms; ++i) {
      const Term term = TESSERA_TRY(read_term(text.substr(0, text.find(','))));
      TESSERA_TRY(add_operand(term, i));
      text.remove_prefix(std::min(text.size(), term.text.size() + 1));
    }
    return {};
  }

  Result<void> add_operand(const Term& term, std::size_t i) {
    const ValueType& type = call_.input(i);
    const bool fits = term.has_ellipsis ? term.letters() <= type.rank() : term.letters() == type.rank();
    if (!fits)
      return error("the term \"", term.text, "\" has ", term.letters(), " letters, but ", call_.input_name(i),
                   " (", type, ") has rank ", type.rank());
    const std::size_t hidden = type.rank() - term.letters();
    hidden_axes_ = std::max(hidden_axes_, hidden);
    out_.operands.push_back(term.with_axes(hidden));
    return add_sizes(i);
  }

  /// Within an operand axes of one name have one size; among operands 1 goes with all.
  Result<void> add_sizes(std::size_t i) {
    const Shape& shape = call_.input(i).shape;
    std::map<Label, Dim> own;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      const Label label = out_.operands[i][axis];
      const auto [at, is_new] = own.try_emplace(label, shape[axis]);
      if (!is_new)
        at->second = TESSERA_TRY(call_.unify(at->second, shape[axis],
                                             cat("equation \"", text_, "\": ", name_of(label), " twice in ",
                                                 call_.input_name(i), " (", call_.input(i), ")")));
    }
    for (const auto& [label, size] : own) TESSERA_TRY(join_size(label, size, i));
    return {};
  }

  Result<void> join_size(Label label, const Dim& size, std::size_t i) {
    const auto [at, is_new] = out_.sizes.try_emplace(label, size);
    if (is_new || size == Dim(1)) return {};
    if (at->second == Dim(1))
      at->second = size;
    else
      at->second = TESSERA_TRY(
          call_.unify(at->second, size,
                      cat("equation \"", text_, "\": ", name_of(label), " in the operands before and in ",
                          call_.input_name(i), " (", call_.input(i), ")")));
    return {};
  }

  Result<void> read_result(std::string_view text) {
    const Term term = TESSERA_TRY(read_term(text));
    out_.result = term.with_axes(term.has_ellipsis ? hidden_axes_ : 0);
    for (std::size_t i = 0; i < out_.result.size(); ++i) {
      const Label label = out_.result[i];
      if (!out_.sizes.contains(label))
        return error("the result has ", name_of(label), ", which no operand has");
      if (std::find(out_.result.begin(), out_.result.begin() + static_cast<std::ptrdiff_t>(i), label) !=
          out_.result.begin() + static_cast<std::ptrdiff_t>(i))
        return error("the result has ", name_of(label), " twice");
    }
    return {};
  }

  void make_result() {
    std::map<Label, int> times;
    for (const Labels& operand : out_.operands)
      for (Label label : operand) ++times[label];
    for (const auto& [label, count] : times)  // those of "..." come first, the outermost of them first
      if (label < 0 || count == 1) out_.result.push_back(label);
  }

  const CallInfo& call_;
  std::string text_;
  std::size_t hidden_axes_ = 0;
  Equation out_;
};

}  // namespace

Shape Equation::shape_of(const Labels& labels) const {
  Shape out;
  for (Label label : labels) out.push_back(sizes.at(label));
  return out;
}

Result<Equation> tessera::op::read_equation(const CallInfo& call) { return Reader(call).read(); }
