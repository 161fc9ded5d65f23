/* Memory, streams, events and graphs of the device that the program runs on. On the host device (NCCLRUN_DEVICE=host)
 * streams are host streams, an event is a number that a stream counts, and a graph runs its calls again each time. */
#pragma once
#include <stdatomic.h>
#include <stddef.h>

#include "ncclrun.h"

int onGpus(void);
/* The number of a rank's GPU: its own, or, where there are fewer GPUs than ranks, one that it shares. */
int gpuOf(int rank);
/* Ranks on a GPU, at most. */
int ranksOfGpu(void);
/* The calling thread's GPU. */
void useDevice(int number);
/* A communicator of `count` ranks on their GPUs, all of them in the calling thread. */
void joinAllHere(ncclComm_t* comms, int count);

cudaStream_t makeStream(void);
/* Waits for what is queued; errors are no matter. */
void endStream(cudaStream_t stream);
/* Waits until all that is queued has ended; what became of it. On GPUs an operation's failure is told by its
 * communicator only. */
ncclResult_t ended(cudaStream_t stream);
/* Waits for the same without giving the thread away; what became of it is no matter to the host device. */
void awaitIdle(cudaStream_t stream);

void* makeMemory(size_t bytes);
void freeMemory(void* memory);
/* Of the current GPU; 0 on the host device. */
size_t freeGpuMemory(void);

/* Queued: a copy between any two of host and device; a wait until *gate is not 0. */
void copy(void* to, const void* from, size_t bytes, cudaStream_t stream);
void hold(cudaStream_t stream, atomic_int* gate);

typedef struct Event Event;
Event* makeEvent(void);
void endEvent(Event* event);
void record(Event* event, cudaStream_t stream);
/* What is queued from now on begins after the event was last recorded. */
void follow(cudaStream_t stream, Event* event);

typedef struct Graph Graph;
/* What body(argument) queues on the stream becomes a graph. */
Graph* capture(cudaStream_t stream, void (*body)(void* argument), void* argument);
void launch(Graph* graph, cudaStream_t stream);
void endGraph(Graph* graph);
