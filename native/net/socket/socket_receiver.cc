#include "net/socket/socket_receiver.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace ncclrun::net {

Status SocketReceiver::make(SocketNetwork& network, uint32_t device, uint32_t helperOffset,
                            std::vector<AcceptedSocket> sockets, std::unique_ptr<SocketReceiver>& out) {
  const std::string where = describeConnection(network, device, sockets[0].peer);
  std::unique_ptr<SocketReceiver> receiver(new SocketReceiver(network, where, sockets[0].hello.connection));
  for (uint32_t i = 0; i < sockets.size(); i++) {
    Descriptor& socket = sockets[i].descriptor;
    network.prepare(socket.get());
    // The other side decides how many sockets there are; one alone is this side's caller's, whatever it has of helpers.
    Helper* const helper = sockets.size() > 1 ? network.helperOf(i, helperOffset) : nullptr;
    receiver->tasks_.add(std::make_unique<Task>(*receiver, network, std::move(socket), helper));
  }
  NCCLRUN_TRY(receiver->tasks_.start());
  out = std::move(receiver);
  return {};
}

SocketReceiver::~SocketReceiver() { tasks_.clear(); }

std::shared_ptr<ConnectionSocket> SocketReceiver::sharableSocket() const {
  const Task* const task = tasks_.own();
  return task == nullptr ? nullptr : task->socket();
}

void SocketReceiver::receiveOver(std::shared_ptr<ConnectionSocket> socket) {
  socket->isShared = true;
  tasks_.own()->receiveOver(std::move(socket));
}

Status SocketReceiver::failed() {
  tasks_.stop();
  return failure_.status();
}

Status SocketReceiver::iflush(std::span<const Buffer>, Request*& out) {
  out = nullptr;
  return {ncclInternalError, "sockets receive into host memory, which needs no flush"};
}

Status SocketReceiver::irecv(std::span<const Buffer> group, Request*& out) {
  out = nullptr;
  if (group.empty() || group.size() > kMaxReceives) {
    return {ncclInvalidArgument,
            "a receive has 1 to " + std::to_string(kMaxReceives) + " buffers, not " + std::to_string(group.size())};
  }
  if (failure_.failed()) return failed();
  Group* posted = nullptr;
  bool mayBegin = false;
  {
    std::lock_guard lock(mutex_);
    posted = &groups_[nextGroup_ % kRequests];
    if (posted->active) return {};
    std::copy(group.begin(), group.end(), posted->buffers.begin());
    posted->count = uint32_t(group.size());
    posted->sizes.fill(kUnbound);
    posted->first = posted_;
    posted->bound = posted->complete = 0;
    posted->done.store(false, std::memory_order_relaxed);
    posted->active = true;
    for (uint32_t i = 0; i < posted->count; i++) groupOf_[(posted_ + i) % kMessages] = uint16_t(nextGroup_ % kRequests);
    posted_ += posted->count;
    nextGroup_++;
    mayBegin = retryWaiting();
  }
  // Whatever else has come is read by test(): a system call for each receive that is posted ahead would delay the next
  // message.
  if (mayBegin) tasks_.advanceInline();
  out = reinterpret_cast<Request*>(posted);
  return {};
}

Status SocketReceiver::test(Request* request, bool& done, std::span<size_t> sizes) {
  done = false;
  auto& group = *reinterpret_cast<Group*>(request);
  if (!group.done.load(std::memory_order_acquire)) {
    tasks_.advanceInline();
    if (!group.done.load(std::memory_order_acquire)) return failure_.failed() ? failed() : Status{};
  }
  done = true;
  std::copy_n(group.sizes.begin(), std::min(sizes.size(), size_t(group.count)), sizes.begin());
  std::lock_guard lock(mutex_);
  group.active = false;
  return {};
}

bool SocketReceiver::redirect(Request* request, const Scatter& scatter) {
  auto& group = *reinterpret_cast<Group*>(request);
  std::lock_guard lock(mutex_);
  if (group.count != 1 || group.sizes[0] != kUnbound) return false;
  group.buffers[0].scatter = scatter;
  return true;
}

SocketReceiver::Places SocketReceiver::placesOf(const Buffer& buffer, const ChunkHeader& header) {
  const Scatter& scatter = buffer.scatter;
  auto* const address = static_cast<std::byte*>(buffer.address);
  if (scatter.body == nullptr || header.messageBytes != scatter.headBytes + scatter.bodyBytes)
    return {{iovec{address + header.offset, header.bytes}, iovec{}}};
  const size_t ofHead =
      header.offset < scatter.headBytes ? std::min<size_t>(header.bytes, scatter.headBytes - header.offset) : 0;
  std::byte* const body = header.bytes > ofHead ? scatter.body + (header.offset + ofHead - scatter.headBytes) : nullptr;
  return {{iovec{address + header.offset, ofHead}, iovec{body, header.bytes - ofHead}}};
}

void SocketReceiver::Places::skip(size_t count) {
  for (iovec& vector : vectors) {
    const size_t part = std::min(count, vector.iov_len);
    vector.iov_base = static_cast<std::byte*>(vector.iov_base) + part;
    vector.iov_len -= part;
    count -= part;
  }
}

SocketReceiver::Binding SocketReceiver::bind(const ChunkHeader& header, Target& target, Places& into) {
  std::lock_guard lock(mutex_);
  const auto refused = [this](const std::string& why) {
    failure_.set(ncclInternalError, "the other side sends " + why);
    return Binding::failed;
  };
  if (header.magic != kChunkMagic) return refused("what is no chunk of a message");
  if (int32_t(header.sequence - posted_) >= 0) {
    chunkWaits_ = true;
    return Binding::waits;
  }
  Group& group = groups_[groupOf_[header.sequence % kMessages]];
  const uint32_t index = header.sequence - group.first;
  if (!group.active || index >= group.count) return refused("a chunk of a message that is complete");
  if (index > group.bound) {
    chunkWaits_ = true;
    return Binding::waits;
  }
  if (index == group.bound) {
    uint32_t buffer = 0;
    while (buffer < group.count && (group.sizes[buffer] != kUnbound || group.buffers[buffer].tag != header.tag))
      buffer++;
    if (buffer == group.count) {
      failure_.set(ncclInvalidUsage, "a message of tag " + std::to_string(header.tag) +
                                         " has come, and the receive that is due has no buffer for it");
      return Binding::failed;
    }
    if (header.messageBytes > group.buffers[buffer].bytes) {
      failure_.set(ncclInvalidUsage, "a message of " + std::to_string(header.messageBytes) +
                                         " bytes has come for a buffer of " +
                                         std::to_string(group.buffers[buffer].bytes) + ": message truncated");
      return Binding::failed;
    }
    group.sizes[buffer] = header.messageBytes;
    group.left[buffer] = header.messageBytes + 1;
    group.bufferOf[index] = uint8_t(buffer);
    group.bound++;
    retryWaiting();
  }
  const uint32_t buffer = group.bufferOf[index];
  const size_t size = group.sizes[buffer];
  if (header.messageBytes != size || header.offset > size || header.bytes > size - header.offset ||
      (header.bytes == 0 && size > 0))
    return refused("a chunk that does not lie within its message");
  target = {&group, buffer};
  into = placesOf(group.buffers[buffer], header);
  return Binding::bound;
}

void SocketReceiver::completed(const Target& target, const ChunkHeader& header, bool byHelper) {
  std::lock_guard lock(mutex_);
  Group& group = *target.group;
  const size_t bytes = header.bytes + (header.offset == 0 ? 1 : 0);
  size_t& left = group.left[target.buffer];
  if (bytes > left) return failure_.set(ncclInternalError, "the other side sends a part of a message twice");
  left -= bytes;
  if (left > 0 || ++group.complete < group.count) return;
  group.done.store(true, std::memory_order_release);
  if (byHelper) network_.notify();
}

bool SocketReceiver::Task::beginChunk() {
  do {
    if (source().bytes() < sizeof header_) return false;
    std::memcpy(&header_, source().staged.data() + source().begin, sizeof header_);
  } while (takeNotice());
  if (receiver_.bind(header_, target_, rest_) != Binding::bound) return false;
  source().begin += sizeof header_;
  chunk_ = true;
  return true;
}

bool SocketReceiver::Task::takeNotice() {
  if (header_.magic == kOfferMagic) {
    source().begin += sizeof header_;
    socket_->offeredTo.store(header_.offset, std::memory_order_release);
    return true;
  }
  // Where there is no other socket, bind() refuses it.
  if (header_.magic != kTurnMagic || sources_[1].socket == nullptr) return false;
  source().begin += sizeof header_;
  turns_++;
  source().drained = false;  // its events until now were not looked for
  return true;
}

void SocketReceiver::Task::takeStaged() {
  Source& from = source();
  for (const iovec& into : rest_.vectors) {
    const size_t part = std::min(into.iov_len, from.bytes());
    if (part > 0) std::memcpy(into.iov_base, from.staged.data() + from.begin, part);
    rest_.skip(part);
    from.begin += part;
  }
}

void SocketReceiver::socketClosed() {
  std::lock_guard lock(mutex_);
  if (++closedSockets_ < tasks_.size()) return;
  failure_.set(ncclRemoteError, "the other side has closed it, or its process has ended");
}

void SocketReceiver::Task::closed() {
  if (chunk_ || source().bytes() > 0)
    return lost("the other side has closed it in the middle of a message, or its process has ended");
  over_ = true;
  receiver_.socketClosed();
  if (helper() != nullptr) network_.notify();
}

void SocketReceiver::Task::lost(const std::string& why) {
  over_ = true;
  receiver_.failure_.set(ncclRemoteError, why);
  if (helper() != nullptr) network_.notify();
}

ssize_t SocketReceiver::Task::readRest(size_t room) {
  Source& from = source();
  std::array<iovec, 3> parts;
  size_t count = 0;
  for (const iovec& into : rest_.vectors) {
    if (into.iov_len > 0) parts[count++] = into;
  }
  parts[count++] = {from.staged.data() + from.end, room};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = count;
  return recvmsg(from.socket->get(), &message, MSG_DONTWAIT);
}

bool SocketReceiver::Task::read() {
  Source& from = source();
  const int socket = from.socket->get();
  if (from.drained && helper() == nullptr && !network_.takeEvent(socket)) return false;
  if (from.begin > 0) {
    std::memmove(from.staged.data(), from.staged.data() + from.begin, from.bytes());
    from.end -= std::exchange(from.begin, 0);
  }
  const size_t rest = rest_.bytes(), room = from.staged.size() - from.end;
  ssize_t got = 0;
  do {
    got = rest == 0 ? recv(socket, from.staged.data() + from.end, room, MSG_DONTWAIT) : readRest(room);
  } while (got < 0 && errno == EINTR);
  from.drained = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  if (from.drained) return false;
  if (got <= 0) {
    if (got == 0) {
      closed();
    } else {
      lost(std::strerror(errno));
    }
    return false;
  }
  from.drained = size_t(got) < rest + room;
  if (size_t(got) <= kSmallRead) joinAcknowledgements();
  const size_t part = std::min(rest, size_t(got));
  rest_.skip(part);
  from.end += size_t(got) - part;
  return true;
}

// Linux acknowledges what an application reads at once unless it answers on the same socket (tcp_cleanup_rbuf), and
// often no data flows back on this one.
void SocketReceiver::Task::joinAcknowledgements() {
  if (++smallReads_ < kQuickReads) return;
  const auto now = std::chrono::steady_clock::now();
  const bool areQuick = now - smallSince_ <= kQuickTime;
  smallReads_ = 0;
  smallSince_ = now;
  const int off = 0;
  if (areQuick) setsockopt(source().socket->get(), IPPROTO_TCP, TCP_QUICKACK, &off, sizeof off);
}

void SocketReceiver::Task::advance() {
  size_t moved = 0;
  while (!over_) {
    if (!chunk_ && !beginChunk()) {
      if (receiver_.failure_.failed()) {
        over_ = true;
        if (helper() != nullptr) network_.notify();
        return;
      }
      // A whole header that waits for its receive stays where it is, and what is behind it in the socket.
      if (source().bytes() >= sizeof header_) return;
      // The caller tests again before it sleeps; a helper must see the socket empty, or miss that it was closed.
      if (moved > 0 && source().drained && helper() == nullptr) return;
      if (!read()) return;
      continue;
    }
    takeStaged();
    if (rest_.bytes() == 0) {
      chunk_ = false;
      moved += header_.bytes;
      receiver_.completed(target_, header_, helper() != nullptr);
      if (moved < kBytesPerCall) continue;
      return helper() != nullptr ? helper()->wake() : network_.notify();
    }
    const size_t before = rest_.bytes();
    if (!read()) return;
    moved += before - rest_.bytes();
    if (moved < kBytesPerCall) continue;
    return helper() != nullptr ? helper()->wake() : network_.notify();
  }
}

// With the lock held.
bool SocketReceiver::retryWaiting() {
  if (!std::exchange(chunkWaits_, false)) return false;
  network_.notify();
  tasks_.wakeHelpers();
  return true;
}

}  // namespace ncclrun::net
