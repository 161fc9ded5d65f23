#include "cuda/kernel_files.h"

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

#include "base/installation.h"
#include "base/trusted_path.h"

namespace ncclrun::cuda {
namespace {

// Of NVIDIA's fatbinaries (CUDA's fatbinary_section.h): a driver reads as many bytes as they say.
constexpr uint32_t kFatbinMagic = 0xba55ed50;
struct FatbinHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t headerBytes;
  uint64_t bytes;  // behind the header
};
static_assert(sizeof(FatbinHeader) == 16);

std::string otherDirectory() {
  const char* const directory = std::getenv("NCCLRUN_KERNELS");
  return directory == nullptr ? "" : directory;
}

bool readFile(const std::string& path, std::string& out) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return false;
  out.assign(std::istreambuf_iterator<char>(file), {});
  return true;
}

bool isWhole(const std::string& image) {
  FatbinHeader header{};
  if (image.size() < sizeof header) return false;
  std::memcpy(&header, image.data(), sizeof header);
  return header.magic == kFatbinMagic && header.headerBytes >= sizeof header && header.headerBytes <= image.size() &&
         header.bytes <= image.size() - header.headerBytes;
}

KernelArchitectures findArchitectures() {
  KernelArchitectures found;
  std::string text;
  if (!readFile(kernelsDirectory() + "/architectures", text)) return found;
  std::istringstream words(text);
  bool isPtx = false;
  for (std::string word; words >> word;) {
    if (word == "sm" || word == "ptx") {
      isPtx = word == "ptx";
    } else if (const int number = std::atoi(word.c_str()); number > 0 && isPtx) {
      found.ptx = number;
    } else if (number > 0) {
      found.machineCode.push_back(number);
    }
  }
  return found;
}

}  // namespace

// build/kernels beside the library, or the package @ncclrun/kernels beside the library's package.
const std::string& kernelsDirectory() {
  static const auto& directory = *new std::string([] {
    const std::string beside = libraryDirectory() + "/kernels", package = "/@ncclrun/";
    const size_t scope = beside.rfind(package);
    if (scope == std::string::npos || access((beside + "/architectures").c_str(), F_OK) == 0) return beside;
    const std::string other = beside.substr(0, scope + package.size()) + "kernels";
    return access((other + "/architectures").c_str(), F_OK) == 0 ? other : beside;
  }());
  return directory;
}

const KernelArchitectures& kernelArchitectures() {
  static const auto& architectures = *new KernelArchitectures(findArchitectures());
  return architectures;
}

bool haveOtherKernels() { return !otherDirectory().empty(); }

Status readKernels(const char* module, std::string& image, std::string& path) {
  const std::string name = std::string("/") + module + ".fatbin";
  if (haveOtherKernels()) {
    path = otherDirectory() + name;
    if (readFile(path, image)) return {};
  }
  path = kernelsDirectory() + name;
  if (access(path.c_str(), F_OK) != 0) {
    return {ncclSystemError, formatSentence("there are no kernels in %s: %s. Build or install ncclrun again",
                                            path.c_str(), std::strerror(errno))};
  }
  if (const std::string why = distrustOf(path); !why.empty()) {
    return {ncclSystemError, formatSentence("the kernels in %s are not loaded, they may be another user's: %s",
                                            path.c_str(), why.c_str())};
  }
  if (readFile(path, image) && isWhole(image)) return {};
  return {ncclSystemError,
          formatSentence("the kernels in %s are not whole: build or install ncclrun again", path.c_str())};
}

}  // namespace ncclrun::cuda
