// All that the stand-in knows, and what its parts do to it. One mutex guards everything but what completion queues
// hold: a device is shared by all threads anyway, and what it does takes a microsecond.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "configuration.h"
#include "interface.h"

#define STAND_IN_EXPORT extern "C" __attribute__((visibility("default")))

namespace stand_in_verbs {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;
inline constexpr Time kNever = Time::max();

struct Port {
  PortConfiguration configuration;
  std::vector<Gid> gids;
  std::vector<uint32_t> gidTypes;
  int state;
  int lid;
};

struct Adapter : Device {
  DeviceConfiguration configuration;
  std::vector<Port> ports;
  uint64_t guid = 0;
  uint64_t fabric = 0;
  double lossRate = 0;
  bool isBroken = false;
  int queuePairs = 0;
};

struct Context;
struct CompletionQueue;
struct QueuePair;

// Requests that no longer occupy a place in a queue pair's queues. Completions point to it, which may outlive the pair.
struct Places {
  std::atomic<uint64_t> sends{0}, receives{0};
};

struct PendingEvent {
  AsyncEvent event;
  bool isVoid = false;  // its object is gone
};

struct Context : ContextHandle {
  Adapter* adapter = nullptr;
  std::deque<PendingEvent> events;
};

struct Domain : DomainHandle {
  int users = 0;
};

struct Region : RegionHandle {
  uint8_t* memory = nullptr;
  uint64_t start = 0;  // address by which requests name it
  uint32_t access = 0;
  size_t mappedBytes = 0;  // of a dma-buf, which it has mapped at `mapping`
  void* mapping = nullptr;
};

struct Channel : ChannelHandle {
  std::mutex mutex;
  std::deque<CompletionQueue*> waiting;
};

struct QueuedCompletion {
  Completion completion;
  std::shared_ptr<Places> places;
  uint64_t released;  // places are free up to this count when it is polled
  bool isReceive;
};

struct CompletionQueue : CompletionQueueHandle {
  std::mutex mutex;
  std::deque<QueuedCompletion> queued;
  std::atomic<size_t> count{0};
  enum Armed { kOff, kSolicitedOnly, kAny } armed = kOff;
  bool isOverrun = false;
  unsigned notified = 0, acknowledged = 0;  // events of the channel that a caller has taken
  int users = 0;
  unsigned asyncTaken = 0, asyncAcknowledged = 0;
};

// What a planted fault does to a request: ends it with `status`, after the peer got the data if `isDelivered`.
struct PlantedEnd {
  int status = kSuccess;
  bool isDelivered = false;
};

struct Work {
  uint64_t id = 0, index = 0;
  int opcode = 0;
  uint32_t flags = 0, immediate = 0, remoteKey = 0, bytes = 0;
  uint64_t remoteAddress = 0;
  uint32_t number = 0;  // sequence number of its message
  bool isSignaled = false;
  std::vector<Piece> pieces;
  std::vector<uint8_t> inlined;
  PlantedEnd planted;
  Time ready;
};

struct PostedReceive {
  uint64_t id = 0, index = 0;
  std::vector<Piece> pieces;
  PlantedEnd planted;
};

struct QueuePair : QueuePairHandle {
  Adapter* adapter = nullptr;
  QueuePairAttributes attributes = {};
  QueuePairOptions options = {};
  std::shared_ptr<Places> places = std::make_shared<Places>();
  uint64_t sendsPosted = 0, receivesPosted = 0;
  std::deque<Work> works;
  size_t sent = 0;  // the first so many of `works` await an answer
  uint32_t nextNumber = 0, expectedNumber = 0;
  std::deque<PostedReceive> receives;
  int tries = 0, receiverTries = 0;
  bool isBlocked = false;  // the connection to the peer's process is full
  uint64_t flushed = 0;    // bytes of that connection, at the last isMoving()
  Time answerDue = kNever, pausedUntil = Time::min(), timer = kNever;
  unsigned asyncTaken = 0, asyncAcknowledged = 0;
  Port& port() { return adapter->ports[attributes.port - 1u]; }
};

// One message on its way from queue pair to queue pair.
struct Message {
  uint32_t to, from;
  Gid toGid, fromGid;
  uint16_t toLid, fromLid;
  uint8_t opcode, isSolicited, mtu, port;
  uint32_t number, immediate, key, bytes;
  uint64_t address, fabric;
};

struct Source {
  const uint8_t* data;
  size_t bytes;
};

struct Answer {
  enum Kind : uint8_t { kLost, kDone, kNotReady, kRefused } kind = kLost;
  uint8_t status = kSuccess;      // for the sender, of kRefused
  uint8_t timer = 0;              // of kNotReady: the receiver's code
  const uint8_t* data = nullptr;  // what a read gets
};

struct PlantedStatus {
  std::string device;
  int opcode;  // -1: any send, kReceivedImmediate: receives
  uint32_t number;
  long after;
  PlantedEnd end;
};

struct Refusal {
  std::string what, device;
  int error;
  long count;
};

struct Wire;  // connections to other processes

struct World {
  std::mutex mutex;
  Configuration configuration;
  bool isConfigured = false;
  std::list<Adapter> adapters;
  std::mt19937_64 random;
  // Of this process among those that share a directory; queue pairs are numbered from it.
  uint32_t slot = 0;
  uint32_t lastPair = 0, lastKey = 0;
  uint64_t registeredBytes = 0;
  std::unordered_map<uint32_t, QueuePair*> pairs;
  std::unordered_map<uint32_t, Region*> regions;  // by either key
  std::unordered_set<const void*> live;           // every object that a caller has
  std::vector<Context*> contexts;
  std::vector<CompletionQueue*> queues;
  long domainCount = 0, regionCount = 0, channelCount = 0, messages = 0, announced = 0, retransmissions = 0, lost = 0;
  std::condition_variable acknowledged;
  std::list<PlantedStatus> statuses;
  std::list<Refusal> refusals;
  std::atomic<bool> reorders{false};
  std::pair<int, int> delay;
  std::set<std::pair<Time, uint32_t>> timers;
  std::thread progress;
  int wake = -1;
  bool isStopping = false;
  Time sleepsUntil = Time::min();
  std::shared_ptr<Wire> wire;
};

World& world();
using Lock = std::unique_lock<std::mutex>;

// All below: the caller holds the world's mutex, unless it says otherwise.

// Ends the process if a caller names an object that it does not have.
void require(const void* object, const char* call);
// Reads the configuration, unless that has happened. False: it cannot be read.
bool configure();
double drawShare();
// Error number with which a planted fault refuses a call, 0 if none does.
int refused(const char* what, const Adapter& adapter);
PlantedEnd plantedEnd(const QueuePair& pair, int opcode);
// True if a planted fault or the port's state takes a message here.
bool isSwallowed(Adapter& adapter, const Port& port);

void raise(Context& context, const AsyncEvent& event);
void raisePort(Adapter& adapter, int port, int type);
void raisePair(QueuePair& pair, int type);
void forgetEvents(const void* object);
void setPort(Adapter& adapter, int number, bool isUp);

void complete(QueuePair& pair, const Work& work, int status);
void completeReceive(QueuePair& pair, const PostedReceive& receive, int status, const Message* message);
// Takes its completions out of a queue.
void cleanQueue(CompletionQueueHandle* handle, const QueuePair& pair);
// Puts it into the error state: everything posted ends as flushed.
void breakPair(QueuePair& pair);
// Its first request ends with this status, the others as flushed.
void failFirst(QueuePair& pair, int status);

// Null unless the region of this key lies in the domain, allows the access and contains the range.
uint8_t* resolve(uint32_t key, bool isLocal, const DomainHandle* domain, uint32_t access, uint64_t address,
                 size_t bytes);
bool gather(const QueuePair& pair, const Work& work, std::vector<Source>& sources);
bool scatter(const QueuePair& pair, const std::vector<Piece>& pieces, const std::vector<Source>& sources);
Answer respond(const Message& message, const std::vector<Source>& sources);
// Sends what can be sent.
void pump(QueuePair& pair);
void onTimer(QueuePair& pair, Time now);
void arm(QueuePair& pair);
void disarm(QueuePair& pair);
// The answer to the pair's message of this number; `data` is what a read got.
void onAnswer(QueuePair& pair, uint32_t number, const Answer& answer, const std::vector<Source>& data);

void startProgress();
void wakeProgress();

}  // namespace stand_in_verbs
