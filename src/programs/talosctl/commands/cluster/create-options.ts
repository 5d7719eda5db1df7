import net from 'node:net'
import { kubernetesVersion } from '../../../../os/k8s/images.ts'
import type { CreateOptions } from '../../cluster/create.ts'
import type { EngineRequest } from '../../cluster/plan/plan.ts'
import type { FirewallAction } from '../../cluster/plan/request-patches.ts'
import type { MachinesRequest } from '../../cluster/qemu/request.ts'
import { imagePath, imagesFolder, stateDirectory } from '../../cluster/state-paths.ts'
import { UsageError } from '../../failure.ts'
import type { Io } from '../../io.ts'
import type { CommonFlags } from './group-flags.ts'

/** The default network of a cluster. */
export const defaultCidr = '10.5.0.0/24'

/** The flags of create as commander leaves them. */
export interface CreateFlags extends CommonFlags {
  controlplanes?: number
  workers?: number
  subnet?: string
  ipv4: boolean
  ipv6?: boolean
  cpusControlplanes: string
  cpusWorkers: string
  memoryControlplanes: string
  memoryWorkers: string
  kubernetesVersion?: string
  configPatch?: string[]
  configPatchControlplanes?: string[]
  configPatchWorkers?: string[]
  exposedPorts: string
  hostIp: string
  registryMirror?: string[]
  registryInsecureSkipVerify?: string[]
  nameservers?: string[]
  mtu: number
  dnsDomain: string
  controlPlanePort: number
  customCniUrl?: string
  endpoint?: string
  withClusterDiscovery: boolean
  withKubespan?: boolean
  wait: boolean
  waitTimeout?: number
  skipKubeconfig?: boolean
  skipK8sNodeReadinessCheck?: boolean
  talosconfigDestination?: string
  image?: string
  yes?: boolean
  disks: string
  presets?: string[]
  images?: string
  uefi: boolean
  restartWithHost?: boolean
  kubeprismPort?: number
  withFirewall?: FirewallAction
  withUefi?: boolean
  installImage?: string
  skipInjectingConfig?: boolean
  withApplyConfig?: boolean
  disk?: number
  extraDisks?: number
  extraDisksSize?: number
  extraDisksDrivers?: string[]
  mount?: string[]
  disableIpv6?: boolean
}

/** Flags that only virtual machines have a meaning for, as they are typed. */
const machineFlags: Partial<Record<keyof CreateFlags, string>> = {
  disks: '--disks',
  presets: '--presets',
  images: '--images',
  uefi: '--uefi',
  installImage: '--install-image',
  withUefi: '--with-uefi',
  disk: '--disk',
  extraDisks: '--extra-disks',
  extraDisksSize: '--extra-disks-size',
  extraDisksDrivers: '--extra-disks-drivers',
}

/** Flags that only Docker and Podman have a meaning for. */
const engineFlags: Partial<Record<keyof CreateFlags, string>> = { mount: '--mount', disableIpv6: '--disable-ipv6' }

/** Flags about the gateway of a cluster, or about addresses that lead to it. */
const gatewayFlags: Partial<Record<keyof CreateFlags, string>> = { controlPlanePort: '--control-plane-port', endpoint: '--endpoint' }

/** Flags that say what machine configurations hold. */
const configurationFlags: (keyof CreateFlags)[] = [
  'configPatch',
  'configPatchControlplanes',
  'configPatchWorkers',
  'registryMirror',
  'registryInsecureSkipVerify',
  'dnsDomain',
  'customCniUrl',
  'withKubespan',
  'endpoint',
  'kubeprismPort',
  'withFirewall',
  'installImage',
]

/** What the flags of create ask for, checked. */
export async function options(io: Io, flags: CreateFlags, requested: (flag: keyof CreateFlags) => boolean): Promise<CreateOptions> {
  const { checkName } = await import('../../cluster/plan/plan.ts')
  checkName(flags.name)
  if (net.isIP(flags.hostIp) !== 4)
    throw new UsageError(`--host-ip "${flags.hostIp}": write an IPv4 address of this host, such as 0.0.0.0 or 127.0.0.1`)
  if (flags.withKubespan && !flags.withClusterDiscovery)
    throw new UsageError('--with-kubespan: the mesh needs discovery, leave out --no-with-cluster-discovery')
  checkFlagsOf(flags.provisioner, flags, requested)
  for (const address of flags.nameservers ?? []) {
    if (net.isIP(address) === 0) throw new UsageError(`--nameservers "${address}": write addresses, such as 1.1.1.1`)
  }
  return {
    request: await clusterRequest(io, flags, requested),
    configs: await configurations(flags, requested),
    given: {
      controlplanes: flags.controlplanes !== undefined,
      workers: flags.workers !== undefined,
    },
    requested: {
      cidr: requested('subnet'),
      families: requested('ipv4') || requested('ipv6'),
      mtu: requested('mtu'),
      kubernetesVersion: requested('kubernetesVersion'),
      exposedPorts: requested('exposedPorts'),
      controlplanes: { cpus: requested('cpusControlplanes'), memory: requested('memoryControlplanes') },
      workers: { cpus: requested('cpusWorkers'), memory: requested('memoryWorkers') },
    },
    wait: flags.wait,
    waitTimeout: flags.waitTimeout,
    checkReadiness: flags.skipK8sNodeReadinessCheck !== true,
    kubeconfig: flags.skipKubeconfig !== true,
    talosconfig: flags.talosconfigDestination,
    yes: flags.yes === true,
  }
}

/** Refuses flags that have no meaning for nodes of a kind. */
function checkFlagsOf(provisioner: string, flags: CreateFlags, requested: (flag: keyof CreateFlags) => boolean): void {
  const refuse = (table: Partial<Record<keyof CreateFlags, string>>, reason: string) => {
    for (const [name, flag] of Object.entries(table))
      if (requested(name as keyof CreateFlags)) throw new UsageError(`${flag} ${reason}, or leave it out`)
  }
  if (provisioner !== 'qemu') refuse(machineFlags, 'is for virtual machines: add --provisioner qemu')
  if (provisioner !== 'docker') refuse(engineFlags, 'is for Docker and Podman: add --provisioner docker')
  else {
    refuse(gatewayFlags, 'needs a gateway, which nodes in Docker or Podman do not have: create the cluster without "docker"')
    if (flags.restartWithHost !== undefined)
      throw new UsageError(
        '--restart-with-host: let the system start the engine, and the nodes with "talosctl cluster start", or leave it out',
      )
  }
}

/** The cluster that is requested. */
async function clusterRequest(
  io: Io,
  flags: CreateFlags,
  requested: (flag: keyof CreateFlags) => boolean,
): Promise<CreateOptions['request']> {
  const { networksOfFlags } = await import('../../cluster/host/network-flags.ts')
  const { parseExposedPorts } = await import('../../cluster/host/exposed-ports.ts')
  const { parseCpus, parseMemory } = await import('../../cluster/plan/quantity.ts')
  const { hostResolvers } = await import('../../cluster/host/resolvers.ts')
  const state = stateDirectory(flags.state, io.env)
  const networks = networksOfFlags({ ...flags, state, defaultCidr })
  const onlyIPv6 = networks.first.bytes.length === 16 && !networks.second
  const isInEngine = flags.provisioner === 'docker'
  // An engine gives its containers name servers that they can reach.
  const found = isInEngine ? { nameservers: [], forwardDns: [] } : hostResolvers({ onlyIPv6 })
  const resolvers = flags.nameservers ? { nameservers: flags.nameservers, forwardDns: [] } : found
  return {
    name: flags.name,
    state,
    networks,
    mtu: flags.mtu,
    controlplanes: {
      count: flags.controlplanes ?? 1,
      cpus: parseCpus(flags.cpusControlplanes, '--cpus'),
      memory: parseMemory(flags.memoryControlplanes, '--memory'),
    },
    workers: {
      count: flags.workers ?? 1,
      cpus: parseCpus(flags.cpusWorkers, '--cpus-workers'),
      memory: parseMemory(flags.memoryWorkers, '--memory-workers'),
    },
    kubernetesVersion: (flags.kubernetesVersion ?? kubernetesVersion).replace(/^v/, ''),
    kubernetesPort: flags.controlPlanePort,
    exposedPorts: parseExposedPorts(flags.exposedPorts, { addresses: isInEngine }),
    hostAddress: flags.hostIp,
    ...resolvers,
    discovery: flags.withClusterDiscovery,
    image: isInEngine ? '' : imagePath(flags.image, io.env),
    ...(await machines(flags, requested)),
    engine: isInEngine ? await engineOf(flags) : undefined,
  }
}

async function engineOf(flags: CreateFlags): Promise<EngineRequest> {
  const { parseMount } = await import('../../cluster/engine/mounts.ts')
  return {
    image: flags.image,
    mounts: (flags.mount ?? []).map(parseMount),
    disableIPv6: flags.disableIpv6 === true,
  }
}

/** What the machine configurations hold. */
async function configurations(flags: CreateFlags, requested: (flag: keyof CreateFlags) => boolean): Promise<CreateOptions['configs']> {
  const { readPatches } = await import('../../cluster/plan/patches.ts')
  return {
    dnsDomain: flags.dnsDomain,
    mirrors: parseMirrors(flags.registryMirror ?? []),
    insecureRegistries: flags.registryInsecureSkipVerify ?? [],
    cniUrl: flags.customCniUrl,
    kubespan: flags.withKubespan === true,
    endpoint: flags.endpoint,
    kubePrismPort: flags.kubeprismPort,
    firewall: flags.withFirewall,
    installImage: flags.installImage,
    requested: configurationFlags.some(requested),
    patches: {
      all: readPatches(flags.configPatch ?? [], '--config-patch'),
      controlplane: readPatches(flags.configPatchControlplanes ?? [], '--config-patch-control-plane'),
      worker: readPatches(flags.configPatchWorkers ?? [], '--config-patch-worker'),
    },
  }
}

/** Virtual machines, if nodes are such, and whether nodes of any kind stay unconfigured. */
async function machines(
  flags: CreateFlags,
  requested: (flag: keyof CreateFlags) => boolean,
): Promise<Pick<CreateOptions['request'], 'machines' | 'unconfigured'>> {
  const skipped = flags.skipInjectingConfig === true && flags.withApplyConfig !== true
  if (flags.provisioner !== 'qemu') return { machines: undefined, unconfigured: skipped }
  const { parseDisks, readPresets } = await import('../../cluster/qemu/request.ts')
  const { unconfigured, ...presets } = readPresets(flags.presets ?? ['iso'])
  const machines: MachinesRequest = {
    ...presets,
    images: imagesFolder(flags.images),
    firmware: flags.uefi && flags.withUefi !== false ? 'uefi' : 'bios',
    disks: parseDisks(disksOf(flags, requested)),
  }
  return { machines, unconfigured: unconfigured || skipped }
}

/** The disks in the spelling of --disks, also when the flags for each were given. */
function disksOf(flags: CreateFlags, requested: (flag: keyof CreateFlags) => boolean): string {
  const one = (['disk', 'extraDisks', 'extraDisksSize', 'extraDisksDrivers'] as const).find(requested)
  if (!one) return flags.disks
  if (requested('disks')) throw new UsageError(`--disks and ${machineFlags[one]} contradict each other: leave one out`)
  const { disk = 6144, extraDisks = 0, extraDisksSize = 5120, extraDisksDrivers = [] } = flags
  if (extraDisks === 0 && (requested('extraDisksSize') || requested('extraDisksDrivers')))
    throw new UsageError(`${machineFlags[one]} is for disks beside the first: add --extra-disks, or leave it out`)
  const extra = Array.from({ length: extraDisks }, (_, index) => `${extraDisksDrivers[index] ?? 'virtio'}:${extraDisksSize}MiB`)
  return [`virtio:${disk}MiB`, ...extra].join(',')
}

/** Reads `<registry>=<url>`. */
function parseMirrors(values: readonly string[]): { registry: string; endpoint: string }[] {
  return values.map((value) => {
    const at = value.indexOf('=')
    const [registry, endpoint] = [value.slice(0, at), value.slice(at + 1)]
    if (at < 1 || !/^https?:\/\/[^/]+/.test(endpoint)) {
      throw new UsageError(`--registry-mirror "${value}": write <registry>=<url>, such as ghcr.io=http://10.5.0.1:5000`)
    }
    return { registry, endpoint }
  })
}
