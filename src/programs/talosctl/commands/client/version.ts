import { Command, Option } from 'commander'
import { release } from '../../../../release.ts'
import type { Cluster } from '../../cluster.ts'
import type { Io } from '../../io.ts'
import { type OutputFlags, outputOption, structured, withNodes } from '../../output/output.ts'
import { messageSchema } from '../../output/schema.ts'
import type { ReplyMetadata } from '../../reply-metadata.ts'

interface VersionOptions extends Partial<OutputFlags> {
  client?: boolean
  short?: boolean
  json?: boolean
  insecure?: boolean
}

interface Version {
  metadata?: ReplyMetadata | null
  version?: { tag?: string; sha?: string; built?: string; goVersion?: string; os?: string; arch?: string } | null
  platform?: { name?: string; mode?: string } | null
  features?: { rbac?: boolean } | null
}

const versionSchema = () => ({
  client: { tag: 'string', sha: 'string', built: 'string', goVersion: 'string', os: 'string', arch: 'string' } as const,
  nodes: [messageSchema('machine.MachineService/Version')()] as const,
})

/** talosctl version */
export const version = (io: Io, cluster: Cluster) =>
  new Command()
    .description('Show the version of this client and of each node.')
    .option('--client', 'show the client only')
    .option('--short', "show the client's tag only, behind the name of the API")
    .option('-i, --insecure', 'ask a node in maintenance mode, which has no certificates yet')
    .addOption(new Option('--json', 'print JSON').hideHelp())
    .addOption(outputOption(versionSchema))
    .action((options: VersionOptions) => runVersion(io, cluster, options))

/** Prints what this binary is, then what each node is. */
export async function runVersion(io: Io, cluster: Cluster, options: VersionOptions): Promise<void> {
  const client = {
    tag: release.tag,
    sha: release.sha,
    built: release.built,
    goVersion: release.runtime,
    os: release.os,
    arch: release.arch,
  }
  if (options.output && options.output !== 'table') {
    const nodes = options.client ? [] : await nodeVersions(cluster, options)
    structured(io, options.output, [{ client, nodes }])
    return
  }
  if (!options.json) {
    io.stdout.write('Client:\n')
    io.stdout.write(options.short ? `Talos ${release.tag}\n` : block(client))
  } else if (options.client) io.stdout.write(`${json({ version: client })}\n`)
  if (options.client) return
  const server = options.insecure ? await cluster.insecure() : cluster
  try {
    if (!options.json) io.stdout.write('Server:\n')
    const messages = await server.ask('machine.MachineService/Version', {})
    const peer = await server.peer()
    for (const message of messages) {
      if (options.json) io.stdout.write(`${json(message)}\n`)
      else {
        const enabled = message.features?.rbac ? '\tEnabled:     RBAC\n' : ''
        io.stdout.write(`\tNODE:        ${server.nodeOf(message, peer)}\n${block(message.version ?? {})}${enabled}`)
      }
    }
  } finally {
    if (server !== cluster) await server.close()
  }
}

async function nodeVersions(cluster: Cluster, { insecure }: VersionOptions): Promise<object[]> {
  const server = insecure ? await cluster.insecure() : cluster
  try {
    return withNodes(server, await server.peer(), await server.ask('machine.MachineService/Version', {}))
  } finally {
    if (server !== cluster) await server.close()
  }
}

/** A message as JSON (protobuf's mapping): who answers comes first, and what is empty is left out. */
function json({ metadata, ...message }: Partial<Version>): string {
  return JSON.stringify({ metadata, ...message }, (_, value) => (value === '' || value === false ? undefined : value))
}

function block({ tag = '', sha = '', built = '', goVersion = '', os = '', arch = '' }: NonNullable<Version['version']>): string {
  return `\tTag:         ${tag}\n\tSHA:         ${sha}\n\tBuilt:       ${built}\n\tGo version:  ${goVersion}\n\tOS/Arch:     ${os}/${arch}\n`
}
