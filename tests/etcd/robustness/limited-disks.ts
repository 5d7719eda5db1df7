/** Disks of container nodes with a size of their own: without them a node that fills its disk fills the host's. */
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  rmSync,
  statfsSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { mounts, umountTree } from '../../../src/linux/fs/mount.ts'
import { nodeDirectory, nodePaths } from '../../../src/programs/node-supervisor/layout.ts'
import { succeeded, type TestCluster } from '../../cluster/cluster.ts'
import { run } from '../etcd-tools.ts'

/** Bytes, above the least that nodes are healthy with. Only what is written takes room on the host. */
const size = 8 * 1024 ** 3
const filler = 'filler'

/** The disks of a cluster's nodes, each an ext4 file system in a file. */
export class LimitedDisks {
  readonly #cluster: TestCluster

  constructor(cluster: TestCluster) {
    this.#cluster = cluster
  }

  /** Makes the disks of nodes that `cluster create` is going to make. */
  async make(names: readonly string[]): Promise<void> {
    for (const name of names) {
      const [image, folder] = [`${this.#folder(name)}.ext4`, this.#folder(name)]
      mkdirSync(folder, { recursive: true })
      writeFileSync(image, '', { mode: 0o600 })
      truncateSync(image, size)
      succeeded(await run(['mkfs.ext4', '-q', '-m', '0', '-F', image]))
      succeeded(await run(['mount', '-o', 'loop', image, folder]))
      const { directory, disk } = nodePaths(nodeDirectory(join(this.#cluster.state, this.#cluster.name), name))
      mkdirSync(directory, { recursive: true })
      symlinkSync(folder, disk)
    }
  }

  /** Takes all room that a node's disk has left. */
  async fill(name: string): Promise<void> {
    const folder = this.#folder(name)
    if (!mounts().some(({ target }) => target === folder)) throw new Error(`"${folder}" is not a disk of its own`)
    const path = join(folder, 'var', filler)
    const { bavail, bsize } = statfsSync(folder)
    // What the node writes meanwhile may leave less than that.
    await run(['fallocate', '-l', String(bavail * bsize), path])
    appendUntilFull(path)
    const left = statfsSync(folder)
    console.log(`${name}: ${Math.round(statSync(path).size / 1024 ** 2)} MiB taken, ${left.bavail * left.bsize} bytes left`)
  }

  /** Gives the room back. */
  free(name: string): void {
    rmSync(join(this.#folder(name), 'var', filler), { force: true })
  }

  /** After the cluster was destroyed. */
  close(): void {
    umountTree(join(this.#cluster.home, 'disks'))
  }

  #folder(name: string): string {
    return join(this.#cluster.home, 'disks', name)
  }
}

function appendUntilFull(path: string): void {
  const file = openSync(path, 'a', 0o600)
  try {
    for (const block of [1 << 20, 4096]) {
      const bytes = Buffer.alloc(block)
      while (isWritten(file, bytes));
    }
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

function isWritten(file: number, bytes: Uint8Array): boolean {
  try {
    return writeSync(file, bytes) === bytes.length
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOSPC') return false
    throw error
  }
}
