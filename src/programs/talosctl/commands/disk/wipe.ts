import { Command, Option } from 'commander'
import { storage } from '../../../../rpc/enums.ts'
import type { Cluster } from '../../cluster.ts'
import { LiveArgument, type Suggest } from '../../completion/live-argument.ts'
import { UsageError } from '../../failure.ts'
import { type Io, remark } from '../../io.ts'

interface WipeOptions {
  dropPartition?: boolean
  insecure?: boolean
  method: 'FAST' | 'ZEROES'
  skipSecondaryCheck?: boolean
  skipVolumeCheck?: boolean
}

const examples = `
Examples:
  talosctl get discoveredvolumes -n 10.5.0.2             what there is
  talosctl wipe disk sdb -n 10.5.0.2                     the signatures of a disk
  talosctl wipe disk sdb1 sdb2 --drop-partition -n 10.5.0.2
  talosctl wipe disk sdb --method ZEROES -n 10.5.0.2     every byte of it
`

/** Names of the disks and partitions of the target node. */
const devices: Suggest = async (cluster) => {
  const names: string[] = []
  const request = { namespace: 'runtime', type: 'DiscoveredVolumes.block.talos.dev' }
  const [node] = await cluster.nodes()
  for await (const { resource } of cluster.stream('cosi.resource.State/List', request, { node, timeout: 1500 }))
    if (resource?.metadata) names.push(resource.metadata.id)
  return names
}

/** talosctl wipe */
export const wipe = (io: Io, cluster: Cluster) => {
  const command = new Command().description('Wipe what nodes keep.')
  command
    .command('disk')
    .description('Wipe disks or partitions that no volume of the system uses. What was on them is lost.')
    .addArgument(new LiveArgument('<devices...>', 'names of disks or partitions, without "/dev/"', devices))
    .option('--drop-partition', 'remove the partition from its table too')
    .option('-i, --insecure', 'the node has no configuration yet: connect without a client certificate')
    .addOption(new Option('--method <method>', 'FAST wipes signatures, ZEROES every byte').choices(['FAST', 'ZEROES']).default('FAST'))
    .addOption(new Option('--skip-volume-check').hideHelp())
    .option('--skip-secondary-check', 'take the array or volume group of the device apart first, if nothing uses it')
    .addHelpText('after', examples)
    .action((names: string[], options: WipeOptions) => runWipeDisk(io, cluster, names, options))
  return command
}

/** Wipes the devices of one node, which must be named. */
export async function runWipeDisk(io: Io, cluster: Cluster, names: readonly string[], options: WipeOptions): Promise<void> {
  const bad = names.find((name) => !/^[\w.:-]+$/.test(name.replace(/^\/dev\//, '')))
  if (bad !== undefined) throw new UsageError(`"${bad}" is no name of a disk: "talosctl get discoveredvolumes" shows them`)
  const target = options.insecure ? await cluster.insecure() : cluster
  if (!options.insecure) await cluster.named(`wiping ${names.join(', ')}`)
  await target.single('wipe disk')
  const method = storage.BlockDeviceWipeDescriptor.Method[options.method]
  const devices = names.map((name) => ({
    device: name.replace(/^\/dev\//, ''),
    method,
    skipVolumeCheck: options.skipVolumeCheck === true,
    skipSecondaryCheck: options.skipSecondaryCheck === true,
    dropPartition: options.dropPartition === true,
  }))
  try {
    await target.ask(
      'storage.StorageService/BlockDeviceWipe',
      { devices },
      { timeout: options.method === 'ZEROES' ? 24 * 3_600_000 : 120_000 },
    )
  } finally {
    if (target !== cluster) await target.close()
  }
  remark(io, `wiped ${names.join(', ')}\n`)
}
