import net from 'node:net'
import { Argument, Command, Option } from 'commander'
import { kubernetesVersion } from '../../../os/k8s/images.ts'
import type { CreateOptions } from '../cluster/create.ts'
import type { MachinesRequest } from '../cluster/qemu/request.ts'
import { imagePath, imagesFolder, stateDirectory } from '../cluster/state-paths.ts'
import { UsageError } from '../failure.ts'
import { array, duration, integer, list } from '../flags.ts'
import type { Io } from '../io.ts'

const DEFAULT_NAME = 'talos-default'
const DEFAULT_CIDR = '10.5.0.0/24'

/** Clusters on this machine. */
export const cluster = (io: Io): Command =>
  new Command('cluster')
    .description('Create, show and destroy clusters on this machine')
    .addOption(new Option('--name <name>').hideHelp())
    .addOption(new Option('--state <folder>').hideHelp())
    .addCommand(create(io))
    .addCommand(show(io))
    .addCommand(destroy(io))

/** The flags of a command with those given before its name. */
function withGroup<Flags extends CommonFlags>(flags: Flags, command: Command): Flags {
  return { ...flags, ...command.parent?.opts<Partial<CommonFlags>>() }
}

function common(command: Command): Command {
  return command
    .addOption(new Option('--name <name>', 'name of the cluster').default(DEFAULT_NAME))
    .addOption(new Option('--state <folder>', 'folder that clusters are kept in (default: ~/.talos/clusters)'))
    .addOption(new Option('--provisioner <kind>', 'how nodes are made: container or qemu').default('container'))
}

function create(io: Io): Command {
  const command = new Command('create')
  for (const { flag } of elsewhere) command.addOption(new Option(`${flag} <value>`).hideHelp())
  return common(command)
    .description('Create a cluster of containers or virtual machines on this machine, or bring one to other counts of nodes')
    .addArgument(new Argument('[provisioner]', 'how nodes are made: container or qemu').default('container', 'container'))
    .option('--controlplanes <count>', 'control planes', integer(0, 99))
    .option('--workers <count>', 'workers', integer(0, 1000))
    .option('--cidr, --subnet <network>', `network of the nodes (default: ${DEFAULT_CIDR}, or a free one)`)
    .option('--cpus, --cpus-controlplanes <number>', 'processors of a control plane', '2.0')
    .option('--cpus-workers <number>', 'processors of a worker', '2.0')
    .option('--memory, --memory-controlplanes <amount>', 'memory of a control plane', '2.0GiB')
    .option('--memory-workers <amount>', 'memory of a worker', '2.0GiB')
    .option('--kubernetes-version <version>', 'version of Kubernetes to run (default: the one inside)')
    .option('--config-patch <patch>', 'patch for all machines, as text or @file; may be repeated', array())
    .option('--config-patch-control-plane, --config-patch-controlplanes <patch>', 'patch for control planes', array())
    .option('--config-patch-worker, --config-patch-workers <patch>', 'patch for workers', array())
    .addOption(
      new Option(
        '-p, --exposed-ports <ports>',
        'ports of this host that lead to the first control plane: hostPort:nodePort/protocol,…',
      ).default('', 'none'),
    )
    .option('--host-ip <address>', 'address of this host that ports are exposed on', '0.0.0.0')
    .option('--registry-mirror <mirror>', 'mirror of a registry: <registry>=<url>; may be repeated', list())
    .option('--registry-insecure-skip-verify <registry>', 'registry whose certificate is not verified', list())
    .option('--nameservers <address>', "resolvers of the nodes (default: the host's)", list())
    .option('--mtu <bytes>', 'largest packet in the network', integer(1280, 65535), 1500)
    .option('--dns-domain <domain>', 'domain of services', 'cluster.local')
    .option('--control-plane-port <port>', 'port of the Kubernetes endpoint', integer(1, 65535), 6443)
    .option('--custom-cni-url <url>', 'manifest of another pod network')
    .option('--endpoint <address>', 'address that clients reach the machines at instead of their own')
    .option('--with-cluster-discovery', 'members look for each other', true)
    .option('--no-with-cluster-discovery', 'members do not look for each other')
    .option('--wait', 'wait until the cluster is healthy', true)
    .option('--no-wait', 'return when the nodes have their configuration')
    .addOption(
      new Option(
        '--wait-timeout <duration>',
        'how long to wait for a healthy cluster (default: 20m0s, of emulated machines 90m0s)',
      ).argParser(duration),
    )
    .option('--skip-kubeconfig', 'leave the kubeconfig alone')
    .option('--skip-k8s-node-readiness-check', 'do not wait for nodes to be ready')
    .option('--talosconfig, --talosconfig-destination <file>', 'client configuration to add the cluster to')
    .option('--image <file>', "the nodes' root file system (default: rootfs.sqsh beside this program)")
    .option('-y, --yes', 'remove nodes without asking')
    .optionsGroup('Virtual machines (create qemu):')
    .option('--disks <disks>', 'disks of a machine: driver:size,…; the first is installed to', 'virtio:10GiB,virtio:6GiB')
    .option(
      '--presets <presets>',
      'what machines start from: iso, iso-secureboot, pxe, disk-image; with maintenance they stay unconfigured',
      list(),
    )
    .option('--images <folder>', 'folder with what mkimage.sh made (default: beside this program)')
    .option('--uefi', 'machines have UEFI', true)
    .option('--no-uefi', 'machines have a BIOS')
    .action(async (kind: string, own: CreateFlags, command: Command) => {
      const flags = withGroup(own, command)
      for (const each of [kind, flags.provisioner]) checkProvisioner(each)
      refuseElsewhere(command)
      const { createCluster } = await import('../cluster/create.ts')
      const provisioner = kind === 'qemu' ? kind : flags.provisioner
      const wanted = await options(io, { ...flags, provisioner }, (name) => command.getOptionValueSource(name) === 'cli')
      await createCluster(io, wanted).catch((error) => {
        throw isFull(error)
          ? new UsageError(`the disk of "${wanted.request.state}" is full: make room and run the same command again`)
          : error
      })
    })
}

function isFull(error: unknown): boolean {
  return error instanceof Error && (error as NodeJS.ErrnoException).code === 'ENOSPC'
}

function show(io: Io): Command {
  return common(new Command('show'))
    .description('Show a cluster and its nodes')
    .action(async (own: CommonFlags, command: Command) => {
      const flags = withGroup(own, command)
      checkProvisioner(flags.provisioner)
      const { showCluster } = await import('../cluster/show.ts')
      io.stdout.write(showCluster(stateDirectory(flags.state, io.env), flags.name))
    })
}

function destroy(io: Io): Command {
  return common(new Command('destroy'))
    .description('Destroy a cluster; nothing of it is left')
    .option('-f, --force', 'also what is left of a cluster that was never finished')
    .option('--save-cluster-logs-archive-path <file>', "write the nodes' consoles to a tar.gz first")
    .action(async (own: CommonFlags & { force?: boolean; saveClusterLogsArchivePath?: string }, command: Command) => {
      const flags = withGroup(own, command)
      checkProvisioner(flags.provisioner)
      const { runDestroy } = await import('../cluster/run-destroy.ts')
      await runDestroy(io, {
        state: stateDirectory(flags.state, io.env),
        name: flags.name,
        force: flags.force === true,
        logs: flags.saveClusterLogsArchivePath,
      })
    })
}

/** Flags of the field's tool for services that are not here: images are made by mkimage.sh, with what they are to hold. */
const elsewhere = [
  { flag: '--image-factory-auth', instead: 'images are made with "./mkimage.sh" and found with --images' },
  { flag: '--image-factory-url', instead: 'images are made with "./mkimage.sh" and found with --images' },
  { flag: '--schematic-id', instead: 'make the image with "./mkimage.sh --extra-kernel-arg" and the like, and name it with --images' },
  { flag: '--talos-version', instead: 'machines start from the image that is found with --images' },
  { flag: '--omni-api-endpoint', instead: 'leave machines for another manager to configure with --presets maintenance' },
] as const

function refuseElsewhere(command: Command): void {
  for (const { flag, instead } of elsewhere) {
    const given = command.options.some((option) => option.long === flag && command.getOptionValueSource(option.attributeName()) === 'cli')
    if (given) throw new UsageError(`${flag} is not for clusters made here: ${instead}`)
  }
}

interface CommonFlags {
  name: string
  state?: string
  provisioner: string
}

/** The flags of create as commander leaves them. */
export interface CreateFlags extends CommonFlags {
  controlplanes?: number
  workers?: number
  subnet?: string
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
}

/** Flags that say what machine configurations hold. */
const configurationFlags: (keyof CreateFlags)[] = [
  'configPatch',
  'configPatchControlplanes',
  'configPatchWorkers',
  'registryMirror',
  'registryInsecureSkipVerify',
  'dnsDomain',
  'customCniUrl',
  'endpoint',
]

function checkProvisioner(kind: string): void {
  if (kind === 'container' || kind === 'qemu') return
  if (kind === 'docker' || kind === 'dev') {
    throw new UsageError(
      `provisioner "${kind}" is not in this version: nodes are containers without Docker, leave "${kind}" out or say "container"`,
    )
  }
  throw new UsageError(`there is no provisioner "${kind}": say "container" or "qemu", or leave it out`)
}

/** What the flags of create ask for, checked. */
export async function options(io: Io, flags: CreateFlags, asked: (flag: keyof CreateFlags) => boolean): Promise<CreateOptions> {
  const { parseCidr } = await import('../cluster/cidr.ts')
  const { parseExposedPorts } = await import('../cluster/exposed-ports.ts')
  const { parseCpus, parseMemory } = await import('../cluster/quantity.ts')
  const { checkName } = await import('../cluster/plan.ts')
  const { hostResolvers } = await import('../cluster/resolvers.ts')
  const { readPatches } = await import('../cluster/patches.ts')
  checkName(flags.name)
  if (net.isIP(flags.hostIp) !== 4)
    throw new UsageError(`--host-ip "${flags.hostIp}": write an IPv4 address of this host, such as 0.0.0.0 or 127.0.0.1`)
  for (const address of flags.nameservers ?? []) {
    if (net.isIP(address) === 0) throw new UsageError(`--nameservers "${address}": write addresses, such as 1.1.1.1`)
  }
  const resolvers = flags.nameservers ? { nameservers: flags.nameservers, forwardDns: [] } : hostResolvers()
  return {
    request: {
      name: flags.name,
      state: stateDirectory(flags.state, io.env),
      cidr: parseCidr(flags.subnet ?? DEFAULT_CIDR),
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
      exposedPorts: parseExposedPorts(flags.exposedPorts),
      hostAddress: flags.hostIp,
      ...resolvers,
      discovery: flags.withClusterDiscovery,
      image: imagePath(flags.image, io.env),
      machines: flags.provisioner === 'qemu' ? await machines(flags) : undefined,
    },
    configs: {
      dnsDomain: flags.dnsDomain,
      mirrors: parseMirrors(flags.registryMirror ?? []),
      insecureRegistries: flags.registryInsecureSkipVerify ?? [],
      cniUrl: flags.customCniUrl,
      endpoint: flags.endpoint,
      asked: configurationFlags.some(asked),
      patches: {
        all: readPatches(flags.configPatch ?? [], '--config-patch'),
        controlplane: readPatches(flags.configPatchControlplanes ?? [], '--config-patch-control-plane'),
        worker: readPatches(flags.configPatchWorkers ?? [], '--config-patch-worker'),
      },
    },
    given: {
      controlplanes: flags.controlplanes !== undefined,
      workers: flags.workers !== undefined,
    },
    asked: {
      cidr: asked('subnet'),
      mtu: asked('mtu'),
      kubernetesVersion: asked('kubernetesVersion'),
      exposedPorts: asked('exposedPorts'),
      controlplanes: { cpus: asked('cpusControlplanes'), memory: asked('memoryControlplanes') },
      workers: { cpus: asked('cpusWorkers'), memory: asked('memoryWorkers') },
    },
    wait: flags.wait,
    waitTimeout: flags.waitTimeout,
    checkReadiness: flags.skipK8sNodeReadinessCheck !== true,
    kubeconfig: flags.skipKubeconfig !== true,
    talosconfig: flags.talosconfigDestination,
    yes: flags.yes === true,
  }
}

async function machines(flags: CreateFlags): Promise<MachinesRequest> {
  const { parseDisks, readPresets } = await import('../cluster/qemu/request.ts')
  return {
    ...readPresets(flags.presets ?? ['iso']),
    images: imagesFolder(flags.images),
    firmware: flags.uefi ? 'uefi' : 'bios',
    disks: parseDisks(flags.disks),
  }
}

/** Reads `<registry>=<url>`. */
export function parseMirrors(values: readonly string[]): { registry: string; endpoint: string }[] {
  return values.map((value) => {
    const at = value.indexOf('=')
    const [registry, endpoint] = [value.slice(0, at), value.slice(at + 1)]
    if (at < 1 || !/^https?:\/\/[^/]+/.test(endpoint)) {
      throw new UsageError(`--registry-mirror "${value}": write <registry>=<url>, such as ghcr.io=http://10.5.0.1:5000`)
    }
    return { registry, endpoint }
  })
}
