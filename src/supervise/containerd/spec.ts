/** OCI runtime specifications for the node's own containers: https://github.com/opencontainers/runtime-spec/blob/main/config.md */

import { seccompProfile } from '../../wire/seccomp/profile.ts'

/** A mount inside a container, in the format of runc. */
export interface SpecMount {
  readonly destination: string
  readonly type?: string
  readonly source?: string
  readonly options?: readonly string[]
  /** A bind whose files have other owners inside: by the kernel's id-mapped mounts. */
  readonly uidMappings?: readonly IdMapping[]
  readonly gidMappings?: readonly IdMapping[]
}

/** As many ids from `containerID` on, on the disk, are those from `hostID` on in the mount. */
export interface IdMapping {
  readonly containerID: number
  readonly hostID: number
  readonly size: number
}

/** Limits of a control group: bytes, and the weight of cgroup version 2 (1 to 10000). */
export interface GroupLimits {
  readonly memoryMin?: number | undefined
  readonly memoryLow?: number | undefined
  readonly memoryMax?: number | undefined
  readonly swapMax?: number | undefined
  readonly cpuWeight?: number
}

/** What a service specifies of its container. */
export interface SpecOptions {
  readonly args: readonly string[]
  readonly env?: readonly string[]
  readonly cwd?: string
  readonly uid?: number
  readonly gid?: number
  /** Names with CAP_. Default: none. */
  readonly capabilities?: readonly string[]
  readonly readonlyRoot?: boolean
  /** Allocates a terminal for the program. */
  readonly terminal?: boolean
  /** Mount propagation from and into the container. */
  readonly rootPropagation?: 'private' | 'rslave' | 'rshared' | 'shared' | undefined
  readonly mounts?: readonly SpecMount[]
  readonly hostPid?: boolean
  readonly hostIpc?: boolean
  readonly hostCgroup?: boolean
  /** Every device and system call, unmasked /proc and /sys, no restriction of what execve may gain. */
  readonly privileged?: boolean
  /** Every device of the node, if the container has a file for it. */
  readonly allDevices?: boolean
  /** In place of the usual ones. */
  readonly maskedPaths?: readonly string[] | undefined
  readonly readonlyPaths?: readonly string[] | undefined
  readonly cgroup?: string | undefined
  readonly limits?: GroupLimits
  readonly oom?: number | undefined
  /** The label of its processes, where the kernel uses SELinux. */
  readonly selinuxLabel?: string | undefined
  readonly cgroupVersion: 1 | 2
}

/** The version of the OCI runtime specification that is written. */
export const ociVersion = '1.2.0'

const defaultPath = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** Paths that disclose details of the machine. */
export const maskedPaths = [
  '/proc/acpi',
  '/proc/asound',
  '/proc/kcore',
  '/proc/keys',
  '/proc/latency_stats',
  '/proc/timer_list',
  '/proc/timer_stats',
  '/proc/sched_debug',
  '/proc/scsi',
  '/sys/firmware',
  '/sys/devices/virtual/powercap',
]
/** Paths through which a container could change the machine. */
export const readonlyPaths = ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger']

/** Mounts that every container needs. */
export const basicMounts: readonly SpecMount[] = [
  { destination: '/proc', type: 'proc', source: 'proc', options: ['nosuid', 'noexec', 'nodev'] },
  { destination: '/dev', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'strictatime', 'mode=755', 'size=65536k'] },
  {
    destination: '/dev/pts',
    type: 'devpts',
    source: 'devpts',
    options: ['nosuid', 'noexec', 'newinstance', 'ptmxmode=0666', 'mode=0620', 'gid=5'],
  },
  { destination: '/dev/shm', type: 'tmpfs', source: 'shm', options: ['nosuid', 'noexec', 'nodev', 'mode=1777', 'size=65536k'] },
  { destination: '/dev/mqueue', type: 'mqueue', source: 'mqueue', options: ['nosuid', 'noexec', 'nodev'] },
  { destination: '/sys', type: 'sysfs', source: 'sysfs', options: ['nosuid', 'noexec', 'nodev', 'ro'] },
]

/** Builds the specification; containerd stores its JSON. The network and UTS namespaces are always the node's. */
export function ociSpec(options: SpecOptions): object {
  const { args, env = [], cwd = '/', uid = 0, gid = uid, capabilities = [], mounts = [], privileged = false } = options
  const replaced = new Set(mounts.map(({ destination }) => destination))
  return {
    ociVersion,
    process: {
      terminal: options.terminal,
      user: { uid, gid },
      args,
      env: env.some((entry) => entry.startsWith('PATH=')) ? env : [defaultPath, ...env],
      cwd,
      capabilities: { bounding: capabilities, effective: capabilities, permitted: capabilities },
      noNewPrivileges: !privileged,
      oomScoreAdj: options.oom,
      selinuxLabel: options.selinuxLabel,
    },
    root: { path: 'rootfs', readonly: options.readonlyRoot ?? false },
    mounts: [...basicMounts.filter(({ destination }) => !covered(destination, replaced)), ...mounts],
    linux: {
      namespaces: namespacesOf(options),
      cgroupsPath: options.cgroup,
      resources: resourcesOf(options),
      rootfsPropagation: options.rootPropagation,
      ...(!privileged && {
        maskedPaths: options.maskedPaths ?? maskedPaths,
        readonlyPaths: options.readonlyPaths ?? readonlyPaths,
        seccomp: seccompProfile(capabilities),
      }),
    },
  }
}

/** Whether a basic mount lies at or under a mount of the service. */
function covered(destination: string, replaced: ReadonlySet<string>): boolean {
  return [...replaced].some((path) => destination === path || (path === '/dev' && destination.startsWith('/dev/')))
}

function namespacesOf({ hostPid, hostIpc, hostCgroup }: SpecOptions): { type: string }[] {
  const own = { mount: true, pid: !hostPid, ipc: !hostIpc, cgroup: !hostCgroup }
  return Object.entries(own).flatMap(([type, isOwn]) => (isOwn ? [{ type }] : []))
}

function resourcesOf({ privileged, allDevices, limits = {}, cgroupVersion }: SpecOptions): object {
  const { memoryMin, memoryLow, memoryMax, swapMax, cpuWeight } = limits
  const unified = {
    ...(memoryMin !== undefined && { 'memory.min': String(memoryMin) }),
    ...(memoryLow !== undefined && { 'memory.low': String(memoryLow) }),
    ...(swapMax !== undefined && { 'memory.swap.max': String(swapMax) }),
    ...(cpuWeight !== undefined && { 'cpu.weight': String(cpuWeight) }),
  }
  return {
    devices: [{ allow: privileged || allDevices || false, access: 'rwm' }],
    ...(memoryMax !== undefined && { memory: { limit: memoryMax } }),
    // Version 1 has shares instead of weights: 1024 shares equal a weight of 39.
    ...(cgroupVersion === 1 && cpuWeight !== undefined && { cpu: { shares: Math.round(((cpuWeight - 1) * 262142) / 9999) + 2 } }),
    ...(cgroupVersion === 2 && { unified }),
  }
}
