#include "communicator/network_session.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <future>
#include <utility>

#include "agent/control_thread.h"
#include "agent/peer_info.h"

namespace ncclrun {

Status NetworkSession::welcome(WelcomeMessage& out) {
  std::promise<std::pair<Status, WelcomeMessage>> promise;
  ControlThread::get().post([&promise] {
    AgentClient::get().connect([&promise](const Status& status, const WelcomeMessage& welcome) {
      promise.set_value({status, welcome});
    });
  });
  const auto [status, welcome] = promise.get_future().get();
  out = welcome;
  return status;
}

Answer NetworkSession::ask(FrameKind question, const Bytes& payload, FrameKind answer, size_t descriptors) {
  std::promise<Answer> promise;
  ControlThread::get().post([&] {
    AgentClient::get().request(question, payload, answer, descriptors,
                               [&promise](Answer given) { promise.set_value(std::move(given)); });
  });
  return promise.get_future().get();
}

Status NetworkSession::join() {
  WelcomeMessage welcomed;
  NCCLRUN_TRY(welcome(welcomed));
  if (welcomed.hostCount < 2) return {ncclInvalidUsage, "the job has one host: there is no network to measure"};
  membership_.epoch = welcomed.epoch;
  int listener = -1;
  uint16_t port = 0;
  NCCLRUN_TRY(listenForPeers(listener, port));
  listener_.reset(listener);
  const PeerInfo info = describePeer(membership_.id, welcomed.hostName, port);
  const Answer answer = ask(FrameKind::join, encodeJoin(membership_, info), FrameKind::plan, 2);
  if (!answer.status.ok()) return answer.status;
  joined_ = true;
  struct stat facts {};
  if (fstat(answer.descriptors[0].get(), &facts) != 0 || facts.st_size <= 0)
    return {ncclInternalError, "the agent sent an empty plan"};
  const auto bytes = static_cast<size_t>(facts.st_size);
  void* const address = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, answer.descriptors[0].get(), 0);
  if (address == MAP_FAILED)
    return {ncclSystemError, formatSentence("plan: mmap of %zu bytes: %s", bytes, std::strerror(errno))};
  plan_ = Mapping(address, bytes);
  return {};
}

Status NetworkSession::gather(std::span<const std::byte> own, std::vector<std::byte>& all) {
  const Answer answer = ask(FrameKind::gather, encodeGather(membership_, round_++, own), FrameKind::table, 0);
  if (!answer.status.ok()) return answer.status;
  ByteReader reader(answer.payload);
  all.clear();
  for (uint32_t left = reader.u32(); left > 0; left--) {
    const std::string one = reader.text();
    const auto* first = reinterpret_cast<const std::byte*>(one.data());
    all.insert(all.end(), first, first + one.size());
  }
  if (!reader.complete()) return {ncclInternalError, "the agent sent a table that this engine cannot read"};
  return {};
}

NetworkSession::~NetworkSession() {
  if (!joined_) return;
  std::promise<void> done;
  ControlThread::get().post([this, &done] {
    AgentClient::get().notify(FrameKind::leave, encodeLeave(membership_, LeaveHow::finalized, {}, kJoinRound));
    done.set_value();
  });
  done.get_future().wait();
}

}  // namespace ncclrun
