#include "tessera/op/kernel_code.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

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

std::shared_ptr<KernelSource> KernelSource::from_text(std::string text, CodeForm form, std::string origin) {
  const std::shared_ptr<KernelSource> out(new KernelSource);
  out->code_ = std::make_shared<KernelCode>(KernelCode{form, std::move(text), std::move(origin)});
  return out;
}

Result<KernelSource::Stamp> KernelSource::stamp_of(const std::string& path) {
  struct stat found = {};
  if (::stat(path.c_str(), &found) != 0) return file_error(ErrorCode::io, path, std::strerror(errno));
  if (!S_ISREG(found.st_mode)) return file_error(ErrorCode::io, path, "is no regular file");
  Stamp out;
  out.device = found.st_dev;
  out.file = found.st_ino;
  out.bytes = static_cast<std::uint64_t>(found.st_size);
  out.modified = time_of(found.st_mtim);
  out.changed = time_of(found.st_ctim);
  return out;
}

/// REQUIRES the lock. The file is copied: whoever writes to it must not change code that is in use.
Result<void> KernelSource::read() {
  const Stamp stamp = TESSERA_TRY(stamp_of(path_));
  if (code_ != nullptr && stamp == stamp_) return {};
  if (stamp.bytes > most_bytes)
    return file_error(ErrorCode::limit, path_,
                      cat("has ", stamp.bytes, " bytes, a kernel has at most ", most_bytes));
  std::ifstream file(path_, std::ios::binary);
  std::string text(static_cast<std::size_t>(stamp.bytes), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file && !file.eof()) return file_error(ErrorCode::io, path_, "cannot be read");
  text.resize(static_cast<std::size_t>(file.gcount()));
  stamp_ = stamp;
  error_.clear();
  if (code_ == nullptr || code_->text != text)
    code_ = std::make_shared<KernelCode>(KernelCode{form_, std::move(text), path_});
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
  const std::string origin = code_ != nullptr ? code_->origin : path_;
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
