// One size, out of place or in place, measured as nccl-tests does: operations queued back to back on one stream; the
// time is the mean over iterations and ranks; the buffers' place moves from iteration to iteration through memory of
// the largest size.
#pragma once
#include <cstdint>
#include <optional>

#include "collective.h"
#include "memory.h"
#include "options.h"
#include "session.h"

// What is done to which elements.
struct Subject {
  const Collective& collective;
  const ElementType& type;
  const Operator& op;
};

struct Measurement {
  size_t bytes;  // of the larger buffer of a rank
  size_t count;  // as in the call
  bool inPlace;
  double microseconds;
  double algorithmBandwidth;     // GB/s
  double busBandwidth;           // GB/s
  std::optional<int64_t> wrong;  // elements of all ranks; none if not checked
};

class Measure {
 public:
  Measure(const Options& options, Session& session);

  // `bytes` at most options.end.
  Measurement run(const Subject& subject, size_t bytes, bool inPlace);

  // Microseconds per operation out of place, mean over ranks, of `iterations` queued together as operations of so many
  // bytes are (ncclrunCommChooseAs). On GPUs they are a graph, so that it is not launching that takes the time.
  double timeAs(const Subject& subject, size_t bytes, uint64_t chosenAs, int iterations);
  // Of the larger buffer; 0: so few bytes have no element for every rank.
  size_t wholeBytes(const Collective& collective, const ElementType& type, size_t bytes) const;

 private:
  // The subject at one size: where the buffers of an iteration lie.
  struct Case {
    const Subject& subject;
    ncclRedOp_t op;
    bool inPlace;
    size_t count;
    size_t sendBytes;
    size_t receiveBytes;
  };
  struct Place {
    std::byte* send;
    std::byte* receive;
  };

  size_t parts(Extent extent) const;
  Case caseOf(const Subject& subject, ncclRedOp_t op, size_t bytes, bool inPlace) const;
  double secondsOfGraph(const Case& one, uint64_t chosenAs, int iterations);
  Place placeOf(const Case& one, int iteration) const;
  void start(const Case& one, const Place& position);
  void repeat(const Case& one, int times);
  double timeOne(const Case& one);
  int64_t wrongElements(const Case& one);

  const Options& options_;
  Session& session_;
  const Memory send_;
  const Memory receive_;
  uint64_t seed_ = 0;
};
