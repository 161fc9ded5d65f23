// Reads a plan that may be garbage, wholly.
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>

#include "plan/plan_view.h"
#include "plan/segment_format.h"

namespace ncclrun::test {

// True if the plan was accepted.
inline bool readEverything(std::span<const std::byte> blob) {
  PlanView plan;
  if (!plan.open(blob).ok()) return false;
  const auto& header = plan.header();
  volatile uint64_t sink = 0;
  for (uint32_t rank = 0; rank < header.ranks; rank++) {
    for (const char letter : plan.describe(rank)) sink = sink + uint64_t(letter);
    const uint32_t host = plan.peer(rank).host;
    sink = sink + plan.hostAddress(host).size();
    if (plan.sameHost(rank)) sink = sink + plan.gpuNic(plan.peer(rank).localIndex, "0000:1b:00.0").receives;
    if (const uint32_t nic = plan.pairNic(rank); nic != plan::kNoNic) {
      for (const char letter : plan.nicName(host, nic)) sink = sink + uint64_t(letter);
      for (const char letter : plan.nicAddress(nic)) sink = sink + uint64_t(letter);
    }
  }
  for (const char letter : plan.networkName()) sink = sink + uint64_t(letter);
  for (uint32_t channel = 0; channel < header.channels; channel++) {
    for (uint32_t rank = 0; rank < header.ranks; rank++) {
      if (plan.ring(channel, plan.ringIndex(channel, rank)) != rank) __builtin_trap();
      const uint32_t parent = plan.treeParent(channel, rank);
      const auto siblings = parent == PlanView::kTop ? std::vector{rank} : plan.treeChildren(channel, parent);
      if (std::find(siblings.begin(), siblings.end(), rank) == siblings.end()) __builtin_trap();
    }
  }
  for (uint32_t local = 0; local < header.localRanks; local++) {
    const auto record = plan.local(local);
    for (uint32_t i = 0; header.ranks > 1 && i < record.edgeCount; i++) {
      const auto edge = plan.edge(record.firstEdge + i);
      const bool shm = edge.transport == uint8_t(plan::Transport::shm);
      if (shm && edge.segmentOffset + connectionBytes(edge.steps, edge.stepBytes) > header.segmentBytes) {
        __builtin_trap();
      }
      if (edge.nic == plan::kNoNic) continue;
      for (const char letter : plan.describePeerNic(edge)) sink = sink + uint64_t(letter);
      sink = sink + plan.nicName(edge.nic).size() + plan.nicAddress(edge.nic).size();
    }
    for (uint32_t other = 0; other < header.localRanks; other++) {
      const bool shm = header.localRanks > 1 && header.sameHostTransport == uint8_t(plan::Transport::shm);
      if (shm && plan.pairOffset(local, other) + connectionBytes(header.pairSteps, header.pairStepBytes) >
                     header.segmentBytes) {
        __builtin_trap();
      }
    }
  }
  for (uint32_t row = 0; row < header.tuningTable.count; row++) {
    const auto record = plan.tuning(row);
    for (uint32_t i = 0; i < record.variantCount; i++) sink = sink + plan.variant(record.firstVariant + i).chunkBytes;
  }
  return true;
}

}  // namespace ncclrun::test
