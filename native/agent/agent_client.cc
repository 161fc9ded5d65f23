#include "agent/agent_client.h"

#include <poll.h>
#include <unistd.h>

#include "agent/control_thread.h"
#include "agent/environment.h"
#include "base/debug.h"
#include "base/version.h"

namespace ncclrun {
namespace {

// Private agents that end before they welcome us; chance allows one.
constexpr int kAttempts = 100;

}  // namespace

AgentClient& AgentClient::get() {
  static auto& client = *new AgentClient;  // never destroyed: the control thread uses it until the process is gone
  return client;
}

void AgentClient::connect(Welcomed welcomed) {
  if (state_ == State::welcomed) return welcomed({}, welcome_);
  if (state_ == State::lost) return welcomed(lostBecause_, welcome_);
  greeting_.push_back(std::move(welcomed));
  if (state_ == State::greeting) return;

  environment_ = readEnvironment();
  jobRank_ = environment_.jobRank;
  attempts_ = 0;
  if (Status status = open(); !status.ok()) return settleGreeting(status);
  state_ = State::greeting;
  greet();
}

Status AgentClient::open() {
  if (!environment_.agent.empty()) return connection_.open(environment_.agent);
  attempts_++;
  SessionName session;
  NCCLRUN_TRY(currentSession(session));
  NCCLRUN_TRY(reachPrivateAgent(session, private_));
  connection_.adopt(std::move(private_.socket), "@" + private_.name);
  return {};
}

void AgentClient::greet() {
  ControlThread::get().watch(connection_.descriptor(), POLLIN, [this](short events) { handleEvents(events); });
  request(FrameKind::engineHello,
          encodeHello(static_cast<uint32_t>(getpid()), jobRank_, environment_.jobId, engineVersion()),
          FrameKind::welcome, 2, [this](Answer answer) { receiveWelcome(std::move(answer)); });
}

// A private agent may end, with its last engine, in the moment in which we come; the next one is ours to start.
bool AgentClient::greetsAgain() {
  if (state_ != State::greeting || !environment_.agent.empty()) return false;
  Status status;
  if (private_.standardError.valid()) {
    status = whyEnded(private_);
  } else if (attempts_ < kAttempts) {
    ControlThread::get().watch(-1, 0, nullptr);
    connection_.close();
    pending_.clear();
    status = open();
    if (status.ok()) return greet(), true;
  } else {
    return false;
  }
  lose(status);
  settleGreeting(status);  // the question that would have is forgotten
  return true;
}

void AgentClient::request(FrameKind question, const Bytes& payload, FrameKind answer, size_t descriptors,
                          Answered answered) {
  if (state_ == State::lost) return answered({lostBecause_, {}, {}});
  const uint32_t number = ++lastRequest_;
  pending_.emplace(number, Pending{answer, descriptors, std::move(answered)});
  if (Status status = connection_.send(question, number, payload); !status.ok()) {
    if (!greetsAgain()) lose(status);
    return;
  }
  ControlThread::get().changeEvents(connection_.wantedEvents());
}

void AgentClient::notify(FrameKind kind, const Bytes& payload) {
  if (state_ != State::welcomed) return;
  if (Status status = connection_.send(kind, 0, payload); !status.ok()) return lose(status);
  ControlThread::get().changeEvents(connection_.wantedEvents());
}

// The page comes before the answer to what is asked next.
void AgentClient::expectSlot() {
  if (!telemetry_.expect()) return;
  request(FrameKind::telemetry, {}, FrameKind::telemetry, 1, [this](const Answer& answer) {
    Status status = answer.status;
    const Status added = telemetry_.add(status.ok() ? answer.descriptors[0].get() : -1, jobRank_);
    if (status.ok()) status = added;
    if (!status.ok())
      logInfo("a hang of further communicators of this process would not be reported: " + status.sentence);
  });
}

void AgentClient::handleEvents(short events) {
  Status status;
  if ((events & POLLOUT) != 0) status = connection_.flush();
  if (status.ok() && (events & ~POLLOUT) != 0) {
    status = connection_.receive([this](const ReceivedFrame& frame) { receive(frame); });
  }
  if (!connection_.isOpen()) return;
  if (!status.ok()) {
    if (!greetsAgain()) lose(status);
    return;
  }
  ControlThread::get().changeEvents(connection_.wantedEvents());
}

void AgentClient::receive(const ReceivedFrame& frame) {
  if (frame.kind == FrameKind::peerGone) {
    PeerGoneMessage gone;
    if (!decodePeerGone(frame.payload, gone)) {
      return lose(
          {ncclInternalError, "the agent of this host sent a message about a rank that this engine cannot read"});
    }
    if (peerGone_) peerGone_(gone);
    return;
  }
  if (frame.kind != FrameKind::aborted) return receiveAnswer(frame);
  AbortedMessage message;
  if (!decodeAborted(frame.payload, message)) {
    return lose({ncclInternalError, "the agent of this host sent an abort that this engine cannot read"});
  }
  if (aborted_) aborted_(message);
}

void AgentClient::receiveAnswer(const ReceivedFrame& frame) {
  const auto found = pending_.find(frame.request);
  Answer answer;
  const bool refused = frame.kind == FrameKind::refused;
  if (found == pending_.end() || (!refused && frame.kind != found->second.answer) ||
      (refused && !decodeRefused(frame.payload, answer.status))) {
    return lose(
        {ncclInternalError, formatSentence("the agent of this host sent an unexpected frame: kind 0x%02x, request %u",
                                           static_cast<unsigned>(frame.kind), frame.request)});
  }
  const Pending pending = std::move(found->second);
  pending_.erase(found);
  if (!refused) {
    answer.payload.assign(frame.payload.begin(), frame.payload.end());
    for (size_t i = 0; i < pending.descriptors; i++) answer.descriptors.push_back(connection_.takeDescriptor());
    for (const Descriptor& descriptor : answer.descriptors) {
      if (!descriptor.valid())
        answer.status = {ncclInternalError, "the agent's answer came without its file descriptors"};
    }
  }
  pending.answered(std::move(answer));
}

void AgentClient::receiveWelcome(Answer answer) {
  Status status = answer.status;
  if (status.ok() && !decodeWelcome(answer.payload, welcome_)) {
    status = {ncclInternalError, "the agent of this host sent a welcome that this engine cannot read"};
  }
  if (status.ok()) status = telemetry_.add(answer.descriptors[0].get(), jobRank_);
  if (status.ok()) {
    if (Status without = recorder_.open(answer.descriptors[1].get(), jobRank_); !without.ok())
      logInfo("operations of this process are not recorded: " + without.sentence);
    state_ = State::welcomed;
    private_ = {};
    return settleGreeting({});
  }
  if (state_ != State::lost) lose(status);
  settleGreeting(status);
}

void AgentClient::lose(const Status& reason) {
  if (state_ == State::lost) return;
  state_ = State::lost;
  lostBecause_ = reason;
  ControlThread::get().watch(-1, 0, nullptr);
  connection_.close();
  auto pending = std::move(pending_);
  pending_.clear();
  for (auto& [number, request] : pending) request.answered({lostBecause_, {}, {}});
}

void AgentClient::settleGreeting(const Status& status) {
  auto waiting = std::move(greeting_);
  greeting_.clear();
  for (Welcomed& welcomed : waiting) welcomed(status, welcome_);
}

}  // namespace ncclrun
