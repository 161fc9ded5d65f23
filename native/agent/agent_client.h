// This process's side of the agent's socket: one connection, numbered requests, any number of them in flight.
// Everything here happens on the control thread; nobody holds a lock while an answer is awaited.
#pragma once
#include <functional>
#include <unordered_map>
#include <vector>

#include "agent/agent_connection.h"
#include "agent/environment.h"
#include "agent/flight_recorder.h"
#include "agent/messages.h"
#include "agent/private_agent.h"
#include "agent/telemetry_page.h"

namespace ncclrun {

struct Answer {
  Status status;  // not ok: refused, or the connection is lost
  Bytes payload;
  std::vector<Descriptor> descriptors;
};

class AgentClient {
 public:
  using Welcomed = std::function<void(const Status&, const WelcomeMessage&)>;
  using Answered = std::function<void(Answer)>;
  using Aborted = std::function<void(const AbortedMessage&)>;
  using PeerGone = std::function<void(const PeerGoneMessage&)>;

  static AgentClient& get();

  // Calls `welcomed` once the agent has said welcome, or with the reason why it cannot be reached. A connection that
  // never stood is tried again; one that was lost is not. The agent is that of the environment, else that of this
  // process's session (session.h).
  void connect(Welcomed welcomed);
  // After welcome: sends a request, and calls `answered` once.
  void request(FrameKind question, const Bytes& payload, FrameKind answer, size_t descriptors, Answered answered);
  // After welcome: sends a frame that has no answer.
  void notify(FrameKind kind, const Bytes& payload);
  // Called when a communicator is broken.
  void onAborted(Aborted aborted) { aborted_ = std::move(aborted); }
  // Called when a rank has left a communicator.
  void onPeerGone(PeerGone peerGone) { peerGone_ = std::move(peerGone); }

  // After welcome, before the question whose answer makes a communicator that needs a slot of the telemetry pages; when
  // that has come, the pages are told that it arrived.
  void expectSlot();
  TelemetryPages& telemetry() { return telemetry_; }
  FlightRecorder& recorder() { return recorder_; }

 private:
  struct Pending {
    FrameKind answer;
    size_t descriptors;
    Answered answered;
  };
  enum class State { apart, greeting, welcomed, lost };

  Status open();
  void greet();
  bool greetsAgain();
  void handleEvents(short events);
  void receive(const ReceivedFrame& frame);
  void receiveWelcome(Answer answer);
  void receiveAnswer(const ReceivedFrame& frame);
  void lose(const Status& reason);
  void settleGreeting(const Status& status);

  AgentConnection connection_;
  Environment environment_;
  PrivateAgent private_;  // likewise, while it is greeted
  int attempts_ = 0;      // to be welcomed by one
  State state_ = State::apart;
  Status lostBecause_;
  WelcomeMessage welcome_;
  TelemetryPages telemetry_;
  FlightRecorder recorder_;
  std::vector<Welcomed> greeting_;
  std::unordered_map<uint32_t, Pending> pending_;
  uint32_t lastRequest_ = 0;
  int32_t jobRank_ = -1;
  Aborted aborted_;
  PeerGone peerGone_;
};

}  // namespace ncclrun
