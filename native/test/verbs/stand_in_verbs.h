// A stand-in for libibverbs.so.1: RDMA devices that are memory of this machine's processes, so that the engine's verbs
// backend runs, and fails in every way, where there is no such device. The library has the symbols and versions of
// rdma-core; queue pairs, completion queues, registrations and events behave as the InfiniBand specification and the
// ibv_* manual pages say, where these leave a choice as rdma_rxe does.
//
// Queue pairs of one process reach each other by copies. Those of several processes, also of hosts made of namespaces,
// use Unix sockets in a directory that they share (STAND_IN_VERBS_DIR). A killed process is a peer that is gone.
// Limitation: a stopped process (SIGSTOP) answers nothing, whereas a real adapter would.
//
// STAND_IN_VERBS_DIR   directory shared by the processes: their sockets, and the file `control`
// STAND_IN_VERBS_NAME  name of this process in lines of `control`; the host name always works too
// STAND_IN_VERBS       the devices: words separated by white space or ';'. Without it: "device=sia device=sib"
//
//   Of the library, before the first device:
//     seed=N          of all random choices (1)
//     fork=0|1|2      what ibv_is_fork_initialized answers: off, on, not needed (2)
//     memlock=BYTES   registrations beyond fail with ENOMEM (no limit)
//     dmabuf=1        ibv_reg_dmabuf_mr registers a descriptor that can be mapped, else EOPNOTSUPP (0)
//     delay=LOW-HIGH  microseconds that each send takes, drawn at random (0-0: sends end within ibv_post_send)
//     reorder=1       completions of different queue pairs are polled in random order (0)
//     retry7=forever  a retry count of 7 has no end, as with rdma_rxe (7 retries)
//     clean=1         ibv_destroy_qp takes the pair's completions out of its queues, as mlx5 does (0: they stay there)
//     access-event=1  a receiver that refuses an access gets the event QP_ACCESS_ERR, as with mlx5 (0)
//     devices=0       no device at all
//   device=NAME begins a device; until the next one:
//     open=ERRNO  ibv_open_device fails so · inline=BYTES (512) · wr=N max_qp_wr (16384) · cqe=N (65536) · sge=N (32)
//     qps=N (4000) · fabric=NAME only devices of equal fabrics reach each other ("")
//   port=N begins another port of the device, until the next one; each device has port 1:
//     link=ethernet|ib · state=active|down|init · mtu=BYTES (4096) · gbps=N (100) · lid=N (on ib: the device's number)
//     pkeys=N  entries of the table of partition keys (1)
//     gid=A  adds an address: IPv4 (10.8.0.1), IPv6, or net:IF, the IPv4 addresses of an interface. Ethernet ports have
//            fe80::... at index 0 before these; without any gid= device D has 10.8.<port-1>.D at index 1
//     linklocal=0  not the address fe80::... · roce=1  index by index version 1 before version 2, as mlx5 has them
//
// Faults, as lines of `control` or by stand_in_verbs_plant. A line that begins with @NAME is for the process or host of
// that name. Each process carries out all lines of `control` in their order, also those that are older than itself.
//     status=S after=K [device=D] [op=write|write-imm|send|read|receive] [qp=N] [delivered=1]
//         the K-th matching request from now on (1: the next one) ends with status S and its queue pair in the error
//         state; with delivered=1 the peer has got the data all the same
//     port=down|up device=D [number=P]   traffic is swallowed; events PORT_ERR, PORT_ACTIVE
//     event=E [device=D] [number=P] [qp=N]   QP_FATAL and DEVICE_FATAL also put queue pairs into the error state;
//         events of queue pairs are for all of the device unless one is named, those of completion queues for all
//     drop=RATE [device=D]  share of messages that are lost on arrival or departure: 1 all, 0 none again
//     refuse=mr|dmabuf|qp|cq|pd|modify|open|channel [errno=N] [count=N] [device=D]  the next calls fail (12, 1)
//     gid=A index=I device=D [number=P]  changes an address ("none" removes it); event GID_CHANGE
//     delay=LOW-HIGH · reorder=0|1
#pragma once
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// Plants the faults of `text`, one per line. Returns 0, or EINVAL if a line cannot be read: none of the later ones is
// planted.
int stand_in_verbs_plant(const char* text);

// Reads `text` in place of STAND_IN_VERBS, and forgets all faults. EBUSY while a context is open, EINVAL if it cannot
// be read.
int stand_in_verbs_configure(const char* text);

// Number of live "contexts", "domains", "regions", "channels", "completion queues", "queue pairs"; or since the library
// was loaded of "messages", "announced" (those with data and an immediate), "retransmissions", "lost". -1 for other
// words.
long stand_in_verbs_count(const char* what);

// Writes what the queue pairs of a device that are connected were given, a line each: "pkey=0 sl=0 tc=0 timeout=17
// retries=6". Returns the bytes, or -1 where they do not fit.
long stand_in_verbs_settings(const char* device, char* text, size_t bytes);

#ifdef __cplusplus
}
#endif
