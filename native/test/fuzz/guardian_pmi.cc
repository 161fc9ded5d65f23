// Drives a rank's PMI connection by steps: what the rank, its library and the agent do, in any order. Each step is a
// byte that says who does what, a byte that counts, and as many bytes of content as that says where the step has some.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "guardian/pmi.h"

using ncclrun::FrameKind;
using ncclrun::kPmiRead;
using ncclrun::guardian::Channel;
using ncclrun::guardian::Frame;
using ncclrun::guardian::PmiConnection;

namespace {

constexpr uint32_t kRank = 7;
constexpr size_t kPieceBytes = 16 << 10;
// A count of a step stands for this many bytes, so that a short input fills a piece.
constexpr size_t kRepeated = 1024;

enum Step : uint8_t { rankWrites, rankWritesMuch, rankReads, rankCloses, guardianServes, agentAnswers, kSteps };

void require(bool condition) {
  if (!condition) abort();
}

class Play {
 public:
  Play() : connection_(-1, 0), guardian_(-1), agent_(-1) {
    require(socketpair(AF_UNIX, SOCK_STREAM, 0, rank_) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, link_) == 0);
    connection_ = PmiConnection(rank_[0], kRank);
    guardian_ = Channel(link_[0]);
    agent_ = Channel(link_[1]);
  }
  ~Play() {
    for (const int fd : {rank_[1], link_[0], link_[1]}) {
      if (fd >= 0) close(fd);
    }
  }

  // All that the rank had written is with the agent at its end, unless the agent has closed the connection.
  void finish() {
    connection_.finish(guardian_);
    require(connection_.fd() == -1 && connection_.events() == 0);
    takeFrames(true);
    require(closedByAgent_ ? std::string_view(written_).starts_with(taken_) : taken_ == written_);
  }

  void take(Step step, std::string_view content, uint16_t count) {
    switch (step) {
      case rankWrites:
        return write(content);
      case rankWritesMuch:
        return write(std::string(kRepeated * count, 'm'));
      case rankReads:
        return read();
      case rankCloses:
        if (rank_[1] >= 0) close(rank_[1]);
        rank_[1] = -1;
        return;
      case guardianServes:
        connection_.serve(guardian_);
        return takeFrames(false);
      default:
        return answer(content, count);
    }
  }

 private:
  void write(std::string_view bytes) {
    if (rank_[1] < 0) return;
    const ssize_t sent = send(rank_[1], bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) written_ += bytes.substr(0, static_cast<size_t>(sent));
  }
  // The rank gets what the agent has answered, in order.
  void read() {
    char bytes[4096];
    if (rank_[1] < 0) return;
    const ssize_t got = recv(rank_[1], bytes, sizeof bytes, MSG_DONTWAIT);
    if (got <= 0) return;
    read_.append(bytes, static_cast<size_t>(got));
    require(std::string_view(answered_).starts_with(read_));
  }
  void answer(std::string_view content, uint16_t flags) {
    if ((flags & ncclrun::kPmiClose) != 0) closedByAgent_ = true;
    if (connection_.fd() >= 0) answered_ += content;
    if ((flags & kPmiRead) != 0) unanswered_ = 0;
    connection_.answer(content, flags);
  }
  // A call of receive() need not take in all that is there.
  void takeFrames(bool isLast) {
    for (uint64_t before = ~uint64_t{0}; before != agent_.received() || guardian_.queued() > 0;) {
      before = agent_.received();
      require(guardian_.flush() && agent_.receive());
      takeWhole(isLast);
    }
  }
  void takeWhole(bool isLast) {
    Frame frame;
    for (Channel::Next next; (next = agent_.next(frame)) != Channel::Next::none;) {
      require(next == Channel::Next::frame && frame.header.kind == static_cast<uint8_t>(FrameKind::pmi));
      require(frame.header.subject == kRank && !frame.payload.empty() && frame.payload.size() <= kPieceBytes);
      // A rank cannot have the guardian hold more of it than one piece.
      require(isLast || unanswered_++ == 0);
      taken_.append(frame.payload.data(), frame.payload.size());
    }
  }

  int rank_[2];
  int link_[2];
  PmiConnection connection_;
  Channel guardian_;
  Channel agent_;
  std::string written_;
  std::string taken_;
  std::string answered_;
  std::string read_;
  int unanswered_ = 0;
  bool closedByAgent_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Play play;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (rest.size() >= 2) {
    const auto step = static_cast<Step>(static_cast<uint8_t>(rest[0]) % kSteps);
    const auto count = static_cast<uint8_t>(rest[1]);
    rest.remove_prefix(2);
    const size_t length = step == rankWrites || step == agentAnswers ? std::min<size_t>(count >> 2, rest.size()) : 0;
    play.take(step, rest.substr(0, length), step == agentAnswers ? count & 3 : count);
    rest.remove_prefix(length);
  }
  play.finish();
  return 0;
}
