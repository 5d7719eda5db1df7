/**
 * A kernel for init inside a test: files are real ones below a folder of the test's own, everything else is kept in memory. Each
 * call can be made to fail as the kernel would fail it.
 */

import type { Kernel } from '../../../src/os/kernel.ts'
import { kernelOf } from '../../../src/programs/init/kernel.ts'

type Any = (...args: any[]) => any
type Module = Record<string, unknown>
type Modules = Readonly<Record<string, Module>>

/** What a call answers with in place of its work; undefined lets it do that. */
export type Fault = (call: string) => Error | undefined

const real = kernelOf('container') as unknown as Modules

/** Yields nothing until the signal, as a subscription to events that do not come. */
async function* silence(signal?: AbortSignal): AsyncGenerator<never> {
  if (!signal?.aborted) await new Promise((resolve) => signal?.addEventListener('abort', resolve, { once: true }))
}
const signalOf = (args: unknown[]): AbortSignal | undefined =>
  args.flatMap((arg) => (arg instanceof AbortSignal ? [arg] : ((arg as { signal?: AbortSignal } | undefined)?.signal ?? [])))[0]

const network = {
  links: () => [],
  link: () => undefined,
  addresses: () => [],
  routes: () => [],
  rules: () => [],
  neighbours: () => [],
  [Symbol.dispose]() {},
}

/** A link that is up. */
const link = (index: number, name: string, type: number, flags: number) => ({
  ...{ index, name, type, flags, mtu: 1500, operationalState: 6, carrier: true, kind: index > 1 ? 'veth' : '', slaveKind: '', data: {} },
  ...{ hardwareAddress: '02:00:00:00:00:01', broadcastAddress: '', permanentAddress: '' },
  ...{ queueDiscipline: '', txQueueLength: 0, alias: '', alternativeNames: [] },
})

/** A network with an address and a default route, and pipes that nothing is written to. */
export const connected: Modules = {
  net: {
    openNetwork: () => ({
      ...network,
      links: () => [link(1, 'lo', 772, 0x1_0049), link(2, 'eth0', 1, 0x1_1043)],
      addresses: () => [{ family: 2, address: '10.9.0.2/24', local: '10.9.0.2', link: 2, flags: 0x80, scope: 0, priority: 0 }],
      routes: () => [
        { family: 2, gateway: '10.9.0.1', link: 2, table: 254, priority: 0, protocol: 4, scope: 0, type: 1, flags: 0, hops: [] },
      ],
    }),
    watchNetwork: (...args: unknown[]) => silence(signalOf(args)),
  },
  ethtool: { openEthernet: () => ({ read: () => undefined, [Symbol.dispose]() {} }) },
  fifo: { makeEndingFifo: (path: string) => ({ path, stream: new Blob([]).stream(), opened() {}, close: async () => {} }) },
}

const clockState = { state: 0, status: 0, nano: true, offset: 0n, frequency: 0n, maxError: 0n, estimatedError: 0n, constant: 0n, tai: 37 }

/** Calls that answer something; those of `linux/` that are not here answer nothing. */
const inMemory = (): Record<string, Module> => {
  const sysctls = new Map<string, string>()
  let hostname = 'localhost'
  return {
    mount: { mounts: () => [], mountAt: () => undefined, umountTree: () => [] },
    uts: {
      uname: () => ({ sysname: 'Linux', nodename: hostname, release: '6.18.0', version: '#1', machine: 'x86_64', domainname: '' }),
      gethostname: () => hostname,
      sethostname: (name: string) => {
        hostname = name
      },
    },
    net: { openNetwork: () => network, watchNetwork: (...args: unknown[]) => silence(signalOf(args)) },
    sysctl: {
      sysctlPath: real.sysctl!.sysctlPath,
      getSysctl: (name: string) => sysctls.get(name) ?? '0',
      setSysctl: (name: string, value: string) => sysctls.set(name, value),
    },
    cgroup: {
      hierarchy: () => ({ version: 2, roots: { unified: '/sys/fs/cgroup' } }),
      foldersOf: () => [],
      limit: () => [],
      processesIn: () => [],
    },
    time: { clock: () => BigInt(Math.round(performance.now() * 1e6)), adjustClock: () => clockState },
    kmsg: { readKernelLog: (...args: unknown[]) => silence(signalOf(args)) },
    uevent: { watchDevices: (...args: unknown[]) => silence(signalOf(args)) },
    acpi: { watchPowerButton: (...args: unknown[]) => silence(signalOf(args)) },
    nftables: {
      filterTable: () => ({ chains: [], rules: [] }),
      watchFilterTable: (...args: unknown[]) => silence(signalOf(args)),
    },
    process: { exists: () => false, children: () => [], oomScoreAdjustment: () => 0 },
    capabilities: {
      capabilities: real.capabilities!.capabilities,
      boundingSet: () => [],
      capabilityNames: real.capabilities!.capabilityNames,
    },
    ethtool: { openEthernet: () => ({ read: () => undefined, [Symbol.dispose]() {} }) },
    wireguard: { hasWireguard: () => false, canRunInUserSpace: () => false },
    efi: { isEfi: () => false },
    socket: { listenDatagrams: () => ({ close() {} }) },
  }
}

/** The files of `linux/` with every path taken below `root`; owners are left out, which only root could give, and links lead below it too. */
function filesBelow(root: string): Module {
  const below = (arg: unknown) => (typeof arg === 'string' && arg.startsWith('/') ? `${root}${arg}` : withoutOwner(arg))
  const outside = (value: unknown) => (typeof value === 'string' && value.startsWith(root) ? value.slice(root.length) || '/' : value)
  const files: Module = {}
  for (const [name, act] of Object.entries(real.files!)) {
    if (typeof act !== 'function') files[name] = act
    else if (['chown', 'lchown', 'mknod', 'syncAll'].includes(name)) files[name] = () => {}
    else if (name === 'symlink') files[name] = (target: string, path: string) => (act as Any)(below(target), below(path))
    else if (name === 'mkdirAll') files[name] = (path: string, owner: unknown) => (act as Any)(below(path), accessible(withoutOwner(owner)))
    else if (name === 'append' || name === 'writeInto' || name === 'writeAtomic')
      files[name] = (path: string, data: unknown, more: unknown) => (act as Any)(below(path), data, withoutOwner(more))
    // What a machine keeps back of its disk is not taken from this one's.
    else if (name === 'allocate') files[name] = (path: string) => (real.files!.append as Any)(below(path), '')
    else if (name === 'walk')
      files[name] = async function* (path: string, options: unknown) {
        for await (const entry of (act as Any)(below(path), options)) yield { ...entry, path: outside(entry.path) }
      }
    else files[name] = (...args: unknown[]) => outside((act as Any)(...args.map(below)))
  }
  return files
}

/** Options of a folder that its owner can open: root opens one of any mode, an ordinary user who runs the tests does not. */
function accessible(value: unknown): unknown {
  return typeof value === 'object' && value !== null && 'mode' in value ? { ...value, mode: Number(value.mode) | 0o700 } : value
}

function withoutOwner(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !('uid' in value || 'gid' in value)) return value
  const { uid: _, gid: __, ...rest } = value as { uid?: number; gid?: number }
  return rest
}

/** The kernel below `root`; `fault` is called before each call with its name (`files.writeAtomic`). A machine has its own modules. */
export function sandboxKernel(root: string, fault: Fault, machine?: Modules, more?: Modules): Kernel {
  const kinds: Modules = { ...inMemory(), ...machine, ...more, files: { ...filesBelow(root), ...machine?.files } }
  const kernel: Record<string, unknown> = { mode: machine ? 'metal' : 'container' }
  for (const [subject, module] of Object.entries(real)) {
    if (typeof module !== 'object') continue
    kernel[subject] = Object.fromEntries(
      Object.entries(module).map(([name, theirs]) => {
        const ours = kinds[subject]?.[name]
        if (typeof theirs !== 'function' || /^class /.test(String(theirs)) || cannotFail.has(`${subject}.${name}`))
          return [name, ours ?? theirs]
        return [name, failing(`${subject}.${name}`, theirs as Any, (ours as Any | undefined) ?? (() => {}), fault)]
      }),
    )
  }
  return kernel as unknown as Kernel
}

/** Reading a clock that every kernel has, and what is no call of the kernel. */
const cannotFail = new Set(['time.clock', 'sysctl.sysctlPath'])

/** Calls that give something open, whose own calls can fail as well. */
const opening = new Set(['net.openNetwork', 'block.openDevice', 'watchdog.openWatchdog'])

/** A call that fails the way the real one would: by a throw, a rejection, or at the first step of what it yields. */
function failing(call: string, theirs: Any, ours: Any, fault: Fault): Any {
  const kind = theirs.constructor.name
  return (...args) => {
    const error = fault(call)
    if (!error) {
      const value = ours(...args)
      if (!opening.has(call)) return value
      return value instanceof Promise ? value.then((opened) => opens(call, opened, fault)) : opens(call, value, fault)
    }
    if (kind === 'AsyncFunction') return Promise.reject(error)
    if (kind === 'AsyncGeneratorFunction')
      return (async function* () {
        yield await Promise.reject(error)
      })()
    throw error
  }
}

function opens(call: string, opened: Record<string | symbol, unknown>, fault: Fault): unknown {
  return new Proxy(opened, {
    get(target, name) {
      const own = target[name]
      // What has "then" would be taken for a promise, and close(2) of a device has nothing to fail on.
      if (typeof name === 'symbol' || name === 'then' || name === 'close' || (own !== undefined && typeof own !== 'function')) return own
      return (...args: unknown[]) => {
        const error = fault(`${call}().${name}`)
        if (!error) return (own as Any | undefined)?.(...args)
        if (own?.constructor.name === 'AsyncFunction') return Promise.reject(error)
        throw error
      }
    },
  })
}
