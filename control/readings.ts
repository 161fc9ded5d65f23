/**
 * What `ncclrun doctor` reads on a host: facts without a judgement. A reading that the system does not give is null, and `unread` says why. Counters
 * count from the start of the machine. Bytes, seconds and milliseconds are named so; a limit that does not exist is "unlimited".
 */
import * as v from 'valibot';

const count = v.pipe(v.number(), v.integer(), v.minValue(0));
const size = v.pipe(v.number(), v.minValue(0));
const word = v.pipe(v.string(), v.maxLength(1000));
const list = <Item extends v.GenericSchema>(item: Item) => v.pipe(v.array(item), v.maxLength(4096));
const limit = v.nullable(v.union([size, v.literal('unlimited')]));

const system = v.object({
  kernel: word,
  distribution: word,
  node: word,
  /** Version of glibc; null: another library of C, or it is not known. */
  libc: v.optional(v.nullable(word), null),
  /** Null: the processor does not say. */
  virtual: v.nullable(v.boolean()),
  container: v.boolean(),
  /** Equal for entries that are one machine. */
  bootId: word,
  machineName: word,
});

const processors = v.object({
  online: count,
  present: count,
  /** That this process may use. */
  usable: count,
  governors: list(word),
  /** Processes that ran or wanted to in the last minute, in the mean. */
  load: v.nullable(size),
  /** Part of the time of `overSeconds` that the hypervisor gave to others, and that processes used. */
  stolen: v.nullable(size),
  used: v.nullable(size),
  overSeconds: size,
  /** Cores that each process used or waited for. */
  busiest: list(v.object({ pid: count, command: word, cores: size })),
});

const memory = v.object({
  totalBytes: v.nullable(size),
  availableBytes: v.nullable(size),
  swapUsedBytes: v.nullable(size),
  /** In the time of `processors.overSeconds`. */
  swappedPages: v.nullable(count),
  numaNodeBytes: list(size),
  /** Set aside as huge pages, so no ordinary allocation can have them. */
  hugePageBytes: v.optional(v.nullable(size), null),
  uncorrectedErrors: v.nullable(count),
  correctedErrors: v.nullable(count),
});

const processes = v.object({
  total: count,
  maximum: v.nullable(count),
  zombies: count,
  /** In uninterruptible sleep at both readings. */
  uninterruptible: list(v.object({ pid: count, command: word, place: v.nullable(word) })),
});

const cgroup = v.object({
  /** Cores' worth of time; null: no limit. */
  cores: v.nullable(size),
  memoryBytes: v.nullable(size),
  /** Without what the kernel can drop, such as cached files. */
  memoryUsedBytes: v.optional(v.nullable(size), null),
  tasks: v.nullable(count),
  tasksNow: v.nullable(count),
  throttledPeriods: v.nullable(count),
  /** Those within `processors.overSeconds`. */
  throttledMeanwhile: v.optional(v.nullable(count), null),
});

const limits = v.object({
  lockedMemoryBytes: limit,
  openFiles: limit,
  stackBytes: limit,
  processes: limit,
  coreBytes: limit,
});

const kernelSettings = v.object({
  ptraceScope: v.nullable(count),
  portRange: v.nullable(v.tuple([count, count])),
  receiveBufferBytes: v.nullable(count),
  sendBufferBytes: v.nullable(count),
  numaBalancing: v.nullable(count),
  hugePages: v.nullable(word),
  removesIpc: v.boolean(),
  /** kernel.core_pattern, and whether its directory or program exists; null: a container, where they are the host's. */
  corePattern: v.optional(v.nullable(word), null),
  corePlaceExists: v.optional(v.nullable(v.boolean()), null),
  /** Of the network cards, the strictest check of where packets come from, and the readiest answer to ARP for other interfaces' addresses. */
  reversePathFilter: v.nullable(count),
  arpIgnore: v.nullable(count),
});

const networkInterface = v.object({
  name: word,
  addresses: list(word),
  /** Of those addresses: 10.0.0.0/24. */
  networks: list(word),
  mtu: count,
  speedMbps: v.nullable(count),
  up: v.boolean(),
  duplex: v.nullable(word),
  carrierChanges: v.nullable(count),
  receiveErrors: count,
  sendErrors: count,
  receiveDrops: count,
  sendDrops: count,
  /** Of a network card, not one that the kernel makes up. */
  hardware: v.boolean(),
});

const infiniband = v.object({
  card: word,
  /** On the PCI bus. */
  address: v.optional(v.nullable(word), null),
  port: count,
  state: word,
  physicalState: word,
  rateMbps: v.nullable(count),
  linkLayer: word,
  firmware: v.nullable(word),
  board: v.nullable(word),
  lid: v.nullable(count),
  subnetManagerLid: v.nullable(count),
  /** Whether it has an address for RoCE v2 that comes from an IP address; null: it is no Ethernet. */
  roceAddress: v.nullable(v.boolean()),
  /** Places of such addresses in the port's table, as NCCL_IB_GID_INDEX names them. */
  roceIndices: v.optional(list(count), []),
  /** By the kernel's name: symbol_error, link_downed, …; those of `hw_counters` too. */
  counters: v.record(word, count),
});

/** How the Ethernet interface of a RoCE port avoids losses. */
const roce = v.object({
  card: word,
  port: count,
  interface: word,
  mtu: v.nullable(count),
  /** Whether packets have their priority by IP header or by VLAN tag; null: no tool tells. */
  trust: v.nullable(v.picklist(['dscp', 'pcp'])),
  hasVlan: v.boolean(),
  /** Priorities with flow control (PFC); null: no tool tells. */
  pausing: v.nullable(list(count)),
  /** Priorities of which pause frames were sent or received. */
  paused: list(count),
  /** Priorities with ECN: at which marks are reported to the sender, and at which the sender slows down; null: the driver does not tell. */
  notifying: v.nullable(list(count)),
  reacting: v.nullable(list(count)),
});

const pciDevice = v.object({
  address: word,
  kind: v.picklist(['gpu', 'nic']),
  width: v.nullable(count),
  maximumWidth: v.nullable(count),
  /** GT/s per lane. */
  speed: v.nullable(size),
  maximumSpeed: v.nullable(size),
  /** The narrowest link between it and the processor, where that has less bandwidth than its own. */
  bottleneck: v.nullable(v.object({ address: word, width: count, speed: size })),
  /** Bytes that it asks for at once at most; null: only root may read that. */
  readRequestBytes: v.nullable(count),
  /** Maximum of data in one packet, as it is set; null: only root may read that. */
  payloadBytes: v.optional(v.nullable(count), null),
  /** Bridges above it, from the processor's port down. */
  bridges: v.optional(list(word), []),
  correctableErrors: v.nullable(count),
  nonfatalErrors: v.nullable(count),
  fatalErrors: v.nullable(count),
});

const pciBus = v.object({
  /** Whether devices' accesses go through tables of the kernel: null: there is no IOMMU. */
  iommu: v.nullable(v.picklist(['translated', 'passthrough'])),
  /** Bridges above GPUs and network cards that send what these say to each other through the processor; null: only root may read that. */
  redirecting: v.nullable(list(word)),
});

const gpu = v.object({
  index: count,
  busId: word,
  name: word,
  vbios: v.nullable(word),
  eccEnabled: v.nullable(v.boolean()),
  eccPending: v.nullable(v.boolean()),
  uncorrectedErrors: v.nullable(count),
  correctedErrors: v.nullable(count),
  /** Uncorrected ones of on-chip memory in the GPU's life, and whether NVML calls them too many. */
  sramErrors: v.nullable(count),
  sramWornOut: v.nullable(v.boolean()),
  /** What a reset is to repair: channel_repair_pending, tpc_repair_pending; or cannot: unrepairable_memory. */
  repairsPending: list(word),
  /** Pages of memory that are not used any more because of two wrong bits; GPUs before A100. */
  retiredPages: v.nullable(count),
  /** Rows of the memory that were replaced by spare ones. */
  remappedRows: v.nullable(count),
  remapPending: v.nullable(v.boolean()),
  remapFailed: v.nullable(v.boolean()),
  recoveryAction: v.nullable(word),
  persistence: v.nullable(v.boolean()),
  computeMode: v.nullable(word),
  migEnabled: v.nullable(v.boolean()),
  /** Of NVSwitches: Completed, In Progress, …; null: there is none. */
  fabric: v.nullable(word),
  /** Of a fabric over several hosts, as cluster and clique; null: there is none. */
  domain: v.optional(v.nullable(v.object({ cluster: word, clique: word })), null),
  temperature: v.nullable(size),
  /** Degrees below where it slows down; null: the driver does not say. */
  temperatureMargin: v.nullable(v.number()),
  powerLimitWatts: v.nullable(size),
  defaultPowerLimitWatts: v.nullable(size),
  smClockMhz: v.nullable(count),
  maximumSmClockMhz: v.nullable(count),
  /** Why the clocks are lower than they could be: hw_slowdown, hw_thermal_slowdown, hw_power_brake, sw_power_cap, … */
  throttled: list(word),
  /** In which the hardware lowered its clocks for heat or power, since the driver started. */
  throttledMicroseconds: v.nullable(size),
  /** Packets of PCIe that were sent again. */
  pcieReplays: v.nullable(count),
  freeBytes: v.nullable(size),
  totalBytes: v.nullable(size),
  processes: list(v.object({ pid: count, command: word, bytes: size })),
  activeNvlinks: v.nullable(count),
  /** Different ones of its active links, in GB/s. */
  nvlinkSpeeds: list(size),
  nvlinkErrors: v.nullable(count),
});

const gpus = v.object({
  driver: v.nullable(word),
  unifiedMemory: v.boolean(),
  /** nvidia-peermem is loaded; the kernel modules are the open ones, which serve network cards by dma-buf. */
  peerMemory: v.boolean(),
  openDriver: v.boolean(),
  /** NVIDIA GPUs on the PCI bus. */
  onBus: count,
  /** Null where NVML cannot be asked. */
  devices: v.nullable(list(gpu)),
});

/** What memory of GPUs of other hosts needs where NVLinks lead there. */
const imex = v.object({
  /** Files /dev/nvidia-caps-imex-channels/channel*, and those that this user may open. */
  channels: count,
  usableChannels: count,
  /** What nvidia-imex-ctl says: READY, …; null: it is not there. */
  state: v.nullable(word),
});

const kernelLog = v.object({
  /** False: kernel.dmesg_restrict, or a container. */
  readable: v.boolean(),
  /** Errors of GPUs (Xid) and NVSwitches (SXid), the last ones. */
  xids: list(
    v.object({ code: count, nvswitch: v.boolean(), address: word, message: word, hoursAgo: v.nullable(size) }),
  ),
});

const directory = v.object({
  /** What ncclrun and programs use it for: "working directory", "cache", "/tmp", "/dev/shm". */
  use: word,
  path: word,
  /** Null: statfs did not return, or failed. */
  totalBytes: v.nullable(size),
  freeBytes: v.nullable(size),
  freeFiles: v.nullable(size),
  readOnly: v.boolean(),
  noexec: v.boolean(),
  writable: v.boolean(),
  fileSystem: v.nullable(word),
});

const files = v.object({
  directories: list(directory),
  /** Mounts whose statfs did not return in time. */
  hanging: list(v.object({ path: word, fileSystem: word, source: word })),
  /** Of NCCL and PyTorch in /dev/shm, of which no process is left. */
  staleSharedMemory: v.object({ files: count, bytes: size }),
});

const clock = v.object({
  /** Milliseconds since 1970, taken last. */
  now: v.number(),
  /** By NTP or PTP, as the kernel knows. */
  synchronised: v.nullable(v.boolean()),
  /** Milliseconds since the host started, at the same moment; no one sets this clock. */
  monotonic: v.optional(v.nullable(v.number()), null),
  /** By which the clock left the monotonic one while the host was watched; negative: backwards. */
  steppedMs: v.optional(v.nullable(v.number()), null),
});

/** What --data asks for. */
const data = v.object({
  path: word,
  bytes: size,
  seconds: size,
  /** Null: it could be read. */
  problem: v.nullable(word),
});

/** A command of this user's shell, started as by sshd. */
const login = v.object({
  shell: word,
  /** That the files of the login write on stdout before the command runs. */
  bytes: count,
  line: word,
});

const environment = v.object({
  /** Variables that change what NCCL does, with the file or "environment". */
  nccl: list(v.object({ name: word, value: word, source: word })),
  visibleGpus: v.nullable(word),
  /** Why ncclrun's engine cannot be loaded; null: it can. */
  engineProblem: v.nullable(word),
  /** libnccl.so.2 that programs find first by LD_LIBRARY_PATH or LD_PRELOAD. */
  library: v.nullable(word),
  /** Of that one, else of the system's: 2.27.3; null: there is none, or its name does not tell. */
  libraryVersion: v.optional(v.nullable(word), null),
});

export const hostReadings = v.object({
  schemaVersion: v.literal(1),
  version: word,
  seconds: size,
  system,
  processors,
  memory,
  processes,
  cgroup,
  limits,
  kernelSettings,
  interfaces: list(networkInterface),
  /** Where other hosts may reach it, best first. */
  reachable: v.optional(list(word), []),
  infiniband: list(infiniband),
  roce: v.optional(list(roce), []),
  /** Of /dev/infiniband/uverbs*: how many there are, and how many this user may open. */
  verbsDevices: v.object({ present: count, usable: count }),
  pci: list(pciDevice),
  pciBus,
  imex: v.optional(imex, { channels: 0, usableChannels: 0, state: null }),
  kernelLog,
  /** Null: there is no Slurm, or it does not know this host. */
  slurm: v.nullable(v.object({ state: word, reason: v.nullable(word), gpus: v.nullable(count) })),
  bonds: list(v.object({ name: word, slaves: list(word), down: list(word) })),
  gpus,
  files,
  clock,
  environment,
  /** Null: nobody asks, or it cannot be told. */
  data: v.optional(v.nullable(data), null),
  login: v.optional(v.nullable(login), null),
  /** By reading, why it could not be taken. */
  unread: v.record(word, word),
});
/** What may grow under load. */
export const hostCounters = v.pick(hostReadings, ['interfaces', 'infiniband', 'pci', 'gpus', 'memory']);
export type HostCounters = v.InferOutput<typeof hostCounters>;
export type HostReadings = v.InferOutput<typeof hostReadings>;
export type GpuReading = v.InferOutput<typeof gpu>;
export type DirectoryReading = v.InferOutput<typeof directory>;
export type InterfaceReading = v.InferOutput<typeof networkInterface>;
