// What a wrong call says. One file per message: OP.what_is_wrong.txt has the call in the format of
// tests/data/oracle and the whole message behind `!`. With TESSERA_UPDATE=1 the messages are written anew, to
// be read before they are committed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tessera/base/text.h"
#include "tessera/op/catalogue.h"
#include "tessera/tensor/call.h"
#include "tessera/tensor/create.h"
#include "tests/support/oracle_data.h"

using namespace tessera;
namespace fs = std::filesystem;

namespace {

std::vector<fs::path> files() {
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(TESSERA_SOURCE_DIR "/tests/error"))
    if (entry.path().extension() == ".txt") out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

Tensor tensor_of(const fixture::OracleTensor& input) {
  const auto& shape = input.layout.shape;
  return from_bytes({input.array().data,
                     static_cast<std::size_t>(op::element_count(shape)) * ir::size_of(input.memory.dtype())},
                    {shape.begin(), shape.end()}, {.dtype = input.memory.dtype()});
}

/// What recording or evaluating the call says, without the place of the caller.
std::string message_of(const fixture::OracleSample& sample) {
  try {
    std::vector<Tensor> inputs;
    for (const auto& input : sample.inputs) inputs.push_back(tensor_of(input));
    detail::CallOperands operands;
    for (const Tensor& input : inputs) operands.add(Operand(input));
    for (const Tensor& result : detail::call_all(*sample.card, operands, sample.attributes)) result.eval();
  } catch (const Exception& e) {
    return e.error().message();
  }
  return "nothing";
}

void write_message(const fs::path& path, const std::string& message) {
  std::ifstream file(path);
  std::ostringstream kept;
  for (std::string line; std::getline(file, line);)
    if (line.empty() || line[0] != '!') kept << line << "\n";
  std::ofstream(path) << kept.str() << "! " << message << "\n";
}

TEST(Errors, messages) {
  const bool update = std::getenv("TESSERA_UPDATE") != nullptr;
  for (const fs::path& path : files()) {
    SCOPED_TRACE(path.filename());
    const std::string name = path.filename();
    const op::Card* card = op::find_card(name.substr(0, name.find('.')));
    ASSERT_NE(card, nullptr);
    const auto samples = fixture::samples_in(path, *card);
    ASSERT_EQ(samples.size(), 1U);
    const std::string message = message_of(samples[0]);
    if (update)
      write_message(path, message);
    else
      EXPECT_EQ(message, samples[0].error);
    EXPECT_EQ(message.rfind(std::string(card->name) + ": ", 0), 0U) << message;
  }
}

}  // namespace
