#include "tessera/runtime/code_store.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "tessera/base/text.h"
#include "tessera/kernel/kernel_case.h"
#include "tessera/runtime/cache_options.h"
#include "tessera/runtime/cpu/kernel_cache.h"

using namespace tessera;
using namespace tessera::kernel;
using namespace tessera::runtime;
using namespace tessera::runtime::cpu;

namespace {

/// A folder of its own for each test.
class CodeStoreTest : public ::testing::Test {
 protected:
  CodeStoreTest() {
    std::string name = (std::filesystem::temp_directory_path() / "tessera-code-XXXXXX").string();
    root_ = mkdtemp(name.data());
  }
  ~CodeStoreTest() override {
    chmod(root_.c_str(), 0700);
    std::filesystem::remove_all(root_);
  }
  [[nodiscard]] std::string folder() const { return root_ + "/deep/kernels"; }

  static std::vector<std::byte> code(int n) {
    return std::vector<std::byte>(1000, static_cast<std::byte>(n));
  }

  std::string root_;
};

TEST_F(CodeStoreTest, GivesBackWhatWasSaved) {
  const CodeStore store(folder());
  EXPECT_FALSE(store.load("a"));
  ASSERT_TRUE(store.save("a", code(1)));
  ASSERT_TRUE(store.save("b", code(2)));
  EXPECT_EQ(store.load("a"), code(1));
  EXPECT_EQ(store.load("b"), code(2));
  EXPECT_FALSE(store.load("c"));
}

TEST_F(CodeStoreTest, TheWholeKeyDecides) {
  const CodeStore store(folder());
  ASSERT_TRUE(store.save("a", code(1)));
  std::filesystem::rename(store.path_of("a"), store.path_of("b"));  // as if the hashes were equal
  EXPECT_FALSE(store.load("b"));
}

/// Whether `f` gave true in a process of its own: what it sets for the process does not last.
template <class F>
bool in_child(F&& f) {
  const pid_t child = fork();
  if (child == 0) _exit(f() ? 0 : 1);
  int status = 1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_F(CodeStoreTest, BelievesNoFileThatWasChangedOrCut) {
  const CodeStore store(folder());
  ASSERT_TRUE(store.save("key", code(1)));
  const std::string path = store.path_of("key");
  std::ifstream in(path, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  const auto write = [&](const std::string& text) { std::ofstream(path, std::ios::binary) << text; };
  for (std::size_t size = 0; size < whole.size(); size += 13) {
    write(whole.substr(0, size));
    EXPECT_FALSE(store.load("key")) << size;
  }
  for (std::size_t at = 0; at < whole.size(); at += 11) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x40);
    write(changed);
    EXPECT_FALSE(store.load("key")) << at;
  }
  write(whole + "x");
  EXPECT_FALSE(store.load("key"));
  write(whole);
  EXPECT_TRUE(store.load("key"));
  chmod(path.c_str(), 0666);
  EXPECT_FALSE(store.load("key")) << "everybody may have written it";
  chmod(path.c_str(), 0620);
  EXPECT_FALSE(store.load("key")) << "the group may have written it";
}

TEST_F(CodeStoreTest, FilesAreForTheUserAlone) {
  EXPECT_TRUE(in_child([&] {
    umask(0);
    const CodeStore store(folder());
    struct stat info {};
    return store.save("key", code(1)).ok() && stat(store.path_of("key").c_str(), &info) == 0 &&
           (info.st_mode & 0777) == 0600 && store.load("key") == code(1);
  }));
}

TEST_F(CodeStoreTest, AFolderThatCannotBeWrittenIsAnError) {
  std::ofstream(root_ + "/deep") << "a file";
  const auto saved = CodeStore(folder()).save("key", code(1));
  ASSERT_FALSE(saved);
  EXPECT_NE(saved.error().message().find("cannot make the folder"), std::string::npos)
      << saved.error().message();
  EXPECT_FALSE(CodeStore("").save("key", code(1)));
  EXPECT_FALSE(CodeStore("").load("key"));
  const auto full = CodeStore("/dev/full/kernels").save("key", code(1));
  EXPECT_FALSE(full);
}

TEST_F(CodeStoreTest, ADiskThatIsFullHalfwayLeavesWhatWasThere) {
  const CodeStore store(folder());
  ASSERT_TRUE(store.save("key", code(1)));
  EXPECT_TRUE(in_child([&] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit most{500, 500};  // a file has more than 1,000 bytes
    setrlimit(RLIMIT_FSIZE, &most);
    const bool failed = !store.save("key", code(2)).ok() && !store.save("new", code(2)).ok();
    return failed && store.load("key") == code(1) && !store.load("new");
  }));
  const std::filesystem::directory_iterator files(folder());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1) << "parts of files are left";
  EXPECT_EQ(store.load("key"), code(1));
}

TEST_F(CodeStoreTest, AFolderThatMayOnlyBeReadIsStillRead) {
  constexpr uid_t nobody = 65534;
  const CodeStore store(root_ + "/kernels");
  EXPECT_TRUE(in_child([&] {
    if (geteuid() == 0 && (chown(root_.c_str(), nobody, nobody) != 0 || seteuid(nobody) != 0)) return false;
    if (!store.save("key", code(1)).ok() || chmod((root_ + "/kernels").c_str(), 0500) != 0) return false;
    const auto saved = store.save("other", code(2));
    return !saved.ok() && store.load("key") == code(1) && !store.load("other");
  }));
}

TEST_F(CodeStoreTest, TwoProcessesMayShareAFolder) {
  const CodeStore store(folder());
  const auto work = [&](int own) {
    for (int i = 0; i < 100; ++i) {
      const std::string key = cat("key ", i % 7);
      if (!store.save(key, code(i % 7)).ok() || store.load(key) != code(i % 7)) return false;
      if (!store.save(cat("own ", own), code(own)).ok()) return false;
    }
    return true;
  };
  const pid_t child = fork();
  if (child == 0) _exit(work(1) ? 0 : 1);
  EXPECT_TRUE(work(2));
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  for (int i = 0; i < 7; ++i) EXPECT_EQ(store.load(cat("key ", i)), code(i));
  EXPECT_EQ(store.load("own 1"), code(1));
}

TEST_F(CodeStoreTest, ThreadsMayWriteOneKey) {
  const CodeStore store(folder());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        EXPECT_TRUE(store.save("key", code(7)));
        const auto got = store.load("key");
        EXPECT_TRUE(got && *got == code(7));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

// ---- who may have put what there

TEST_F(CodeStoreTest, Trap_U20_AFolderThatIsReachedByALinkIsNotUsed) {
  const CodeStore real(root_ + "/real/kernels");
  ASSERT_TRUE(real.save("key", code(1)));
  std::filesystem::create_directory_symlink(root_ + "/real", root_ + "/link");
  std::filesystem::create_directory_symlink(root_ + "/real/kernels", root_ + "/real/last");
  for (const std::string& path : {root_ + "/link/kernels", root_ + "/real/last"}) {
    const CodeStore linked(path);
    EXPECT_FALSE(linked.load("key")) << path;
    EXPECT_FALSE(linked.may_have_code()) << path;
    const auto saved = linked.save("other", code(2));
    ASSERT_FALSE(saved) << path;
    EXPECT_NE(saved.error().message().find("is not used: it is reached by a link"), std::string::npos);
  }
  EXPECT_FALSE(real.load("other"));
  EXPECT_TRUE(real.load("key"));
}

TEST_F(CodeStoreTest, Trap_U20_AFolderBelowOneThatOthersMayWriteIsNotUsed) {
  const CodeStore store(folder());
  ASSERT_TRUE(store.save("key", code(1)));
  for (const mode_t mode : {0777, 0770, 0757}) {
    chmod((root_ + "/deep").c_str(), mode);
    EXPECT_FALSE(store.load("key")) << mode;
    const auto saved = store.save("key", code(1));
    ASSERT_FALSE(saved) << mode;
    EXPECT_NE(saved.error().message().find("others may write in a folder above it"), std::string::npos);
  }
  chmod((root_ + "/deep").c_str(), 01777);
  EXPECT_TRUE(store.load("key")) << "only owners remove what is in it, as in /tmp";
  chmod((root_ + "/deep").c_str(), 0755);
  EXPECT_TRUE(store.load("key"));
}

TEST_F(CodeStoreTest, Trap_U20_AFolderThatOthersSeeOrOwnIsNotUsed) {
  const CodeStore store(folder());
  ASSERT_TRUE(store.save("key", code(1)));
  for (const mode_t mode : {0755, 0750, 0720, 0702}) {
    chmod(folder().c_str(), mode);
    EXPECT_FALSE(store.load("key")) << mode;
    EXPECT_FALSE(store.save("key", code(1))) << mode;
  }
  chmod(folder().c_str(), 0700);
  EXPECT_TRUE(store.load("key"));
  if (geteuid() != 0) return;
  constexpr uid_t nobody = 65534;
  ASSERT_EQ(chown(folder().c_str(), nobody, nobody), 0);
  EXPECT_FALSE(store.load("key"));
}

TEST_F(CodeStoreTest, Trap_U20_FilesAreNotReachedByLinksAndAreFiles) {
  const CodeStore store(folder());
  ASSERT_TRUE(store.save("key", code(1)));
  const std::string path = store.path_of("key"), away = root_ + "/away";
  std::filesystem::rename(path, away);
  std::filesystem::create_symlink(away, path);
  EXPECT_FALSE(store.load("key"));
  ASSERT_TRUE(store.save("key", code(2))) << "the link is replaced, not followed";
  EXPECT_EQ(store.load("key"), code(2));
  EXPECT_FALSE(std::filesystem::is_symlink(path));
  std::filesystem::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_FALSE(store.load("key")) << "nobody writes to it";
  ASSERT_TRUE(store.save("key", code(3)));
  EXPECT_EQ(store.load("key"), code(3));
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  EXPECT_FALSE(store.load("key"));
  EXPECT_FALSE(store.save("key", code(3)));
}

/// What `f` gives with other variables of the environment, in a process of its own; empty: not set.
template <class F>
bool with_variables(const std::map<std::string, std::string>& variables, const F& f) {
  return in_child([&] {
    for (const auto& [name, value] : variables)
      if (value.empty())
        unsetenv(name.c_str());
      else
        setenv(name.c_str(), value.c_str(), 1);
    return f();
  });
}

TEST_F(CodeStoreTest, Trap_U20_AHomeThatIsNotThereIsNotMade) {
  const std::string home = root_ + "/home";
  const auto save = [] { return CodeStore(CodeStore::default_folder()).save("key", code(1)).ok(); };
  const std::map<std::string, std::string> of_home{
      {"HOME", home}, {"XDG_CACHE_HOME", ""}, {"TESSERA_CACHE", ""}};
  EXPECT_FALSE(with_variables(of_home, save));
  EXPECT_FALSE(std::filesystem::exists(home));
  std::filesystem::create_directory(home);
  EXPECT_TRUE(with_variables(of_home, save));
  EXPECT_TRUE(std::filesystem::exists(home + "/.cache/tessera/kernels"));
}

TEST_F(CodeStoreTest, TheCacheIsMovedAndTurnedOff) {
  const auto folder = [] { return CodeStore::default_folder(); };
  const std::string moved = root_ + "/moved";
  EXPECT_TRUE(with_variables({{"TESSERA_CACHE", moved}}, [&] { return folder() == moved + "/kernels"; }));
  EXPECT_TRUE(with_variables({{"TESSERA_CACHE", "off"}}, [&] { return folder().empty(); }));
  EXPECT_TRUE(with_variables({{"TESSERA_CACHE", "somewhere"}}, [&] { return folder().empty(); }));
  EXPECT_TRUE(with_variables({{"TESSERA_CACHE", ""}, {"XDG_CACHE_HOME", root_}},
                             [&] { return folder() == root_ + "/tessera/kernels"; }));
  EXPECT_TRUE(with_variables({{"TESSERA_CACHE", "off"}}, [&] {
    set_cache_options({.folder = moved});
    return folder() == moved + "/kernels";
  })) << "what the program says goes first";
  EXPECT_TRUE(with_variables({{"TESSERA_CACHE", moved}}, [&] {
    set_cache_options({.folder = ""});
    return folder().empty();
  }));
}

// ---- bounds

std::uint64_t bytes_in(const std::string& folder) {
  std::uint64_t out = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) out += entry.file_size();
  return out;
}

TEST_F(CodeStoreTest, TakesNoMoreThanItMayAndKeepsWhatIsUsed) {
  EXPECT_TRUE(in_child([&] {
    constexpr std::uint64_t most = 64'000;
    set_cache_options({.max_bytes = most});
    const CodeStore store(folder());
    if (!store.save("used", code(1)).ok()) return false;
    for (int i = 0; i < 300; ++i) {
      usleep(200);  // times of files tell them apart
      if (!store.save(cat("key ", i), code(i)).ok() || !store.load("used")) return false;
      if (bytes_in(folder()) > most) return false;
    }
    return store.load("key 299") == code(299) && !store.load("key 0") && bytes_in(folder()) > most / 2;
  }));
}

TEST_F(CodeStoreTest, ProcessesShareTheBound) {
  constexpr std::uint64_t most = 64'000;
  const auto work = [&](int own) {
    set_cache_options({.max_bytes = most});
    const CodeStore store(folder());
    for (int i = 0; i < 200; ++i)
      if (!store.save(cat("key ", own, " ", i), code(i)).ok()) return false;
    return true;
  };
  std::vector<pid_t> children;
  for (int own = 0; own < 4; ++own)
    if (const pid_t child = fork(); child == 0)
      _exit(work(own) ? 0 : 1);
    else
      children.push_back(child);
  for (const pid_t child : children) {
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  // Each may have added a sixteenth since it looked.
  EXPECT_LE(bytes_in(folder()), most + 4 * most / 16);
}

TEST_F(CodeStoreTest, WhatIsTooLargeOrMayNotBeIsNotKept) {
  EXPECT_TRUE(in_child([&] {
    set_cache_options({.max_bytes = 500});
    const CodeStore store(folder());
    return !store.save("key", code(1)).ok() && !store.load("key");
  }));
  EXPECT_TRUE(in_child([&] {
    set_cache_options({.max_bytes = 0});
    return !CodeStore(folder()).save("key", code(1)).ok();
  }));
}

TEST_F(CodeStoreTest, RemovesWhatWritersLeftBehind) {
  EXPECT_TRUE(in_child([&] {
    set_cache_options({.max_bytes = 100'000});
    if (!CodeStore(folder()).save("key", code(1)).ok()) return false;
    const std::string old = folder() + "/0123.bin.new-77-1", fresh = folder() + "/0123.bin.new-78-1";
    std::ofstream(old) << "half";
    std::ofstream(fresh) << "half";
    std::filesystem::last_write_time(old,
                                     std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
    set_cache_options({.max_bytes = 100'000});  // looks again
    return CodeStore(folder()).save("other", code(1)).ok() && !std::filesystem::exists(old) &&
           std::filesystem::exists(fresh);
  }));
}

op::HostTensor tanh_of(const op::HostTensor& x, const KernelOptions& options, std::string& why) {
  CompiledKernel kernel(built("func f[N](x: f32[N]) {\n  y: f32[N] = tanh(x)\n  return y\n}"), options);
  op::HostTensor y = value_or_throw(op::HostTensor::allocate(Dtype::f32, x.shape()));
  Scratch scratch;
  value_or_throw(run(kernel, arrays_of({x}), arrays_of({y}), {}, scratch));
  why = kernel.why_interpreted() + kernel.why_not_stored();
  return y;
}

TEST_F(CodeStoreTest, AKernelRunsFromStoredCodeAndSurvivesABrokenOne) {
  if (const auto llvm = Llvm::open(); !llvm) GTEST_SKIP() << llvm.error().to_text();
  const CodeStore store(folder());
  std::mt19937_64 random(1);
  const op::HostTensor x = random_tensor(Dtype::f32, {1000}, random);
  std::string why;
  const op::HostTensor first = tanh_of(x, {.store = &store}, why);
  EXPECT_EQ(why, "");
  std::string file;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) file = entry.path().string();
  ASSERT_NE(file, "");
  const auto time = std::filesystem::last_write_time(file);
  const op::HostTensor second = tanh_of(x, {.store = &store}, why);
  EXPECT_EQ(std::filesystem::last_write_time(file), time) << "it was made again";
  EXPECT_EQ(std::memcmp(first.array().data, second.array().data, first.byte_size()), 0);
  std::filesystem::resize_file(file, 500);
  const op::HostTensor third = tanh_of(x, {.store = &store}, why);
  EXPECT_EQ(why, "");
  EXPECT_EQ(std::memcmp(first.array().data, third.array().data, first.byte_size()), 0);
  EXPECT_GT(std::filesystem::file_size(file), 500U) << "it was not made again";
}

TEST_F(CodeStoreTest, KeepsTheBetterCode) {
  if (const auto llvm = Llvm::open(); !llvm) GTEST_SKIP() << llvm.error().to_text();
  const CodeStore store(folder());
  const auto array = value_or_throw(op::HostTensor::allocate(Dtype::f32, {100}));
  const auto prepared = [&](CodeQuality quality) {
    auto kernel =
        std::make_unique<CompiledKernel>(built("func f(x: f32[100]) { y: f32[100] = exp(x) return y }"),
                                         KernelOptions{.quality = quality, .store = &store});
    CompiledJob job;
    EXPECT_TRUE(kernel->prepare(arrays_of({array}), arrays_of({array}), job));
    EXPECT_NE(job.code, nullptr);
    return kernel;
  };
  EXPECT_TRUE(prepared(CodeQuality::fast)->improve()) << "nothing was stored";
  EXPECT_FALSE(prepared(CodeQuality::fast)->improve()) << "the better was not stored";
  std::filesystem::remove_all(folder());
  (void)prepared(CodeQuality::fast);
  (void)prepared(CodeQuality::good);
  EXPECT_FALSE(prepared(CodeQuality::fast)->improve()) << "what was made fast was kept";
}

TEST(KernelCache, EqualKernelsAreOneAlsoWhenAllHashesAreEqual) {
  KernelCache cache({.compiles = false}, 4, [](const Kernel&) { return Hash128{1, 2}; });
  const auto text = [](const char* op) {
    return cat("func f(x: f32[4]) {\n  y: f32[4] = ", op, "(x)\n  return y\n}");
  };
  const auto tanh = cache.get(built(text("tanh"))), exp = cache.get(built(text("exp")));
  EXPECT_NE(tanh, exp);
  EXPECT_EQ(cache.get(built(text("tanh"))), tanh);
  EXPECT_TRUE(equal(exp->kernel(), built(text("exp"))));
  EXPECT_EQ(cache.size(), 2U);
}

TEST(KernelCache, DropsWhatNobodyHolds) {
  KernelCache cache({.compiles = false}, 3);
  const auto text = [](int i) {
    return cat("func f(x: f32[4]) {\n  y: f32[4] = add(x, ", i, ".0:f32)\n  return y\n}");
  };
  const auto held = cache.get(built(text(0)));
  for (int i = 1; i < 20; ++i) (void)cache.get(built(text(i)));
  EXPECT_LE(cache.size(), 3U);
  EXPECT_EQ(cache.get(built(text(0))), held);
}

}  // namespace
