#include "tessera/runtime/cuda/module_cache.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>

#include "tessera/base/text.h"
#include "tessera/runtime/cuda/gate.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

constexpr std::size_t most_compiling_threads = 16;

/// Calls `work(i)` for each i below `count`, several at a time.
template <class F>
void for_each_in_threads(std::size_t count, const F& work) {
  std::atomic<std::size_t> next{0};
  const auto take = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  const std::size_t machine = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> helpers;
  try {
    while (helpers.size() + 1 < std::min({count, machine, most_compiling_threads}))
      helpers.emplace_back(take);
  } catch (...) {  // no more threads: those that there are do it
  }
  take();
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace

std::string ModuleCache::key_of(const Source& source) const {
  return cat("cuda sm_", stream_->context()->sm(), " ", compiler_->identity(), " ", source.entry, "\n",
             source.text);
}

FunctionRef ModuleCache::find(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(hash_text(key));
  if (found == entries_.end()) return nullptr;
  for (const Entry& entry : found->second)
    if (entry.key == key) return entry.function;
  return nullptr;
}

/// Another thread may have made the same in the meantime: then that one is taken.
FunctionRef ModuleCache::keep(std::string key, FunctionRef function) {
  const std::lock_guard lock(mutex_);
  if (count_ >= limit_) drop_unused();
  std::vector<Entry>& list = entries_[hash_text(key)];
  for (const Entry& entry : list)
    if (entry.key == key) return entry.function;
  list.push_back({std::move(key), function});
  ++count_;
  return function;
}

Result<FunctionRef> ModuleCache::make(const Source& source, const std::string& key) {
  const Current current = TESSERA_TRY(stream_->context()->enter());
  if (store_ != nullptr)
    if (const auto code = store_->load(key))
      if (auto loaded = Function::load(stream_, *code, source.entry)) {
        const std::lock_guard lock(mutex_);
        ++figures_.from_files;
        return loaded;
      }
  const auto code = TESSERA_TRY(compiler_->compile(source, stream_->context()->sm()));
  // Without a place for files the next process compiles again.
  if (store_ != nullptr) static_cast<void>(store_->save(key, code).ok());
  {
    const std::lock_guard lock(mutex_);
    ++figures_.compiled;
  }
  return Function::load(stream_, code, source.entry);
}

Result<std::vector<FunctionRef>> ModuleCache::get(std::span<const SourceRef> sources) {
  std::vector<FunctionRef> out(sources.size());
  std::unordered_map<std::string, std::vector<std::size_t>> wanted;  // by key: whose it is
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (sources[i]->user != nullptr) {
      out[i] = TESSERA_TRY(of_user(*sources[i]));
      continue;
    }
    std::string key = key_of(*sources[i]);
    out[i] = find(key);
    if (out[i] == nullptr) wanted[std::move(key)].push_back(i);
  }
  if (wanted.empty()) return out;

  struct Job {
    const std::string* key;
    const std::vector<std::size_t>* users;
    std::optional<Result<FunctionRef>> made;
  };
  std::vector<Job> jobs;
  for (const auto& [key, users] : wanted) jobs.push_back({&key, &users, {}});
  // The first one that fails is the error, whatever the order of the threads.
  std::sort(jobs.begin(), jobs.end(),
            [](const Job& a, const Job& b) { return a.users->front() < b.users->front(); });
  for_each_in_threads(jobs.size(), [&](std::size_t i) {
    try {
      jobs[i].made.emplace(make(*sources[jobs[i].users->front()], *jobs[i].key));
    } catch (const std::exception& thrown) {  // must not leave the thread
      jobs[i].made.emplace(Error(ErrorCode::internal, thrown.what()));
    }
  });
  for (Job& job : jobs) {
    const FunctionRef made = keep(*job.key, TESSERA_TRY(*std::move(job.made)));
    for (const std::size_t user : *job.users) out[user] = made;
  }
  return out;
}

Result<FunctionRef> ModuleCache::of_user(const Source& source) {
  return users_.get(source, [this](const SourceRef& text) -> Result<FunctionRef> {
    // What it includes is no part of the text: such code is compiled whenever the text has changed.
    if (text->text.find("#include") == std::string::npos) return TESSERA_TRY(get({&text, 1}))[0];
    const auto code = TESSERA_TRY(compiler_->compile(*text, stream_->context()->sm()));
    return Function::load(stream_, code, text->entry);
  });
}

std::size_t ModuleCache::size() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

ModuleFigures ModuleCache::figures() const {
  const std::lock_guard lock(mutex_);
  return figures_;
}

void ModuleCache::drop_unused() {
  for (auto& [hash, list] : entries_)
    count_ -= std::erase_if(list, [](const Entry& entry) { return entry.function.use_count() == 1; });
  std::erase_if(entries_, [](const auto& entry) { return entry.second.empty(); });
}
