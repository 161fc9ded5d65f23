#include "communicator/registry.h"

#include <mutex>
#include <vector>

#include "agent/control_thread.h"
#include "host/default_stream_slots.h"

namespace ncclrun {
namespace {
// Far from any address, and easy to recognise in a debugger.
constexpr uintptr_t kFirstHandle = 0x4e43434c000000;
constexpr uintptr_t kHandleStep = 16;
}  // namespace

Registry& Registry::get() {
  static auto& registry = *new Registry;  // never destroyed: communicators may outlive main
  return registry;
}

template <typename Tell>
void Registry::forAll(Tell&& notify) {
  std::vector<std::shared_ptr<Communicator>> all;
  {
    std::shared_lock lock(mutex_);
    for (const auto& [handle, communicator] : communicators_) all.push_back(communicator);
  }
  for (const auto& communicator : all) notify(*communicator);
}

Registry::Registry() : last_(kFirstHandle) {
  ControlThread::get().post([this] {
    AgentClient::get().onAborted([this](const AbortedMessage& message) {
      forAll([&](Communicator& communicator) { communicator.onAborted(message); });
    });
    AgentClient::get().onPeerGone([this](const PeerGoneMessage& message) {
      forAll([&](Communicator& communicator) { communicator.peerGone(message); });
    });
  });
}

uint32_t Registry::slotOf(const Communicator& communicator) const {
  std::vector<uint32_t> taken;
  for (const auto& [handle, other] : communicators_) {
    if (communicator.hasSameId(*other)) taken.push_back(other->defaultStreamSlot());
  }
  return claimDefaultStreamSlot(taken);
}

ncclComm_t Registry::add(std::shared_ptr<Communicator> communicator) {
  std::unique_lock lock(mutex_);
  if (!communicator->isSplit()) communicator->setDefaultStreamSlot(slotOf(*communicator));
  last_ += kHandleStep;
  const auto handle = reinterpret_cast<ncclComm_t>(last_);
  communicators_.emplace(handle, std::move(communicator));
  ControlThread::get().use(true);
  return handle;
}

std::shared_ptr<Communicator> Registry::find(ncclComm_t handle) {
  std::shared_lock lock(mutex_);
  const auto found = communicators_.find(handle);
  return found == communicators_.end() ? nullptr : found->second;
}

std::shared_ptr<Communicator> Registry::remove(ncclComm_t handle) {
  std::unique_lock lock(mutex_);
  const auto found = communicators_.find(handle);
  if (found == communicators_.end()) return nullptr;
  std::shared_ptr<Communicator> communicator = std::move(found->second);
  communicators_.erase(found);
  if (communicators_.empty()) ControlThread::get().use(false);
  return communicator;
}

}  // namespace ncclrun
