import { DecodeError } from '../decode-error.ts'
import type { ClusterTable } from './cluster-table.ts'
import { directoryLimit, parseDirectory } from './directory.ts'
import type { Geometry } from './geometry.ts'

/** The clusters that belong to a file or directory, each marked by a 1. Throws DecodeError when two directories share one. */
export async function namedClusters(
  table: ClusterTable,
  { clusters, rootCluster }: Geometry,
  readDirectory: (cluster: number) => Promise<Uint8Array>,
): Promise<Uint8Array> {
  const named = new Uint8Array(clusters + 2)
  const waiting = [rootCluster]
  for (let directory = waiting.pop(); directory !== undefined; directory = waiting.pop()) {
    if (named[directory]) throw new DecodeError('FAT32 table', directory, 'two directories share a cluster')
    for (const cluster of table.chain(directory, directoryLimit)) named[cluster] = 1
    for (const entry of parseDirectory(await readDirectory(directory))) {
      if (entry.directory) waiting.push(entry.cluster)
      else if (entry.cluster >= 2) for (const cluster of table.chain(entry.cluster, clusters)) named[cluster] = 1
    }
  }
  return named
}
