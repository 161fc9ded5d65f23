#include "agent/agent_connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "base/limits.h"

namespace ncclrun {
namespace {

constexpr size_t kReadBytes = 64 * 1024;
constexpr size_t kMaxDescriptorsPerRead = 16;

Status cannotReach(const std::string& path, int error) {
  const std::string directory = path.substr(0, path.find_last_of('/'));
  const char* remedy = "";
  std::string mount;
  if (error == ENOENT) {
    mount = formatSentence("; inside a container, mount %s at the same path", directory.c_str());
    remedy = mount.c_str();
  } else if (error == ECONNREFUSED) {
    remedy = ": the agent of this host has ended";
  } else if (error == EACCES) {
    remedy = ": the socket belongs to the user who started ncclrun";
  }
  return {ncclSystemError, formatSentence("cannot reach the agent of this host at %s (NCCLRUN_AGENT): %s%s",
                                          path.c_str(), std::strerror(error), remedy)};
}

}  // namespace

Status AgentConnection::open(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return cannotReach(path, ENAMETOOLONG);
  std::memcpy(address.sun_path, path.data(), path.size());
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return cannotReach(path, errno);
  while (connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    if (errno != EINTR) return cannotReach(path, errno);
  }
  path_ = path;
  socket_ = std::move(socket);
  return {};
}

void AgentConnection::adopt(Descriptor socket, std::string name) {
  path_ = std::move(name);
  socket_ = std::move(socket);
}

void AgentConnection::close() {
  socket_.reset();
  incoming_.clear();
  descriptors_.clear();
  outgoing_.clear();
  sent_ = 0;
}

short AgentConnection::wantedEvents() const {
  return static_cast<short>(outgoing_.empty() ? POLLIN : POLLIN | POLLOUT);
}

Status AgentConnection::send(FrameKind kind, uint32_t request, const Bytes& payload) {
  const FrameHeader header = {
      static_cast<uint32_t>(payload.size()), kFrameVersion, static_cast<uint8_t>(kind), 0, 0, request};
  const auto* bytes = reinterpret_cast<const std::byte*>(&header);
  outgoing_.insert(outgoing_.end(), bytes, bytes + sizeof header);
  outgoing_.insert(outgoing_.end(), payload.begin(), payload.end());
  return flush();
}

Status AgentConnection::flush() {
  while (sent_ < outgoing_.size()) {
    const ssize_t written =
        ::send(socket_.get(), outgoing_.data() + sent_, outgoing_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (written >= 0) {
      sent_ += static_cast<size_t>(written);
    } else if (errno == EAGAIN) {
      return {};
    } else if (errno != EINTR) {
      return {ncclSystemError,
              formatSentence("the agent of this host (%s) is gone: %s", path_.c_str(), std::strerror(errno))};
    }
  }
  outgoing_.clear();
  sent_ = 0;
  return {};
}

Status AgentConnection::readSome(bool& more) {
  const size_t before = incoming_.size();
  incoming_.resize(before + kReadBytes);
  iovec vector = {incoming_.data() + before, kReadBytes};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptorsPerRead * sizeof(int))];
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t got = recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  const int error = errno;
  incoming_.resize(before + (got > 0 ? static_cast<size_t>(got) : 0));
  more = got > 0;
  if (got < 0) {
    more = error == EINTR;
    if (more || error == EAGAIN) return {};
    return {ncclSystemError,
            formatSentence("the agent of this host (%s) is gone: %s", path_.c_str(), std::strerror(error))};
  }
  if (got == 0) {
    return {ncclSystemError,
            formatSentence("the agent of this host (%s) closed the connection: it ended or was killed", path_.c_str())};
  }
  // The system drops what this process has no room for.
  if ((message.msg_flags & MSG_CTRUNC) != 0) {
    return {ncclSystemError, formatSentence("cannot take the file descriptors of the agent's answer: %s%s",
                                            std::strerror(EMFILE), limitBehind(EMFILE).c_str())};
  }
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
      int number;
      std::memcpy(&number, CMSG_DATA(part) + i * sizeof number, sizeof number);
      descriptors_.emplace_back(number);
    }
  }
  return {};
}

Status AgentConnection::receive(const std::function<void(const ReceivedFrame&)>& receive) {
  bool more = true;
  while (more) {
    NCCLRUN_TRY(readSome(more));
    size_t used = 0;
    while (incoming_.size() - used >= sizeof(FrameHeader)) {
      FrameHeader header;
      std::memcpy(&header, incoming_.data() + used, sizeof header);
      if (header.version != kFrameVersion || header.payloadBytes > kMaxPayloadBytes) {
        return {
            ncclInternalError,
            formatSentence(
                "the agent of this host (%s) sent a frame of version %u with %u bytes; this engine reads version %u "
                "with up to %u",
                path_.c_str(), header.version, header.payloadBytes, kFrameVersion, kMaxPayloadBytes)};
      }
      const size_t whole = sizeof header + header.payloadBytes;
      if (incoming_.size() - used < whole) break;
      receive({static_cast<FrameKind>(header.kind), header.request,
               std::span(incoming_).subspan(used + sizeof header, header.payloadBytes)});
      if (!isOpen()) return {};
      used += whole;
    }
    incoming_.erase(incoming_.begin(), incoming_.begin() + static_cast<ptrdiff_t>(used));
  }
  return {};
}

Descriptor AgentConnection::takeDescriptor() {
  if (descriptors_.empty()) return {};
  Descriptor oldest = std::move(descriptors_.front());
  descriptors_.pop_front();
  return oldest;
}

}  // namespace ncclrun
