#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/element.h"
#include "net/double/behaviour.h"
#include "net/double/collective_calls.h"

namespace ncclrun::test::doubled::collective {
namespace {

constexpr size_t kMostUnderWay = 8;
constexpr size_t kKeyBytes = 44;  // the example's address and key at the begin of a handle

abi::Log logOf;

// What every member of a group must call alike.
struct Call {
  const char* name;
  size_t bytes;
  int type, op;
  bool operator==(const Call&) const = default;
};

// The calls of all groups of this process, by the first member's handle: a member that comes second must agree.
void compare(const std::string& group, size_t number, const Call& call) {
  static auto& mutex = *new std::mutex;
  static auto& groups = *new std::map<std::string, std::vector<Call>>;
  std::lock_guard lock(mutex);
  auto& calls = groups[group];
  if (number == calls.size()) calls.push_back(call);
  if (calls[number] != call) broken("the members of a group make different calls");
}

struct Region {
  bool isDevice = false;
};

struct Group;
struct Request {
  Group* group = nullptr;
  void* core = nullptr;  // the example's; null: a flush
  long tests = 0;
  bool isDone = false;
  int bytes = 0;
  char* data = nullptr;
  std::vector<char> shadow;  // of a buffer in GPU memory
};

struct Group {
  void* core = nullptr;
  std::string key;
  size_t calls = 0;
  bool isDead = false;
  long nulls = 0;
  std::atomic<std::thread::id> owner{};
  std::vector<std::unique_ptr<Request>> requests;  // also those that are done: nobody may test them again
  std::deque<Request*> open;                       // collectives
  std::set<void*> regions;
  std::map<void*, std::vector<char>> invisible;  // arrived in GPU memory and not flushed
};

void checkUse(Group& group) {
  std::thread::id nobody{};
  const std::thread::id me = std::this_thread::get_id();
  if (!group.owner.compare_exchange_strong(nobody, me) && nobody != me)
    broken("a group is used by another thread than before");
  if (group.isDead) broken("a call on a group that has failed");
}

void checkRegistration(const Group& group, void* registration) {
  if (!group.regions.contains(registration)) broken("a collective with a registration of another group");
}

// True if the call answers "not now".
bool isRefused(Group& group, const Call& call, void** request) {
  checkUse(group);
  if (*request != nullptr) broken("a collective with a request that is not null");
  if (group.nulls-- > 0) {
    count("refused");
    return true;
  }
  group.nulls = planted("null-request");
  if (group.open.size() >= kMostUnderWay) broken("more than 8 collectives of a group are under way");
  compare(group.key, group.calls++, call);
  count(call.name);
  return false;
}

int posted(Group& group, std::unique_ptr<Request> made, int result, void** request) {
  if (made->core == nullptr) return result;
  made->group = &group;
  group.open.push_back(made.get());
  *request = group.requests.emplace_back(std::move(made)).get();
  return result;
}

// A request that receives into `data`, or into a shadow of it.
std::unique_ptr<Request> receiving(void* data, size_t bytes, void* registration) {
  auto made = std::make_unique<Request>();
  made->data = static_cast<char*>(data);
  if (static_cast<const Region*>(registration)->isDevice) made->shadow.resize(bytes);
  return made;
}
void* targetOf(Request& request) { return request.shadow.empty() ? request.data : request.shadow.data(); }

void finish(Request& request, int* done, int* bytes) {
  auto& open = request.group->open;
  if (request.core != nullptr) open.erase(std::find(open.begin(), open.end(), &request));
  if (!request.shadow.empty()) request.group->invisible[request.data] = std::move(request.shadow);
  request.isDone = true;
  *done = 1;
  if (planted("no-sizes") == 0) *bytes = planted("wrong-sizes") != 0 ? 1 << 30 : request.bytes;
}

}  // namespace

int begin(void** context, uint64_t communicatorId, abi::Log log) {
  if (netDoubleCount("init") == 0) broken("init of the collective network before that of the network");
  count("coll-init");
  logOf = log;
  if (const long code = planted("coll-init-error"); code != 0) {
    log(abi::kLogWarn, 0x10, __FILE__, __LINE__, "no aggregation manager answers");
    return int(code);
  }
  return exampleCollectiveTable.init(context, communicatorId, log);
}

int finalize(void* context) {
  count("coll-finalize");
  return exampleCollectiveTable.finalize(context);
}

int devices(int* number) {
  const int result = exampleCollectiveTable.devices(number);
  if (planted("coll-none") != 0) *number = 0;
  return result;
}

int properties(int device, netProperties* out) {
  const int result = exampleCollectiveTable.getProperties(device, out);
  out->maxCollBytes = size_t(planted("coll-max-bytes", long(out->maxCollBytes)));
  if (planted("device-memory") != 0 && planted("coll-hosts-only") != 1) out->ptrSupport |= NET_DEVICE_MEMORY;
  return result;
}

int listen(void* context, int device, void* handle, void** listener) {
  return exampleCollectiveTable.listen(context, device, handle, listener);
}
int closeListen(void* listener) { return exampleCollectiveTable.closeListen(listener); }

int connect(void** handles, int members, int rank, void* listener, void** comm) {
  if (*comm != nullptr) broken("connect with a comm that is not null");
  const std::string key(static_cast<const char*>(handles[0]), kKeyBytes);
  count("coll-connect");
  if (const long ms = planted("block-ms"); ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(ms));
  if (planted("coll-null") != 0) return 0;
  void* core = nullptr;
  if (const int result = exampleCollectiveTable.connect(handles, members, rank, listener, &core); result != 0)
    return result;
  if (planted("coll-fails") == rank + 1) {
    logOf(abi::kLogWarn, 0x10, __FILE__, __LINE__, "no tree is left for this group");
    exampleCollectiveTable.closeColl(core);
    return NET_SYSTEM_ERROR;
  }
  auto* const group = new Group;
  group->core = core;
  group->key = key;
  group->nulls = planted("null-request");
  *comm = group;
  count("groups");
  return 0;
}

int closeColl(void* opaque) {
  auto* const group = static_cast<Group*>(opaque);
  if (group == nullptr) broken("closeColl of a null comm");
  count("groups", -1);
  for (void* const region : group->regions) delete static_cast<Region*>(region);
  const int result = exampleCollectiveTable.closeColl(group->core);
  delete group;
  return result;
}

int reduceSupport(int type, int op, int* supported) {
  if (planted("coll-float") != 0 && type != COLL_FLOAT32) return NET_INVALID_ARGUMENT;
  return exampleCollectiveTable.reduceSupport(type, op, supported);
}

int regMr(void* opaque, void* data, size_t bytes, int type, void** registration) {
  auto& group = *static_cast<Group*>(opaque);
  if (data == nullptr || bytes == 0) broken("registration of nothing");
  if (long(group.regions.size()) >= planted("regions", 1 << 20)) {
    logOf(abi::kLogWarn, 0x10, __FILE__, __LINE__, "no more regions");
    return NET_SYSTEM_ERROR;
  }
  if (type == NET_DEVICE_MEMORY && planted("coll-hosts-only") == 1) broken("registration of GPU memory");
  if (type == NET_DEVICE_MEMORY && planted("coll-hosts-only") != 0) return NET_INVALID_USAGE;
  *registration = new Region{type == NET_DEVICE_MEMORY};
  group.regions.insert(*registration);
  return 0;
}

int deregMr(void* opaque, void* registration) {
  if (static_cast<Group*>(opaque)->regions.erase(registration) != 1) broken("deregistration of what is not registered");
  delete static_cast<Region*>(registration);
  return 0;
}

int iallreduce(void* opaque, void* send, void* receive, size_t number, int type, int op, void* sendRegistration,
               void* receiveRegistration, void** request) {
  auto& group = *static_cast<Group*>(opaque);
  checkRegistration(group, sendRegistration);
  checkRegistration(group, receiveRegistration);
  int isSupported = 0;
  exampleCollectiveTable.reduceSupport(type, op, &isSupported);
  if (isSupported == 0) broken("a reduction that is not supported");
  const size_t bytes = number * elementBytes(ncclDataType_t(type));
  if (isRefused(group, {"iallreduce", bytes, type, op}, request)) return 0;
  auto made = receiving(receive, bytes, receiveRegistration);
  const int result = exampleCollectiveTable.iallreduce(group.core, send, targetOf(*made), number, type, op, nullptr,
                                                       nullptr, &made->core);
  return posted(group, std::move(made), result, request);
}

int iallgather(void* opaque, void* send, collPart receive, size_t bytesPerRank, size_t windowOffset, size_t windowBytes,
               void* sendRegistration, void** request) {
  auto& group = *static_cast<Group*>(opaque);
  checkRegistration(group, sendRegistration);
  checkRegistration(group, receive.registration);
  if (receive.bytes != windowBytes) broken("iallgather into a part that is not the window");
  if (isRefused(group, {"iallgather", windowBytes, 0, 0}, request)) return 0;
  auto made = receiving(receive.address, windowBytes, receive.registration);
  receive.address = targetOf(*made);
  const int result = exampleCollectiveTable.iallgather(group.core, send, 1, &receive, bytesPerRank, windowOffset,
                                                       windowBytes, nullptr, &made->core);
  return posted(group, std::move(made), result, request);
}

int ireducescatter(void* opaque, collPart send, void* receive, size_t bytesPerRank, size_t windowOffset,
                   size_t windowBytes, int type, int op, void* receiveRegistration, void** request) {
  auto& group = *static_cast<Group*>(opaque);
  checkRegistration(group, send.registration);
  checkRegistration(group, receiveRegistration);
  if (send.bytes != windowBytes) broken("ireducescatter of a part that is not the window");
  if (isRefused(group, {"ireducescatter", windowBytes, type, op}, request)) return 0;
  auto made = receiving(receive, windowBytes, receiveRegistration);
  const int result = exampleCollectiveTable.ireducescatter(group.core, 1, &send, targetOf(*made), bytesPerRank,
                                                           windowOffset, windowBytes, type, op, nullptr, &made->core);
  return posted(group, std::move(made), result, request);
}

int iflush(void* opaque, void* data, int, void* registration, void** request) {
  auto& group = *static_cast<Group*>(opaque);
  checkUse(group);
  checkRegistration(group, registration);
  if (!static_cast<const Region*>(registration)->isDevice) broken("iflush of memory of the host");
  const auto found = group.invisible.find(data);
  if (found == group.invisible.end()) broken("iflush of memory into which nothing has arrived");
  std::copy(found->second.begin(), found->second.end(), static_cast<char*>(data));
  group.invisible.erase(found);
  count("flush");
  if (planted("flush-at-once") != 0) return 0;
  auto made = std::make_unique<Request>();
  made->group = &group;
  *request = group.requests.emplace_back(std::move(made)).get();
  return 0;
}

int test(void* opaque, int* done, int* bytes) {
  auto& request = *static_cast<Request*>(opaque);
  checkUse(*request.group);
  if (request.isDone) broken("test of a request that is complete");
  if (bytes == nullptr) broken("test without a place for the size");  // older plugins write it in any case
  *done = 0;
  static std::atomic<long> tests{0};
  if (++tests == planted("test-error")) {
    request.group->isDead = true;
    logOf(abi::kLogWarn, 0x10, __FILE__, __LINE__, "the aggregation node has gone");
    return NET_REMOTE_ERROR;
  }
  request.tests++;
  if (request.core == nullptr) {
    finish(request, done, bytes);
    return 0;
  }
  if (request.group->open.front() != &request) broken("collectives are tested out of order");
  if (request.tests < planted("done-after")) return 0;
  int isCoreDone = 0;
  if (const int result = exampleCollectiveTable.test(request.core, &isCoreDone, &request.bytes); result != 0) {
    request.group->isDead = true;
    return result;
  }
  if (isCoreDone != 0) finish(request, done, bytes);
  return 0;
}

}  // namespace ncclrun::test::doubled::collective
