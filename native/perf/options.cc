#include "options.h"

#include <charconv>
#include <climits>
#include <cstdint>
#include <stdexcept>
#include <string_view>

namespace {

size_t wholeNumber(std::string_view name, std::string_view text, size_t min, size_t max) {
  size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= min && value <= max) return value;
  throw std::invalid_argument(std::string(name) + " is \"" + std::string(text) + "\"; it must be a whole number from " +
                              std::to_string(min) + " up");
}

void setOption(Options& options, std::string_view name, std::string_view text) {
  constexpr size_t kMaxBytes = SIZE_MAX / 4;
  if (name == "--begin") {
    options.begin = wholeNumber(name, text, 0, kMaxBytes);
  } else if (name == "--end") {
    options.end = wholeNumber(name, text, 0, kMaxBytes);
  } else if (name == "--factor") {
    options.factor = wholeNumber(name, text, 2, kMaxBytes);
  } else if (name == "--iters") {
    options.iterations = static_cast<int>(wholeNumber(name, text, 1, INT_MAX));
  } else if (name == "--rounds") {
    options.rounds = static_cast<int>(wholeNumber(name, text, 1, INT_MAX));
  } else if (name == "--collectives") {
    options.collectives = text;
  } else if (name == "--warmup") {
    options.warmup = static_cast<int>(wholeNumber(name, text, 0, INT_MAX));
  } else if (name == "--blocking") {
    options.blocking = wholeNumber(name, text, 0, 1) == 1;
  } else if (name == "--check") {
    options.check = wholeNumber(name, text, 0, 1) == 1;
  } else if (name == "--root") {
    options.root = static_cast<int>(wholeNumber(name, text, 0, INT_MAX));
  } else if (name == "--type") {
    options.type = text;
  } else if (name == "--op") {
    options.op = text;
  } else if (name == "--device") {
    options.device = text;
  } else {
    throw std::invalid_argument("unknown option " + std::string(name));
  }
}

}  // namespace

Options readOptions(int argc, char** argv) {
  if (argc < 2) {
    throw std::invalid_argument("no collective to measure; this program is started by: ncclrun perf all_reduce -n N");
  }
  Options options;
  options.collective = argv[1];
  if (options.collective == "variants") options.iterations = 0;
  for (int i = 2; i < argc; i += 2) {
    if (i + 1 == argc) throw std::invalid_argument(std::string(argv[i]) + " has no value");
    setOption(options, argv[i], argv[i + 1]);
  }
  if (options.end < options.begin && options.collective != "variants")
    throw std::invalid_argument("--end is less than --begin");
  return options;
}
