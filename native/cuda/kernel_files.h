// The compiled kernels: files in the directory "kernels" beside this library, one per module, and "architectures",
// which says what they were compiled for: the words "sm" and "ptx", each with numbers of compute capabilities behind
// it, ten times the major one plus the minor one ("sm 80 90 ptx 80"). NCCLRUN_KERNELS names another directory, as tests
// have it; what is not there is taken from the first, and nothing is checked.
#pragma once
#include <string>
#include <vector>

#include "base/error.h"

namespace ncclrun::cuda {

struct KernelArchitectures {
  std::vector<int> machineCode;
  int ptx = 0;  // 0: none
  bool any() const { return !machineCode.empty() || ptx != 0; }
};

// Looked for once in a process. Nothing in it: there are no kernels.
const KernelArchitectures& kernelArchitectures();
// NCCLRUN_KERNELS names a directory.
bool haveOtherKernels();
// Where kernels are looked for.
const std::string& kernelsDirectory();

// The whole file of a module, into `image`, and its path. ncclSystemError: it is not there, another user could have
// written it, or it is cut short.
Status readKernels(const char* module, std::string& image, std::string& path);

}  // namespace ncclrun::cuda
