#include "tessera/engine/profile.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "tessera/base/json.h"
#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::engine;

namespace {

double microseconds(std::chrono::nanoseconds time) { return static_cast<double>(time.count()) / 1000; }

/// "   12.3 us   40.1 %       7  name"
std::string row(std::chrono::nanoseconds time, std::chrono::nanoseconds all, std::uint64_t runs,
                std::string_view name) {
  const double share =
      all.count() == 0 ? 0 : 100 * static_cast<double>(time.count()) / static_cast<double>(all.count());
  char text[64];
  std::snprintf(text, sizeof text, "%12.1f us %6.1f %% %8llu  ", microseconds(time), share,
                static_cast<unsigned long long>(runs));
  return cat(text, name, "\n");
}

/// "model.cpp:12, model.cpp:14": each line once.
std::string lines_of(const KernelTime& kernel) {
  std::vector<std::string> lines;
  for (const ProfiledOp& op : kernel.ops) {
    if (op.file.empty()) continue;
    std::string line = cat(op.file, ":", op.line);
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(std::move(line));
  }
  return join(lines, ", ");
}

template <class T>
std::vector<const T*> longest_first(const std::vector<T>& list) {
  std::vector<const T*> out;
  for (const T& one : list) out.push_back(&one);
  std::stable_sort(out.begin(), out.end(), [](const T* a, const T* b) { return a->time > b->time; });
  return out;
}

}  // namespace

std::string Profile::to_text() const {
  if (level == ProfilingLevel::none) return "profiling is off\n";
  char head[96];
  std::snprintf(head, sizeof head, "%llu evaluation%s, %.1f us\n",
                static_cast<unsigned long long>(evaluations), evaluations == 1 ? "" : "s",
                microseconds(time));
  std::string out = head;
  if (!blocks.empty()) out += "        time   share     runs  block\n";
  for (const BlockTime* block : longest_first(blocks))
    out += row(block->time, time, block->runs, block->block.empty() ? "(none)" : block->block);
  if (!kernels.empty() && level == ProfilingLevel::per_kernel) {
    out += "        time   share     runs  kernel\n";
    for (const KernelTime* kernel : longest_first(kernels)) {
      const std::string lines = lines_of(*kernel);
      out += row(kernel->time, time, kernel->runs,
                 cat(kernel->name, kernel->block.empty() ? "" : cat(" in ", kernel->block),
                     lines.empty() ? "" : cat(" at ", lines)));
    }
  }
  return out;
}

std::string Profile::to_json() const {
  JsonWriter json;
  json.begin_object().member("displayTimeUnit", "ns").key("traceEvents").begin_array();
  for (const ProfileEvent& event : events) {
    const KernelTime* kernel = event.kernel == ProfileEvent::none ? nullptr : &kernels[event.kernel];
    json.begin_object().member("name", kernel == nullptr ? std::string("evaluation") : kernel->name);
    json.member("cat", kernel == nullptr ? "evaluation" : "kernel").member("ph", "X");
    json.member("ts", microseconds(event.begin)).member("dur", microseconds(event.time));
    json.member("pid", 1).member("tid", 256 * event.thread + event.device_thread);
    if (kernel != nullptr) {
      json.key("args").begin_object();
      if (!kernel->block.empty()) json.member("block", kernel->block);
      json.key("ops").begin_array();
      for (const ProfiledOp& op : kernel->ops)
        json.value(op.file.empty() ? op.name : cat(op.name, " ", op.file, ":", op.line));
      json.end_array().end_object();
    }
    json.end_object();
  }
  json.end_array().end_object();
  return json.text();
}
