// Runs one launch of one communicator on the calling thread: converts operations into blocks and runs the algorithms.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "algorithm/work.h"
#include "datapath/launch.h"
#include "host/blocks.h"
#include "host/connections.h"
#include "host/primitives.h"
#include "plan/collnet_shape.h"
#include "plan/rail_shape.h"

namespace ncclrun {

class OperationRunner {
 public:
  OperationRunner(const PlanView& plan, Connections& ends, uint32_t rank)
      : plan_(plan), connections_(ends), rank_(rank) {}

  // Sends and receives of the launch together first, then its collectives in order. One call at a time.
  Status run(const Launch& launch, SpinWait& spin, Telemetry& telemetry, const Recorder& recorder);

 private:
  using Algorithm = void (*)(HostPrimitives& primitives, const Work& work);
  struct Block {
    std::vector<Endpoint*> receives, sends;
    std::vector<Work> works;  // one after the other, over the same connections
    Algorithm algorithm = nullptr;
    Reduction reduction;
    std::vector<std::byte> scratch;
    bool stream = false;
    bool lends = true;   // connections may send from and receive into the user's buffers
    uint32_t parts = 1;  // that a step gives the block
  };
  struct Ring {
    uint32_t index = 0;
    std::vector<uint32_t> ranks;
    Endpoint* next = nullptr;
    Endpoint* previous = nullptr;
  };

  // This rank's position in the tree with one root.
  struct Tree {
    uint32_t children = 0;
    std::vector<Endpoint*> receives, sends;  // the children's, then the parent's
  };

  // This rank's host and rail.
  struct Rail {
    RailPosition position;
    std::vector<uint32_t> ranks;  // by host
    std::vector<Endpoint*> receives, sends;
  };

  // False: a connection could not be had; the interrupt says why, or else the plan has none.
  bool buildSendsAndReceives(std::span<const Task* const> tasks);
  bool buildRing(const Task& task, Algorithm algorithm, uint32_t channels);
  bool buildDirect(const Task& task, Algorithm algorithm);
  bool buildStar(const Task& task, Algorithm algorithm);
  bool buildTree(const Task& task, Algorithm algorithm);
  bool buildRail(const Task& task, Algorithm algorithm);
  bool buildCollnet(const Task& task, Algorithm algorithm);
  bool buildCollnetChain(const Task& task, Algorithm algorithm);
  bool buildBarrier(const Task& task);
  bool build(const Task& task);
  // Of what was built.
  void useLL();
  Status copyToSelf(std::span<const Task* const> tasks) const;
  Block& addBlock(const Task& task, Algorithm algorithm);
  Reduction reductionOf(const Operation& operation) const;
  Work workOf(const Task& task) const;
  Ring* ring(uint32_t channel);
  const Tree* tree(uint32_t root);
  const Rail* rail();
  // This rank's neighbours in the chain of its host, or the network.
  struct Chain {
    ChainPosition position;
    std::vector<Endpoint*> receives, sends;
  };
  const Chain* collnetChain();
  // The ranks of this host, and the network behind them.
  const Rail* collnet();
  void addBlockOf(const Rail& rail, const Task& task, Algorithm algorithm, uint32_t parts);
  void runBlocks(Blocks& blocks);
  static void runBlock(void* argument, Blocks& blocks);

  const PlanView& plan_;
  Connections& connections_;
  const uint32_t rank_;
  std::deque<Ring> rings_;               // by channel, as far as used
  std::map<uint32_t, Tree> trees_;       // by root, as far as used
  std::optional<Rail> rail_;             // once used
  std::optional<Rail> collnet_;          // the same
  std::optional<Chain> collnetChain_;    // the same
  std::vector<Endpoint*> pairReceives_;  // by the peer's number among the others; once a direct algorithm was used
  std::vector<Endpoint*> pairSends_;
  std::vector<Block> blocks_;  // of the stage under way; kept for their memory
  size_t used_ = 0;
};

}  // namespace ncclrun
