// What somebody says: Moonshine, an 8-bit encoder and a decoder with a cache, on a recording of four words.
// Usage, after tools/fetch-models: speech_to_text [MODELS]
#include <tessera/model/onnx_model.h>
#include <tessera/tessera.h>

#include <cstdio>
#include <fstream>
#include <vector>

namespace ts = tessera;

namespace {

constexpr std::int64_t begin_token = 1, end_token = 2;

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

std::vector<std::string> read_lines(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> out;
  for (std::string line; std::getline(file, line);) out.push_back(line);
  return out;
}

/// The decoder and what it has said: one token at a time, with the keys and values of those before.
class Decoder {
 public:
  Decoder(const std::string& path, ts::Tensor encoded) : model_(ts::load_onnx(path)) {
    inputs_["encoder_hidden_states"] = std::move(encoded);
    for (const ts::OnnxValue& input : model_.inputs())
      if (is_past(input.name)) inputs_[input.name] = ts::zeros({1, 8, 0, 36});
  }

  std::int64_t next(std::int64_t token) {
    const bool is_first = !has_cache_;
    inputs_["input_ids"] = ts::from_vector<std::int64_t>({token}, {1, 1});
    inputs_["use_cache_branch"] = ts::full({1}, has_cache_ ? 1 : 0, {.dtype = ts::bool_});
    const ts::NamedTensors outputs = model_(inputs_);
    const ts::Tensor logits = outputs.at("logits");
    for (auto& [name, value] : inputs_) {
      // What the decoder knows of the sound is computed in the first call and stays.
      const bool is_of_sound = name.find(".encoder.") != std::string::npos;
      if (is_past(name) && (is_first || !is_of_sound))
        value = outputs.at("present" + name.substr(prefix.size()));
    }
    has_cache_ = true;
    return ts::argmax(logits, {.axis = -1}).item<std::int64_t>({0, 0});
  }

 private:
  static constexpr std::string_view prefix = "past_key_values";
  static bool is_past(const std::string& name) { return name.rfind(prefix, 0) == 0; }

  ts::OnnxModel model_;
  ts::NamedTensors inputs_;
  bool has_cache_ = false;
};

/// Words begin with U+2581 in the vocabulary.
std::string text_of(const std::string& token) {
  constexpr std::string_view mark = "\u2581";
  return token.rfind(mark, 0) == 0 ? " " + token.substr(mark.size()) : token;
}

int run(const std::string& models) {
  const std::vector<float> samples = read_samples(models + "/speech/goforward.raw");
  const std::vector<std::string> vocabulary = read_lines(models + "/tokenizer/vocabulary.txt");
  if (samples.empty() || vocabulary.empty())
    return std::fprintf(stderr, "no recording in %s: run tools/fetch-models\n", models.c_str()), 2;
  const std::string folder = models + "/moonshine/dist/model/tiny/quantized/";
  const auto length = static_cast<std::int64_t>(samples.size());
  const ts::Tensor sound = ts::from_vector(samples, {1, length});
  Decoder decoder(folder + "decoder_model_merged.onnx",
                  ts::load_onnx(folder + "encoder_model.onnx")({sound})[0]);

  std::string said;
  const std::int64_t most = 6 * length / 16000 + 1;  // nobody says more tokens a second
  std::int64_t token = begin_token;
  for (std::int64_t i = 0; i < most; ++i) {
    token = decoder.next(token);
    if (token == end_token || token >= static_cast<std::int64_t>(vocabulary.size())) break;
    said += text_of(vocabulary[static_cast<std::size_t>(token)]);
  }
  said.erase(0, said.find_first_not_of(' '));
  std::printf("%s\n", said.c_str());
  return said == "Go forward ten meters." ? 0 : 1;
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
