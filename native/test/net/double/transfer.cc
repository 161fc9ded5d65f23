// isend, irecv, iflush and test of the double.
#include <algorithm>
#include <cstring>

#include "net/double/behaviour.h"
#include "net/double/calls.h"
#include "net/double/state.h"

namespace ncclrun::test::doubled {

void checkThread(Comm& comm) {
  std::thread::id nobody{};
  const std::thread::id me = std::this_thread::get_id();
  if (!comm.owner.compare_exchange_strong(nobody, me) && nobody != me)
    broken("a comm is used by another thread than before");
  if (comm.isDead) broken("a call on a comm whose transfer has failed");
}

namespace {

constexpr int kFlushTests = 2;
constexpr long kMaxTests = 50;  // tests, for a request that nobody may have posted

// True for the first calls for a request. The caller repeats them with the same arguments.
bool isRefused(Comm& comm, const std::array<const void*, 8>& arguments) {
  const long all = planted("null-request");
  if (all == 0) return false;
  if (comm.nulls < all && comm.refused != arguments) broken("a refused call is repeated with other arguments");
  comm.refused = arguments;
  if (comm.nulls-- > 0) {
    count("refused");
    return true;
  }
  comm.nulls = all;
  return false;
}

void checkRegistration(const Comm& comm, void* registration) {
  if (registration == nullptr && planted("null-registration") != 0) return;
  if (!comm.regions.contains(registration)) broken("a transfer with a registration of another comm");
}

void* newRequest(Comm& comm, void* core, int number) {
  if (core == nullptr) return nullptr;
  Request& made = *comm.requests.emplace_back(std::make_unique<Request>());
  made.comm = &comm;
  made.core = core;
  made.index = long(comm.requests.size()) - 1;
  made.count = number;
  comm.open.push_back(&made);
  if (profilerOf != nullptr && profilerOf(&made.event, 0, nullptr, 2 << 16, nullptr) != 0)
    broken("the profiler's callback failed");
  return &made;
}

// The request behind this one, which is still under way.
Request* nextOf(const Request& request) {
  const auto& open = request.comm->open;
  const auto found = std::find(open.begin(), open.end(), &request);
  return found == open.end() || found + 1 == open.end() ? nullptr : *(found + 1);
}

int testCore(Request& request) {
  int done = 0;
  if (request.isCoreDone) return 0;
  const int result = exampleTable.test(request.core, &done, request.sizes.data());
  request.isCoreDone = done != 0;
  return result;
}

// Data in GPU memory is visible only after a flush, or with "no-flush" at once.
void hide(Request& request) {
  for (int i = 0; i < request.count; i++) {
    if (!request.isDevice[size_t(i)]) continue;
    auto& shadow = request.shadows[size_t(i)];
    shadow.resize(size_t(request.sizes[size_t(i)]));
    count("received-into-gpu");
    if (planted("no-flush") != 0) {
      std::copy(shadow.begin(), shadow.end(), static_cast<char*>(request.data[size_t(i)]));
      continue;
    }
    request.comm->invisible[request.data[size_t(i)]] = std::move(shadow);
  }
}

void finish(Request& request, int* done, int* sizes) {
  auto& open = request.comm->open;
  open.erase(std::find(open.begin(), open.end(), &request));
  request.isDone = true;
  *done = 1;
  if (profilerOf != nullptr && profilerOf(&request.event, 1, nullptr, 2 << 16, nullptr) != 0)
    broken("the profiler's callback failed");
  if (sizes == nullptr || planted("no-sizes") != 0) return;
  std::copy_n(request.sizes.begin(), request.count, sizes);
  if (planted("wrong-sizes") != 0) sizes[0] = 1 << 30;
}

int failed(Comm& comm) {
  logOf(abi::kLogWarn, 0x10, __FILE__, __LINE__, "retry counter exceeded, vendor error %d", 129);
  comm.isDead = true;
  return int(planted("error-code", NET_REMOTE_ERROR));
}

}  // namespace

int isend(void* opaque, void* data, size_t bytes, int tag, void* registration, void** request) {
  auto& comm = *static_cast<Comm*>(opaque);
  checkThread(comm);
  if (*request != nullptr) broken("isend with a request that is not null");
  if (bytes > size_t(planted("max-bytes", 1l << 40))) broken("isend of more than maxP2pBytes");
  if (bytes > 0) checkRegistration(comm, registration);
  if (isRefused(comm, {data, reinterpret_cast<void*>(bytes)})) return 0;
  void* core = nullptr;
  const int result = exampleTable.isend(comm.core, data, bytes, tag, nullptr, nullptr, &core);
  *request = newRequest(comm, core, 1);
  return result;
}

int irecv(void* opaque, int number, void** data, size_t* sizes, int* tags, void** registrations, void** request) {
  auto& comm = *static_cast<Comm*>(opaque);
  checkThread(comm);
  if (*request != nullptr) broken("irecv with a request that is not null");
  if (number < 1 || number > planted("receives", 8)) broken("irecv of more than maxRecvs buffers");
  std::array<void*, 8> to{};
  std::array<std::vector<char>, 8> shadows;
  std::array<bool, 8> isDevice{};
  std::array<const void*, 8> arguments{};
  for (size_t i = 0; i < size_t(number); i++) {
    if (sizes[i] > 0) checkRegistration(comm, registrations[i]);
    arguments[i] = to[i] = data[i];
    const auto* const region = static_cast<Region*>(registrations[i]);
    if (region == nullptr || !region->isDevice) continue;
    isDevice[i] = true;
    shadows[i].resize(sizes[i]);
    to[i] = shadows[i].data();
  }
  if (isRefused(comm, arguments)) return 0;
  void* core = nullptr;
  const int result = exampleTable.irecv(comm.core, number, to.data(), sizes, tags, nullptr, nullptr, &core);
  auto* const made = static_cast<Request*>(*request = newRequest(comm, core, number));
  if (made == nullptr) return result;
  std::copy_n(data, number, made->data.begin());
  made->shadows = std::move(shadows);  // the vectors' memory stays where it is
  made->isDevice = isDevice;
  return result;
}

int iflush(void* opaque, int number, void** data, int*, void** registrations, void** request) {
  auto& comm = *static_cast<Comm*>(opaque);
  checkThread(comm);
  if (planted("device-memory") == 0 && planted("dma-buf") == 0)
    broken("iflush where the properties have no GPU memory");
  if (planted("no-flush") != 0) broken("iflush where none is needed");
  if (planted("flush-fails") != 0) {
    logOf(abi::kLogWarn, 0x10, __FILE__, __LINE__, "the loop's queue pair is in error");
    return NET_SYSTEM_ERROR;
  }
  for (int i = 0; i < number; i++) {
    checkRegistration(comm, registrations[i]);
    const auto* const region = static_cast<const Region*>(registrations[i]);
    if (region != nullptr && !region->isDevice) broken("iflush of memory of the host");
    const auto found = comm.invisible.find(data[i]);
    if (found == comm.invisible.end()) continue;
    std::copy(found->second.begin(), found->second.end(), static_cast<char*>(data[i]));
    comm.invisible.erase(found);
  }
  count("flush");
  *request = nullptr;
  if (planted("flush-at-once") != 0) return 0;
  auto* const made = static_cast<Request*>(newRequest(comm, opaque, number));
  made->core = nullptr;
  *request = made;
  return 0;
}

int test(void* opaque, int* done, int* sizes) {
  auto& request = *static_cast<Request*>(opaque);
  Comm& comm = *request.comm;
  *done = 0;
  checkThread(comm);
  count("test");
  if (request.isDone) broken("test of a request that is done");
  request.tests++;
  if (netDoubleCount("test") == planted("test-error", -1)) return failed(comm);
  if (request.core == nullptr) {
    if (request.tests >= kFlushTests) finish(request, done, nullptr);
    return 0;
  }
  if (planted("in-order") != 0) {
    const auto isTransfer = [](const Request* one) { return one->core != nullptr; };
    if (*std::find_if(comm.open.begin(), comm.open.end(), isTransfer) != &request) {
      logOf(abi::kLogWarn, 0x10, __FILE__, __LINE__, "invalid request");
      comm.isDead = true;
      return NET_INTERNAL_ERROR;
    }
  }
  if (planted("lose", -1) == request.index) return 0;
  if (planted("other-first") != 0 && request.index % 2 == 0 && request.tests < kMaxTests) {
    Request* const next = nextOf(request);
    if (next == nullptr || next->core == nullptr) return 0;
    if (const int result = testCore(*next); result != 0) return result;
    if (!next->isCoreDone) return 0;
    count("other-first");
  }
  if (const int result = testCore(request); result != 0) {
    comm.isDead = true;
    return result;
  }
  if (!request.isCoreDone || request.tests < planted("done-after")) return 0;
  if (!comm.sends) hide(request);
  finish(request, done, sizes);
  return 0;
}

}  // namespace ncclrun::test::doubled
