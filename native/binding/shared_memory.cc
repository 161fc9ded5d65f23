// Memory that other processes map: plans, host segments, telemetry pages. None of it has a name, so there is nothing to
// remove.
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>

#include "base/shared_file.h"
#include "binding/arguments.h"
#include "binding/error.h"
#include "binding/handle.h"
#include "binding/module.h"
#include "ncclrun.h"
#include "plan/segment_format.h"

namespace ncclrun::binding {
namespace {

struct Memory {
  std::shared_ptr<Handle> handle;
  bool seals;
};

Memory createMemory(Napi::Env env, const char* name, size_t bytes) {
  const std::string what = "cannot make " + std::to_string(bytes) + " bytes of shared memory";
  SharedFile file = makeSharedFile(name);
  if (!file.descriptor.valid()) throw systemError(env, file.error, what + " (" + file.why + ")");
  auto handle = std::make_shared<Handle>();
  handle->descriptor = std::move(file.descriptor);
  handle->bytes = bytes;
  if (ftruncate(handle->descriptor.get(), static_cast<off_t>(bytes)) < 0) throw systemError(env, errno, what);
  return {std::move(handle), file.seals};
}

// Nobody who has the descriptor can take the memory away from under who has mapped it. What is no memfd has no seals:
// there the ranks, which are the user's own, are trusted.
void seal(Napi::Env env, const Memory& memory, int seals) {
  if (!memory.seals) return;
  const int all = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | seals;
  if (fcntl(memory.handle->descriptor.get(), F_ADD_SEALS, all) < 0) {
    throw systemError(env, errno, "cannot seal shared memory");
  }
}

void* mapMemory(Napi::Env env, const Handle& handle) {
  void* address = mmap(nullptr, handle.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, handle.descriptor.get(), 0);
  if (address == MAP_FAILED)
    throw systemError(env, errno, "cannot map " + std::to_string(handle.bytes) + " bytes of shared memory");
  return address;
}

char* mapped(Napi::Env env, Handle& handle) {
  if (handle.mapping.address() == nullptr) handle.mapping = Mapping(mapMemory(env, handle), handle.bytes);
  return static_cast<char*>(handle.mapping.address());
}

bool raiseAbort(AbortBlock& block, uint32_t rank, uint32_t result, const std::string& sentence) {
  constexpr uint32_t kBeingWritten = 1;
  uint32_t fine = 0;
  if (!block.flag.compare_exchange_strong(fine, kBeingWritten, std::memory_order_acq_rel)) return false;
  block.rank = rank;
  const size_t length = std::min(sentence.size(), sizeof block.sentence - 1);
  memcpy(block.sentence, sentence.data(), length);
  block.sentence[length] = 0;
  block.flag.store(2 + result, std::memory_order_seq_cst);
  return true;
}

void ring(Doorbell& doorbell) {
  doorbell.sequence.fetch_add(1, std::memory_order_seq_cst);
  syscall(SYS_futex, &doorbell.sequence, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// Memory for a process, and our view of it, which has a mapping of its own: it outlives the handle.
template <size_t kBytes>
Napi::Value viewedMemory(Napi::Env env, const char* name) {
  const Memory memory = createMemory(env, name, kBytes);
  seal(env, memory, 0);
  void* page = mapMemory(env, *memory.handle);
  const auto buffer =
      Napi::ArrayBuffer::New(env, page, kBytes, [](Napi::Env, void* address) { munmap(address, kBytes); });
  Napi::Object both = Napi::Object::New(env);
  both.Set("handle", wrapObject(env, std::shared_ptr(memory.handle)));
  both.Set("view", Napi::Uint8Array::New(env, kBytes, buffer, 0));
  return both;
}

}  // namespace

std::shared_ptr<Handle> handleArgument(const Napi::Value& value, const char* name) {
  auto handle = objectArgument<Handle>(value, name);
  if (!handle->descriptor.valid()) throw systemError(value.Env(), EBADF, std::string(name) + " was closed before");
  return handle;
}

Napi::Value sealedMemory(const Napi::CallbackInfo& call) {
  const auto bytes = viewArgument(call[0], "bytes");
  const auto name = stringArgument(call[1], "name");
  const Memory memory = createMemory(call.Env(), name.c_str(), bytes.size());
  const auto& handle = memory.handle;
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t wrote =
        pwrite(handle->descriptor.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (wrote < 0) throw systemError(call.Env(), errno, "cannot fill shared memory");
    done += static_cast<size_t>(wrote);
  }
  seal(call.Env(), memory, F_SEAL_WRITE);
  return wrapObject(call.Env(), std::shared_ptr(handle));
}

Napi::Value segmentCreate(const Napi::CallbackInfo& call) {
  const Memory memory = createMemory(call.Env(), "ncclrun-segment", integerArgument<uint64_t>(call[0], "bytes"));
  seal(call.Env(), memory, 0);
  return wrapObject(call.Env(), std::shared_ptr(memory.handle));
}

Napi::Value segmentAbort(const Napi::CallbackInfo& call) {
  const auto handle = handleArgument(call[0], "segment");
  const auto abortOffset = integerArgument<uint64_t>(call[1], "abortOffset");
  const auto doorbellOffset = integerArgument<uint64_t>(call[2], "doorbellOffset");
  const auto doorbells = integerArgument<uint32_t>(call[3], "doorbells");
  const auto rank = integerArgument<uint32_t>(call[4], "rank");
  const auto result = integerArgument<uint32_t>(call[5], "result");
  const std::string sentence = stringArgument(call[6], "sentence");

  const auto inside = [&](uint64_t offset, uint64_t bytes) {
    return offset % 64 == 0 && offset <= handle->bytes && bytes <= handle->bytes - offset;
  };
  if (!inside(abortOffset, sizeof(AbortBlock)))
    throw wrongArgument(call.Env(), "abortOffset", "an aligned place in the segment");
  if (!inside(doorbellOffset, uint64_t{doorbells} * sizeof(Doorbell))) {
    throw wrongArgument(call.Env(), "doorbellOffset", "an aligned place with this many doorbells in the segment");
  }
  char* memory = mapped(call.Env(), *handle);
  const bool first = raiseAbort(*reinterpret_cast<AbortBlock*>(memory + abortOffset), rank, result, sentence);
  auto* bells = reinterpret_cast<Doorbell*>(memory + doorbellOffset);
  for (uint32_t i = 0; first && i < doorbells; ++i) ring(bells[i]);
  return Napi::Boolean::New(call.Env(), first);
}

Napi::Value telemetryCreate(const Napi::CallbackInfo& call) {
  return viewedMemory<NCCLRUN_TELEMETRY_BYTES>(call.Env(), "ncclrun-telemetry");
}

Napi::Value recorderCreate(const Napi::CallbackInfo& call) {
  return viewedMemory<NCCLRUN_RECORDER_BYTES>(call.Env(), "ncclrun-recorder");
}

Napi::Value close(const Napi::CallbackInfo& call) {
  const auto handle = handleArgument(call[0], "handle");
  handle->descriptor.reset();
  handle->mapping = Mapping();
  return call.Env().Undefined();
}

}  // namespace ncclrun::binding
