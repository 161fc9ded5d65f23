#include "net/collective_scenarios.h"

#include "base/element.h"
#include "net/contribution.h"

namespace ncclrun::test {

using net::RegisteredBuffer;
using net::Request;

Request* post(Member& member, const RegisteredBuffer& send, const RegisteredBuffer& receive, size_t count,
              ncclDataType_t type, ncclRedOp_t op) {
  Request* request = nullptr;
  while (request == nullptr) OK(member.group->iallreduce(send, receive, count, {type, op}, request));
  return request;
}

void reduceAndCompare(Member& member, size_t count, ncclDataType_t type, ncclRedOp_t op) {
  GroupMemory from(*member.group, count * elementBytes(type)), to(*member.group, count * elementBytes(type));
  fillContribution(type, from.bytes.data(), member.rank, count);
  OK(member.await(post(member, from.buffer(), to.buffer(), count, type, op)));
  const std::vector<char> expected = serial(type, member.members, count, op);
  if (std::memcmp(to.bytes.data(), expected.data(), expected.size()) == 0) return;
  failTest(__FILE__, __LINE__,
           "rank " + std::to_string(member.rank) + ": " + std::to_string(count) + " elements of type " +
               std::to_string(type) + " by operator " + std::to_string(op) + " differ from the serial reduction");
}

void everyReductionIsTheSerialOne(Members& members, std::span<const ncclDataType_t> types,
                                  std::span<const ncclRedOp_t> operators, std::span<const size_t> counts) {
  members.connected([&](Member& member) {
    for (const ncclDataType_t type : types) {
      for (const ncclRedOp_t op : operators) {
        EXPECT(member.collective->canReduce({type, op}));
        for (const size_t count : counts) reduceAndCompare(member, count, type, op);
      }
    }
  });
}

void eightCollectivesAreUnderWay(Members& members) {
  members.connected([](Member& member) {
    constexpr size_t kCount = 5000, kBytes = kCount * sizeof(float);
    GroupMemory from(*member.group, kBytes * 12), to(*member.group, kBytes * 12);
    for (size_t i = 0; i < 12; i++) fillContribution<float>(from.bytes.data() + i * kBytes, member.rank, kCount);
    std::vector<Request*> requests;
    for (size_t i = 0; i < 12; i++) {
      Request* request = nullptr;
      OK(member.group->iallreduce(from.buffer(i * kBytes), to.buffer(i * kBytes), kCount, {}, request));
      EXPECT((request != nullptr) == (i < 8));
      if (request != nullptr) requests.push_back(request);
    }
    // Those behind the oldest one are not complete before it.
    bool done = true;
    OK(member.group->test(requests[5], done));
    EXPECT(!done);
    for (Request* const request : requests) OK(member.await(request));
    const std::vector<char> expected = serial<float>(member.members, kCount, ncclSum);
    for (size_t i = 0; i < 8; i++) EXPECT(std::memcmp(to.bytes.data() + i * kBytes, expected.data(), kBytes) == 0);
  });
}

void wrongArgumentsAreRefused(Members& members) {
  net::Handle handle;
  Member& member = members.all[0];
  const uint32_t count = uint32_t(members.all.size());
  REFUSED(member.collective->listen(99, handle, member.listener), ncclInvalidArgument, "there is no device 99");
  REFUSED(member.listener->connect(members.handles, count, member.group), ncclInvalidArgument,
          "a group of " + std::to_string(count) + " has no member " + std::to_string(count));
}

}  // namespace ncclrun::test
