// Files: what is written is read again, and no file can do harm.
#include "tessera/tensor/io.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "tessera/tensor/graph.h"
#include "tessera/tensor/ops.h"
#include "tests/support/message.h"

using namespace tessera;
using tessera::fixture::message_of;
namespace fs = std::filesystem;

namespace {

class Files : public testing::Test {
 protected:
  Files() : folder_(fs::temp_directory_path() / ("tessera_io_test_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~Files() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }
  static std::string read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  [[nodiscard]] std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }

 private:
  fs::path folder_;
};

std::vector<Tensor> samples() {
  return {from_vector<float>({1, -2.5, 3, 4, 5, 6}, {2, 3}),
          from_vector<std::int64_t>({INT64_MIN, INT64_MAX}, {2}),
          full({}, 2.5, {.dtype = f64}).eval(),
          zeros({0, 4}, {.dtype = u8}).eval(),
          (tensor({1, 2, 3}) > 1).eval(),
          full({3}, 0.1, {.dtype = f16}).eval()};
}

void expect_same(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.dtype(), b.dtype());
  EXPECT_EQ(a.shape(), b.shape());
  EXPECT_EQ(std::vector<std::byte>(a.bytes().begin(), a.bytes().end()),
            std::vector<std::byte>(b.bytes().begin(), b.bytes().end()));
}

NamedTensors named_samples() {
  NamedTensors out;
  for (const Tensor& x : samples()) out["tensor " + std::to_string(out.size())] = x;
  return out;
}

TEST_F(Files, npy_round_trip) {
  for (const Tensor& x : samples()) {
    save_npy(path("x.npy"), x);
    expect_same(load_npy(path("x.npy")), x);
  }
}

TEST_F(Files, npz_round_trip) {
  const NamedTensors all = named_samples();
  save_npz(path("x.npz"), all);
  const NamedTensors back = load_npz(path("x.npz"));
  ASSERT_EQ(back.size(), all.size());
  for (const auto& [name, x] : all) expect_same(back.at(name), x);
}

TEST_F(Files, safetensors_round_trip) {
  NamedTensors all = named_samples();
  all["b"] = full({2}, 0.1, {.dtype = bf16}).eval();
  save_safetensors(path("x.safetensors"), all, {{"by", "a \"test\""}});
  std::map<std::string, std::string> metadata;
  const NamedTensors back = load_safetensors(path("x.safetensors"), {}, &metadata);
  ASSERT_EQ(back.size(), all.size());
  for (const auto& [name, x] : all) expect_same(back.at(name), x);
  EXPECT_EQ(metadata.at("by"), "a \"test\"");
}

TEST_F(Files, a_view_is_written_row_by_row) {
  const Tensor x = from_vector<float>({1, 2, 3, 4}, {2, 2});
  save_npy(path("t.npy"), x.transpose());
  EXPECT_EQ(load_npy(path("t.npy")).to_vector<int>(), (std::vector<int>{1, 3, 2, 4}));
}

TEST_F(Files, columns_first_and_the_other_byte_order) {
  std::string head = "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }";
  head += std::string(128 - 10 - head.size() - 1, ' ') + '\n';
  const std::string body("\0\1\0\4\0\2\0\5\0\3\0\6", 12);
  const Tensor x = load_npy(write("f.npy", std::string("\x93NUMPY\1\0\x76\0", 10) + head + body));
  EXPECT_EQ(x.shape(), (Shape{2, 3}));
  EXPECT_EQ(x.to_vector<int>(), (std::vector<int>{1, 2, 3, 4, 5, 6}));
}

TEST_F(Files, a_wrong_npy_header_is_an_error) {
  const auto npy = [&](std::string head) {
    head += std::string(117 - head.size(), ' ') + '\n';
    const std::string file =
        write("bad.npy", std::string("\x93NUMPY\1\0\x76\0", 10) + head + std::string(64, 'x'));
    const std::string message = message_of([&] { (void)load_npy(file); });
    EXPECT_NE(message.find("bad.npy"), std::string::npos) << head << "\n" << message;
  };
  npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 9), }");
  npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }");
  npy("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 9223372036854775807), }");
  npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }");
  npy("{'descr': '|O', 'fortran_order': False, 'shape': (2,), }");
  npy("{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,), }");
  npy("{'descr': '<f4', 'shape': (2,), }");
  npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }");
  npy("{{{{{{{{{{{{{{");
  npy("");
}

TEST_F(Files, a_wrong_safetensors_header_is_an_error) {
  const auto file = [&](const std::string& head, std::uint64_t length,
                        const std::string& body = std::string(16, 'x')) {
    std::string content(8, '\0');
    std::memcpy(content.data(), &length, 8);
    const std::string at = write("bad.safetensors", content + head + body);
    const std::string message = message_of([&] { (void)load_safetensors(at); });
    EXPECT_NE(message.find("bad.safetensors"), std::string::npos) << head << "\n" << message;
  };
  const auto json = [&](const std::string& head) { file(head, head.size()); };
  file("{}", UINT64_MAX);
  file("{}", 1000);
  json(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,17]}})");
  json(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[8,0]}})");
  json(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,16]}})");
  json(
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[3],"data_offsets":[4,16]}})");
  json(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296,4],"data_offsets":[0,16]}})");
  json(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,16]}})");
  json(R"({"a":{"dtype":"F4","shape":[4],"data_offsets":[0,16]}})");
  json(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,18446744073709551615]}})");
  json(R"({"a":{"dtype":"F32","shape":[1e99],"data_offsets":[0,16]}})");
  json(R"({"a":7})");
  json("[");
  json(std::string(100'000, '['));
  json(
      R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})");
}

TEST_F(Files, links_and_devices_are_not_replaced) {
  save_npy(path("real.npy"), zeros({1}));
  fs::create_symlink(path("real.npy"), path("link.npy"));
  save_npy(path("link.npy"), ones({2}));
  EXPECT_TRUE(fs::is_symlink(path("link.npy")));
  EXPECT_EQ(load_npy(path("real.npy")).shape(), (Shape{2}));
  EXPECT_NE(message_of([&] { save_npy("/dev/null", zeros({1})); }).find("no regular file"),
            std::string::npos);
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(Files, what_is_no_file_is_an_error) {
  EXPECT_NE(message_of([&] { (void)load_npy(path("none.npy")); }).find("none.npy"), std::string::npos);
  EXPECT_NE(message_of([&] { (void)load_npz("/"); }), "");
  EXPECT_NE(message_of([&] { (void)load_safetensors("/dev/null"); }), "");
  EXPECT_NE(message_of([&] { save_npy(path("no/such/folder.npy"), zeros({1})); }).find("folder.npy"),
            std::string::npos);
}

/// Cut files and flipped bytes: an answer or an error, never a crash (the sanitizers watch).
template <class Load>
void damage(const std::string& good, const std::string& path, Load load) {
  std::mt19937 random(1);
  const auto attempt = [&](const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
    (void)message_of([&] { load(path); });
  };
  for (std::size_t cut = 0; cut < good.size(); cut += 1 + good.size() / 100) attempt(good.substr(0, cut));
  for (int i = 0; i < 500; ++i) {
    std::string bad = good;
    for (int flips = 0; flips <= i % 3; ++flips) bad[random() % bad.size()] = static_cast<char>(random());
    attempt(bad);
  }
}

TEST_F(Files, damaged_files_do_no_harm) {
  const NamedTensors all = named_samples();
  save_npz(path("a.npz"), all);
  damage(read(path("a.npz")), path("bad.npz"), [](const std::string& p) { (void)load_npz(p); });
  save_safetensors(path("a.safetensors"), all);
  damage(read(path("a.safetensors")), path("bad.safetensors"),
         [](const std::string& p) { (void)load_safetensors(p); });
  save_npy(path("a.npy"), samples()[0]);
  damage(read(path("a.npy")), path("bad.npy"), [](const std::string& p) { (void)load_npy(p); });
}

TEST_F(Files, numpy_reads_and_writes_the_same) {
  if (std::system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") != 0)
    GTEST_SKIP() << "NumPy is not installed";
  save_npz(path("ours.npz"),
           {{"a", from_vector<float>({1, 2, 3, 4}, {2, 2})}, {"b", from_vector<std::int32_t>({7}, {1})}});
  std::ofstream(path("check.py"))
      << "import numpy, sys\n"
         "x = numpy.load(sys.argv[1])\n"
         "assert x['a'].tolist() == [[1, 2], [3, 4]] and x['b'].dtype == numpy.int32 and x['b'][0] == 7\n"
         "r = numpy.arange(10000, dtype=numpy.float64).reshape(100, 100)\n"
         "numpy.savez_compressed(sys.argv[2], a=r, t=r.T, e=numpy.zeros((0, 3)), s=numpy.float16(1.5))\n";
  ASSERT_EQ(
      std::system(("/usr/bin/python3 " + path("check.py") + " " + path("ours.npz") + " " + path("theirs.npz"))
                      .c_str()),
      0);
  const NamedTensors theirs = load_npz(path("theirs.npz"));
  EXPECT_EQ(theirs.at("a").item<int>({99, 98}), 9998);
  EXPECT_EQ(theirs.at("t").item<int>({99, 98}), 9899);
  EXPECT_EQ(theirs.at("e").shape(), (Shape{0, 3}));
  EXPECT_EQ(theirs.at("s").item<double>(), 1.5);
  std::string content = read(path("theirs.npz"));
  damage(content.substr(0, std::min<std::size_t>(content.size(), 40'000)), path("bad.npz"),
         [](const std::string& p) { (void)load_npz(p); });
}

TEST_F(Files, errors_name_the_callers_line) {
  const auto here = [](const std::string& message) {
    return message.find("io_test.cpp:") != std::string::npos &&
           message.find("safetensors.cpp") == std::string::npos &&
           message.find("zip.cpp") == std::string::npos && message.find("npy.cpp") == std::string::npos;
  };
  const Tensor bad = gather(tensor({1, 2}), from_vector<std::int64_t>({9}, {1}));
  const std::string messages[] = {message_of([&] { save_npy(path("a"), Tensor()); }),
                                  message_of([&] {
                                    save_npz(path("a"), {{"w", Tensor()}});
                                  }),
                                  message_of([&] {
                                    save_safetensors(path("a"), {{"w", Tensor()}});
                                  }),
                                  message_of([&] { save_npy(path("a"), bad); }),
                                  message_of([&] {
                                    save_npz(path("a"), {{"w", bad}});
                                  }),
                                  message_of([&] {
                                    save_safetensors(path("a"), {{"w", bad}});
                                  }),
                                  message_of([&] { (void)load_npy(path("none")); }),
                                  message_of([&] { (void)load_npz(path("none")); }),
                                  message_of([&] { (void)load_safetensors(path("none")); }),
                                  message_of([&] {
                                    save_npz(path("a"), {{"half", full({1}, 1, {.dtype = bf16})}});
                                  }),
                                  message_of([&] { (void)Tensor().shape(); }),
                                  message_of([&] { (void)Tensor().graph(); }),
                                  message_of([&] { (void)Tensor().to_text(); }),
                                  message_of([&] { (void)eval_async({Tensor()}); })};
  for (const std::string& message : messages) EXPECT_TRUE(here(message)) << message;
  EXPECT_NE(messages[1].find("'w' is empty"), std::string::npos) << messages[1];
  EXPECT_NE(messages[9].find("saving 'half'"), std::string::npos) << messages[9];
  EXPECT_FALSE(fs::exists(path("a")));
}

TEST_F(Files, names_are_utf8) {
  const Tensor x = tensor({1});
  const NamedTensors good{{"größe/κ", x}, {"", x}}, bad{{"a\xff", x}};
  save_safetensors(path("s"), good);
  EXPECT_EQ(load_safetensors(path("s")).size(), 2U);
  save_npz(path("z"), good);
  EXPECT_EQ(load_npz(path("z")).count("größe/κ"), 1U);
  EXPECT_NE(message_of([&] { save_safetensors(path("x"), bad); }).find("not valid UTF-8"), std::string::npos);
  EXPECT_NE(message_of([&] {
              save_safetensors(path("x"), good, {{"k", "\xc3"}});
            }).find("metadata 'k'"),
            std::string::npos);
  EXPECT_NE(message_of([&] { save_npz(path("x"), bad); }).find("not valid UTF-8"), std::string::npos);
  EXPECT_FALSE(fs::exists(path("x")));
  std::string file = read(path("s"));
  file[file.find("κ")] = '\xff';
  EXPECT_NE(message_of([&] { (void)load_safetensors(write("broken", file)); }).find("not valid UTF-8"),
            std::string::npos);
  std::string archive = read(path("z"));
  for (std::size_t at = 0; (at = archive.find("κ", at)) != std::string::npos;) archive[at] = '\xff';
  EXPECT_NE(message_of([&] { (void)load_npz(write("broken", archive)); }).find("not valid UTF-8"),
            std::string::npos);
}

TEST_F(Files, an_archive_takes_names_of_65535_bytes) {
  const Tensor x = tensor({1});
  save_npz(path("z"), {{std::string(65531, 'n'), x}});
  EXPECT_EQ(load_npz(path("z")).begin()->first.size(), 65531U);
  const std::string message = message_of([&] { save_npz(path("z"), {{std::string(65532, 'n'), x}}); });
  EXPECT_NE(message.find("a name of 65536 bytes, an archive takes at most 65535"), std::string::npos)
      << message;
  EXPECT_LT(message.size(), 300U);
}

}  // namespace
