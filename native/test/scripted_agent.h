// An agent whose every word the test chooses: what a real one says only when something breaks can be said at will.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "nccl.h"

struct AgentFrame {
  uint8_t kind;
  uint32_t request;
  std::string payload;
};

// Little-endian payloads.
std::string u32(uint32_t value);
std::string text(const std::string& value);

class ScriptedAgent {
 public:
  // Listens, and points NCCLRUN_AGENT at itself.
  ScriptedAgent();
  ~ScriptedAgent();
  ScriptedAgent(const ScriptedAgent&) = delete;
  ScriptedAgent& operator=(const ScriptedAgent&) = delete;

  const std::string& path() const { return path_; }
  // Waits for the engine to connect.
  void accept();
  // Waits for a whole frame from the engine.
  AgentFrame read();
  // Descriptors stay the caller's.
  void send(uint8_t kind, uint32_t request, const std::string& payload, const std::vector<int>& descriptors = {});
  void sendRaw(const std::string& bytes, const std::vector<int>& descriptors = {});
  void disconnect();

  // Accepts, reads the hello and welcomes; returns the descriptor of the telemetry page.
  int greet(uint32_t hostCount = 1);
  // Answers the hello; returns the same.
  int welcome(const AgentFrame& hello, uint32_t hostCount = 1);

 private:
  std::string path_;
  int listener_ = -1;
  int connection_ = -1;
};

int memoryOf(size_t bytes);  // a zeroed memfd
