// Teams of the device interface: sets of a communicator's ranks. Without device memory that peers can reach, the ranks
// that reach each other by loads and stores (the LSA team) are each rank alone.
#include "abi/call.h"
#include "abi/newer.h"

using namespace ncclrun;

namespace {

constexpr ncclTeam_t kNobody = {0, 0, 0};

// read(communicator) if its membership is known, else `otherwise` with the sentence set.
template <typename Answer, typename Read>
Answer withMembership(const char* function, ncclComm_t comm, Answer otherwise, Read&& read) noexcept {
  Answer answer = otherwise;
  call(function, [&] {
    const auto communicator = lookUp(function, comm);
    if (communicator == nullptr) return ncclInvalidArgument;
    if (!communicator->hasMembership()) {
      return fail(ncclInvalidUsage, "%s: the communicator is still being set up", function);
    }
    answer = read(*communicator);
    return ncclSuccess;
  });
  return answer;
}

ncclTeam_t everybody(const Communicator& communicator) {
  return {static_cast<int>(communicator.size()), static_cast<int>(communicator.rank()), 1};
}

int inWorld(const Communicator& communicator, const ncclTeam_t& team, int rank) {
  return static_cast<int>(communicator.rank()) + (rank - team.rank) * team.stride;
}

}  // namespace

NCCLRUN_EXPORT ncclTeam_t ncclTeamWorld(ncclComm_t comm) {
  return withMembership("ncclTeamWorld", comm, kNobody, everybody);
}
NCCLRUN_TWIN(ncclTeamWorld);

NCCLRUN_EXPORT ncclTeam_t ncclTeamLsa(ncclComm_t comm) {
  return withMembership("ncclTeamLsa", comm, kNobody, [](const Communicator&) { return ncclTeam_t{1, 0, 1}; });
}
NCCLRUN_TWIN(ncclTeamLsa);

NCCLRUN_EXPORT ncclTeam_t ncclTeamRail(ncclComm_t comm) {
  return withMembership("ncclTeamRail", comm, kNobody, everybody);
}
NCCLRUN_TWIN(ncclTeamRail);

NCCLRUN_EXPORT int ncclTeamRankToWorld(ncclComm_t comm, ncclTeam_t team, int rank) {
  return withMembership("ncclTeamRankToWorld", comm, -1,
                        [&](const Communicator& communicator) { return inWorld(communicator, team, rank); });
}
NCCLRUN_TWIN(ncclTeamRankToWorld);

// 0 for the rank itself; others are not in the team.
NCCLRUN_EXPORT int ncclTeamRankToLsa(ncclComm_t comm, ncclTeam_t team, int rank) {
  return withMembership("ncclTeamRankToLsa", comm, -1, [&](const Communicator& communicator) {
    return inWorld(communicator, team, rank) - static_cast<int>(communicator.rank());
  });
}
NCCLRUN_TWIN(ncclTeamRankToLsa);
