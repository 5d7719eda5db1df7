import { join } from 'node:path'
import { Argument, Command, Option } from 'commander'
import { failedWith } from '../../../../wire/errno.ts'
import type { CreateOptions } from '../../cluster/create.ts'
import { UsageError } from '../../failure.ts'
import { array, duration, integer, list } from '../../flags.ts'
import type { Io } from '../../io.ts'
import { type CreateFlags, defaultCidr, options } from './create-options.ts'
import { foreignFlags, refuseForeign } from './foreign-flags.ts'
import { checkProvisioner, common, restartFlags, withGroup } from './group-flags.ts'

/** The number of nodes, their network and what each gets. */
const nodeFlags = (command: Command): Command =>
  command
    .option('--controlplanes <count>', 'control planes', integer(0, 99))
    .option('--workers <count>', 'workers', integer(0, 1000))
    .option('--cidr, --subnet <networks>', `network of the nodes, or one of each family (default: ${defaultCidr}, or a free one)`)
    .option('--ipv4', 'nodes have IPv4 addresses', true)
    .option('--no-ipv4', 'nodes have no IPv4 addresses')
    .option('--ipv6', 'nodes have IPv6 addresses, of a private network unless --cidr names one')
    .option('--cpus, --cpus-controlplanes <number>', 'processors of a control plane', '2.0')
    .option('--cpus-workers <number>', 'processors of a worker', '2.0')
    .option('--memory, --memory-controlplanes <amount>', 'memory of a control plane', '2.0GiB')
    .option('--memory-workers <amount>', 'memory of a worker', '2.0GiB')

/** The version of Kubernetes and patches of the machine configurations. */
const configurationFlags = (command: Command): Command =>
  command
    .option('--kubernetes-version <version>', 'version of Kubernetes to run (default: the one inside)')
    .option('--config-patch <patch>', 'patch for all machines, as text or @file; may be repeated', array())
    .option('--config-patch-control-plane, --config-patch-controlplanes <patch>', 'patch for control planes', array())
    .option('--config-patch-worker, --config-patch-workers <patch>', 'patch for workers', array())

/** How the nodes reach others, and others reach them. */
const networkFlags = (command: Command): Command =>
  command
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
    .option('--with-kubespan', 'connect the nodes by an encrypted mesh')
    .addOption(
      new Option('--kubeprism-port <port>', 'port of the balancer of API servers on every node, 0 for none').argParser(integer(0, 65535)),
    )
    .addOption(
      new Option('--with-firewall <action>', 'firewall on every node, with this action on what its rules do not name').choices([
        'accept',
        'block',
      ]),
    )

/** What happens after the nodes have their configuration, and what they are made of. */
const waitFlags = (command: Command): Command =>
  command
    .option('--wait', 'wait until the cluster is healthy', true)
    .option('--no-wait', 'return when the nodes have their configuration')
    .option('--skip-injecting-config', 'nodes stay in maintenance, unless --with-apply-config is given')
    .addOption(
      new Option(
        '--wait-timeout <duration>',
        'how long to wait for a healthy cluster (default: 20m0s, of emulated machines 90m0s)',
      ).argParser(duration),
    )
    .option('--skip-kubeconfig', 'leave the kubeconfig alone')
    .option('--skip-k8s-node-readiness-check', 'do not wait for nodes to be ready')
    .option('--talosconfig, --talosconfig-destination <file>', 'client configuration to add the cluster to')
    .option(
      '--image <image>',
      "the nodes' root file system (default: rootfs.sqsh beside this program); for docker an image, or its archive",
    )
    .option('-y, --yes', 'remove nodes without confirmation')

/** What only virtual machines have. */
const machineFlags = (command: Command): Command =>
  command
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
    .addOption(new Option('--with-uefi').hideHelp())
    .addOption(new Option('--no-with-uefi').hideHelp())
    .option('--install-image <image>', 'image that machines are installed from when they are upgraded or reset')
    .addOption(new Option('--disk <mebibytes>', 'size of the disk to install to').argParser(integer(1)).hideHelp())
    .addOption(new Option('--extra-disks <count>', 'disks beside it').argParser(integer(0, 7)).hideHelp())
    .addOption(new Option('--extra-disks-size <mebibytes>').argParser(integer(1)).hideHelp())
    .addOption(new Option('--extra-disks-drivers <drivers>').argParser(list()).hideHelp())

/** What only nodes in Docker or Podman have. */
const engineFlags = (command: Command): Command =>
  command
    .optionsGroup('Docker or Podman (create docker):')
    .option('--mount <mount>', 'mount of every node, as in type=bind,source=/data,target=/mnt; may be repeated', array())
    .option('--disable-ipv6', 'nodes have no IPv6, not even on their loopback link')

/** talosctl cluster create */
export function create(io: Io): Command {
  const command = new Command('create')
  common(command)
    .description('Create a cluster of containers or virtual machines on this machine, or bring one to other counts of nodes')
    .addArgument(new Argument('[provisioner]', 'how nodes are made: container, qemu or docker').default('container', 'container'))
  for (const declare of [nodeFlags, configurationFlags, networkFlags, waitFlags, restartFlags, machineFlags, engineFlags, foreignFlags])
    declare(command)
  return command.action(async (kind: string, own: CreateFlags, command: Command) => {
    const wanted = await requestOf(io, kind, own, command)
    const { createCluster } = await import('../../cluster/create.ts')
    const flags = withGroup(own, command)
    if (flags.restartWithHost) (await import('../../cluster/host/unit.ts')).checkUnits(flags.name)
    await createCluster(io, wanted).catch((error) => {
      throw isFull(error)
        ? new UsageError(`the disk of "${wanted.request.state}" is full: make room and run the same command again`)
        : error
    })
    if (flags.restartWithHost === undefined) return
    const { setRestart } = await import('../../cluster/with-host.ts')
    await setRestart(io, join(wanted.request.state, flags.name), flags.restartWithHost)
  })
}

/** What a command line of create requests. Throws UsageError for one that cannot be followed. */
export async function requestOf(io: Io, kind: string, own: CreateFlags, command: Command): Promise<CreateOptions> {
  const flags = withGroup(own, command)
  const provisioner = kind === 'qemu' || kind === 'docker' ? kind : flags.provisioner
  // "dev" has every flag, as plain "create" does.
  for (const each of [kind === 'dev' ? provisioner : kind, provisioner]) checkProvisioner(each)
  refuseForeign(command)
  return options(io, { ...flags, provisioner }, (name) => command.getOptionValueSource(name) === 'cli')
}

function isFull(error: unknown): boolean {
  return failedWith(error, 'ENOSPC')
}
