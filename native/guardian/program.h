// What a rank executes: the program looked up in the PATH of the rank's own environment, its arguments and environment.
#pragma once
#include <vector>

#include "guardian/spawn_order.h"

namespace ncclrun::guardian {

class Program {
 public:
  explicit Program(const RankOrder& order);

  // Replaces the calling process. Returns only when that failed, with errno set. System calls only: it runs in a child
  // that shares our memory. A file without a format of its own ("exec format error") is given to /bin/sh, as a shell
  // would.
  void execute() const;

 private:
  void executeFile(const char* path) const;

  const char* name_;
  const char* searchPath_;
  char* const* arguments_;
  std::vector<char*> environment_;
  mutable std::vector<char*> shellArguments_;  // {"/bin/sh", the file, the program's arguments…}
};

}  // namespace ncclrun::guardian
