// What the measurement of variants needs of the engine and of GPUs, each given back at the end of its scope.
#pragma once
#include <functional>

#include "session.h"

// Operations that begin meanwhile are carried out as those of so many bytes.
class ChosenAs {
 public:
  ChosenAs(Session& session, uint64_t bytes) : session_(session) { must(ncclrunCommChooseAs(session.comm(), bytes)); }
  ~ChosenAs() { ncclrunCommChooseAs(session_.comm(), ~uint64_t{0}); }
  ChosenAs(const ChosenAs&) = delete;
  ChosenAs& operator=(const ChosenAs&) = delete;

 private:
  Session& session_;
};

// What `record` gives to the session's stream, to be launched at once.
class Graph {
 public:
  Graph(Session& session, const std::function<void()>& record) : session_(session) {
    must(ncclrunGpuCaptureBegin(session.stream()));
    record();
    must(ncclrunGpuCaptureEnd(session.stream(), &graph_));
  }
  ~Graph() { ncclrunGpuGraphDestroy(graph_); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void launch() const { must(ncclrunGpuGraphLaunch(graph_, session_.stream())); }

 private:
  Session& session_;
  ncclrunGpuGraph_t graph_ = nullptr;
};

// When the session's stream came here.
class Moment {
 public:
  explicit Moment(Session& session) {
    must(ncclrunGpuEventCreate(&event_));
    must(ncclrunGpuEventRecord(event_, session.stream()));
  }
  ~Moment() { ncclrunGpuEventDestroy(event_); }
  Moment(const Moment&) = delete;
  Moment& operator=(const Moment&) = delete;

  // Of two that have been.
  double secondsUntil(const Moment& later) const {
    float milliseconds = 0;
    must(ncclrunGpuEventElapsed(event_, later.event_, &milliseconds));
    return static_cast<double>(milliseconds) / 1e3;
  }

 private:
  ncclrunGpuEvent_t event_ = nullptr;
};
