// Starts the processes of ours that are no ranks: guardian, aggregators, and tools such as ssh. Node's own
// child_process would do it too, but costs several milliseconds of each start to load, and copies Node's page tables
// for each child.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

#include "base/descriptor.h"

namespace ncclrun::binding {

struct ChildProcess {
  Descriptor input;          // what it writes, or the socket to its descriptor 3
  Descriptor output;         // its stdin; not valid beside a socket
  Descriptor standardError;  // its stderr, if that is ours to read
  pid_t pid = 0;             // a child of ours, to be reaped
};

// A program of ours, whose descriptor 3 is a socket to us, in a session of its own (a terminal's ^C and hang-up are
// ours to judge) and in /, with stderr inherited and nothing else. 0 or errno.
int startChild(const std::vector<std::string>& words, ChildProcess& out);

// A program that the PATH has, in a session of its own, its three standard streams piped to us; `changes` (NAME=value)
// to our environment are its alone. 0 or errno.
int startTool(const std::vector<std::string>& words, const std::vector<std::string>& changes, ChildProcess& out);

// Runs a tool that reads nothing to its end. `said` is what it wrote, on stdout and stderr alike. 0 or errno.
int runTool(const std::vector<std::string>& words, std::string& text, int& waitStatus);

}  // namespace ncclrun::binding
