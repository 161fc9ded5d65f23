#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
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
  const char* begin = nullptr;
  size_t bytes = 0;
  bool isDevice = false;
  bool hasEnded = false;

  bool contains(const void* data, size_t size) const {
    const auto offset = uintptr_t(data) - uintptr_t(begin);
    return offset <= bytes && size <= bytes - offset;
  }
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
  std::vector<std::unique_ptr<Request>> requests;    // also those that are done: nobody may test them again
  std::deque<Request*> open;                         // collectives
  std::map<void*, std::unique_ptr<Region>> regions;  // also those that have ended
  size_t openRegions = 0;
  std::map<void*, std::vector<char>> invisible;  // arrived in GPU memory and not flushed
};

// What exists in this process, so that no call is followed that is not one of a member.
struct Existing {
  std::mutex mutex;
  std::set<const void*> groups;
  std::map<const void*, std::string> listeners;             // their handles
  std::map<std::string, std::map<int, std::string>> ranks;  // by group: what each member listens at
};
Existing& existing() {
  static auto& only = *new Existing;
  return only;
}

Group& groupOf(void* opaque) {
  Existing& all = existing();
  std::lock_guard lock(all.mutex);
  if (!all.groups.contains(opaque)) broken("a call of what is no member of a group");
  return *static_cast<Group*>(opaque);
}

// The caller of connect is the member that it says.
void checkMember(const std::string& group, void** handles, int members, int rank, const void* listener) {
  if (rank < 0 || rank >= members) broken("connect of a rank that the group does not have");
  Existing& all = existing();
  std::lock_guard lock(all.mutex);
  const auto found = all.listeners.find(listener);
  if (found == all.listeners.end()) broken("connect with what does not listen");
  if (std::memcmp(handles[rank], found->second.data(), kKeyBytes) != 0)
    broken("connect as a member that listens at another handle");
  if (!all.ranks[group].emplace(rank, found->second).second) broken("two members connect as the same rank");
}

void checkUse(Group& group) {
  std::thread::id nobody{};
  const std::thread::id me = std::this_thread::get_id();
  if (!group.owner.compare_exchange_strong(nobody, me) && nobody != me)
    broken("a group is used by another thread than before");
  if (group.isDead) broken("a call on a group that has failed");
}

const Region& checkRegistration(const Group& group, void* registration) {
  const auto found = group.regions.find(registration);
  if (found == group.regions.end()) broken("a collective with a registration of another group");
  if (found->second->hasEnded) broken("a collective with a registration that has ended");
  return *found->second;
}

// A buffer of a collective: registered, and no result that nobody has flushed.
void checkBuffer(const Group& group, void* registration, const void* data, size_t bytes) {
  if (!checkRegistration(group, registration).contains(data, bytes)) broken("a collective outside of its registration");
  for (const auto& [address, shadow] : group.invisible) {
    const auto from = uintptr_t(address), at = uintptr_t(data);
    if (at < from + shadow.size() && from < at + bytes) broken("the result of a collective is used before its flush");
  }
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
  const int result = exampleCollectiveTable.listen(context, device, handle, listener);
  if (result != 0) return result;
  std::lock_guard lock(existing().mutex);
  existing().listeners[*listener] = std::string(static_cast<const char*>(handle), kKeyBytes);
  return result;
}
int closeListen(void* listener) {
  {
    std::lock_guard lock(existing().mutex);
    existing().listeners.erase(listener);
  }
  return exampleCollectiveTable.closeListen(listener);
}

int connect(void** handles, int members, int rank, void* listener, void** comm) {
  if (*comm != nullptr) broken("connect with a comm that is not null");
  const std::string key(static_cast<const char*>(handles[0]), kKeyBytes);
  checkMember(key, handles, members, rank, listener);
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
  std::lock_guard lock(existing().mutex);
  existing().groups.insert(group);
  return 0;
}

int closeColl(void* opaque) {
  Group* const group = &groupOf(opaque);
  count("groups", -1);
  const int result = exampleCollectiveTable.closeColl(group->core);
  std::lock_guard lock(existing().mutex);
  existing().groups.erase(group);
  delete group;
  return result;
}

int reduceSupport(int type, int op, int* supported) {
  if (planted("coll-float") != 0 && type != COLL_FLOAT32) return NET_INVALID_ARGUMENT;
  return exampleCollectiveTable.reduceSupport(type, op, supported);
}

int regMr(void* opaque, void* data, size_t bytes, int type, void** registration) {
  Group& group = groupOf(opaque);
  if (data == nullptr || bytes == 0) broken("registration of nothing");
  if (long(group.openRegions) >= planted("regions", 1 << 20)) {
    logOf(abi::kLogWarn, 0x10, __FILE__, __LINE__, "no more regions");
    return NET_SYSTEM_ERROR;
  }
  if (type == NET_DEVICE_MEMORY && planted("coll-hosts-only") == 1) broken("registration of GPU memory");
  if (type == NET_DEVICE_MEMORY && planted("coll-hosts-only") != 0) return NET_INVALID_USAGE;
  auto made = std::make_unique<Region>(Region{static_cast<const char*>(data), bytes, type == NET_DEVICE_MEMORY});
  *registration = made.get();
  group.regions[*registration] = std::move(made);
  group.openRegions++;
  return 0;
}

int deregMr(void* opaque, void* registration) {
  Group& group = groupOf(opaque);
  const auto found = group.regions.find(registration);
  if (found == group.regions.end() || std::exchange(found->second->hasEnded, true))
    broken("deregistration of what is not registered");
  group.openRegions--;
  return 0;
}

int iallreduce(void* opaque, void* send, void* receive, size_t number, int type, int op, void* sendRegistration,
               void* receiveRegistration, void** request) {
  Group& group = groupOf(opaque);
  int isSupported = 0;
  exampleCollectiveTable.reduceSupport(type, op, &isSupported);
  if (isSupported == 0) broken("a reduction that is not supported");
  const size_t bytes = number * elementBytes(ncclDataType_t(type));
  checkBuffer(group, sendRegistration, send, bytes);
  checkBuffer(group, receiveRegistration, receive, bytes);
  if (isRefused(group, {"iallreduce", bytes, type, op}, request)) return 0;
  auto made = receiving(receive, bytes, receiveRegistration);
  const int result = exampleCollectiveTable.iallreduce(group.core, send, targetOf(*made), number, type, op, nullptr,
                                                       nullptr, &made->core);
  return posted(group, std::move(made), result, request);
}

int iallgather(void* opaque, void* send, collPart receive, size_t bytesPerRank, size_t windowOffset, size_t windowBytes,
               void* sendRegistration, void** request) {
  Group& group = groupOf(opaque);
  checkRegistration(group, sendRegistration);
  checkBuffer(group, receive.registration, receive.address, receive.bytes);
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
  Group& group = groupOf(opaque);
  checkBuffer(group, send.registration, send.address, send.bytes);
  checkRegistration(group, receiveRegistration);
  if (send.bytes != windowBytes) broken("ireducescatter of a part that is not the window");
  if (isRefused(group, {"ireducescatter", windowBytes, type, op}, request)) return 0;
  auto made = receiving(receive, windowBytes, receiveRegistration);
  const int result = exampleCollectiveTable.ireducescatter(group.core, 1, &send, targetOf(*made), bytesPerRank,
                                                           windowOffset, windowBytes, type, op, nullptr, &made->core);
  return posted(group, std::move(made), result, request);
}

int iflush(void* opaque, void* data, int, void* registration, void** request) {
  Group& group = groupOf(opaque);
  checkUse(group);
  if (!checkRegistration(group, registration).isDevice) broken("iflush of memory of the host");
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
