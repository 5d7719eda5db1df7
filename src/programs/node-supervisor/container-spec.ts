/**
 * A node as an OCI runtime bundle: the machine's root read-only, its own namespaces, a privileged process that is a machine's PID 1.
 * Writable are only what a machine's disks hold (binds from the node's directory) and what memory holds (tmpfs).
 */

/** What a node's container is made of. */
export interface ContainerPlan {
  hostname: string
  rootfs: string
  netns: string
  /** The directory on a real file system that stands for the node's disk. */
  disk: string
  /** The path below every hierarchy's mount point. */
  cgroup: string
  capabilities: string[]
  /** The hard limit on open files that may not be passed. */
  openFiles: number
  /** Processors in thousandths. */
  cpus: number
  /** Bytes. */
  memory: number
  env: string[]
}

/** The node's directories that outlive it, by where the node sees them, with their modes. */
export const diskDirectories: readonly { target: string; source: string; mode: number }[] = [
  { target: '/var', source: 'var', mode: 0o755 },
  { target: '/system/state', source: 'state', mode: 0o700 },
  { target: '/etc/cni', source: 'cni', mode: 0o755 },
  { target: '/etc/kubernetes', source: 'kubernetes', mode: 0o755 },
  { target: '/opt', source: 'opt', mode: 0o755 },
  { target: '/usr/libexec/kubernetes', source: 'libexec-kubernetes', mode: 0o755 },
]

const cpuPeriod = 100_000

/**
 * The memory for which init's JavaScript engine plans its collections: 160 MiB. With all memory of the machine it collects only when
 * the heap has doubled or grown by 32 MiB, and garbage of calls makes init grow by 70 to 80 MiB; with 96 MiB it collects so often that
 * files are read at two thirds of the speed (bench/README.md). Stage 0 of a machine passes the same.
 */
export const initHeap = 'BUN_JSC_forceRAMSize=167772160'

/** The config.json of a node. */
export function containerSpec(plan: ContainerPlan) {
  const { capabilities } = plan
  return {
    ociVersion: '1.2.0',
    hostname: plan.hostname,
    root: { path: plan.rootfs, readonly: true },
    process: {
      terminal: false,
      user: { uid: 0, gid: 0 },
      args: ['/sbin/init'],
      env: ['PATH=/usr/sbin:/usr/bin:/sbin:/bin', 'PLATFORM=container', 'container=ichor', 'TERM=linux', initHeap, ...plan.env],
      cwd: '/',
      capabilities: { bounding: capabilities, effective: capabilities, permitted: capabilities },
      rlimits: [{ type: 'RLIMIT_NOFILE', hard: plan.openFiles, soft: plan.openFiles }],
      noNewPrivileges: false,
    },
    mounts: [
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
      { destination: '/sys', type: 'sysfs', source: 'sysfs', options: ['nosuid', 'noexec', 'nodev'] },
      { destination: '/sys/fs/cgroup', type: 'cgroup', source: 'cgroup', options: ['nosuid', 'noexec', 'nodev', 'relatime'] },
      tmpfs('/run', 'mode=755'),
      tmpfs('/system', 'mode=755'),
      tmpfs('/tmp', 'mode=1777', 'size=65536k'),
      ...diskDirectories.map(({ target, source }) => ({
        destination: target,
        type: 'bind',
        source: `${plan.disk}/${source}`,
        options: ['rbind', 'rw', 'rprivate', 'rshared'],
      })),
    ],
    linux: {
      namespaces: [
        { type: 'pid' },
        { type: 'mount' },
        { type: 'uts' },
        { type: 'ipc' },
        { type: 'cgroup' },
        { type: 'network', path: plan.netns },
      ],
      rootfsPropagation: 'shared',
      cgroupsPath: plan.cgroup,
      resources: {
        devices: [{ allow: true, access: 'rwm' }],
        cpu: { quota: Math.round((plan.cpus * cpuPeriod) / 1000), period: cpuPeriod },
        memory: { limit: plan.memory },
      },
      devices: [
        // The kubelet and containerd read the kernel's log.
        { path: '/dev/kmsg', type: 'c', major: 1, minor: 11, fileMode: 0o600, uid: 0, gid: 0 },
        // A mesh in user space, where the kernel has no WireGuard.
        { path: '/dev/net/tun', type: 'c', major: 10, minor: 200, fileMode: 0o600, uid: 0, gid: 0 },
      ],
      maskedPaths: [],
      readonlyPaths: [],
    },
  }
}

function tmpfs(destination: string, ...options: string[]) {
  return { destination, type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'nodev', 'shared', ...options] }
}
