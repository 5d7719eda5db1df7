import { createWriteStream, existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { type TarMember, writeTar } from '../../../wire/tar/write.ts'
import { type ClusterRecord, type NodeRecord, nodeDirectory, nodePaths, readCluster } from '../../node-supervisor/layout.ts'
import { fileMember } from '../archive/file-member.ts'
import type { Io } from '../io.ts'

/** Lines of the console of a node in Docker or Podman. */
const engineLines = 1000

/** Packs the consoles of a cluster's nodes and the logs of its supervisors into a tar.gz. */
export async function archiveConsoles(io: Io, directory: string, file: string): Promise<void> {
  const record = readCluster(directory)
  const members = record?.engine ? await consolesInEngine(io, record, record.engine.socket) : consoles(directory, record?.nodes ?? [])
  await pipeline(Readable.from(writeTar(members)), createGzip(), createWriteStream(resolve(file)))
}

function consoles(directory: string, nodes: readonly NodeRecord[]): TarMember[] {
  return nodes.flatMap(({ name }) => {
    const { console } = nodePaths(nodeDirectory(directory, name))
    const logs = [
      [`${name}.1.log`, `${console}.1`],
      [`${name}.log`, console],
    ] as const
    return logs.flatMap(([entry, path]) => (existsSync(path) ? [fileMember(entry, path)] : []))
  })
}

/** The last lines of each node's console. */
async function consolesInEngine(io: Io, { nodes }: ClusterRecord, socket: string): Promise<TarMember[]> {
  const { Engine } = await import('./engine/client.ts')
  const { consoleOf } = await import('./engine/provision.ts')
  const engine = await Engine.open(socket, io.signal)
  const texts = await Promise.all(nodes.map(({ name }) => consoleOf(engine, name, engineLines)))
  return nodes.map(({ name }, index) => ({ path: `${name}.log`, type: 'file', mode: 0o644, content: Buffer.from(texts[index] ?? '') }))
}
