/** A containerd of Debian's in a folder of its own, and a network for the node that it starts. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { umountTree } from '../../../src/linux/fs/mount.ts'
import { diskDirectories } from '../../../src/programs/node-supervisor/container-spec.ts'
import { nodeImage } from '../../../src/release.ts'
import { Namespaces, spawnIn } from '../../network/lab/namespaces.ts'
import { storyFolder } from '../../support/abandoned-clusters.ts'
import { type CommandResult, finished } from '../../support/command-result.ts'
import { eventually, succeeded } from '../cluster.ts'

const repository = join(import.meta.dir, '../../..')

/** The address of the node, and of the network around it. */
export const address = { node: '10.79.0.2', around: '10.79.0.1' }

/** Mounts as `destination`, `source` (a folder of the host; undefined for one in memory). */
interface Volume {
  readonly target: string
  readonly source?: string
}

export class Engine {
  // Layers need a file system that takes an overlay, which memory is not everywhere.
  readonly folder = mkdtempSync(storyFolder)
  readonly #spaces = new Namespaces()
  readonly netns = this.#spaces.make('node')
  readonly #around = this.#spaces.make('around')
  readonly #socket = join(this.folder, 'c.sock')
  #daemon: Bun.Subprocess | undefined

  constructor() {
    const [node, around] = [this.#spaces.network(this.netns), this.#spaces.network(this.#around)]
    around.addVeth({ name: 'node0', up: true, peer: { name: 'eth0', up: true }, peerNetns: this.netns })
    around.addAddress({ link: around.indexOf('node0'), address: `${address.around}/24` })
    node.addAddress({ link: node.indexOf('eth0'), address: `${address.node}/24` })
    node.addRoute({ destination: '0.0.0.0/0', gateway: address.around, link: node.indexOf('eth0') })
  }

  /** Starts containerd and gives it the image. */
  async start(): Promise<void> {
    const { folder } = this
    const config = join(folder, 'config.toml')
    writeFileSync(config, 'version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n')
    const places = ['--root', join(folder, 'lib'), '--state', join(folder, 'state'), '--address', this.#socket]
    const log = Bun.file(join(folder, 'containerd.log'))
    this.#daemon = Bun.spawn(['containerd', '--config', config, ...places], { stdin: 'ignore', stdout: log, stderr: log })
    await eventually(async () => succeeded(await this.ctr('version')))
    succeeded(await this.ctr('images', 'import', join(repository, 'dist', nodeImage.file)))
  }

  async ctr(...args: string[]): Promise<CommandResult> {
    return finished(Bun.spawn(['ctr', '--address', this.#socket, ...args], { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' }))
  }

  /** The folders on a disk and in memory that docs/images.md names, for a node with this name. */
  volumes(name: string): Volume[] {
    const disk = diskDirectories.map(({ target, source }) => {
      const path = join(this.folder, name, source)
      mkdirSync(path, { recursive: true })
      return { target, source: path }
    })
    return [{ target: '/system' }, { target: '/run' }, { target: '/tmp' }, ...disk]
  }

  /** Runs talosctl in the network around the node. */
  async talosctl(...args: string[]): Promise<CommandResult> {
    const argv = ['env', `TALOSCONFIG=${join(this.folder, 'talosconfig')}`, join(repository, 'dist/talosctl'), ...args]
    return finished(spawnIn(this.#around, argv))
  }

  async close(): Promise<void> {
    this.#daemon?.kill()
    await this.#daemon?.exited
    this.#spaces.close()
    umountTree(this.folder)
    rmSync(this.folder, { recursive: true, force: true })
  }
}
