// Streams, events and what is captured of them.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "driver.h"

using namespace ncclrun::cuda;
using stand_in::find;
using stand_in::kInvalidHandle;
using stand_in::kInvalidValue;
using stand_in::Queue;

extern "C" Result cuCtxGetCurrent(Context* context);

namespace stand_in {

Queue::Queue() {
  std::thread([this] { work(); }).detach();
}

void Queue::push(Step step) {
  std::lock_guard lock(mutex_);
  steps_.push_back(std::move(step));
  pushed_++;
  changed_.notify_all();
}

uint64_t Queue::pushed() {
  std::lock_guard lock(mutex_);
  return pushed_;
}

bool Queue::ended(uint64_t count) {
  std::lock_guard lock(mutex_);
  return ended_ >= count;
}

void Queue::await(uint64_t count) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ended_ >= count; });
}

void Queue::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !steps_.empty(); });
    Step step = std::move(steps_.front());
    steps_.pop_front();
    lock.unlock();
    step();
    step = nullptr;
    lock.lock();
    ended_++;
    changed_.notify_all();
  }
}

CUgraphNode_st* append(CUgraph_st& graph, std::vector<CUgraphNode_st*> after, Launched launched) {
  graph.nodes.push_back(std::make_unique<CUgraphNode_st>(CUgraphNode_st{std::move(launched), std::move(after)}));
  return graph.nodes.back().get();
}

void enqueueLaunched(CUstream_st* stream, const Launched& launched) {
  if (stream->graph != nullptr) {
    if (!stream->graph->invalid) stream->after = {append(*stream->graph, stream->after, launched)};
    return;
  }
  stream->queue->push(launched());
  stream->last = stream->queue->pushed();
}

Result enqueue(Stream handle, const Step& step) {
  CUstream_st* const stream = find(handle);
  if (stream == nullptr) return kInvalidHandle;
  enqueueLaunched(stream, [step] { return step; });
  return kSuccess;
}

void awaitUntil(const std::function<bool()>& met) {
  for (int looks = 0; !met(); looks++) {
    if (looks < 100) std::this_thread::yield();
    if (looks >= 100) std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

}  // namespace stand_in

namespace {

struct Queues {
  std::mutex mutex;
  std::vector<Queue*> all;
  static Queues& get() {
    static auto& queues = *new Queues;
    return queues;
  }
};

// Queues are never destroyed: their threads run until the process ends.
std::shared_ptr<Queue> newQueue() {
  auto* const queue = new Queue;
  Queues& queues = Queues::get();
  std::lock_guard lock(queues.mutex);
  queues.all.push_back(queue);
  return {queue, [](Queue*) {}};
}

}  // namespace

void stand_in::awaitIdleGpu() {
  std::vector<Queue*> queues;
  {
    std::lock_guard lock(Queues::get().mutex);
    queues = Queues::get().all;
  }
  for (Queue* queue : queues) queue->await(queue->pushed());
}

namespace {

std::shared_ptr<Queue> nextQueue() {
  static std::mutex mutex;
  static auto& shared = *new std::vector<std::shared_ptr<Queue>>;
  static size_t turn = 0;
  const char* const channels = std::getenv("NCCLRUN_STAND_IN_CHANNELS");
  if (channels == nullptr) return newQueue();
  std::lock_guard lock(mutex);
  const auto max = size_t(std::max(1, std::atoi(channels)));
  if (shared.size() < max) shared.push_back(newQueue());
  return shared[turn++ % shared.size()];
}

std::atomic<uint64_t> lastId{0};

double now() {
  using namespace std::chrono;
  return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

void reach(CUevent_st* event, uint64_t record) {
  std::lock_guard lock(event->mutex);
  event->reached = std::max(event->reached, record);
  event->milliseconds = now();
  event->changed.notify_all();
}

void awaitRecord(CUevent_st* event, uint64_t record) {
  std::unique_lock lock(event->mutex);
  event->changed.wait(lock, [&] { return event->reached >= record; });
}

uint64_t latest(CUevent_st* event) {
  std::lock_guard lock(event->mutex);
  return event->recorded;
}

// As the host sees it, recorded once this is queued.
stand_in::Launched recording(CUevent_st* event) {
  return [event] {
    uint64_t record;
    {
      std::lock_guard lock(event->mutex);
      record = ++event->recorded;
    }
    return [event, record] { reach(event, record); };
  };
}

// What a capture must not do.
constexpr Result kUnsupported = 900, kInvalidated = 901, kMerge = 902, kUnjoined = 904, kIsolation = 905;

// Of a captured stream: what waits for it or looks whether it has ended spoils the capture.
Result spoil(CUstream_st* stream) {
  stream->graph->invalid = true;
  return kUnsupported;
}

// Whether the stream that began the capture waits, at its end, for what all others have in it.
bool isJoined(const CUgraph_st& graph, const CUstream_st* origin) {
  std::vector<const CUgraphNode_st*> reached(origin->after.begin(), origin->after.end());
  for (size_t i = 0; i < reached.size(); i++) {
    for (const CUgraphNode_st* node : reached[i]->after) {
      if (std::find(reached.begin(), reached.end(), node) == reached.end()) reached.push_back(node);
    }
  }
  return std::all_of(graph.streams.begin(), graph.streams.end(), [&](const CUstream_st* stream) {
    return std::all_of(stream->after.begin(), stream->after.end(), [&](const CUgraphNode_st* node) {
      return std::find(reached.begin(), reached.end(), node) != reached.end();
    });
  });
}

struct Streams {
  std::mutex mutex;
  std::set<CUstream_st*> made;                 // and not destroyed
  std::map<Context, CUstream_st*> ofContexts;  // their default streams
};
Streams& all() {
  static auto& all = *new Streams;
  return all;
}

CUstream_st* makeStream() { return new CUstream_st{nextQueue(), ++lastId, 0, nullptr, {}}; }

}  // namespace

CUstream_st* stand_in::find(Stream handle) {
  constexpr uintptr_t kPerThread = 2;
  thread_local CUstream_st* ofThread = nullptr;
  if (reinterpret_cast<uintptr_t>(handle) == kPerThread)
    return ofThread == nullptr ? ofThread = makeStream() : ofThread;
  Context context = nullptr;
  cuCtxGetCurrent(&context);
  std::lock_guard lock(all().mutex);
  if (reinterpret_cast<uintptr_t>(handle) > kPerThread) return all().made.contains(handle) ? handle : nullptr;
  CUstream_st*& own = all().ofContexts[context];
  return own == nullptr ? own = makeStream() : own;
}

CUuserObject_st::~CUuserObject_st() {
  std::thread(end, argument).detach();  // of the driver's own
}

STAND_IN_EXPORT Result cuUserObjectCreate(CUuserObject_st** object, void* argument, void (*end)(void*), unsigned,
                                          unsigned) {
  *object = new CUuserObject_st{argument, end};
  return kSuccess;
}
STAND_IN_EXPORT Result cuUserObjectRelease(CUuserObject_st* object, unsigned) {
  delete object;
  return kSuccess;
}
// The caller's reference becomes the graph's: there is no other way here.
STAND_IN_EXPORT Result cuGraphRetainUserObject(Graph graph, CUuserObject_st* object, unsigned, unsigned flags) {
  constexpr unsigned kMove = 1;
  if (flags != kMove) return kInvalidValue;
  graph->held.emplace_back(object);
  return kSuccess;
}

STAND_IN_EXPORT Result cuStreamCreateWithPriority(Stream* stream, unsigned, int) {
  *stream = makeStream();
  std::lock_guard lock(all().mutex);
  all().made.insert(*stream);
  return kSuccess;
}
STAND_IN_EXPORT Result cuStreamCreate(Stream* stream, unsigned flags) {
  return cuStreamCreateWithPriority(stream, flags, 0);
}
STAND_IN_EXPORT Result cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return kSuccess;
}
STAND_IN_EXPORT Result cuStreamDestroy_v2(Stream stream) {
  {
    std::lock_guard lock(all().mutex);
    if (all().made.erase(stream) == 0) return kInvalidHandle;
  }
  delete stream;
  return kSuccess;
}
STAND_IN_EXPORT Result cuStreamSynchronize(Stream handle) {
  CUstream_st* const stream = find(handle);
  if (stream == nullptr) return kInvalidHandle;
  if (stream->graph != nullptr) return spoil(stream);
  stream->queue->await(stream->last);
  return kSuccess;
}
STAND_IN_EXPORT Result cuStreamQuery(Stream handle) {
  CUstream_st* const stream = find(handle);
  if (stream == nullptr) return kInvalidHandle;
  if (stream->graph != nullptr) return spoil(stream);
  return stream->queue->ended(stream->last) ? kSuccess : kNotReady;
}
STAND_IN_EXPORT Result cuStreamGetId(Stream handle, unsigned long long* id) {
  CUstream_st* const stream = find(handle);
  if (stream == nullptr) return kInvalidHandle;
  *id = stream->id;
  return kSuccess;
}
STAND_IN_EXPORT Result cuLaunchHostFunc(Stream stream, void (*function)(void*), void* argument) {
  return stand_in::enqueue(stream, [=] { function(argument); });
}

STAND_IN_EXPORT Result cuEventCreate(Event* event, unsigned) {
  *event = new CUevent_st;
  return kSuccess;
}
// Steps that are queued may still use it.
STAND_IN_EXPORT Result cuEventDestroy_v2(Event) { return kSuccess; }
STAND_IN_EXPORT Result cuEventRecord(Event event, Stream handle) {
  CUstream_st* const stream = find(handle);
  if (stream == nullptr) return kInvalidHandle;
  if (stream->graph != nullptr) {
    event->graph = stream->graph;
    event->after = stream->after;
    return kSuccess;
  }
  event->graph = nullptr;
  stand_in::enqueueLaunched(stream, recording(event));
  return kSuccess;
}
STAND_IN_EXPORT Result cuEventQuery(Event event) {
  std::lock_guard lock(event->mutex);
  return event->reached >= event->recorded ? kSuccess : kNotReady;
}
STAND_IN_EXPORT Result cuEventSynchronize(Event event) {
  awaitRecord(event, latest(event));
  return kSuccess;
}
STAND_IN_EXPORT Result cuEventElapsedTime_v2(float* milliseconds, Event from, Event to) {
  *milliseconds = float(to->milliseconds - from->milliseconds);
  return kSuccess;
}
STAND_IN_EXPORT Result cuStreamWaitEvent(Stream handle, Event event, unsigned flags) {
  CUstream_st* const stream = find(handle);
  if (stream == nullptr) return kInvalidHandle;
  if (stream->graph != nullptr && stream->graph->invalid) return kInvalidated;
  if (stream->graph != nullptr && flags != kEventWaitExternal && event->graph == nullptr) return kIsolation;
  if (event->graph != nullptr && flags != kEventWaitExternal) {  // joins the capture
    if (stream->graph != nullptr && stream->graph != event->graph) return kMerge;
    if (stream->graph == nullptr) event->graph->streams.push_back(stream);
    stream->graph = event->graph;
    for (CUgraphNode_st* node : event->after) {
      if (std::find(stream->after.begin(), stream->after.end(), node) == stream->after.end())
        stream->after.push_back(node);
    }
    return kSuccess;
  }
  stand_in::enqueueLaunched(stream,
                            [event] { return [event, record = latest(event)] { awaitRecord(event, record); }; });
  return kSuccess;
}

STAND_IN_EXPORT Result cuThreadExchangeStreamCaptureMode(int*) { return kSuccess; }
STAND_IN_EXPORT Result cuStreamBeginCapture_v2(Stream handle, int) {
  CUstream_st* const stream = find(handle);
  if (stream == nullptr) return kInvalidHandle;
  stream->graph = new CUgraph_st{++lastId, {}, {stream}};
  stream->after.clear();
  return kSuccess;
}
STAND_IN_EXPORT Result cuStreamEndCapture(Stream handle, Graph* graph) {
  CUstream_st* const stream = find(handle);
  if (stream == nullptr) return kInvalidHandle;
  *graph = stream->graph;
  const bool joined = isJoined(**graph, stream), invalid = (*graph)->invalid;
  for (Stream one : (*graph)->streams) {
    one->graph = nullptr;
    one->after.clear();
  }
  if (invalid) {
    delete std::exchange(*graph, nullptr);
    return kInvalidated;
  }
  return joined ? kSuccess : kUnjoined;
}
STAND_IN_EXPORT Result cuStreamGetCaptureInfo_v2(Stream handle, int* status, uint64_t* id, Graph* graph,
                                                 const GraphNode** nodes, size_t* count) {
  CUstream_st* const stream = find(handle);
  if (stream == nullptr) return kInvalidHandle;
  *status = stream->graph == nullptr ? kCaptureNone : stream->graph->invalid ? kCaptureInvalidated : kCaptureActive;
  if (stream->graph == nullptr) return kSuccess;
  if (id != nullptr) *id = stream->graph->id;
  if (graph != nullptr) *graph = stream->graph;
  if (nodes != nullptr) *nodes = stream->after.data();
  if (count != nullptr) *count = stream->after.size();
  return kSuccess;
}
STAND_IN_EXPORT Result cuStreamUpdateCaptureDependencies(Stream handle, GraphNode* nodes, size_t count, unsigned) {
  CUstream_st* const stream = find(handle);
  if (stream == nullptr) return kInvalidHandle;
  stream->after.insert(stream->after.end(), nodes, nodes + count);
  return kSuccess;
}
STAND_IN_EXPORT Result cuGraphAddEventRecordNode(GraphNode* node, Graph graph, const GraphNode* after, size_t count,
                                                 Event event) {
  *node = stand_in::append(*graph, {after, after + count}, recording(event));
  return kSuccess;
}
STAND_IN_EXPORT Result cuGraphAddDependencies(Graph graph, const GraphNode* from, const GraphNode* to, size_t count) {
  for (size_t i = 0; i < count; i++) {
    to[i]->after.push_back(from[i]);
    // Behind all that it follows: nodes run in the order in which they lie.
    const auto place =
        std::find_if(graph->nodes.begin(), graph->nodes.end(), [&](const auto& node) { return node.get() == to[i]; });
    std::rotate(place, place + 1, graph->nodes.end());
  }
  return kSuccess;
}
STAND_IN_EXPORT Result cuGraphRemoveDependencies(Graph, const GraphNode* from, const GraphNode* to, size_t count) {
  for (size_t i = 0; i < count; i++) std::erase(to[i]->after, from[i]);
  return kSuccess;
}
STAND_IN_EXPORT Result cuGraphInstantiateWithFlags(GraphExec* executable, Graph graph, unsigned long long) {
  *executable = new CUgraphExec_st;
  for (const auto& node : graph->nodes) (*executable)->steps.push_back(node->launched);
  (*executable)->held = graph->held;
  return kSuccess;
}
STAND_IN_EXPORT Result cuGraphLaunch(GraphExec executable, Stream handle) {
  CUstream_st* const stream = find(handle);
  if (stream == nullptr) return kInvalidHandle;
  for (const auto& step : executable->steps) stand_in::enqueueLaunched(stream, step);
  return kSuccess;
}
STAND_IN_EXPORT Result cuGraphDestroy(Graph graph) {
  delete graph;
  return kSuccess;
}
STAND_IN_EXPORT Result cuGraphExecDestroy(GraphExec executable) {
  delete executable;
  return kSuccess;
}
