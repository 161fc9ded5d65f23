// What an engine makes of its agent's words: refusals, aborts, broken streams, and users who abort meanwhile.
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <thread>

#include "expect.h"
#include "ncclrun.h"
#include "scripted_agent.h"
#include "support/plan_builder.h"

namespace {

using namespace ncclrun;

constexpr uint8_t kWelcome = 0x51, kJoin = 0x52, kPlan = 0x53, kRefused = 0x59, kLeave = 0x5a, kAborted = 0x5b;
constexpr double kAbortMilliseconds = 100;

ncclUniqueId freshId() {
  ncclUniqueId id;
  EXPECT_RESULT(ncclGetUniqueId(&id), ncclSuccess, "");
  return id;
}

std::string bytesOf(const ncclUniqueId& id) { return {id.internal, sizeof id.internal}; }

// The random part of an id, as text.
std::string nameOf(const std::string& id) {
  std::string name;
  for (const char byte : id.substr(16, 16)) name += std::to_string(static_cast<unsigned char>(byte)) + ".";
  return name;
}

std::string refusal(ncclResult_t code, const std::string& sentence) { return u32(code) + text(sentence); }

// Rank 0 of 2 joins on a thread of its own while the test plays the agent.
class Joining {
 public:
  Joining() : thread_([this] { result_ = ncclCommInitRank(&comm, 2, id, 0), sentence_ = ncclGetLastError(nullptr); }) {}
  ~Joining() { EXPECT(!thread_.joinable()); }
  void expect(ncclResult_t code, const std::string& words) {
    thread_.join();
    if (result_ != code || sentence_.find(words) == std::string::npos) {
      failTest(__FILE__, __LINE__,
               "init = " + std::to_string(result_) + " \"" + sentence_ + "\", expected \"" + words + "\"");
    }
    EXPECT(comm == nullptr);
  }
  ncclUniqueId id = freshId();
  ncclComm_t comm = nullptr;

 private:
  ncclResult_t result_ = ncclSuccess;
  std::string sentence_;
  std::thread thread_;
};

void withoutAgent() {
  unsetenv("NCCLRUN_AGENT");
  ncclComm_t comm;
  setenv("NCCLRUN_NODE", "/nowhere/node", 1);
  EXPECT_RESULT(ncclCommInitRank(&comm, 1, freshId(), 0), ncclSystemError, "NCCLRUN_NODE=/nowhere/node");
  setenv("NCCLRUN_AGENT", "/nowhere/at/all/agent", 1);
  EXPECT_RESULT(ncclCommInitRank(&comm, 1, freshId(), 0), ncclSystemError, "mount /nowhere/at/all");
  EXPECT(comm == nullptr);
  int size;
  int rank;
  ncclUniqueId id;
  EXPECT_RESULT(ncclrunGetJob(&id, &size, &rank), ncclInvalidUsage, "NCCLRUN_UNIQUE_ID is not set");
}

void refused() {
  ScriptedAgent agent;
  Joining first;
  close(agent.greet());
  AgentFrame join = agent.read();
  EXPECT(join.kind == kJoin && join.payload.size() == 128 + 12 + 64);
  EXPECT(join.payload.substr(0, 128) == bytesOf(first.id));
  agent.send(kRefused, join.request, refusal(ncclInvalidUsage, "rank 0 spoke twice"));
  first.expect(ncclInvalidUsage, "rank 0 of 2 on node7: rank 0 spoke twice");
  Joining second;  // the connection goes on
  join = agent.read();
  agent.send(kRefused, join.request, refusal(ncclRemoteError, "restarted"));
  second.expect(ncclRemoteError, "restarted");
}

void answersOutOfOrder() {
  constexpr int kJoins = 8;
  ScriptedAgent agent;
  std::vector<std::unique_ptr<Joining>> joins;
  for (int i = 0; i < kJoins; i++) joins.push_back(std::make_unique<Joining>());
  close(agent.greet());
  std::vector<AgentFrame> frames;
  for (int i = 0; i < kJoins; i++) frames.push_back(agent.read());
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    agent.send(kRefused, frame->request, refusal(ncclSystemError, nameOf(frame->payload)));
  }
  for (const auto& join : joins) join->expect(ncclSystemError, nameOf(bytesOf(join->id)));
}

void answersInPieces() {
  ScriptedAgent agent;
  Joining joining;
  agent.accept();
  const AgentFrame hello = agent.read();
  const std::string welcome = u32(0) + u32(1) + u32(2) + u32(0) + text("job") + text("node7");
  const std::string frame =
      u32(static_cast<uint32_t>(welcome.size())) + std::string("\1\x51\0\0", 4) + u32(0) + u32(hello.request) + welcome;
  const int page = memoryOf(NCCLRUN_TELEMETRY_BYTES);
  agent.sendRaw(frame.substr(0, 1), {page, memoryOf(NCCLRUN_RECORDER_BYTES)});
  for (const char byte : frame.substr(1)) agent.sendRaw(std::string(1, byte));
  agent.send(kRefused, agent.read().request, refusal(ncclSystemError, "in pieces"));
  joining.expect(ncclSystemError, "in pieces");
}

void agentGone() {
  ScriptedAgent agent;
  Joining joining;
  close(agent.greet());
  agent.read();
  agent.disconnect();
  joining.expect(ncclSystemError, "closed the connection");
  ncclComm_t comm;
  EXPECT_RESULT(ncclCommInitRank(&comm, 2, freshId(), 0), ncclSystemError, "closed the connection");
}

// Whatever comes instead of an answer ends the init with a sentence, never the process.
void nonsense(const std::function<void(ScriptedAgent&, const AgentFrame&)>& say, const char* words) {
  ScriptedAgent agent;
  Joining joining;
  close(agent.greet());
  say(agent, agent.read());
  joining.expect(ncclInternalError, words);
}

void noPlanInThePlan() {
  ScriptedAgent agent;
  Joining joining;
  close(agent.greet());
  const AgentFrame join = agent.read();
  const int plan = memoryOf(4096);
  const int segment = memoryOf(4096);
  agent.send(kPlan, join.request, u32(0), {plan, segment});
  const AgentFrame leave = agent.read();
  EXPECT(leave.kind == kLeave && leave.payload.substr(128, 12) == u32(0) + u32(0) + u32(2));  // failed
  EXPECT(leave.payload.find("rank 0 of 2 on node7") != std::string::npos);
  joining.expect(ncclInvalidArgument, "plan");
}

void abortWhileWaiting() {
  ScriptedAgent agent;
  Joining joining;
  close(agent.greet());
  agent.read();
  const auto start = std::chrono::steady_clock::now();
  EXPECT_RESULT(ncclCommAbort(joining.comm), ncclSuccess, "");
  joining.expect(ncclInvalidUsage, "called ncclCommAbort");
  EXPECT(millisecondsSince(start) < kAbortMilliseconds);
  const AgentFrame leave = agent.read();
  EXPECT(leave.kind == kLeave && leave.payload.substr(136, 4) == u32(1));
}

// The other ranks wait for this one, and may come only later.
void abortBeforeTheWelcome() {
  ScriptedAgent agent;
  Joining joining;
  agent.accept();
  const AgentFrame hello = agent.read();
  EXPECT_RESULT(ncclCommAbort(joining.comm), ncclSuccess, "");
  joining.expect(ncclInvalidUsage, "called ncclCommAbort");
  close(agent.welcome(hello));
  const AgentFrame join = agent.read();
  EXPECT(join.kind == kJoin && join.payload.substr(0, 128) == bytesOf(joining.id));
  const AgentFrame leave = agent.read();
  EXPECT(leave.kind == kLeave && leave.payload.substr(0, 128) == bytesOf(joining.id));
  EXPECT(leave.payload.substr(136, 4) == u32(1));  // aborted
}

void abortedByAgent() {
  ScriptedAgent agent;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const ncclUniqueId id = freshId();
  ncclComm_t comm;
  EXPECT(ncclCommInitRankConfig(&comm, 2, id, 1, &config) == ncclInProgress);
  ncclResult_t state;
  EXPECT_RESULT(ncclCommGetAsyncError(comm, &state), ncclSuccess, "");
  EXPECT(state == ncclInProgress);
  float value = 1;
  EXPECT_RESULT(ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, comm, nullptr), ncclInvalidUsage,
                "still being set up");
  EXPECT_RESULT(ncclCommFinalize(comm), ncclInvalidUsage, "still being set up");
  EXPECT_RESULT(ncclCommDestroy(comm), ncclInvalidUsage, "still being set up");
  close(agent.greet());
  agent.read();
  agent.send(kAborted, 0,
             bytesOf(freshId()) + u32(0) + u32(0) + u32(ncclRemoteError) + text("of another communicator"));
  agent.send(kAborted, 0, bytesOf(id) + u32(0) + u32(0) + u32(ncclRemoteError) + text("rank 0 on node3 was killed"));
  do {
    EXPECT_RESULT(ncclCommGetAsyncError(comm, &state), ncclSuccess, "");
  } while (state == ncclInProgress);
  EXPECT(state == ncclRemoteError && std::strcmp(ncclGetLastError(comm), "rank 0 on node3 was killed") == 0);
  EXPECT_RESULT(ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, comm, nullptr), ncclRemoteError, "was killed");
  EXPECT_RESULT(ncclCommDestroy(comm), ncclSuccess, "");
  EXPECT_RESULT(ncclCommDestroy(comm), ncclInvalidArgument, "no communicator");
}

void telemetryAndThreads() {
  setenv("NCCLRUN_RANK", "5", 1);
  ScriptedAgent agent;
  Joining joining;
  const int page = agent.greet();
  const AgentFrame join = agent.read();
  const void* memory = mmap(nullptr, NCCLRUN_TELEMETRY_BYTES, PROT_READ, MAP_SHARED, page, 0);
  EXPECT(memory != MAP_FAILED);
  const auto& telemetry = *static_cast<const ncclrunTelemetryPage*>(memory);
  EXPECT(telemetry.magic == NCCLRUN_TELEMETRY_MAGIC && telemetry.version == 3 && telemetry.jobRank == 5);
  EXPECT(telemetry.pid == static_cast<uint32_t>(getpid()));
  agent.send(kRefused, join.request, refusal(ncclSystemError, "enough"));
  joining.expect(ncclSystemError, "enough");

  const pid_t child = fork();
  if (child == 0) {
    ncclUniqueId id;
    EXPECT_RESULT(ncclGetUniqueId(&id), ncclInvalidUsage, "forked");
    std::_Exit(0);
  }
  int status;
  EXPECT(waitpid(child, &status, 0) == child && status == 0);
}

// Welcomes an engine with this flight recorder and returns after its next question.
void welcomeWith(int recorder, const std::function<void()>& look) {
  setenv("NCCLRUN_RANK", "5", 1);
  ScriptedAgent agent;
  Joining joining;
  agent.accept();
  const AgentFrame hello = agent.read();
  const int page = memoryOf(NCCLRUN_TELEMETRY_BYTES);
  agent.send(0x51, hello.request, u32(0) + u32(1) + u32(2) + u32(0) + text("job") + text("node7"), {page, recorder});
  const AgentFrame join = agent.read();
  look();
  agent.send(kRefused, join.request, refusal(ncclSystemError, "enough"));
  joining.expect(ncclSystemError, "enough");
}

void flightRecorder() {
  const int memory = memoryOf(NCCLRUN_RECORDER_BYTES);
  welcomeWith(memory, [&] {
    const void* address = mmap(nullptr, NCCLRUN_RECORDER_BYTES, PROT_READ, MAP_SHARED, memory, 0);
    EXPECT(address != MAP_FAILED);
    const auto& recorder = *static_cast<const ncclrunRecorder*>(address);
    EXPECT(recorder.magic == NCCLRUN_RECORDER_MAGIC && recorder.version == 3 && recorder.jobRank == 5);
    EXPECT(recorder.pid == static_cast<uint32_t>(getpid()) && recorder.lastSequence == 0);
  });
}

// What is not recorded fails nothing.
void shortFlightRecorder() {
  welcomeWith(memoryOf(4096), [] {});
}

uint32_t stateOf(const ncclrunTelemetryPage& page, int slot) {
  return std::atomic_ref(const_cast<uint32_t&>(page.slots[slot].state)).load();
}

// Where somebody listens and says nothing.
uint32_t silentPort() {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof address;
  EXPECT(bind(listener, reinterpret_cast<const sockaddr*>(&address), bytes) == 0 && listen(listener, 8) == 0);
  EXPECT(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &bytes) == 0);
  return ntohs(address.sin_port);
}

// The plan of host 0 and an empty segment for it.
std::vector<int> planOf(const std::vector<uint32_t>& hostOf) {
  auto spec = test::oneHost(2, test::variant(plan::Algorithm::ring, 1, 4096));
  spec.hostOf = hostOf;
  spec.ports = {silentPort(), silentPort()};
  const std::vector<std::byte> encoded = test::encode(spec, 0);
  plan::Header header;
  std::memcpy(&header, encoded.data(), sizeof header);
  const int plan = memoryOf(encoded.size());
  EXPECT(pwrite(plan, encoded.data(), encoded.size(), 0) == static_cast<ssize_t>(encoded.size()));
  return {plan, memoryOf(header.segmentBytes)};
}

// An agent that cannot tell how a rank died looks whether others wait for it: those that are being set up do.
void waitsWhileItIsSetUp() {
  ScriptedAgent agent;
  Joining joining;
  const int memory = agent.greet(2);
  const AgentFrame join = agent.read();
  const void* address = mmap(nullptr, NCCLRUN_TELEMETRY_BYTES, PROT_READ, MAP_SHARED, memory, 0);
  EXPECT(address != MAP_FAILED);
  const auto& page = *static_cast<const ncclrunTelemetryPage*>(address);
  agent.send(kPlan, join.request, u32(0), planOf({0, 1}));  // rank 1 never connects
  while (stateOf(page, 0) != ncclrunStateWaiting) std::this_thread::yield();
  EXPECT(page.slots[0].lastProgressNs != 0);
  agent.send(kAborted, 0,
             bytesOf(joining.id) + u32(0) + u32(1) + u32(ncclRemoteError) + text("rank 1 on node8 was killed"));
  joining.expect(ncclRemoteError, "rank 1 on node8 was killed");
}

void waitsNoLongerWhenItIsReady() {
  ScriptedAgent agent;
  const ncclUniqueId id = freshId();
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comms[2];
  for (int rank = 0; rank < 2; rank++) {
    EXPECT(ncclCommInitRankConfig(&comms[rank], 2, id, rank, &config) == ncclInProgress);
  }
  const int memory = agent.greet();
  const void* address = mmap(nullptr, NCCLRUN_TELEMETRY_BYTES, PROT_READ, MAP_SHARED, memory, 0);
  EXPECT(address != MAP_FAILED);
  const auto& page = *static_cast<const ncclrunTelemetryPage*>(address);
  const std::vector<int> planAndSegment = planOf({0, 0});
  const AgentFrame joins[] = {agent.read(), agent.read()};
  agent.send(kPlan, joins[0].request, u32(0), planAndSegment);
  while (stateOf(page, 0) != ncclrunStateWaiting) std::this_thread::yield();
  agent.send(kPlan, joins[1].request, u32(1), planAndSegment);
  for (const ncclComm_t comm : comms) {
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress) EXPECT_RESULT(ncclCommGetAsyncError(comm, &state), ncclSuccess, "");
    EXPECT(state == ncclSuccess);
  }
  EXPECT(stateOf(page, 0) == ncclrunStateIdle && stateOf(page, 1) == ncclrunStateIdle);
}

void anotherJobsId() {
  setenv("NCCLRUN_JOB_ID", "one", 1);
  ncclUniqueId id = freshId();
  setenv("NCCLRUN_JOB_ID", "other", 1);
  ncclComm_t comm;
  EXPECT_RESULT(ncclCommInitRank(&comm, 2, id, 0), ncclInvalidArgument, "another job");
  std::memset(&id, 7, sizeof id);
  EXPECT_RESULT(ncclCommInitRank(&comm, 2, id, 0), ncclInvalidArgument, "not made by ncclGetUniqueId");
}

}  // namespace

int main() {
  bool ok = scenario("init fails without an agent", withoutAgent);
  ok &= scenario("init fails with the agent's refusal", refused);
  ok &= scenario("threads get the answers that arrive out of order", answersOutOfOrder);
  ok &= scenario("the engine assembles answers that arrive in pieces", answersInPieces);
  ok &= scenario("calls fail after the agent is gone", agentGone);
  ok &= scenario("the engine rejects a plan without descriptors", [] {
    nonsense([](ScriptedAgent& agent, const AgentFrame& join) { agent.send(kPlan, join.request, u32(0)); },
             "without its file descriptors");
  });
  ok &= scenario("the engine rejects an answer to an unknown request", [] {
    nonsense([](ScriptedAgent& agent, const AgentFrame&) { agent.send(kPlan, 4711, u32(0)); }, "unexpected frame");
  });
  ok &= scenario("the engine rejects an answer of the wrong kind", [] {
    nonsense([](ScriptedAgent& agent, const AgentFrame& join) { agent.send(kWelcome, join.request, ""); },
             "unexpected frame");
  });
  ok &= scenario("the engine rejects a truncated refusal", [] {
    nonsense([](ScriptedAgent& agent, const AgentFrame& join) { agent.send(kRefused, join.request, u32(5)); },
             "unexpected frame");
  });
  ok &= scenario("the engine rejects bytes that are no frame", [] {
    nonsense([](ScriptedAgent& agent, const AgentFrame&) { agent.sendRaw("HTTP/1.1 400 Bad Request\r\n\r\n"); },
             "sent a frame of version");
  });
  ok &= scenario("the engine rejects a truncated abort", [] {
    nonsense([](ScriptedAgent& agent, const AgentFrame&) { agent.send(kAborted, 0, "short"); }, "cannot read");
  });
  ok &= scenario("the engine rejects a memfd without a plan", noPlanInThePlan);
  ok &= scenario("an abort ends the wait for the agent", abortWhileWaiting);
  ok &= scenario("the agent learns of an abort that comes before its welcome", abortBeforeTheWelcome);
  ok &= scenario("an abort by the agent ends the init", abortedByAgent);
  ok &= scenario("the agent receives the telemetry page, and a forked child gets an error", telemetryAndThreads);
  ok &= scenario("the engine writes who it is into its flight recorder", flightRecorder);
  ok &= scenario("an engine goes on without a flight recorder that is too short", shortFlightRecorder);
  ok &= scenario("the telemetry page shows the wait of a rank that connects", waitsWhileItIsSetUp);
  ok &= scenario("the telemetry page shows no wait once the communicator is ready", waitsNoLongerWhenItIsReady);
  ok &= scenario("the engine rejects the unique id of another job", anotherJobsId);
  return ok ? 0 : 1;
}
