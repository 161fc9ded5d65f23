#include "net/conformance.h"

#include <sys/wait.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "net/hosts.h"
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
pid_t startSide(Backend backend, const NamespaceHosts* hosts, int host, void (*run)(Side&), int own, int other) {
  const pid_t child = fork();
  if (child != 0) return child;
  close(other);
  if (hosts != nullptr) {
    if (!hosts->enter(host)) std::_Exit(1);
    backend.open = [open = backend.openOnHost, host] { return open(NamespaceHosts::addressOf(host)); };
  }
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

// hosts: null: both on this one.
bool inTwoProcesses(const Backend& backend, const Scenario& scenario, const NamespaceHosts* hosts) {
  Line line;
  const pid_t receiving = startSide(backend, hosts, 0, scenario.receive, line.ends[1], line.ends[0]);
  const pid_t sending = startSide(backend, hosts, 1, scenario.send, line.ends[0], line.ends[1]);
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
  const auto runAll = [&](const char* where, const auto& concerns, const auto& run) {
    for (const Backend& backend : backends) {
      for (const Scenario& scenario : scenarios()) {
        const std::string title = backend.name + ": " + scenario.name;
        if (title.find(wanted) == std::string::npos || !concerns(backend, scenario)) continue;
        if (!scenario.concerns(backend.traits) || (scenario.isLong && !inFull)) continue;
        const bool passed = run(backend, scenario);
        printf("%s %s, %s\n", passed ? "ok    " : "FAILED", title.c_str(), where);
        fflush(stdout);
        all = all && passed;
      }
    }
  };
  // Processes first: a child of this one has no threads of the other kind yet.
  runAll(
      "two processes", [](const Backend&, const Scenario&) { return true; },
      [](const Backend& backend, const Scenario& scenario) { return inTwoProcesses(backend, scenario, nullptr); });
  std::string why;
  const std::unique_ptr<NamespaceHosts> hosts = NamespaceHosts::make(why);
  if (hosts == nullptr) printf("skipped two hosts: %s\n", why.c_str());
  runAll(
      "two hosts",
      [&](const Backend& backend, const Scenario&) { return hosts != nullptr && backend.openOnHost != nullptr; },
      [&](const Backend& backend, const Scenario& scenario) { return inTwoProcesses(backend, scenario, hosts.get()); });
  runAll(
      "one process", [](const Backend&, const Scenario& scenario) { return !scenario.kills; }, inOneProcess);
  return all ? 0 : 1;
}

}  // namespace ncclrun::test
