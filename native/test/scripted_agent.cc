#include "scripted_agent.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "expect.h"
#include "ncclrun.h"

std::string u32(uint32_t value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }
std::string text(const std::string& value) { return u32(static_cast<uint32_t>(value.size())) + value; }

int memoryOf(size_t bytes) {
  const int memory = memfd_create("test", MFD_CLOEXEC);
  EXPECT(memory >= 0 && ftruncate(memory, static_cast<off_t>(bytes)) == 0);
  return memory;
}

ScriptedAgent::ScriptedAgent() {
  char directory[] = "/tmp/ncclrun-test-XXXXXX";
  EXPECT(mkdtemp(directory) != nullptr);
  path_ = std::string(directory) + "/agent";
  listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path_.data(), path_.size());
  EXPECT(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && listen(listener_, 8) == 0);
  setenv("NCCLRUN_AGENT", path_.c_str(), 1);
}

ScriptedAgent::~ScriptedAgent() {
  disconnect();
  close(listener_);
  unlink(path_.c_str());
  rmdir(path_.substr(0, path_.find_last_of('/')).c_str());
}

void ScriptedAgent::accept() {
  connection_ = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  EXPECT(connection_ >= 0);
}

AgentFrame ScriptedAgent::read() {
  char header[16];
  EXPECT(recv(connection_, header, sizeof header, MSG_WAITALL) == sizeof header);
  uint32_t bytes;
  AgentFrame frame{static_cast<uint8_t>(header[5]), 0, {}};
  std::memcpy(&bytes, header, sizeof bytes);
  std::memcpy(&frame.request, header + 12, sizeof frame.request);
  frame.payload.resize(bytes);
  if (bytes > 0) EXPECT(recv(connection_, frame.payload.data(), bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes));
  return frame;
}

void ScriptedAgent::send(uint8_t kind, uint32_t request, const std::string& payload,
                         const std::vector<int>& descriptors) {
  const char rest[] = {1, static_cast<char>(kind), 0, 0};
  sendRaw(u32(static_cast<uint32_t>(payload.size())) + std::string(rest, sizeof rest) + u32(0) + u32(request) + payload,
          descriptors);
}

void ScriptedAgent::sendRaw(const std::string& bytes, const std::vector<int>& descriptors) {
  std::string copy = bytes;
  iovec vector = {copy.data(), copy.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(part), descriptors.data(), descriptors.size() * sizeof(int));
  }
  EXPECT(sendmsg(connection_, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
}

void ScriptedAgent::disconnect() {
  if (connection_ >= 0) close(connection_);
  connection_ = -1;
}

int ScriptedAgent::greet(uint32_t hostCount) {
  accept();
  return welcome(read(), hostCount);
}

int ScriptedAgent::welcome(const AgentFrame& hello, uint32_t hostCount) {
  EXPECT(hello.kind == 0x50);
  const int page = memoryOf(NCCLRUN_TELEMETRY_BYTES);
  const int recorder = memoryOf(NCCLRUN_RECORDER_BYTES);
  send(0x51, hello.request, u32(0) + u32(hostCount) + u32(2) + u32(0) + text("job") + text("node7"), {page, recorder});
  close(recorder);
  return page;
}
