#include "tessera/onnx/outline.h"

#include <charconv>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::onnx;

namespace {

constexpr int max_depth = 100;
constexpr std::size_t large = 1024;

/// The messages on the way to tensors.
enum class Message : std::uint8_t { other, model, graph, function, node, attribute, tensor };

/// What field `number` of a message holds, by onnx.proto.
Message message_in(Message outer, std::uint64_t number) {
  switch (outer) {
    case Message::model:
      return number == 7 ? Message::graph : number == 25 ? Message::function : Message::other;
    case Message::graph:
      return number == 1 ? Message::node : number == 5 ? Message::tensor : Message::other;
    case Message::function:
      return number == 7 ? Message::node : Message::other;
    case Message::node:
      return number == 5 ? Message::attribute : Message::other;
    case Message::attribute:
      return number == 5 || number == 10   ? Message::tensor
             : number == 6 || number == 11 ? Message::graph
                                           : Message::other;
    default:
      return Message::other;
  }
}

constexpr std::uint64_t raw_data = 9, doc_string = 12;
enum WireType : std::uint64_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

void append_varint(std::string& out, std::uint64_t value) {
  for (; value > 127; value >>= 7) out += static_cast<char>((value & 127) | 128);
  out += static_cast<char>(value);
}
void append_bytes(std::string& out, std::uint64_t field, std::string_view data) {
  append_varint(out, field << 3 | WireType::bytes);
  append_varint(out, data.size());
  out += data;
}

class Outliner {
 public:
  explicit Outliner(std::string_view all) : all_(all) {}

  /// Writes the message that lies at [begin, end). False if it does not decode.
  bool write(Message kind, std::size_t begin, std::size_t end, int depth, std::string& out) {
    if (depth > max_depth) return false;
    bool has_raw_data = false;
    for (std::size_t at = begin; at < end;) {
      const std::size_t field_begin = at;
      std::uint64_t key = 0, length = 0;
      if (!read_varint(at, end, key)) return false;
      const std::uint64_t number = key >> 3, type = key & 7;
      if (type == WireType::varint && !read_varint(at, end, length)) return false;
      if (type == WireType::bytes && !read_varint(at, end, length)) return false;
      const std::uint64_t size = type == WireType::bytes     ? length
                                 : type == WireType::fixed64 ? 8
                                 : type == WireType::fixed32 ? 4
                                                             : 0;
      if ((type == 3 || type == 4 || type > 5) || size > end - at) return false;
      const std::size_t data = at;
      at += size;
      const Message inner = type == WireType::bytes ? message_in(kind, number) : Message::other;
      if (inner != Message::other) {
        std::string part;
        if (!write(inner, data, at, depth + 1, part)) return false;
        append_bytes(out, number, part);
        continue;
      }
      if (kind == Message::tensor && number == doc_string) continue;
      if (kind == Message::tensor && number == raw_data) {
        if (has_raw_data) return false;  // of several the last counts: not worth knowing here
        has_raw_data = true;
        if (size >= large) {
          append_bytes(out, doc_string, cat(data, ":", size));
          continue;
        }
      }
      out += all_.substr(field_begin, at - field_begin);
    }
    return true;
  }

 private:
  bool read_varint(std::size_t& at, std::size_t end, std::uint64_t& out) const {
    out = 0;
    for (int shift = 0; shift < 64 && at < end; shift += 7) {
      const auto byte = static_cast<std::uint8_t>(all_[at++]);
      out |= std::uint64_t{byte & 127U} << shift;
      if (byte < 128) return true;
    }
    return false;
  }

  std::string_view all_;
};

}  // namespace

std::optional<std::string> tessera::onnx::outline_of(std::span<const std::byte> model) {
  const std::string_view all(reinterpret_cast<const char*>(model.data()), model.size());
  std::string out;
  if (!Outliner(all).write(Message::model, 0, all.size(), 0, out)) return std::nullopt;
  return out;
}

std::optional<Place> tessera::onnx::place_in(std::string_view doc_string) {
  Place out;
  const char* const end = doc_string.data() + doc_string.size();
  const auto offset = std::from_chars(doc_string.data(), end, out.offset);
  if (offset.ec != std::errc() || offset.ptr == end || *offset.ptr != ':') return std::nullopt;
  const auto length = std::from_chars(offset.ptr + 1, end, out.length);
  if (length.ec != std::errc() || length.ptr != end) return std::nullopt;
  return out;
}
