import { Command, Option } from 'commander'
import type { KnownLink } from '../../../../os/network/platform/declare.ts'
import { platforms } from '../../../../os/network/platform/platforms.ts'
import { ExitCode, UsageError } from '../../failure.ts'
import { array } from '../../flags.ts'
import type { Io } from '../../io.ts'
import { type OutputFlags, outputOption, structured } from '../../output/output.ts'
import type { Schema } from '../../output/schema.ts'
import { table } from '../../output/table.ts'
import { type ConfigPreview, type PlatformPreview, previewPlatform } from '../../platform/preview.ts'

interface TestFlags extends OutputFlags {
  metadata?: string
  configDrive?: string
  link: string[]
}

/** What the command prints for programs: the specs of the network resources, and the metadata. */
export const platformSchema: Schema = {
  platform: 'string',
  links: [{ name: 'string', hardwareAddress: 'string', index: 'number' }],
  config: { state: 'string', error: 'string', documents: ['string'] },
  hostname: 'string',
  externalIPs: ['string'],
  network: {
    addresses: ['object'],
    links: ['object'],
    routes: ['object'],
    resolvers: ['object'],
    timeServers: ['object'],
    operators: ['object'],
    probes: ['object'],
  },
  networkError: 'string',
  metadata: {
    platform: 'string',
    hostname: 'string',
    region: 'string',
    zone: 'string',
    instanceType: 'string',
    instanceId: 'string',
    providerId: 'string',
    spot: 'boolean',
    internalDNS: 'string',
    externalDNS: 'string',
    tags: { '<name>': 'string' },
  },
}

const examples = `
Examples:
  talosctl platform test aws --metadata http://127.0.0.1:8080
  talosctl platform test openstack --config-drive ./config-2 --link eth0=fa:16:3e:00:00:01
`

/** talosctl platform */
export const platform = (io: Io) =>
  new Command()
    .description('Test the platforms, clouds and hypervisors, that a machine reads its configuration from.')
    .addCommand(testCommand(io))

const testCommand = (io: Io) =>
  new Command('test')
    .description('Read the metadata of a platform as a machine does, and show what it would apply. Nothing is applied.')
    .argument('<name>', 'the platform, as in "talos.platform"')
    .option('--metadata <url>', 'the base URL that replaces scheme, host and port of the metadata server (default: those of the platform)')
    .option('--config-drive <folder>', 'files of the disk of the platform; for vmware, a file for each key, such as "guestinfo.userdata"')
    .addOption(
      new Option('--link <name=mac>', 'a link of the machine; may be repeated (default: those that the metadata names)')
        .argParser(array())
        .default([]),
    )
    .addOption(outputOption(platformSchema))
    .addHelpText('after', examples)
    .action((name: string, flags: TestFlags) => runTest(io, name, flags))

/** Shows what a machine would take from a platform; the exit code is 1 where a part cannot be used. */
export async function runTest(io: Io, name: string, { metadata, configDrive, link, output }: TestFlags): Promise<void> {
  const found = Object.hasOwn(platforms, name) ? platforms[name] : undefined
  if (!found) throw new UsageError(`unknown platform "${name}": there are ${Object.keys(platforms).join(', ')}`)
  if (metadata !== undefined && !(/^https?:\/\/[^?#]+$/.test(metadata) && URL.canParse(metadata)))
    throw new UsageError(`"${metadata}" is not the base URL of a metadata server: use http://host:port`)
  const preview = await previewPlatform(name, found, { metadata, configDrive }, link.map(linkOf), io.signal)
  if (!structured(io, output, [preview])) io.stdout.write(shown(preview))
  if (preview.networkError !== undefined || preview.config.state === 'invalid') throw new ExitCode(1)
}

function linkOf(text: string, place: number): KnownLink {
  const [, name, mac] = /^([^=\s]{1,15})=((?:[0-9a-f]{2}:){5}[0-9a-f]{2})$/i.exec(text) ?? []
  if (!name || !mac) throw new UsageError(`"${text}" is not a link: use a name and a hardware address, as in eth0=02:00:00:00:00:01`)
  return { name, hardwareAddress: mac.toLowerCase(), index: place + 2 }
}

function shown({ config, hostname, externalIPs, network, networkError, metadata, links }: PlatformPreview): string {
  const head = table([
    ['CONFIGURATION', stateOf(config)],
    ['HOST NAME', hostname || 'none'],
    ['EXTERNAL ADDRESSES', externalIPs.join(', ') || 'none'],
    ['LINKS OF THE MACHINE', links.map((link) => `${link.name} ${link.hardwareAddress}`).join(', ')],
    ['NETWORK', networkError ?? (network && networkRows(network).length > 0 ? 'as below' : 'nothing declared')],
  ])
  const parts = [head]
  if (network && networkRows(network).length > 0) parts.push(table([['KIND', 'LINK', 'VALUE'], ...networkRows(network)]))
  const values = Object.entries(metadata).map(([key, value]) => [key, typeof value === 'object' ? JSON.stringify(value) : value])
  if (values.length > 0) parts.push(table([['METADATA', 'VALUE'], ...values]))
  return parts.join('\n')
}

function stateOf({ state, error, documents = [] }: ConfigPreview): string {
  if (state === 'none') return 'none: the machine would wait in maintenance'
  if (state === 'invalid') return `invalid: ${error}`
  return `${state === 'valid' ? 'valid' : 'valid, but not whole'}: ${documents.join(', ')}`
}

type Network = NonNullable<PlatformPreview['network']>

function networkRows({ links, addresses, routes, operators, resolvers, timeServers }: Network): string[][] {
  return [
    ...links.map((one) => [
      'link',
      one.name,
      [one.kind, one.mtu ? `MTU ${one.mtu}` : '', one.masterName ? `in ${one.masterName}` : ''].filter(Boolean).join(', ') || 'up',
    ]),
    ...addresses.map((one) => ['address', one.linkName, one.address]),
    ...routes.map((one) => [
      'route',
      one.outLinkName ?? '',
      `${one.dst || 'default'}${one.gateway ? ` via ${one.gateway}` : ''} metric ${one.priority}`,
    ]),
    ...operators.map((one) => [one.operator, one.linkName, `metric ${(one.dhcp4 ?? one.dhcp6)?.routeMetric ?? 'default'}`]),
    ...resolvers.map((one) => ['resolver', '', [...one.dnsServers, ...(one.searchDomains ?? [])].join(', ')]),
    ...timeServers.map((one) => ['time server', '', one.timeServers.join(', ')]),
  ]
}
