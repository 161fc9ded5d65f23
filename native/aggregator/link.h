// An authenticated connection between an aggregator and a member, or another aggregator.
#pragma once
#include <cstdint>

#include "aggregator/frame_reader.h"
#include "aggregator/frame_writer.h"
#include "base/descriptor.h"

namespace ncclrun::aggregator {

// A side that has been sent its failure closes the connection; where it does not, the other one does.
inline constexpr uint64_t kDiscardFor = 5'000'000'000;  // ns

struct Link {
  Descriptor socket;
  FrameReader reader;
  FrameWriter writer;
  uint32_t interest = 0;  // events that epoll reports

  // Queues a frame and writes what can be written: that the connection has ended is seen when it is read.
  void send(const FrameHeader& header, const std::byte* payload = nullptr,
            std::shared_ptr<const void> owner = nullptr) {
    writer.queue(header, payload, std::move(owner));
    if (socket.valid()) writer.flush(socket.get());
  }
};

}  // namespace ncclrun::aggregator
