// Runs a fuzz target over the files of a directory, over every prefix of each, and with every byte changed in turn.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

// A copy of exactly this size, so that a sanitizer sees a read past its end.
void run(const uint8_t* data, size_t size) {
  const std::vector<uint8_t> copy(data, data + size);
  LLVMFuzzerTestOneInput(copy.data(), copy.size());
}

size_t replay(std::vector<uint8_t> bytes) {
  for (size_t size = 0; size <= bytes.size(); ++size) run(bytes.data(), size);
  for (uint8_t& byte : bytes) {
    const uint8_t before = byte;
    for (const uint8_t wrong : {uint8_t{0}, uint8_t{0x7f}, uint8_t{0xff}, static_cast<uint8_t>(before + 1),
                                static_cast<uint8_t>(before ^ 0x80)}) {
      byte = wrong;
      run(bytes.data(), bytes.size());
    }
    byte = before;
  }
  return 6 * bytes.size() + 1;
}

}  // namespace

int main(int argc, char** argv) {
  size_t files = 0;
  size_t inputs = 0;
  for (int argument = 1; argument < argc; ++argument) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[argument])) {
      std::ifstream file(entry.path(), std::ios::binary);
      inputs += replay({std::istreambuf_iterator<char>(file), {}});
      ++files;
    }
  }
  printf("%zu inputs from %zu files\n", inputs, files);
  return files > 0 ? 0 : 1;
}
