// The double of a collective network ends a process that breaks a rule of the interface: each rule is broken here once.
#include <signal.h>

#include "net.h"
#include "net/collective_scenarios.h"
#include "net/plugin/collective_plugin.h"

using namespace ncclrun::test;

namespace {

// Runs `body` in a process of its own, which the double ends because its caller has broken the rule.
template <typename Body>
void expectBroken(const std::string& rule, Body&& body) {
  int ends[2];
  EXPECT(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    body();
    std::_Exit(0);
  }
  close(ends[1]);
  std::string said;
  char piece[512];
  for (ssize_t got = 0; (got = read(ends[0], piece, sizeof piece)) > 0;) said.append(piece, size_t(got));
  int status = 0;
  EXPECT(waitpid(child, &status, 0) == child);
  EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
  EXPECT(said.find(rule) != std::string::npos);
}

// Every member makes the same calls, but in another order.
void anotherOrderIsNoticed() {
  expectBroken("the members of a group make different calls", [] {
    Members members("double-v11", 2);
    members.connected([](Member& member) {
      GroupMemory from(*member.group, 16), to(*member.group, 16);
      const ncclDataType_t types[] = {ncclInt32, ncclFloat32};
      for (const uint32_t call : {member.rank, 1 - member.rank})
        OK(member.await(post(member, from.buffer(), to.buffer(), 1, types[call])));
    });
  });
}
void differentCallsAreNoticed() {
  expectBroken("the members of a group make different calls", [] {
    Members members("double-v11", 2);
    members.connected([](Member& member) { reduceAndCompare(member, 1 + member.rank, ncclInt32, ncclSum); });
  });
}

// A group of one member, through the calls of the plugin itself.
struct BareGroup {
  Members members{"double-v11", 1};
  ncclrun::net::plugin::Plugin* plugin = nullptr;
  void *listener = nullptr, *comm = nullptr, *registration = nullptr;
  alignas(16) ncclrun::net::Handle handle{};
  float values[2] = {1, 2};

  explicit BareGroup(int type = NET_HOST_MEMORY) {
    OK(openPlugin(members.path, plugin));
    EXPECT(calls().listen(nullptr, 0, handle.data(), &listener) == 0);
    EXPECT(join(1, 0) == 0);
    EXPECT(calls().regMr(comm, values, sizeof values, type, &registration) == 0);
  }
  int join(int count, int rank) {
    void* handles[] = {handle.data(), members.handles[0].data()};
    return calls().connect(handles, count, rank, listener, &comm);
  }
  ncclrun::net::plugin::CollectiveCalls& calls() { return plugin->collective()->calls(); }
  void* reduce(float* from, float* to) {
    void* request = nullptr;
    EXPECT(calls().iallreduce(comm, from, to, 1, ncclFloat32, ncclSum, registration, registration, &request) == 0);
    return request;
  }
  void* reduce() { return reduce(values, values + 1); }
  void await(void* request) {
    for (int done = 0, bytes = 0; done == 0;) EXPECT(calls().test(request, &done, &bytes) == 0);
  }
};

void aSecondTestIsNoticed() {
  expectBroken("test of a request that is complete", [] {
    BareGroup group;
    void* const request = group.reduce();
    for (int i = 0, done = 0, bytes = 0; i < 2; i++) EXPECT(group.calls().test(request, &done, &bytes) == 0);
  });
}
void aNinthCollectiveIsNoticed() {
  expectBroken("more than 8 collectives of a group are under way", [] {
    BareGroup group;
    for (int i = 0; i < 9; i++) EXPECT(group.reduce() != nullptr);
  });
}
void testsOutOfOrderAreNoticed() {
  expectBroken("collectives are tested out of order", [] {
    BareGroup group;
    group.reduce();
    group.await(group.reduce());
  });
}
void aRankThatIsNoMemberIsNoticed() {
  expectBroken("connect of a rank that the group does not have", [] {
    BareGroup group;
    group.comm = nullptr;
    group.join(1, 1);
  });
  expectBroken("connect as a member that listens at another handle", [] {
    BareGroup group;
    group.comm = nullptr;
    group.join(2, 1);
  });
  expectBroken("two members connect as the same rank", [] {
    BareGroup group;
    group.comm = nullptr;
    group.join(1, 0);
  });
}
void aCallAfterTheCloseIsNoticed() {
  expectBroken("a call of what is no member of a group", [] {
    BareGroup group;
    EXPECT(group.calls().closeColl(group.comm) == 0);
    group.reduce();
  });
}
void memoryThatIsNotRegisteredIsNoticed() {
  expectBroken("a collective outside of its registration", [] {
    BareGroup group;
    float elsewhere = 0;
    group.reduce(group.values, &elsewhere);
  });
  expectBroken("a collective outside of its registration", [] {
    BareGroup group;
    group.reduce(group.values + 2, group.values);  // right behind it
  });
  expectBroken("a collective with a registration of another group", [] {
    BareGroup group;
    group.registration = &group;
    group.reduce();
  });
}
void aRegistrationThatHasEndedIsNoticed() {
  expectBroken("a collective with a registration that has ended", [] {
    BareGroup group;
    EXPECT(group.calls().deregMr(group.comm, group.registration) == 0);
    group.reduce();
  });
  expectBroken("deregistration of what is not registered", [] {
    BareGroup group;
    for (int i = 0; i < 2; i++) EXPECT(group.calls().deregMr(group.comm, group.registration) == 0);
  });
}
void aResultThatIsNotFlushedIsNoticed() {
  expectBroken("the result of a collective is used before its flush", [] {
    plant("device-memory");
    BareGroup group(NET_DEVICE_MEMORY);
    group.await(group.reduce());
    group.reduce(group.values + 1, group.values);
  });
}
void anotherThreadIsNoticed() {
  expectBroken("a group is used by another thread than before", [] {
    BareGroup group;
    group.reduce();
    std::thread([&] { group.reduce(); }).join();
  });
}
void aReductionThatIsNotSupportedIsNoticed() {
  expectBroken("a reduction that is not supported", [] {
    BareGroup group;
    void* request = nullptr;
    group.calls().iallreduce(group.comm, group.values, group.values + 1, 1, ncclFloat32, ncclAvg, group.registration,
                             group.registration, &request);
  });
}

}  // namespace

int main() {
  bool isFine = true;
#define RUN(body) isFine &= scenario(#body, body)
  RUN(anotherOrderIsNoticed);
  RUN(differentCallsAreNoticed);
  RUN(aSecondTestIsNoticed);
  RUN(aNinthCollectiveIsNoticed);
  RUN(testsOutOfOrderAreNoticed);
  RUN(aRankThatIsNoMemberIsNoticed);
  RUN(aCallAfterTheCloseIsNoticed);
  RUN(memoryThatIsNotRegisteredIsNoticed);
  RUN(aRegistrationThatHasEndedIsNoticed);
  RUN(aResultThatIsNotFlushedIsNoticed);
  RUN(anotherThreadIsNoticed);
  RUN(aReductionThatIsNotSupportedIsNoticed);
  return isFine ? 0 : 1;
}
