// argmax and argmin: elements become keys in their order, and the greatest key with its place is searched.
// Rows that are long are cut into chunks, so that few rows keep a device busy too.
#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/runtime/cuda/element_text.h"
#include "tessera/runtime/cuda/index_text.h"
#include "tessera/runtime/cuda/op_programs.h"
#include "tessera/runtime/cuda/rows.h"

using namespace tessera;
using namespace tessera::runtime::cuda;

namespace {

constexpr std::int64_t least_chunk = 8192, most_chunks = 1024;

struct Extreme {
  Operand x, y;
  Rows rows;
  bool largest = true, last = false;

  [[nodiscard]] std::string prelude() const {
    return cat(key_text(x.dtype), "__device__ inline K rank_of(T x) { return ",
               largest ? "key_of" : "reverse_key_of",
               "(x); }\n"
               "__device__ inline bool wins(K key, long long place, K best, long long best_place) {\n"
               "  if (place < 0 || best_place < 0) return place >= 0;\n"
               "  return key > best || (key == best && place ",
               last ? ">" : "<", " best_place);\n}\n");
  }
};

constexpr std::string_view short_row_body = R"(
    const T* const row = x + place_of(at, size, row_step);
    K best = 0;
    long long best_place = -1;
    for (I i = 0; i < length; ++i) {
      const K key = rank_of(row[i * step]);
      if (wins(key, i, best, best_place)) {
        best = key;
        best_place = i;
      }
    }
    y[at] = best_place;
)";

constexpr std::string_view chunk_body = R"(
  __shared__ K keys[256];
  __shared__ long long places[256];
  const I number = (I)(blockIdx.x / (unsigned)chunks), chunk = (I)(blockIdx.x % (unsigned)chunks);
  const int thread = threadIdx.x;
  const T* const row = x + place_of(number, size, row_step);
  const I begin = chunk * chunk_length, end = length - begin < chunk_length ? length : begin + chunk_length;
  K best = 0;
  long long best_place = -1;
  for (I i = begin + thread; i < end; i += 256) {
    const K key = rank_of(row[i * step]);
    if (wins(key, i, best, best_place)) {
      best = key;
      best_place = i;
    }
  }
  keys[thread] = best;
  places[thread] = best_place;
  for (int half = 128; half > 0; half /= 2) {
    __syncthreads();
    if (thread < half && wins(keys[thread + half], places[thread + half], keys[thread], places[thread])) {
      keys[thread] = keys[thread + half];
      places[thread] = places[thread + half];
    }
  }
  if (thread == 0) {
    chunk_keys[blockIdx.x] = keys[0];
    chunk_places[blockIdx.x] = places[0];
  }
)";

constexpr std::string_view join_body = R"(
    K best = 0;
    long long best_place = -1;
    for (I i = at * chunks; i < (at + 1) * chunks; ++i)
      if (wins(chunk_keys[i], chunk_places[i], best, best_place)) {
        best = chunk_keys[i];
        best_place = chunk_places[i];
      }
    y[at] = best_place;
)";

void write_short_rows(ProgramWriter& program, const Extreme& extreme) {
  const Rows& rows = extreme.rows;
  KernelWriter kernel("tessera_extreme_of_short_rows", rows.width(), extreme.prelude());
  kernel.pointer("const T", "x", extreme.x.memory).pointer("long long", "y", extreme.y.memory);
  kernel.walk(rows.walk, std::vector<std::string_view>{"row_step"}).prelude(place_text());
  kernel.integer("length", rows.length).integer("step", rows.step);
  program.add(std::move(kernel).launch_items(short_row_body, rows.count()));
}

void write_chunks(ProgramWriter& program, const Extreme& extreme, std::int64_t chunk, std::int64_t chunks) {
  const Rows& rows = extreme.rows;
  const std::int64_t parts = rows.count() * chunks;
  const Memory keys = program.scratch(parts * key_bytes(extreme.x.dtype));
  // Rows of one chunk have their answer at once.
  const Memory places = chunks == 1 ? extreme.y.memory : program.scratch(parts * 8);
  KernelWriter kernel("tessera_extreme_of_chunks", rows.width(), extreme.prelude());
  kernel.pointer("const T", "x", extreme.x.memory).pointer("K", "chunk_keys", keys);
  kernel.pointer("long long", "chunk_places", places);
  kernel.walk(rows.walk, std::vector<std::string_view>{"row_step"}).prelude(place_text());
  kernel.integer("length", rows.length).integer("step", rows.step);
  kernel.integer("chunk_length", chunk).integer("chunks", chunks);
  program.add(std::move(kernel).launch(chunk_body, parts));
  if (chunks == 1) return;
  KernelWriter join("tessera_extreme_of_rows", rows.width(), extreme.prelude());
  join.pointer("const K", "chunk_keys", keys).pointer("const long long", "chunk_places", places);
  join.pointer("long long", "y", extreme.y.memory).integer("chunks", chunks);
  program.add(std::move(join).launch_items(join_body, rows.count()));
}

Result<void> write_extreme(const op::CallInfo& call, ProgramWriter& program, bool largest) {
  Extreme extreme{program.input(0), program.result(0), {}, largest, call.flag("select_last")};
  if (extreme.y.size() == 0) return {};
  const std::size_t axis = TESSERA_TRY(call.axis(call.integer("axis"), extreme.x.rank()));
  extreme.rows = rows_along(extreme.x, extreme.x, axis);
  const Rows& rows = extreme.rows;
  if (rows.suit_threads()) {
    write_short_rows(program, extreme);
    return {};
  }
  const std::int64_t chunk = std::max(least_chunk, (rows.length + most_chunks - 1) / most_chunks);
  write_chunks(program, extreme, chunk, (rows.length + chunk - 1) / chunk);
  return {};
}

}  // namespace

Result<void> runtime::cuda::write_argmax(const op::CallInfo& call, ProgramWriter& program) {
  return write_extreme(call, program, true);
}
Result<void> runtime::cuda::write_argmin(const op::CallInfo& call, ProgramWriter& program) {
  return write_extreme(call, program, false);
}
