// Where the host's time of a launch goes: recording, our own part of an evaluation, each function of the
// driver.
//
//   tessera_bench_launch_parts [--nodes COUNT] [--turns COUNT]
//
// The driver's table of functions is replaced by one that takes times, so what is ours is what is left.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "benchmarks/gpu/quiet_core.h"
#include "benchmarks/models.h"
#include "tessera/engine/devices.h"
#include "tessera/runtime/cuda/cuda_devices.h"
#include "tessera/runtime/cuda/driver.h"
#include "tessera/runtime/cuda/nvrtc.h"
#include "tessera/tessera.h"

using namespace tessera;
using namespace tessera::benchmarks;
using runtime::cuda::Driver;
using Clock = std::chrono::steady_clock;

namespace {

double microseconds(Clock::duration time) { return std::chrono::duration<double, std::micro>(time).count(); }

double median(std::vector<double> times) {
  if (times.empty()) return 0;
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

// ---- the driver, with a clock around each of its functions

/// One function of the driver, in the turn that is measured.
struct Spent {
  const char* name;
  Clock::duration time{};
  std::uint64_t calls = 0;
};
std::vector<Spent>& all_spent() {
  static std::vector<Spent> all;
  return all;
}

template <class Tag, class F>
struct Timed;
template <class Tag, class R, class... A>
struct Timed<Tag, R (*)(A...)> {
  static inline R (*real)(A...) = nullptr;
  static inline std::size_t place = 0;

  static R call(A... arguments) {
    const auto begin = Clock::now();
    const R out = real(arguments...);
    Spent& spent = all_spent()[place];
    spent.time += Clock::now() - begin;
    ++spent.calls;
    return out;
  }
};

template <class Tag, class F>
void take_time_of(F& function, const char* name) {
  using Function = Timed<Tag, F>;
  Function::real = function;
  Function::place = all_spent().size();
  all_spent().push_back({.name = name});
  function = &Function::call;
}

void take_times(Driver& driver) {
#define TESSERA_TIME(name) take_time_of<struct Tag_##name>(driver.name, #name);
  TESSERA_CUDA_FUNCTIONS(TESSERA_TIME)
#undef TESSERA_TIME
}

// ---- rows

struct Options {
  std::int64_t nodes = 1000;
  int turns = 200;
};

/// What the turns of a row took, each part by itself.
class Parts {
 public:
  void begin() {
    for (Spent& spent : all_spent()) spent.time = {}, spent.calls = 0;
    last_ = Clock::now();
  }
  /// What went by since the last call; `driver` of it in the driver.
  void note(const std::string& part) {
    const auto now = Clock::now();
    Clock::duration driver{};
    for (const Spent& spent : all_spent()) driver += spent.time;
    add(part, microseconds(now - last_));
    if (driver > seen_driver_) add(part + ", in the driver", microseconds(driver - seen_driver_));
    seen_driver_ = driver;
    last_ = Clock::now();
  }
  void end() {
    seen_driver_ = {};
    for (const Spent& spent : all_spent())
      if (spent.calls > 0)
        add("  " + std::string(spent.name) + " x " + std::to_string(spent.calls), microseconds(spent.time));
  }
  void say(const std::string& row) const {
    std::printf("%s\n", row.c_str());
    for (const auto& [name, times] : parts_) std::printf("  %-44s %9.2f us\n", name.c_str(), median(times));
    std::fflush(stdout);
  }

 private:
  void add(const std::string& name, double time) {
    for (auto& [known, times] : parts_)
      if (known == name) return times.push_back(time);
    parts_.push_back({name, {time}});
  }

  Clock::time_point last_;
  Clock::duration seen_driver_{};
  std::vector<std::pair<std::string, std::vector<double>>> parts_;
};

std::shared_ptr<Engine> engine_with(std::vector<std::shared_ptr<const pattern::TileSource>> tiles) {
  runtime::cuda::CudaOptions options;
  options.target.sources = std::move(tiles);
  auto device = value_or_throw(runtime::cuda::open_device(0, std::move(options)));
  device->settle();
  return Engine::create({.plans = {.wait = true}, .device = std::move(device)});
}

/// Recorded, evaluated and dropped, with all earlier work done before each turn.
void measure(const std::string& row, const std::shared_ptr<Engine>& engine, int turns,
             const std::function<Tensor()>& record) {
  record().eval();
  const OnQuietCore here;
  for (int i = 0; i < 20; ++i) record().eval();
  Parts parts;
  for (int turn = 0; turn < turns; ++turn) {
    value_or_throw(engine->synchronize());
    parts.begin();
    Tensor out = record();
    parts.note("recording");
    out.eval();
    parts.note("eval");
    out = Tensor();
    parts.note("dropping");
    value_or_throw(engine->synchronize());
    parts.note("until done");
    parts.end();
  }
  parts.say(row);
}

void unchanged(const Options& options) {
  for (const std::int64_t nodes : {std::int64_t{10}, options.nodes}) {
    Inputs in(engine_with({no_tiles()}));
    const Tensor x = in({1024}), y = in({1024}, {.scale = 1e-3});
    const auto chain = compile([=](const Tensor& a, const Tensor& b) { return chain_of_adds(a, b, nodes); },
                               {.is_pure = true});
    measure("unchanged launch of " + std::to_string(nodes) + " nodes", in.engine(), options.turns,
            [&] { return chain(x, y); });
  }
}

void recorded(const Options& options) {
  Inputs in(
      Engine::create({.plans = {.wait = true}, .device = value_or_throw(engine::find_device("cuda:0"))}));
  const Tensor x = in({1024}), y = in({1024}, {.scale = 1e-3});
  const auto chain =
      compile([=](const Tensor& a, const Tensor& b) { return chain_of_adds(a, b, options.nodes); },
              {.is_pure = true});
  measure("adds in one kernel, compiled", in.engine(), options.turns, [&] { return chain(x, y); });
  measure("adds in one kernel, recorded anew", in.engine(), options.turns,
          [&] { return chain_of_adds(x, y, options.nodes); });
  Inputs host(
      Engine::create({.plans = {.wait = true}, .device = value_or_throw(engine::find_device("cpu"))}));
  const Tensor a = host({1024}), b = host({1024}, {.scale = 1e-3});
  measure("the same on the CPU, recorded anew", host.engine(), options.turns,
          [&] { return chain_of_adds(a, b, options.nodes); });
}

void scalars(const Options& options) {
  Inputs in(engine_with({no_tiles()}));
  const Tensor x = in({1024});
  double number = 0;
  const auto chain = [&](double first, double others) {
    Tensor out = x;
    for (std::int64_t i = 0; i < options.nodes; ++i) out = out + (i == 0 ? first : others);
    return out;
  };
  for (int round = 0; round < 2; ++round) {
    measure("numbers: none changed", in.engine(), options.turns, [&] { return chain(1, 2); });
    measure("numbers: one changed", in.engine(), options.turns, [&] { return chain(++number, 2); });
    measure("numbers: all changed", in.engine(), options.turns, [&] {
      ++number;
      return chain(number, number);
    });
  }
}

/// The kernels of a training step, in time.
void training(const Options& options) {
  const auto engine =
      Engine::create({.plans = {.wait = true}, .device = value_or_throw(engine::find_device("cuda:0"))});
  Inputs in(engine);
  const nn::Loss loss = mlp_loss(in, 64);
  std::vector<Tensor> p;
  for (const auto& [name, parameter] : mlp_parameters(in)) p.push_back(parameter);
  const auto step = compile(
      [loss](const Tensor& b0, const Tensor& b1, const Tensor& b2, const Tensor& w0, const Tensor& w1,
             const Tensor& w2) {
        nn::Parameters of{{"b0", b0}, {"b1", b1}, {"b2", b2}, {"w0", w0}, {"w1", w1}, {"w2", w2}};
        const nn::Parameters gradients = nn::loss_and_gradients(loss, of).gradients;
        std::vector<Tensor> out;
        for (const auto& [name, parameter] : of) out.push_back(parameter - gradients.at(name) * 1e-3);
        return out;
      },
      {.is_pure = true});
  const auto turn = [&] {
    p = step(p[0], p[1], p[2], p[3], p[4], p[5]);
    eval(p);
  };
  for (int i = 0; i < 30; ++i) turn();
  Parts parts;
  for (int i = 0; i < options.turns; ++i) {
    value_or_throw(engine->synchronize());
    parts.begin();
    turn();
    parts.note("recording, eval, dropping");
    value_or_throw(engine->synchronize());
    parts.note("until done");
    parts.end();
  }
  parts.say("training step");
  engine->set_profiling(ProfilingLevel::per_kernel);
  for (int i = 0; i < 20; ++i) turn();
  const engine::Profile profile = engine->profile();
  std::printf("%s\n", profile.to_text().c_str());
  // The last evaluation.
  std::vector<engine::ProfileEvent> events = profile.events;
  std::sort(events.begin(), events.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  const auto last = std::find_if(events.rbegin(), events.rend(), [](const auto& event) {
    return event.kernel == engine::ProfileEvent::none;
  });
  const auto from = last == events.rend() ? std::chrono::nanoseconds(0) : last->begin;
  for (const auto& event : events)
    if (event.begin >= from && event.kernel != engine::ProfileEvent::none)
      std::printf("  %8.2f to %8.2f us, lane %u: %s\n",
                  static_cast<double>((event.begin - from).count()) / 1000,
                  static_cast<double>((event.begin + event.time - from).count()) / 1000, event.device_thread,
                  profile.kernels[event.kernel].name.c_str());
  engine->set_profiling(ProfilingLevel::none);
}

// ---- ways to bring numbers to the device, by the driver alone

/// Numbers given as parameters of a kernel that stores them.
std::string storing_kernel(int count) {
  const std::string n = std::to_string(count);
  return "struct Numbers { unsigned long long of[" + n +
         "]; };\n"
         "extern \"C\" __global__ void store(unsigned long long* to, const __grid_constant__ Numbers "
         "numbers) {\n"
         "  for (unsigned i = threadIdx.x; i < " +
         n + "; i += blockDim.x) to[i] = numbers.of[i];\n}\n";
}

class Staging {
 public:
  Staging() : driver_(*value_or_throw(Driver::open())) {
    driver_.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING);
    driver_.cuMemAlloc(&device_, 1 << 20);
    driver_.cuMemAllocHost(&pinned_, 1 << 20);
    pageable_.resize(1 << 20);
  }

  void run() {
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{64}, std::size_t{1024}, std::size_t{8192}}) {
      const std::string size = std::to_string(bytes) + " bytes ";
      time(size + "from pageable memory",
           [&] { driver_.cuMemcpyHtoDAsync(device_, pageable_.data(), bytes, stream_); });
      time(size + "from pinned memory", [&] { driver_.cuMemcpyHtoDAsync(device_, pinned_, bytes, stream_); });
      if (bytes <= 1024 || bytes == 8192) by_kernel(size, static_cast<int>(bytes / 8));
    }
  }

 private:
  void by_kernel(const std::string& size, int count) {
    // More than 4 KiB of parameters need a driver and a device that take 32,764 bytes.
    const auto compiler = value_or_throw(runtime::cuda::Nvrtc::open());
    const runtime::cuda::Source source{.text = storing_kernel(count), .entry = "store"};
    const auto code = compiler->compile(source, 90);
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    if (!code || driver_.cuModuleLoadData(&module, code->data()) != CUDA_SUCCESS ||
        driver_.cuModuleGetFunction(&function, module, "store") != CUDA_SUCCESS) {
      std::printf("  %sas parameters of a kernel: not possible: %s\n", size.c_str(),
                  code ? "the driver refuses" : code.error().message().c_str());
      return;
    }
    void* arguments[] = {&device_, pinned_};
    time(size + "as parameters of a kernel",
         [&] { driver_.cuLaunchKernel(function, 1, 1, 1, 256, 1, 1, 0, stream_, arguments, nullptr); });
  }

  void time(const std::string& name, const std::function<void()>& work) {
    std::vector<double> host, done;
    for (int i = 0; i < 220; ++i) {
      driver_.cuStreamSynchronize(stream_);
      const auto begin = Clock::now();
      work();
      const auto queued = Clock::now();
      driver_.cuStreamSynchronize(stream_);
      if (i < 20) continue;
      host.push_back(microseconds(queued - begin));
      done.push_back(microseconds(Clock::now() - begin));
    }
    std::printf("  %-44s host %6.2f us, done after %6.2f us\n", name.c_str(), median(host), median(done));
  }

  const Driver& driver_;
  CUstream stream_ = nullptr;
  CUdeviceptr device_ = 0;
  void* pinned_ = nullptr;
  std::vector<char> pageable_;
};

/// What this machine takes for the small things that recording is made of.
void machine() {
  constexpr int count = 100'000;
  const auto time = [](const char* name, const std::function<void()>& work) {
    work();
    const auto begin = Clock::now();
    work();
    std::printf("  %-44s %9.2f ns\n", name, microseconds(Clock::now() - begin) * 1000 / count);
  };
  std::printf("the machine\n");
  time("a look at the clock", [] {
    for (int i = 0; i < count; ++i) static_cast<void>(Clock::now());
  });
  std::vector<void*> memory(count);
  time("memory of 192 bytes, taken and given back", [&] {
    for (void*& one : memory) one = ::operator new(192);
    for (void* one : memory) ::operator delete(one);
  });
  std::atomic<std::uint64_t> number{0};
  time("an atomic sum", [&] {
    for (int i = 0; i < count; ++i) number.fetch_add(1, std::memory_order_acq_rel);
  });
}

Options parse(int argc, char** argv) {
  Options out;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string(argv[i]) == "--nodes") out.nodes = std::atoll(argv[i + 1]);
    if (std::string(argv[i]) == "--turns") out.turns = std::atoi(argv[i + 1]);
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options options = parse(argc, argv);
    machine();
    // The table is the process's own; nobody has used it yet.
    take_times(const_cast<Driver&>(*value_or_throw(Driver::open())));
    unchanged(options);
    recorded(options);
    scalars(options);
    training(options);
    std::printf("numbers to the device\n");
    Staging().run();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
