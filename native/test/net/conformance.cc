#include "net/conformance.h"

#include <sys/wait.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "net/scenarios.h"
#include "net/side.h"

namespace ncclrun::test {
namespace {

struct Line {
  int ends[2] = {-1, -1};
  Line() {
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::abort();
  }
};

bool inOneProcess(const Backend& backend, const Scenario& scenario) {
  Line line;
  const int before = failures();
  std::thread receiving([&] {
    Side side(backend, line.ends[1]);
    scenario.receive(side);
    close(line.ends[1]);
  });
  {
    Side side(backend, line.ends[0]);
    scenario.send(side);
    close(line.ends[0]);
  }
  receiving.join();
  return failures() == before;
}

// Each side is a process of its own: this one may have threads of the scenario before.
pid_t startSide(const Backend& backend, void (*run)(Side&), int own, int other) {
  const pid_t child = fork();
  if (child != 0) return child;
  close(other);
  alarm(120);  // a hang ends as a failure
  {
    Side side(backend, own);
    run(side);
  }
  std::_Exit(failures() == 0 ? 0 : 1);
}

bool succeeded(pid_t child, bool mayBeKilled) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) return false;
  if (WIFSIGNALED(status)) return mayBeKilled && WTERMSIG(status) == SIGKILL;
  return WEXITSTATUS(status) == 0;
}

bool inTwoProcesses(const Backend& backend, const Scenario& scenario) {
  Line line;
  const pid_t receiving = startSide(backend, scenario.receive, line.ends[1], line.ends[0]);
  const pid_t sending = startSide(backend, scenario.send, line.ends[0], line.ends[1]);
  close(line.ends[0]);
  close(line.ends[1]);
  const bool sent = succeeded(sending, scenario.kills);
  const bool received = succeeded(receiving, scenario.kills);
  return sent && received;
}

}  // namespace

int runConformance(const std::vector<Backend>& backends, int argc, char** argv) {
  const std::string wanted = argc > 1 ? argv[1] : "";
  const char* const given = getenv("NCCLRUN_TEST_LONG");
  const bool inFull = given != nullptr && std::string(given) == "1";
  bool all = true;
  const auto report = [&](bool passed, const std::string& title) {
    printf("%s %s\n", passed ? "ok    " : "FAILED", title.c_str());
    fflush(stdout);
    all = all && passed;
  };
  for (const Backend& backend : backends) {
    for (const Scenario& scenario : scenarios()) {
      const std::string title = backend.name + ": " + scenario.name;
      if (title.find(wanted) == std::string::npos) continue;
      if (!scenario.concerns(backend.traits) || (scenario.isLong && !inFull)) continue;
      // Processes first: a child of this one has no threads of the other kind yet.
      report(inTwoProcesses(backend, scenario), title + ", two processes");
    }
  }
  for (const Backend& backend : backends) {
    for (const Scenario& scenario : scenarios()) {
      const std::string title = backend.name + ": " + scenario.name;
      if (title.find(wanted) == std::string::npos || scenario.kills) continue;
      if (!scenario.concerns(backend.traits) || (scenario.isLong && !inFull)) continue;
      report(inOneProcess(backend, scenario), title + ", one process");
    }
  }
  return all ? 0 : 1;
}

}  // namespace ncclrun::test
