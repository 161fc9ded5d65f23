// The PMI connection of one rank in the guardian: bytes of the rank become frames, frames become bytes for the rank.
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "expect.h"
#include "guardian/pmi.h"

using namespace ncclrun;
using namespace ncclrun::guardian;

namespace {

constexpr uint32_t kRank = 3;

// Two sockets: between the rank and the guardian, and between the guardian and the agent.
struct Sockets {
  int rank = -1;
  int ofRank = -1;
  int guardian = -1;
  int agent = -1;

  Sockets() {
    int ends[2];
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    rank = ends[0], ofRank = ends[1];
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    guardian = ends[0], agent = ends[1];
  }
};

class Connected {
 public:
  Connected() : connection_(sockets_.ofRank, kRank), guardian_(sockets_.guardian), agent_(sockets_.agent) {}
  ~Connected() {
    leave();
    if (isOpen()) close(connection_.fd());
    close(sockets_.guardian);
    close(sockets_.agent);
  }

  void write(std::string_view bytes) {
    EXPECT(send(sockets_.rank, bytes.data(), bytes.size(), MSG_DONTWAIT) == static_cast<ssize_t>(bytes.size()));
  }
  // "": nothing is there; "end": the guardian has closed its end.
  std::string read() {
    char bytes[256];
    const ssize_t got = recv(sockets_.rank, bytes, sizeof bytes, MSG_DONTWAIT);
    return got < 0 ? "" : got == 0 ? "end" : std::string(bytes, static_cast<size_t>(got));
  }
  void leave() {
    if (sockets_.rank >= 0) close(sockets_.rank);
    sockets_.rank = -1;
  }
  uint32_t events() const { return connection_.events(); }
  bool isOpen() const { return connection_.fd() >= 0; }
  void serve() { connection_.serve(guardian_); }
  void finish() { connection_.finish(guardian_); }
  void answer(std::string_view bytes, uint16_t flags) { connection_.answer(bytes, flags); }

  // What the agent has got since the call before; `pieces` counts its frames.
  std::string taken(int* pieces = nullptr) {
    std::string bytes;
    EXPECT(guardian_.flush() && agent_.receive());
    for (Frame frame; agent_.next(frame) == Channel::Next::frame;) {
      EXPECT(frame.header.kind == static_cast<uint8_t>(FrameKind::pmi) && frame.header.subject == kRank);
      bytes.append(frame.payload.data(), frame.payload.size());
      if (pieces != nullptr) ++*pieces;
    }
    return bytes;
  }

 private:
  Sockets sockets_;
  PmiConnection connection_;
  Channel guardian_;
  Channel agent_;
};

// One piece is under way at a time, however much the rank writes.
void onePiece() {
  Connected rank;
  EXPECT(rank.events() == EPOLLIN);
  rank.write("cmd=get_maxes\n");
  rank.serve();
  EXPECT(rank.taken() == "cmd=get_maxes\n" && rank.events() == 0);
  rank.write(std::string(20'000, 'x'));
  rank.serve();
  EXPECT(rank.taken().empty());
  rank.answer("cmd=maxes\n", 0);
  EXPECT(rank.read() == "cmd=maxes\n" && rank.events() == 0);
  rank.answer("", kPmiRead);
  EXPECT(rank.events() == EPOLLIN);
  rank.serve();
  EXPECT(rank.taken() == std::string(16 << 10, 'x') && rank.events() == 0);
}

// Answers wait until the rank reads, and nothing is read of it meanwhile.
void slowReader() {
  Connected rank;
  rank.write("a\n");
  rank.serve();
  const std::string line(1024, 'l');
  size_t answered = 0;
  for (; rank.events() == 0; answered += line.size()) rank.answer(line, 0);
  EXPECT(rank.events() == EPOLLOUT);
  rank.answer("", kPmiRead);
  rank.write("b\n");
  EXPECT(rank.taken() == "a\n");
  size_t read = 0;
  while (read < answered) {
    read += rank.read().size();
    rank.serve();
  }
  EXPECT(read == answered && rank.read().empty());
  EXPECT(rank.taken() == "b\n");
}

void closing() {
  Connected rank;
  rank.answer("cmd=bye\n", kPmiClose);
  EXPECT(!rank.isOpen() && rank.events() == 0);
  EXPECT(rank.read() == "cmd=bye\n" && rank.read() == "end");
  rank.answer("late", kPmiRead);
  rank.serve();
  EXPECT(rank.taken().empty());
}

void leavingRank() {
  Connected rank;
  rank.leave();
  rank.serve();
  EXPECT(!rank.isOpen() && rank.events() == 0 && rank.taken().empty());
}

// MPI_Abort writes without waiting for an answer, and the process ends.
void lastWords() {
  Connected rank;
  rank.write("cmd=barrier_in\n");
  rank.serve();
  rank.write("cmd=abort exitcode=7\n");
  rank.leave();
  rank.answer("cmd=barrier_out rc=0\n", 0);
  rank.finish();
  EXPECT(rank.taken() == "cmd=barrier_in\ncmd=abort exitcode=7\n");
  EXPECT(!rank.isOpen());
}

// Also where the agent asks for more before the guardian notices the end of the rank.
void lastWordsInTurn() {
  Connected rank;
  rank.write("cmd=barrier_in\n");
  rank.serve();
  rank.write("cmd=abort exitcode=7\n");
  rank.leave();
  rank.answer("cmd=barrier_out rc=0\n", kPmiRead);
  EXPECT(rank.events() == EPOLLIN);
  rank.serve();
  EXPECT(rank.taken() == "cmd=barrier_in\ncmd=abort exitcode=7\n");
}

// A dead rank may have written more than a piece; all of it reaches the agent.
void longLastWords() {
  Connected rank;
  rank.write(std::string(40'000, 'x'));
  rank.finish();
  int pieces = 0;
  EXPECT(rank.taken(&pieces).size() == 40'000 && pieces == 3);
}

void noConnection() {
  PmiConnection none(-1, kRank);
  int ends[2];
  EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  Channel channel(ends[0]);
  none.serve(channel);
  none.answer("x", kPmiClose);
  none.finish(channel);
  EXPECT(none.events() == 0 && channel.queued() == 0);
}

}  // namespace

int main() {
  onePiece();
  slowReader();
  closing();
  leavingRank();
  lastWords();
  lastWordsInTurn();
  longLastWords();
  noConnection();
}
