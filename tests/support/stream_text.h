// Streams for tests, written as text: "a = f(b, c); d = g(a, 0.5); h(d) read; free a, d".
//
// A number is a parameter. An effect stands behind the instruction. `free` belongs to the instruction before
// it.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tessera/base/hash.h"
#include "tessera/op/op_facts.h"
#include "tessera/stream/components.h"
#include "tessera/stream/encoder.h"
#include "tessera/stream/hot_path_detector.h"
#include "tessera/stream/instruction_json.h"
#include "tessera/stream/readable.h"
#include "tessera/stream/recorder.h"

namespace tessera::testing {

class StreamText {
 public:
  std::vector<stream::OwnedInstruction> parse(std::string_view text) {
    std::vector<stream::OwnedInstruction> out;
    for (const std::string& piece : split(text, ';')) {
      if (piece.empty()) continue;
      if (piece.rfind("free", 0) == 0 && piece.find('(') == std::string::npos) {
        for (const std::string& name : split(std::string_view(piece).substr(4), ','))
          out.back().frees.push_back(id(name));
        continue;
      }
      out.push_back(instruction(piece));
    }
    return out;
  }

  stream::ValueId id(const std::string& name) { return ids_.try_emplace(name, ids_.size()).first->second; }

 private:
  stream::OwnedInstruction instruction(const std::string& text) {
    stream::OwnedInstruction out;
    const std::size_t open = text.find('('), close = text.rfind(')');
    std::string_view head(text.data(), open);
    if (const std::size_t equals = head.find('='); equals != std::string_view::npos) {
      for (const std::string& name : split(head.substr(0, equals), ','))
        out.outputs.push_back({id(name), {}});
      head.remove_prefix(equals + 1);
    }
    for (const std::string& name : split(std::string_view(text).substr(open + 1, close - open - 1), ',')) {
      if (name.empty()) continue;
      const bool is_number = name[0] == '-' || (name[0] >= '0' && name[0] <= '9');
      out.inputs.push_back(is_number ? stream::Input::parameter() : stream::Input::of(id(name)));
    }
    const std::string effect = trimmed(std::string_view(text).substr(close + 1));
    if (!effect.empty()) out.effect = stream::parse_effect(effect).value();
    out.set_op(op::op_facts()->find(trimmed(head)));
    return out;
  }

  static std::string trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\n')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\n')) text.remove_suffix(1);
    return std::string(text);
  }
  static std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> out;
    for (;;) {
      const std::size_t at = text.find(separator);
      out.push_back(trimmed(text.substr(0, at)));
      if (at == std::string_view::npos) return out;
      text.remove_prefix(at + 1);
    }
  }

  std::unordered_map<std::string, stream::ValueId> ids_;
};

/// The trace of a stream in which what nobody reads is live.
inline stream::Trace trace_of(const std::vector<stream::OwnedInstruction>& instructions) {
  stream::Trace trace;
  stream::Recorder recorder(trace);
  for (const auto& instruction : instructions) recorder.record(instruction.view());
  trace.set_unread_live();
  return trace;
}
inline stream::Trace trace_of(std::string_view text) { return trace_of(StreamText().parse(text)); }

inline Hash128 signature_of(std::string_view text) { return stream::signature(trace_of(text)); }

/// The signatures of the components, sorted.
inline std::vector<Hash128> component_signatures(const stream::Trace& trace) {
  stream::Components components;
  components.partition(trace);
  stream::Encoder encoder;
  std::vector<Hash128> out;
  for (std::size_t i = 0; i < components.size(); ++i)
    out.push_back(encoder.encode(trace, components.ops(i)).signature);
  std::sort(out.begin(), out.end());
  return out;
}

inline std::vector<std::string> readable_lines(const stream::Trace& trace) {
  stream::Encoder encoder;
  return stream::readable(trace, encoder.encode(trace));
}

/// The program a JSON text describes, as `tessera signature` reads it.
inline stream::Trace trace_of_json(const std::string& json) {
  const auto document = *JsonDocument::parse("<test>", json);
  const stream::StreamFile file = *stream::InstructionReader(*op::op_facts()).stream(document.cursor());
  stream::Trace trace;
  stream::Recorder recorder(trace);
  for (const auto& instruction : file.instructions) recorder.record(instruction.view());
  if (!file.has_live) trace.set_unread_live();
  for (const stream::ValueId id : file.live)
    if (const auto value = recorder.find(id); value && value->is_result()) trace.set_live(*value);
  return trace;
}

/// Records instructions and keeps the answers that were hot.
inline std::vector<stream::HotPathAnswer> record_all(
    stream::HotPathDetector& detector, const std::vector<stream::OwnedInstruction>& instructions) {
  std::vector<stream::HotPathAnswer> out;
  for (const auto& instruction : instructions)
    if (const auto answer = detector.record(instruction.view()); answer.hot) out.push_back(answer);
  return out;
}

inline std::string repeated(std::string_view text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) (out += text) += ';';
  return out;
}

}  // namespace tessera::testing
