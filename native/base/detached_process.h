// A process that is not our child: the program that we run in must not find it when it waits for its own.
#pragma once
#include <string>
#include <vector>

namespace ncclrun {

struct DetachedProcess {
  std::vector<std::string> words;        // the program's path first
  std::vector<std::string> environment;  // NAME=value
  int input = -1;                        // becomes descriptor 3; all others are closed
  int standardError = -1;                // becomes stderr
};

// In a session of its own, in /, on the processors of our parent (a launcher may have bound us to one). 0 or errno.
int startDetached(const DetachedProcess& process);

}  // namespace ncclrun
