import { createWriteStream, existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { writeTar } from '../../../wire/tar/write.ts'
import { nodeDirectory, nodePaths, readCluster } from '../../node-supervisor/layout.ts'
import { fileMember } from '../archive/file-member.ts'

/** Packs the consoles of a cluster's nodes and the logs of its supervisors into a tar.gz. */
export async function archiveConsoles(directory: string, file: string): Promise<void> {
  const nodes = readCluster(directory)?.nodes ?? []
  const members = nodes.flatMap(({ name }) => {
    const { console } = nodePaths(nodeDirectory(directory, name))
    const logs = [
      [`${name}.1.log`, `${console}.1`],
      [`${name}.log`, console],
    ] as const
    return logs.flatMap(([entry, path]) => (existsSync(path) ? [fileMember(entry, path)] : []))
  })
  await pipeline(Readable.from(writeTar(members)), createGzip(), createWriteStream(resolve(file)))
}
