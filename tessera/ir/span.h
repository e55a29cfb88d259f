// Where a node comes from: a line of the caller's program, a place in a parsed text, a node of an imported
// model.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/ref.h"

namespace tessera::ir {

/// What a span points into. Shared by all the spans of one file.
class SourceFile {
 public:
  /// `labels` are for models, whose "lines" have names: labels[i] describes line i + 1 ("node 'conv1'
  /// (Conv)").
  static Ref<SourceFile> create(std::string name, std::vector<std::string> labels = {}) {
    return Ref<SourceFile>(new SourceFile(std::move(name), std::move(labels)));
  }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::vector<std::string>& labels() const { return labels_; }

  void retain() const { refs_.fetch_add(1, std::memory_order_relaxed); }
  void release() const {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 private:
  SourceFile(std::string name, std::vector<std::string> labels)
      : name_(std::move(name)), labels_(std::move(labels)) {}
  ~SourceFile() = default;

  mutable std::atomic<std::uint32_t> refs_{0};
  std::string name_;
  std::vector<std::string> labels_;
};

/// A place in a source file. Never part of a node's identity.
struct Span {
  Ref<SourceFile> file;
  std::uint32_t line = 0;
  std::uint32_t column = 0;

  /// The place in the form errors carry.
  [[nodiscard]] SourceSpan resolve() const;
};

}  // namespace tessera::ir
