#include "net/socket/socket_listener.h"

#include <utility>

#include "net/socket/socket_receiver.h"

namespace ncclrun::net {

SocketListener::SocketListener(SocketNetwork& network, std::shared_ptr<Acceptor> acceptor, uint32_t device)
    : network_(network),
      acceptor_(std::move(acceptor)),
      device_(device),
      helperOffset_(network.nextHelperOffset(false)),
      number_(acceptor_->open(network.config().token, [&network] { network.notify(); })) {}

SocketListener::~SocketListener() {
  acceptor_->close(number_);
  network_.releaseAcceptor(*acceptor_);
}

void SocketListener::sort(std::vector<AcceptedSocket> arrived) {
  for (AcceptedSocket& socket : arrived) {
    const uint64_t connection = socket.hello.connection;
    Half& half = halves_[connection];
    if (half.sockets.empty()) half.sockets.resize(socket.hello.sockets);
    // The other side has proved itself, so what differs here is a defect of its own; its connection is dropped.
    const size_t index = socket.hello.socket;
    if (half.sockets.size() != socket.hello.sockets || half.sockets[index].descriptor.valid()) {
      halves_.erase(connection);
      continue;
    }
    half.sockets[index] = std::move(socket);
    if (++half.arrived < half.sockets.size()) continue;
    complete_.push_back(std::move(half.sockets));
    halves_.erase(connection);
  }
}

Status SocketListener::accept(std::unique_ptr<Receiver>& out) {
  out = nullptr;
  std::vector<AcceptedSocket> arrived;
  const Status status = acceptor_->poll(number_, arrived);
  sort(std::move(arrived));
  if (complete_.empty()) return status;
  std::vector<AcceptedSocket> sockets = std::move(complete_.front());
  complete_.pop_front();
  std::unique_ptr<SocketReceiver> receiver;
  if (Status made = SocketReceiver::make(network_, device_, helperOffset_, std::move(sockets), receiver); !made.ok())
    return made;
  out = std::move(receiver);
  return {};
}

}  // namespace ncclrun::net
