import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { nodeDirectory, nodePaths, readCluster } from '../../node-supervisor/layout.ts'

/** Packs the consoles of a cluster's nodes and the logs of its supervisors into a tar.gz. */
export async function archiveConsoles(directory: string, file: string): Promise<void> {
  const files: Record<string, Blob> = {}
  for (const { name } of readCluster(directory)?.nodes ?? []) {
    const { console } = nodePaths(nodeDirectory(directory, name))
    for (const [path, entry] of [
      [`${console}.1`, `${name}.1.log`],
      [console, `${name}.log`],
    ] as const) {
      if (existsSync(path)) files[entry] = Bun.file(path)
    }
  }
  await Bun.write(resolve(file), new Bun.Archive(files, { compress: 'gzip' }))
}
