// What every collective network passes, whatever is behind it; net_collective_test and aggregator_test instantiate it.
#pragma once
#include <span>

#include "net/group_members.h"

namespace ncclrun::test {

net::Request* post(Member& member, const net::RegisteredBuffer& send, const net::RegisteredBuffer& receive,
                   size_t count, ncclDataType_t type = ncclFloat32, ncclRedOp_t op = ncclSum);
// One reduction, whose result must be that of a serial one in rank order, bit for bit.
void reduceAndCompare(Member& member, size_t count, ncclDataType_t type, ncclRedOp_t op);

void everyReductionIsTheSerialOne(Members& members, std::span<const ncclDataType_t> types,
                                  std::span<const ncclRedOp_t> operators, std::span<const size_t> counts);
void eightCollectivesAreUnderWay(Members& members);
// A device and a member that do not exist are refused.
void wrongArgumentsAreRefused(Members& members);

}  // namespace ncclrun::test
