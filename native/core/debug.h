// What NCCL_DEBUG asks for: lines on stderr about what is no error.
#pragma once
#include <string>

namespace ncclrun {

// Writes the sentence as a line of NCCL's form, host:process:thread NCCL INFO sentence, where NCCL_DEBUG is INFO, ABORT
// or TRACE.
void tellInfo(const std::string& sentence);

}  // namespace ncclrun
