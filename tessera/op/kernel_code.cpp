#include "tessera/op/kernel_code.h"

#include <sys/stat.h>

#include <cstdio>
#include <span>

#include "tessera/base/text.h"

using namespace tessera;
using namespace tessera::op;

namespace {

/// No kernel is larger; a file that somebody gave by mistake may be.
constexpr std::uint64_t most_bytes = 64 << 20;
constexpr std::int64_t nanoseconds = 1'000'000'000;

std::int64_t time_of(const timespec& time) {
  return static_cast<std::int64_t>(time.tv_sec) * nanoseconds + time.tv_nsec;
}

Error file_error(ErrorCode code, const std::string& path, std::string_view why) {
  return Error(code, cat("'", printable(shortened(path, 200)), "': ", why));
}

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

}  // namespace

CodeForm tessera::op::form_of_file(std::string_view path) {
  if (ends_with(path, ".ptx")) return CodeForm::ptx;
  return ends_with(path, ".cubin") ? CodeForm::cubin : CodeForm::cuda;
}

std::shared_ptr<KernelSource> KernelSource::from_file(std::string path, CodeForm form) {
  const std::shared_ptr<KernelSource> out(new KernelSource);
  out->path_ = std::move(path);
  out->form_ = form;
  return out;
}

std::shared_ptr<KernelSource> KernelSource::from_file_below(std::string folder, std::string path,
                                                            CodeForm form) {
  auto out = from_file(std::move(path), form);
  out->folder_ = std::move(folder);
  return out;
}

std::shared_ptr<KernelSource> KernelSource::from_text(std::string text, CodeForm form, std::string origin) {
  const std::shared_ptr<KernelSource> out(new KernelSource);
  out->code_ = std::make_shared<KernelCode>(KernelCode{form, std::move(text), std::move(origin)});
  return out;
}

KernelSource::Stamp KernelSource::stamp_of(const struct stat& status) {
  return {.device = status.st_dev,
          .file = status.st_ino,
          .bytes = static_cast<std::uint64_t>(status.st_size),
          .modified = time_of(status.st_mtim),
          .changed = time_of(status.st_ctim)};
}

Result<OpenFile> KernelSource::open() const {
  return folder_ ? TESSERA_TRY(BaseFolder::of(*folder_)).open(path_) : OpenFile::open(path_);
}

/// REQUIRES the lock. The file is copied: whoever writes to it must not change code that is in use.
Result<void> KernelSource::read() {
  // A look at the path takes less than opening it, and says no more than that nothing has changed.
  struct stat seen {};
  if (code_ != nullptr && ::stat(full_path().c_str(), &seen) == 0 && stamp_of(seen) == stamp_) return {};
  const OpenFile file = TESSERA_TRY(open());
  if (file.size() > most_bytes)
    return file_error(ErrorCode::limit, full_path(),
                      cat("has ", file.size(), " bytes, a kernel has at most ", most_bytes));
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  if (!file.read(std::as_writable_bytes(std::span(text))))
    return file_error(ErrorCode::io, full_path(), "cannot be read");
  stamp_ = stamp_of(file.status());
  error_.clear();
  if (code_ == nullptr || code_->text != text)
    code_ = std::make_shared<KernelCode>(KernelCode{form_, std::move(text), full_path()});
  return {};
}

Result<void> KernelSource::check() const {
  const std::lock_guard lock(mutex_);
  if (!path_.empty()) TESSERA_TRY(open());
  return {};
}

Result<KernelCodeRef> KernelSource::current() {
  const std::lock_guard lock(mutex_);
  if (path_.empty()) return code_;
  auto done = read();
  if (done) return code_;
  if (code_ == nullptr) return std::move(done).error();
  say(done.error().message());
  return code_;
}

void KernelSource::set_text(std::string text, CodeForm form) {
  const std::lock_guard lock(mutex_);
  const std::string origin = code_ != nullptr ? code_->origin : full_path();
  path_.clear();
  error_.clear();
  if (code_ != nullptr && code_->form == form && code_->text == text) return;
  code_ = std::make_shared<KernelCode>(KernelCode{form, std::move(text), origin});
}

void KernelSource::refuse(const KernelCodeRef& code, const Error& why) {
  const std::lock_guard lock(mutex_);
  if (code == code_) say(why.message());
}

/// REQUIRES the lock.
void KernelSource::say(std::string why) {
  if (error_ == why) return;
  error_ = std::move(why);
  std::fprintf(stderr, "tessera: %s; the kernel as it was goes on\n", error_.c_str());
}

std::string KernelSource::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}
