// NCCL's variables: those of the environment and, beneath them, of NCCL's configuration files: the one that
// NCCL_CONF_FILE names, else ~/.nccl.conf, then /etc/nccl.conf. The two that nobody has named are obeyed only if nobody
// but the user and root can have written them; only names that begin with NCCL_ count. As
// control/nccl-configuration.ts.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace ncclrun {

// Of the environment alone; empty: not set.
inline std::string_view environmentVariable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

// Null: not set. The files are read at the first call; values from them stay valid as long as the process.
const char* ncclVariable(const char* name);

// A number as NCCL reads it: 4, -1, 0x4, and 010 for 8. False: the text is none.
bool parseNumber(const char* text, int64_t& value);

struct ConfiguredVariable {
  std::string name, value, source;  // source: "the environment", or the file's path
};
// All that ncclVariable() finds, by name.
std::vector<ConfiguredVariable> ncclVariables();

// A sentence for each file that is there and was not obeyed.
const std::vector<std::string>& ncclConfigurationNotes();

}  // namespace ncclrun
