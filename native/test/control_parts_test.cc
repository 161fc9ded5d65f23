// The small parts of the control side, one by one.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "agent/config.h"
#include "agent/environment.h"
#include "agent/messages.h"
#include "agent/peer_info.h"
#include "agent/unique_id.h"
#include "base/base64.h"
#include "base/debug.h"
#include "base/port_range.h"
#include "communicator/device_choice.h"
#include "communicator/operation_hash.h"
#include "cuda/kernels.h"
#include "datapath/spin_wait.h"
#include "expect.h"
#include "host/default_stream_slots.h"

using namespace ncclrun;

namespace {

// What has come counts, also where the communicator broke before its sleeper woke.
void spin() {
  AbortBlock block{};
  Doorbell bell{};
  Interrupt interrupt(block, bell);
  std::atomic<bool> came = false;
  std::atomic<bool> asleep = false;
  bool waited = false;
  std::thread sleeper([&] {
    SpinWait spin(interrupt, bell, 0);
    waited = spin.wait([&] { return came.load(); }, [&] { asleep = true; });
  });
  while (!asleep || bell.sleepers == 0) std::this_thread::yield();
  came = true;
  interrupt.raise({ncclRemoteError, "a rank has ended"});
  sleeper.join();
  EXPECT(waited);
}

void base64() {
  const struct {
    std::string_view text;
    bool valid;
    std::string_view bytes;
  } cases[] = {
      {"TWFu", true, "Man"}, {"TWE=", true, "Ma"}, {"TQ==", true, "M"}, {"+/+/", true, "\xfb\xff\xbf"},
      {"", false, ""},       {"TWF", false, ""},   {"TW=u", false, ""}, {"T===", false, ""},
      {"TWE*", false, ""},   {"TWF=", false, ""},  {"TR==", false, ""}, {"TWFu\n", false, ""},
      {"====", false, ""},
  };
  for (const auto& one : cases) {
    std::vector<uint8_t> bytes;
    EXPECT(decodeBase64(one.text, bytes) == one.valid);
    if (one.valid) EXPECT(std::string_view(reinterpret_cast<char*>(bytes.data()), bytes.size()) == one.bytes);
  }
}

void uniqueIds() {
  EXPECT(hashJobId("") == 0);
  EXPECT(hashJobId("a") == 0xaf63dc4c8601ec8c);  // a published vector of FNV-1a
  ncclUniqueId one;
  ncclUniqueId other;
  EXPECT(makeUniqueId(one) == ncclSuccess && makeUniqueId(other) == ncclSuccess);
  EXPECT(std::memcmp(&one, "NCCLRUN1", 8) == 0);
  EXPECT(!sameId(one, other) && shortName(one) != shortName(other));
  for (size_t i = 32; i < sizeof one; i++) EXPECT(one.internal[i] == 0);
  EXPECT(checkUniqueId(one).ok());
}

void job() {
  ncclUniqueId id;
  int size = 0;
  int rank = 0;
  const std::string text = std::string(170, 'A') + "A=";  // 128 zero bytes
  setenv("NCCLRUN_UNIQUE_ID", text.c_str(), 1);
  setenv("NCCLRUN_SIZE", "4", 1);
  setenv("NCCLRUN_RANK", "3", 1);
  EXPECT(readJob(id, size, rank).ok() && size == 4 && rank == 3);
  for (const char* bad : {"4", "-1", "x", "", "3 "}) {
    setenv("NCCLRUN_RANK", bad, 1);
    const Status status = readJob(id, size, rank);
    EXPECT(status.code == ncclInvalidUsage && status.sentence.starts_with("NCCLRUN_RANK="));
  }
  setenv("NCCLRUN_UNIQUE_ID", "AAAA", 1);
  EXPECT(readJob(id, size, rank).sentence.starts_with("NCCLRUN_UNIQUE_ID=AAAA"));
}

// Ranks that are threads may join two communicators in opposite orders: neither may come to queue behind the other.
void lanes() {
  const uint32_t mine = claimDefaultStreamSlot({});
  uint32_t theirs = mine, theirsBeside = mine;
  std::thread([&] {
    theirs = claimDefaultStreamSlot({});  // of another communicator, that nobody else has joined yet
    theirsBeside = claimDefaultStreamSlot({&mine, 1});
  }).join();
  EXPECT(theirs != mine && theirsBeside == theirs);
  EXPECT(claimDefaultStreamSlot({&theirs, 1}) == mine);
  std::thread([&] { EXPECT(claimDefaultStreamSlot({}) == theirs); }).join();  // the thread that had it has ended
}

std::string whyNoCuda() {
  std::string why;
  return cuda::driver(why) == nullptr ? why : cuda::whyNoKernels();
}

void devices() {
  std::optional<cuda::Gpu> gpu;
  setenv("NCCLRUN_DEVICE", "host", 1);
  EXPECT(chooseDevice(ncclrunDeviceAutomatic, gpu).ok() && !gpu.has_value());
  for (const char* either : {"", "auto"}) {
    setenv("NCCLRUN_DEVICE", either, 1);
    const bool usable = whyNoCuda().empty();
    EXPECT(chooseDevice(ncclrunDeviceAutomatic, gpu).ok() == (usable || cuda::visibleGpus() == 0));
    EXPECT(gpu.has_value() == usable);
  }
  setenv("NCCLRUN_DEVICE", "cuda", 1);
  EXPECT(chooseDevice(ncclrunDeviceAutomatic, gpu).ok() == whyNoCuda().empty());
  setenv("NCCLRUN_DEVICE", "gpu", 1);
  EXPECT(chooseDevice(ncclrunDeviceAutomatic, gpu).code == ncclInvalidUsage);
  unsetenv("NCCLRUN_DEVICE");
}

// What logInfo writes to stderr.
std::string told(const char* level, const char* sentence = "so it is") {
  setenv("NCCL_DEBUG", level, 1);
  resetDebug();
  int pipe[2];
  EXPECT(::pipe(pipe) == 0);
  const int before = dup(STDERR_FILENO);
  dup2(pipe[1], STDERR_FILENO);
  logInfo(sentence);
  dup2(before, STDERR_FILENO);
  close(before);
  close(pipe[1]);
  char text[512];
  const ssize_t bytes = read(pipe[0], text, sizeof text);
  close(pipe[0]);
  unsetenv("NCCL_DEBUG");
  return {text, static_cast<size_t>(std::max<ssize_t>(bytes, 0))};
}

void debugging() {
  for (const char* silent : {"", "VERSION", "WARN", "INFORMATION"}) EXPECT(told(silent).empty());
  for (const char* level : {"INFO", "info", "TRACE"}) {
    const std::string line = told(level);
    EXPECT(line.ends_with(formatSentence(":%d:%d NCCL INFO so it is\n", getpid(), gettid())));
  }
  EXPECT(told("INFO", "é\x1b]0;x\x07\nb\x7f\xc2\x9b").ends_with("NCCL INFO é\\x1b]0;x\\x07\\x0ab\\x7f\\xc2\\x9b\n"));
}

// What a caller compiled with an older header passes: the first `bytes` bytes, and rubbish behind them.
ncclConfig_t cut(ncclConfig_t config, size_t bytes) {
  config.size = bytes;
  std::memset(reinterpret_cast<char*>(&config) + bytes, 0x5a, sizeof config - bytes);
  return config;
}

void configs() {
  CommSettings settings;
  EXPECT(readConfig(nullptr, settings).ok() && settings.blocking);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  EXPECT(readConfig(&config, settings).ok() && settings.blocking);
  config.blocking = 0;
  for (const size_t bytes : {20, 24, 40, 48, 64, 72, 80}) {  // 2.14 … 2.28
    const ncclConfig_t older = cut(config, bytes);
    EXPECT(readConfig(&older, settings).ok() && !settings.blocking);
  }
  struct {
    ncclConfig_t known;
    char more[64];
  } newer{config, "fields of a later version"};
  newer.known.size = sizeof newer;
  EXPECT(readConfig(&newer.known, settings).ok() && !settings.blocking);

  config.blocking = 2;
  EXPECT(readConfig(&config, settings).sentence == "config.blocking is 2; it must be from 0 to 1");
  config.blocking = 1;
  config.minCTAs = 0;
  EXPECT(readConfig(&config, settings).sentence == "config.minCTAs is 0; it must be at least 1");
  config.minCTAs = 8;
  config.maxCTAs = 4;
  EXPECT(readConfig(&config, settings).code == ncclInvalidArgument);
  config.maxCTAs = 16;
  EXPECT(readConfig(&config, settings).ok() && settings.maxChannels == 16);
  setenv("NCCL_MAX_CTAS", "12", 1);
  EXPECT(readConfig(&config, settings).ok() && settings.maxChannels == 12);
  EXPECT(readConfig(nullptr, settings).ok() && settings.maxChannels == 12);
  for (const char* wrong : {"many", "99999999999999999999", "8 "}) {
    setenv("NCCL_MAX_CTAS", wrong, 1);
    EXPECT(readConfig(&config, settings).sentence == std::string("NCCL_MAX_CTAS=") + wrong + " is not a whole number");
  }
  for (const char* nothing : {"0", "-1"}) {
    setenv("NCCL_MAX_CTAS", nothing, 1);
    EXPECT(readConfig(&config, settings).ok() && settings.maxChannels == 16);
  }
  setenv("NCCL_MAX_CTAS", "0x4", 1);
  EXPECT(readConfig(&config, settings).ok() && settings.maxChannels == 4);
  unsetenv("NCCL_MAX_CTAS");
  setenv("NCCL_MAX_NCHANNELS", "-1", 1);
  EXPECT(readConfig(nullptr, settings).ok() && settings.maxChannels == 1);
  unsetenv("NCCL_MAX_NCHANNELS");
  setenv("NCCLRUN_MAX_SMS", "8", 1);  // config.maxCTAs is 16
  EXPECT(readConfig(&config, settings).ok() && settings.maxChannels == 8);
  setenv("NCCLRUN_MAX_SMS", "20", 1);
  EXPECT(readConfig(&config, settings).ok() && settings.maxChannels == 16);
  CommSettings fresh;
  EXPECT(readConfig(nullptr, fresh).ok() && fresh.maxChannels == 20);
  for (const char* wrong : {"0", "half"}) {
    setenv("NCCLRUN_MAX_SMS", wrong, 1);
    EXPECT(readConfig(&config, settings)
               .sentence.starts_with(std::string("NCCLRUN_MAX_SMS=") + wrong + " is not a whole number"));
  }
  unsetenv("NCCLRUN_MAX_SMS");
  config.magic = 0;
  EXPECT(readConfig(&config, settings).sentence.find("NCCL_CONFIG_INITIALIZER") != std::string::npos);
  ncclConfig_t nothing{};
  EXPECT(readConfig(&nothing, settings).code == ncclInvalidArgument);
}

void messages() {
  const std::string bytes("\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0\3\0\0\0job\4\0\0\0host", 31);
  const auto span = std::as_bytes(std::span(bytes));
  WelcomeMessage welcome;
  EXPECT(decodeWelcome(span, welcome));
  EXPECT(welcome.hostIndex == 1 && welcome.hostCount == 2 && welcome.rankCount == 3 && welcome.epoch == 4);
  EXPECT(welcome.jobId == "job" && welcome.hostName == "host");
  for (size_t length = 0; length < bytes.size(); length++) EXPECT(!decodeWelcome(span.first(length), welcome));
  const std::string longer = bytes + "x";
  EXPECT(!decodeWelcome(std::as_bytes(std::span(longer)), welcome));

  Status status;
  const std::string refusal("\0\0\0\0\2\0\0\0no", 10);  // "refused with success" makes no sense
  EXPECT(decodeRefused(std::as_bytes(std::span(refusal)), status) && status.code == ncclInternalError);
  EXPECT(encodeHello(1, -1, "job", "0.1.0").size() == 4 + 4 + 4 + 7 + 9);
  EXPECT(encodeJoin({}, {}).size() == 128 + 12 + 64);
  EXPECT(encodeBarrier({}, 0).size() == 128 + 20);
  EXPECT(encodeLeave({}, LeaveHow::aborted, "why", kJoinRound).size() == 128 + 4 + 8 + 7 + 4);
}

void peers() {
  ncclUniqueId one{};
  ncclUniqueId other{};
  other.internal[20] = 1;
  const PeerInfo info = describePeer(one, "a", 7);
  EXPECT(info.version == 1 && info.device == 0 && info.listenPort == 7);
  EXPECT(info.hostHash == describePeer(one, "a", 0).hostHash && info.pidHash == describePeer(one, "a", 0).pidHash);
  EXPECT(info.hostHash != describePeer(one, "b", 0).hostHash);
  EXPECT(info.hostHash != describePeer(other, "a", 0).hostHash && info.pidHash != describePeer(other, "a", 0).pidHash);
  setenv("NCCL_HOSTID", "same", 1);
  EXPECT(describePeer(one, "a", 0).hostHash == describePeer(one, "b", 0).hostHash);
  unsetenv("NCCL_HOSTID");
  int listener = -1;
  uint16_t port = 0;
  EXPECT(listenForPeers(listener, port).ok() && listener >= 0 && port != 0);
  close(listener);
}

void portRanges() {
  PortRange range;
  EXPECT(parsePortRange("20000-20015", range) && range.first == 20000 && range.last == 20015 && range.size() == 16);
  EXPECT(parsePortRange("", range) && range.isSystems());
  for (const char* text : {"20000", "20000-", "-20000", "20015-20000", "80-90", "20000-70000", "20000-20015x", "a-b"})
    EXPECT(!parsePortRange(text, range) && range.isSystems());
  int listener = -1, other = -1;
  uint16_t port = 0, again = 0;
  EXPECT(listenForPeers(listener, port).ok());
  close(listener);
  const std::string alone = std::to_string(port) + "-" + std::to_string(port);
  setenv("NCCLRUN_PORT_RANGE", alone.c_str(), 1);
  EXPECT(listenForPeers(listener, again).ok() && again == port);
  const Status full = listenForPeers(other, again);
  EXPECT(full.code == ncclSystemError &&
         full.sentence.find("every port of " + alone + " (--port-range) is in use on ") != std::string::npos);
  close(listener);
  const int master = 10000 + getpid() % 20000;  // below the ports that the system chooses
  setenv("MASTER_PORT", std::to_string(master).c_str(), 1);
  setenv("NCCLRUN_PORT_RANGE", (std::to_string(master) + "-" + std::to_string(master + 1)).c_str(), 1);
  EXPECT(listenForPeers(listener, again).ok() && again == master + 1);
  EXPECT(listenForPeers(other, again).ok() && again == master);
  close(listener);
  close(other);
  unsetenv("MASTER_PORT");
  setenv("NCCLRUN_PORT_RANGE", "many", 1);
  EXPECT(listenForPeers(other, again).sentence.find("NCCLRUN_PORT_RANGE=many is no range of ports") !=
         std::string::npos);
  unsetenv("NCCLRUN_PORT_RANGE");
}

void hashes() {
  Operation operation;
  operation.collective = plan::Collective::allReduce;
  operation.count = 5;
  const uint64_t first = hashOperation(0, operation);
  EXPECT(first != 0 && hashOperation(first, operation) != first);
  for (const auto& change :
       std::vector<void (*)(Operation&)>{[](Operation& o) { o.count = 6; }, [](Operation& o) { o.type = ncclFloat32; },
                                         [](Operation& o) { o.op = ncclMax; }, [](Operation& o) { o.peer = 1; },
                                         [](Operation& o) { o.collective = plan::Collective::barrier; }}) {
    Operation changed = operation;
    change(changed);
    EXPECT(hashOperation(0, changed) != first);
  }
  operation.collective = plan::Collective::sendRecv;
  EXPECT(hashOperation(first, operation) == first);
}

}  // namespace

int main() {
  base64();
  spin();
  uniqueIds();
  job();
  lanes();
  devices();
  debugging();
  configs();
  messages();
  peers();
  portRanges();
  hashes();
  return 0;
}
