#include "aggregator/process.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>

#include "aggregator/aggregator.h"
#include "base/bytes.h"
#include "base/frame.h"

namespace ncclrun::aggregator {
namespace {

constexpr size_t kMaxOrderBytes = 4096;

// What the agent wants (control/messages/aggregator.ts).
struct Order {
  std::string address;
  std::string portRange;  // as NCCLRUN_PORT_RANGE has it; empty: the system chooses
  net::Token token = {};
};

// False at the end of the stream, and where the bytes are no order of ours.
bool readAll(int link, void* to, size_t bytes) {
  size_t have = 0;
  while (have < bytes) {
    const ssize_t got = recv(link, static_cast<char*>(to) + have, bytes - have, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    have += size_t(got);
  }
  return true;
}

bool readOrder(int link, Order& order) {
  ncclrun::FrameHeader header;
  if (!readAll(link, &header, sizeof header)) return false;
  if (header.version != kFrameVersion || ncclrun::FrameKind(header.kind) != ncclrun::FrameKind::aggregatorOrder) return false;
  if (header.payloadBytes > kMaxOrderBytes) return false;
  Bytes payload(header.payloadBytes);
  if (!readAll(link, payload.data(), payload.size())) return false;
  ByteReader reader(payload);
  reader.raw(order.token.data(), order.token.size());
  order.address = reader.text();
  order.portRange = reader.text();
  return reader.complete();
}

// Port 0: it does not listen, for this reason.
bool answer(int link, uint32_t port, const std::string& why) {
  const Bytes payload = ByteWriter().u32(port).text(why).take();
  const ncclrun::FrameHeader header{.payloadBytes = uint32_t(payload.size()),
                           .version = kFrameVersion,
                           .kind = uint8_t(ncclrun::FrameKind::aggregatorUp),
                           .flags = 0,
                           .subject = 0,
                           .request = 0};
  const Bytes frame = ByteWriter().raw(&header, sizeof header).raw(payload.data(), payload.size()).take();
  return send(link, frame.data(), frame.size(), MSG_NOSIGNAL) == ssize_t(frame.size());
}

}  // namespace

int serveProcess(int link) {
  // An agent that is killed takes its aggregators with it, those that somebody has stopped too.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  Order order;
  if (!readOrder(link, order)) return 2;
  setenv("NCCLRUN_PORT_RANGE", order.portRange.c_str(), 1);
  std::unique_ptr<Aggregator> aggregator;
  const Status status = Aggregator::make({.address = order.address, .token = order.token, .listener = listenerOf(order.token), .limits = {}}, aggregator);
  if (!answer(link, status.ok() ? aggregator->port() : 0, status.sentence) || !status.ok()) return 1;
  char nothing;
  while (readAll(link, &nothing, 1)) continue;
  return 0;
}

}  // namespace ncclrun::aggregator
