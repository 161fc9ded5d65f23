// Making and closing a group (group.h). All members must come; the first one accepts the others.
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "group.h"

enum { JOIN_SECONDS = 20, PAUSE_US = 100 };

int exampleLeave(void* opaque) {
  struct group* group = opaque;
  for (int i = 0; i < group->peerCount; i++) {
    if (group->peers[i].sendComm != NULL) exampleClose(group->peers[i].sendComm);
    if (group->peers[i].recvComm != NULL) exampleClose(group->peers[i].recvComm);
  }
  for (int i = 0; i < COLL_MAX_REQUESTS; i++) {
    free(group->operations[i].exchanges);
    free(group->operations[i].scratch);
  }
  freeStages(&group->context);
  pthread_mutex_destroy(&group->context.mutex);
  free(group->peers);
  free(group);
  return NET_OK;
}

// Repeats test() until the request is complete or the time is over.
static int await(void* request, time_t end) {
  int done = 0, bytes = 0;
  while (request != NULL && !done) {
    const int result = exampleTest(request, &done, &bytes);
    if (result != NET_OK) return result;
    if (time(NULL) > end) return NET_REMOTE_ERROR;
    if (!done) usleep(PAUSE_US);
  }
  return NET_OK;
}

static int connectTo(struct context* context, void* handle, void** comm, time_t end) {
  int result = NET_OK;
  while (result == NET_OK && *comm == NULL && time(NULL) <= end) {
    result = exampleConnect(context, 0, handle, comm, NULL);
    if (result == NET_OK && *comm == NULL) usleep(PAUSE_US);
  }
  return result == NET_OK && *comm == NULL ? NET_REMOTE_ERROR : result;
}

static int acceptFrom(void* listenComm, void** comm, time_t end) {
  int result = NET_OK;
  while (result == NET_OK && *comm == NULL && time(NULL) <= end) {
    result = exampleAccept(listenComm, comm, NULL);
    if (result == NET_OK && *comm == NULL) usleep(PAUSE_US);
  }
  return result == NET_OK && *comm == NULL ? NET_REMOTE_ERROR : result;
}

// The first member: whoever has connected says which rank it is.
static int welcome(struct group* group, void* handles[], void* listenComm, time_t end) {
  for (int i = 0; i < group->peerCount; i++) {
    void *comm = NULL, *request = NULL;
    int32_t rank = 0;
    void* data = &rank;
    size_t bytes = sizeof rank;
    int tag = GROUP_TAG;
    int result = acceptFrom(listenComm, &comm, end);
    if (result == NET_OK) result = exampleReceive(comm, 1, &data, &bytes, &tag, NULL, NULL, &request);
    if (result == NET_OK) result = await(request, end);
    if (result == NET_OK && (rank < 1 || rank > group->peerCount || group->peers[rank - 1].recvComm != NULL))
      result = NET_INVALID_USAGE;
    if (result != NET_OK) {
      if (comm != NULL) exampleClose(comm);
      return result;
    }
    group->peers[rank - 1].recvComm = comm;
  }
  for (int i = 0; i < group->peerCount; i++) {
    const int result = connectTo(&group->context, handles[i + 1], &group->peers[i].sendComm, end);
    if (result != NET_OK) return result;
  }
  return NET_OK;
}

static int arrive(struct group* group, void* handles[], void* listenComm, time_t end) {
  int32_t rank = group->rank;
  void* request = NULL;
  int result = connectTo(&group->context, handles[0], &group->peers[0].sendComm, end);
  if (result == NET_OK)
    result = exampleSend(group->peers[0].sendComm, &rank, sizeof rank, GROUP_TAG, NULL, NULL, &request);
  if (result == NET_OK) result = await(request, end);
  return result == NET_OK ? acceptFrom(listenComm, &group->peers[0].recvComm, end) : result;
}

// May block, unlike connect() of the network: until all members have come.
int exampleJoin(void* handles[], int members, int rank, void* listenComm, void** collComm) {
  *collComm = NULL;
  struct group* group = calloc(1, sizeof *group);
  if (group == NULL) return NET_SYSTEM_ERROR;
  *group = (struct group){.rank = rank, .members = members, .peerCount = rank == 0 ? members - 1 : 1};
  pthread_mutex_init(&group->context.mutex, NULL);
  group->peers = calloc((size_t)group->peerCount + 1, sizeof *group->peers);
  const time_t end = time(NULL) + JOIN_SECONDS;
  int result = group->peers == NULL ? NET_SYSTEM_ERROR
               : rank == 0          ? welcome(group, handles, listenComm, end)
                                    : arrive(group, handles, listenComm, end);
  if (result != NET_OK) {
    WARN("the group of %d members is not complete", members);
    exampleLeave(group);
    return result;
  }
  *collComm = group;
  return NET_OK;
}
