// What a program can ask a data path on GPUs: predictions, variants, ranks and hosts, the traffic of edges, memory.
#include "cuda/cuda_data_path.h"
#include "cuda/cuda_memory_use.h"

namespace ncclrun::cuda {

// Predicts nothing where GPUs communicate through host memory, which the plan did not assume.
Status CudaDataPath::predict(const Operation& operation, double& microseconds) const {
  Task task{.operation = operation};
  Status status = chooseVariant(plan(), provenRequirements(false, operation) | negotiableRequirements(), task);
  microseconds = status.ok() && resources_->regions->why().empty() ? predictedMicroseconds(task) : 0;
  return status;
}

// The variant of a captured operation, of 32-bit floats.
Status CudaDataPath::variant(plan::Collective collective, uint64_t bytes, ncclrunVariant& out) const {
  Operation usual;
  usual.type = ncclFloat32;
  return variantAt(plan(), provenRequirements(true, usual) | negotiableRequirements(), collective, bytes, out);
}

void CudaDataPath::info(ncclrunCommInfo& out) const {
  const auto& header = plan().header();
  out = {setup_.rank,       header.ranks,     plan().peer(setup_.rank).localIndex,
         header.localRanks, header.hostIndex, header.hosts};
}

const char* CudaDataPath::hostName(uint32_t index) const {
  return index < hostNames_.size() ? hostNames_[index].c_str() : nullptr;
}

// Lists used pairs by channel, including their traffic in the rings.
size_t CudaDataPath::edges(std::span<ncclrunEdge> out) const {
  const auto& header = plan().header();
  const TableLayout layout(resources_->regions->slots(), header.ranks);
  std::vector<SendState> sends(layout.states);
  std::vector<ReceiveState> receives(layout.states);
  const OnGpu here(resources_->gpu);
  const auto fetch = [&](void* to, size_t at, size_t bytes) {
    driver().memcpyAsync(reinterpret_cast<Pointer>(to), resources_->tables.pointer() + at, bytes, resources_->stream);
  };
  fetch(sends.data(), layout.sends, sends.size() * sizeof(SendState));
  fetch(receives.data(), layout.receives, receives.size() * sizeof(ReceiveState));
  driver().streamSynchronize(resources_->stream);
  size_t count = 0;
  for (uint32_t channel = 0; channel < header.channels; channel++) {
    const uint32_t ring = header.channels * header.ranks + channel;
    const uint32_t index = plan().ringIndex(channel, setup_.rank);
    for (uint32_t peer = 0; peer < header.ranks; peer++) {
      if (peer == setup_.rank) continue;  // what goes to a network that reduces
      for (const bool isSend : {true, false}) {
        const auto bytesOf = [&](uint32_t state) { return isSend ? sends[state].bytes : receives[state].bytes; };
        const uint32_t neighbour = plan().ring(channel, (index + (isSend ? 1 : header.ranks - 1)) % header.ranks);
        uint64_t bytes = bytesOf(channel * header.ranks + peer);
        if (ring < layout.states && peer == neighbour) bytes += bytesOf(ring);
        if (channel == 0 && resources_->copies != nullptr) {
          const auto& copied = resources_->copies->engines().bytes(peer);
          bytes += isSend ? copied.sent : copied.received;
        }
        if (bytes == 0) continue;
        const auto transport =
            uint32_t(plan().sameHost(peer) ? resources_->regions->transport(peer) : plan::Transport::socket);
        if (count < out.size()) out[count] = {channel, peer, isSend ? 1u : 0u, transport, bytes};
        count++;
      }
    }
  }
  return count;
}

uint64_t CudaDataPath::gpuBytes() const {
  const uint64_t ofNetwork = resources_->netRegions != nullptr ? resources_->netRegions->gpuBytes() : 0;
  return memoryUse(plan().slots(), plan().header().ranks, plan().header().localRanks).total() + ofNetwork;
}

}  // namespace ncclrun::cuda
