/** Two releases of the system, between which container nodes are upgraded: a node that restarts runs the one that is mounted. */
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { compileBinary } from '../../../rootfs/build/binary.ts'
import { umount } from '../../../src/linux/fs/mount.ts'
import { clusterPaths } from '../../../src/programs/node-supervisor/layout.ts'
import { succeeded, type TestCluster } from '../../cluster/cluster.ts'
import { run } from '../etcd-tools.ts'

/** What `talosctl version` shows of the other release. */
export const otherCommit = 'another-release'

/** The release under test, and one with the same sources and another commit in its program. */
export class Releases {
  readonly #cluster: TestCluster
  readonly #tree: string
  #other = false

  constructor(cluster: TestCluster) {
    this.#cluster = cluster
    this.#tree = join(cluster.home, 'other-release')
  }

  /** Compiles the other release. */
  async build(): Promise<void> {
    mkdirSync(join(this.#tree, 'usr/bin'), { recursive: true })
    await compileBinary(join(this.#tree, 'usr/bin/ichor'), { ichorCommit: otherCommit })
  }

  /** Puts the other of the two in place for nodes that start from now on; returns whether that is the one with the other commit. */
  async change(): Promise<boolean> {
    this.#other = !this.#other
    const root = this.#root()
    if (this.#other) succeeded(await run(['mount', '-t', 'overlay', '-o', `ro,lowerdir=${this.#tree}:${root}`, 'overlay', root]))
    else umount(root, { detach: true })
    return this.#other
  }

  /** Before the cluster is destroyed. */
  close(): void {
    if (this.#other) umount(this.#root(), { detach: true })
    rmSync(this.#tree, { recursive: true, force: true })
  }

  #root(): string {
    return clusterPaths(join(this.#cluster.state, this.#cluster.name)).rootfs
  }
}
