#include "net/socket/socket_sender.h"

#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "net/socket/tcp_traffic.h"

namespace ncclrun::net {

Status SocketSender::make(SocketNetwork& network, Setup setup, std::unique_ptr<SocketSender>& out) {
  const std::string where = describeConnection(network, setup.device, setup.peer);
  std::unique_ptr<SocketSender> sender(new SocketSender(network, where, setup.number));
  std::vector<Descriptor>& sockets = setup.sockets;
  for (uint32_t i = 0; i < sockets.size(); i++) {
    Helper* const helper = network.helperOf(i, setup.helperOffset);
    // What is not sent yet stays with the message, where a faster socket can take it.
    if (sockets.size() > 1)
      setsockopt(sockets[i].get(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsentBytes, sizeof kUnsentBytes);
    sender->tasks_.add(std::make_unique<Task>(*sender, network, std::move(sockets[i]), helper));
  }
  NCCLRUN_TRY(sender->tasks_.start());
  out = std::move(sender);
  return {};
}

SocketSender::~SocketSender() { tasks_.clear(); }

std::shared_ptr<ConnectionSocket> SocketSender::sharableSocket() const {
  const Task* const task = tasks_.own();
  return task == nullptr ? nullptr : task->socket();
}

void SocketSender::offerTo(uint64_t number) {
  Task& task = *tasks_.own();
  task.socket()->isShared = true;
  task.offerTo(number);
  task.advance();
}

void SocketSender::sendOver(std::shared_ptr<ConnectionSocket> socket) {
  socket->isShared = true;
  tasks_.own()->sendOver(std::move(socket));
}

Status SocketSender::failed() {
  tasks_.stop();
  return failure_.status();
}

Status SocketSender::isendPieces(const Pieces& pieces, int tag, Request*& out) {
  out = nullptr;
  const size_t bytes = pieces.headBytes + pieces.bodyBytes;
  if (failure_.failed()) return failed();
  Message* message = nullptr;
  {
    std::lock_guard lock(mutex_);
    message = &messages_[next_ % kRequests];
    if (message->active) return {};
    message->pieces = pieces;
    message->bytes = bytes;
    message->tag = tag;
    message->sequence = next_++;
    message->active = true;
    message->handedOut = 0;
    message->left.store(bytes + 1, std::memory_order_relaxed);
  }
  if (isInline(*message)) {
    tasks_.advanceInline();
  } else {
    tasks_.wakeHelpers();
  }
  out = reinterpret_cast<Request*>(message);
  return {};
}

Status SocketSender::test(Request* request, bool& done, std::span<size_t> sizes) {
  done = false;
  auto& message = *reinterpret_cast<Message*>(request);
  if (message.left.load(std::memory_order_acquire) > 0) {
    tasks_.advanceInline();
    if (message.left.load(std::memory_order_acquire) > 0) return failure_.failed() ? failed() : Status{};
  }
  done = true;
  if (!sizes.empty()) sizes[0] = message.bytes;
  std::lock_guard lock(mutex_);
  message.active = false;
  return {};
}

bool SocketSender::takeChunk(bool inlineSocket, Chunk& chunk) {
  std::lock_guard lock(mutex_);
  for (uint32_t& at = unsent_[inlineSocket]; at != next_; at++) {
    Message& message = messages_[at % kRequests];
    // A slot that a later message has by now belonged to one that is complete.
    if (message.sequence != at || isInline(message) != inlineSocket) continue;
    const size_t rest = message.bytes - message.handedOut;
    const bool shared = tasks_.size() - (tasks_.hasHelpers() ? 1 : 0) > 1;
    const size_t bytes =
        std::min(rest, shared && !(tasks_.hasHelpers() && inlineSocket) ? kSharedChunkBytes : kMaxChunkBytes);
    chunk.message = &message;
    chunk.sent = 0;
    chunk.header = {.magic = kChunkMagic,
                    .sequence = message.sequence,
                    .tag = message.tag,
                    .bytes = uint32_t(bytes),
                    .offset = message.handedOut,
                    .messageBytes = message.bytes};
    message.handedOut += bytes;
    if (message.handedOut == message.bytes) at++;
    return true;
  }
  return false;
}

void SocketSender::completed(Message& message, size_t bytes, bool byHelper) {
  const bool all = message.left.fetch_sub(bytes, std::memory_order_acq_rel) == bytes;
  if (all && byHelper) network_.notify();
}

size_t SocketSender::vectorsOf(const Message& message, size_t offset, size_t bytes, std::span<iovec> out) {
  const auto& [head, headBytes, body, bodyBytes] = message.pieces;
  size_t used = 0;
  const auto add = [&](const void* piece, size_t begin, size_t count) {
    if (count > 0) out[used++] = {static_cast<std::byte*>(const_cast<void*>(piece)) + begin, count};
  };
  const size_t ofHead = offset < headBytes ? std::min(bytes, headBytes - offset) : 0;
  add(head, offset, ofHead);
  add(body, offset + ofHead - headBytes, bytes - ofHead);
  return used;
}

ssize_t SocketSender::Task::write() {
  const ChunkHeader& header = chunk_.header;
  std::array<iovec, 3> parts;
  size_t count = 0;
  if (chunk_.sent < sizeof header) {
    parts[0] = {reinterpret_cast<char*>(&chunk_.header) + chunk_.sent, sizeof header - chunk_.sent};
    count = 1;
  }
  const size_t payload = chunk_.sent < sizeof header ? 0 : chunk_.sent - sizeof header;
  if (chunk_.message != nullptr)
    count +=
        vectorsOf(*chunk_.message, header.offset + payload, header.bytes - payload, std::span(parts).subspan(count));
  const int socket = (usesOther_ ? other_ : socket_)->get();
  constexpr int kFlags = MSG_NOSIGNAL | MSG_DONTWAIT;
  if (header.bytes <= kGatheredBytes) {
    std::array<std::byte, sizeof header + kGatheredBytes> gathered;
    size_t bytes = 0;
    for (const iovec& part : std::span(parts).first(count)) {
      std::memcpy(gathered.data() + bytes, part.iov_base, part.iov_len);
      bytes += part.iov_len;
    }
    return send(socket, gathered.data(), bytes, kFlags);
  }
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = count;
  return sendmsg(socket, &message, kFlags);
}

// The receiver of the other direction may still need a socket that both use.
SocketSender::Task::~Task() {
  stop();
  if (socket_->isShared) socket_->endSending();
  if (usesOther_) other_->endSending();
}

bool SocketSender::Task::goesOverOther(const Message& message) {
  if (other_ == nullptr || other_->offeredTo.load(std::memory_order_acquire) != sender_.number_) return false;
  smallMessages_ = message.bytes <= kTogetherBytes ? smallMessages_ + 1 : 0;
  return smallMessages_ >= (usesOther_ ? 1 : kSmallMessages);
}

bool SocketSender::Task::beginChunk() {
  if (sender_.failure_.failed()) return false;
  if (offer_ != 0) {
    chunk_ = {.header = {.magic = kOfferMagic, .offset = std::exchange(offer_, 0)}};
    return true;
  }
  if (next_.isUnderWay()) {
    chunk_ = std::exchange(next_, {});
    return true;
  }
  if (!sender_.takeChunk(helper() == nullptr, chunk_)) return false;
  // A message of several chunks is a large one, which this decides the same way for each.
  if (goesOverOther(*chunk_.message) == usesOther_) return true;
  next_ = std::exchange(chunk_, {.header = {.magic = kTurnMagic}});
  return true;
}

void SocketSender::Task::endChunk() {
  if (chunk_.header.magic == kTurnMagic) usesOther_ = !usesOther_;
  const ChunkHeader header = std::exchange(chunk_.header, {});
  Message* const done = std::exchange(chunk_.message, nullptr);
  chunk_.sent = 0;
  if (done != nullptr) sender_.completed(*done, header.bytes + (header.offset == 0 ? 1 : 0), helper() != nullptr);
}

void SocketSender::Task::advance() {
  for (size_t moved = 0;;) {
    // Other tasks of the thread have their turn.
    if (moved >= kBytesPerCall && helper() != nullptr) return helper()->wake();
    if (!chunk_.isUnderWay() && !beginChunk()) return;
    const ChunkHeader& header = chunk_.header;
    const ssize_t sent = write();
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (sent < 0) {
      sender_.failure_.set(ncclRemoteError, std::strerror(errno));
      if (helper() != nullptr) network_.notify();
      return;
    }
    chunk_.sent += size_t(sent);
    moved += size_t(sent);
    if (chunk_.sent == sizeof header + header.bytes) endChunk();
  }
}

// The sockets share the messages: the one that is busy longest decides how long they take.
std::optional<Traffic> SocketSender::traffic() const {
  Traffic sum;
  const auto add = [&sum](const ConnectionSocket& socket) {
    const std::optional<Traffic> one = tcpTraffic(socket.get());
    if (!one.has_value()) return false;
    sum.bytes += one->bytes;
    sum.busyNanoseconds = std::max(sum.busyNanoseconds, one->busyNanoseconds);
    sum.retransmits += one->retransmits;
    return true;
  };
  for (const auto& task : tasks_.all()) {
    if (!add(*task->socket()) || (task->other() != nullptr && !add(*task->other()))) return {};
  }
  return sum;
}

}  // namespace ncclrun::net
