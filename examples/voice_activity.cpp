// Where somebody speaks: Silero VAD on a recording of "go forward ten meters".
// Usage, after tools/fetch-models: voice_activity [MODELS]
#include <tessera/model/onnx_model.h>
#include <tessera/tessera.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <vector>

namespace ts = tessera;

namespace {

/// 16-bit samples as numbers from -1 to 1.
std::vector<float> read_samples(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<float> out;
  for (char bytes[2]; file.read(bytes, 2);) {
    const int sample = static_cast<signed char>(bytes[1]) * 256 + static_cast<unsigned char>(bytes[0]);
    out.push_back(static_cast<float>(sample) / 32768);
  }
  return out;
}

int run(const std::string& models) {
  const std::vector<float> samples = read_samples(models + "/speech/goforward.raw");
  if (samples.empty())
    return std::fprintf(stderr, "no recording in %s: run tools/fetch-models\n", models.c_str()), 2;
  const ts::OnnxModel model = ts::load_onnx(models + "/silero/dist/silero_vad_v5.onnx");

  constexpr std::size_t window = 512, context = 64;  // 32 ms at 16 kHz, and what was heard just before
  const ts::Tensor rate = ts::from_vector<std::int64_t>({16000}, {});
  ts::Tensor state = ts::zeros({2, 1, 128});
  std::vector<float> heard(context + window);
  int windows = 0, speech = 0;
  for (std::size_t at = 0; at + window <= samples.size(); at += window) {
    std::copy(heard.end() - context, heard.end(), heard.begin());
    std::copy_n(samples.begin() + static_cast<std::ptrdiff_t>(at), window, heard.begin() + context);
    const ts::Tensor sound = ts::from_vector(heard, {1, static_cast<std::int64_t>(heard.size())});
    const ts::NamedTensors out = model({{"input", sound}, {"state", state}, {"sr", rate}});
    state = out.at("stateN").eval();
    const bool is_speech = out.at("output").item<float>({0, 0}) > 0.5F;
    std::putchar(is_speech ? '#' : '.');
    ++windows;
    speech += is_speech ? 1 : 0;
  }
  std::printf("\n%d of %d windows are speech\n", speech, windows);
  return speech == 52 && windows == 87 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "models");
  } catch (const ts::Exception& exception) {
    std::fprintf(stderr, "%s\n", exception.what());
    return 2;
  }
}
